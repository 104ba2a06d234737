#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick sanitize
# Packages: perf:linux-perf
# A packed recording contains no memory contents and, if requested, no code; it gives the same report and diff without the
# program, perf reads it, and packing it again changes nothing, also if it is truncated or damaged.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/other-machine.bash" || exit 2

need_perf
find_bytes=$BUILD/test/find-bytes
mkdir original packed

# report_of PLACE OPTION...: into PLACE.out, with its status.
report_of() {
	(cd "$1" && "$MMTRACE" report --no-pager "${@:2}") >"$1.out" 2>&1
	echo "status $?" >>"$1.out"
}

# expect_equal_reports NAME [FORMS]: the reports of original/NAME and packed/NAME are equal in every format. Two run at
# once.
expect_equal_reports() {
	local options forms=0 other
	while read -r options; do
		report_of original $options "$1" &
		other=$!
		report_of packed $options "$1"
		wait "$other"
		cmp -s original.out packed.out || {
			diff original.out packed.out | head -20 >&2
			fail "report $options $1: not the same when it is packed"
		}
		[ "$(wc -l <packed.out)" -gt 3 ] || fail "report $options $1 prints nothing: $(cat packed.out)"
		((++forms == ${2:-0})) && break
	done <<-'END'
		--limit 0
		--json --limit 0
		--json --limit 0 --no-demangle
		--limit 0 --by function
		--json --by module
		--json --by class
		--json --by file
		--json --by process
		--json --by thread
		--json --limit 0 --from 50ms --to -20ms
		--json --limit 0 --min-age 100ms
		--json --class anon --sort age
		--limit 0 --check
	END
}

# pack_recording NAME [FORMS]: pack the latest recording.
pack_recording() {
	mv "$recording" "original/$1"
	"$MMTRACE" pack -q -o "packed/$1" "original/$1" || fail "pack ended with status $?"
	[ "$(stat -c %a "packed/$1")" = 600 ] || fail "the packed recording can be read by others"
	expect_equal_reports "$@"
}

# Memory contents are in every place where a recording has them, and in none of the packed one.
start_workload secret
start_recording --raw -p "$pid"
let_work
let_recorder_catch_up
stop_recording
report_json
let_end
expect_workload_answer yes
[ "$("$find_bytes" "$recording" 'S3cr3t#!')" -gt 20 ] || fail "the test does not find what a recording holds"
pack_recording secret
[ "$("$find_bytes" packed/secret 'S3cr3t#!')" = 0 ] || fail "the packed recording contains memory contents"
"$MMTRACE" dump --no-pager packed/secret | grep -q 'event=syscalls:sys_exit_mmap' || fail "dump shows no calls"
"$MMTRACE" dump --no-pager packed/secret | grep -q '] resident' || fail "the packed recording has no resident size"

# JIT code with a perf map; the program has ended before the packed recording is read. The windows of the reports contain its
# calls: a report names the runtime of a process if it names JIT code of it.
cp "$workloads/jit-code" "$directory/program"
start_command "$directory/program"
start_recording --raw -p "$pid"
sleep 0.1
let_work
sleep 0.15
stop_recording
let_end
pack_recording generated
rm "$directory/program" "packed.out"
recording=packed/generated
report_json
expect_true_report
expect_workload_answer yes
expect_json '.completeness.warnings == []'
recording=original/generated
report_json
expect_json '.completeness.warnings | length > 0'
recording=$directory/mmtrace.data

# The packed recording keeps neither the text of perf maps nor jitdump code that no stack uses. A long recording also has
# them among its records. expect_no_copies WORKLOAD TEXT...: each text is in the recording and not in the packed one.
expect_no_copies() {
	local workload=$1 text
	shift
	start_workload "$workload"
	start_recording --raw -p "$pid"
	let_work
	wait_until "incremental metadata" has_pieces
	stop_recording
	for text; do
		[ "$("$find_bytes" "$recording" "$text")" -ge 2 ] || fail "the recording of $workload does not hold '$text' twice"
	done
	let_end
	pack_recording "$workload" 2
	for text; do
		[ "$("$find_bytes" "packed/$workload" "$text")" = 0 ] || fail "the packed $workload holds '$text'"
	done
}
has_pieces() {
	[ "$("$find_bytes" "$recording" "$piece")" -ge 1 ]
}
piece='16 DoublyInner'
expect_no_copies jit-code '16 AnonymousInner' '16 DoublyOuter'
piece=N0tCa11d
expect_no_copies jitdump DTiJ "$piece"

