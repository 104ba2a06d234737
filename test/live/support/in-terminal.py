# SPDX-License-Identifier: LGPL-2.1-or-later
"""in-terminal.py LOG KEYS COMMAND...: runs a command in a terminal of its own (120 columns) and keeps what it writes
there, as it comes. KEYS "TEXT:KEY" presses KEY when TEXT has appeared, "@SECONDS:KEY" so long after the last one; several
lines: one after the other, the next TEXT behind the last one; "": none. Ends with the command's status, 128 + n by signal;
one that does not end is killed after two minutes."""
import errno
import os
import fcntl
import pty
import select
import signal
import struct
import sys
import termios
import time

log, keys, command = sys.argv[1], sys.argv[2], sys.argv[3:]
keys = [line.rsplit(":", 1) for line in keys.split("\n") if line]
child, terminal = pty.fork()
if child == 0:
    # A shell ignores SIGINT and SIGQUIT for what it starts in the background, and nohup SIGHUP.
    for number in signal.SIGPIPE, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP:
        signal.signal(number, signal.SIG_DFL)
    os.execvp(command[0], command)
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
output, seen, began, pressed = b"", 0, time.time(), time.time()
file = open(log, "wb", buffering=0)


def find_key():
    """Where the output ends that the next key waits for; -1: not yet."""
    text = keys[0][0] if keys else ""
    if text.startswith("@"):
        return len(output) if time.time() - pressed >= float(text[1:]) else -1
    place = output.find(text.encode(), seen)
    return place + len(text) if keys and place >= 0 else -1


while time.time() < began + 120:
    while (place := find_key()) >= 0:
        seen, pressed = place, time.time()
        os.write(terminal, keys.pop(0)[1].encode().decode("unicode_escape").encode())
    if not select.select([terminal], [], [], 0.01 if keys and keys[0][0].startswith("@") else 1)[0]:
        continue
    try:
        data = os.read(terminal, 65536)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        break
    if not data:
        break
    if keys:
        output += data
    file.write(data)
else:
    os.kill(child, signal.SIGKILL)
_, status = os.waitpid(child, 0)
sys.exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
