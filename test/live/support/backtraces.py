# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run by gdb, attached to a program: writes the backtrace of every mmap that returns to the file $BACKTRACES.

One line for each call: thread, result, how it ends, then the frames, innermost first, separated by tabs; an inlined function
is a frame. It ends with "entry" if gdb knows that the last frame has no caller, with "context" if makecontext started the stack,
otherwise with a dash.
Errors of gdb that are corrected here:
Functions that left by a jump (tail calls) are not on the stack; frames that gdb infers from debug information are omitted. If gdb
shows an address as inlined into a function that does not contain it, as in the resumed part of a coroutine, the name is that of
gdb's own symbol table. Below the function passed to makecontext is the start address of another function, which no call has
pushed: gdb looks it up one byte before, finds nothing, and shows the following zero as another caller. gdb does not follow Go's
switch to the thread's own stack: the backtrace ends there.
"""
import os
import sys
import gdb

sys.path.insert(0, os.environ["SUPPORT"])
from calls import symbol  # noqa: E402


def is_outside(frame):
    """Whether the function that gdb names does not contain the address."""
    try:
        block = frame.block()
    except RuntimeError:
        return False
    while block is not None and block.function is None:
        block = block.superblock
    return block is not None and not block.start <= frame.pc() <= block.end


def frames():
    names, end, was_never_called = [], "-", False
    first_inlined = 0
    frame = gdb.newest_frame()
    while frame is not None and frame.is_valid():
        if frame.type() != gdb.TAILCALL_FRAME:
            if frame.pc() == 0:
                end = "context" if was_never_called else end
                break
            was_never_called = not frame.name() and symbol(frame.pc(), from_its_start=True) != "?"
            names.append(symbol(frame.pc()) if was_never_called else frame.name() or "?")
            if frame.type() != gdb.INLINE_FRAME:
                if is_outside(frame):
                    names[first_inlined:] = [symbol(frame.pc())]
                first_inlined = len(names)
        try:
            # gdb shows the zero below the first function of a goroutine as another frame.
            if frame.unwind_stop_reason() == gdb.FRAME_UNWIND_OUTERMOST or names[-1] == "runtime.goexit":
                end = "entry"
                break
            frame = frame.older()
        except gdb.error:
            names.append("?")
            break
    return [end] + names


def watch(output):
    output.write("attached\n")
    output.flush()
    while True:
        try:
            gdb.execute("continue", to_string=True)
        except gdb.error:
            return
        thread = gdb.selected_thread()
        if thread is None or not thread.is_valid():
            return
        # The first stop of every call is its entry: the kernel stores -ENOSYS there. On arm64 it shows a tracer 1 in x7 at
        # the exit; x8 is the number of mmap.
        register = gdb.newest_frame().read_register
        if os.uname().machine == "aarch64":
            result = int(register("x0")) & (1 << 64) - 1
            is_exit = (int(register("x7")), int(register("x8"))) == (1, 222)
        else:
            result = int(register("rax")) & (1 << 64) - 1
            is_exit = result != (1 << 64) - 38
        if is_exit:
            output.write("\t".join([str(thread.ptid[1]), hex(result)] + frames()) + "\n")
            output.flush()


for setting in ("pagination off", "confirm off", "backtrace past-main on", "backtrace past-entry on",
                "debuginfod enabled off", "backtrace limit 500"):
    gdb.execute("set " + setting)
gdb.execute("handle SIGUSR1 SIGUSR2 SIGURG SIGILL SIG32 SIG33 nostop noprint pass", to_string=True)
gdb.execute("catch syscall mmap", to_string=True)
with open(os.environ["BACKTRACES"], "w", encoding="utf-8") as file:
    watch(file)