# The packed file contains no instruction of the program or of JIT code. expect_no_code NAME BYTES
expect_no_code() {
	[ "$("$find_bytes" "packed/$1" "$2")" = 0 ] || fail "pack leaves instructions in $1"
}
expect_no_code secret $'\x45\x31\xc9\x0f\x05\x5b\x5d\xc3'
expect_no_code jit-code $'\x55\x48\x89\xe5\x48\x83\xec\x10\x48\xb8'
expect_no_code jitdump $'\xff\xd0\x48\x83\xc4\x18\xc3'

# On another machine: a root directory that contains only the tool.
if has_other_machine; then
	make_machine packed/generated
	on_other_machine report --json --limit 0 generated >machine.json || fail "report on another machine"
	(cd packed && "$MMTRACE" report --json --limit 0 generated) | cmp - machine.json || fail "another report elsewhere"
fi

# Many processes and threads.
start_workload processes fork-busy
start_recording --raw -p "$pid"
let_work
stop_recording
let_end
pack_recording processes

# A diff is the same too.
for place in original packed; do
	(cd $place && "$MMTRACE" diff --json --limit 0 secret processes) >$place.diff || fail "diff of the $place ones"
done
cmp -s original.diff packed.diff ||
	fail "a diff is not the same when it is packed: $(diff original.diff packed.diff | head -20)"

# Packing again in place changes nothing and leaves no other file.
cp packed/processes again
"$MMTRACE" pack -q -i again || fail "packing twice ended with status $?"
cmp again packed/processes || fail "packing twice is not the same"
[ ! -e again.old ] || fail "packing in place leaves the original behind"

# perf reads it and sees each call.
if command -v perf >/dev/null; then
	for place in original packed; do
		perf script -i $place/secret -F comm,tid,time,event 2>perf.log | grep -v stack-dump |
			grep 'sys_exit' | sed 's/ *$//' | sort >$place.perf
	done
	[ -s packed.perf ] || fail "perf reads nothing: $(cat perf.log)"
	cmp original.perf packed.perf || fail "perf does not see the same calls"
	perf script -i packed/generated -F ip 2>/dev/null | grep -q '[0-9a-f]' || fail "perf sees no callchains"
fi

# A truncated recording is packed as far as it is readable, with a warning.
size=$(stat -c %s original/processes)
head -c $((size * 2 / 3)) original/processes >"$recording"
pack_recording cut 2
recording=packed/cut report_json
expect_json '.completeness.incomplete and .events.mmap > 0'

# A packed recording that is truncated keeps its names.
size=$(stat -c %s packed/processes)
head -c $((size * 2 / 3)) packed/processes >"$recording"
report_json
expect_json '.completeness.incomplete and ([.groups[].frames[].function] | length > 0 and all(. != null))'

# A damaged recording: the packed one causes the same warnings.
cp original/processes "$recording"
size=$(stat -c %s "$recording")
head -c 70000 /dev/zero | tr '\0' '\377' |
	dd of="$recording" bs=1000 seek=$((size / 2000)) conv=notrunc iflag=fullblock 2>/dev/null
pack_recording damaged 2
recording=packed/damaged report_json
expect_json '.completeness.damaged'

# The arguments of the command are left out, with and without "--" before it.
for separator in -- ''; do
	"$MMTRACE" record -q --raw -o command $separator env true --password=hunter2 || fail "record $separator env"
	[ "$("$find_bytes" command hunter2)" -gt 0 ] || fail "the command line is not recorded"
	"$MMTRACE" pack -q command || fail "pack"
	[ "$("$find_bytes" command hunter2)" = 0 ] || fail "the packed recording has the arguments of the command"
	[ "$("$MMTRACE" report --json command | jq -r .command_line)" = 'mmtrace record -q --raw -o command -- env' ] ||
		fail "another command line: $("$MMTRACE" report --json command | jq -r .command_line)"
done

# Recorded and packed in one step.
"$MMTRACE" record -o at-once -- "$workloads/secret" --exit >/dev/null 2>record.log ||
	fail "record ended with status $?: $(cat record.log)"
