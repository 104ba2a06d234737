/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What every workload shares: wait until it may begin, say what a report of it must show, stay until it may end.
 *
 *     ready              a line on stdin (or its end) starts the work; with --exit nothing is waited for
 *     expect ...         the known answer, one line per stack; test/README explains the words
 *     done               a line on stdin (or its end) ends the program
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct stage {
	bool exit_by_itself;
	int operand_count;
	char **operands;
};

struct stage stage_open(int argc, char **argv);

/* Prints "ready" and waits. */
void stage_begin(const struct stage *stage);

/* Between phases: prints the word and waits. */
void stage_pause(const struct stage *stage, const char *word);

/* Prints a line "expect ...", formatted like printf(). */
void stage_expect(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints "done" and waits. */
void stage_end(const struct stage *stage);

/* The operand at `index` as a number, or `otherwise` if there are fewer operands. */
size_t stage_number(const struct stage *stage, int index, size_t otherwise);

/* Ends the program with a message if `pointer` is MAP_FAILED (or NULL); returns it. */
void *stage_need(void *pointer, const char *what);

/* Ends the program with a message if `status` is negative; returns it. */
int stage_need_call(int status, const char *what);

size_t stage_page_bytes(void);

/* Writes to every page. */
void stage_touch(void *start, size_t length);

/* A function that tests look up in stacks: it keeps its name and is never inlined. EXPORTED ones can be called from
 * outside too. Clang has no noipa, but never renames or clones a function that it does not inline. */
#ifdef __clang__
#define VISIBLE static __attribute__((noinline))
#define EXPORTED __attribute__((noinline, visibility("default")))
#else
#define VISIBLE static __attribute__((noipa))
#define EXPORTED __attribute__((noipa, visibility("default")))
#endif

/* After a call whose frame must stay on the stack: keeps the compiler from turning the call into a jump. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")
