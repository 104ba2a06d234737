#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: perf:linux-perf
# perf is the oracle for the file format: perf script reads the file without warnings and shows the same samples as mmtrace
# dump.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
command -v perf >/dev/null || skip "no perf is installed"

# Every sample as "TIME PID/TID EVENT RESULT"; stack dumps, task_newtask and page faults without a result.
samples_of_perf() {
	perl -ne '
		/^\s*(\d+\/\d+)\s+(\d+\.\d{9}):\s+(\S+?):\s+(.*)$/ or die "not understood: $_";
		my ($thread, $time, $event, $rest) = ($1, $2, $3, $4);
		my $result = $event =~ /^syscalls:sys_exit_\w+$/ ? unpack("q", pack("Q", hex $rest)) : "-";
		print "$time $thread $event $result\n";
	' <"$1"
}
samples_of_dump() {
	perl -ne '
		next unless /^(\d+\.\d{9}) (\d+\/\d+) \[\d+\] (call|stack-dump|new-task|fault) event=(\S+) (.*)$/;
		my ($time, $thread, $kind, $event, $rest) = ($1, $2, $3, $4, $5);
		my $result = "-";
		if ($kind eq "call") {
			$rest =~ /^\w+\(.*?\) = (0x[0-9a-f]+|-?\d+)/ or die "not understood: $_";
			$result = $1;
			$result = unpack("q", pack("Q", hex $result)) if $result =~ /^0x/;
		}
		print "$time $thread $event $result\n";
	' <"$1"
}

compare_with_perf() {
	perf script -i "$recording" >"$directory/script.txt" 2>"$directory/script.log" ||
		fail "perf script ended with status $?: $(cat "$directory/script.log")"
	"$MMTRACE" dump -i "$recording" >"$directory/dump.txt" || fail "dump ended with status $?"
	# On a busy machine, large dumps may be lost: then perf must count as many records of loss as there are.
	lost=$(grep -cE '^[0-9.]+ [^ ]+ [^ ]+ lost(-dumps)? ' "$directory/dump.txt")
	[ "$lost" = 0 ] || grep -q " and lost $lost chunks!\$" "$directory/script.log" ||
		fail "$lost losses, but not by perf script: $(cat "$directory/script.log"; grep -E '^[0-9.]+ [^ ]+ [^ ]+ lost' "$directory/dump.txt")"
	[ "$lost" = 0 ] || sed -i '/^Warning:$/d; /^Processed .* chunks!$/d; /^Check IO.CPU overload!$/d; /^$/d' "$directory/script.log"
	[ ! -s "$directory/script.log" ] || fail "perf script complains: $(cat "$directory/script.log")"
	perf report --stdio -i "$recording" >"$directory/report.txt" 2>"$directory/report.log" ||
		fail "perf report ended with status $?: $(cat "$directory/report.log")"
	grep -q "^# Samples: [1-9].*of event 'syscalls:sys_exit_" "$directory/report.txt" || fail "perf report shows nothing"
	perf script --ns -F trace:pid,tid,time,event,trace -F sw:pid,tid,time,event -i "$recording" >"$directory/script.txt" 2>"$directory/script.log"
	samples_of_perf "$directory/script.txt" | sort >"$directory/by-perf" || fail "perf script was not understood"
	samples_of_dump "$directory/dump.txt" | sort >"$directory/by-us" || fail "dump was not understood"
	diff "$directory/by-perf" "$directory/by-us" >"$directory/differences" ||
		fail "perf script and dump differ: $(wc -l <"$directory/by-perf") and $(wc -l <"$directory/by-us") samples: $(
			head -5 "$directory/differences")"
	[ "$(grep -c 'sys_exit_' "$directory/by-us")" -ge "$1" ] || fail "less than $1 samples"
	# In the dump, as in the file, timestamps never decrease.
	grep -v '^#' "$directory/dump.txt" | cut -d' ' -f1 | sort -c || fail "dump is out of order"
}

# From start to end, with threads; and attached, with many events, failing calls and every kind of call.
"$MMTRACE" record -q --raw -o "$recording" -- "$workloads/leak-thread" --exit >/dev/null || fail "record ended with status $?"
compare_with_perf 40

for workload in "noleak 20000" leak-remap leak-shm leak-brk reserve-commit leak-fork; do
	start_workload $workload
	# A burst of calls loses large dumps until they are switched off.
	call_graph=auto
	[[ $workload != noleak* ]] || call_graph=dwarf,8192
	start_recording --raw -m 64M --call-graph $call_graph -p "$pid"
	let_work
	stop_recording
	let_end
	compare_with_perf 5
done

# The other ways of recording stacks.
for call_graph in none fp dwarf,1024 dwarf,65280; do
	"$MMTRACE" record -q --raw -m 64M --call-graph $call_graph -o "$recording" -- "$workloads/leak-anon" --exit 100 4096 >/dev/null ||
		fail "record --call-graph $call_graph ended with status $?"
	compare_with_perf 100
done

# With small rings, dumps are lost.
"$MMTRACE" record -q --raw -m 8K --call-graph dwarf,65280 -o "$recording" -- "$workloads/leak-anon" --exit 300 4096 >/dev/null ||
	fail "record -m 8K ended with status $?"
compare_with_perf 5

# Uncompressed, for readers that cannot decompress; and one sample for each call. Packed, too.
for options in "--no-compress --raw" --no-compress "--lean --raw" --lean; do
	"$MMTRACE" record -q -m 64M $options -o "$recording" -- "$workloads/leak-anon" --exit 100 4096 >/dev/null ||
		fail "record $options ended with status $?"
	compare_with_perf 100
	perf report --header-only -i "$recording" >"$directory/header.txt" 2>&1
	[ "$(grep -c '^# compressed' "$directory/header.txt")" = "$([[ $options = --lean* ]]; echo $((1 - $?)))" ] ||
		fail "$options: perf sees $(grep '^# compressed' "$directory/header.txt")"
done
