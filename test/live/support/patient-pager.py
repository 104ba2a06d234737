# SPDX-License-Identifier: LGPL-2.1-or-later
"""patient-pager.py: as less(1) in what matters here. Says when it is ready, shows the first line and lets the rest wait.
Ctrl-C does not end it. Of the terminal a line "a": reads all that is left and says how much; "q": ends."""
import os
import signal
import threading

# Not a handler: a handler for a signal that arrives just before a read would run only after it.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def report_interrupts():
    while signal.sigwait({signal.SIGINT}):
        os.write(1, b"<interrupted>\n")


threading.Thread(target=report_interrupts, daemon=True).start()
os.write(1, b"<ready>\n")
os.write(1, b"<first: " + os.read(0, 40).split(b"\n")[0] + b">\n")
keys = open("/dev/tty")
for key in iter(keys.readline, "q\n"):
    count = 0
    while data := os.read(0, 65536):
        count += len(data)
    os.write(1, b"<all: %d>\n" % count)
os.write(1, b"<pager ends>\n")
