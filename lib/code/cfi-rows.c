// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/cfi-rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/vector.h"
#include "code/cfi-machine.h"

#define NO_ROW 0	  /* kind of a gap; the others are one more than an index */
#define KINDS_MAX 0xffffu /* distinct rows */
#define LISTS_MAX 0xffffu /* distinct lists of rules */
#define STARTS_MAX (1u << 26)

/* Addresses with equal upper halves. */
struct page {
	uint64_t base; /* lower half 0 */
	size_t first;  /* index of its first start */
};

/* As a row, with numbers in place of pointers. */
struct row_key {
	int32_t cfa_offset;
	uint8_t cfa_kind, cfa_register, plt_threshold, return_column, signal_frame;
	uint8_t unused[3];
	uint32_t list;
};

struct cfi_rows {
	struct page *pages;
	size_t page_count;
	uint32_t *starts; /* lower halves; ascending in each page */
	uint16_t *kinds;
	size_t count;
	struct cfi_row *distinct;
	size_t distinct_count;
	struct cfi_rule *rules; /* the lists, one after the other */
	size_t rule_count;
	struct cfi_expression *expressions;
	size_t expression_count;
	uint8_t *expression_bytes;
	size_t expression_size;
	size_t entry_count, described_count;
};

struct builder {
	const struct cfi_section *section;
	struct cfi_entries entries;
	struct cfi_machine machine;
	VECTOR(struct cfi_state) initial; /* by CIE */
	VECTOR(uint8_t) runs; /* by CIE: whether `initial` is known: 0 not yet, 1 yes, 2 it makes no sense */
	struct intern expressions, lists, kinds;
	uint32_t list; /* of the machine's rules, as long as they do not change */
	VECTOR(struct page) pages;
	VECTOR(uint32_t) starts;
	VECTOR(uint16_t) row_kinds;
	uint64_t covered; /* where the last row ends */
	size_t described_count;
	bool no_memory;
};

static void builder_deinit(struct builder *builder)
{
	cfi_entries_deinit(&builder->entries);
	cfi_machine_deinit(&builder->machine);
	vector_deinit(&builder->initial);
	vector_deinit(&builder->runs);
	intern_deinit(&builder->expressions);
	intern_deinit(&builder->lists);
	intern_deinit(&builder->kinds);
	vector_deinit(&builder->pages);
	vector_deinit(&builder->starts);
	vector_deinit(&builder->row_kinds);
}

static void cleanup_builder(struct builder *builder)
{
	builder_deinit(builder);
}

void cfi_rows_destroy(struct cfi_rows *rows)
{
	if (!rows)
		return;
	free(rows->pages);
	free(rows->starts);
	free(rows->kinds);
	free(rows->distinct);
	free(rows->rules);
	free(rows->expressions);
	free(rows->expression_bytes);
	free(rows);
}

/* ---- building ---- */

static int compare_fdes(const void *left, const void *right)
{
	const struct cfi_fde *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	/* Of two entries for one address the first holds: it sorts last, and so the other becomes empty. */
	return a->instructions_offset > b->instructions_offset ? -1 : a->instructions_offset < b->instructions_offset;
}

static uint32_t intern_rules(struct builder *builder)
{
	const struct cfi_state *state = &builder->machine.state;
	struct cfi_rule list[CFI_REGISTERS];
	size_t count = 0;
	uint32_t id;

	if (!builder->machine.rules_changed)
		return builder->list;
	for (unsigned i = 0; i < CFI_REGISTERS; i++) {
		if (state->specified >> i & 1)
			list[count++] = state->rules[i];
	}
	id = intern_find(&builder->lists, list, count * sizeof(*list));
	if (id == INTERN_NONE && builder->lists.count < LISTS_MAX) {
		id = intern_put(&builder->lists, list, count * sizeof(*list));
		builder->no_memory |= id == INTERN_NONE;
	}
	builder->list = id;
	builder->machine.rules_changed = false;
	return id;
}

