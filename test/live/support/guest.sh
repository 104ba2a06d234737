#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the virtual machine of test/vm, as the only program there.
#
#     guest.sh BUILD ACCELERATOR [TEST...]
set -u
export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8

build=$1
accelerator=$2
shift 2

# Unit tests that depend on the kernel, and at least one live test for each kind of recording.
tests=("$@")
[ $# -gt 0 ] || tests=(
	unit-space-rules unit-space-kernel
	unit-code-reading unit-jit-code unit-jitdump-files unit-residency unit-huge-pages
	unit-events unit-rings unit-cpu-hotplug unit-scope unit-scheduling-priority unit-runtime-helper unit-thread-coverage
	unit-process-table unit-in-flight unit-build-id-notes
	live-torture-single live-torture-threads live-torture-forks
	live-kinds live-killed-recorder live-jit-code live-scopes live-cpu-online
	live-leak-brk live-leak-remap live-leak-shm live-leak-fork live-leak-exec live-map-fixed live-commit-before
)

# Programs that test/vm built for this machine, which has no compilers: for live-agreement, which takes too long for the list.
[ ! -d "$build/agreement" ] || export AGREEMENT_PROGRAMS=$build/agreement

# On an emulated CPU everything takes 20 to 60 times as long.
if [ "$accelerator" != kvm ]; then
	export CK_TIMEOUT_MULTIPLIER=20 WAIT_FACTOR=10 TORTURE_SEEDS=3 KERNEL_STEPS=400
fi

log=$(mktemp)
pattern=$(IFS='|' && echo "^(${tests[*]})\$")
ctest --test-dir "$build" --parallel 2 --no-tests=error --output-on-failure --tests-regex "$pattern" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
results=$(grep -aE '^ *[0-9]+/[0-9]+ Test +#' "$log")
passed=$(grep -cE ' Passed +[0-9.]+ sec' <<<"$results")
skipped=$(grep -cE '\*\*\*Skipped +[0-9.]+ sec' <<<"$results")
failed=$(grep -cvE ' Passed +[0-9.]+ sec|\*\*\*Skipped +[0-9.]+ sec|^$' <<<"$results")
echo "mmtrace-vm: results $passed passed, $failed failed, $skipped skipped"
exit "$status"
