// SPDX-License-Identifier: LGPL-2.1-or-later
/* The frames of one stack, and what explains their marks. */
#include "output/text/text-parts.h"

#include <inttypes.h>

#include "base/strings.h"

#define FOLD_MIN 4	    /* frames: a shorter run is shown */
#define FUNCTION_COLUMNS 48 /* a longer name moves only its own module to the right */
#define MODULE_COLUMNS 32
#define MODULE_COLUMNS_MIN 8	/* with less room, none is shown */
#define FUNCTION_COLUMNS_MIN 30 /* names are not cut further, unless the terminal is narrower */
#define OUTERMOST_KEPT 2	/* frames shown after a cut */

struct gap {
	size_t first, last;
};

enum line_kind { LINE_FRAME, LINE_RUNTIME, LINE_INTERPRETER, LINE_LIBRARY };

/* A line shows the first of its frames, or replaces all of them. */
struct line {
	enum line_kind kind;
	size_t first, frames;
	bool shown;
};

/* Consecutive frames of an interpreter; those from `folded` on are folded. */
struct interpreter_run {
	size_t first, folded, last;
};

struct layout {
	unsigned indent, function_columns, module_columns;
	struct interpreter_run run; /* the one that was looked at last */
	struct gap outer;	    /* runtime frames that are folded although they have names */
	VECTOR(struct line) lines;
	size_t shown, own; /* lines; the one of the program's own function */
};

/* The longest run of runtime frames outside the JIT frames, which only shows how the runtime started the code. Runtime
 * frames that map memory, or that are between two JIT frames, are not folded, because they are relevant. */
static struct gap find_outer_run(const struct mmt_row *row)
{
	struct gap longest = {0}, run = {0};
	size_t jit_end = 0;

	for (size_t i = 0; i < row->frame_count; i++)
		if (row->frames[i]->kind == MMT_FRAME_JIT)
			jit_end = i + 1;
	if (!jit_end)
		return longest;
	for (size_t i = jit_end; i < row->frame_count; i++) {
		if (!mmt_frame_is_runtime(row->frames[i])) {
			run.first = run.last = i + 1;
			continue;
		}
		if (run.last != i || run.first == run.last)
			run.first = i;
		run.last = i + 1;
		if (run.last - run.first > longest.last - longest.first)
			longest = run;
	}
	return longest.last - longest.first >= FOLD_MIN ? longest : (struct gap){0};
}

#define INTERPRETER_KEPT                                                                                               \
	2 /* frames of a run that calls a function of the program, which show what that function does */

/* Fold what runs the program's functions, and keep what they call. Without symbols, where that begins is only known
 * from the names of what they call. */
static size_t find_interpreter_fold(const struct mmt_row *row, const struct interpreter_run *run)
{
	bool is_called = run->last < row->frame_count && row->frames[run->last]->kind == MMT_FRAME_JIT;
	bool is_loop = false, named = false;
	size_t place = run->first;

	if (place && row->frames[place - 1]->kind == MMT_FRAME_JIT)
		return place;
	for (; place < run->last; place++) {
		(void)mmt_frame_is_interpreter(row->frames[place], &is_loop);
		if (is_loop || (named && !row->frames[place]->function))
			break;
		named |= row->frames[place]->function != NULL;
	}
	return is_called && place > run->first + INTERPRETER_KEPT ? run->first + INTERPRETER_KEPT : place;
}

/* The run that a frame is in; empty: it is not the interpreter's. */
static const struct interpreter_run *find_interpreter_run(const struct mmt_row *row, struct layout *layout,
							  size_t place)
{
	struct interpreter_run *run = &layout->run;

	if (place >= run->first && place < run->last)
		return run;
	*run = (struct interpreter_run){.first = place, .last = place};
	while (run->last < row->frame_count && mmt_frame_is_interpreter(row->frames[run->last], NULL))
		run->last++;
	while (run->first && run->last > place && mmt_frame_is_interpreter(row->frames[run->first - 1], NULL))
		run->first--;
	run->folded = find_interpreter_fold(row, run);
	return run;
}

