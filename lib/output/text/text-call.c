// SPDX-License-Identifier: LGPL-2.1-or-later
/* A memory call as a line: what was called, and what that did. */
#include <inttypes.h>
#include <mmtrace/trace.h>
#include <time.h>

#include "base/strings.h"
#include "base/syscall-table.h"
#include "output/text/text-parts.h"

#define THREAD_COLUMN 16
#define CALL_COLUMN 38
#define RESULT_COLUMN (CALL_COLUMN + 40) /* as strace(1) */
#define EFFECT_COLUMN (RESULT_COLUMN + 18)

static void put_head(struct text *text, const struct mmt_traced_call *call)
{
	time_t seconds = (time_t)(call->realtime_ns / 1000000000);
	const struct mmt_thread *thread = &call->thread;
	char day[32];
	struct tm local;

	if (call->realtime_ns && localtime_r(&seconds, &local))
		strftime(day, sizeof(day), "%H:%M:%S", &local);
	else
		snprintf(day, sizeof(day), "%" PRIu64, call->time_ns / 1000000000);
	text_format(text, TEXT_FAINT, "%s.%06" PRIu64, day,
		    (call->realtime_ns ? call->realtime_ns : call->time_ns) % 1000000000 / 1000);
	text_pad_to(text, THREAD_COLUMN);
	text_put_name(text, TEXT_PLAIN, thread->name, 0);
	text_format(text, TEXT_PLAIN, thread->tid == thread->pid ? " %" PRId32 " " : " %" PRId32 "/%" PRId32 " ",
		    thread->pid, thread->tid);
	text_pad_to(text, CALL_COLUMN);
}

#define FLAGS 32

static void write_flags(const char *zero, const char *const names[FLAGS], uint64_t value, FILE *stream)
{
	const char *before = "";

	fputs(value ? "" : zero, stream);
	for (unsigned i = 0; i < FLAGS; i++) {
		if (!(value >> i & 1) || !names[i])
			continue;
		fprintf(stream, "%s%s", before, names[i]);
		value &= ~(UINT64_C(1) << i);
		before = "|";
	}
	if (value)
		fprintf(stream, "%s%#" PRIx64, before, value);
}

static void write_map_flags(uint64_t value, FILE *stream)
{
	static const char *const maps[FLAGS] = {
	    [4] = "FIXED", "ANONYMOUS", "32BIT", [8] = "GROWSDOWN", [11] = "DENYWRITE",
	    "EXECUTABLE", "LOCKED", "NORESERVE",   "POPULATE",	"NONBLOCK", "STACK", "HUGETLB", "SYNC",
	    "FIXED_NOREPLACE"};
	/* Not bits, but numbers. */
	static const char *const types[] = {"FILE", "SHARED", "PRIVATE", "SHARED_VALIDATE"};
	unsigned page_shift = value >> 26 & 63;
	uint64_t bits = value & ~(UINT64_C(63) << 26 | 3);

	fprintf(stream, "%s%s", types[value & 3], bits ? "|" : "");
	write_flags("", maps, bits, stream);
	if (page_shift)
		fprintf(stream, "|%u<<HUGE_SHIFT", page_shift);
}

/* As strace(1), without prefixes. */
static void write_argument(char kind, uint64_t value, FILE *stream)
{
	static const char *const protections[FLAGS] = {"READ", "WRITE", "EXEC", "SEM", [24] = "GROWSDOWN", "GROWSUP"};
	static const char *const moves[FLAGS] = {"MAYMOVE", "FIXED", "DONTUNMAP"};
	static const char *const attachments[FLAGS] = {[12] = "RDONLY", "RND", "REMAP", "EXEC"};
	const char *advice = kind == 'A' ? call_advice_name(value) : NULL;

	if (advice)
		fputs(advice + strlen("MADV_"), stream);
	else if (kind == 'P')
		write_flags("NONE", protections, value, stream);
	else if (kind == 'M')
		write_map_flags(value, stream);
	else if (kind == 'R')
		write_flags("0", moves, value, stream);
	else if (kind == 'S')
		write_flags("0", attachments, value, stream);
	else if (kind == 'i')
		fprintf(stream, "%" PRId32, (int32_t)value);
	else if (kind == 'n')
		fprintf(stream, "%" PRIu64, value);
	else
		fprintf(stream, kind == 'a' && !value ? "NULL" : "%#" PRIx64, value);
}

