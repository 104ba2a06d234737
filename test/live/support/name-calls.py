# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run by gdb, attached to the program: writes the calls of the file $ADDRESSES, which true-stacks has made, to the file
$BACKTRACES with names for addresses, as backtraces.py writes its own."""
import os
import sys
import gdb

sys.path.insert(0, os.environ["SUPPORT"])
from calls import functions  # noqa: E402

gdb.execute("set debuginfod enabled off")
with open(os.environ["ADDRESSES"], encoding="utf-8") as file, open(os.environ["BACKTRACES"], "w", encoding="utf-8") as out:
    for line in file:
        thread, result, *addresses = line.split()
        names = []
        for place, address in enumerate(addresses):
            names += functions(int(address, 16) - (place > 0))
        out.write("\t".join([thread, result, "entry"] + names) + "\n")
