#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone sanitize
# The recorder uses what newer kernels have only if it is there: without it, other tests pass, too.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
preload old-kernel
printf '#!/bin/bash\nexec' >old-mmtrace
printf ' %q' "${preload[@]}" "$MMTRACE" >>old-mmtrace
echo ' "$@"' >>old-mmtrace
chmod +x old-mmtrace

# run_test NAME
run_test() {
	MMTRACE=$directory/old-mmtrace bash "$SOURCE/test/live/$1.sh" >test.log 2>&1 ||
		fail "live-$1 with an older kernel: status $?: $(tail -20 test.log)"
}

run_test loss        # PERF_FORMAT_LOST: how many records were lost
run_test leak-thread # none, although events are closed
run_test wait        # or records are discarded
run_test heap-census # PAGEMAP_SCAN