/* Kind of the row in force; NO_ROW: it cannot be kept. */
static uint16_t intern_row(struct builder *builder)
{
	const struct cfi_state *state = &builder->machine.state;
	const struct cfi_cie *cie = builder->machine.cie;
	struct row_key key = {.cfa_kind = state->cfa_kind,
			      .cfa_register = state->cfa_register,
			      .plt_threshold = state->plt_threshold,
			      .return_column = cie->return_column,
			      .signal_frame = cie->signal_frame,
			      .cfa_offset = (int32_t)state->cfa_offset};
	uint32_t id;

	key.list = intern_rules(builder);
	if (key.list == INTERN_NONE || state->cfa_offset != key.cfa_offset)
		return NO_ROW;
	id = intern_find(&builder->kinds, &key, sizeof(key));
	if (id == INTERN_NONE && builder->kinds.count < KINDS_MAX - 1) {
		id = intern_put(&builder->kinds, &key, sizeof(key));
		builder->no_memory |= id == INTERN_NONE;
	}
	return id == INTERN_NONE ? NO_ROW : (uint16_t)(id + 1);
}

/* From `start` on `kind` holds; false: out of memory. */
static bool begin_row(struct builder *builder, uint64_t start, uint16_t kind)
{
	uint64_t base = start & ~(uint64_t)UINT32_MAX;
	size_t count = builder->starts.count;
	bool new_page = !builder->pages.count || builder->pages.items[builder->pages.count - 1].base != base;

	if (count >= STARTS_MAX)
		return true;
	/* What would come behind the last one is not described: no row may seem to go on there. */
	if (count == STARTS_MAX - 1)
		kind = NO_ROW;
	if (new_page && !vector_push(&builder->pages, ((struct page){.base = base, .first = count})))
		return false;
	if (!new_page && builder->row_kinds.items[count - 1] == kind)
		return true;
	return vector_push(&builder->starts, (uint32_t)start) && vector_push(&builder->row_kinds, kind);
}

static bool add_row(struct builder *builder, uint64_t start, uint64_t end, uint16_t kind)
{
	builder->described_count += kind != NO_ROW;
	if (start != builder->covered && builder->starts.count && !begin_row(builder, builder->covered, NO_ROW))
		return false;
	builder->covered = end;
	return begin_row(builder, start, kind);
}

/* The state that the entries of a CIE begin with; false: there is none. */
static bool enter_cie(struct builder *builder, uint32_t index)
{
	struct cfi_machine *machine = &builder->machine;

	machine->cie = &builder->entries.cies.items[index];
	if (!builder->runs.items[index]) {
		builder->runs.items[index] = cfi_machine_run_cie(machine) ? 1 : 2;
		builder->initial.items[index] = machine->state;
	}
	machine->state = machine->initial = builder->initial.items[index];
	machine->saved.count = 0;
	machine->rules_changed = true;
	return builder->runs.items[index] == 1;
}

/* False: out of memory. */
static bool compile_fde(struct builder *builder, const struct cfi_fde *fde, uint64_t limit)
{
	struct cfi_machine *machine = &builder->machine;
	struct bytes instructions =
	    bytes_over(builder->section->bytes + fde->instructions_offset, fde->instructions_size);
	uint64_t last = fde->start | UINT32_MAX; /* no function lies on both sides of 4 GiB */
	uint64_t end = fde->end < limit ? fde->end : limit;
	enum cfi_machine_step step;

	end = end > last ? last : end;
	if (!enter_cie(builder, fde->cie))
		return !machine->no_memory;
	machine->location = fde->start;
	do {
		uint64_t next = end;

		step = cfi_machine_run(machine, &instructions, &next);
		if (step == CFI_MACHINE_FAILED)
			return !machine->no_memory;
		next = next < end ? next : end;
		if (!add_row(builder, machine->location, next, intern_row(builder)))
			return false;
		machine->location = next;
	} while (step == CFI_MACHINE_ROW && machine->location < end && !builder->no_memory);
	return !builder->no_memory;
}

