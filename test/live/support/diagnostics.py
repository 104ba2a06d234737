# SPDX-License-Identifier: LGPL-2.1-or-later
# Imitates a .NET program that is asked for a perf map, without .NET: the mapped library and the socket.
#     diagnostics.py MODE [NEXT]: run in its own directory; each line on standard input makes it execute the shell command
#     NEXT, or else map memory. MODE selects how it answers:
#     writes: like .NET; lies: yes, but writes no map; refuses; silent: never; late: after 6 s
#     bundled: writes, and has anonymous JIT code instead of the library, as a program published as a single file
#     java: imitates Java instead: catches SIGQUIT and ignores it
#     attaches: Java that listens some time after SIGQUIT; until then its socket exists but nobody listens
import contextlib
import ctypes
import mmap
import os
import signal
import socket
import struct
import sys
import threading
import time

mode = sys.argv[1]
perf_map = f"/tmp/perf-{os.getpid()}.map"
magic = b"DOTNET_IPC_V1\0"

java_socket = f"/tmp/.java_pid{os.getpid()}"


def bind(path):
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(path)
    return bound


def attach():
    time.sleep(0.5)
    listener = bind(java_socket + ".tmp")
    listener.listen()
    os.rename(java_socket + ".tmp", java_socket)
    peer, _ = listener.accept()
    request = peer.recv(4096)
    assert request.startswith(b"1\0jcmd\0Compiler.perfmap\0"), request
    with open(perf_map, "w") as names:
        names.write("1000 10 its own code\n")
    peer.send(b"0\n")
    peer.close()


def attach_after_signal():
    signals.recv(1)
    attach()


if mode == "attaches":
    bind(java_socket).close()
name = "libjvm.so" if mode in ("java", "attaches") else "libcoreclr.so"
signal.signal(signal.SIGQUIT, lambda *_: None)
if mode == "attaches":
    # Not in the handler: a handler for a signal that arrives just before a read would run only after it.
    signals, caught = socket.socketpair()
    caught.setblocking(False)
    signal.set_wakeup_fd(caught.fileno())
    threading.Thread(target=attach_after_signal, daemon=True).start()
with open(name, "wb") as library:
    library.write(b"\x90" * 4096)
with open(name, "rb") as library:
    place = -1 if mode == "bundled" else library.fileno()
    image = mmap.mmap(place, 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
listener = bind(os.path.join(os.environ["TMPDIR"], f"dotnet-diagnostic-{os.getpid()}-1-socket"))
listener.listen()


def answer():
    held = []
    while True:
        peer, _ = listener.accept()
        held.append(peer)
        with open("asked", "a") as log:
            log.write("asked\n")
        if mode == "silent":
            continue
        request = peer.recv(4096)
        assert request.startswith(magic) and request[16] == 4, request
        if mode == "late" and request[17] == 5:
            time.sleep(6)
        if request[17] == 5 and mode in ("writes", "late", "bundled"):
            with open(perf_map, "w") as names:
                names.write("1000 10 its own code\n")
        with open("commands", "a") as log:
            log.write(f"{request[17]}\n")
        refused = mode == "refuses"
        with contextlib.suppress(OSError):  # it may have gone
            peer.send(magic + struct.pack("<HBBHI", 24, 255, 255 if refused else 0, 0, 0x80131384 if refused else 0))
        peer.close()


threading.Thread(target=answer, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    if len(sys.argv) > 2:
        os.execv("/bin/sh", ["sh", "-c", sys.argv[2] + "; echo done; read line"])
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap(None, ctypes.c_size_t(1 << 20), 3, 0x22, -1, ctypes.c_long(0))
    print("done", flush=True)
