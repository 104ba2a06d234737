/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which memory a report is about, by the patterns of `focus` and `ignore` in its options. Pure. */
#pragma once

#include <mmtrace/report.h>

#include "base/vector.h"

enum filter_key {
	FILTER_NAME, /* a pattern without a key: of a function or module */
	FILTER_FUNCTION,
	FILTER_MODULE,
	FILTER_FILE,
	FILTER_CLASS,
	FILTER_THREAD,
	FILTER_KEYS,
};

struct filter {
	enum filter_key key;
	const char *pattern; /* borrowed */
	bool ignores;	     /* its memory is left out; false: it is selected */
};

/* Zero initialisation selects everything. */
struct filters {
	VECTOR(struct filter) items;
	unsigned focus_keys; /* one bit per key of the patterns that select */
	bool by_frames;	     /* some pattern needs the complete stack */
	bool by_threads;
};

/* The values that patterns are compared with. */
struct filter_subject {
	const struct mmt_frame *const *frames;
	size_t frame_count;
	enum mmt_class memory_class;
	const char *file;   /* path of what is mapped; NULL: no file */
	const char *thread; /* its name; NULL: not known */
	int32_t tid;
	bool frames_only; /* only patterns of functions and modules count: a call without a class or file */
};

#define FILTER_FRAME_KEYS (1u << FILTER_NAME | 1u << FILTER_FUNCTION | 1u << FILTER_MODULE)
#define FILTER_IGNORED (1u << FILTER_KEYS)

/* MMT_ERROR_INVALID: an unknown key or class, or no pattern. The patterns stay those of the options. */
struct mmt_error *filters_parse(const struct mmt_report_options *options, struct filters *filters_ret) MMT_MUST_CHECK;

bool filters_select(const struct filters *filters, const struct filter_subject *subject);

/* The keys whose patterns select the subject, as bits, and FILTER_IGNORED if some pattern leaves it out. Those of what
 * has several parts are the union of its parts': it is selected if they contain focus_keys, and not FILTER_IGNORED. */
unsigned filters_matches(const struct filters *filters, const struct filter_subject *subject);

/* Whether the name equals the pattern or matches it as a shell pattern. `name` may be NULL. */
bool filters_match(const char *pattern, const char *name);
