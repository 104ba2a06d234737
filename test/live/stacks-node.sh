#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: node:nodejs
# Stacks of Node are complete: functions of the program and of the library, interpreted and compiled, after a wait, in a
# worker.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
command -v node >/dev/null || skip "no node is installed"
rounds=100
# Large enough for the module loader.
stack_bytes=65280
record_stacks node --perf-basic-prof --interpreted-frames-native-stack "$stack_sources/program.js" $rounds
expect_complete_stacks $((2 * 5 * rounds))

# Every function has a frame until the optimising compiler inlines it.
expect_js_stack() {
	local leaf='mmap<...<malloc<...<node::Buffer::*<...</JS:.?allocUnsafeSlow /</JS:.?leakBuffer /'
	expect_stack $rounds "$leaf<$1<...<node::Start(*<...<_start"
	expect_stack $rounds "$leaf<$1<...<node::worker::Worker::*<...<start_thread<*"
}
expect_js_stack '/JS:.?draw /</JS:.?byMethod /</JS:.?oneRound /'
expect_js_stack '/JS:.?inClosure /</JS:.?byClosure /</JS:.?oneRound /'
expect_js_stack '/JS:.?inMap /<...</JS:.?byLibrary /</JS:.?oneRound /'
expect_js_stack '/JS:.?generate /<...</JS:.?byGenerator /</JS:.?oneRound /'
expect_js_stack '/JS:.?byWaiting /'

# From the first frame to the last, whatever the names of the engine's own frames: Debian's Node.
[[ $(node --version) == v18.* ]] || exit 0
expect_js_list() {
	local leaf='@libc.so.6<@node</JS:.?createUnsafeBuffer /</JS:.?allocUnsafeSlow /</JS:.?leakBuffer /'
	local outer='/JS:.?oneRound /</JS:.?rounds /<@node<@libc.so.6'
	# The first round runs before anything has waited, and comes from the program's file.
	expect_list $((rounds - 20))+ "$leaf<$1<$outer<@node" libc.so.6 node
	expect_list $((rounds - 20))+ "$leaf<$1<$outer" libc.so.6 node
}
expect_js_list '/JS:.?draw /</JS:.?byMethod /'
expect_js_list '/JS:.?inClosure /</JS:.?byClosure /'
expect_js_list '/JS:.?inMap /<@node</JS:.?byLibrary /'
