/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tail of the file: what is read when recording has stopped, as sections behind the events. */
#ifndef CAPTURE_TAIL_H
#define CAPTURE_TAIL_H

#include "base/error.h"
#include "capture/recorder.h"

/*
 * `lost`: by event. Reads residency of the final mappings; perf maps and build-ids have been collected before. A
 * section that fails costs no other: it is warned of, or left to recorder_keep_failure().
 */
void tail_add(struct recorder *recorder, const uint64_t *lost);

#endif
