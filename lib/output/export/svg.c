// SPDX-License-Identifier: LGPL-2.1-or-later
/* A flame graph as a picture: the process below, then the frames from the outermost to the innermost. A box is an inner
 * svg element, which cuts off a name that does not fit. The script in html/page/boxes.svg enlarges and searches. */
#include <inttypes.h>
#include <mmtrace/output.h>

#include "base/vector.h"
#include "output/escape.h"
#include "output/export/export-report.h"
#include "output/html/page.h"

#define WIDTH 1200
#define WIDTH_MIN 0.4  /* of a box: narrower ones are left out */
#define WIDTH_NAMED 25 /* of a box with its name */
#define ROW 19
#define TOP 30 /* for the title and the search */
#define HUES 360
#define HUE_NONE HUES

/* Equal frames are one box if their callers are. */
struct svg_frame {
	uint32_t name, module; /* of the strings */
	uint32_t hue;
};

struct svg_stack {
	size_t first, count; /* in the frames of all stacks, the outermost first */
	uint64_t weight;
};

struct svg {
	const struct export *export;
	FILE *stream; /* NULL: only find out how many rows there are */
	struct intern strings, frames;
	VECTOR(uint32_t) path; /* ids of frames, of all stacks */
	VECTOR(struct svg_stack) stacks;
	VECTOR(uint64_t) starts; /* of the open boxes: the sum of the weights before each */
	uint64_t total;		 /* weight */
	size_t rows;
};

/* U+FFFE and U+FFFF are valid UTF-8, but not in XML. */
static void put_text(const char *text, FILE *stream)
{
	struct escape_piece piece;

	while (escape_next(&text, ESCAPE_FOR_TERMINAL, &piece)) {
		if (piece.size == 1 && strchr("<>&\"", *piece.text))
			fprintf(stream, "&#%d;", *piece.text);
		else if (piece.size == 3 && !memcmp(piece.text, "\xef\xbf", 2) && (unsigned char)piece.text[2] >= 0xbe)
			fprintf(stream, "\\xef\\xbf\\x%02x", (unsigned char)piece.text[2]);
		else
			fwrite(piece.text, 1, piece.size, stream);
	}
}

/* As moduleColour() of the page. */
static uint32_t hue_of(const char *module)
{
	uint32_t hash = 7;

	for (; *module; module++)
		hash = (hash * 31 + (unsigned char)*module) % 997;
	return hash * 137 % HUES;
}

/* False: out of memory. */
static bool add_frame(struct svg *svg, const char *name, const struct mmt_frame *frame)
{
	const char *module = frame && frame->module ? frame->module : "";
	const struct svg_frame key = {
	    .name = intern_put_string(&svg->strings, name),
	    .module = intern_put_string(&svg->strings, module),
	    .hue = !frame || mmt_frame_is_runtime(frame) ? HUE_NONE
		   : frame->kind == MMT_FRAME_JIT	 ? HUES / 3
							 : hue_of(module),
	};
	uint32_t id = intern_put(&svg->frames, &key, sizeof(key));

	return key.name != INTERN_NONE && key.module != INTERN_NONE && id != INTERN_NONE && vector_push(&svg->path, id);
}

static bool add_stack(struct svg *svg, const struct mmt_part *sum, uint64_t weight)
{
	struct svg_stack *added = vector_append(&svg->stacks);
	struct export_stack stack;
	bool good = added != NULL;

	if (added)
		*added = (struct svg_stack){.first = svg->path.count, .weight = weight};
	export_process_name(&svg->export->report->processes[sum->process], stack.text);
	good = good && add_frame(svg, "all stacks", NULL) && add_frame(svg, stack.text, NULL);
	export_stack_begin(&stack, &svg->export->report->rows[sum->row]);
	while (good && export_stack_next(&stack))
		good = add_frame(svg, stack.name, stack.frame);
	if (good)
		added->count = svg->path.count - added->first;
	return good;
}

/* How many frames two stacks have in common, from the outermost on. */
static size_t shared_frames(const uint32_t *path, const struct svg_stack *a, const struct svg_stack *b)
{
	size_t shared = 0;

	while (shared < a->count && shared < b->count && path[a->first + shared] == path[b->first + shared])
		shared++;
	return shared;
}

/* Those with more memory are numbered first. `context`: the path. */
static int compare_stacks(const void *left, const void *right, void *context)
{
	const struct svg_stack *a = left, *b = right;
	const uint32_t *path = context;
	size_t shared = shared_frames(path, a, b);

	if (shared == a->count || shared == b->count)
		return order_of(a->count, b->count);
	return order_of(path[a->first + shared], path[b->first + shared]);
}

