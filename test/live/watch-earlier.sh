#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A report of the directory of watch has the stacks of memory that earlier recordings saw being mapped: as one recording of
# the whole time, also when the earlier ones were removed.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
cat >run <<'EOF'
#!/bin/sh
echo "$2 ${1##*/}" >>ran
EOF
chmod 755 run
watcher=

# start_watch DIR: with the recording of the whole time.
start_watch() {
	rm -f ran
	touch ran mark
	begin_recording -p "$pid"
	wait_for_first_snapshots
	watch_again "$1"
}

watch_again() { # DIR
	"$MMTRACE" watch -o "$1" -p "$pid" --every 1h --run ./run 2>watch.log 3>&- &
	watcher=$!
	processes+=("$watcher")
	wait_until "the first recording" has_begun "$1"
}

has_begun() {
	kill -0 "$watcher" 2>/dev/null || given_up="watch ended early: $(cat watch.log)"
	[ -n "$(find "$1" -name '*.data' -newer mark)" ]
}

have_run() { # COUNT
	kill -0 "$watcher" 2>/dev/null || given_up="watch ended early: $(cat watch.log)"
	[ "$(wc -l <ran)" = "$1" ]
}

rounds=0
do_round() {
	rounds=$((rounds + 1))
	echo "${1:-go}" >&3
	wait_until "round $rounds" grep -qa "round $rounds\$" "$directory/workload.out"
}

rotate() {
	local count
	count=$(wc -l <ran)
	kill -USR2 "$watcher"
	wait_until "the next recording" have_run $((count + 1))
}

stop_watch() {
	kill -TERM "$watcher"
	wait "$watcher" || fail "watch ended with status $?: $(cat watch.log)"
}

# rows INPUT: what each stack has mapped, and made accessible.
rows() {
	"$MMTRACE" report -i "$1" --json --limit 0 --min-bytes 0 >rows.json || fail "no report of $1: $(cat watch.log)"
	jq -r '[.groups[] | select(.unfreed_bytes + .committed_bytes > 0) |
		{stack: ([.frames[].function // "?"] | join(" ")), figures: [.unfreed_bytes, .unfreed_count, .committed_bytes]}] |
		group_by(.stack) | .[] | [.[0].stack, (map(.figures) | transpose | map(add) | .[])] | @tsv' rows.json
}

expect_equal_rows() { # DIR
	rows "$recording" >whole.tsv
	rows "$1" >parts.tsv
	diff whole.tsv parts.tsv >differences || fail "the report of $1 differs: $(cat differences watch.log)"
	for function in "$@"; do
		[ "$function" = "$1" ] || grep -q "[[:space:]]$function main" parts.tsv || fail "$function is not in $(cat parts.tsv)"
	done
}

for mode in calm race; do
	start_workload carried $mode
	rounds=0
	start_watch "$mode"
	for i in 1 2 3 4; do
		do_round
		rotate
		# All but the last one, which the next one continues.
		sed -n 's/^signal \(.*\)\.data$/\1/p' ran | sed '$d' >old
		while read -r name; do
			rm -f "$mode/$name.data" "$mode/$name.html"
		done <old
	done
	do_round rest
	stop_watch
	stop_recording
	expect_equal_rows "$mode" leak hold map_to_move map_to_cut reserve
	grep -q 'warning:.*older memory' watch.log && fail "$mode: the chain is broken: $(cat watch.log)"
	"$MMTRACE" report "$mode" | grep -q 'with 4 earlier recordings' || fail "$("$MMTRACE" report "$mode")"
	jq -e --argjson page "$(getconf PAGESIZE)" '.groups | map(select(.frames | map(.function) | index("leak"))) |
		length == 1 and .[0].unfreed_count == 5 and .[0].unfreed_bytes == 80 * $page' rows.json >/dev/null ||
		fail "leak: $(cat parts.tsv)"
	# An ordinary report of the last recording has nothing of the others.
	rows "$mode/latest" | grep -q map_to_cut && fail "the last recording mapped nothing to cut"
done

# What was missed between two recordings is not claimed.
rm -f ran
touch ran mark
watch_again race
do_round
stop_watch
grep -q 'ended .* before the other recording began' watch.log || fail "no gap: $(cat watch.log)"
rows race | grep -q map_to_cut && fail "memory from before the gap: $(cat parts.tsv)"
cp race/latest alone.data
"$MMTRACE" pack --after gone.data alone.data 2>error && fail "packed after a recording that does not exist"
grep -q 'gone.data' error && cmp race/latest alone.data || fail "$(cat error)"
exec 3>&-

# A program that replaces itself inherits nothing.
start_workload carried
rounds=0
start_watch exec
do_round
rotate
rounds=0
: >"$directory/workload.out"
echo exec >&3
wait_until "the program to begin again" grep -qa ready "$directory/workload.out"
do_round
rotate
do_round
stop_watch
stop_recording
expect_equal_rows exec leak
exec 3>&-
