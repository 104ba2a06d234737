// SPDX-License-Identifier: LGPL-2.1-or-later
#include "support/space-calls.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "support/marks.h"
#include "support/space-valid.h"

static unsigned int slot(uint32_t allocation)
{
	return allocation < 63 ? allocation : 63;
}

static void on_allocated(void *context, const struct space_interval *interval)
{
	struct observed *told = context;

	told->allocated[slot(interval->allocation)] += interval->end - interval->start;
	if (!interval->attributes.protection)
		told->reserved += interval->end - interval->start;
}

static void on_protected(void *context, const struct space_interval *interval, uint32_t commit_before)
{
	struct observed *told = context;
	uint64_t bytes = interval->end - interval->start;

	ck_assert((commit_before == COMMIT_NONE) == (interval->attributes.protection != 0));
	told->reserved += interval->attributes.protection ? -bytes : bytes;
}

static void on_released(void *context, const struct space_interval *interval, uint64_t bytes,
			const struct space_call *by)
{
	struct observed *told = context;

	ck_assert_uint_eq(bytes, interval->end - interval->start);
	told->released[slot(interval->allocation)] += bytes;
	if (!interval->attributes.protection)
		told->reserved -= bytes;
	if (!by)
		told->released_by_none += bytes;
	else if (by->thread == -1)
		told->released_unseen += bytes;
	else
		told->last_thread = by->thread;
}

static void init(struct driver *driver, const struct kernel_rules *rules)
{
	*driver = (struct driver){.now_ns = 1000000, .thread = 1, .allocation = ALLOCATION_FIRST - 1};
	const struct space_observer observer = {.allocated = on_allocated,
						.released = on_released,
						.protected = on_protected,
						.context = &driver->observed};
	const struct space_options options = {
	    .observer = &observer, .page_bytes = PAGE, .rules = rules, .losses = &driver->losses};

	ck_assert_ptr_null(space_create(&options, &driver->space));
}

void driver_init_unknown(struct driver *driver)
{
	init(driver, NULL);
}

void driver_init(struct driver *driver)
{
	driver_init_unknown(driver);
	space_exec(driver->space);
}

void driver_init_on(struct driver *driver, const char *release)
{
	const struct kernel_rules rules = kernel_rules_of(release);

	init(driver, &rules);
	space_exec(driver->space);
}

void driver_deinit(struct driver *driver)
{
	const char *why = "";

	ck_assert_msg(space_valid(driver->space, &why), "%s", why);
	space_destroy(driver->space);
	for (size_t i = 0; i < sizeof(driver->observed.allocated) / sizeof(*driver->observed.allocated); i++)
		ck_assert_msg(driver->observed.allocated[i] == driver->observed.released[i],
			      "allocation %zu: %lu allocated, %lu released", i,
			      (unsigned long)driver->observed.allocated[i],
			      (unsigned long)driver->observed.released[i]);
	ck_assert_uint_eq(driver->observed.reserved, 0);
}

void driver_call(struct driver *driver, enum call kind, int64_t result, uint64_t a0, uint64_t a1, uint64_t a2,
		 uint64_t a3, uint64_t a4, uint64_t a5)
{
	const struct space_call call = {.kind = kind,
					.arguments = {a0, a1, a2, a3, a4, a5},
					.result = result,
					.time_ns = driver->now_ns + 1000,
					.thread = driver->thread,
					.allocation = ++driver->allocation,
					.commit = driver->allocation,
					.mmap2_records = driver->mmap2_records,
					.mmap2_count = driver->mmap2_count};
	const char *why = "";

	driver->now_ns = call.time_ns;
	ck_assert_ptr_null(space_apply(driver->space, &call));
	driver->mmap2_count = 0;
	ck_assert_msg(space_valid(driver->space, &why), "%s", why);
}

uint32_t driver_map(struct driver *driver, uint64_t page, uint64_t pages, int protection, int more_flags)
{
	driver_call(driver, CALL_MMAP, (int64_t)(page * PAGE), more_flags & MAP_FIXED ? page * PAGE : 0, pages * PAGE,
		    (uint64_t)protection, (uint64_t)(MAP_PRIVATE | MAP_ANONYMOUS | more_flags), UINT64_MAX, 0);
	return driver->allocation;
}

