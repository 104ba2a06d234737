/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A directory that belongs to this user, on a path without other users' directories and links. With one of these in the
 * path, its owner could redirect the path to another place, and root would write there.
 */
#ifndef CODE_OWN_DIRECTORY_H
#define CODE_OWN_DIRECTORY_H

#include <stdbool.h>
#include <sys/stat.h>

/* Whether an open file is of this kind, belongs to this user, and is not writable for others. */
bool own_directory_is_own(int fd, mode_t kind, struct stat *status_ret);

/*
 * -1: it does not exist or cannot be trusted. Every directory and link in the path must belong to this user or root.
 * Creates up to `levels` missing directories at the end of the path, but only inside directories of this user.
 */
int own_directory_open(const char *path, unsigned levels);

#endif