static bool compile(struct builder *builder)
{
	struct cfi_entries *entries = &builder->entries;
	size_t count;

	builder->machine.section = builder->section;
	builder->machine.expressions = &builder->expressions;
	if (!cfi_entries_read(builder->section, entries))
		return false;
	for (size_t i = 0; i < entries->cies.count; i++) {
		if (!vector_append(&builder->initial) || !vector_append(&builder->runs))
			return false;
	}
	count = entries->fdes.count;
	if (count)
		qsort(entries->fdes.items, count, sizeof(*entries->fdes.items), compare_fdes);
	for (size_t i = 0; i < count; i++) {
		const struct cfi_fde *fde = &entries->fdes.items[i];
		uint64_t limit = i + 1 < count ? fde[1].start : UINT64_MAX;

		if (limit > fde->start && !compile_fde(builder, fde, limit))
			return false;
	}
	return !builder->starts.count || begin_row(builder, builder->covered, NO_ROW);
}

/* ---- the finished table ---- */

/* An exact copy of `count` elements; NULL: out of memory. */
static void *copy_items(const void *items, size_t count, size_t size)
{
	void *copy = calloc(count ? count : 1, size);

	if (copy && count)
		memcpy(copy, items, count * size);
	return copy;
}

static bool copy_expressions(const struct intern *expressions, struct cfi_rows *rows)
{
	size_t size, offset = 0;

	for (uint32_t i = 0; i < expressions->count; i++) {
		(void)intern_get(expressions, i, &size);
		rows->expression_size += size;
	}
	rows->expression_count = expressions->count;
	rows->expressions = calloc(expressions->count + 1, sizeof(*rows->expressions));
	rows->expression_bytes = malloc(rows->expression_size + 1);
	if (!rows->expressions || !rows->expression_bytes)
		return false;
	for (uint32_t i = 0; i < expressions->count; i++) {
		const void *bytes = intern_get(expressions, i, &size);

		memcpy(rows->expression_bytes + offset, bytes, size);
		rows->expressions[i] = (struct cfi_expression){.bytes = rows->expression_bytes + offset, .size = size};
		offset += size;
	}
	return true;
}

/* *offsets_ret: where each list begins; to be freed. */
static bool copy_rules(const struct intern *lists, struct cfi_rows *rows, size_t **offsets_ret)
{
	size_t *offsets = calloc(lists->count + 1, sizeof(*offsets));
	size_t size;

	*offsets_ret = offsets;
	if (!offsets)
		return false;
	for (uint32_t i = 0; i < lists->count; i++) {
		(void)intern_get(lists, i, &size);
		offsets[i + 1] = offsets[i] + size / sizeof(struct cfi_rule);
	}
	rows->rule_count = offsets[lists->count];
	rows->rules = calloc(rows->rule_count + 1, sizeof(*rows->rules));
	if (!rows->rules)
		return false;
	for (uint32_t i = 0; i < lists->count; i++) {
		const void *list = intern_get(lists, i, &size);

		memcpy(rows->rules + offsets[i], list, size);
	}
	return true;
}

static bool has_expressions(const struct cfi_row *row)
{
	if (row->cfa_kind == CFI_CFA_EXPRESSION)
		return true;
	for (unsigned i = 0; i < row->rule_count; i++) {
		if (row->rules[i].kind == CFI_RULE_EXPRESSION || row->rules[i].kind == CFI_RULE_VALUE_EXPRESSION)
			return true;
	}
	return false;
}

static bool copy_distinct(const struct builder *builder, struct cfi_rows *rows)
{
	CLEANUP(free) size_t *offsets = NULL;

	if (!copy_expressions(&builder->expressions, rows) || !copy_rules(&builder->lists, rows, &offsets))
		return false;
	rows->distinct_count = builder->kinds.count;
	rows->distinct = calloc(rows->distinct_count + 1, sizeof(*rows->distinct));
	if (!rows->distinct)
		return false;
	for (uint32_t i = 0; i < rows->distinct_count; i++) {
		const struct row_key *key = intern_get(&builder->kinds, i, NULL);

		rows->distinct[i] = (struct cfi_row){
		    .rules = rows->rules + offsets[key->list],
		    .expressions = rows->expressions,
		    .cfa_offset = key->cfa_offset,
		    .cfa_kind = key->cfa_kind,
		    .cfa_register = key->cfa_register,
		    .plt_threshold = key->plt_threshold,
		    .rule_count = (uint8_t)(offsets[key->list + 1] - offsets[key->list]),
		    .return_column = key->return_column,
		    .signal_frame = key->signal_frame,
		};
		rows->distinct[i].has_expressions = has_expressions(&rows->distinct[i]);
	}
	return true;
}

