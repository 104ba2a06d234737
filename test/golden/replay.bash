# SPDX-License-Identifier: LGPL-2.1-or-later
# Shared by golden/report.sh and golden/update. The recordings name their program by this path; it is placed there while the
# tests run. Input: MMTRACE, SOURCE. Sets $directory for results.
set -u
export LC_ALL=C.UTF-8 TZ=UTC NO_COLOR=1 COLUMNS=120
unset DEBUGINFOD_URLS MMTRACE_PAGER PAGER

recordings=$SOURCE/test/data
program_directory=/tmp/mmtrace-golden
directory=$(mktemp -d) || exit 1
export XDG_CACHE_HOME=$directory/names-kept
trap 'rm -rf "$directory"' EXIT

put_program() {
	# One test at a time, of all checkouts; only the test that holds the lock may remove the program.
	exec 9</tmp && flock 9
	trap 'rm -rf "$directory"; rm -f "$program_directory"/leak-static{,-aarch64}; rmdir "$program_directory" 2>/dev/null' EXIT
	mkdir -m 700 "$program_directory" 2>/dev/null
	[ -O "$program_directory" ] && [ ! -L "$program_directory" ] || {
		echo "$program_directory belongs to another user" >&2
		exit 1
	}
	cp "$SOURCE"/test/data/leak-static{,-aarch64} "$program_directory"
}

# for_each_golden FUNCTION: called with the name and the words of each line of TESTLIST.
for_each_golden() {
	local function=$1 name words
	while IFS=$'\t' read -r name words; do
		case $name in
		'' | '#'*) continue ;;
		esac
		set -f
		"$function" "$name" $words
		set +f
	done <"$SOURCE/test/golden/TESTLIST"
}

# replay NAME WORD...: writes output, errors and status of one line to $directory/NAME.
replay() {
	local name=$1
	shift
	(cd "$recordings" && "$MMTRACE" "$@") >"$directory/$name" 2>&1
	echo "status $?" >>"$directory/$name"
}