/* A frame, and those of the interpreter between two functions of the program, which only show that it runs them. */
static struct line line_of_frame(const struct mmt_row *row, struct layout *layout, size_t first)
{
	struct line line = {.kind = LINE_FRAME, .frames = 1};
	const struct interpreter_run *run;

	if (row->frames[first]->kind != MMT_FRAME_JIT || first + 1 >= row->frame_count)
		return line;
	run = find_interpreter_run(row, layout, first + 1);
	if (run->last < row->frame_count && row->frames[run->last]->kind == MMT_FRAME_JIT)
		line.frames += run->last - run->first;
	return line;
}

/* The line that begins with this frame. Runtime frames without a name are always folded; so are the allocators of C++
 * and Rust below the program's function, except the outermost, which it calls. */
static struct line line_at(const struct mmt_row *row, struct layout *layout, size_t first)
{
	const struct interpreter_run *run = find_interpreter_run(row, layout, first);
	size_t last = first;

	if (run->last > first)
		return first >= run->folded && first + 1 < run->last
			   ? (struct line){.kind = LINE_INTERPRETER, .frames = run->last - first}
			   : line_of_frame(row, layout, first);
	if (first == layout->outer.first && layout->outer.last > first)
		return (struct line){.kind = LINE_RUNTIME, .frames = layout->outer.last - first};
	while (last < row->origin && last < row->frame_count && mmt_frame_is_language_library(row->frames[last]))
		last++;
	if (last - first >= FOLD_MIN)
		return (struct line){.kind = LINE_LIBRARY, .frames = last - first - 1};
	last = first;
	while (last < row->frame_count && last != layout->outer.first && !row->frames[last]->function &&
	       mmt_frame_is_runtime(row->frames[last]))
		last++;
	return last - first >= FOLD_MIN ? (struct line){.kind = LINE_RUNTIME, .frames = last - first}
					: line_of_frame(row, layout, first);
}

/* The innermost frame of the program itself: of JIT code or, without any, of the file that the outermost frames are of,
 * the C library apart. The count of frames: not known, or the runtime is all there is. */
static size_t find_own(const struct mmt_row *row)
{
	static const char *const c_library[] = {"libc.so",    "libc-2.",  "libc.musl",
						"libpthread", "ld-linux", "ld-musl"};
	const char *module = NULL, *own;

	for (size_t i = 0; i < row->frame_count; i++) {
		if (row->frames[i]->kind == MMT_FRAME_JIT && row->frames[i]->function)
			return i;
	}
	for (size_t i = row->frame_count; i-- && !module;) {
		if (mmt_frame_is_runtime(row->frames[i]))
			return row->frame_count;
		own = row->frames[i]->kind == MMT_FRAME_NATIVE ? row->frames[i]->module : NULL;
		if (own && !array_find(start, c_library, sizeof(c_library) / sizeof(*c_library), starts_with(own, *start)))
			module = own;
	}
	for (size_t i = 0; module && i < row->frame_count; i++) {
		if (row->frames[i]->module && !strcmp(row->frames[i]->module, module))
			return i;
	}
	return row->frame_count;
}

/* The frame of the function that the table of causes names. */
static size_t find_named(const struct mmt_row *row, const char *name)
{
	for (size_t i = row->origin; name && i < row->frame_count; i++) {
		const char *function = row->frames[i]->function;

		if (function && starts_with(name, function) &&
		    (!name[strlen(function)] || starts_with(name + strlen(function), " (")))
			return i;
	}
	return row->frame_count;
}

/* The line of a frame; the number of lines: there is none. */
static size_t find_line(const struct layout *layout, size_t frame)
{
	size_t line = 0;

	while (line < layout->lines.count &&
	       layout->lines.items[line].first + layout->lines.items[line].frames <= frame)
		line++;
	return line;
}

