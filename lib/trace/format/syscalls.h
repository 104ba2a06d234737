/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of the memory syscalls that mmtrace records. To add one, add a row here and its rule in
 * model/space/syscall-rules.c.
 */
#ifndef TRACE_FORMAT_SYSCALLS_H
#define TRACE_FORMAT_SYSCALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/format/event.h"

struct call_description {
	const char *name;   /* as in syscalls:sys_exit_NAME */
	bool creates;	    /* can make bytes mapped or accessible: its samples carry the stack */
	unsigned arguments; /* how many it takes */
	bool rare;	    /* the kernel may lack its tracepoint: do without */
	bool at_entry;	    /* recorded when it is entered: its arguments are all that is needed */
};

const struct call_description *call_describe(enum call call);

/* Which arguments it takes there, a bit for each: mremap() reads its new address only with some flags. Where it does
 * not, the register holds something else of the program. */
unsigned call_arguments_used(enum call call, const uint64_t arguments[6]);

/* Call of "sys_exit_NAME" or "sys_enter_NAME" (`enter_ret` says which); false: none of ours. */
bool call_find(const char *tracepoint, enum call *call_ret, bool *enter_ret);

#endif
