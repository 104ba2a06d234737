#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Option table, --help and manual page of each command name the same options; command table and help name the same commands.
set -u
cd "${SOURCE:?}" || exit 1
: "${MMTRACE:?}"

failed=0

same()
{
	local difference

	difference=$(diff <(echo "$2") <(echo "$3")) && return
	echo "$1:" >&2
	echo "$difference" >&2
	failed=1
}

# "--name -l" for each option; "-" for no letter.
listed()
{
	"$MMTRACE" "$1" --list-options | cut -d' ' -f1,2 | sort
}

helped()
{
	"$MMTRACE" "$1" --help | sed -nE \
		-e 's/^  (-.), (--[a-z-]+).*/\2 \1/p' \
		-e 's/^      (--[a-z-]+).*/\1 -/p' | sort
}

# From ".It Fl p , Fl Fl pid Ar ..." and ".It Fl Fl json".
documented()
{
	sed -nE \
		-e 's/^\.It Fl ([A-Za-z]) , Fl Fl ([a-z-]+).*/--\2 -\1/p' \
		-e 's/^\.It Fl Fl ([a-z-]+).*/--\1 -/p' "man/mmtrace-$1.1" | sort
}

# They must also agree on whether an option takes a value.
with_value_listed()
{
	"$MMTRACE" "$1" --list-options | awk '$3 != "-" { print $1 }' | sort
}

with_value_documented()
{
	sed -nE 's/^\.It (Fl [A-Za-z] , )?Fl Fl ([a-z-]+) Ar .*/--\2/p' "man/mmtrace-$1.1" | sort
}

commands=$("$MMTRACE" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
[[ -n $commands ]] || { echo "no commands in --help" >&2; exit 1; }

for command in $commands; do
	list=$(listed "$command")
	[[ -n $list ]] || { echo "$command: no options listed" >&2; failed=1; }
	same "$command: --list-options and --help" "$list" "$(helped "$command")"
	[[ $command == help ]] && continue # in mmtrace.1
	same "$command: --list-options and mmtrace-$command.1" "$list" "$(documented "$command")"
	same "$command: values in --list-options and mmtrace-$command.1" "$(with_value_listed "$command")" \
		"$(with_value_documented "$command")"
done

same "help: --list-options and mmtrace.1" "--help -h" "$(listed help)"

# tested COMMAND LONG LETTER: whether a test uses the option: by its name, or by its letter after the command.
tested()
{
	local command="(MMTRACE\"?|mmtrace(-for-all)?) $1"

	[[ $1 == record ]] && command="($command|(start|begin)_recording)"
	grep -rqE -- "(^|[^a-z-])$2([^a-z-]|$)" "${tests[@]}" && return
	[[ $3 != - ]] && grep -rqE -- "$command ([^|;&]* )?$3([ =0-9]|$)" "${tests[@]}"
}

tests=(test/live test/golden/TESTLIST test/golden/*.sh test/unit)
for command in $commands; do
	while read -r name letter; do
		[[ $name == --help ]] || tested "$command" "$name" "$letter" && continue
		echo "$command: no test names $name" >&2
		failed=1
	done < <(listed "$command")
done

same "commands of --help and files of cmd/" "$(sort <<<"$commands")" \
	"$(grep -oE '\bcmd_[a-z]+' cmd/cmd.h | sed 's/^cmd_//' | sort)"
same "commands of --help and of mmtrace.1" "$(sort <<<"$commands")" \
	"$(sed -nE '/^\.Sh DESCRIPTION/,/^\.Ss/s/^\.It Cm ([a-z]+)$/\1/p' man/mmtrace.1 | sort)"

exit $failed
