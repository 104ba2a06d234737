/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A directory of this user, reached through nobody else's. Where another user's directory or symbolic link is on the
 * way, that user chooses where the path leads, and root would write there.
 */
#ifndef CODE_OWN_DIRECTORY_H
#define CODE_OWN_DIRECTORY_H

#include <stdbool.h>
#include <sys/stat.h>

/* Whether an open file is of this kind and of this user, and nobody else may write to it. */
bool own_directory_is_own(int fd, mode_t kind, struct stat *status_ret);

/*
 * -1: it is not there, or not to be trusted. Every directory and link on the way must belong to this user or root. The
 * last `levels` directories are made where they are missing, in directories of this user only.
 */
int own_directory_open(const char *path, unsigned levels);

#endif
