# SPDX-License-Identifier: LGPL-2.1-or-later
# Maps and unmaps memory below many native frames: CALLS times, from stacks of changing depth.
import mmap
import random
import sys

calls = int(sys.argv[1])


def descend(depth):
    if depth:
        # The interpreter enters itself through the C code of sorted().
        return sorted([depth], key=lambda number: descend(number - 1))
    mmap.mmap(-1, 4096).close()
    return 0


random.seed(1)
for _ in range(calls):
    descend(random.randrange(1, 6))