/* "leak (libleak.so)" */
static void put_label(const struct svg *svg, const struct svg_frame *frame)
{
	const char *module = intern_get(&svg->strings, frame->module, NULL);

	put_text(intern_get(&svg->strings, frame->name, NULL), svg->stream);
	if (!*module)
		return;
	fputs(" (", svg->stream);
	put_text(module, svg->stream);
	putc(')', svg->stream);
}

static void put_figure(const struct svg *svg, uint64_t weight)
{
	bool is_count = svg->export->weight == MMT_WEIGHT_COUNT;
	char text[MMT_SIZE_TEXT];

	fputs(is_count ? mmt_format_count(weight, text) : mmt_format_bytes(weight, text), svg->stream);
}

/* `row` counts from the outermost one. */
static void put_box(const struct svg *svg, size_t row, const struct svg_frame *frame, uint64_t start, uint64_t weight)
{
	double share = (double)weight / (double)svg->total, x = (double)start / (double)svg->total * WIDTH;

	fprintf(svg->stream, "<svg x=\"%.2f\" y=\"%zu\" width=\"%.2f\" height=\"%d\" data-d=\"%zu\"><title>", x,
		TOP + (svg->rows - row) * ROW, share * WIDTH, ROW - 1, row);
	put_label(svg, frame);
	putc('\n', svg->stream);
	put_figure(svg, weight);
	fprintf(svg->stream, ", %.1f %%</title><rect width=\"100%%\" height=\"100%%\" fill=\"", share * 100);
	if (frame->hue == HUE_NONE)
		fputs("#e6e9ed", svg->stream);
	else
		fprintf(svg->stream, "hsl(%" PRIu32 " 62%% 82%%)", frame->hue);
	fputs("\"/><text x=\"4\" y=\"13\">", svg->stream);
	if (share * WIDTH >= WIDTH_NAMED)
		put_label(svg, frame);
	fputs("</text></svg>\n", svg->stream);
}

/* End the boxes beyond the outermost `kept` of a stack; `end`: the sum of the weights so far. */
static void close_boxes(struct svg *svg, const struct svg_stack *stack, size_t kept, uint64_t end)
{
	while (svg->starts.count > kept) {
		size_t row = --svg->starts.count;
		uint64_t start = svg->starts.items[row];

		if ((double)(end - start) / (double)svg->total * WIDTH < WIDTH_MIN)
			continue;
		if (svg->stream)
			put_box(svg, row, intern_get(&svg->frames, svg->path.items[stack->first + row], NULL), start,
				end - start);
		else if (svg->rows < row)
			svg->rows = row;
	}
}

/* Stacks in their order: what neighbours share is one box. False: out of memory. */
static bool put_boxes(struct svg *svg)
{
	const struct svg_stack *previous = NULL;
	uint64_t sum = 0;

	array_each(stack, svg->stacks.items, svg->stacks.count) {
		if (previous)
			close_boxes(svg, previous, shared_frames(svg->path.items, previous, stack), sum);
		while (svg->starts.count < stack->count) {
			if (!vector_push(&svg->starts, sum))
				return false;
		}
		sum = saturating_add(sum, stack->weight, MMT_BYTES_MAX);
		previous = stack;
	}
	if (previous)
		close_boxes(svg, previous, 0, sum);
	return true;
}

struct mmt_error *export_svg(const struct export *export, FILE *stream)
{
	struct svg svg = {.export = export};
	size_t position = 0, first;
	struct mmt_part sum;
	bool good = true;
	size_t height;

	while (good && export_next(export->report, &position, &first, &sum)) {
		uint64_t weight = export_weight(&sum, export->weight);

		if (weight)
			good = add_stack(&svg, &sum, weight);
		svg.total = saturating_add(svg.total, weight, MMT_BYTES_MAX);
	}
	if (good && svg.stacks.count)
		qsort_r(svg.stacks.items, svg.stacks.count, sizeof(*svg.stacks.items), compare_stacks, svg.path.items);
	good = good && put_boxes(&svg);
	if (good) {
		svg.stream = stream;
		height = TOP + (svg.rows + 1) * ROW;
		fprintf(
		    stream,
		    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" viewBox=\"0 0 %d %zu\">\n"
		    "<title>mmtrace</title>\n",
		    WIDTH, height, WIDTH, height);
		fwrite(page_boxes, 1, page_boxes_size, stream);
		fputs("<text id=\"said\" x=\"4\" y=\"18\">", stream);
		put_text(svg.export->report->input, stream);
		fprintf(stream, ": %s ", mmt_weight_name(svg.export->weight));
		put_figure(&svg, svg.total);
		fputs("</text>\n", stream);
		good = put_boxes(&svg);
		fputs("</svg>\n", stream);
	}
	intern_deinit(&svg.strings);
	intern_deinit(&svg.frames);
	vector_deinit(&svg.path);
	vector_deinit(&svg.stacks);
	vector_deinit(&svg.starts);
	return good ? NULL : &error_no_memory;
}
