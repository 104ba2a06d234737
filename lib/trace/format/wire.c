// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/format/wire.h"

#include <stddef.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

enum wire_call_graph wire_call_graph(enum mmt_call_graph call_graph)
{
	static const enum wire_call_graph numbers[] = {
	    [MMT_CALL_GRAPH_AUTO] = WIRE_CALL_GRAPH_AUTO,
	    [MMT_CALL_GRAPH_FP] = WIRE_CALL_GRAPH_FP,
	    [MMT_CALL_GRAPH_DWARF] = WIRE_CALL_GRAPH_DWARF,
	    [MMT_CALL_GRAPH_NONE] = WIRE_CALL_GRAPH_NONE,
	};

	return numbers[call_graph];
}

enum wire_record_end wire_record_end(enum mmt_record_end end)
{
	static const enum wire_record_end numbers[] = {
	    [MMT_RECORD_END_STOPPED] = WIRE_RECORD_END_STOPPED,
	    [MMT_RECORD_END_DURATION] = WIRE_RECORD_END_DURATION,
	    [MMT_RECORD_END_TARGET_ENDED] = WIRE_RECORD_END_TARGET_ENDED,
	    [MMT_RECORD_END_WRITE_FAILED] = WIRE_RECORD_END_WRITE_FAILED,
	    [MMT_RECORD_END_SIZE] = WIRE_RECORD_END_SIZE,
	};

	return numbers[end];
}

static const enum wire_stack_end stack_ends[MMT_STACK_END_KINDS] = {
    [MMT_STACK_END_ENTRY] = WIRE_STACK_END_ENTRY,
    [MMT_STACK_END_DUMP_EXHAUSTED] = WIRE_STACK_END_DUMP_EXHAUSTED,
    [MMT_STACK_END_DEPTH_LIMIT] = WIRE_STACK_END_DEPTH_LIMIT,
    [MMT_STACK_END_NO_UNWIND_DATA] = WIRE_STACK_END_NO_UNWIND_DATA,
    [MMT_STACK_END_CALLCHAIN] = WIRE_STACK_END_CALLCHAIN,
    [MMT_STACK_END_INVALID] = WIRE_STACK_END_INVALID,
    [MMT_STACK_END_NOT_RECORDED] = WIRE_STACK_END_NOT_RECORDED,
    [MMT_STACK_END_OTHER_STACK] = WIRE_STACK_END_OTHER_STACK,
    [MMT_STACK_END_COROUTINE] = WIRE_STACK_END_COROUTINE,
};

enum wire_stack_end wire_stack_end(enum mmt_stack_end end)
{
	return stack_ends[end];
}

enum mmt_stack_end wire_to_stack_end(enum wire_stack_end end)
{
	for (size_t i = 0; i < COUNT(stack_ends); i++) {
		if (stack_ends[i] == end)
			return (enum mmt_stack_end)i;
	}
	return MMT_STACK_END_INVALID;
}

static const enum wire_frame_kind frame_kinds[] = {
    [MMT_FRAME_NATIVE] = WIRE_FRAME_NATIVE,
    [MMT_FRAME_JIT] = WIRE_FRAME_JIT,
    [MMT_FRAME_UNKNOWN] = WIRE_FRAME_UNKNOWN,
};

enum wire_frame_kind wire_frame_kind(enum mmt_frame_kind kind)
{
	return frame_kinds[kind];
}

enum mmt_frame_kind wire_to_frame_kind(enum wire_frame_kind kind)
{
	for (size_t i = 0; i < COUNT(frame_kinds); i++) {
		if (frame_kinds[i] == kind)
			return (enum mmt_frame_kind)i;
	}
	return MMT_FRAME_UNKNOWN;
}
