# SPDX-License-Identifier: LGPL-2.1-or-later
# Questions about stacks in a report.

# Functions of a stack, innermost first, without inlined ones; without a symbol: "?MODULE".
def functions: [.frames[] | select(.inlined | not) | .function // "?\(.module // "")"];

# A word of a pattern: the name itself; with * at its end: a prefix; /.../: a regular expression.
def is_called($word):
	if ($word | startswith("/")) then test($word[1:-1])
	elif ($word | endswith("*")) then startswith($word[:-1])
	else . == $word end;

# Whether the names start with the words; "..." stands for any number of names.
def follows($words):
	if ($words | length) == 0 then true
	elif $words[0] == "..." then . as $names | any(range(0; $names | length); . as $i | $names[$i:] | follows($words[1:]))
	elif length == 0 then false
	else (.[0] | is_called($words[0])) and (.[1:] | follows($words[1:])) end;

# The same with one word for consecutive frames of one of these modules, "@MODULE", or without a name, "?MODULE".
def functions_outside($modules):
	[.frames[] | select(.inlined | not)
	| if .module != null and IN(.module; $modules[]) then "@\(.module)"
	  else .function // "?\(.module // "")" end]
	| reduce .[] as $name ([]; if .[-1] == $name and ($name | test("^[?@]")) then . else . + [$name] end);

# Calls that mapped memory with exactly this stack, from the first frame to the last.
def calls_by($list; $modules):
	($list | split("<")) as $words
	| [.groups[] | functions_outside($modules) as $names
	   | select(($names | length) == ($words | length) and all(range(0; $words | length); . as $i | $names[$i] | is_called($words[$i])))
	   | .allocated_count] | add // 0;

# Calls that mapped memory with such a stack.
def calls_through($pattern):
	($pattern | split("<")) as $words
	| [.groups[] | select(functions | follows($words)) | .allocated_count] | add // 0;

# Every way in which a stack of the report is incomplete, one line each with the number of its calls. $entries: regular
# expression of "FUNCTION@MODULE" at which threads start; $ends: other permitted endings.
def broken($entries; $ends):
	.groups[]
	| select(.allocated_count > 0)
	| .frames[-1] as $last
	| "\($last.function // "?")@\($last.module // "?")" as $outermost
	| .stack_end as $way
	| (if $way != "entry" and all($ends[]; . != $way) then $way
	   elif $way == "entry" and ($outermost | test($entries) | not) then "no entry: \($outermost)"
	   elif any(.frames[]; .doubtful) then "a guess"
	   else empty end) as $reason
	| { calls: .allocated_count, reason: $reason, stack: functions | join("<") };
