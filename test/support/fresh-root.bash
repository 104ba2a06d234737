# SPDX-License-Identifier: LGPL-2.1-or-later
# Minimal Debian installations for tests. A script sources this file with its own arguments and then calls with_fresh_roots;
# the rest of the script runs as root in a private mount namespace, and everything is removed when it ends.

# fresh_error MESSAGE...
fresh_error() {
	echo "${0##*/}: $*" >&2
	exit 1
}

# with_fresh_roots SCRIPT ARGUMENT...: runs the script again in a mount namespace, with $roots set to a directory for roots.
# The directory is removed from outside the namespace, where nothing is mounted in it.
with_fresh_roots() {
	local status log
	[ -z "${roots-}" ] || return 0
	[ "$(id -u)" = 0 ] || fresh_error "run it as root: it uses chroot and mounts"
	"$source_directory/test/setup" fresh || exit 1
	unshare --mount true 2>/dev/null ||
		fresh_error "no mount namespace can be set up here; in a chroot, / must be a mount point"
	roots=$(mktemp -d "${TMPDIR:-/var/tmp}/mmtrace-fresh.XXXXXX") || exit 1
	trap 'end_processes_below "$roots"; rm -rf --one-file-system "$roots"' EXIT
	trap 'exit 1' INT TERM HUP
	roots=$roots unshare --mount bash "$@"
	status=$?
	exit $status
}

# end_processes_below DIRECTORY: processes that still run in one of the roots.
end_processes_below() {
	local process
	for process in /proc/[0-9]*; do
		[[ $(readlink "$process/root") != "$1"/* ]] || kill -9 "${process##*/}"
	done
} 2>/dev/null

# make_base SUITE: the installation that the roots are copied from, in $roots/base. It uses this machine's mirror if this
# machine runs Debian.
make_base() {
	local mirror proxy log=$roots/debootstrap.log
	mirror=${MMTRACE_MIRROR-$(apt-get indextargets 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' \
		--format '$(REPO_URI)' 2>/dev/null | head -1)}
	# A file system in memory, if there is room, saves apt-get's many fsyncs.
	[ "$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)" -lt 12000000 ] ||
		mount -t tmpfs -o mode=755 tmpfs "$roots" || fresh_error "cannot mount a tmpfs"
	debootstrap --variant=minbase "$1" "$roots/base" ${mirror:+"$mirror"} >"$log" 2>&1 ||
		fresh_error "debootstrap cannot install Debian $1: $(grep -m 1 '^E:' "$log" || tail -1 "$log")"
	cp -L /etc/resolv.conf "$roots/base/etc/resolv.conf" || exit 1
	proxy=$(apt-config dump --format '%f "%v";%n' Acquire::http::Proxy Acquire::https::Proxy 2>/dev/null)
	[ -z "$proxy" ] || echo "$proxy" >"$roots/base/etc/apt/apt.conf.d/90proxy"
}

# make_root NAME: a copy of the base in $roots/NAME, ready for `enter`.
make_root() {
	local root=$roots/$1
	cp -a "$roots/base" "$root" && mount --bind "$root" "$root" && mount -t proc proc "$root/proc" &&
		mount --rbind /sys "$root/sys" && mount --rbind /dev "$root/dev" &&
		mount --make-rslave "$root/sys" && mount --make-rslave "$root/dev" ||
		fresh_error "cannot prepare $root"
}

# enter NAME COMMAND...: as root, with the environment of a new login. / is a mount point there, as on a real machine.
enter() {
	local root=$roots/$1
	shift
	unshare --mount bash -c 'cd "$0" && mount --rbind . . && exec chroot . /usr/bin/env -i "$@"' "$root" \
		HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb "$@" </dev/null
}

# clone_tree NAME DIRECTORY: a clone of this tree's last commit.
clone_tree() {
	git -c safe.directory='*' -C "$source_directory" rev-parse --git-dir >/dev/null 2>&1 ||
		fresh_error "$source_directory is no git clone"
	git -c safe.directory='*' clone --quiet --no-hardlinks "$source_directory" "$roots/$1/$2" || fresh_error "git clone failed"
}
