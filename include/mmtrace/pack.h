/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Packing: every stack of a recording is unwound and named now, and the recording written again with the names and
 * without what they came from: no bytes of stacks, no registers but the arguments of the calls, no perf maps, no
 * jitdumps, no copies of programs but, unless they are not wanted, the instructions around the place of each frame. A
 * report of the packed recording is that of the original, on any machine.
 */
#ifndef MMTRACE_PACK_H
#define MMTRACE_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include <mmtrace/error.h>
#include <mmtrace/progress.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mmt_pack_options {
	const char *input;		     /* a recording of mmtrace, packed or not */
	const char *output;		     /* NULL: take the input's place */
	bool no_code;			     /* leave out all instructions: an annotation then has none to show */
	const struct mmt_progress *progress; /* of both passes together; NULL: nobody waits */
};

struct mmt_pack_summary {
	uint64_t input_bytes, output_bytes; /* of the files */
	uint64_t stacks, frames;	    /* different ones */
	uint64_t frames_without_name;
};

/*
 * An existing output becomes OUTPUT.old, but the input that is replaced is gone. A recording that was cut short or is
 * damaged is packed as far as it can be read, and a report says of the packed one what it said of the original. On
 * error nothing is changed. MMT_ERROR_UNSUPPORTED: the input was not recorded by mmtrace.
 *
 * Threads are started, with all signals blocked, and end before the function returns. 8 bytes for each event are kept in
 * a file without a name in /tmp. The options are needed until the function returns.
 */
MMT_PUBLIC struct mmt_error *mmt_pack(const struct mmt_pack_options *options,
				      struct mmt_pack_summary *summary_ret) MMT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
