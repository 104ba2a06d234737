/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Inside of mremap, shared by the files space-mremap*.c alone. */
#ifndef MODEL_SPACE_MREMAP_H
#define MODEL_SPACE_MREMAP_H

#include "model/space-state.h"

struct remap {
	uint64_t source, target;
	uint64_t old_bytes, new_bytes; /* whole pages */
	bool fixed, keep_source;
	/* At their old addresses; the observer knows of `moved`, not of `fresh`. */
	pieces moved, fresh;
};

/*
 * What a move to a given place has done before it failed. Since 6.17 (see kernel-rules.h) several mappings are
 * moved one after the other, up to the first that cannot be; and the kernel makes room for each before it finds that
 * out.
 */
struct failed_move {
	uint64_t moved;		/* bytes from the source's start that are at the target */
	struct range cleared;	/* of the target: unmapped, although nothing came */
	struct range shortened; /* of the source: unmapped, as it was to become shorter */
	bool certain;		/* otherwise it is the likeliest of several */
};

/* Whether a call that failed may have changed anything. */
bool space_mremap_may_change(const struct space_call *call, const struct remap *remap);

struct failed_move space_mremap_failed(const struct space *space, const struct space_call *call,
				       const struct remap *remap);

#endif
