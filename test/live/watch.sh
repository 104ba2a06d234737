#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# watch starts each recorder before the previous one stops, limits the size of its directory, and checks conditions.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
cat >run <<'END'
#!/bin/sh
echo "$2 ${1##*/}" >>ran
END
chmod 755 run
watcher=
unit=()

# start_watch DIR OPTION...
start_watch() {
	rm -f ran
	"${unit[@]}" "$MMTRACE" watch -o "$@" --run ./run 2>watch.log 3>&- &
	watcher=$!
	processes+=("$watcher")
}

end_watch() { # STATUS
	wait "$watcher"
	local status=$?
	[ "$status" = "$1" ] || fail "watch ended with status $status: $(cat watch.log)"
}

# has_begun: a recorder has begun when its file has a name.
has_begun() {
	kill -0 "$watcher" 2>/dev/null || given_up="watch ended early: $(cat watch.log)"
	[ -n "$(find "$1" -name '*.data' -newer mark)" ]
}

has_run() { # REASON
	grep -qF "$1 " ran 2>/dev/null
}

# No call is missed between two recordings: the call with number N maps N pages.
start_workload counting 10000
touch mark
start_watch interval -p "$pid" --every 1s
wait_until "the first recording" has_begun interval
let_work
let_end
end_watch 0
while read -r reason file; do
	[ "$reason" = interval ] && check=--check || check= # of a process that has ended, the kernel has no maps
	"$MMTRACE" report -i "interval/$file" --json $check >report.json || fail "$file is not true: $(cat watch.log)"
	expect_true_report
	"$MMTRACE" dump -i "interval/$file" | sed -nE 's/.* mmap\(0, (0x[0-9a-f]+), 0, .*/\1/p' || fail "dump of $file"
done <ran >lengths
xargs printf '%d\n' <lengths | awk -v page="$(getconf PAGESIZE)" '{ print $1 / page }' | sort -nu >numbers
[ "$(wc -l <numbers)" -gt 1000 ] && [ "$(wc -l <numbers)" = "$(tail -1 numbers)" ] ||
	fail "$(wc -l <numbers) calls of $(tail -1 numbers) are in the recordings: $(cat watch.log)"
[ "$(grep -c ^interval ran)" -ge 1 ] && [ "$(grep -vc ^interval ran)" = 1 ] && has_run ended || fail "ran $(cat ran)"

# A condition is met once; each recording that ends by one, or by a signal, has a page.
start_workload growth steadily
echo >&3
touch mark
start_watch conditions -p "$pid" --when 'rss>60M' --when 'growth>1T/1m' --every 1m
wait_until "the condition" has_run 'rss>60M'
"$MMTRACE" watch -o conditions -p "$pid" 2>second.log && fail "a second watch writes into the same directory"
grep -q 'another mmtrace watch' second.log || fail "$(cat second.log)"
kill -USR2 "$watcher"
wait_until "the signal" has_run signal
kill -TERM "$watcher"
end_watch 0
[ "$(cut -d' ' -f1 ran | paste -sd' ')" = 'rss>60M signal stopped' ] || fail "ran $(cat ran)"
while read -r reason file; do
	"$MMTRACE" report -i "conditions/$file" >report.txt || fail "$reason: $(cat watch.log)"
	[ "$reason" = stopped ] || grep -q '</html>' "conditions/${file%.data}.html" || fail "$reason: no page"
done <ran
[ "$(find conditions -name '*.html' | wc -l)" = 2 ] || fail "$(ls conditions)"

# A killed watch: the recorder ends by itself, and the next watch goes on.
kill -9 "$pid"
start_workload growth idle
touch mark
start_watch conditions -p "$pid"
wait_until "a recording" has_begun conditions
recorder=$(child_of "$watcher")
kill -9 "$watcher"
end_watch 137
wait_for_end "$recorder"
"$MMTRACE" report -i "$(find conditions -name '*.data' | sort | tail -1)" >report.txt || fail "after SIGKILL: $(cat watch.log)"

# The oldest files go, others stay.
touch conditions/{notes,20200101T000000.data}
for name in 1.data 1.html 2.data 3.data; do
	truncate -s 2M "conditions/20200101T00000${name/./.000Z.}"
done
touch mark
start_watch conditions -p "$pid" --max-size 8M
wait_until "a recording" has_begun conditions
kill "$watcher"
end_watch 0
[ "$(cd conditions && echo n* 2020*)" = 'notes 20200101T000000.data 20200101T000002.000Z.data 20200101T000003.000Z.data' ] ||
	fail "not removed: $(ls -l conditions)"

# By name, with the rights that the unit gives: of one process after another.
cp "$workloads/growth" "watched-$$" && workloads=$directory
capabilities=$(sed -nE 's/^CapabilityBoundingSet=//p' "$BUILD/mmtrace-watch@.service")
grep -qE "^ExecStart=/.*/bin/mmtrace watch --comm %i -o " "$BUILD/mmtrace-watch@.service" || fail "the unit runs something else"
unit=()
[ "$(id -u)" != 0 ] || unit=(setpriv --no-new-privs --bounding-set="-all$(sed "s/ *cap_/,+/g" <<<"${capabilities,,}")")
start_watch named --comm "watched-$$"
for run in 1 2; do
	touch mark
	start_workload "watched-$$" idle
	wait_until "recording $run" has_begun named
	let_work
	let_end
	wait_until "the end of recording $run" eval '[ "$(grep -c ^ended ran 2>/dev/null)" = $run ]'
done
kill "$watcher"
end_watch 0
grep -q 'waiting for a process' watch.log && ! grep -q warning: watch.log || fail "$(cat watch.log)"

# The same condition ends a recording of record.
workloads=$BUILD/test/workload
start_workload growth steadily
begin_recording -p "$pid" --until 'rss>40M'
echo >&3
wait "$recorder" || fail "record ended with status $?: $(cat record.log)"
grep -qx 'mmtrace record: condition met: rss>40M' record.log || fail "$(cat record.log)"

kill -9 "$pid"

# Mappings are counted, at most ten seconds later.
start_workload growth separate
begin_recording -p "$pid" --until 'mappings>2%'
echo >&3
wait "$recorder" || fail "record ended with status $?: $(cat record.log)"
grep -qx 'mmtrace record: condition met: mappings>2%' record.log || fail "$(cat record.log)"
let_end

for arguments in '' '-p 1 -a' '-p 1 --when rss' '-p 1 --when growth>1M' '-p 1 --when group>0%' '-p 1 --max-size 7M' '-p 1 --run nothing' '-p 1 --run ./nothing' '-p 1 --when growth>1M/2m --every 1m' '-p 1 other' '-p 1 -- other'; do
	"$MMTRACE" watch -o refused $arguments 2>refused.log
	[ $? = 2 ] && [ ! -e refused ] && grep -q 'watch --help' refused.log || fail "watch $arguments: $(cat refused.log)"
done
