/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parts of a report as JSON; the schema is in mmtrace-report(1). */
#ifndef OUTPUT_JSON_REPORT_H
#define OUTPUT_JSON_REPORT_H

#include <mmtrace/report.h>

#include "output/document.h"

/* Everything but the groups, into the object that is open. */
void json_report_recording(struct document *document, const struct mmt_report *report);

void json_report_group(struct document *document, const char *key, const struct mmt_group *group);

#endif
