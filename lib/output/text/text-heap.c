// SPDX-License-Identifier: LGPL-2.1-or-later
/* Malloc heaps in words: what grew in them, in one sentence, and a table of the kinds of blocks. */
#include "output/text/text-parts.h"

#include <inttypes.h>

#include "base/strings.h"

#define KIND_SHARE 4	   /* kinds with less than 1/KIND_SHARE of the growth are only in the table */
#define KINDS_NAMED 2	   /* in the sentence */
#define KINDS_SHOWN 8	   /* in the table */
#define HEAPS_SHOWN 3	   /* with a table */
#define READ_ENOUGH 0.95   /* of a heap, so that numbers of blocks can be compared */
#define CHANGE_BYTES 65536 /* smaller ones between two recordings are not shown */
#define BLOCK_BYTES 16
#define CHUNK_BYTES_MIN 32 /* glibc's smallest block */
#define WHAT_COLUMN 38

static double share_read(const struct mmt_heap_census *census)
{
	return census->mapped_bytes ? (double)census->walked_bytes / (double)census->mapped_bytes : 1;
}

static bool is_comparable(const struct mmt_heap *heap)
{
	return share_read(heap->end) >= READ_ENOUGH && (!heap->start || share_read(heap->start) >= READ_ENOUGH);
}

static const struct mmt_heap_census *start_of(const struct mmt_heap *heap)
{
	static const struct mmt_heap_census none;

	return heap->start ? heap->start : &none;
}

static int64_t change_of(const struct mmt_heap *heap)
{
	return (int64_t)(heap->end->mapped_bytes - start_of(heap)->mapped_bytes);
}

static int64_t free_change(const struct mmt_heap *heap)
{
	return (int64_t)(mmt_heap_free_bytes(heap->end) - mmt_heap_free_bytes(start_of(heap)));
}

/* A change, or a size if the start is not known. */
static void add_bytes(struct text *text, const struct mmt_heap *heap, int64_t bytes)
{
	text_add(text, "%s", heap->start ? text_change(text, bytes) : text_bytes(text, (uint64_t)bytes));
}

/* "blocks of 928 bytes" */
static void add_blocks(struct text *text, const struct mmt_heap_kind *kind, bool one)
{
	text_add(text, "%s of %s", one ? "block" : "blocks", text_count(text, kind->smallest_bytes));
	if (kind->smallest_bytes != kind->largest_bytes)
		text_add(text, " to %s", text_count(text, kind->largest_bytes));
	text_add(text, " bytes");
}

/* "app::Session (sizeof 905 to 920, blocks of 928 bytes)" */
static void add_what(struct text *text, const struct mmt_heap_kind *kind, bool one)
{
	uint64_t size = kind->smallest_bytes;

	if (kind->content == MMT_HEAP_TYPE) {
		text_add(text, "%s (", kind->name ? kind->name : "objects");
		/* Blocks are multiples of 16 bytes, 8 of them header. What cannot be one is added to the one before. */
		if (kind->largest_bytes - size <= BLOCK_BYTES && size > CHUNK_BYTES_MIN)
			text_add(text, "sizeof %s to %s, ", text_count(text, size - 23), text_count(text, size - 8));
		add_blocks(text, kind, false);
		text_add(text, ")");
		return;
	}
	add_blocks(text, kind, one);
	if (kind->content == MMT_HEAP_TEXT)
		text_add(text, " with text");
	if (kind->content == MMT_HEAP_POINTER)
		text_add(text, " that %s with a pointer to %s+%#" PRIx64, one ? "begins" : "begin",
			 kind->name ? path_file_name(kind->name) : "a module", kind->offset);
}

static void add_table(struct text *text, const struct mmt_heap_kind *kind)
{
	text_add(text, "one block of %s", text_bytes(text, kind->end_bytes));
	if (kind->start_bytes)
		text_add(text, " (was %s)", text_bytes(text, kind->start_bytes));
	text_add(text, ", such as a vector or hash table that grew");
}