static bool copy_table(const struct builder *builder, struct cfi_rows *rows)
{
	rows->page_count = builder->pages.count;
	rows->count = builder->row_kinds.count;
	rows->pages = copy_items(builder->pages.items, rows->page_count, sizeof(*rows->pages));
	rows->starts = copy_items(builder->starts.items, rows->count, sizeof(*rows->starts));
	rows->kinds = copy_items(builder->row_kinds.items, rows->count, sizeof(*rows->kinds));
	rows->entry_count = builder->entries.fdes.count;
	rows->described_count = builder->described_count;
	return rows->pages && rows->starts && rows->kinds && copy_distinct(builder, rows);
}

struct mmt_error *cfi_rows_create(const struct cfi_section *section, struct cfi_rows **rows_ret)
{
	CLEANUP(builder) struct builder builder = {.section = section};
	struct cfi_rows *rows;

	if (!compile(&builder))
		return &error_no_memory;
	rows = calloc(1, sizeof(*rows));
	if (!rows || !copy_table(&builder, rows)) {
		cfi_rows_destroy(rows);
		return &error_no_memory;
	}
	*rows_ret = rows;
	return NULL;
}

/* The last page whose addresses begin at or below `address`; NULL: none holds it. */
static const struct page *find_page(const struct cfi_rows *rows, uint64_t address)
{
	uint64_t base = address & ~(uint64_t)UINT32_MAX;
	size_t low = 0, high = rows->page_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (rows->pages[middle].base <= base)
			low = middle + 1;
		else
			high = middle;
	}
	return low && rows->pages[low - 1].base == base ? &rows->pages[low - 1] : NULL;
}

static size_t page_end(const struct cfi_rows *rows, const struct page *page)
{
	return page + 1 < rows->pages + rows->page_count ? page[1].first : rows->count;
}

const struct cfi_row *cfi_rows_find(const struct cfi_rows *rows, uint64_t address)
{
	const struct page *page = find_page(rows, address);
	const uint32_t *starts = rows->starts;
	uint32_t wanted = (uint32_t)address;
	size_t low, count;

	if (!page || starts[page->first] > wanted)
		return NULL;
	low = page->first;
	count = page_end(rows, page) - low;
	while (count > 1) {
		size_t half = count / 2;

		low += starts[low + half] <= wanted ? half : 0;
		count -= half;
	}
	return rows->kinds[low] == NO_ROW ? NULL : &rows->distinct[rows->kinds[low] - 1];
}

bool cfi_rows_next(const struct cfi_rows *rows, size_t *position, uint64_t *start_ret, uint64_t *end_ret,
		   const struct cfi_row **row_ret)
{
	size_t index = (*position)++;
	size_t page = 0;

	if (index >= rows->count)
		return false;
	while (page + 1 < rows->page_count && rows->pages[page + 1].first <= index)
		page++;
	*start_ret = rows->pages[page].base | rows->starts[index];
	*end_ret = rows->pages[page].base | UINT32_MAX;
	if (index + 1 < page_end(rows, &rows->pages[page]))
		*end_ret = rows->pages[page].base | rows->starts[index + 1];
	*row_ret = rows->kinds[index] == NO_ROW ? NULL : &rows->distinct[rows->kinds[index] - 1];
	return true;
}

struct cfi_rows_size cfi_rows_size(const struct cfi_rows *rows)
{
	return (struct cfi_rows_size){
	    .entries = rows->entry_count,
	    .rows = rows->described_count,
	    .distinct = rows->distinct_count,
	    .bytes = sizeof(*rows) + rows->page_count * sizeof(*rows->pages) +
		     rows->count * (sizeof(*rows->starts) + sizeof(*rows->kinds)) +
		     rows->distinct_count * sizeof(*rows->distinct) + rows->rule_count * sizeof(*rows->rules) +
		     rows->expression_count * sizeof(*rows->expressions) + rows->expression_size,
	};
}
