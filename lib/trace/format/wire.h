/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers in a recording that stand for values of the public API. They never change, even if the API does;
 * mmtrace-file(5) lists them. test/lint/wire.sh checks that what is written to a file has a fixed number. */
#ifndef TRACE_FORMAT_WIRE_H
#define TRACE_FORMAT_WIRE_H

#include <mmtrace/record.h>
#include <mmtrace/report.h>
#include <stdint.h>

enum wire_call_graph {
	WIRE_CALL_GRAPH_AUTO = 0,
	WIRE_CALL_GRAPH_FP = 1,
	WIRE_CALL_GRAPH_DWARF = 2,
	WIRE_CALL_GRAPH_NONE = 3,
};

enum wire_record_end {
	WIRE_RECORD_END_STOPPED = 0,
	WIRE_RECORD_END_DURATION = 1,
	WIRE_RECORD_END_TARGET_ENDED = 2,
	WIRE_RECORD_END_WRITE_FAILED = 3,
	WIRE_RECORD_END_SIZE = 4,
};

enum wire_stack_end {
	WIRE_STACK_END_ENTRY = 0,
	WIRE_STACK_END_DUMP_EXHAUSTED = 1,
	WIRE_STACK_END_DEPTH_LIMIT = 2,
	WIRE_STACK_END_NO_UNWIND_DATA = 3,
	WIRE_STACK_END_CALLCHAIN = 4,
	WIRE_STACK_END_INVALID = 5,
	WIRE_STACK_END_NOT_RECORDED = 6,
	WIRE_STACK_END_OTHER_STACK = 7,
	WIRE_STACK_END_COROUTINE = 8,
	WIRE_STACK_END_LOST = 255, /* for the stacks of calls that were lost */
};

enum wire_frame_kind {
	WIRE_FRAME_NATIVE = 0,
	WIRE_FRAME_JIT = 1,
	WIRE_FRAME_UNKNOWN = 2,
};

/* Why a module could not be used, or only in part; lib/analysis/resolver/code-names.c translates. */
enum wire_program_state {
	WIRE_PROGRAM_MISSING = 2,
	WIRE_PROGRAM_OTHER_BUILD = 3,
	WIRE_PROGRAM_BROKEN = 4,
	WIRE_PROGRAM_CHANGED = 5,
	WIRE_PROGRAM_POOR_NAMES = 6,
	WIRE_PROGRAM_LIMITED_NAMES = 7,
	WIRE_PROGRAM_MISSING_NAMES = 8,
	WIRE_PROGRAM_UNREAD_NAMES = 9,
	WIRE_PROGRAM_SLOW_NAMES = 10,
};

enum wire_call_graph wire_call_graph(enum mmt_call_graph call_graph);
enum wire_record_end wire_record_end(enum mmt_record_end end);
enum wire_stack_end wire_stack_end(enum mmt_stack_end end);
enum wire_frame_kind wire_frame_kind(enum mmt_frame_kind kind);

/* A number unknown to this version becomes MMT_STACK_END_INVALID. */
enum mmt_stack_end wire_to_stack_end(enum wire_stack_end end);

/* A number unknown to this version becomes MMT_FRAME_UNKNOWN. */
enum mmt_frame_kind wire_to_frame_kind(enum wire_frame_kind kind);

#endif
