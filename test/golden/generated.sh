#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Recordings with a known answer: what each stack mapped, freed, kept and held at its peak. If the clock jumps back in the
# middle, the report mentions it.
set -eu
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
failed=0
check() {
	"$BUILD/test/generate-recording" "$@" "$directory/recording" >"$directory/account"
	# Stacks that never mapped anything are in no report.
	awk '$2 > 0' "$directory/account" | sort >"$directory/expected"
	"$MMTRACE" report --json "$directory/recording" >"$directory/report"
	jq -r 'def figures: "\(.allocated_bytes) \(.allocated_count // 0) \(.freed_bytes) \(.freed_count // 0) \(.unfreed_bytes) \(.peak_bytes)";
		(.groups[] | "\(.frames[0].function) \(figures)"),
		(.allocated_count = ([.groups[].allocated_count] | add) | .freed_count = ([.groups[].freed_count] | add) |
			"total \(figures)")' "$directory/report" | sort >"$directory/reported"
	if ! diff -u "$directory/expected" "$directory/reported" >"$directory/difference"; then
		echo "generate-recording $*: the report differs from the generator's account"
		head -n 20 "$directory/difference"
		failed=1
	fi
	if ! jq -e '.completeness.out_of_order_events == 0' "$directory/report" >/dev/null; then
		echo "generate-recording $*: events behind younger ones"
		failed=1
	fi
	if ! jq -e 'all(.processes[]; .checked and .mismatch_bytes == 0) and .completeness.damage == null' "$directory/report" \
		>/dev/null; then
		echo "generate-recording $*: the check against the final map fails"
		failed=1
	fi
}
check --events 30000 --live 700 --stacks 90 --seed 1
check --events 10000 --live 50 --stacks 1000 --depth 30 --threads 9 --bare-releases --seed 2
check --events 10000 --live 300 --stacks 60 --dumps 512 --seed 3
check --events 10000 --live 10 --stacks 1 --depth 2 --threads 1 --no-rounds --seed 4
check --events 40000 --live 10000 --stacks 3000 --seed 8
"$BUILD/test/generate-recording" --events 30000 --live 500 --stacks 40 --clock-jump 13000 --seed 5 "$directory/recording" >/dev/null
if ! "$MMTRACE" report "$directory/recording" | grep -q ' out of order: the clock jumped, or records came late'; then
	echo "the report does not mention the jump of the clock"
	failed=1
fi
if "$MMTRACE" report --to 1h "$directory/recording" >/dev/null 2>"$directory/messages" ||
	! grep -q ': --from and --to cannot be used: the recording.s clock went back, ' "$directory/messages"; then
	echo "--to of a recording whose clock went back: $(cat "$directory/messages")"
	failed=1
fi
# Lost events may have belonged to any process: agreement with the final map does not prove that nothing is missing.
check --events 10000 --live 100 --stacks 40 --seed 6
"$MMTRACE" report --check "$directory/recording" >/dev/null
check --events 10000 --live 100 --stacks 40 --seed 6 --lose 3
status=0
"$MMTRACE" report --check "$directory/recording" >/dev/null 2>"$directory/messages" || status=$?
if [ "$status" != 1 ] || ! grep -q ': --check: 3 events were lost: ' "$directory/messages"; then
	echo "--check of a recording that lost events: status $status, $(cat "$directory/messages")"
	failed=1
fi
exit "$failed"
