# SPDX-License-Identifier: LGPL-2.1-or-later
"""in-terminal.py LOG KEYS COMMAND...: runs a command in a terminal of its own (120 columns) and keeps what it writes
there, as it comes. KEYS "TEXT:KEY" presses KEY when TEXT has appeared; "": none. Ends with the command's status, 128 + n by
signal; one that does not end is killed after two minutes."""
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
text, key = keys.rsplit(":", 1) if keys else ("", "")
child, terminal = pty.fork()
if child == 0:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.execvp(command[0], command)
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
output, pressed, end = b"", not keys, time.time() + 120
file = open(log, "wb", buffering=0)
while time.time() < end:
    if not select.select([terminal], [], [], 1)[0]:
        continue
    try:
        data = os.read(terminal, 65536)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        break
    if not data:
        break
    output += data
    file.write(data)
    if not pressed and text.encode() in output:
        pressed = True
        os.write(terminal, key.encode().decode("unicode_escape").encode())
else:
    os.kill(child, signal.SIGKILL)
_, status = os.waitpid(child, 0)
sys.exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
