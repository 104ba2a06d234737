/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Perf maps, jitdumps and build-ids as they grow, in pieces among the records: of a recorder that is killed they are
 * the only ones. Every byte is written once, soon after it came, NAME_PIECES_BYTES_MAX in all.
 */
#ifndef CAPTURE_NAME_PIECES_H
#define CAPTURE_NAME_PIECES_H

#include "capture/recorder.h"

#define NAME_PIECES_TICK_BYTES (4u << 20) /* of all files together */

/* What has come since the last time, NAME_PIECES_TICK_BYTES at most: the rest waits for the next. Drains the rings when
 * they fill meanwhile. Failures of writing are kept in the recorder; what cannot be read is left for the end. Errors:
 * those of draining, and no memory. */
struct mmt_error *name_pieces_write(struct recorder *recorder) MMT_MUST_CHECK;

#endif
