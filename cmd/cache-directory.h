/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where names of functions are kept from one report to the next. */
#ifndef CMD_CACHE_DIRECTORY_H
#define CMD_CACHE_DIRECTORY_H

/* $XDG_CACHE_HOME/mmtrace, or ~/.cache/mmtrace; NULL: neither is set. The caller frees it. */
char *cache_directory(void);

#endif
