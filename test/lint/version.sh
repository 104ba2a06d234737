#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: git:git
# mmtrace --version shows the commit that a clone was built from, also after another commit; the sources without git can be
# built, inside the clone of another project, too.
set -u
cd "${SOURCE:?}" || exit 1
export GIT_CONFIG_GLOBAL=/dev/null GIT_{AUTHOR,COMMITTER}_NAME=test GIT_{AUTHOR,COMMITTER}_EMAIL=test@example.org
directory=$(mktemp -d) || exit 1
trap 'rm -rf "$directory"' EXIT

fail()
{
	echo "FAILED: $*" >&2
	exit 1
}

command -v git >/dev/null || { echo "SKIPPED: git is not installed" >&2 && exit 77; }
mkdir "$directory"/{outer,outer/inner}
cp -r CMakeLists.txt lib include cmd man "$directory/outer/inner"
cd "$directory/outer" || exit 1

# commit DIRECTORY
commit()
{
	git -C "$1" add . && git -C "$1" commit -q --allow-empty -m test || fail "git commit"
}

# expect COMMIT: what --version will print, after a build that may configure again.
expect()
{
	local found
	make -C build cmake_check_build_system lib/analysis/version.o >log 2>&1 || fail "make: $(cat log)"
	found=$(strings build/CMakeFiles/mmtrace_objects.dir/lib/analysis/version.c.o | sed -n 's/^commit //p')
	[[ $found == "$1" ]] || fail "commit '$found' instead of '$1'"
}

git init -q . && commit . || fail "git init"
cmake -S inner -B build -G 'Unix Makefiles' -DCMAKE_BUILD_TYPE=Debug -DMMTRACE_TESTS=OFF >log 2>&1 || fail "cmake: $(cat log)"
expect ''
git init -q inner && commit inner && cmake build >log 2>&1 || fail "a clone: $(cat log)"
expect "$(git -C inner rev-parse --short=8 HEAD)"
git -C inner tag -a -m test v0.1.0 && commit inner
expect "v0.1.0-1-g$(git -C inner rev-parse --short=8 HEAD)"
