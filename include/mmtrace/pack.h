/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Packs a recording: unwinds and symbolizes all stacks, and writes the recording again with the names, but without
 * stack dumps, perf maps, jitdumps, copied modules, and registers other than arguments of calls. A report on the packed
 * recording equals that on the original, on any machine. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <mmtrace/error.h>
#include <mmtrace/progress.h>

struct mmt_pack_options {
	const char *input;		     /* recorded by mmtrace; may already be packed */
	const char *output;		     /* NULL: replace the input */
	const struct mmt_progress *progress; /* of both passes together; NULL: none */
	/* Before it reads the recording and the programs, take rights from the calling thread, for good: see
	 * mmt_pack(). For programs that end afterwards, because other threads keep theirs. */
	bool confine;
};

struct mmt_pack_summary {
	uint64_t input_bytes, output_bytes; /* sizes of the files */
	uint64_t stacks, frames;	    /* distinct */
	uint64_t frames_without_name;
};

/*
 * An existing output file is renamed to OUTPUT.old; a replaced input is deleted. An incomplete or damaged recording is
 * packed up to where it can be read; a report on the packed recording has the same warnings. On error, no file is
 * changed. MMT_ERROR_UNSUPPORTED: the input was not recorded by mmtrace.
 *
 * The function starts threads with all signals blocked; they end before it returns. The options must stay valid
 * until then.
 *
 * With `confine`, this thread gives up its rights as with mmt_confine(), except that it may write, where the kernel has
 * Landlock only below the directory of the output and $TMPDIR (/var/tmp).
 */
MMT_PUBLIC struct mmt_error *mmt_pack(const struct mmt_pack_options *options,
				      struct mmt_pack_summary *summary_ret) MMT_MUST_CHECK;
