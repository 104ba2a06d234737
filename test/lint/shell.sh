#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A script exits if a file that it sources is missing: otherwise it would continue, test nothing, and pass.
set -u
cd "${SOURCE:?}" || exit 1

mapfile -t scripts < <(grep -rlE '^#!.*\<(ba)?sh\>' test; find test -name '*.bash')
((${#scripts[@]} > 0)) || { echo "no scripts found" >&2; exit 1; }

found=$(grep -nE '^[[:space:]]*(source|\.)[[:space:]]+"?\$' "${scripts[@]}" | grep -v '|| exit [1-9]')
[[ -z $found ]] && exit 0
echo "$found" >&2
echo "without \`|| exit 2\`" >&2
exit 1
