# SPDX-License-Identifier: LGPL-2.1-or-later
"""For the scripts that gdb runs: names of addresses."""
import functools
import subprocess
import gdb


@functools.lru_cache
def endless(path):
    """The names of a file's functions without a size."""
    names = set()
    for table in [], ["-D", "--without-symbol-versions"]:
        lines = subprocess.run(["nm", "-S", *table, path], capture_output=True, text=True, check=True).stdout.splitlines()
        names.update(fields[2] for fields in map(str.split, lines) if len(fields) == 3)
    return names


def symbol(address, from_its_start=False):
    """The name that gdb's own symbol table has for the address, or only if the symbol starts there; "?": none. gdb extends
    a function without a size to the next one: the result is then "?NAME"."""
    text = gdb.execute(f"info symbol {address:#x}", to_string=True).strip()
    name, _, offset = text.split(" in section ")[0].partition(" + ")
    path = text.partition(" of ")[2]
    if text.startswith("No symbol") or offset and from_its_start:
        return "?"
    return "?" + name if offset and path and name in endless(path) else name


def functions(address):
    """The functions at an address, inlined ones first."""
    names = []
    block = gdb.block_for_pc(address)
    while block is not None and not block.is_global and not block.is_static:
        if block.function is not None:
            names.append(block.function.name)
        block = block.superblock
    return names or [symbol(address)]
