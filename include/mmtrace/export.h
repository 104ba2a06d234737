/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report in the formats of other tools' viewers. mmtrace-export(1) describes what each of them shows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <mmtrace/report.h>

struct mmt_export_format {
	const char *name;	 /* word of options, for instance "pprof" */
	const char *description; /* a line for the user */
	bool binary;		 /* not for terminals */
	const char *suffix;	 /* of the file's name, for instance ".pb.gz" */
	const char *viewer;	 /* a command that opens the file named after it; NULL: see the description */
	bool weighted;		 /* uses the weight */
	bool labelled;		 /* names the service */
	bool only_made;		 /* leaves out memory mapped before the window and made accessible in it */
	uint32_t lifetime_steps; /* minimum for mmt_report_options.lifetime_steps */
};

/* All formats; *count_ret may be NULL. Static. */
MMT_PUBLIC const struct mmt_export_format *mmt_export_formats(size_t *count_ret);

/* `format` is the name of one of the formats; `service` is the name of what was recorded, for formats that are
 * `labelled`; NULL: the unit of each process. The report must be by stack, or by touch for formats
 * without `only_made`, and have lifetimes (mmt_report_options.lifetime_steps). The stream is not flushed; the caller
 * checks for write errors with ferror(). MMT_ERROR_INVALID: no such format, or the report is of another kind or has no
 * lifetimes. Several threads may export the same report, each to its own stream. */
MMT_PUBLIC struct mmt_error *mmt_export(const struct mmt_report *report, const char *format, enum mmt_weight weight,
					const char *service, FILE *stream) MMT_MUST_CHECK;