[ "$("$find_bytes" at-once 'S3cr3t#!')" = 0 ] || fail "record leaves memory contents"
[ ! -e at-once.old ] || fail "record leaves the original behind"
recording=at-once report_json
expect_json '[.groups[] | select(any(.frames[]; .function == "keep_secret"))] | map(.unfreed_count) | add == 10'

# Packing has a low priority; a signal during it leaves the complete recording, with a message.
preload endless-sync
"${preload[@]}" "$MMTRACE" record -o late -- env -u LD_PRELOAD "$workloads/secret" --exit >/dev/null 2>record.log &
packing=$!
processes+=("$packing")
wait_until "the end of packing" grep -q syncing record.log
# It keeps a policy that the user has chosen, as the test may run under one.
read -r -a own <"/proc/$$/stat"
read -r -a stat <"/proc/$(child_of "$packing")/stat"
expected="nice 10, policy $((own[40] ? own[40] : 3))" # SCHED_BATCH
[ "nice ${stat[18]}, policy ${stat[40]}" = "$expected" ] ||
	fail "packing runs with nice ${stat[18]}, policy ${stat[40]}, not $expected"
kill -TERM "$packing"
wait "$packing"
[ $? = 143 ] || fail "record did not end of the signal"
grep -q 'packing was interrupted: late is complete' record.log || fail "no message: $(cat record.log)"
[ "$("$find_bytes" late 'S3cr3t#!')" -gt 20 ] || fail "the recording was changed before it was packed"
[ -z "$(ls -d late.* 2>/dev/null)" ] || fail "left behind: $(ls -d late.*)"

# If packing crashes, recording ends as it would without it.
rm record.log
"${preload[@]}" "$MMTRACE" record -o crashed -- env -u LD_PRELOAD sh -c 'exit 7' >/dev/null 2>record.log &
packing=$!
processes+=("$packing")
wait_until "the end of packing" grep -q syncing record.log
kill -KILL "$(child_of "$packing")"
wait "$packing"
[ $? = 7 ] && grep -q 'packing was interrupted: crashed is complete' record.log && grep -q '^crashed: .* 0 lost$' record.log ||
	fail "not the end of a recording: $(cat record.log)"

# If packing fails, the message has the command that packs the file.
rm record.log
"${preload[@]}" "$MMTRACE" record -o 'my file' -- env -u LD_PRELOAD "$workloads/secret" --exit >/dev/null 2>record.log &
packing=$!
processes+=("$packing")
wait_until "the end of packing" grep -q syncing record.log
cp 'my file' other && mv other 'my file' && touch synced
wait "$packing"
[ $? = 0 ] && grep -qx "mmtrace record: my file was not packed and still contains stack memory; \`mmtrace pack 'my file'\` packs it" \
	record.log || fail "not the command that packs the file: $(cat record.log)"
rm synced

# A command that fails keeps its status. A raw recording is asked for.
"$MMTRACE" record -q -o failed -- sh -c 'exit 7'
[ $? = 7 ] || fail "not the status of the command"
"$MMTRACE" record -q --raw -o raw -- "$workloads/secret" --exit >/dev/null || fail "record --raw ended with status $?"
[ "$("$find_bytes" raw 'S3cr3t#!')" -gt 20 ] || fail "record --raw does not keep stack memory"

# What was written to a pipe is raw, and packed in its place.
"$MMTRACE" record -q -o - -- "$workloads/secret" --exit 2>record.log >piped || fail "record -o -: $(cat record.log)"
"$MMTRACE" pack -q piped || fail "pack of a recording from a pipe ended with status $?"
[ "$("$find_bytes" piped 'S3cr3t#!')" = 0 ] || fail "pack left stack memory of a recording from a pipe"
recording=piped report_json
expect_true_report

# What others wrote is parsed without the right to write anywhere else. LeakSanitizer does not work under strace.
if command -v strace >/dev/null; then
	cp raw confined
	strace -f -o strace.log -e trace=landlock_restrict_self,capset,openat \
		env -u DEBUGINFOD_URLS ASAN_OPTIONS=detect_leaks=0 "$MMTRACE" pack -q confined ||
		fail "pack ended with status $?"
	parsed=$(sed -n "1,/\"${workloads//\//\\/}\/secret\"/p" strace.log)
	grep -q 'capset(.*= 0$' <<<"$parsed" || fail "capabilities are kept: $(cat strace.log)"
	if ! grep -q 'landlock_restrict_self(.*= 0$' <<<"$parsed"; then
		[ -e /sys/kernel/security/landlock ] && fail "programs are read without Landlock: $(cat strace.log)"
		echo "this kernel has no Landlock"
	fi
	! sed '1,/capset(/d' strace.log | grep -E 'O_WRONLY|O_RDWR|O_CREAT' |
		grep -vE '"(/dev/null|/proc/self/oom_score_adj|confined\.new[^"]*)"|\([0-9]+, "\.", [A-Z_|]*O_TMPFILE' || fail "pack writes elsewhere"
