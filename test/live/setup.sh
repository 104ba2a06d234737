#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick
# When packages cannot be installed, test/setup prints one line with the reason and the path of the log, and a
# half-installed package counts as missing. The test uses its own package database and archive.
source "$SOURCE/test/live/support/recording.bash" || exit 2

[ "$(id -u)" = 0 ] || skip "this test needs root: it mounts file systems"
command -v apt-get dpkg-deb >/dev/null || skip "this is not a Debian system"
[ -n "${in_namespaces-}" ] || {
	unshare --mount --net true 2>/dev/null || skip "mount and network namespaces cannot be set up here"
	in_namespaces=1 TMPDIR=$directory unshare --mount --net bash "$0"
	exit
}

root=$directory/root archive=$directory/archive
setup=$SOURCE/test/setup
export DPKG_ADMINDIR=$root/var/lib/dpkg APT_CONFIG=$directory/apt.conf TMPDIR=$directory/logs

# make_package NAME MIB: with a file of this size; POSTINST is its script.
make_package() {
	local tree=$directory/package
	rm -rf "$tree" && mkdir -p "$tree/DEBIAN" "$tree/usr/share/$1"
	printf '%s: %s\n' Package "$1" Version 1 Architecture all Installed-Size $((1024 * $2)) \
		Maintainer "Test <test@example.org>" Description test \
		>"$tree/DEBIAN/control"
	head -c "$2M" /dev/urandom >"$tree/usr/share/$1/file"
	[ -z "${POSTINST-}" ] || { printf '#!/bin/sh\n%s\n' "$POSTINST" >"$tree/DEBIAN/postinst" && chmod 755 "$tree/DEBIAN/postinst"; }
	dpkg-deb --root-owner-group -Znone --build "$tree" "$archive" >dpkg-deb.log || fail "dpkg-deb: $(cat dpkg-deb.log)"
}

# make_archive: lists the packages in it.
make_archive() {
	local file
	for file in "$archive"/*.deb; do
		dpkg-deb --field "$file"
		printf 'Filename: ./%s\nSize: %d\nSHA256: %s\n\n' "${file##*/}" "$(stat -c %s "$file")" "$(sha256sum <"$file" | cut -d' ' -f1)"
	done >"$archive/Packages"
}

# start_over [SOURCE]: nothing is installed, and the lists are empty.
start_over() {
	rm -rf "$root" "$TMPDIR"
	mkdir -p "$TMPDIR" "$root"/etc/apt/{apt.conf.d,preferences.d,sources.list.d,trusted.gpg.d} \
		"$root"/var/lib/dpkg/{info,updates,triggers} "$root"/var/{cache/apt/archives,lib/apt/lists,log/apt}/partial
	: >"$root/var/lib/dpkg/status"
	echo "${1:-deb [trusted=yes] copy:$archive ./}" >"$root/etc/apt/sources.list"
}

# run_setup STATUS ARGUMENT...: writes the messages to `out`.
run_setup() {
	local expected=$1 status
	shift
	"$setup" "$@" >out 2>&1
	status=$?
	[ $status = "$expected" ] || fail "test/setup $* ended with status $status instead of $expected: $(cat out)"
}