/* The kinds with most of the growth or, if less is in use, of what is gone. They are in the order of growth. */
static void add_kinds(struct text *text, const struct mmt_heap *heap)
{
	int64_t in_use = (int64_t)(heap->end->in_use_low - start_of(heap)->in_use_low);
	bool less = in_use < 0, fewer;
	uint64_t count;

	for (size_t i = 0, named = 0; i < heap->kind_count && named < KINDS_NAMED; i++) {
		const struct mmt_heap_kind *kind = &heap->kinds[less ? heap->kind_count - 1 - i : i];
		int64_t bytes = (int64_t)(kind->end_bytes - kind->start_bytes);

		if ((less ? bytes >= 0 : bytes <= 0) || magnitude_of(bytes) < magnitude_of(in_use) / KIND_SHARE)
			break;
		if ((less ? kind->end_count >= kind->start_count : kind->end_count <= kind->start_count) &&
		    !kind->is_one_block)
			continue;
		text_add(text, named++ ? ", " : ": ");
		/* "29,998 more app::Session (...)" */
		if (kind->is_one_block) {
			add_table(text, kind);
			continue;
		}
		fewer = kind->end_count < kind->start_count;
		count = fewer ? kind->start_count - kind->end_count : kind->end_count - kind->start_count;
		text_add(text, "%s %s", text_count(text, count), !heap->start ? "" : fewer ? "fewer " : "more ");
		add_what(text, kind, count == 1);
	}
}

/* Which blocks lie between free ones. */
static void add_fragmentation(struct text *text, const struct mmt_heap *heap)
{
	const struct mmt_heap_kind *most = NULL;

	if (heap->end->free_bytes < mmt_heap_free_bytes(heap->end) / 2) {
		text_add(text, " at the ends of arenas or in caches of threads");
		return;
	}
	for (size_t i = 0; i < heap->kind_count; i++) {
		if (!most || heap->kinds[i].after_free_bytes > most->after_free_bytes)
			most = &heap->kinds[i];
	}
	text_add(text, ": fragmentation");
	if (!most || most->after_free_bytes < heap->end->free_bytes / KIND_SHARE)
		return;
	if (most->after_free_count == 1) {
		text_add(text, "; a block of %s bytes keeps it apart", text_count(text, most->smallest_bytes));
		return;
	}
	text_add(text, "; %s ", text_count(text, most->after_free_count));
	add_what(text, most, false);
	text_add(text, " keep it apart");
}

static void add_heap_name(struct text *text, const char *before, const struct mmt_report *report,
			  const struct mmt_heap *heap)
{
	text_add(text, "%smalloc heap", before);
	if (report->process_count < 2)
		return;
	text_add(text, " of ");
	text_add_process(text, heap->process);
}

static void add_verdict(struct text *text, const struct mmt_heap *heap)
{
	if (heap->end->result == MMT_HEAP_DAMAGED)
		text_add(text, "; the header of the block at %#" PRIx64 " or of the next one is corrupted",
			 heap->end->stopped_at);
	if (heap->verdict == MMT_HEAP_LEVEL)
		text_add(text, "; level from the first of %s readings on", text_count(text, heap->census_count));
	else if (heap->verdict)
		text_add(text, "; %s grew in each of %s readings%s",
			 heap->verdict == MMT_HEAP_IN_USE_GROWS ? "in use" : "free",
			 text_count(text, heap->census_count),
			 heap->verdict == MMT_HEAP_IN_USE_GROWS ? ": a leak, or a cache that fills" : "");
	if (!is_comparable(heap))
		text_add(text, "; %.0f %% of it was read", share_read(heap->end) * 100);
}

