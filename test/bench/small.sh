#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: perf:linux-perf strace:strace chromium:chromium npm:npm
# Every command of this directory runs once with small inputs and prints the same table as with large ones: figures in the
# right places with their units. Their values are not checked. The commands themselves skip tools that are not installed.
set -u
export LC_ALL=C.UTF-8 SMALL=1
unset DEBUGINFOD_URLS
: "${SOURCE:?}" "${BUILD:?}"
bench=$SOURCE/test/bench
directory=$(mktemp -d) || exit 1
trap 'rm -rf "$directory"' EXIT
failed=0

# expect COMMAND...: every line of its output has one of the forms on standard input, each after a word: "must" occur,
# "may", or the name of a program (must if that is installed). <n> is a number, <d> may have a decimal point, <s> may also
# have a sign.
expect() {
	local left=$directory/left status=0 when form
	"$@" >"$directory/output" 2>"$directory/errors" </dev/null || status=$?
	if [ $status != 0 ]; then
		echo "${1##*/}: status $status"
		tail -n 5 "$directory/errors"
		failed=1
	fi
	grep -v '^ *$' "$directory/output" >"$left"
	while read -r when form; do
		[ "$form" ] || continue
		if ! grep -qxE -- " *$form *" "$left"; then
			if [ "$when" = must ] || { [ "$when" != may ] && command -v "$when" >/dev/null; }; then
				echo "${1##*/}: no line of the form: $form"
				failed=1
			fi
		fi
		grep -vxE -- " *$form *" "$left" >"$directory/rest"
		mv "$directory/rest" "$left"
	done < <(sed -E 's/ +/ +/g; s/^([^ ]+) \+/\1 /; s/<n>/[0-9]+/g; s/<d>/[0-9]+(\\.[0-9]+)?/g; s/<s>/-?[0-9]+(\\.[0-9]+)?/g')
	if [ -s "$left" ]; then
		echo "${1##*/}: lines of no known form:"
		cat "$left"
		failed=1
	fi
}

expect "$BUILD/test/bench-space" 1000 10000 <<'END'
must mappings mmap munmap\+mmap mprotect mremap find snapshot line ns per call
must 1000 <n> <n> <n> <n> <n> <n>
must 10000 <n> <n> <n> <n> <n> <n>
END

# A running program can only be recorded if the kernel permits it.
recorded=must refused=may
"$BUILD/test/workload/perf-allowed" >"$directory/reason" || recorded=may refused=must
expect "$bench/touch-cost" <<END
must CPU time of the first touch of a page, ns
must (none|calls|default|all) <n> [+-]<d> %
perf perf <n> [+-]<d> %
END
expect "$bench/report-speed" <<END
must <n> events, <n> stacks, <n> live mappings: <n> bytes
must (read|decompress|order|decode|replay|group|unwind) <s> ns/event
must (symbolise|render) <s> ns/event
must elapsed, on two processors <d> ns/event: <n> events/s, <d> s for <n>
must peak memory: <d> MB
must packing: <d> s, to <n> bytes; its report: <d> s
must Ctrl-C in the middle of it: ended after <d> ms, status <s>
must two such recordings: reports <d> s and <d> s, their diff <d> s: <d> of the sum
must peak memory with <n> live mappings and <n> stacks of 30 frames:
must <d> million events <d> MB
must the same in /.*, with its symbols, inlined functions and lines:
must the first output of a report of 333 events, in the middle of five runs:
must mmtrace report <d> ms, at most <d> ms
perf perf report --stdio <d> ms, at most <d> ms
must <n> events, in JIT code, <n> frames deep, the same file for all:
must <n> events, in /.*, the same file for all:
must mmtrace report <d> s
perf perf (script|report --stdio) <d> s: <d> times as long
perf its text: <n> bytes
$recorded <n> events of a program as it ran, <n> frames deep, the same file for all:
$recorded --(every|to|from) <d> of its time <d> s: <d> times as long
$refused no recording of a program that is run: .*
END

expect "$bench/export-cost" <<END
must <n> events, <n> stacks, <n> live mappings: <n> bytes
must (report|html|folded|pprof|firefox|perfetto|rows) <d> s <d> of the report processors <d> s peak <d> MB <n> bytes
END

expect "$bench/symbol-cost" "$BUILD/mmtrace" <<'END'
must /.*: <n> bytes, 20 addresses
must mmtrace(-report)? <d> ms <d> times mmtrace (<n>|\?) MB <n> lines, <n> of no name
addr2line addr2line <d> ms <d> times mmtrace (<n>|\?) MB <n> lines, <n> of no name
eu-addr2line eu-addr2line <d> ms <d> times mmtrace (<n>|\?) MB <n> lines, <n> of no name
llvm-symbolizer llvm-symbolizer <d> ms <d> times mmtrace (<n>|\?) MB <n> lines, <n> of no name
perf perf-(script|report|report-functions) <d> ms <d> times mmtrace (<n>|\?) MB <n> lines, <n> of no name
may (eu-)?addr2line not installed
may (llvm-symbolizer|perf-[a-z-]+) not installed
END

expect "$bench/pss-cost" <<'END'
must ns/page ns/page s for 1 TiB s for 1 TiB
must rollup pagemap rollup pagemap
must (private|private, huge pages|of a parent and 4 children|shared memory of 5) <d> <d> <d> <d>
END

if (. "$SOURCE/test/html/browser.bash" && prepare_browser) >"$directory/reason-page"; then
	expect "$bench/page-speed" <<'END'
must page of 100 stacks: <n> bytes, made in <d> s
must first paint <n> ms \(of a page with one word <n> ms\), graph and table drawn after <n> ms
must painted again after a selection <n> ms, at most <n> ms
END
else
	echo "page-speed is left out: $(cat "$directory/reason-page")"
