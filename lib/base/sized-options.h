/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Structs of options of the public interface. A caller may be compiled with the headers of an earlier version, whose
 * structs are shorter, or of a later one. Each begins with its size, a size_t, in the caller.
 */
#ifndef BASE_SIZED_OPTIONS_H
#define BASE_SIZED_OPTIONS_H

#include <stddef.h>

#include "base/errors.h"

/* The caller's struct gets the defaults, as far as it has them. `defaults` begin with `size`. */
void options_init(void *options, size_t size, const void *defaults, size_t defaults_size);

/*
 * Copy the caller's options. What they do not have is 0. MMT_ERROR_INVALID: their size is not set.
 * MMT_ERROR_UNSUPPORTED: they set what this library does not know. `name` is that of the struct.
 */
struct mmt_error *options_copy(const void *options, void *copy_ret, size_t copy_size, const char *name) MMT_MUST_CHECK;

#endif
