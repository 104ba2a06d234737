/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report in the formats of other tools' viewers. mmtrace-export(1) says what each of them shows. */
#ifndef MMTRACE_EXPORT_H
#define MMTRACE_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <mmtrace/report.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a stack weighs in formats that have one figure for each: "folded". */
enum mmt_weight {
	MMT_WEIGHT_UNFREED,
	MMT_WEIGHT_RESIDENT, /* of unfreed bytes; 0 where not known */
	MMT_WEIGHT_COMMITTED,
	MMT_WEIGHT_ALLOCATED,
	MMT_WEIGHT_COUNT, /* mappings that are not unmapped */
	MMT_WEIGHT_KINDS,
};

/* Word of options, for instance "unfreed". Static. */
MMT_PUBLIC const char *mmt_weight_name(enum mmt_weight weight);

struct mmt_export_format {
	const char *name;	 /* word of options, for instance "pprof" */
	const char *description; /* a line for the user */
	bool binary;		 /* not for terminals */
	bool weighted;		 /* heeds mmt_export_options.weight */
	uint32_t lifetime_steps; /* what mmt_report_options has to ask for, at least */
};

/* All formats; *count_ret may be NULL. Static. */
MMT_PUBLIC const struct mmt_export_format *mmt_export_formats(size_t *count_ret);

struct mmt_export_options {
	size_t size;	    /* of the struct; mmt_export_options_init() sets it */
	const char *format; /* name of one of the formats */
	enum mmt_weight weight;
};

/* Set everything to 0, then the defaults: the size, and the format "folded". */
MMT_PUBLIC void mmt_export_options_init_size(struct mmt_export_options *options, size_t size);

static inline void mmt_export_options_init(struct mmt_export_options *options)
{
	mmt_export_options_init_size(options, sizeof(*options));
}

/*
 * The report must be by stack and have lifetimes (mmt_report_options.lifetime_steps). The stream is not flushed; a
 * write error is found by the caller with ferror(). MMT_ERROR_INVALID: no such format, or the report does not have what
 * it needs. Several threads may export the same report, each to a stream of its own.
 */
MMT_PUBLIC struct mmt_error *mmt_export(const struct mmt_report *report, const struct mmt_export_options *options,
					FILE *stream) MMT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