/* Show the lines from `first` on, outwards or inwards, unless there are too many. */
static void show(struct layout *layout, size_t first, int step, size_t count, size_t limit)
{
	for (; count-- && first < layout->lines.count && layout->shown < limit; first += (size_t)step) {
		layout->shown += !layout->lines.items[first].shown;
		layout->lines.items[first].shown = true;
	}
}

/* Of too many lines, show those that name the program's own function, and their neighbours: allocators, databases and
 * runtimes have so many frames of their own that others would hide the program. */
static void choose_lines(const struct mmt_row *row, const char *named, size_t limit, struct layout *layout)
{
	size_t count = layout->lines.count, origin = find_line(layout, row->origin), own_frame = find_own(row);
	size_t own = find_line(layout, own_frame), outermost = limit > 4 * OUTERMOST_KEPT ? OUTERMOST_KEPT : 0;

	origin = origin < count ? origin : 0;
	if (own == count || (own < origin && row->frames[own_frame]->kind == MMT_FRAME_NATIVE))
		own = origin;
	layout->own = own;
	if (count <= limit + (outermost > 0))
		limit = count;
	show(layout, find_line(layout, find_named(row, named)), 1, 1, limit);
	show(layout, origin, 1, 1, limit);
	show(layout, own, 1, 2, limit);
	show(layout, count - 1, -1, outermost, limit);
	show(layout, own - 1, -1, own > FOLD_MIN ? 1 : own, limit);
	show(layout, own, 1, count, own == origin ? limit : limit / 2 + 2);
	/* The line that replaces a single one is as long. */
	for (size_t i = 1; i + 1 < count; i++) {
		if (layout->lines.items[i - 1].shown && layout->lines.items[i + 1].shown)
			show(layout, i, 1, 1, limit);
	}
	show(layout, own == origin ? own : 0, own == origin ? -1 : 1, count, limit);
	if (count > 1 && layout->lines.items[1].shown)
		layout->lines.items[0].shown = true;
}

/* The name where the module has a separate column. */
static const char *frame_name(const struct mmt_frame *frame, char room[64])
{
	if (frame->function)
		return frame->function;
	if (frame->kind == MMT_FRAME_NATIVE && frame->module)
		snprintf(room, 64, "+0x%" PRIx64, frame->module_offset);
	else
		snprintf(room, 64, "0x%" PRIx64, frame->address);
	return room;
}

const char *text_frame_name(const struct mmt_frame *frame, char room[TEXT_FRAME_NAME_BYTES])
{
	char offset[64];

	if (frame->function)
		return frame->function;
	snprintf(room, TEXT_FRAME_NAME_BYTES, "%s%s",
		 frame->kind == MMT_FRAME_NATIVE && frame->module ? frame->module : "", frame_name(frame, offset));
	return room;
}

/* "   main.c:18 (inlined)" */
static unsigned source_columns(const struct text *text, const struct mmt_frame *frame)
{
	const char *path = frame->source_file;
	unsigned columns = frame->inlined ? (unsigned)strlen(" (inlined)") + (path ? 0 : 2) : 0;
	char line[16] = "";

	if (path && frame->source_line)
		snprintf(line, sizeof(line), ":%" PRIu32, frame->source_line);
	return columns + (path ? 3 + text_name_columns(text, path_file_name(path)) + (unsigned)strlen(line) : 0);
}

static struct layout make_layout(struct text *text, const struct mmt_row *row, const char *named, unsigned indent)
{
	struct layout layout = {.indent = indent};
	size_t limit = text->options->stack_frames;
	unsigned source_max = 0, room = text->options->width;
	char path[TEXT_FRAME_NAME_BYTES];

