#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The shared library exports what the public headers declare, and nothing else.
set -u
cd "${SOURCE:?}" || exit 1

library=$(find "${BUILD:?}" -maxdepth 2 -name 'libmmtrace.so' | head -1)
[[ -n $library ]] || { echo "no libmmtrace.so below $BUILD" >&2; exit 1; }
command -v nm >/dev/null || exit 77

exported=$(nm -D --defined-only "$library" | awk '{ print $3 }' | sed 's/@.*//' | grep -vE '^__(asan|ubsan|odr|start|stop)|^_(init|fini)$' | sort -u)
declared=$(cat include/mmtrace/*.h | tr '\n' ' ' | grep -oE 'MMT_PUBLIC[^;]*\(' | grep -oE 'mmt_[a-z0-9_]+\(' | tr -d '(' | sort -u)
[[ -n $declared ]] || { echo "no declarations found" >&2; exit 1; }

difference=$(diff <(echo "$declared") <(echo "$exported")) && exit 0
echo "declared in include/mmtrace (<) and exported by ${library##*/} (>):" >&2
echo "$difference" >&2
exit 1
