/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A handmade report, for the tests of its renderings. */
#pragma once

#include <mmtrace/report.h>

/* Two rows of one .NET process: 256 x 4 MiB through a JIT stack, and one truncated stack whose names contain
 * hostile bytes. */
struct mmt_report sample_report(void);

/* The rows of sample_report(), for changing a copy. */
extern const struct mmt_row sample_rows[2];
