// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/thread.h"

#include <signal.h>

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
