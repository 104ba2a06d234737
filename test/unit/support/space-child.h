/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A child process that performs memory calls on request, and an address space that follows them. Failures fail the
 * test. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <unistd.h>

#include "model/space/space.h"

#define PAGE ((uint64_t)sysconf(_SC_PAGESIZE)) /* 16 KiB on some arm64 kernels */
#define CHILD_FILES 4 /* a file, a read-only one, a memfd, one whose driver refuses to be mapped (or -1) */

struct child {
	pid_t pid;
	int requests, answers;
	int files[CHILD_FILES];
	int shared_memory[2];
	struct space *space;
	uint64_t now_ns;
	uint32_t allocation;
	char last[256]; /* the last calls, for messages */
};

/* The kernel that runs. */
struct kernel_rules child_rules(void);

/* The address space is defined from the child's maps. */
void child_start(struct child *child);
/* Ends with one CHECK snapshot that must find no difference. */
void child_stop(struct child *child);

/* The child performs the call, which is applied to the address space with the records that the kernel would have
 * written. Returns the child's result. */
int64_t child_call(struct child *child, enum call kind, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		   uint64_t a5);

/* The same with another system call of this kind (pkey_mprotect). */
int64_t child_call_as(struct child *child, long number, enum call kind, uint64_t a0, uint64_t a1, uint64_t a2,
		      uint64_t a3, uint64_t a4, uint64_t a5);

/* Report the mapping at `address` as one made by the kernel. */
void child_mmap2(struct child *child, uint64_t address);

/* A system call that the model does not see. */
int64_t child_syscall(struct child *child, long number, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		      uint64_t a5);

/* Make an aio context for this many events (100 for each 4 KiB of a page: a ring of two pages); returns 0 if the kernel refuses. */
uint64_t child_io_setup(struct child *child, uint64_t events);

/* Let the child's address space grow by `bytes` from now, or without limit. */
void child_limit(struct child *child, bool limit, uint64_t bytes);

/* The kernel's file offset of the mapping at `address`. */
uint64_t child_file_offset(struct child *child, uint64_t address);

/* Compares every page of the child's maps with the model. */
void child_compare(struct child *child, unsigned int step);
