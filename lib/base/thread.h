/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* Start a thread of the library. It blocks all signals, which the threads of the program handle. Returns 0 or an errno.
 */
int thread_start(pthread_t *thread_ret, void *(*run)(void *), void *context);

#endif
