#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Every number written to a recording is fixed: an enum whose values are stored in a file gives each value a number, so that
# inserting one does not change the meaning of existing files.
set -u
cd "${SOURCE:?}" || exit 1

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# check DIRECTORY: reads lib/ and include/ there. A value is stored in a file if it is an argument of one of the writing
# functions: a constant, a variable or member declared as an enum in the same file or in a header of lib/trace/sections, or
# a local variable of any type that was set to one of these.
check()
{
	find "$1/lib" "$1/include" -name '*.[ch]' -print0 | sort -z | xargs -0 awk '
	function strip(text,    result, at)
	{
		while ((at = index(text, "/*"))) {
			result = result substr(text, 1, at - 1) " "
			text = substr(text, at + 2)
			at = index(text, "*/")
			text = at ? substr(text, at + 2) : ""
		}
		return result text
	}

	function find_enums(text,    name, body, items, count, i, item, numbered)
	{
		while (match(text, /enum[ \t\n]+[a-z_0-9]+[ \t\n]*[{][^}]*[}]/)) {
			body = substr(text, RSTART, RLENGTH)
			text = substr(text, RSTART + RLENGTH)
			match(body, /[a-z_0-9]+[ \t\n]*[{]/)
			name = substr(body, RSTART, RLENGTH)
			sub(/[ \t\n]*[{]/, "", name)
			body = substr(body, index(body, "{") + 1)
			sub(/}.*/, "", body)
			count = split(body, items, ",")
			numbered = 1
			for (i = 1; i <= count; i++) {
				item = items[i]
				gsub(/[ \t\n]/, "", item)
				if (item == "")
					continue
				if (item !~ /=/)
					numbered = 0
				sub(/=.*/, "", item)
				enum_of[item] = name
			}
			fixed[name] = numbered
			defined_in[name] = defined_in[name] " " current
		}
	}

	function find_variables(text, place,    words)
	{
		while (match(text, /enum[ \t\n]+[a-z_0-9]+[ \t\n]+[*]?[a-z_0-9]+[ \t\n]*[;,=)]/)) {
			split(substr(text, RSTART, RLENGTH), words, /[^a-z_0-9]+/)
			text = substr(text, RSTART + RLENGTH)
			variable[place, words[3]] = words[2]
		}
	}

	function complain(file, name, what)
	{
		if (!(name in fixed) || fixed[name])
			return
		printf "%s: %s is written to a file, but enum %s has no fixed numbers\n", file, what, name
		failed = 1
	}

	# The arguments of a call, from after its parenthesis.
	function arguments(text,    depth, i, c)
	{
		depth = 1
		for (i = 1; i <= length(text); i++) {
			c = substr(text, i, 1)
			depth += (c == "(") - (c == ")")
			if (!depth)
				break
		}
		return substr(text, 1, i - 1)
	}

	# The enum of a word; "" if it is not a value of one.
	function enum_behind(file, word)
	{
		if (word in enum_of)
			return enum_of[word]
		if ((file, word) in variable)
			return variable[file, word]
		if (("format", word) in variable)
			return variable["format", word]
		return word in carried ? carried[word] : ""
	}

	# The variables that a function sets to the value of an enum without fixed numbers. Values that are compared, called
	# or used as an index are not assigned.
	function find_carriers(file, text,    statements, count, i, name, value, words, total, j, found)
	{
		split("", carried)
		gsub(/->/, ".", text)
		count = split(text, statements, /[;{}]/)
		for (i = 1; i <= count; i++) {
			if (!match(statements[i], /[ \t\n][a-z_][a-z_0-9]*[ \t\n]*=[^=]/))
				continue
			name = substr(statements[i], RSTART + 1, RLENGTH - 2)
			sub(/[ \t\n]*=.*/, "", name)
			value = substr(statements[i], RSTART + RLENGTH - 1)
			gsub(/[(](u?int(8|16|32|64)_t|unsigned|int|size_t)[)]/, "", value)
			while (gsub(/[A-Za-z_][A-Za-z_0-9]*[(][^()]*[)]/, "", value))
				;
			gsub(/[[][^]]*[]]/, "", value)
			gsub(/[A-Za-z_0-9.]+[ \t\n]*([=!]=|[<>]=?)[ \t\n]*[A-Za-z_0-9.]+/, "", value)
			total = split(value, words, /[^A-Za-z_0-9]+/)
			for (j = 1; j <= total; j++) {
				found = enum_behind(file, words[j])
				if (found in fixed && !fixed[found])
					carried[name] = found
			}
		}
	}

	function check_functions(file, text,    functions, count, i)
	{
		count = split(text, functions, /\n}\n/)
		for (i = 1; i <= count; i++) {
			find_carriers(file, functions[i])
			check_calls(file, functions[i])
		}
	}

	function check_calls(file, text,    written, words, count, i)
	{
		while (match(text, /(buffer_put_u(8|16|32|64)|buffer_put|put_record_header|SNAPSHOT_ID|append_note|put_feature)[(]/)) {
			text = substr(text, RSTART + RLENGTH)
			written = arguments(text)
			calls++
			count = split(written, words, /[^A-Za-z_0-9]+/)
			for (i = 1; i <= count; i++) {
				complain(file, enum_behind(file, words[i]), words[i])
			}
		}
	}

	# Enums named in a comment of the format, such as u32 enum note_kind.
	function check_mentions(file, text,    name)
	{
		while (match(text, /(u8|u16|u32|u64|uint8_t|uint16_t|uint32_t|uint64_t)[^;{}]*[;]?[^;{}]*enum [a-z_0-9]+/)) {
			name = substr(text, RSTART, RLENGTH)
			text = substr(text, RSTART + RLENGTH)
			sub(/.*enum /, "", name)
			complain(file, name, "a member")
		}
	}

	{ content[FILENAME] = content[FILENAME] $0 "\n" }

	END {
		for (file in content) {
			current = file
			clean[file] = strip(content[file])
			find_enums(clean[file])
		}
		for (file in content) {
			find_variables(clean[file], file)
			if (file ~ /lib\/trace\/sections\/[^\/]*[.]h$/)
				find_variables(clean[file], "format")
		}
		for (member in variable) {
			split(member, words, SUBSEP)
			if (words[1] == "format")
				complain("lib/trace/sections", variable[member], "the member " words[2])
		}
		for (name in fixed) {
			if (defined_in[name] ~ /lib\/trace\/(sections|format)\/(format|sections|packed-stacks)[.]h/)
				complain("lib/trace", name, "a value of the format")
		}
		for (file in content) {
			if (file ~ /lib\/(trace|capture|analysis\/pack)\/.*[.]c$/)
				check_functions(file, clean[file])
			if (file ~ /lib\/trace\/sections\/[^\/]*[.]h$/)
				check_mentions(file, content[file])
		}
		if (!calls) {
			print "nothing that writes to a file was found"
			failed = 1
		}
		exit failed
	}' >&2
}

