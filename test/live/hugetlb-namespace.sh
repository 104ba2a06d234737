#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A hugetlbfs that is mounted only in the target's mount namespace is recognised. No huge page is needed: none is
# reserved and none is touched.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
command -v python3 >/dev/null || skip "python3 is not installed"
mkdir huge
unshare --mount mount -t hugetlbfs none huge 2>mount.log || skip "cannot mount hugetlbfs in a namespace: $(cat mount.log)"
cat >map.py <<'END'
import mmap, os, sys

file = os.open("huge/file", os.O_RDWR | os.O_CREAT)
size = os.fstatvfs(file).f_bsize
os.ftruncate(file, 4 * size)

def map_file():
    return mmap.mmap(file, 4 * size, flags=mmap.MAP_SHARED | 0x4000)  # MAP_NORESERVE

kept = [map_file()]
print("ready", flush=True)
sys.stdin.readline()
kept.append(map_file())
print("mapped", flush=True)
sys.stdin.readline()
END
start_command unshare --mount sh -c 'mount -t hugetlbfs none huge && exec python3 map.py'
start_recording -p "$pid"
go_on_until mapped
stop_recording
report_json
expect_true_report
expect_json '[.groups[] | select(.memory_class == "hugetlb")] | length == 1'
let_end
