# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by test/agreement and test/live/agreement.sh, after recording.bash and stacks.bash: the stacks of one and the same
# run, as gdb, mmtrace and perf script show them.

# attach_gdb: stops at every mmap of $pid and writes backtraces to $directory/gdb.calls; ends with the program.
attach_gdb() {
	rm -f "$directory/gdb.calls"
	BACKTRACES=$directory/gdb.calls gdb -nx -q -batch -p "$pid" -x "$support/backtraces.py" \
		</dev/null >"$directory/gdb.log" 2>&1 3>&- &
	gdb=$!
	processes+=("$gdb")
	wait_until "gdb to attach" grep -q '^attached' "$directory/gdb.calls"
}

# attach_perf NAME OPTION...: records mmap with stacks into $directory/perf-NAME.data.
attach_perf() {
	local name=$1
	shift
	perf record -q -e syscalls:sys_exit_mmap -p "$pid" -o "$directory/perf-$name.data" "$@" \
		</dev/null >"$directory/perf-$name.log" 2>&1 3>&- &
	perf_recorders+=($!)
	processes+=($!)
	# It says nothing once it is attached; its file begins before.
	wait_until "perf to attach" test -s "$directory/perf-$name.data"
	sleep 0.5
}

# calls_of_perf NAME: thread, result, a dash and frames of every call, one line each.
calls_of_perf() {
	perf script -i "$directory/perf-$1.data" -F tid,event,trace,ip,sym 2>"$directory/perf-script.log" |
		awk '
			/syscalls:sys_exit_mmap/ { printf "%s%s\t%s\t-", lines++ ? "\n" : "", $1, $NF; next }
			NF > 1 { $1 = ""; printf "\t%s", substr($0, 2) }
			END { if (lines) print "" }'
}

# calls_of_mmtrace: the same, with the ending of the stack for the dash. A report of nothing but the moment of the call has one stack, that of the call.
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

need_agreement() {
	local command
	for command in gdb perf python3; do
		command -v $command >/dev/null || skip "no $command is installed"
	done
	gdb -nx -batch -ex 'python print(1)' 2>/dev/null | grep -q 1 || skip "gdb has no Python"
	# More than the deepest of these stacks; perf shows none beyond it.
	stack_bytes=16384
}

# agreement_build PROGRAM: sets $agreement_command; fails with $missing when a compiler is not installed.
# Not interrupted.c: under gdb its timer leaves it no time.
agreement_programs=(c c-static-pie c-static c-stripped c-musl c-musl-static c++ coroutine contexts libraries rust go)
agreement_build() {
	local c=("${stack_options[@]}" "$stack_sources/program.c" "$stage_source" -pthread) compiler=gcc
	case $1 in
	c-musl*) compiler=musl-gcc ;;
	c++* | coroutine) compiler=g++ ;;
	go) compiler=go ;;
	rust) compiler=rustc ;;
	esac
	missing=$compiler
	command -v $compiler >/dev/null || return
	agreement_command=("./$1" 1)
	case $1 in
	c) build_program gcc -o "$1" "${c[@]}" ;;
	c-static-pie) build_program gcc -static-pie -o "$1" "${c[@]}" ;;
	c-static) build_program gcc -static -o "$1" "${c[@]}" ;;
	c-stripped) build_program gcc -s -o "$1" "${c[@]}" ;;
	c-musl) build_program musl-gcc -o "$1" "${c[@]}" ;;
	c-musl-static) build_program musl-gcc -static -o "$1" "${c[@]}" ;;
	c++) build_cxx "$1" exceptions.cc ;;
	# A function in two parts is all that lies between them to gdb: see backtraces.py.
	coroutine) build_cxx "$1" coroutine.cc -fno-reorder-blocks-and-partition ;;
	contexts) build_program gcc -o "$1" "${stack_options[@]}" "$stack_sources/contexts.c" "$stage_source" ;;
	libraries)
		build_native_library
		build_program gcc -o "$1" "${stack_options[@]}" "$stack_sources/$1.c" "$stage_source" -ldl
		agreement_command=("./$1" "$directory/libnative.so" 1)
		;;
	rust) build_program rustc -O -g -o "$1" "$stack_sources/program.rs" ;;
	go)
		build_program env GOCACHE="$directory/cache" GOFLAGS=-mod=mod GOPATH="$directory" go build -o "$1" "$stack_sources/program.go"
		;;
	*) fail "no such program: $1" ;;
	esac
}

build_cxx() {
	build_program gcc -c "${stack_options[@]}" -o stage.o "$stage_source"
	build_program g++ -std=c++20 "${stack_options[@]}" "${@:3}" -o "$1" "$stack_sources/$2" stage.o -pthread
}

# agreement_case: runs $agreement_command; $figures becomes "calls=N gdb-whole=N mmtrace=N mmtrace-wrong=N perf-fp=N ...", see
# agreement.py.
agreement_case() {
	local perf_recorders=() process gdb
	start_command "${agreement_command[@]}"
	start_recording -q -m 64M -g "dwarf,$stack_bytes" -p "$pid"
	attach_perf fp --call-graph fp
	attach_perf dwarf --call-graph "dwarf,$stack_bytes"
	attach_gdb
	let_work
	stop_recording
	for process in "${perf_recorders[@]}"; do
		kill -INT "$process" && wait "$process"
	done
	let_end
	wait "$gdb"
	calls_of_mmtrace >mmtrace.calls
	calls_of_perf fp >perf-fp.calls
	calls_of_perf dwarf >perf-dwarf.calls
	figures=$(python3 "$support/agreement.py" gdb.calls mmtrace=mmtrace.calls perf-fp=perf-fp.calls perf-dwarf=perf-dwarf.calls) ||
		fail "agreement.py ended with status $?"
}
