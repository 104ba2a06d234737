# bash completion for mmtrace                              -*- shell-script -*-
# SPDX-License-Identifier: LGPL-2.1-or-later
# The commands and options come from the program itself: --help and --list-options.

# _mmtrace_offer COMPGEN-OPTION...: of a list with commas, completes the last word.
_mmtrace_offer()
{
	local last=$current

	[[ $value != *,*\] ]] || last=${current##*,}
	mapfile -t COMPREPLY < <(compgen -P "${current%"$last"}" "$@" -- "$last")
}

_mmtrace()
{
	local program=${COMP_WORDS[0]} command=${COMP_WORDS[1]} commands
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} value='' options=''
	local name letter argument paths

	COMPREPLY=()
	commands=$("$program" --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
	if ((COMP_CWORD == 1)); then
		_mmtrace_offer -W "$commands --help --version"
		return
	fi
	# The words of --option=value are --option, = and value.
	if [[ $previous == = ]]; then
		previous=${COMP_WORDS[COMP_CWORD - 2]}
	elif [[ $current == = ]]; then
		current=
	fi
	while read -r name letter argument _; do
		options+=" $name"
		[[ $previous != "$name" && $previous != "$letter" || $argument == - ]] || value=$argument
	done < <("$program" "$command" --list-options 2>/dev/null)
	case $value in
	*'|'*)
		# Words are in lower case; what is in brackets comes after them.
		_mmtrace_offer -W "$(tr '|' '\n' <<<"$value" | sed -n 's/\[.*//; /^[a-z]/p')"
		;;
	PID*)
		paths=(/proc/[0-9]*)
		_mmtrace_offer -W "${paths[*]##*/}"
		;;
	FILE*)
		compopt -o filenames 2>/dev/null
		_mmtrace_offer -f
		;;
	PATH*)
		compopt -o filenames 2>/dev/null
		_mmtrace_offer -d
		;;
	COMM)
		# compgen would execute what is in a name such as $(reboot).
		mapfile -t paths < <(cat /proc/[0-9]*/comm 2>/dev/null | grep -x "[[:alnum:]._+-]*" | sort -u)
		_mmtrace_offer -W "${paths[*]}"
		;;
	?*) ;;
	'')
		if [[ $current == -* ]]; then
			_mmtrace_offer -W "$options"
		elif [[ $command == help ]]; then
			_mmtrace_offer -W "$commands"
		elif [[ $command == record && $current != */* ]]; then
			_mmtrace_offer -c
		elif [[ $command != check && $command != setup ]]; then
			compopt -o filenames 2>/dev/null
			_mmtrace_offer -f
		fi
		;;
	esac
}

complete -F _mmtrace mmtrace
