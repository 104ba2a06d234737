/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What this machine lets its users record, and how to let them record more. */
#ifndef MMTRACE_MACHINE_H
#define MMTRACE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

#include <mmtrace/error.h>

#ifdef __cplusplus
extern "C" {
#endif

enum mmt_check_state {
	MMT_CHECK_GOOD,
	MMT_CHECK_LIMITED, /* recording works, with less */
	MMT_CHECK_MISSING, /* nothing can be recorded */
};

struct mmt_check_item {
	enum mmt_check_state state;
	const char *subject; /* one word or two; static */
	const char *finding;
	const char *remedy; /* a command, or what else to do; NULL: nothing */
};

struct mmt_check {
	const struct mmt_check_item *items;
	size_t item_count;
	bool can_record; /* no item is missing */
};

/*
 * Look at the machine with the permissions of the caller: opens and closes perf events and reads /proc and /sys. Nothing
 * is changed. The items belong to the check; any number of threads may read it.
 */
MMT_PUBLIC struct mmt_error *mmt_check_create(struct mmt_check **check_ret) MMT_MUST_CHECK;
/* Accepts NULL. */
MMT_PUBLIC void mmt_check_destroy(struct mmt_check *check);

/* Where mmt_setup() leaves what other users may read. Static. */
MMT_PUBLIC const char *mmt_setup_path(void);

/* As root: let users record their own processes until the next boot. MMT_ERROR_PERMISSION: the caller is not root. */
MMT_PUBLIC struct mmt_error *mmt_setup(void) MMT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
