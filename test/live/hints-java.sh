#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: javac:default-jdk-headless
# Following the report's hint gives names to interpreted Java methods.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/hints.bash" || exit 2

need_perf
command -v javac >/dev/null || skip "no javac is installed"
build_native_library
build_program javac -d "$directory" "$stack_sources/Program.java"
java=(LD_LIBRARY_PATH="$directory" java -Xmx64m -cp "$directory" -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions
	-XX:+DumpPerfMapAtExit)
leak='mmap<native_leak<Java_Program_leak'
record_stacks "${java[@]}" -Xint Program 20
expect_hint '(Java) have no names: start it with -Xcomp'
expect_stack 280 "$leak<Interpreter<..."
record_stacks "${java[@]}" -Xcomp Program 20
expect_no_hint 'have no names'
expect_stack 0 "$leak<Interpreter<..."
expect_stack 280 "$leak</Program.leak/<..."
# The options of a command are read from its environment, too.
record_stacks JAVA_TOOL_OPTIONS=-Xcomp "${java[@]}" Program 20
expect_no_hint 'have no names'
