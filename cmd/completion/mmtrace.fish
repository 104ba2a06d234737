# fish completion for mmtrace
# SPDX-License-Identifier: LGPL-2.1-or-later
# The commands and options come from the program itself: --help and --list-options.

function __mmtrace_command
    set -l words (commandline -opc)
    test "$words[2]" = "$argv[1]"
end

# The arguments of `complete` for the value of an option, one a line.
function __mmtrace_value
    # Words are in lower case; what is in brackets comes after them.
    set -l words (string split '|' $argv[1] | string replace -r '\[.*' '' | string match -r '^[a-z].*')
    switch $argv[1]
        case '*|*]'
            printf '%s\n' -x -a "(__fish_append , $words)"
        case '*|*'
            printf '%s\n' -x -a "$words"
        case 'PID*'
            printf '%s\n' -x -a '(__fish_complete_pids)'
        case 'FILE*'
            printf '%s\n' -r -F
        case 'PATH*'
            printf '%s\n' -x -a '(__fish_complete_directories)'
        case COMM
            printf '%s\n' -x -a '(cat /proc/*/comm 2>/dev/null | sort -u)'
        case '?*'
            printf '%s\n' -x
    end
end

complete -c mmtrace -f
complete -c mmtrace -n '__mmtrace_command ""' -s h -l help -d 'show the commands'
complete -c mmtrace -n '__mmtrace_command ""' -s V -l version -d 'show the version'
mmtrace --help 2>/dev/null | string match -rg '^  ([a-z]+)  +(.*)' | while read -l command
    read -l summary
    complete -c mmtrace -n '__mmtrace_command ""' -a $command -d $summary
    complete -c mmtrace -n '__mmtrace_command help' -a $command -d $summary
    mmtrace $command --list-options | while read -l name letter argument help
        set -l more
        test $letter = - || set more -s (string sub -s 2 -- $letter)
        test $argument = - || set more $more (__mmtrace_value $argument)
        complete -c mmtrace -n "__mmtrace_command $command" -l (string sub -s 3 -- $name) $more -d $help
    end
end
for command in report export diff dump pack
    complete -c mmtrace -n "__mmtrace_command $command" -F
end
complete -c mmtrace -n '__mmtrace_command record' -a '(__fish_complete_command)'
