#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: javac:default-jdk-headless
# Stacks of Java with -XX:+PreserveFramePointer are complete: interpreted, compiled by either compiler, called back through
# JNI.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
command -v javac >/dev/null || skip "no javac is installed"
build_native_library
build_program javac -d "$directory" "$stack_sources/Program.java"
rounds=100
# The launcher keeps paths in arrays on its stack.
stack_bytes=65280
stack_entries+='|^[?]@java$'

# java_case TITLE OPTION...
java_case() {
	echo "$1"
	shift
	record_stacks LD_LIBRARY_PATH="$directory" java -Xmx64m -cp "$directory" -XX:+PreserveFramePointer \
		-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit "$@" Program $rounds
	expect_complete_stacks $((2 * 7 * rounds))
}
leaf='mmap<native_leak<Java_Program_leak'
outer='StubRoutines (1)<...</^Java(Main|Thread::run|Thread::thread_main_inner)/<...<start_thread<*'

# Interpreted code has no names in the map; each method has one frame.
java_case interpreted -Xint
i='Interpreter<Interpreter<Interpreter'
# leak, leakBlock, byException, oneRound, rounds, main; in the thread: its lambda, the lambda's class and Thread.run.
expect_stack $((2 * rounds)) "$leaf<$i<$i<StubRoutines (1)<...<JavaMain<...<start_thread<*"
expect_stack $((2 * rounds)) "$leaf<$i<$i<Interpreter<Interpreter<StubRoutines (1)<...<JavaThread::thread_main_inner()<...<start_thread<*"
expect_stack $((2 * 7 * rounds)) "$leaf<$i<...<$outer"

# From the first frame to the last, whatever the names of the virtual machine's own frames.
java_list='mmap<native_leak<Java_Program_leak<Interpreter<Interpreter<Interpreter<Interpreter<Interpreter<Interpreter'
expect_list $((2 * rounds)) "$java_list<StubRoutines (1)<@libjvm.so<JavaMain<ThreadJavaMain<start_thread</^(clone|clone3|__clone3)$/" libjvm.so
expect_list $((2 * rounds)) "$java_list<Interpreter<Interpreter<StubRoutines (1)<@libjvm.so<start_thread</^(clone|clone3|__clone3)$/" libjvm.so

# expect_compiled CALLS: by each path at least CALLS; a method's first calls may still be interpreted.
expect_compiled() {
	local name='int Program.leak(long)<void Program.leakBlock()' rest='...<void Program.rounds(int)<...'
	expect_stack "$1+" "$leaf<$name<void Program\$Circle.draw(double)<void Program.byInterface(Program\$Shape)<$rest<$outer"
	expect_stack "$1+" "$leaf<$name<void Program.lambda\$oneRound\$0(int)<...</Program..Lambda.*accept/<...<$rest<$outer"
	expect_stack "$1+" "$leaf<$name</LeaksWhenMade/<void Program.byConstructor()<$rest<$outer"
	expect_stack "$1+" "$leaf<$name<void Program.reflected()<...</Program.byReflection/<$rest<$outer"
	expect_stack $((2 * $1))+ "$leaf<$name<void Program.byException()<$rest<$outer"
	expect_stack "$1+" "$leaf<$name</byRecursion/</byRecursion/</byRecursion/</byRecursion/</byRecursion/<$rest<$outer"
}
java_case 'compiled by C1' -Xcomp -XX:-Inline -XX:TieredStopAtLevel=1
expect_compiled $((2 * rounds - 10))
# One of the two loops may start before its method is compiled.
java_case 'compiled by C2' -Xcomp -XX:-Inline -XX:-TieredCompilation
expect_compiled $((rounds - 10))

# By default: every tier in one stack.
java_case 'all tiers'
expect_stack $((2 * 7 * rounds))+ "$leaf<...<$outer"
expect_json 'all(.completeness.warnings[]; contains("PreserveFramePointer") | not)'

# Without the option the frame-pointer chain skips compiled methods. If the recording has their code, instruction analysis
# finds the callers: the stacks are the same as above, without warnings. Code that was replaced is missing; such a stack is
# marked as truncated.
expect_java_by_instructions() {
	ask_stacks '.completeness.stacks_by_end | "\(.entry) of \(add) stacks are complete"'
	expect_stack $((2 * 7 * rounds - 14))+ "$leaf<...<$outer"
	expect_json '.completeness.stacks_by_end | (add - .entry) * 100 <= add'
	expect_compiled $((rounds - 10))
	# The option is the remedy for stacks that end in compiled code, and for those that skip some of it.
	expect_json '.completeness | .truncated_stacks + .doubtful_stacks > 0 or
		all(.warnings[]; contains("PreserveFramePointer") | not)'
}
plain_java=(LD_LIBRARY_PATH="$directory" java -Xmx64m -cp "$directory" -Xcomp -XX:-Inline -XX:-TieredCompilation)
living_options=(--ask-runtime)
echo 'no frame pointers'
record_living_stacks "${plain_java[@]}" Program $rounds wait
expect_java_by_instructions
echo 'no frame pointers, and it ends'
record_ending_stacks "${plain_java[@]}" -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit Program $rounds wait
expect_java_by_instructions

# If no code is copied, the report says so and what to do.
living_options=(--code none)
record_living_stacks "${plain_java[@]}" Program $rounds wait
expect_json 'any(.completeness.warnings[]; contains("(Java) was started without -XX:+PreserveFramePointer"))'
expect_json '[.completeness.warnings[] | select(contains("PreserveFramePointer"))] | length == 1'
"$MMTRACE" report --no-pager -i "$recording" | tr '\n' ' ' | grep -q 'PreserveFramePointer' || fail "the text does not say so"
