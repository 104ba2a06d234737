// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/errors.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mmt_error error_no_memory = {.code = MMT_ERROR_NO_MEMORY, .errno_value = ENOMEM, .message = "out of memory"};

static atomic_uint failures;

void memory_failed(void)
{
	atomic_fetch_add(&failures, 1);
}

unsigned memory_failures(void)
{
	return atomic_load(&failures);
}

/* NULL: out of memory. `tail` may be NULL. */
static char *join_message(const char *format, va_list arguments, const char *tail)
{
	char *head, *message;

	if (vasprintf(&head, format, arguments) < 0)
		return NULL;
	if (!tail)
		return head;
	if (asprintf(&message, "%s: %s", head, tail) < 0)
		message = NULL;
	free(head);
	return message;
}

static struct mmt_error *make_error(struct mmt_error content, const char *format, va_list arguments, const char *tail)
{
	struct mmt_error *error = malloc(sizeof(*error));

	content.message = error ? join_message(format, arguments, tail) : NULL;
	if (!content.message) {
		free(error);
		return &error_no_memory;
	}
	*error = content;
	return error;
}

struct mmt_error *error_create(enum mmt_error_code code, const char *format, ...)
{
	struct mmt_error *error;
	va_list arguments;

	va_start(arguments, format);
	error = make_error((struct mmt_error){.code = code}, format, arguments, NULL);
	va_end(arguments);
	return error;
}

struct mmt_error *error_system(int errno_value, const char *format, ...)
{
	bool denied = errno_value == EPERM || errno_value == EACCES;
	struct mmt_error content = {.code = denied ? MMT_ERROR_PERMISSION : MMT_ERROR_SYSTEM,
				    .errno_value = errno_value};
	struct mmt_error *error;
	va_list arguments;

	va_start(arguments, format);
	error = make_error(content, format, arguments, strerror(errno_value));
	va_end(arguments);
	return error;
}

struct mmt_error *error_refused(const struct mmt_refusal *refusal, const char *format, ...)
{
	struct mmt_error content = {.code = MMT_ERROR_PERMISSION, .refusal = refusal};
	struct mmt_error *error;
	va_list arguments;

	va_start(arguments, format);
	error = make_error(content, format, arguments, refusal->reason);
	va_end(arguments);
	return error;
}

struct mmt_error *error_context(struct mmt_error *cause, const char *format, ...)
{
	va_list arguments;
	char *message;

	if (!cause || cause == &error_no_memory)
		return cause;
	va_start(arguments, format);
	message = join_message(format, arguments, cause->message);
	va_end(arguments);
	if (message) {
		free((char *)cause->message);
		cause->message = message;
	}
	return cause;
}

void mmt_error_destroy(struct mmt_error *error)
{
	if (!error || error == &error_no_memory)
		return;
	free((char *)error->message);
	free(error);
}
