# SPDX-License-Identifier: LGPL-2.1-or-later
# zsh -f complete.zsh DIRECTORY LINE: prints the words that the completion function in DIRECTORY offers at the end of LINE,
# one per line. It runs as for a user: in an interactive zsh, on a terminal.
zmodload zsh/zpty || exit 2

setup='PS1= PS2= RPS1=; unsetopt beep; fpath=('${(q)1}' $fpath)
autoload -Uz compinit; compinit -u -d '${(q)1}'/compdump
compadd() {
	local -a offered
	if [[ "${(j: :)@}" != *-[OAD]\ * ]]; then
		builtin compadd -A offered "$@"
		print -rl -- $offered >>'${(q)1}'/offered
	fi
	builtin compadd "$@"
}
finish() { print -r -- "<completed>" }
complete-and-finish() { zle complete-word; finish }
zle -C complete-word complete-word _main_complete
zle -N complete-and-finish
bindkey "^I" complete-and-finish
print -r -- "<"ready">"'

: >$1/offered
print -r -- $setup >$1/setup
zpty shell "TERM=dumb zsh -f -i"
zpty -w shell "source ${(q)1}/setup"
zpty -r shell output '*<ready>*' || exit 2
zpty -n -w shell "$2"$'\t'
zpty -r shell output '*<completed>*' || exit 2
zpty -d shell
sort -u $1/offered
