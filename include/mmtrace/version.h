/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <mmtrace/error.h>

/* The binary interface of versions 0.x is not stable: structs can change in any version. Compile programs against the
 * headers of the library that they run with. From 1.0 on, the soname identifies the binary interface. */

/* "0.1.0". Static. */
MMT_PUBLIC const char *mmt_version(void);

/* Versions of the libraries that are used, one "name version" on each line. For bug reports. Static. */
MMT_PUBLIC const char *mmt_version_details(void);
