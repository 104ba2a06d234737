# SPDX-License-Identifier: LGPL-2.1-or-later
# Compares a report with the "expect" lines of a workload ($expectations, their text). Prints one line per difference.
# $attached: the whole report is known, not only the stacks named.

def expectation: ltrimstr("expect ") | split(" ") | map(split("=") | { key: .[0], value: .[1] }) | from_entries;
def functions: [.frames[] | select(.inlined | not) | .function // "?"];
def sum(field): map(field) | add // 0;

def figures: {
	bytes: sum(.unfreed_bytes),
	count: sum(.unfreed_count),
	committed: sum(.committed_bytes),
	reserved: sum(.reserved_bytes),
	resident: sum(.resident_bytes // 0),
	allocated: sum(.allocated_bytes),
	allocations: sum(.allocated_count),
	freed: sum(.freed_bytes),
	releases: sum(.freed_count),
	threads: ([.[].threads[].tid] | unique | length),
};

def difference($title; $key; $expected; $got):
	if ($expected | tonumber) == $got then empty else "\($title): \($key): expected \($expected), got \($got)" end;

. as $report
| $expectations | split("\n")[] | select(startswith("expect ")) | expectation
| if .total then
	select($attached == "yes") | difference("report"; "unfreed_bytes"; .total; $report.unfreed_bytes)
  else
	. as $expected
	| (.stack | split("<")) as $stack
	| [$report.groups[] | select(functions[:$stack | length] == $stack)]
	| figures as $figures
	| if length == 0 and $expected.bytes != "0" then "\($expected.stack): no such stack"
	  else
		$expected | to_entries[]
		| select(.key != "stack" and (.key != "resident" or $attached == "yes"))
		| . as $wanted
		| difference($expected.stack; $wanted.key; $wanted.value; $figures[$wanted.key])
	  end
  end
