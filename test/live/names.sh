#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Packages: libdebuginfod1 python3:python3
# Where symbols of a program may be: its own tables, several kinds of DWARF, separate files, a debuginfod server; a file
# that is not the recorded one gives no names.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
for tool in gcc objcopy strip xz python3; do
	command -v $tool >/dev/null || skip "$tool is not installed"
done
export DEBUGINFOD_CACHE_PATH=$directory/cache
source_file=$SOURCE/test/workload/names.c
program=$directory/program
line_of() { grep -n "/\* $1 \*/" "$source_file" | cut -d: -f1; }

build_id() { readelf -n "$program" | sed -n "s/.*Build ID: //p"; }

compile() {
	gcc -O2 -fomit-frame-pointer "$@" -o "$program" "$source_file" || fail "gcc $*"
}

run_recorded() {
	"$MMTRACE" record -q --raw -o "$recording" -- "$program" "$@" 2>record.log || fail "record: $(cat record.log)"
}

# frames [OPTION...]: the frames of the program's mapping from its caller on, as "FUNCTION[:LINE][*]" joined by "<"; *:
# inlined.
frames() {
	"$MMTRACE" report --json --limit 0 -i "$recording" "$@" 2>report.log | jq -r '
		[.groups[] | select(.unfreed_bytes == 409600) | .frames] | if length == 1 then .[0] else error("no stack") end
		| map(select(.module == "program" or (.module_path | endswith("/program (deleted)"))) | (.function // "?")
			+ (if .source_line then ":\(.source_line)" else "" end) + (if .inlined then "*" else "" end))
		| map(select(startswith("_start") | not)) | join("<")'
}

# expect_frames WHAT EXPECTED [OPTION...]
expect_frames() {
	local what=$1 expected=$2 found
	shift 2
	found=$(frames "$@") || fail "$what: no stack"
	[[ $found == $expected ]] || fail "$what: $found instead of $expected"
}


outer='void space::member<std::string>(unsigned long)*<crate::module::function*<mycrate::foo::bar*<main*'
with_lines="innermost:$(line_of innermost)\*<between:$(line_of between)\*<hidden:$(line_of hidden)<visible:$(line_of visible)<$outer"
with_symbols="hidden<visible<$outer"
without_names="[?]<[?]<[?]<[?]<[?]<[?]<[?]" # main and _start, too

# DWARF in the file.
for options in -gdwarf-4 -gdwarf-5 "-gdwarf-4 -gsplit-dwarf" "-gdwarf-5 -gsplit-dwarf" "-gdwarf-5 -gz" "-g -flto" \
	"-gdwarf-4 -fdebug-types-section" "-g -Wl,--build-id=none" "-g -fno-asynchronous-unwind-tables"; do
	compile $options
	run_recorded
	expect_frames "$options" "$with_lines"
done
expect_frames "raw names" "*<_ZN5space6memberISsEEvm:*<_ZN5crate6module8function17h0123456789abcdefE:*<_RNvNtCs1234_7mycrate3foo3bar:*<main:*" --no-demangle

# expect_poor_names TEXT: the report says once what is missing from the program's debug information.
expect_poor_names() {
	report_json
	expect_json "[.completeness.warnings[] | select(contains(\"debug information of $program\"))] | length == 1 and (.[0] | contains(\"$1\"))"
}

# Without the file that has the functions there are symbols, and lines of functions without inlined calls.
for options in "-gdwarf-4 -gsplit-dwarf" "-gdwarf-5 -gsplit-dwarf"; do
	compile $options
	rm ./*.dwo
	run_recorded
	expect_frames "$options, no .dwo" "hidden:*<visible:$(line_of visible)<$outer"
	dwo=$(readelf --debug-dump=info "$program" 2>dump.log | sed -n 's/.*DW_AT_\(GNU_\)\?dwo_name.*: //p' | sed 's/ *$//')
	id=$(readelf --debug-dump=info "$program" 2>dump.log | sed -n 's/.*\(DW_AT_GNU_dwo_id *: *\|DWO ID: *\)0x//p' | sed 's/ *$//')
	[ -n "$dwo" ] && [ -n "$id" ] || fail "readelf shows no name and id of the .dwo"
	[[ $dwo == /* ]] || dwo=$directory/$dwo
	expect_poor_names "that are missing ($dwo (id $(printf %016x "0x$id"))):"
	"$MMTRACE" pack -q -o packed.data -i "$recording" 2>pack.log || fail "pack: $(cat pack.log)"
	"$MMTRACE" report --json -i packed.data 2>report.log | jq -e --arg id "$(printf %016x "0x$id")" \
		'any(.completeness.warnings[]; contains($id))' >jq.log || fail "the packed recording does not name the missing file"
done

# Valid, but beyond a limit: inlining is nested too deeply.
{
	echo '#include <sys/mman.h>'
	echo 'static inline __attribute__((always_inline)) void f0(void) { mmap(0, 409600, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }'
	for ((i = 1; i <= 80; i++)); do
		echo "static inline __attribute__((always_inline)) void f$i(void) { f$((i - 1))(); __asm__ volatile(\"\"); }"
	done
	echo 'int main(void) { f80(); }'
} >nested.c
gcc -O2 -g -o "$program" nested.c || fail "gcc nested.c"
run_recorded
expect_poor_names "limit"

# Compressed with zstd, where objcopy can.
compile -g
if objcopy --compress-debug-sections=zstd "$program" 2>objcopy.log; then
	run_recorded
	expect_frames "zstd" "$with_lines"
	objcopy --only-keep-debug "$program" "$program.debug" && objcopy -S --add-gnu-debuglink="$program.debug" "$program" ||
		fail "objcopy could not separate the debug information"
	run_recorded
	expect_frames "zstd, by .gnu_debuglink" "$with_lines"
	rm "$program.debug"
fi

# Symbols only.
compile
run_recorded
expect_frames .symtab "$with_symbols"
compile -s -rdynamic
run_recorded
expect_frames .dynsym "[?]<visible<$outer"

compile -static
run_recorded in-signal
expect_frames "signal handler" "*hidden<in_signal<__restore_rt<*raise*<main<*"

# Unexported names, in .gnu_debugdata: an ELF file without code, compressed with xz.
compile -rdynamic
objcopy --only-keep-debug "$program" mini
objcopy -S --remove-section .gdb_index --remove-section .comment mini mini
nm "$program" | sed -n 's/.* [tT] \(hidden\)$/\1/p' >keep
objcopy --only-keep-debug --keep-symbols=keep "$program" mini
strip --strip-all "$program"
xz --force mini
objcopy --add-section .gnu_debugdata=mini.xz "$program"
run_recorded
expect_frames .gnu_debugdata "$with_symbols"

# Separate files.
make_separate() { # [OPTION...]: leaves $program without names and $directory/separate with them
	compile -g "$@"
	objcopy --only-keep-debug "$program" separate
	strip --strip-all "$program"
}
make_separate
run_recorded
expect_frames "no names" "$without_names"
objcopy --add-gnu-debuglink=separate "$program" # beside
run_recorded
expect_frames "debuglink beside" "$with_lines"
mkdir .debug
mv separate .debug
expect_frames "debuglink in .debug" "$with_lines"
printf x >>.debug/separate # the CRC is another one now: only the build-id can tell that it is still this one's
expect_frames "debuglink with another CRC, but the same build-id" "$with_lines"
compile -g -DUNUSED -O1
objcopy --only-keep-debug "$program" .debug/separate
rm -rf .debug
make_separate -Wl,--build-id=none
objcopy --add-gnu-debuglink=separate "$program"
run_recorded
expect_frames "debuglink by CRC" "$with_lines"
printf x >>separate
expect_frames "debuglink of another CRC" "$without_names"
rm separate

# By build ID in /usr/lib/debug, visible to the report only.
make_separate
id=$(build_id)
mkdir -p "debug/.build-id/${id:0:2}"
mv separate "debug/.build-id/${id:0:2}/${id:2}.debug"
run_recorded
expect_frames "no names" "$without_names"
if [ -d /usr/lib/debug ] && unshare -m true 2>/dev/null; then
	report_alone=$directory/report-alone
	cat >"$report_alone" <<-END
		#!/bin/bash
		exec unshare -m bash -c 'mount --bind "$directory/debug" /usr/lib/debug && exec "$MMTRACE" "\$@"' - "\$@"
	END
	chmod +x "$report_alone"
	MMTRACE=$report_alone expect_frames "build-id in /usr/lib/debug" "$with_lines"
else
	echo "no mount namespace: names by build-id in /usr/lib/debug are not tested"
fi

# From a debuginfod server on this machine, and only if one is configured.
mkdir -p "server/buildid/$id"
cp "debug/.build-id/${id:0:2}/${id:2}.debug" "server/buildid/$id/debuginfo"
python3 -u -m http.server --bind 127.0.0.1 --directory server 0 >server.log 2>&1 3>&- &
processes+=($!)
wait_until "the server" grep -q 'port [0-9]' server.log
port=$(sed -n 's/.* port \([0-9]*\).*/\1/p' server.log)
expect_frames "without server" "$without_names"
DEBUGINFOD_URLS=http://127.0.0.1:$port expect_frames "debuginfod" "$with_lines"

# Another build at this path: never used, and reported.
compile -g
run_recorded
expect_frames "before it was replaced" "$with_lines"
compile -g -DBLOCK_BYTES_UNUSED -O1 -Wl,--build-id=0x0123456789abcdef
expect_frames "another build" "[?]" # nor its unwind rows
report_json
expect_json '.completeness.warnings | any(test("/program is not the build that was recorded"))'
"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report ended with status $?"
grep -q 'program is not the build that was recorded' report.txt || fail "the text does not say that the program is another one"
grep -Eq 'program\+0x[0-9a-f]+|0x[0-9a-f]+ +program' report.txt || fail "frames without name show no place"
rm "$program"
expect_frames "a missing program" "[?]"
report_json
expect_json '.completeness.warnings | any(test("/program is missing"))'

# Without a build ID, the file's age decides.
compile -g -Wl,--build-id=none
run_recorded
expect_frames "no build-id" "$with_lines"
touch "$program"
expect_frames "younger, without build-id" "[?]"
report_json
expect_json '.completeness.warnings | any(test("/program was changed after"))'
