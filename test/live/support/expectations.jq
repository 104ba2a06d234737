# SPDX-License-Identifier: LGPL-2.1-or-later
# Compares a report with the "expect" lines of a workload ($expectations, their text). Prints one line per difference.
# $attached: the whole report is known, not only the named stacks.

def expectation: ltrimstr("expect ") | split(" ") | map(split("=") | { key: .[0], value: .[1] }) | from_entries;
def functions: [.frames[] | select(.inlined | not) | .function // "?"];
def sum(field): map(field) | add // 0;
def truth: if . then 1 else 0 end;

def figures: {
	bytes: sum(.unfreed_bytes),
	count: sum(.unfreed_count),
	committed: sum(.committed_bytes),
	committed_before: sum(.committed_before_bytes // 0),
	reserved: sum(.reserved_bytes),
	resident: sum(.resident_bytes // 0),
	allocated: sum(.allocated_bytes),
	allocations: sum(.allocated_count),
	freed: sum(.freed_bytes),
	releases: sum(.freed_count),
	threads: ([.[].threads[].tid] | unique | length),
	pid: ([.[].pids[]] | unique | if length == 1 then .[0] else null end),
};

# Of all entries with one PID: the PID of an ended process may have been reused.
def process_figures: {
	unfreed: sum(.unfreed_bytes),
	living: (map(select(.ended | not)) | sum(.unfreed_bytes)),
	committed: sum(.committed_bytes),
	parent: (map(.parent_pid) | unique | if length == 1 then .[0] else null end),
	ended: (all(.ended) | truth),
	checked: (all(.checked and .mismatch_bytes == 0) | truth),
};

def report_figures: {
	total: .unfreed_bytes,
	ended: .ended_bytes,
	peak: .peak_bytes,
	allocated: .allocated_bytes,
	freed: .freed_bytes,
	committed: .committed_bytes,
	reserved: .reserved_bytes,
	committed_before: .committed_before_bytes,
};

def thread_figures: {
	allocated: sum(.allocated_bytes),
	allocations: sum(.allocated_count),
	itself: sum(.freed_by_itself_bytes),
	others: sum(.freed_by_others_bytes),
	unfreed: sum(.unfreed_bytes),
	count: sum(.unfreed_count),
	released: sum(.released_bytes),
};

def difference($title; $key; $expected; $got):
	if ($expected | tonumber) == $got then empty else "\($title): \($key): expected \($expected), got \($got)" end;

def differences($title; $figures): to_entries[] | . as $wanted | difference($title; .key; .value; $figures[$wanted.key]);

. as $report
| $expectations | split("\n")[] | select(startswith("expect ")) | expectation
| if .total then
	select($attached == "yes") | differences("report"; $report | report_figures)
  elif .thread then
	. as $expected
	| [$report.thread_totals[] | select(.thread.name == $expected.thread)]
	| thread_figures as $figures
	| $expected | del(.thread) | differences("thread \($expected.thread)"; $figures)
  elif .owner then
	. as $expected
	| [$report.releases[]
	   | select($report.thread_totals[.owner].thread.name == $expected.owner and
		    $report.thread_totals[.releaser].thread.name == $expected.releaser)]
	| { released: sum(.bytes) } as $figures
	| $expected | { released }
	| differences("\($expected.releaser) releases of \($expected.owner)"; $figures)
  elif .failed then
	. as $expected
	| (.stack | split("<")) as $stack
	| [$report.failures[] | select(functions[:$stack | length] == $stack and .call == $expected.failed)]
	| { error: (map(.error) | unique | if length == 1 then .[0] else null end), count: sum(.count),
	    asked: sum(.asked_bytes) } as $figures
	| $expected | del(.stack, .failed) | differences("failed \($expected.stack)"; $figures)
  elif .through then
	. as $expected
	| [$report.groups[] | select(functions | .[0] == $expected.call and index($expected.through))]
	| figures as $figures
	| $expected | del(.through, .call) | differences("\($expected.call) through \($expected.through)"; $figures)
  elif .process then
	. as $expected
	| [$report.processes[] | select(.pid == ($expected.process | tonumber))]
	| if length == 0 then "process \($expected.process): not in the report"
	  else
		process_figures as $figures
		| $expected | del(.process) | if $attached == "yes" then . else { parent } | del(..|nulls) end
		| differences("process \($expected.process)"; $figures)
	  end
  else
	. as $expected
	| (.stack | split("<")) as $stack
	| [$report.groups[] | select(functions[:$stack | length] == $stack)]
	| figures as $figures
	| if length == 0 and $expected.bytes != "0" then "\($expected.stack): no such stack"
	  else
		$expected | del(.stack) | if $attached == "yes" then . else del(.resident) end
		| differences($expected.stack; $figures)
	  end
  end
