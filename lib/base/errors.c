// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/errors.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mmt_error {
	enum mmt_error_code code;
	int errno_value;
	char *message; /* owned; NULL only in error_no_memory */
	const struct mmt_refusal *refusal;
};

struct mmt_error error_no_memory = {.code = MMT_ERROR_NO_MEMORY, .errno_value = ENOMEM};

/* Takes `message`, which may be NULL after a failed allocation. */
static struct mmt_error *error_from_message(enum mmt_error_code code, int errno_value, char *message)
{
	struct mmt_error *error = message ? malloc(sizeof(*error)) : NULL;

	if (!error) {
		free(message);
		return &error_no_memory;
	}
	error->code = code;
	error->errno_value = errno_value;
	error->message = message;
	error->refusal = NULL;
	return error;
}

static char *format_message(const char *format, va_list arguments)
{
	char *message = NULL;

	return vasprintf(&message, format, arguments) < 0 ? NULL : message;
}

static char *join_message(char *head, const char *tail)
{
	char *message = NULL;

	if (head && asprintf(&message, "%s: %s", head, tail) < 0)
		message = NULL;
	free(head);
	return message;
}

struct mmt_error *error_create(enum mmt_error_code code, const char *format, ...)
{
	va_list arguments;
	char *message;

	va_start(arguments, format);
	message = format_message(format, arguments);
	va_end(arguments);
	return error_from_message(code, 0, message);
}

struct mmt_error *error_system(int errno_value, const char *format, ...)
{
	enum mmt_error_code code = MMT_ERROR_SYSTEM;
	va_list arguments;
	char *message;

	if (errno_value == EPERM || errno_value == EACCES)
		code = MMT_ERROR_PERMISSION;
	va_start(arguments, format);
	message = join_message(format_message(format, arguments), strerror(errno_value));
	va_end(arguments);
	return error_from_message(code, errno_value, message);
}

struct mmt_error *error_refused(const struct mmt_refusal *refusal, const char *format, ...)
{
	struct mmt_error *error;
	va_list arguments;
	char *message;

	va_start(arguments, format);
	message = join_message(format_message(format, arguments), refusal->reason);
	va_end(arguments);
	error = error_from_message(MMT_ERROR_PERMISSION, 0, message);
	if (error != &error_no_memory)
		error->refusal = refusal;
	return error;
}

struct mmt_error *error_set_code(struct mmt_error *error, enum mmt_error_code code)
{
	if (error != &error_no_memory)
		error->code = code;
	return error;
}

struct mmt_error *error_context(struct mmt_error *cause, const char *format, ...)
{
	va_list arguments;
	char *message;

	if (!cause || cause == &error_no_memory)
		return cause;
	va_start(arguments, format);
	message = join_message(format_message(format, arguments), cause->message);
	va_end(arguments);
	if (message) {
		free(cause->message);
		cause->message = message;
	}
	return cause;
}

enum mmt_error_code mmt_error_get_code(const struct mmt_error *error)
{
	return error->code;
}

const char *mmt_error_get_message(const struct mmt_error *error)
{
	return error->message ? error->message : "out of memory";
}

int mmt_error_get_errno(const struct mmt_error *error)
{
	return error->errno_value;
}

const struct mmt_refusal *mmt_error_get_refusal(const struct mmt_error *error)
{
	return error->refusal;
}

void mmt_error_destroy(struct mmt_error *error)
{
	if (!error || error == &error_no_memory)
		return;
	free(error->message);
	free(error);
}