# expect_lines PATTERN...: it printed exactly these lines.
expect_lines() {
	local i=0 line
	mapfile -t lines <out
	[ ${#lines[@]} = $# ] || fail "$# lines expected: $(cat out)"
	for line; do
		[[ ${lines[i++]} == $line ]] || fail "line $i is not '$line': $(cat out)"
	done
}

# expect_log: the last line names the log, which contains the reason; each run has one log.
expect_log() {
	local log
	log=$(sed -nE '$s/.*; the log is (.*)$/\1/p' out)
	[ -s "$log" ] || fail "there is no log '$log': $(cat out)"
	rm "$log"
	expect_no_log
}
expect_no_log() {
	[ -z "$(ls "$TMPDIR")" ] || fail "logs were left: $(ls "$TMPDIR")"
}

# expect_status PACKAGE STATUS
expect_status() {
	local status
	status=$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)
	[ -n "$status" ] || status=not-installed
	[ "$status" = "$2" ] || fail "package $1 is $status instead of $2"
}

cat >"$APT_CONFIG" <<END
Dir "$root";
Dir::State::status "$root/var/lib/dpkg/status";
DPkg::Options { "--root=$root"; "--force-not-root"; };
APT::Sandbox::User "root";
END
mkdir "$archive" "$TMPDIR"
make_package debootstrap 1
make_package git 1
make_archive
installing="test/setup: installing debootstrap git"
announced="test/setup: apt-get downloads 2 packages, 3 MB, which take 2*097 kB disk space"

# Without errors: the package is installed, and neither an archive nor a log is kept. After that there is nothing to do.
start_over
run_setup 0 fresh
expect_lines "$installing" "$announced"
expect_status git installed
expect_status debootstrap installed
expect_no_log
[ -z "$(find "$root/var/cache" -name '*.deb')" ] || fail "archives were left: $(find "$root/var/cache" -name '*.deb')"
run_setup 0 fresh
expect_lines
expect_no_log

# Nor is there if a package is installed for a second architecture, too: dpkg-query prints it twice.
own=$(dpkg --print-architecture) other=arm64
[ "$own" != arm64 ] || other=amd64
printf '%s\n' "$own" "$other" >"$root/var/lib/dpkg/arch"
sed -n "s/^Architecture: .*/Architecture: $own\nMulti-Arch: same/; p" "$root/var/lib/dpkg/status" >status.own
sed "s/^Architecture: .*/Architecture: $other/" status.own >status.other
cat status.own status.other >"$root/var/lib/dpkg/status"
[ "$(dpkg-query -W -f '${Package}\n' git | wc -l)" = 2 ] || fail "git is not listed for two architectures"
run_setup 0 fresh
expect_lines
expect_no_log

# No network: this namespace has none.
start_over "deb [trusted=yes] http://archive.invalid/debian stable main"
run_setup 1 fresh
expect_lines "$installing" "test/setup: cannot install debootstrap git: apt-get update failed: E: *archive.invalid*; the log is *"
expect_log
expect_status git not-installed
# One of two archives cannot be reached, but the lists suffice: no error.
start_over
echo "deb [trusted=yes] http://archive.invalid/debian stable main" >"$root/etc/apt/sources.list.d/other.list"
run_setup 0 fresh
expect_lines "$installing" "$announced"
expect_status git installed

# A package that is not in the archive.
start_over
mv "$archive"/git_*.deb .
make_archive
run_setup 1 fresh
expect_lines "$installing" "test/setup: cannot install debootstrap git: E: Unable to locate package git; the log is *"
expect_log
expect_status debootstrap not-installed
# Optional packages: the others are installed, and the message says why one is not.
printf '# Packages: debootstrap no-such-command:git\n' >needs.sh
run_setup 0 for needs.sh
expect_lines "$installing" "test/setup: continuing without git: E: Unable to locate package git; the log is *"
expect_log
expect_status debootstrap installed

# Packages that are listed, but cannot be downloaded.
start_over
mv git_*.deb "$archive"
make_archive
mv "$archive"/git_*.deb .
run_setup 1 fresh
expect_lines "$installing" "$announced" "test/setup: cannot install debootstrap git: E: Failed to fetch *git*; the log is *"
expect_log
expect_status git not-installed
mv git_*.deb "$archive"

# mount_small DIRECTORY SIZE: a file system of this size. mount_full DIRECTORY: one without free space.
mount_small() {
	mkdir -p "$1" && mount -t tmpfs -o size="$2",mode=755 tmpfs "$1" || fail "cannot mount a tmpfs on $1"
}
mount_full() {
	mount_small "$1" 4k
	! head -c 8K /dev/zero 2>/dev/null >"$1/full" || fail "the file system on $1 has room"
}

# A full disk for the lists, for the archives, and for the unpacked packages.
start_over
mount_full "$root/var/lib/apt/lists"
run_setup 1 fresh
umount "$root/var/lib/apt/lists"
expect_lines "$installing" "test/setup: cannot install debootstrap git: apt-get update failed: *No space left on device*; the log is *"
expect_log
expect_status git not-installed

start_over
mount_small "$root/var/cache/apt/archives" 1m
run_setup 1 fresh
umount "$root/var/cache/apt/archives"
expect_lines "$installing" "$announced" "test/setup: cannot install debootstrap git: E: *free space in *var/cache/apt/archives*; the log is *"
expect_log
expect_status git not-installed

start_over
mount_small "$root/usr" 1500k
run_setup 1 fresh
expect_lines "$installing" "$announced" "test/setup: cannot install debootstrap git: dpkg: error*No space left on device*; the log is *"
expect_log
expect_status git not-installed
expect_status debootstrap unpacked
# Half-installed packages count as missing: both are installed when there is space.
mount -o remount,size=16m "$root/usr" || fail "cannot enlarge the tmpfs"
run_setup 0 fresh
expect_status git installed
expect_status debootstrap installed
expect_no_log
umount "$root/usr"

# A full disk for the log, and no directory for one.
start_over
mount_full "$TMPDIR"
run_setup 1 fresh
expect_lines "test/setup: cannot write to $TMPDIR/*: No space left on device"
rm "$TMPDIR/full"
expect_no_log
umount "$TMPDIR"
rmdir "$TMPDIR"
run_setup 1 fresh
expect_lines "test/setup: cannot create a log file: *$TMPDIR/*: No such file or directory"

# A package that cannot be configured is not installed, this time or the next, whatever commands it provides.
start_over
POSTINST="exit 3" make_package git 1
make_archive
reason="dpkg: error processing package git (--configure): *installed git package post-installation script subprocess *"
run_setup 1 fresh
expect_lines "$installing" "$announced" "test/setup: cannot install debootstrap git: $reason; the log is *"
expect_log
expect_status git half-configured
run_setup 1 fresh
expect_lines "test/setup: installing git" "test/setup: cannot install git: $reason; the log is *"
expect_log
printf '# Packages: bash:git\n' >needs.sh
run_setup 0 for needs.sh
expect_lines "test/setup: installing git" "test/setup: continuing without git: $reason; the log is *"
