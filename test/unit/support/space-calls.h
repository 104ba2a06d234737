/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Helpers that apply handmade calls to an address space. Addresses and lengths are given in pages. */
#pragma once

#include "model/space/space.h"

#define PAGE 4096ULL

/* The arguments of an observer's calls. */
struct observed {
	uint64_t allocated[64], released[64]; /* by allocation; the last one: all higher ones */
	uint64_t reserved;		      /* PROT_NONE, of all allocations */
	uint64_t released_unseen;	      /* by a call with thread -1 */
	uint64_t released_by_none;
	int32_t last_thread; /* of the last release by a call */
};

/* The next call: a clock that steps 1 us, thread 1, allocations from ALLOCATION_FIRST up unless changed. */
struct driver {
	struct space *space;
	struct observed observed;
	uint64_t now_ns;
	uint64_t losses; /* incremented by the test when calls are lost */
	int32_t thread;
	uint32_t allocation; /* of the last call */
	struct space_mmap2 mmap2_records[4];
	size_t mmap2_count; /* for the next call alone */
};

/* An address space that is known to be empty. */
void driver_init(struct driver *driver);
/* The same on a kernel of that release. */
void driver_init_on(struct driver *driver, const char *release);
/* An address space of which nothing is known. */
void driver_init_unknown(struct driver *driver);
/* Fails the test unless the address space is valid and its bytes are those allocated and not released. */
void driver_deinit(struct driver *driver);

/* Apply a call; its allocation is driver->allocation afterwards. */
void driver_call(struct driver *driver, enum call kind, int64_t result, uint64_t a0, uint64_t a1, uint64_t a2,
		 uint64_t a3, uint64_t a4, uint64_t a5);

/* mmap of anonymous private memory; returns its allocation. */
uint32_t driver_map(struct driver *driver, uint64_t page, uint64_t pages, int protection, int more_flags);
/* mmap of a private file mapping (inode 77 of device 8:1) with its MMAP2 record. */
uint32_t driver_map_file(struct driver *driver, uint64_t page, uint64_t pages, int protection, uint64_t file_page,
			 int more_flags);
void driver_unmap(struct driver *driver, uint64_t page, uint64_t pages);
void driver_protect(struct driver *driver, uint64_t page, uint64_t pages, int protection);
uint32_t driver_remap(struct driver *driver, uint64_t page, uint64_t old_pages, uint64_t new_pages, int flags,
		      uint64_t result_page);
void driver_mmap2(struct driver *driver, uint64_t page, uint64_t pages, struct space_attributes attributes);

/* The map as text, one interval after the other: "10-14 rw #3 " is pages 10 to 13, protection, allocation (b before,
 * k kernel, u unknown), "/#4" if a later call made it accessible, "s" if shared, "+2" the file's page, "?" unknown.
 * Static storage. */
const char *driver_show(const struct driver *driver);

/* Snapshot lines of pages; see space_snapshot_line(). */
void driver_line(struct driver *driver, uint64_t page, uint64_t pages, struct space_attributes attributes);
