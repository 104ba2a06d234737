// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lookups in the table of syscalls. The table itself, and how to add a syscall, is in syscall-table.h. */
#include "base/syscall-table.h"

#include <errno.h>

#include "base/strings.h"
#include "base/vector.h"

const struct call_description call_descriptions[CALL_KINDS] = {
#define CALL(constant, syscall, rule, ...) [CALL_##constant] = {.name = #syscall, __VA_ARGS__},
    CALL_TABLE(CALL)
#undef CALL
};

const struct call_description *call_of_counter(enum mmt_event_count counter)
{
	return array_find(call, call_descriptions, CALL_KINDS, call->counter == counter);
}

unsigned call_arguments_used(enum call call, const uint64_t arguments[6])
{
	const struct call_description *description = call_describe(call);
	unsigned used = (1u << description->arguments) - 1;

	if (description->conditional && !(arguments[description->flags - 1] & description->condition))
		used &= ~(1u << (description->conditional - 1));
	return used;
}

bool call_has_failed(enum call call, const uint64_t arguments[6], int64_t result)
{
	if (call_describe(call)->place == CALL_BELOW_RESULT)
		return (uint64_t)result < arguments[0];
	return call_is_error(result);
}

int32_t call_errno(enum call call, int64_t result)
{
	return call_describe(call)->place == CALL_BELOW_RESULT ? ENOMEM : (int32_t)-result;
}

uint64_t call_bytes_asked(enum call call, const uint64_t arguments[6], int64_t result)
{
	const struct call_description *description = call_describe(call);

	if (description->place == CALL_BELOW_RESULT)
		return arguments[0] - (uint64_t)result;
	return description->length ? arguments[description->length - 1] : 0;
}

const char *call_advice_name(uint64_t advice)
{
	static const char *const names[] = {
	    [0] = "MADV_NORMAL",	   [1] = "MADV_RANDOM",		[2] = "MADV_SEQUENTIAL",
	    [3] = "MADV_WILLNEED",	   [4] = "MADV_DONTNEED",	[8] = "MADV_FREE",
	    [9] = "MADV_REMOVE",	   [10] = "MADV_DONTFORK",	[11] = "MADV_DOFORK",
	    [12] = "MADV_MERGEABLE",	   [13] = "MADV_UNMERGEABLE",	[14] = "MADV_HUGEPAGE",
	    [15] = "MADV_NOHUGEPAGE",	   [16] = "MADV_DONTDUMP",	[17] = "MADV_DODUMP",
	    [18] = "MADV_WIPEONFORK",	   [19] = "MADV_KEEPONFORK",	[20] = "MADV_COLD",
	    [21] = "MADV_PAGEOUT",	   [22] = "MADV_POPULATE_READ", [23] = "MADV_POPULATE_WRITE",
	    [24] = "MADV_DONTNEED_LOCKED", [25] = "MADV_COLLAPSE",	[102] = "MADV_GUARD_INSTALL",
	    [103] = "MADV_GUARD_REMOVE",
	};

	return (uint32_t)advice < sizeof(names) / sizeof(*names) ? names[(uint32_t)advice] : NULL;
}

bool call_find(const char *name, enum call *call_ret)
{
	const struct call_description *found =
	    array_find(call, call_descriptions, CALL_KINDS, !strcmp(name, call->name));

	if (found)
		*call_ret = (enum call)(found - call_descriptions);
	return found;
}

bool call_find_tracepoint(const char *tracepoint, enum call *call_ret, bool *enter_ret)
{
	*enter_ret = starts_with(tracepoint, "sys_enter_");
	if (!*enter_ret && !starts_with(tracepoint, "sys_exit_"))
		return false;
	return call_find(tracepoint + strlen(*enter_ret ? "sys_enter_" : "sys_exit_"), call_ret);
}

/* A counter has the name of its first call. Only MMT_COUNT_OTHER_CALLS counts several different calls. */
const char *mmt_event_count_name(enum mmt_event_count kind)
{
	const struct call_description *call;

	if (kind == MMT_COUNT_OTHER_CALLS)
		return "other";
	call = call_of_counter(kind);
	return call ? call->name : "";
}

uint64_t mmt_event_count_sum(const uint64_t counts[MMT_COUNT_KINDS])
{
	uint64_t sum = 0;

	for (unsigned kind = 0; kind < MMT_COUNT_KINDS; kind++)
		sum += counts[kind];
	return sum;
}