static void put_call(struct text *text, const struct mmt_traced_call *call)
{
	char line[256] = "";
	FILE *stream = fmemopen(line, sizeof(line), "w");
	enum call kind;

	if (!stream || !call_find(call->name, &kind))
		return;
	for (unsigned i = 0; i < call->argument_count; i++) {
		fputs(i ? ", " : "", stream);
		write_argument(call_describe(kind)->kinds[i], call->arguments[i], stream);
	}
	fclose(stream);
	text_format(text, TEXT_PLAIN, "%s(%s) ", call->name, line);
	text_pad_to(text, RESULT_COLUMN);
	snprintf(line, sizeof(line), "error %d", call->error); /* a recording may name any */
	if (call_is_error(call->result))
		text_format(text, TEXT_BAD, "= -1 %s ", strerrorname_np(call->error) ?: line);
	else
		text_format(text, TEXT_PLAIN, "= %#" PRIx64 " ", (uint64_t)call->result);
	text_pad_to(text, EFFECT_COLUMN);
}

/* "grow (main.c:32)", "grow (libfoo.so)", "libfoo.so+0x1234" */
static void add_origin(struct text *text, const char *before, const struct mmt_row *stack)
{
	const struct mmt_frame *frame;
	char room[TEXT_FRAME_NAME_BYTES];

	if (!stack->frame_count)
		return;
	frame = stack->frames[stack->origin < stack->frame_count ? stack->origin : stack->frame_count - 1];
	text_add(text, "%s%s", before, text_frame_name(frame, room));
	if (frame->source_file && frame->source_line)
		text_add(text, " (%s:%" PRIu32 ")", path_file_name(frame->source_file), frame->source_line);
	else if (frame->function && frame->module)
		text_add(text, " (%s)", frame->module);
}

/* " of malloc arenas after 12.0 s" */
static void add_owner(struct text *text, const struct mmt_traced_memory *owner, uint64_t all_bytes)
{
	const char *words = text_cause_name(&(const struct mmt_cause){.pattern = owner->row.pattern});

	if (owner->row.unfreed_bytes < all_bytes)
		text_add(text, ", %s", text_bytes(text, owner->row.unfreed_bytes));
	if (owner->row.file)
		text_add(text, " of %s", path_file_name(owner->row.file));
	else if (owner->known && strcmp(words, "memory") != 0)
		text_add(text, " of %s", words);
	else if (owner->row.frame_count)
		add_origin(text, " of ", &owner->row);
	if (owner->known)
		text_add(text, " after %s", text_duration(text, owner->age_ns));
	else if (owner->inherited)
		text_add(text, " inherited by fork %s before", text_duration(text, owner->age_ns));
	else
		text_add(text, " mapped before");
}

struct mmt_error *mmt_traced_call_write_text(const struct mmt_traced_call *call, const struct mmt_text_options *options,
					     bool stacks, FILE *stream)
{
#define VERB(kind, name, verb) verb,
	static const char *const verbs[] = {MMT_EFFECTS(VERB)};
	const struct mmt_row *stack = call->stack.frame_count ? &call->stack : &call->owner.row;
	struct mmt_text_options wide = *options;
	const struct mmt_limit *limit = &call->limit;
	bool moves = call->bytes[MMT_EFFECT_MOVED], counts = limit->kind == MMT_LIMIT_MAPPINGS;
	struct text_stack_marks marks = {0};
	struct text text;

	wide.width = 0;
	text_begin(&text, stream, &wide);
	put_head(&text, call);
	put_call(&text, call);
	if (call->error) {
		text_add(&text, limit->kind ? "fails: limit %s, " : "fails", mmt_limit_name(limit->kind));
		if (limit->used)
			text_add(&text, "%s of ",
				 counts ? text_count(&text, limit->used) : text_bytes(&text, limit->used));
		if (limit->kind)
			text_add(&text, "%s", counts ? text_count(&text, limit->value) : text_bytes(&text, limit->value));
	}
	for (unsigned i = 0; i < MMT_EFFECT_KINDS; i++) {
		bool maps = i <= MMT_EFFECT_RESERVED, follows = text_has_sentence(&text);

		if (i == MMT_EFFECT_FREED && follows)
			add_origin(&text, " in ", &call->stack);
		if (!call->bytes[i])
			continue;
		text_add(&text, "%s%s %s", follows ? ", " : "",
			 i == MMT_EFFECT_FREED && follows ? "replaces" : verbs[i], text_bytes(&text, call->bytes[i]));
		if (maps && call->stack.memory_class != MMT_CLASS_ANON)
			text_add(&text, " of %s",
				 call->stack.file ? path_file_name(call->stack.file)
						  : mmt_class_name(call->stack.memory_class));
		else if (!maps)
			add_owner(&text, i == MMT_EFFECT_FREED && moves ? &call->freed : &call->owner, call->bytes[i]);
	}
	text_end_sentence(&text, call->error ? TEXT_BAD : TEXT_PLAIN, 0);
	if (text.column)
		text_end_line(&text);
	if (stacks && stack->frame_count)
		text_stack(&text, stack, NULL, TEXT_LINE_INDENT, &marks);
	return text_end(&text) ? NULL : &error_no_memory;
}