	if (!text->below && limit > text->room->frames)
		limit = text->room->frames;
	if (limit)
		layout.outer = find_outer_run(row);
	for (size_t frame = 0; frame < row->frame_count && !text->no_memory;) {
		struct line line = limit ? line_at(row, &layout, frame) : (struct line){.frames = 1, .shown = true};

		line.first = frame;
		frame += line.frames;
		text->no_memory |= !vector_push(&layout.lines, line);
	}
	if (limit)
		choose_lines(row, named, limit, &layout);
	array_each(line, layout.lines.items, layout.lines.count) {
		const struct mmt_frame *frame = row->frames[line->first];
		unsigned source = source_columns(text, frame);
		unsigned name = text_name_columns(text, text_frame_name(frame, path)) + (frame->doubtful ? 2 : 0);
		unsigned module = frame->module ? text_name_columns(text, frame->module) : 0;

		if (line->kind != LINE_FRAME || !line->shown)
			continue;
		if (name > layout.function_columns && name <= FUNCTION_COLUMNS)
			layout.function_columns = name;
		if (module > layout.module_columns && module <= MODULE_COLUMNS)
			layout.module_columns = module;
		if (source > source_max && source <= MODULE_COLUMNS)
			source_max = source;
	}
	indent += 3 + layout.module_columns + source_max;
	if (room && layout.function_columns + indent > room)
		layout.function_columns = room > indent + FUNCTION_COLUMNS_MIN ? room - indent : FUNCTION_COLUMNS_MIN;
	return layout;
}

/* Where there is no room for it in its column, the source stands behind the module, or nowhere. */
static void put_source(struct text *text, const struct mmt_frame *frame, unsigned column)
{
	unsigned columns = source_columns(text, frame), width = text->options->width;

	if (column < text->column || (width && column + columns > width))
		column = text->column;
	if (!columns || (width && column + columns > width))
		return;
	text_pad_to(text, column);
	if (frame->source_file) {
		text_put(text, TEXT_PLAIN, "   ");
		text_put_name(text, TEXT_PLAIN, path_file_name(frame->source_file), 0);
		if (frame->source_line)
			text_format(text, TEXT_PLAIN, ":%" PRIu32, frame->source_line);
	}
	if (frame->inlined)
		text_put(text, TEXT_FAINT, frame->source_file ? " (inlined)" : "   (inlined)");
}

static void put_frame(struct text *text, const struct mmt_frame *frame, const struct layout *layout)
{
	enum text_style style = frame->kind == MMT_FRAME_NATIVE || frame->function ? TEXT_PLAIN : TEXT_FAINT;
	bool prefixed = !frame->function && frame->kind == MMT_FRAME_NATIVE && frame->module;
	unsigned width = text->options->width, column = layout->indent + layout->function_columns, offset;
	unsigned used = (frame->module ? text_name_columns(text, frame->module) + 3 : 0) + source_columns(text, frame);
	unsigned left, columns;
	char room[64];

	text_pad_to(text, layout->indent);
	if (frame->doubtful)
		text_put(text, TEXT_BAD, "? ");
	offset = text_name_columns(text, frame_name(frame, room));
	if (prefixed)
		text_put_name(text, TEXT_FAINT, frame->module,
			      width > text->column + offset ? width - text->column - offset : 0);
	left = width > text->column + 4 ? width - text->column : 4;
	/* What follows the name fits on the line if the name has so many columns. */
	columns = left > used + FUNCTION_COLUMNS_MIN ? left - used
		  : left < FUNCTION_COLUMNS_MIN	     ? left
						     : FUNCTION_COLUMNS_MIN;
	text_put_name(text, style, frame_name(frame, room), prefixed || !width ? 0 : columns);
	if (frame->module && !prefixed) {
		column = (column > text->column ? column : text->column) + 3;
		if (!width || width >= column + MODULE_COLUMNS_MIN) {
			text_pad_to(text, column);
			text_put_name(text, TEXT_FAINT, frame->module, width ? width - column : 0);
		}
	}
	put_source(text, frame, layout->indent + layout->function_columns + 3 + layout->module_columns);
	text_end_line(text);
}

