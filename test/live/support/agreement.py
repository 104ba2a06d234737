#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares stacks of the same calls as several tools show them.

    agreement.py FILE TOOL=FILE...

Each line of a file is a call: thread, result of mmap, how the stack ends, frames from the innermost to the outermost, separated
by tabs. The first file is the reference if the stack reaches the entry of the thread or the start of a context; its "?NAME" may
be that function or one without a name. Prints the number of calls, how many are complete in the reference, and for each tool how
many of those it shows with the same functions in the same order; as TOOL-part, how many others are the same as far as both go,
where the tool says that a signal handler's stack continues elsewhere, or the reference ends in a function of Go's runtime that
switches stacks. All others are missing or different; with DIFFERENCES set they are printed to stderr.
"""
import os
import re
import sys

COMPLETE = "entry", "context"
# Functions of Go's runtime that switch to another stack, and the function to which a signal handler, which may have one,
# returns.
STACK_SWITCHES = "systemstack", "mcall", "morestack", "asmcgocall"
SIGNAL_RETURN = "restore_rt"


def balanced(text, opening, closing):
    """The text without what is in these brackets."""
    kept, depth = [], 0
    for character in text:
        if character == opening:
            depth += 1
        elif character == closing and depth:
            depth -= 1
        elif not depth:
            kept.append(character)
    return "".join(kept)


def function(name):
    """The common part of the names that tools print for a function: without its scope, arguments, template arguments,
    version and the prefixes and suffixes by which libc distinguishes aliases of one function."""
    if name == "[unknown]":
        return "?"
    if name.startswith("?"):
        return "?" + function(name[1:]) if name != "?" else name
    name = re.sub(r" \(inlined\)$|\[clone [^]]*\]|@.*$", "", name).strip()
    name = re.sub(r"\.(part|constprop|isra|cold|actor|destroy)\b.*$", "", name)
    name = name.replace("operator()", "operator_call").replace("(anonymous namespace)", "anonymous")
    name = re.sub(r"operator(<=>|<<=?|>>=?|->\*?|<=?|>=?)", "operator_sign", name)
    name = re.sub(r"\{\{vtable\.shim\}\}|\{shim:vtable#\d+\}", "", re.sub(r"\{+closure(_env)?(#\d+)?\}+", "closure", name))
    name = balanced(balanced(name, "<", ">"), "(", ")")
    name = re.split(r"::|\.", re.sub(r"\s+const$|::$", "", name.strip()))[-1].split(" ")[-1] or name
    name = re.sub(r"^_*(GI_+)?(libc_)?", "", name)
    return re.sub(r"(64|_impl|_2_1)$", "", name) or "?"


def read_calls(path):
    calls, seen = {}, {}
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            if len(fields) < 4:
                continue
            key = fields[0], int(fields[1], 16)
            seen[key] = seen.get(key, 0) + 1
            calls[key + (seen[key],)] = fields[2], [function(name) for name in fields[3:]]
    return calls


def is_same(frames, true):
    return len(frames) == len(true) and all(
        name == right or right.startswith("?") and name in ("?", right[1:]) for name, right in zip(frames, true))


def is_same_in_part(call, reference):
    """Whether one of them is shorter because its stack continues elsewhere, and both are the same as far as it goes."""
    (end, frames), (reference_end, true) = call, reference
    if reference_end not in COMPLETE:
        # gdb reads the frames beyond a switch from the wrong stack.
        switch = next((place for place, name in enumerate(true) if name in STACK_SWITCHES), len(true) - 1)
        true = true[:switch + 1]
    common = min(len(frames), len(true))
    if not common or not is_same(frames[:common], true[:common]):
        return False
    if reference_end in COMPLETE:
        return end == "other_stack" and len(frames) < len(true) and SIGNAL_RETURN in frames
    return end in ("entry", "other_stack") and true[common - 1] in STACK_SWITCHES and (end == "entry" or len(frames) == common)


def main():
    # Beyond a switch of stacks gdb does not know the callers, even if it takes the base of the other stack for the entry.
    reference = {key: ("-" if set(true) & set(STACK_SWITCHES) else end, true)
                 for key, (end, true) in read_calls(sys.argv[1]).items()}
    figures = [f"calls={len(reference)}", f"complete={sum(end in COMPLETE for end, _ in reference.values())}"]
    for argument in sys.argv[2:]:
        tool, path = argument.split("=", 1)
        calls, same, part = read_calls(path), 0, 0
        for key, (reference_end, true) in reference.items():
            end, frames = calls.get(key, ("", ["(no such call)"]))
            if reference_end in COMPLETE and is_same(frames, true):
                same += 1
            elif is_same_in_part((end, frames), (reference_end, true)):
                part += 1
            elif os.environ.get("DIFFERENCES"):
                print(f"{key[0]} {key[1]:#x}\n  reference  {' < '.join(true)}  ({reference_end})\n"
                      f"  {tool}  {' < '.join(frames)}  ({end or '-'})", file=sys.stderr)
        figures += [f"{tool}={same}", f"{tool}-part={part}"]
    print(" ".join(figures))


main()
