/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the library owes to the programs that call it: structs of any version, and their signals. */
#ifndef BASE_API_H
#define BASE_API_H

#include <pthread.h>
#include <stddef.h>

#include "base/errors.h"

/* Option structs of the public API. A caller may be compiled against an older header, with shorter structs, or a newer
 * one. Each struct begins with a size_t: its size in the caller. */

/* Fill the caller's struct with the defaults, up to its size. `defaults` begin with `size`. */
void options_init(void *options, size_t size, const void *defaults, size_t defaults_size);

/* Copy the caller's options; members that the caller does not have become 0. MMT_ERROR_INVALID: the size is not set.
 * MMT_ERROR_UNSUPPORTED: the caller sets an option that this library does not know. `name` is the name of the struct.
 */
struct mmt_error *options_copy(const void *options, void *copy_ret, size_t copy_size, const char *name) MMT_MUST_CHECK;

/* Starts a thread of the library, which blocks all signals: those of the program handle them. Returns 0 or an errno. */
int thread_start(pthread_t *thread_ret, void *(*run)(void *), void *context);

#endif
