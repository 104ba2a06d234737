/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The identity of a stack: the names of module and function of each frame or, where a frame has no name, the build-id
 * of its module and the place in it. Addresses, lines, source files, and whether a function was inlined do not count,
 * nor do the suffixes that compilers add to the names of clones. So a stack has the same identity in every run and,
 * where its frames have names, in every build.
 *
 * A report can also keep stacks apart that differ in lines. Frames and stacks then have numbers; equal ones are equal.
 */
#pragma once

#include <mmtrace/report.h>

#include "base/map.h"
#include "base/vector.h"

/* The build-ids of a recording, by the path and by the base name of the module. Zero: none are known. */
struct build_id_paths {
	const struct mmt_module *modules; /* must outlive this */
	struct intern paths;
	VECTOR(size_t) places; /* of a path in `modules` */
};

/* NULL: unknown, also if `paths` or `path` is NULL. */
const char *build_id_paths_find(const struct build_id_paths *paths, const char *path);

/* False: out of memory. */
bool build_id_paths_init(struct build_id_paths *paths, const struct mmt_report *report);
void build_id_paths_deinit(struct build_id_paths *paths);

struct identities {
	bool by_line;  /* set by the caller: lines, files and inlining count, too */
	bool anywhere; /* set by the caller: ignore addresses of frames in no file, which differ between runs */
	struct id_table by_hash;
	VECTOR(const struct mmt_frame *) frames; /* by number: the first one with this identity */
	VECTOR(const char *) build_ids;		 /* of their modules, NULL: unknown; empty without paths */
	struct intern stacks;			 /* numbers of frames */
	VECTOR(uint32_t) numbers;		 /* scratch */
};

#define IDENTITY_NONE INTERN_NONE

void identities_deinit(struct identities *identities);

/* Number of a frame, which must outlive `identities`. `paths`: always or never NULL. IDENTITY_NONE: out of memory. */
uint32_t identity_of_frame(struct identities *identities, const struct build_id_paths *paths,
			   const struct mmt_frame *frame);

const char *identity_build_id(const struct identities *identities, uint32_t number);

/* Number of a stack. Those of lost calls differ from calls without a recorded stack: neither has frames. */
uint32_t identity_of_stack(struct identities *identities, const struct build_id_paths *paths,
			   const struct mmt_frame *const *frames, size_t count, bool lost);

/* The function's name without what differs between builds; it begins where the name does. */
size_t identity_name_length(const struct mmt_frame *frame);

/* All interpreted functions have the same frame. */
bool identity_has_name(const struct mmt_frame *frame);

/* A number that a frame has in every recording, after others whose checksum is `sum`. */
uint64_t identity_frame_checksum(uint64_t sum, const struct build_id_paths *paths, const struct mmt_frame *frame);

/* A number that a stack has in every recording, never 0. */
uint64_t identity_checksum(const struct build_id_paths *paths, const struct mmt_row *row);

/* Checksum of what the identity of a stack ignores: its lines, files and inlining. */
uint64_t identity_lines(const struct mmt_frame *const *frames, size_t count);
