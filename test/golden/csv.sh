#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Python's csv module reads report --csv: the figures are those of --json, in records of equal length.
source "$SOURCE/test/golden/replay.bash" || exit 2

cat >"$directory/compare.py" <<'END'
import csv, json, sys

rows, report = sys.argv[1:]
with open(rows, newline="", encoding="utf-8") as stream:
    text = stream.read()
assert text.endswith("\r\n") and "\n" not in text.replace("\r\n", ""), "lines end in CR LF"
table = list(csv.reader(text.splitlines(), strict=True))
report = json.load(open(report))
assert all(len(record) == len(table[0]) for record in table), "records of equal length"
records = [dict(zip(table[0], record)) for record in table[1:]]
expected = report["steps"] if "steps" in report else report["groups"]
assert len(records) == len(expected) > 0, (len(records), len(expected))

def same(figure, value):
    return figure == ("" if value is None else str(value))

for record, value in zip(records, expected):
    for key in set(record) & set(value):
        assert same(record[key], value[key]), (key, record[key], value[key])
if "steps" in report:
    for record, step in zip(records, expected):
        since = step["to_ns"] - report["start_ns"]
        assert record["seconds"] == "%d.%09d" % divmod(since, 10**9), record["seconds"]
        assert same(record["rss_bytes"], step["process_resident_bytes"])
        assert (record["time"] == "") == (report["start_realtime_ns"] is None)
    columns = [key for key in table[0] if key.startswith("#")]
    groups = {group["id"]: group for group in report["groups"]}
    shown = {int(column[1:].split()[0]): column for column in columns}
    assert len(shown) == len(columns) and shown.keys() >= {id for id in groups if groups[id]["unfreed_bytes"]}, columns
    for id, column in shown.items():
        assert [int(record[column]) for record in records] == groups[id]["step_bytes"], column
else:
    for record, group in zip(records, expected):
        assert {"memory_bytes", "resident_before_bytes"} <= record.keys()
        names = [(frame["function"] or "%s+%s" % (frame["module"], frame["module_offset"])).replace(";", ":")
                 for frame in reversed(group["frames"])]
        assert record["stack"].lstrip("'") == ";".join(names), record["stack"]
END

# compare RECORDING OPTION...
compare() {
	(cd "$recordings" && "$MMTRACE" report --csv "$@") >"$directory/rows.csv" &&
		(cd "$recordings" && "$MMTRACE" report --json "$@") >"$directory/report.json" &&
		python3 "$directory/compare.py" "$directory/rows.csv" "$directory/report.json" || {
		echo "FAILED: report --csv $*" >&2
		failed=1
	}
}

failed=0
put_program
for recording in leak more perf; do
	compare "$recording.data" --sort allocated
	compare "$recording.data" --sort unfreed --every 100us
done
compare more.data --every 100ms --limit 1 --from 50ms
compare more.data --by function
compare troubled.data --by class,thread
compare more.data --by process,file --sort freed

# Formats exclude each other.
for other in --json "--html x.html"; do
	(cd "$recordings" && "$MMTRACE" report --csv $other leak.data) >"$directory/refused" 2>&1
	[ $? = 2 ] && grep -q 'csv cannot be combined' "$directory/refused" || {
		echo "FAILED: --csv $other: $(cat "$directory/refused")" >&2
		failed=1
	}
done
exit $failed
