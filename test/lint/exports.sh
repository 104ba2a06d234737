#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Both libraries and the symbols file of the Debian package contain exactly what the public headers declare.
set -u
cd "${SOURCE:?}" || exit 1

command -v nm >/dev/null || exit 77

failed=0
declared=$(cat include/mmtrace/*.h | tr '\n' ' ' | grep -oE 'MMT_PUBLIC[^;]*\(' | grep -oE 'mmt_[a-z0-9_]+\(' | tr -d '(' | sort -u)
[[ -n $declared ]] || { echo "no declarations found" >&2; exit 1; }

# compare WHAT NAMES
compare()
{
	local difference

	difference=$(diff <(echo "$declared") <(sort -u <<<"$2")) && return
	echo "declared in include/mmtrace (<) and $1 (>):" >&2
	echo "$difference" >&2
	failed=1
}

# Sanitizers, the compiler and the linker add names of their own.
exported()
{
	nm "$@" --defined-only | awk 'NF == 3 { print $3 }' | sed 's/@.*//' | grep -vE '^__(asan|ubsan|odr|start|stop)|^_(init|fini)$'
}

for library in libmmtrace.so libmmtrace.a; do
	[[ -e ${BUILD:?}/$library ]] || { echo "no $library in $BUILD" >&2; exit 1; }
done
compare "exported by libmmtrace.so" "$(exported -D "$BUILD/libmmtrace.so")"
compare "global in libmmtrace.a" "$(exported -g "$BUILD/libmmtrace.a")"
compare "in .debian/libmmtrace0.symbols" "$(sed -nE 's/^ (mmt_[a-z0-9_]+)@.*/\1/p' .debian/libmmtrace0.symbols)"
exit $failed
