# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by test/agreement and test/live/agreement.sh, after recording.bash and stacks.bash: the stacks of the same run as
# seen by gdb, mmtrace and perf script.

# attach_gdb: stops at every mmap of $pid and writes backtraces to $directory/gdb.calls; ends with the program.
attach_gdb() {
	rm -f "$directory/gdb.calls"
	SUPPORT=$support BACKTRACES=$directory/gdb.calls gdb -nx -q -batch -p "$pid" -x "$support/backtraces.py" \
		</dev/null >"$directory/gdb.log" 2>&1 3>&- &
	gdb=$!
	processes+=("$gdb")
	wait_until "gdb to attach" grep -q '^attached' "$directory/gdb.calls"
}

tracer_of() {
	awk '/^TracerPid:/ { print $2 }' "/proc/$1/status"
}

# Repeated: a thread that stops at the instruction it was about to execute is missed the first time.
leaves_tracer() {
	[ "$(tracer_of "$pid")" != 0 ] || return 0
	kill -TERM "$tracer"
	return 1
}

# attach_tracer: $pid was started by true-stacks, which single-steps it; from now on it writes the calls to a file.
attach_tracer() {
	tracer=$(tracer_of "$pid")
	[ "${tracer:-0}" != 0 ] || fail "no tracer"
	kill -USR1 "$tracer" || fail "the tracer has ended"
}

# name_calls: stops single-stepping $pid, symbolizes $directory/true.addresses and writes the result to
# $directory/gdb.calls.
name_calls() {
	wait_until "the tracer to leave" leaves_tracer
	SUPPORT=$support ADDRESSES=$directory/true.addresses BACKTRACES=$directory/gdb.calls gdb -nx -q -batch -p "$pid" \
		-x "$support/name-calls.py" </dev/null >"$directory/gdb.log" 2>&1 3>&- || fail "gdb: $(cat "$directory/gdb.log")"
}

# attach_perf NAME OPTION...: records mmap with stacks into $directory/perf-NAME.data. perf is started through its
# control FIFO, because it does not report when it is ready.
attach_perf() {
	local name=$1 fifo=$directory/perf-$1 answer word
	shift
	rm -f "$fifo.control" "$fifo.answer"
	mkfifo "$fifo.control" "$fifo.answer"
	exec {answer}<>"$fifo.answer"
	perf record -q -e syscalls:sys_exit_mmap -p "$pid" -o "$fifo.data" -D -1 --control="fifo:$fifo.control,$fifo.answer" "$@" \
		</dev/null >"$fifo.log" 2>&1 3>&- {answer}>&- &
	perf_recorders+=($!)
	processes+=($!)
	timeout 120 bash -c 'echo enable >"$1"' - "$fifo.control" || fail "perf is not there: $(cat "$fifo.log")"
	read -r -t 120 word <&"$answer" || fail "perf does not begin: $(cat "$fifo.log")"
	exec {answer}>&-
}

# calls_of_perf NAME: thread, result, a dash and the frames of every call, one line each.
calls_of_perf() {
	perf script -i "$directory/perf-$1.data" -F tid,event,trace,ip,sym 2>"$directory/perf-script.log" |
		awk '
			/syscalls:sys_exit_mmap/ { printf "%s%s\t%s\t-", lines++ ? "\n" : "", $1, $NF; next }
			NF > 1 { $1 = ""; printf "\t%s", substr($0, 2) }
			END { if (lines) print "" }'
}

# calls_of_mmtrace: the same, with the ending of the stack instead of the dash. A report whose window is the time of the
# call has one stack, that of the call.
calls_of_mmtrace() {
	local time thread result
	"$MMTRACE" dump -i "$recording" | sed -nE \
		's/^ *([0-9]+)\.([0-9]{9}) [0-9]+\/([0-9]+) \[.*\] call event=\S+ mmap\(.*\) = (0x[0-9a-f]+) .*/\1\2 \3 \4/p' |
		while read -r time thread result; do
			printf '%s\t%s' "$thread" "$result"
			"$MMTRACE" report --json --limit 0 -i "$recording" --from "@$time" --to "@$((time + 1))" |
				jq -j '.groups[] | select(.allocated_count == 1) | "\t" + .stack_end, (.frames[] | "\t" + (.function // "?"))'
			echo
		done
}

# need_agreement: sets $perf_kinds, how perf records.
need_agreement() {
	local command
	perf_kinds=()
	for command in gdb python3; do
		command -v $command >/dev/null || skip "no $command is installed"
	done
	gdb -nx -batch -ex 'python print(1)' 2>/dev/null | grep -q 1 || skip "gdb has no Python"
	# Where a CPU has SVE, perf asks for its vector length, which the kernel refuses in samples of tracepoints.
	[ "$(uname -m)" = aarch64 ] || {
		command -v perf >/dev/null || skip "no perf is installed"
		perf_kinds=(fp dwarf)
	}
	# More than the deepest of these stacks; perf shows none beyond this.
	stack_bytes=16384
}