fi

if [ $recorded = may ] || [ "$(id -u)" != 0 ]; then
	echo "record-cost, residency-cost, attach-cost and unwind-cost are left out: $(cat "$directory/reason")"
	exit $failed
fi

if command -v perf >/dev/null && [ -x /usr/bin/python3 ]; then
	expect "$bench/unwind-cost" <<'END'
must (mmtrace|libunwind), [a-z,: ]+ <n> samples/s <n> steps/s
must perf script --call-graph dwarf <n> samples/s <n> steps/s
must <n> samples, <d> frames each; <n> whole, <n> known to the cache, <n> equal to libunwind's
must <n> samples, <d> frames each
must lib[^ ]+ <n> rows; <n> of <n> addresses differ from libdw
END
else
	echo "unwind-cost is left out: perf or python3 is not installed"
fi

if mkdir "$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/mmtrace-small-$$" 2>"$directory/reason-group"; then
	rmdir "$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/mmtrace-small-$$"
	expect "$bench/many-cpus" <<'END'
must CPUs untraced threads -g fp cgroup cpus perf -g perf -a us to create a thread, and with events of threads
must <n>( <n>){5,7} <d> <d>
must to attach
must threads --scope threads --scope cgroup( threads,<n>_CPUs)+
must <n> (<d>|-) ms <d> ms( <n> files <d> s)+
must --scope cgroup( <n> files <d> s)+
must rings of <n> CPUs: <d> [KMG]iB of rings
END
else
	echo "many-cpus is left out: $(cat "$directory/reason-group")"
fi

expect "$bench/many-rings" <<'END'
must rings --faults= events lost dumps recorder an event memory, and rings
must (3 CPUs|of this machine) (auto|none) [0-9,]+ [0-9,]+ [0-9,]+ <d> s <d> us <d> MiB <d> MiB
END

expect "$bench/top-cost" <<'END'
must calls/s recorder engine reports begin KiB end KiB calls lost
must (0|1000) <d> % <d> % <n> <n> <n> <n> <n>
END

expect "$bench/residency-cost" <<'END'
may only half of the available memory is used: <n> MiB
must pairs of mmap and munmap: the median, .*
must thread kept its processor, .*
must are resident is read as well as the maps.
must (16 MiB resident|64 MiB mapped, 16 MiB resident|1024 MiB mapped, 16 MiB resident|600 mappings of a page|16 MiB in huge pages):
must reading elapsed ms CPU ms longest ms calls
must (start|stop) <d> <d> <d> <n>
must the recorder with(out)? readings: <d> ms of processor time, <n> bytes
must pairs, in us median 99.9 % kept slept gave way
must (untraced|(recorded|snapshots)(, pages)?) <d> <d> <d> <d> <d>
must readings while it makes pairs: <n> with snapshots each 100ms, the longest call <d> ms
must processor time of a call of madvise, .*:
must ns/madvise added bytes/call ns/mmap\+munmap added
must untraced <n> 0 - <n> 0
must (--no-madvise|default) <n> <s> <n> <n> <s>
END

# With everything that attach-cost prints.
expect "$bench/record-cost" <<'END'
may (perf|strace|bpftrace) is not installed: left out
must <n> stacks ns/pair added of perf -g bytes/pair lost recorder's CPU
must (untraced|mmtrace|fp|dwarf,2048|lean|none) <n> <s> (<s>|-) <n> (<n> lost)? *(<d> % of one)?
perf perf-(g|minimal|dwarf) <n> <s> (<s>|-) <n>
strace strace <n> <s> (<s>|-) <n>
bpftrace bpftrace <n> <s> (<s>|-) <n>
must processor time of a pair, with small stack dumps alone .*
must (800 a second|full speed), (small stack|stack of 56,000 bytes) ns/pair added bytes/pair recorder
must (small|auto) <n> <s> <n> .*;
may [0-9,]+ large stack dumps.*
may the previous recording was kept as .*
must not recorded ns/pair added of perf -a -g
must (untraced|threads|group|cpus|cpus-fp) <n> <s> (<s>|-)
perf perf-a-g <n> <s> (<s>|-)
must a process of 60,000 mappings makes pairs, .*
must of 1,000 do not exceed, .*
must the longest in which others had its processor, .*
must mean 99.9 % kept slept gave way over 1 ms
must (untraced|recorded|snapshots) <n> <n> <n> <n> <n> <n>
must the same while another program keeps each processor busy:
must a thread for each processor at full speed for 1 s:
may mmtrace record: .*
must recorded <d> s, 1 process; duration over
must RSS .*
must recording: <d> [KMG]iB, [0-9,]+ events, [0-9,]+ lost
may [0-9,]+ page fault samples?; (up to )?[0-9,]+ page faults lost
must [0-9,]+ mmap, .*
must [0-9,]+ stack dumps; [0-9,]+ lost.*
may only stack dumps were lost: all figures are correct, but some stacks are truncated
must recorder: <d> m?s of processor time, <d> % of one; <d> [KMG]iB of memory and <d> [KMG]iB of rings; .*
must recorded for each thread
must make -j <n>, <n> processes:
must ms processes/s
must (untraced|mmtrace|mmtrace cpus) <n> <n> *([0-9,]+ lost)?
perf perf-g <n> <n>
must threads recorder attach ms whole ms descriptors
must <n> (mmtrace|--scope threads|--scope cpus) <d> <s> <n>
perf <n> perf -g - <s> <n>
must others are recorded by ns/pair
must (nobody|mmtrace( --[a-z]+)?( cpus)?( -g fp)?) <n>
perf perf( -a)? -g <n>
must the kernel's share of each part, in ns for a call or pair:
must event set ns added of perf -g
must [^0-9].* <s> <s> <s>
END
exit $failed