# The check finds its defects: a constant, a member, a member behind a plain integer.
mkdir -p "$scratch/lib/trace/sections" "$scratch/include"
expect()
{
	local expected=$1 found
	printf '%s\n' 'enum sound { SOUND_LOW = 0, SOUND_HIGH = 1 };' "$2" >"$scratch/lib/trace/sections/sample.h"
	printf '%s\n' "$3" >"$scratch/lib/trace/sections/sample.c"
	check "$scratch" 2>"$scratch/output"
	[[ $? == 0 ]] && found=0 || found=1
	[[ $found == "$expected" ]] || { echo "the check itself is wrong about: $2 $3" >&2; cat "$scratch/output" >&2; exit 1; }
}
expect 0 'struct sample { enum sound sound; };' 'buffer_put_u32(buffer, sample->sound);'
expect 1 'enum loose { LOOSE_A, LOOSE_B };' 'buffer_put_u32(buffer, LOOSE_A);'
expect 1 'enum loose { LOOSE_A = 0, LOOSE_B }; struct sample { enum loose value; };' 'buffer_put_u16(buffer, (uint16_t)sample->value);'
expect 1 'enum loose { LOOSE_A, LOOSE_B }; struct sample { uint32_t value; /* enum loose */ };' 'buffer_put_u32(buffer, sample->value);'
expect 1 '' 'enum loose { LOOSE_A, LOOSE_B }; void put(enum loose value) { buffer_put_u8(buffer, value); }'
expect 1 'enum loose { LOOSE_A, LOOSE_B };' 'void put(void) { uint32_t value = LOOSE_A; buffer_put_u32(buffer, value); }'
expect 1 'enum loose { LOOSE_A, LOOSE_B }; struct sample { enum loose kind; };' \
	'void put(void) { unsigned value; value = (unsigned)sample->kind; buffer_put_u32(buffer, value << 1); }'
expect 1 'enum loose { LOOSE_A, LOOSE_B };' 'void put(void) { int a = yes ? LOOSE_A : 0; uint8_t b = a; buffer_put_u8(buffer, b); }'
expect 1 'enum loose { LOOSE_A, LOOSE_B }; struct sample { enum loose kind; };' ''
expect 0 'enum loose { LOOSE_A, LOOSE_B };' \
	'struct sample { enum loose kind; }; void put(void) { uint8_t value = sample->kind == LOOSE_B; buffer_put_u8(buffer, value); }'
expect 0 'enum loose { LOOSE_A, LOOSE_B };' 'void put(void) { uint32_t value = sizes[LOOSE_B] + size_of(LOOSE_A); buffer_put_u32(buffer, value); }'

check . || exit 1
