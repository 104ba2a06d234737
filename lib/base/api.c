// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/api.h"

#include <signal.h>
#include <string.h>

void options_init(void *options, size_t size, const void *defaults, size_t defaults_size)
{
	memset(options, 0, size);
	memcpy(options, defaults, size < defaults_size ? size : defaults_size);
}

struct mmt_error *options_copy(const void *options, void *copy_ret, size_t copy_size, const char *name)
{
	const unsigned char *bytes = options;
	size_t size;

	memcpy(&size, options, sizeof(size));
	if (size < sizeof(size))
		return error_create(MMT_ERROR_INVALID, "struct %s: its size is not set", name);
	for (size_t i = copy_size; i < size; i++) {
		if (bytes[i])
			return error_create(MMT_ERROR_UNSUPPORTED,
					    "struct %s: sets an option that this version of the library does not have",
					    name);
	}
	memset(copy_ret, 0, copy_size);
	memcpy(copy_ret, options, size < copy_size ? size : copy_size);
	memcpy(copy_ret, &copy_size, sizeof(copy_size));
	return NULL;
}

int thread_start(pthread_t *thread_ret, void *(*run)(void *), void *context)
{
	sigset_t all, before;
	int failure;

	sigfillset(&all);
	failure = pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits the mask */
	if (failure)
		return failure;
	failure = pthread_create(thread_ret, NULL, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failure;
}