fi

# If the process that reads names is killed, names could be lost for good: the raw recording stays.
if command -v strace >/dev/null; then
	cp raw killed
	strace -f -o strace.log -e trace=alarm -e inject=alarm:signal=KILL:when=1 \
		env -u DEBUGINFOD_URLS ASAN_OPTIONS=detect_leaks=0 "$MMTRACE" pack killed 2>pack.log
	[ $? = 2 ] && grep -q 'names from ELF files ended early' pack.log || fail "pack without names: $(cat pack.log)"
	cmp raw killed || fail "a raw recording was replaced by one without names"

	# A report says above the figures why names are missing.
	while read -r injected reason; do
		strace -f -o strace.log -e "trace=${injected%%:*}" -e "inject=$injected" \
			env -u DEBUGINFOD_URLS ASAN_OPTIONS=detect_leaks=0 "$MMTRACE" report --no-pager -i raw >report.txt 2>report.log ||
			fail "report with $injected ended with status $?: $(cat report.log)"
		tr -s ' \n' ' ' <report.txt >words
		grep -q "note: names and lines of [^ ]* are missing\(, and [0-9]* more\)\?: the process that reads them $reason.*unfreed in this recording" words ||
			fail "report with $injected: $(head -20 report.txt)"
	done <<-END
		alarm:signal=KILL:when=1 was killed, perhaps because memory is short
		clone:error=EAGAIN could not be started: Resource temporarily unavailable
	END
fi

# With less room than the raw recording has, packing does not begin.
if unshare --mount true 2>/dev/null; then
	export MMTRACE workloads kib=$(($(stat -c %s raw) / 1024))
	unshare --mount bash -c '
		mkdir small && mount -t tmpfs -o size=$((kib * 3 / 2))k tmpfs small || exit 99
		"$MMTRACE" record -o small/late -- "$workloads/secret" --exit >/dev/null 2>record.log
		echo $? >status
		ls -A small >left
		cp small/late late
	'
	[ $? != 99 ] || fail "no tmpfs could be mounted"
	[ "$(cat status)" = 0 ] && grep -q 'cannot write small/late: its file system has [0-9]* KiB free, and [0-9]* KiB may be needed' record.log &&
		grep -q '`mmtrace pack small/late` packs it' record.log || fail "status $(cat status): $(cat record.log)"
	[ "$(cat left)" = late ] || fail "left behind: $(cat left)"
	[ "$("$find_bytes" late 'S3cr3t#!')" -gt 20 ] || fail "the recording was changed although there is too little room"
	recording=late report_json
	expect_true_report
fi

# A file that cannot be packed is left unchanged.
cp "$SOURCE/test/data/perf.data" perf.data
# A failure leaves the recording and the directory unchanged: no room for the packed file.
mkdir full && cp original/secret full/mmtrace.data
limit=$(($(stat -c %s packed/secret) / 1024 - 1))
(
	cd full || exit 1
	ulimit -f $limit
	trap '' XFSZ
	"$MMTRACE" pack >../pack.log 2>&1
	[ $? = 2 ]
) || fail "pack ended well where files are limited to $limit KiB: $(cat pack.log)"
grep -q 'cannot write mmtrace.data: File too large' pack.log || fail "not the reason: $(cat pack.log)"
cmp full/mmtrace.data original/secret || fail "a recording that could not be packed was changed"
[ "$(ls -A full)" = mmtrace.data ] || fail "left behind: $(ls -A full)"

"$MMTRACE" pack perf.data 2>pack.log && fail "a recording of perf was packed"
grep -q 'only recordings of mmtrace' pack.log || fail "not the reason: $(cat pack.log)"
cmp perf.data "$SOURCE/test/data/perf.data" || fail "a recording that cannot be packed was changed"
