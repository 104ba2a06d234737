#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A small file of a stranger takes no more than 10 s of processor time and 300 MB; low limits of the caller are enough, or
# are named.
set -u
directory=$(mktemp -d) || exit 1
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
seed=$SOURCE/test/fuzz/corpus/report/small-all
failed=0
# The sanitizers need memory of their own.
sanitized=$(sed -n 's/^MMTRACE_SANITIZE:BOOL=//p' "$BUILD/CMakeCache.txt")
[[ $sanitized == ON ]] && kilobytes=4000000 || kilobytes=300000
[[ $sanitized == ON ]] && children=3000 || children=15000
[[ $sanitized == ON ]] && many=3000 || many=500000

complain() {
	echo "$1" >&2
	failed=1
}

# Writes the files of which the report must be cheap, made of the seed's head and sections.
cat >make.py <<'PYTHON'
import struct, sys
seed = open(sys.argv[1], "rb").read()
start, size = struct.unpack_from("<QQ", seed, 40)
features = struct.unpack_from("<4Q", seed, 72)
bits = [i for i in range(256) if features[i // 64] >> i % 64 & 1]
table = {bit: struct.unpack_from("<QQ", seed, start + size + 16 * i) for i, bit in enumerate(bits)}
data = seed[start:start + size]

def write(name, records, sections):
    head = bytearray(seed[:start])
    struct.pack_into("<Q", head, 48, len(records))
    place, entries, content = start + len(records) + 16 * len(bits), b"", b""
    for bit in bits:
        offset, length = table[bit]
        if offset >= start:
            section = sections.get(bit, seed[offset:offset + length])
            offset, length = place + len(content), len(section)
            content += section
        entries += struct.pack("<QQ", offset, length)
    open(name, "wb").write(bytes(head) + records + entries + content)

def record(kind, body=b""):
    body += b"\0" * (-len(body) % 8)
    return struct.pack("<IHH", kind, 0, 8 + len(body)) + body

def frame(raw, zeros):
    """A zstd frame: raw bytes, then blocks of a repeated byte."""
    blocks = [(0, raw, len(raw))] if raw else []
    for done in range(0, zeros, 131072):
        blocks.append((1, b"\0", min(131072, zeros - done)))
    out = struct.pack("<IBI", 0xFD2FB528, 0xA0, len(raw) + zeros)
    for i, (kind, content, length) in enumerate(blocks):
        out += struct.pack("<I", (i == len(blocks) - 1) | kind << 1 | length << 3)[:3] + content
    return out

FINISHED_ROUND, COMPRESSED, FINISHED_INIT = 68, 81, 82
write("empty-records", data + record(FINISHED_INIT) * 100000, {})
write("empty-rounds", data + record(FINISHED_ROUND) * 100000, {})
write("empty-frames", data + record(COMPRESSED) * 100000, {})
# A record that the first frame does not end.
cut = frame(struct.pack("<IHH", FINISHED_INIT, 0, 65528), 60000)
write("endless-record", data + record(COMPRESSED, cut) + record(COMPRESSED) * 100000, {})
versions = {bit: seed[table[bit][0]:table[bit][0] + 4] for bit in bits if bit in (226, 227, 229, 231, 232)}
zeros = {bit: version + bytes(4) + frame(b"", (1 << 30) // len(versions) - 65536) for bit, version in versions.items()}
write("zero-sections", data, zeros)
for bit in versions:
    write("zero-%d" % bit, data, {bit: versions[bit] + bytes(4) + frame(b"", (1 << 30) - 65536)})
PYTHON
python3 make.py "$seed" || exit 1

# cost COMMAND...: its exit status, seconds of processor time, and peak memory in KB.
cost() {
	python3 -c 'import os, resource, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), int(usage.ru_utime + usage.ru_stime), usage.ru_maxrss)' "$@"
}

# Valid records, of processes that share or copy what they inherit, and of which there are more than a recorder writes.
for kind in copies wide-forks wide-ends sharers restarts chain; do
	"$BUILD/test/make-bombs" "$kind" "$children" "valid-$kind" || complain "make-bombs $kind: status $?"
done
"$BUILD/test/make-bombs" duplicates 40000 valid-duplicates || complain "make-bombs duplicates: status $?"
"$BUILD/test/make-bombs" repeats 400000 valid-repeats || complain "make-bombs repeats: status $?"
# The largest files of strangers, whose zeros at the end allow for more processes.
"$BUILD/test/make-bombs" copies $((many / 3)) valid-many-copies || complain "make-bombs copies: status $?"
"$BUILD/test/make-bombs" forks $((children * 4)) valid-forks || complain "make-bombs forks: status $?"
"$BUILD/test/make-bombs" failures $many valid-failures || complain "make-bombs failures: status $?"
"$BUILD/test/make-bombs" maps $((children * 7)) valid-maps || complain "make-bombs maps: status $?"
"$BUILD/test/make-bombs" maps $((many * 6 / 5)) valid-too-many-maps || complain "make-bombs maps: status $?"
"$BUILD/test/make-bombs" maps $((many * 3 / 5)) valid-live-maps || complain "make-bombs maps: status $?"
"$BUILD/test/make-bombs" threads $((many * 5 / 2)) valid-threads || complain "make-bombs threads: status $?"
"$BUILD/test/make-bombs" snapshots $((many / 250)) valid-snapshots || complain "make-bombs snapshots: status $?"
truncate -s 5000000 valid-forks valid-live-maps
files=(empty-* endless-record zero-* valid-*)
[ ${#files[@]} -ge 20 ] || complain "only ${#files[@]} files"
for file in "${files[@]}"; do
	read -r status seconds memory < <(cost "$MMTRACE" report "$file")
	[[ $status == [02] ]] || complain "$file: exit status $status"
	[ "$seconds" -lt 10 ] || complain "$file: $seconds s of processor time"
	[ "$memory" -le "$kilobytes" ] || complain "$file: $memory KB"
done

# diff has two reports, but not all that they were made of.
read -r status seconds memory < <(cost "$MMTRACE" diff valid-copies valid-copies)
[[ $status == 0 && $seconds -lt 10 && $memory -le $((kilobytes * 8 / 10)) ]] ||
	complain "diff: status $status, $seconds s of processor time, $memory KB"

# trace looks at each stack once, and not in each call that changes its memory.
"$BUILD/test/make-bombs" meetings 8000 meetings || complain "make-bombs meetings: status $?"
for option in --json --ignore=nothing; do
	read -r status seconds memory < <(cost "$MMTRACE" trace $option meetings)
	[[ $status == 0 && $seconds -lt 10 ]] || complain "trace $option: status $status, $seconds s of processor time"
done

for kind in copies wide-forks wide-ends; do
	"$MMTRACE" report "valid-$kind" | grep -q 'forked processes inherited are left out: too many' ||
		complain "valid-$kind: the report does not say what it left out"
done
[[ $sanitized == ON ]] || "$MMTRACE" report valid-maps | grep -q 'the stacks of [0-9,]* calls are left out: too many' ||
	complain "valid-maps: the report does not say what it left out"
[[ $sanitized == ON ]] || "$MMTRACE" report valid-too-many-maps 2>&1 | grep -q 'mappings: too many for a recording of this size' ||
	complain "valid-too-many-maps: no message names the limit"
"$MMTRACE" report valid-repeats | grep -q 'more compressed records than a file of this size can have' ||
	complain "valid-repeats: the report does not say what it left out"

# The debug information in the seed needs a larger stack than that.
for command in "report $seed" "report --html page $seed" "export -f pprof -o profile $seed" "diff $seed $seed" \
	"pack -q -o packed $seed" "dump $seed"; do
	[[ $sanitized != ON ]] || break
	# shellcheck disable=SC2086 # words
	(ulimit -s 128 && exec "$MMTRACE" $command >/dev/null) || complain "ulimit -s 128; mmtrace $command: status $?"
done

# What is needed differs with the libraries: search for a limit that is too low for the report, but not for its start.
if [[ $sanitized != ON ]]; then
	for ((limit = 60000; limit > 4000; limit -= 1000)); do
		message=$(ulimit -v $limit && "$MMTRACE" report "$seed" 2>&1 >/dev/null) || break
	done
	[[ $message == *"out of memory"*"ulimit -v"* ]] || complain "ulimit -v $limit: $message"
fi
exit $failed
