#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""refuse-events.py ERRNO COMMAND...: runs a command whose perf_event_open fails, as the seccomp filters of containers do."""
import ctypes
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
SYS_PERF_EVENT_OPEN = 298
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


instructions = b"".join(
    struct.pack("HBBI", *instruction)
    for instruction in (
        (LOAD, 0, 0, 0),
        (JUMP_EQUAL, 0, 1, SYS_PERF_EVENT_OPEN),
        (RETURN, 0, 0, FAIL | int(sys.argv[1])),
        (RETURN, 0, 0, ALLOW),
    )
)
libc = ctypes.CDLL(None, use_errno=True)
if os.geteuid() != 0:
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
program = Program(4, instructions)
if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)) != 0:
    sys.exit("prctl: " + os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[2], sys.argv[2:])
