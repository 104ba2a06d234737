/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MMTRACE_VERSION_H
#define MMTRACE_VERSION_H

#include <mmtrace/error.h>

/*
 * No version 0.x promises a binary interface: structs grow, and their members change, with any commit. Compile a
 * program against the headers of the very library that it runs with. From 1.0 on, the soname tells.
 */

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0". Static. */
MMT_PUBLIC const char *mmt_version(void);

/* Versions of the libraries in use, one "name version" per line, for bug reports. Static. */
MMT_PUBLIC const char *mmt_version_details(void);

#ifdef __cplusplus
}
#endif

#endif
