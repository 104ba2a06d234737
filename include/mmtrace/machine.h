/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks what users can record on this machine, and permits more. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <mmtrace/error.h>

enum mmt_check_state {
	MMT_CHECK_GOOD,
	MMT_CHECK_LIMITED, /* recording works with restrictions */
	MMT_CHECK_MISSING, /* recording is impossible */
};

struct mmt_check_item {
	enum mmt_check_state state;
	const char *subject; /* one word or two; static */
	const char *finding;
	const char *remedy;	   /* a command or advice that fixes it; NULL: none */
	const char *remedy_effect; /* of such a command: for whom, how long, or where; NULL: nothing to add */
};

struct mmt_check {
	const struct mmt_check_item *items;
	size_t item_count;
};

/* Check with the permissions of the caller: recording is possible unless an item has MMT_CHECK_MISSING. Opens and
 * closes perf events, reads /proc and /sys, and changes nothing. The check owns its items. Any number of threads may
 * read it. */
MMT_PUBLIC struct mmt_error *mmt_check_create(struct mmt_check **check_ret) MMT_MUST_CHECK;
/* Accepts NULL. */
MMT_PUBLIC void mmt_check_destroy(struct mmt_check *check);

/* Permit all users to record their own processes until the next boot. MMT_ERROR_PERMISSION: the caller is not root.
 * *path_ret: the directory that it creates for other users to read, static. */
MMT_PUBLIC struct mmt_error *mmt_setup(const char **path_ret) MMT_MUST_CHECK;