/* "malloc heap +200.0 MiB: in use +7.0 MiB, free +193.0 MiB: fragmentation; ...". `since`: words behind the size. */
static void put_answer(struct text *text, const struct mmt_report *report, const struct mmt_heap *heap,
		       const char *since)
{
	int64_t low = (int64_t)(heap->end->in_use_low - start_of(heap)->in_use_high);
	int64_t high = (int64_t)(heap->end->in_use_high - start_of(heap)->in_use_low);
	int64_t free_bytes = free_change(heap), mmapped;

	add_heap_name(text, "  ", report, heap);
	if (heap == report->heaps && report->heap_count > 1)
		text_add(text, ", one of %s,", text_counted(text, report->heap_count, "heap", "heaps"));
	text_add(text, " ");
	add_bytes(text, heap, change_of(heap));
	text_add(text, "%s: in use ", since);
	add_bytes(text, heap, low);
	if (magnitude_of(high - low) > magnitude_of(high) / TEXT_NEGLIGIBLE) {
		text_add(text, " to ");
		add_bytes(text, heap, high);
	}
	text_add(text, ", free ");
	add_bytes(text, heap, free_bytes);
	if (free_bytes > 0 && change_of(heap) > 0 && free_bytes > change_of(heap) / 2)
		add_fragmentation(text, heap);
	else if (is_comparable(heap))
		add_kinds(text, heap);
	if (heap->end->trimmable_bytes > mmt_heap_free_bytes(heap->end) / TEXT_NEGLIGIBLE && free_bytes > 0 &&
	    free_bytes > change_of(heap) / TEXT_NEGLIGIBLE)
		text_add(text, "; malloc_trim(0) gives back at most %s", text_bytes(text, heap->end->trimmable_bytes));
	add_verdict(text, heap);
	/* The threshold from which blocks have mappings of their own rises when such a block is freed. */
	mmapped = (int64_t)(heap->end->mmapped_bytes - start_of(heap)->mmapped_bytes);
	if (mmapped < 0 && magnitude_of(mmapped) > magnitude_of(change_of(heap)) / KIND_SHARE)
		text_add(text, "; blocks with mappings of their own %s, which may be in the heap now",
			 text_change(text, mmapped));
	text_sentence(text, TEXT_STRONG, TEXT_INDENT, ".");
}

/* Whether the heap has a good part of the growth. */
static bool matters(const struct mmt_report *report, const struct mmt_heap *heap)
{
	uint64_t change = magnitude_of(mmt_growth_change(&report->growth)), size = magnitude_of(change_of(heap));

	return heap->start && size > report->growth.floor_bytes && size > change / TEXT_NEGLIGIBLE;
}

/* The blocks of a process that ends by itself are last counted some time before. */
static void put_answer_since_start(struct text *text, const struct mmt_report *report, const struct mmt_heap *heap)
{
	const struct mmt_growth *growth = &report->growth;
	char since[64] = "";

	if (growth->end_ns > heap->end->time_ns + (growth->end_ns - growth->start_ns) / TEXT_NEGLIGIBLE)
		snprintf(since, sizeof(since), " up to %s after the start, when it was last read",
			 text_since(text, report, heap->end->time_ns));
	put_answer(text, report, heap, since);
}

void text_heap_answer(struct text *text, const struct mmt_report *report)
{
	if (report->heap_count && report->heaps->census_count && matters(report, report->heaps))
		put_answer_since_start(text, report, report->heaps);
}

/* Why there is no answer. */
static void put_unread(struct text *text, const struct mmt_report *report, const struct mmt_heap *heap)
{
	const struct mmt_heap_census *census = heap->end;

	add_heap_name(text, "  ", report, heap);
	if (census->allocator == MMT_ALLOCATOR_OTHER)
		text_add(text, " not read: its blocks are those of %s, and mmtrace reads those of glibc.",
			 census->allocator_name);
	else
		text_add(text, " not read: %s.",
			 census->result == MMT_HEAP_UNREADABLE ? "this was not permitted"
			 : census->result == MMT_HEAP_ENDED
			     ? "the process ended, or reading took too long or was skipped"
			     : "its structure is not known");
	text_end_sentence(text, TEXT_PLAIN, TEXT_INDENT);
}

