/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One function for each format, in a file of its name. */
#ifndef OUTPUT_EXPORT_FORMATS_H
#define OUTPUT_EXPORT_FORMATS_H

#include "output/export/export-report.h"

typedef struct mmt_error *export_function(const struct export *export, FILE *stream);

export_function export_folded, export_pprof, export_speedscope, export_firefox, export_heaptrack, export_massif,
    export_perfetto;

#endif
