#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick
# The statically linked tool, alone in a root directory with a program to record, /proc and /sys: it needs no other file.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_static_tool
ldd "$tool" 2>/dev/null | grep '=>' && fail "the tool needs shared libraries"

root=$directory/root
mkdir -p "$root"/{proc,sys} "$root$directory"
cp "$tool" "$root/mmtrace"
cp "$workloads/leak-anon-static" "$root/leak"
# In that root, with the environment of a machine elsewhere. Nothing is mounted outside of its namespace.
MMTRACE=$directory/alone
cat >"$MMTRACE" <<END
#!/bin/bash
exec unshare --mount bash -c 'cd "$root" && mount -t proc proc proc && mount --rbind /sys sys &&
	mount --bind "$directory" ".$directory" &&
	exec env -i LANG=en_US.UTF-8 DEBUGINFOD_URLS=http://localhost:1 /usr/sbin/chroot . /mmtrace "\$@"' mmtrace "\$@"
END
chmod +x "$MMTRACE"

# run ARGUMENT...: without any message.
run() {
	"$MMTRACE" "$@" >out 2>errors </dev/null || fail "mmtrace $* ended with status $?: $(cat out errors)"
	[ ! -s errors ] || fail "mmtrace $*: $(cat errors)"
}

run --version
grep -qx 'link static, without debuginfod' out || fail "it does not say what it lacks: $(cat out)"
run check
grep -q 'tracepoints .*read from tracefs' out || fail "check: $(cat out)"
grep -q '^you can record all processes' out || fail "check: $(cat out)"
# The options instead of the manual page, and why.
"$MMTRACE" help record >out 2>errors || fail "help ended with status $?: $(cat errors)"
grep -q 'manual page mmtrace-record is not installed' errors || fail "no word about the manual: $(cat errors)"
grep -q -- '--duration TIME' out || fail "help: $(cat out)"

# A command. The tool's helper processes work, too: there is no warning.
run record -q -o "$directory/before.data" -- /leak --exit
run record -q -o "$directory/after.data" -- /leak --exit 30
recording=$directory/before.data
report_json
expect_json '.completeness.warnings | length == 0'
expect_json '[.groups[] | select([.frames[] | select(.inlined | not) | .function][:5] ==
	["mmap", "leak_inner", "leak_middle", "leak_outer", "main"])] |
	length == 1 and .[0].stack_end == "entry" and .[0].unfreed_count == 10'
expect_json '[.groups[].frames[] | select(.function == "leak_inner")] | length == 1 and all(.source_file | endswith("leak-anon.c"))'
run diff --no-pager "$directory/before.data" "$directory/after.data"
grep -q leak_inner out || fail "diff does not name what grew: $(cat out)"
run report --html "$directory/page.html" "$recording"
grep -q leak_inner page.html || fail "the page does not name the function"
run export -f folded -o "$directory/leak.folded" "$recording"
grep -q leak_inner leak.folded || fail "the folded stacks do not name the function"
run dump "$recording"
grep -q ' call .* mmap(' out || fail "dump: $(cat out)"

# There is no /var/tmp.
sleep 600 &
sleeper=$!
processes+=("$sleeper")
"$MMTRACE" top --json --count 1 -p "$sleeper" >out 2>errors </dev/null
[ $? = 2 ] && grep -q 'cannot create /var/tmp/.*; set TMPDIR to another directory' errors || fail "top: $(cat errors)"
run top --json --count 1 -o "$directory/top.data" -p "$sleeper"
grep -q "$sleeper" out || fail "top shows no process: $(cat out)"

# A process that runs already, with shared libraries outside of that root.
recording=$directory/mmtrace.data
start_workload leak-anon
record_work -p "$pid"
expect_true_report
expect_workload_answer yes

# An allocation that fails, in whichever library, ends it with a message.
failures=0
for ((limit = 9000; limit < 60000; limit += 500)); do
	(ulimit -v $limit && exec "$tool" report --json -i "$recording") >out 2>errors </dev/null
	status=$?
	[ $status != 0 ] || break
	! grep -q 'out of memory' errors || [ $status != 2 ] || failures=$((failures + 1))
done
[ $status = 0 ] || fail "60 MB are not enough for a report: $(cat errors)"
[ $failures -gt 2 ] || fail "only $failures reports with too little memory said so"
