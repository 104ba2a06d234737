/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Starts threads of the library. They block all signals, so that the threads of the program handle them. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* Returns 0, or an errno value if no thread was started. */
int thread_start(pthread_t *thread_ret, void *(*run)(void *), void *context);

#endif
