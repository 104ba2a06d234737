/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Differences between kernel versions: the version of the recorded kernel decides what a call changed. Pure. Each rule
 * names the first version to which it applies and the kernel change that introduced it. "Measured" means that a test
 * compared the model with the maps of that kernel. */
#pragma once

#include <stdbool.h>

/* With which neighbours the kernel merges a part of a System V segment when its attributes are equal again. */
enum shm_merging {
	SHM_NEVER_MERGES,	  /* vma_merge() refuses mappings with vm_ops->close. Measured on 6.1 */
	SHM_MERGES_INTO_PREVIOUS, /* since 6.4, commit 714965ca8252. From its source, not measured */
	SHM_MERGES_INTO_BOTH	  /* since 6.12, commit 01c373e9a5ce. Measured on 6.12 and 6.18 */
};

/* Moves with MREMAP_FIXED that fail; see mremap-rules.c. */
struct kernel_rules {
	/* mremap() looks for a mapping at the source before mremap_to() unmaps the target: since 5.16, commit
	 * 550a7d60bd5e. Measured on 6.1. */
	bool mremap_finds_source_first;
	/* mremap_to() unmaps the target before it finds a seal after the first moved mapping: since 6.12, commit
	 * 38075679b5f1. From 6.10 on can_modify_mm() checked all of the source first. Measured on 6.12. */
	bool mremap_sees_sealed_tail_late;
	/* Several mappings are moved by one call, each is checked before its target is unmapped: since 6.17,
	 * remap_move(). Before, mremap_to() unmapped the target at once. Measured on 6.1, 6.12 and 6.18. */
	bool mremap_moves_several;
	/* The ring of an AIO context is moved as a whole or, after its target was unmapped, not at all, and fork()
	 * does not copy it. Measured on 7.2; on 6.18 parts can be moved, and children have it. */
	bool protects_rings;
	enum shm_merging shm_merging;
};

/* The rules for a kernel release such as "6.1.0-50-amd64"; those of the newest kernel if it is not a version number. */
struct kernel_rules kernel_rules_of(const char *release);
