#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: python3:python3
# Stacks of page faults are as complete as those of calls, without frame pointers: deep ones, in signal handlers, in the
# kernel, in threads, and of CPython with its function names.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
area=$((1 << 20))

# record_touches COMMAND...: rows by touch, in touched.json.
record_touches() {
	start_command "$@"
	record_work --faults=all -g dwarf -p "$pid"
	expect_json '.completeness.lost_faults == 0'
	"$MMTRACE" report --by touch --limit 0 --json -i "$recording" >touched.json || fail "--by touch: status $?"
}

# expect_touched BYTES END PATTERN...: functions from the innermost out, of which each begins so, between others; the stack
# ends there.
expect_touched() {
	local bytes=$1 end=$2
	shift 2
	jq -e --argjson bytes "$bytes" --arg last "$end" '[.groups[] | select(.pattern == null and .stack_end == $last) |
		select(reduce .frames[].function as $f ($ARGS.positional; if length > 0 and $f != null and
			(.[0] as $n | $f | startswith($n)) then .[1:] else . end) == []) | .memory_bytes] | any(. == $bytes)' \
		touched.json --args "$@" >/dev/null ||
		fail "not $bytes bytes by $*: $(jq -c '.groups[] | [.memory_bytes, .stack_end, .pattern, [.frames[].function]]' touched.json)"
}

echo C
build_program gcc "${stack_options[@]}" -o touches "$stack_sources/touches.c" "$stage_source" -pthread
record_touches ./touches
expect_touched $area entry touch descend descend descend main _start
expect_touched $area entry touch handle_signal __restore_rt raise_signal main _start
# Only the signal's own frame tells what it interrupted.
expect_touched $area other_stack touch handle_signal __restore_rt
expect_touched $area entry read read_zeros main _start
expect_touched $area entry touch run_thread start_thread
expect_json '.growth.parts[] | select(.place == "before" and .class == "anon") | .touched_bytes == .bytes and .touched_error_bytes == 0'

echo Python
for interpreter in /usr/bin/python3 python3 python3.1{2,3,4} "${PYENV_ROOT:-/nowhere}"/versions/3.1[2-9]*/bin/python3; do
	"$interpreter" -c 'import sys; sys.activate_stack_trampoline("perf")' 2>/dev/null || continue
	cat >touches.py <<-'END'
		import mmap, sys
		area = mmap.mmap(-1, 1 << 20)
		def fill_area():
		    for i in range(0, 1 << 20, mmap.PAGESIZE):
		        area[i] = 1
		def one_round():
		    fill_area()
		print("ready", flush=True)
		sys.stdin.readline()
		one_round()
		print("done", flush=True)
		sys.stdin.readline()
	END
	record_touches "$interpreter" -X perf touches.py
	expect_touched $area entry py::fill_area: py::one_round: 'py::<module>:' _start
	exit 0
done
echo "no CPython with -X perf"
