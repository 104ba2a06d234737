/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Errors of libmmtrace.
 *
 * A function that can fail returns `struct mmt_error *`, which is NULL on success. The caller owns the error and frees
 * it with mmt_error_destroy(), in any thread. Functions store results through their last parameters, and only on
 * success. The library never prints and never exits. mmtrace(3) describes thread safety and side effects on the
 * process.
 */
#pragma once

#include <stdbool.h>

#if defined(__GNUC__)
#define MMT_VISIBLE __attribute__((visibility("default")))
#define MMT_MUST_CHECK __attribute__((warn_unused_result))
#else
#define MMT_VISIBLE
#define MMT_MUST_CHECK
#endif
/* A function of the library, which is one of C in C++, too. */
#ifdef __cplusplus
#define MMT_PUBLIC extern "C" MMT_VISIBLE
#else
#define MMT_PUBLIC MMT_VISIBLE
#endif

enum mmt_error_code {
	MMT_ERROR_NO_MEMORY,   /* out of memory */
	MMT_ERROR_SYSTEM,      /* a system call failed: see errno_value */
	MMT_ERROR_PERMISSION,  /* the kernel denied access; the message names the missing permission */
	MMT_ERROR_NO_PROCESS,  /* a process to record does not exist */
	MMT_ERROR_COMMAND,     /* the command to record cannot be executed: see errno_value */
	MMT_ERROR_FORMAT,      /* a file does not have the expected format */
	MMT_ERROR_UNSUPPORTED, /* valid, but not supported by this version */
	MMT_ERROR_INVALID,     /* an argument is invalid */
	MMT_ERROR_STOPPED,     /* stopped before anything was recorded */
	MMT_ERROR_INTERNAL,    /* an inconsistency: a bug in mmtrace */
};

/* Why the system does not let this user record, and what permits it for good. Static. */
struct mmt_refusal {
	const char *reason;
	bool root_may; /* root may record here */
	struct mmt_remedy {
		const char *command; /* NULL ends the list */
		const char *effect;
	} remedies[3];
};

/* Only the library creates and changes one. A later version may add members at the end: do not copy one. */
struct mmt_error {
	enum mmt_error_code code;
	int errno_value;     /* of the system call that failed; 0 if none did */
	const char *message; /* one line without a newline: what failed, why, and how to fix it, except for a refusal */
	const struct mmt_refusal *refusal; /* NULL: the error is of another kind */
};

/* Accepts NULL. */
MMT_PUBLIC void mmt_error_destroy(struct mmt_error *error);
