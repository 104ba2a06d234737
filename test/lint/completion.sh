#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: zsh:zsh fish:fish
# The completion scripts in cmd/completion/ work in their shells, if these are installed.
set -u
cd "${SOURCE:?}" || exit 1
: "${MMTRACE:?}"

failed=0
directory=$(mktemp -d) || exit 1
trap 'kill "${sleepers[@]}" 2>/dev/null; rm -rf "$directory"' EXIT
sleepers=()
unset FPATH XDG_CONFIG_HOME XDG_DATA_HOME
export HOME=$directory PATH=${MMTRACE%/*}:$PATH
cp cmd/completion/_mmtrace "$directory"

complain()
{
	echo "$1" >&2
	failed=1
}

# The words that each shell offers at the end of a command line, one per line.
offered_bash()
{
	bash --norc -c '
		source cmd/completion/mmtrace.bash || exit 2
		read -ra COMP_WORDS <<<"${1//=/ = }"
		[[ $1 != *" " ]] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_mmtrace
		((${#COMPREPLY[@]} == 0)) || printf "%s\n" "${COMPREPLY[@]}"
	' - "$1"
}

offered_zsh()
{
	zsh -f test/lint/complete.zsh "$directory" "$1" | sed '/^$/d'
}

offered_fish()
{
	fish --no-config -c "source cmd/completion/mmtrace.fish; complete -C '$1'" | cut -f1
}

# offers LINE WORD...: exactly these; of lists and paths only the last part counts, because shells differ in whether they
# show the part before it.
offers()
{
	local line=$1 offered expected
	shift
	offered=$("offered_$shell" "$line" | sed 's/^--[a-z]*=//; s/.*[,/]//' | sort)
	expected=$(printf '%s\n' "$@" | sort)
	[[ $offered == "$expected" ]] || complain "$shell offers for '$line':
$(diff <(echo "$expected") <(echo "$offered"))"
}

mapfile -t commands < <("$MMTRACE" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
((${#commands[@]} > 0)) || complain "no commands in --help"
echo >"$directory/some.data"
mkdir "$directory/subdirectory"
for name in completion-prog '$(cd;>bad)'; do
	cp "$(type -P sleep)" "$directory/$name"
	"$directory/$name" 60 &
	sleepers+=($!)
	for ((i = 0; i < 600; i++)); do
		[[ $(cat /proc/$!/comm) == "$name" ]] && break
		sleep 0.1
	done
done
for shell in bash zsh fish; do
	command -v $shell >/dev/null || { echo "$shell is not installed"; continue; }
	"$shell" -n "cmd/completion/$(case $shell in zsh) echo _mmtrace ;; *) echo mmtrace.$shell ;; esac)" ||
		complain "$shell cannot read its script"
	offers 'mmtrace rec' record
	offers 'mmtrace help ' "${commands[@]}"
	for command in "${commands[@]}"; do
		mapfile -t options < <("$MMTRACE" "$command" --list-options | cut -d' ' -f1)
		offers "mmtrace $command --" "${options[@]}"
	done
	offers 'mmtrace check ' ''
	offers 'mmtrace record -g d' dwarf
	offers 'mmtrace record -g dwarf,' ''
	offers 'mmtrace report --by class,f' file function
	offers 'mmtrace report --sort=a' age allocated
	offers 'mmtrace report --class h' heap hugetlb
	offers 'mmtrace report --class anon,s' shm
	offers 'mmtrace report --from ' ''
	offers "mmtrace report $directory/so" some.data
	offers "mmtrace record -o $directory/so" some.data
	"offered_$shell" "mmtrace record --pid $$" | grep -qx $$ || complain "$shell does not offer process $$"
	"offered_$shell" "mmtrace record --comm completio" | grep -qx completion-prog || complain "$shell does not offer the name of a process"
	[[ ! -e $HOME/bad ]] || complain "$shell executes the name of a process"
	"offered_$shell" "mmtrace record prin" |
		grep -qx printf || complain "$shell offers no programs to record"
done

exit $failed
