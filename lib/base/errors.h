/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Creates errors. Callers of the library read them through mmtrace/error.h. */
#pragma once

#include <mmtrace/error.h>

/* Keeps a function out of line, so that the hot path does not save registers for it. */
#define COLD __attribute__((noinline))

#define ERROR_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* The out-of-memory error. Static, so that reporting it never allocates; mmt_error_destroy() ignores it. */
extern struct mmt_error error_no_memory;

/* Counts that a vector, an arena or a caller was without memory. Where that is no error of its own, such as in what
 * looks for names, a greater count at the end says that the result lacks something. */
void memory_failed(void);
unsigned memory_failures(void);

/* These functions never return NULL: if the message cannot be allocated, they return &error_no_memory. */
struct mmt_error *error_create(enum mmt_error_code code, const char *format, ...) ERROR_PRINTF(2, 3) MMT_MUST_CHECK;

/* MMT_ERROR_SYSTEM (MMT_ERROR_PERMISSION for EPERM and EACCES); ": " and the text of `errno_value` are appended. */
struct mmt_error *error_system(int errno_value, const char *format, ...) ERROR_PRINTF(2, 3) MMT_MUST_CHECK;

/* MMT_ERROR_PERMISSION; ": " and the reason are appended. */
struct mmt_error *error_refused(const struct mmt_refusal *refusal, const char *format, ...)
    ERROR_PRINTF(2, 3) MMT_MUST_CHECK;

/* Prepends "context: " to the message of `cause` and returns it; takes `cause`. Code and errno are kept. NULL stays
 * NULL, so `return error_context(f(), "%s", path);` is allowed. */
struct mmt_error *error_context(struct mmt_error *cause, const char *format, ...) ERROR_PRINTF(2, 3) MMT_MUST_CHECK;
