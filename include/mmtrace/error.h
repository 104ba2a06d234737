/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Errors of libmmtrace.
 *
 * A function that can fail returns `struct mmt_error *`: NULL is success. The caller owns the error and frees it with
 * mmt_error_destroy(), in any thread. Results are written through the last parameters, only on success. The library never
 * prints and never exits; mmtrace(3) has what else it does to the process, and what threads may do.
 */
#ifndef MMTRACE_ERROR_H
#define MMTRACE_ERROR_H

#if defined(__GNUC__)
#define MMT_PUBLIC __attribute__((visibility("default")))
#define MMT_MUST_CHECK __attribute__((warn_unused_result))
#else
#define MMT_PUBLIC
#define MMT_MUST_CHECK
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum mmt_error_code {
	MMT_ERROR_NO_MEMORY,   /* out of memory */
	MMT_ERROR_SYSTEM,      /* a system call failed; mmt_error_errno() says how */
	MMT_ERROR_PERMISSION,  /* the kernel refused; the message names the right that is missing */
	MMT_ERROR_NO_PROCESS,  /* a process to be recorded does not exist (any more) */
	MMT_ERROR_COMMAND,     /* the command to be recorded cannot be run; errno says why */
	MMT_ERROR_FORMAT,      /* a file is not what it should be */
	MMT_ERROR_UNSUPPORTED, /* well-formed, but this version cannot do it */
	MMT_ERROR_INVALID,     /* an argument makes no sense */
	MMT_ERROR_STOPPED,     /* the stop descriptor became readable before there was anything to keep */
	MMT_ERROR_INTERNAL,    /* figures that must agree do not: a fault of mmtrace */
};

struct mmt_error;

MMT_PUBLIC enum mmt_error_code mmt_error_get_code(const struct mmt_error *error);

/* One line without a trailing newline: what was tried, why it failed, what mends it. Valid as long as the error. */
MMT_PUBLIC const char *mmt_error_get_message(const struct mmt_error *error);

/* The errno of a failed system call, else 0. */
MMT_PUBLIC int mmt_error_get_errno(const struct mmt_error *error);

/* Accepts NULL. */
MMT_PUBLIC void mmt_error_destroy(struct mmt_error *error);

#ifdef __cplusplus
}
#endif

#endif
