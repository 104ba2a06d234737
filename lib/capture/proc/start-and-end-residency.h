/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads which pages of the recorded processes are resident, when recording starts and when it has stopped. */
#ifndef CAPTURE_PROC_START_AND_END_RESIDENCY_H
#define CAPTURE_PROC_START_AND_END_RESIDENCY_H

#include "base/errors.h"
#include "trace/sections/sections.h"

struct recorder;

/*
 * Of the ranges of the START snapshots, which are forgotten, into start_residency. The rings are drained when they fill
 * meanwhile. A process whose pages cannot be read, or are too many, is left out.
 */
struct mmt_error *read_start_residency(struct recorder *recorder) MMT_MUST_CHECK;

/* Of the final ranges; events are off. */
struct mmt_error *read_final_residency(struct recorder *recorder, process_residencies *processes) MMT_MUST_CHECK;

#endif