static void put_gap(struct text *text, size_t count, const char *what, unsigned indent)
{
	text_pad_to(text, indent);
	text_line(text, TEXT_FAINT, "... %zu %s%s", count, what, text_plural(count, "frame", "frames"));
}

static bool is_hidden(const struct line *line)
{
	return !line->shown || line->kind == LINE_LIBRARY;
}

bool text_stack_is_complete(const struct text *text, const struct mmt_row *row)
{
	return text->options->stack_frames <= text->room->frames || row->frame_count <= text->room->frames;
}

void text_stack(struct text *text, const struct mmt_row *row, const char *named, unsigned indent,
		struct text_stack_marks *marks)
{
	struct layout layout = make_layout(text, row, named, indent);
	const char *why = mmt_stack_end_name(row->stack_end);

	for (size_t i = 0; i < layout.lines.count;) {
		const struct line *line = &layout.lines.items[i];
		const struct mmt_frame *frame = row->frames[line->first];

		if (is_hidden(line)) {
			/* The lines that are not shown, as one. */
			size_t frames = 0;

			for (; i < layout.lines.count && is_hidden(&layout.lines.items[i]); i++)
				frames += layout.lines.items[i].frames;
			put_gap(text, frames, i <= layout.own ? "library " : "more ", indent);
			marks->cut = true;
			continue;
		}
		i++;
		if (line->kind != LINE_FRAME) {
			put_gap(text, line->frames, line->kind == LINE_RUNTIME ? "runtime " : "interpreter ", indent);
			marks->folded = true;
			continue;
		}
		put_frame(text, frame, &layout);
		marks->doubtful |= frame->doubtful;
		marks->unnamed |= !frame->function;
		marks->between |= line->frames > 1;
	}
	vector_deinit(&layout.lines);
	marks->ends[row->stack_end] = true;
	if (row->stack_end == MMT_STACK_END_ENTRY)
		return;
	text_pad_to(text, indent);
	if (mmt_stack_end_is_complete(row->stack_end))
		text_format(text, TEXT_FAINT, "(%s)", why);
	else
		text_format(text, TEXT_BAD,
			    row->frame_count ? "(callers beyond here are missing: %s)" : "(no stack: %s)", why);
	text_end_line(text);
}

void text_explanations_add(struct text_explanations *explanations, const struct mmt_report *report)
{
	explanations->lost_stack_dumps += report->completeness.lost_stack_dumps;
	explanations->exhausted_stacks += report->completeness.stacks_by_end[MMT_STACK_END_DUMP_EXHAUSTED];
	explanations->notes |= report->completeness.warning_count > 0;
	explanations->stacks_not_asked_for |= !report->stacks_recorded;
	explanations->no_dumps |= !report->stack_dump_bytes;
	explanations->small_dumps |= report->stack_dump_bytes && report->stack_dump_bytes < MMT_STACK_DUMP_BYTES_MAX;
	explanations->largest_dumps |= report->stack_dump_bytes >= MMT_STACK_DUMP_BYTES_MAX;
}