/* What is in a heap that has no part in the growth. */
static void put_state(struct text *text, const struct mmt_report *report, const struct mmt_heap *heap)
{
	uint64_t free_bytes = mmt_heap_free_bytes(heap->end);

	add_heap_name(text, "  ", report, heap);
	text_add(text, ": %s", text_bytes(text, heap->end->in_use_low));
	if (heap->end->in_use_high - heap->end->in_use_low > heap->end->in_use_high / TEXT_NEGLIGIBLE)
		text_add(text, " to %s", text_bytes(text, heap->end->in_use_high));
	text_add(text, " in use, %s free", text_bytes(text, free_bytes));
	if (free_bytes > heap->end->in_use_low)
		add_fragmentation(text, heap);
	if (heap->end->trimmable_bytes > free_bytes / 2)
		text_add(text, "; malloc_trim(0) gives back at most %s", text_bytes(text, heap->end->trimmable_bytes));
	add_verdict(text, heap);
	text_sentence(text, TEXT_PLAIN, TEXT_INDENT, ".");
}

static void put_table(struct text *text, const struct mmt_report *report, const struct mmt_heap *heap)
{
	size_t shown = smaller_of(heap->kind_count, KINDS_SHOWN);

	if (!shown)
		return;
	add_heap_name(text, "blocks in use in the ", report, heap);
	text_end_sentence(text, TEXT_STRONG, TEXT_INDENT);
	text_line(text, TEXT_FAINT, "%12s%12s%12s  what", "growth", "memory", "blocks");
	array_each(kind, heap->kinds, shown) {
		text_format(text, TEXT_STRONG, "%12s",
			    heap->start ? text_change(text, (int64_t)(kind->end_bytes - kind->start_bytes)) : "-");
		text_format(text, TEXT_PLAIN, "%12s%12s", text_bytes(text, kind->end_bytes),
			    text_count(text, kind->end_count));
		text_pad_to(text, WHAT_COLUMN);
		if (kind->is_one_block)
			add_table(text, kind);
		else
			add_what(text, kind, false);
		text_end_sentence(text, TEXT_PLAIN, WHAT_COLUMN);
	}
	if (heap->kind_count > shown)
		text_line(text, TEXT_FAINT, "  and %zu more %s (--json has all)", heap->kind_count - shown,
			  text_plural(heap->kind_count - shown, "kind", "kinds"));
}

void text_heaps(struct text *text, const struct mmt_report *report, bool that_matter)
{
	size_t count = 0;

	array_each(heap, report->heaps, report->heap_count) {
		const struct mmt_heap_census *census = heap->end;
		/* A process that has ended is no surprise, nor one without a heap. */
		bool expected = census->result == MMT_HEAP_ENDED
				    ? heap->process->ended
				    : census->result == MMT_HEAP_NOT_WALKED && census->allocator == MMT_ALLOCATOR_NONE;

		if ((!heap->census_count && expected) || count++ >= HEAPS_SHOWN ||
		    (heap->census_count && matters(report, heap)) != that_matter)
			continue;
		text_end_line(text);
		/* The answer of the first heap stands above. */
		if (!heap->census_count)
			put_unread(text, report, heap);
		else if (!that_matter)
			put_state(text, report, heap);
		else if (heap != report->heaps)
			put_answer_since_start(text, report, heap);
		if (heap->census_count)
			put_table(text, report, heap);
	}
	if (!that_matter && count > HEAPS_SHOWN)
		text_line(text, TEXT_FAINT, "  and %zu more %s (--json has all)", count - HEAPS_SHOWN,
			  text_plural(count - HEAPS_SHOWN, "heap", "heaps"));
}

void text_diff_heaps(struct text *text, const struct mmt_diff *diff, bool blocks)
{
	array_each(heap, diff->heaps, smaller_of(diff->heap_count, HEAPS_SHOWN)) {
		if (magnitude_of(change_of(heap)) < CHANGE_BYTES && magnitude_of(free_change(heap)) < CHANGE_BYTES)
			continue;
		if (!blocks) {
			put_answer(text, diff->after, heap,
				   " from the last reading of the first recording to that of the second");
			continue;
		}
		text_end_line(text);
		put_table(text, diff->after, heap);
	}
}
