// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/cfi-index.h"

#include <dwarf.h>
#include <stdlib.h>

#define HEADER_VERSION 1
#define ENTRY_BYTES_MIN 12 /* length, CIE, and the shortest start and length of code */

static int compare_entries(const void *left, const void *right)
{
	const struct cfi_index_entry *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	/* Of two entries for one address the first in the section holds. */
	return a->offset > b->offset ? -1 : a->offset < b->offset;
}

static void sort(struct cfi_index *index)
{
	struct cfi_index_entry *entries = index->entries.items;
	size_t count = index->entries.count;

	for (size_t i = 1; i < count; i++) {
		if (compare_entries(&entries[i - 1], &entries[i]) > 0) {
			qsort(entries, count, sizeof(*entries), compare_entries);
			return;
		}
	}
}

/*
 * As every linker writes it: pairs of 4 bytes from the header's place. False: it is none, or out of memory. A file with
 * holes has any number of pairs for nothing: there are no more than entries can be, and none is the one before again.
 */
static bool read_header(const struct cfi_section *section, struct cfi_index *index)
{
	struct bytes bytes = bytes_over(section->header, section->header_size);
	struct cfi_index_entry last = {0};
	uint64_t count;

	if (bytes_u8(&bytes) != HEADER_VERSION)
		return false;
	bytes_skip(&bytes, 1); /* format of the section's address */
	if (bytes_u8(&bytes) != DW_EH_PE_udata4 || bytes_u8(&bytes) != (DW_EH_PE_datarel | DW_EH_PE_sdata4))
		return false;
	bytes_skip(&bytes, 4);
	count = bytes_u32(&bytes);
	if (!bytes_ok(&bytes) || !count || count > bytes_left(&bytes) / 8 || section->size >= CFI_SECTION_MAX ||
	    count > section->size / ENTRY_BYTES_MIN)
		return false;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t start = section->header_address + (uint64_t)(int32_t)bytes_u32(&bytes);
		uint64_t place = section->header_address + (uint64_t)(int32_t)bytes_u32(&bytes);
		struct cfi_index_entry entry = {.start = start, .offset = (uint32_t)(place - section->address)};

		if (place - section->address >= section->size || (i && !compare_entries(&last, &entry)) ||
		    !vector_push(&index->entries, entry))
			return false;
		last = entry;
	}
	index->from_header = true;
	return true;
}

bool cfi_index_scan(const struct cfi_section *section, struct cfi_index *index)
{
	struct cfi_cies cies = {0};
	size_t offset;

	index->entries.count = 0;
	index->from_header = false;
	for (size_t position = 0; cfi_entries_next(section, &position, &offset);) {
		struct cfi_fde fde;

		if (cfi_entries_fde(section, &cies, offset, &fde) &&
		    !vector_push(&index->entries,
				 ((struct cfi_index_entry){.start = fde.start, .offset = (uint32_t)offset}))) {
			index->entries.count = 0; /* not sorted */
			return false;
		}
	}
	sort(index);
	return true;
}

bool cfi_index_create(const struct cfi_section *section, struct cfi_index *index)
{
	*index = (struct cfi_index){0};
	if (!section->header_size || !read_header(section, index))
		return cfi_index_scan(section, index);
	sort(index);
	return true;
}

void cfi_index_deinit(struct cfi_index *index)
{
	vector_deinit(&index->entries);
}

size_t cfi_index_up_to(const struct cfi_index *index, uint64_t address)
{
	const struct cfi_index_entry *entries = index->entries.items;
	size_t low = 0, high = index->entries.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (entries[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