void text_explanations(struct text *text, const struct text_explanations *explanations)
{
	const struct text_stack_marks *marks = &explanations->marks;
	const bool *ends = marks->ends;
	bool lost = explanations->lost_stack_dumps > 0;
	bool exhausted = ends[MMT_STACK_END_DUMP_EXHAUSTED], not_recorded = ends[MMT_STACK_END_NOT_RECORDED];
	/* If a dump was lost, only a few bytes or the kernel's callchain are left: a larger dump need not help. */
	bool callchain = ends[MMT_STACK_END_CALLCHAIN], any = false;
	/* With frame pointers, the kernel's callchain continues where the dump ends. */
	bool exhausted_largest = exhausted && explanations->exhausted_stacks > explanations->lost_stack_dumps &&
				 explanations->largest_dumps && !explanations->small_dumps && !explanations->no_dumps;
	const struct {
		bool applies;
		const char *sentence;
	} lines[] = {
	    {explanations->reserved, "reserved: mapped without permissions; it uses memory only if touched before."},
	    {explanations->touched, "touched: resident at the end, and not at the start of the recording or window."},
	    {marks->doubtful,
	     "?: doubtful: no call precedes this return address, or callers before it may be missing."},
	    {marks->unnamed,
	     "file+0x... or 0x...: no symbol; debug information, or a perf map for JIT code, gives names."},
	    {marks->folded || marks->cut, "...: frames omitted; --stacks all shows every frame."},
	    {marks->between, "frames of the interpreter between two functions are omitted; --stacks all shows them."},
	    {exhausted_largest,
	     "callers missing, dump exhausted: they lie beyond the largest dump, in a deeper stack or behind a larger "
	     "array or alloca(3) of one function, as in threads of Ruby and Ada, or behind pages of such an array "
	     "that were never touched; only frame pointers in the outer "
	     "functions (-fno-omit-frame-pointer) lead there."},
	    {exhausted && !exhausted_largest && explanations->exhausted_stacks > explanations->lost_stack_dumps,
	     "callers missing, dump exhausted: record with --call-graph dwarf,65280 for deeper stacks."},
	    {ends[MMT_STACK_END_DEPTH_LIMIT],
	     "callers missing, depth limit: raise kernel.perf_event_max_stack (sysctl) before recording."},
	    {lost && (not_recorded || callchain || exhausted),
	     "callers missing, stack dumps lost: record with a larger --ring-size (-m)."},
	    {!lost && not_recorded && explanations->stacks_not_asked_for,
	     "no stack: record with a call graph (--call-graph auto)."},
	    {!lost && callchain && explanations->no_dumps,
	     "callers missing, frame-pointer chain: code without frame pointers; record with --call-graph dwarf."},
	    {!lost && callchain && !explanations->no_dumps && explanations->small_dumps,
	     "callers missing, frame-pointer chain: code without frame pointers, farther out than the stack dump "
	     "reaches; record with --call-graph dwarf,65280."},
	    {!lost && callchain && !explanations->no_dumps && !explanations->small_dumps,
	     "callers missing, frame-pointer chain: code without frame pointers, farther out than the largest stack "
	     "dump reaches; build it with -fno-omit-frame-pointer."},
	    {ends[MMT_STACK_END_OTHER_STACK],
	     "callers missing, another stack: a signal handler on an alternate stack, or a runtime that changed "
	     "stacks; the other one is not recorded."},
	    {ends[MMT_STACK_END_RETURN_PROBE],
	     "callers missing, return probe: a tool (perf, bpftrace) has one (uretprobe) on the last function."},
	    {ends[MMT_STACK_END_NO_UNWIND_DATA] || ends[MMT_STACK_END_INVALID],
	     explanations->notes ? "callers missing, no unwind data: code without unwind tables, or an ELF file that "
				   "is missing or of another build; see the notes above."
				 : "callers missing, no unwind data: code without unwind tables, or an ELF file that "
				   "is missing or of another build."},
	};

	for (size_t i = 0; i < MMT_ROW_VERDICTS + sizeof(lines) / sizeof(*lines); i++) {
		bool is_verdict = i < MMT_ROW_VERDICTS;
		const char *sentence = is_verdict ? text_verdict_meanings[i] : lines[i - MMT_ROW_VERDICTS].sentence;

		if (!sentence || !(is_verdict ? explanations->verdicts[i] : lines[i - MMT_ROW_VERDICTS].applies))
			continue;
		if (!any)
			text_end_line(text);
		any = true;
		text_put_sentence(text, TEXT_FAINT, sentence, TEXT_INDENT);
	}
}
