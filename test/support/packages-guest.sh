#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the virtual machine of test/vm: tries the packages and the tarball of the static program in DIRECTORY.
#
#     packages-guest.sh DIRECTORY SOURCE COMMIT
set -eux
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
directory=$1 commit=$3
program=$2/test/data/leak-static-$(uname -m)

# expect_leak COMMAND...: recorded and reported by that command; the program's figures are known.
expect_leak() {
	"$@" record -q -o "/tmp/$name.data" -- "$place" </dev/null
	"$@" report --json -i "/tmp/$name.data" >"/tmp/$name.json"
	jq -e '.completeness.lost_events == 0 and ([.groups[] | select(any(.frames[]; .function == "leak"))] |
		length == 1 and .[0].unfreed_count == 4 and .[0].stack_end == "entry")' "/tmp/$name.json"
}

# This root is made of unpacked packages, so nothing is known of those on which these depend, and nothing runs ldconfig.
touch /var/lib/dpkg/status
dpkg --force-depends --install "$directory"/*.deb
dpkg --force-depends --install "$directory"/mmtrace_*.deb # runs the scripts of an upgrade
[ "$(dpkg-query -W -f '${Architecture} ${db:Status-Status}' mmtrace)" = 'arm64 installed' ]
ldconfig
mmtrace --version
ldd /usr/bin/mmtrace | grep libdw
mmtrace check
grep -qx 'ExecStart=/usr/bin/mmtrace setup --quiet' /usr/lib/systemd/system/mmtrace-setup.service ||
	grep -qx 'ExecStart=/usr/bin/mmtrace setup --quiet' /lib/systemd/system/mmtrace-setup.service
name=installed place=$program
expect_leak mmtrace

# The static program, alone in a root directory.
mkdir -p /tmp/unpacked /tmp/alone/{proc,sys,tmp}
tar -C /tmp/unpacked --strip-components=1 -xzf "$directory"/*.tar.gz
cp /tmp/unpacked/bin/mmtrace "$program" /tmp/alone
mount -t proc proc /tmp/alone/proc
mount --rbind /sys /tmp/alone/sys
mount --bind /tmp /tmp/alone/tmp
alone=(env -i LANG=en_US.UTF-8 /usr/sbin/chroot /tmp/alone /mmtrace)
! ldd /tmp/alone/mmtrace | grep '=>'
"${alone[@]}" --version | grep -x "commit $commit"
"${alone[@]}" --version | grep '^link static'
"${alone[@]}" check
name=alone place=/${program##*/}
expect_leak "${alone[@]}"

dpkg --purge mmtrace libmmtrace-dev libmmtrace0 mmtrace-dbgsym libmmtrace0-dbgsym
[ ! -e /usr/bin/mmtrace ]
