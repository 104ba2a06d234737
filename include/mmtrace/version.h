/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MMTRACE_VERSION_H
#define MMTRACE_VERSION_H

#include <mmtrace/error.h>

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
