#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares stacks of the same calls as several tools show them.

    agreement.py FILE TOOL=FILE...

Each file has one call a line: thread, result of mmap, how the stack ends, frames from the innermost to the outermost, with
tabs in between. The first file, gdb's, is the truth where it has come to the entry of the thread: in code without tables gdb
guesses, and ends somewhere else. Prints the number of calls, how many of them gdb has whole, and for each tool how many of
those it shows with the same functions in the same order, and as TOOL-wrong how many that it calls whole ("entry") and shows
otherwise. With DIFFERENCES set, the stacks that differ go to stderr.
"""
import os
import re
import sys


def balanced(text, opening, closing):
    """The text without what stands in such brackets."""
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
    """What is common to the ways in which tools write a function's name: without its scope, arguments, template
    arguments, version and the prefixes and endings by which the C library tells aliases of one function apart."""
    if name == "[unknown]":
        return "?"
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


def main():
    truth = read_calls(sys.argv[1])
    figures = [f"calls={len(truth)}"]
    whole = {key: call for key, call in truth.items() if call[0] == "entry"}
    figures.append(f"gdb-whole={len(whole)}")
    for argument in sys.argv[2:]:
        tool, path = argument.split("=", 1)
        calls = read_calls(path)
        lost = "", ["(no such call)"]
        differing = [key for key in whole if calls.get(key, lost)[1] != whole[key][1]]
        figures.append(f"{tool}={len(whole) - len(differing)}")
        figures.append(f"{tool}-wrong={sum(calls.get(key, lost)[0] == 'entry' for key in differing)}")
        for key in differing if os.environ.get("DIFFERENCES") else []:
            print(f"{key[0]} {key[1]:#x}\n  gdb  {' < '.join(truth[key][1])}\n"
                  f"  {tool}  {' < '.join(calls.get(key, lost)[1])}", file=sys.stderr)
    print(" ".join(figures))


main()
