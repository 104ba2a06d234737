/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Perf maps, jitdumps and build-ids as they grow, in pieces among the records: of a recorder that is killed they are
 * the only ones. Every byte is written once, a second after it came at the latest, NAME_PIECES_BYTES_MAX in all.
 */
#ifndef CAPTURE_NAME_PIECES_H
#define CAPTURE_NAME_PIECES_H

#include "capture/recorder.h"

#define NAME_PIECES_BYTES_MAX (256u << 20)

/* What has come since the last time. Failures of writing are kept in the recorder; what cannot be read is left for the
 * end. */
void name_pieces_write(struct recorder *recorder);

#endif