# agreement_build PROGRAM: sets $agreement_command and $reference: "gdb" or, for programs whose library has no unwind tables,
# which gdb cannot unwind, "steps" (see true-stacks.c). Returns false and sets $missing if a compiler is not installed. Not
# for interrupted.c: under gdb its timer leaves it no time. CROSS=aarch64-linux-gnu builds with Debian's cross
# compilers for arm64; AGREEMENT_PROGRAMS is a directory of programs that were built before.
gcc=${CROSS:+$CROSS-}gcc gxx=${CROSS:+$CROSS-}g++
agreement_programs=(c c-static-pie c-static c-stripped c-musl c-musl-static c++ coroutine contexts libraries rust go)
agreement_build() {
	local c=("${stack_options[@]}" "$stack_sources/program.c" "$stage_source" -pthread) compiler=$gcc rust=() go=()
	reference=gdb
	case $1 in
	c-musl*) compiler=${CROSS:+$CROSS-}musl-gcc reference=steps ;;
	c++* | coroutine) compiler=$gxx ;;
	go) compiler=go ;;
	rust) compiler=rustc ;;
	esac
	agreement_command=("./$1" 1)
	[ "$1" != libraries ] || agreement_command=("./$1" "$directory/libnative.so" 1)
	if [ -n "${AGREEMENT_PROGRAMS-}" ]; then
		missing=$AGREEMENT_PROGRAMS/$1
		cp "$missing" . 2>/dev/null && { [ "$1" != libraries ] || cp "$AGREEMENT_PROGRAMS/libnative.so" .; }
		return
	fi
	missing=$compiler
	command -v "$compiler" >/dev/null || return
	if [ -n "${CROSS-}" ]; then
		missing="rustc for $CROSS"
		rust=(--target aarch64-unknown-linux-gnu -C "linker=$gcc") go=(GOARCH=arm64)
		[ "$1" != rust ] || [ -d "$(rustc --print target-libdir --target "${rust[1]}")" ] || return
	fi
	case $1 in
	c) build_program "$gcc" -o "$1" "${c[@]}" ;;
	c-static-pie) build_program "$gcc" -static-pie -o "$1" "${c[@]}" ;;
	c-static) build_program "$gcc" -static -o "$1" "${c[@]}" ;;
	c-stripped) build_program "$gcc" -s -o "$1" "${c[@]}" ;;
	c-musl) build_program musl-gcc -o "$1" "${c[@]}" ;;
	c-musl-static) build_program musl-gcc -static -o "$1" "${c[@]}" ;;
	c++) build_cxx "$1" exceptions.cc ;;
	# gdb treats a function split in two parts as everything between them: see backtraces.py.
	coroutine) build_cxx "$1" coroutine.cc -fno-reorder-blocks-and-partition ;;
	contexts) build_program "$gcc" -o "$1" "${stack_options[@]}" "$stack_sources/contexts.c" "$stage_source" ;;
	libraries)
		build_native_library
		build_program "$gcc" -o "$1" "${stack_options[@]}" "$stack_sources/$1.c" "$stage_source" -ldl
		;;
	rust) build_program rustc "${rust[@]}" -O -g -o "$1" "$stack_sources/program.rs" ;;
	go)
		build_program env GOCACHE="$directory/cache" GOFLAGS=-mod=mod GOPATH="$directory" "${go[@]}" go build -o "$1" "$stack_sources/program.go"
		;;
	*) fail "no such program: $1" ;;
	esac
}

build_cxx() {
	build_program "$gcc" -c "${stack_options[@]}" -o stage.o "$stage_source"
	build_program "$gxx" -std=c++20 "${stack_options[@]}" "${@:3}" -o "$1" "$stack_sources/$2" stage.o -pthread
}

# agreement_case: runs $agreement_command; sets $figures to "calls=N complete=N mmtrace=N mmtrace-part=N perf-fp=N ..." (see
# agreement.py).
agreement_case() {
	local perf_recorders=() tools=(mmtrace=mmtrace.calls) process kind gdb tracer command=("${agreement_command[@]}")
	[ $reference = gdb ] || command=("$BUILD/test/true-stacks" "$directory/true.addresses" "${command[@]}")
	start_command "${command[@]}"
	start_recording -q -m 64M -g "dwarf,$stack_bytes" -p "$pid"
	[ ${#perf_kinds[@]} = 0 ] || {
		attach_perf fp --call-graph fp
		attach_perf dwarf --call-graph "dwarf,$stack_bytes"
	}
	if [ $reference = gdb ]; then attach_gdb; else attach_tracer; fi
	let_work
	stop_recording
	for process in "${perf_recorders[@]}"; do
		kill -INT "$process" && wait "$process"
	done
	if [ $reference = gdb ]; then
		# All data has been written. gdb does not always survive the exit of a program with many threads, and the
		# program dies with it.
		echo >&3
		wait "$pid" "$gdb"
	else
		name_calls
		let_end
	fi
	calls_of_mmtrace >mmtrace.calls
	for kind in "${perf_kinds[@]}"; do
		calls_of_perf "$kind" >"perf-$kind.calls"
		tools+=("perf-$kind=perf-$kind.calls")
	done
	figures=$(python3 "$support/agreement.py" gdb.calls "${tools[@]}") ||
		fail "agreement.py ended with status $?"
}