uint32_t driver_map_file(struct driver *driver, uint64_t page, uint64_t pages, int protection, uint64_t file_page,
			 int more_flags)
{
	driver_mmap2(driver, page, pages,
		     (struct space_attributes){.protection = (uint32_t)protection,
					       .shared = more_flags & MAP_SHARED,
					       .device_major = 8,
					       .device_minor = 1,
					       .inode = 77,
					       .file_offset = file_page * PAGE});
	driver_call(driver, CALL_MMAP, (int64_t)(page * PAGE), more_flags & MAP_FIXED ? page * PAGE : 0, pages * PAGE,
		    (uint64_t)protection, (uint64_t)((more_flags & MAP_SHARED ? 0 : MAP_PRIVATE) | more_flags), 3,
		    file_page * PAGE);
	return driver->allocation;
}

void driver_unmap(struct driver *driver, uint64_t page, uint64_t pages)
{
	driver_call(driver, CALL_MUNMAP, 0, page * PAGE, pages * PAGE, 0, 0, 0, 0);
}

void driver_protect(struct driver *driver, uint64_t page, uint64_t pages, int protection)
{
	driver_call(driver, CALL_MPROTECT, 0, page * PAGE, pages * PAGE, (uint64_t)protection, 0, 0, 0);
}

uint32_t driver_remap(struct driver *driver, uint64_t page, uint64_t old_pages, uint64_t new_pages, int flags,
		      uint64_t result_page)
{
	driver_call(driver, CALL_MREMAP, (int64_t)(result_page * PAGE), page * PAGE, old_pages * PAGE, new_pages * PAGE,
		    (uint64_t)flags, flags & MREMAP_FIXED ? result_page * PAGE : 0, 0);
	return driver->allocation;
}

void driver_mmap2(struct driver *driver, uint64_t page, uint64_t pages, struct space_attributes attributes)
{
	ck_assert_uint_lt(driver->mmap2_count, sizeof(driver->mmap2_records) / sizeof(*driver->mmap2_records));
	driver->mmap2_records[driver->mmap2_count++] =
	    (struct space_mmap2){.start = page * PAGE, .end = (page + pages) * PAGE, .attributes = attributes};
}

static const char *allocation_text(uint32_t allocation, char *text, size_t size)
{
	static const char *const special[] = {"b", "k", "u"};

	if (allocation < ALLOCATION_FIRST)
		return special[allocation];
	snprintf(text, size, "#%u", allocation);
	return text;
}

const char *driver_show(const struct driver *driver)
{
	static char text[8192];
	const struct space_interval *interval;
	size_t used = 0;

	text[0] = '\0';
	for (uint64_t position = 0; (interval = space_next(driver->space, position)); position = interval->end) {
		const struct space_attributes *attributes = &interval->attributes;
		char allocation[16], commit[16], file[32] = "", other[24] = "";

		if (attributes->inode)
			snprintf(file, sizeof(file), "+%lu", (unsigned long)(attributes->file_offset / PAGE));
		if (attributes->protection && interval->commit != COMMIT_WITH_ALLOCATION)
			snprintf(other, sizeof(other), "/%s",
				 allocation_text(interval->commit, commit, sizeof(commit)));
		used += (size_t)snprintf(
		    text + used, sizeof(text) - used, "%s%lu-%lu %s%s%s%s%s%s%s%s %s%s", used ? ", " : "",
		    (unsigned long)(interval->start / PAGE), (unsigned long)(interval->end / PAGE),
		    attributes->protection & PROT_READ ? "r" : "", attributes->protection & PROT_WRITE ? "w" : "",
		    attributes->protection & PROT_EXEC ? "x" : "", attributes->protection ? "" : "-",
		    attributes->shared ? "s" : "", attributes->unknown ? "?" : "",
		    attributes->inode == SPACE_INODE_UNKNOWN ? "!" : "", file,
		    allocation_text(interval->allocation, allocation, sizeof(allocation)), other);
		ck_assert_uint_lt(used, sizeof(text));
	}
	return text;
}

void driver_line(struct driver *driver, uint64_t page, uint64_t pages, struct space_attributes attributes)
{
	ck_assert_ptr_null(space_snapshot_line(driver->space, driver->now_ns += 1000, page * PAGE,
					       (page + pages) * PAGE, &attributes));
}
