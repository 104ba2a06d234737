# SPDX-License-Identifier: LGPL-2.1-or-later
# Another machine: a root directory with only the tool and the given recordings.

has_other_machine() {
	unshare --mount true 2>/dev/null
}

# make_machine RECORDING...
make_machine() {
	local library
	mkdir -p machine/proc
	cp "$MMTRACE" machine/mmtrace
	cp "$@" machine/
	for library in $(ldd "$MMTRACE" | grep -o '/[^ ]*'); do
		mkdir -p "machine/$(dirname "$library")"
		cp -L "$library" "machine/$library"
	done
}

# on_other_machine ARGUMENT...: runs the tool there. Sanitizers need /proc.
on_other_machine() {
	unshare --mount bash -c 'mount -t proc proc machine/proc && exec chroot machine /mmtrace "$@"' bash "$@"
}
