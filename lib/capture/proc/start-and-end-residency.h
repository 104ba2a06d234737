/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads which pages of the recorded processes are resident, when recording starts and when it has stopped. */
#ifndef CAPTURE_PROC_START_AND_END_RESIDENCY_H
#define CAPTURE_PROC_START_AND_END_RESIDENCY_H

#include "base/errors.h"
#include "trace/sections/sections.h"

struct recorder;

/*
 * Reads the residency of the ranges of the START snapshots into start_residency and discards these ranges. The rings
 * are drained when they fill. A process whose pages cannot be read, or are too many, is left out.
 */
struct mmt_error *read_start_residency(struct recorder *recorder) MMT_MUST_CHECK;

/* Reads the residency of the final ranges. Events are disabled. */
struct mmt_error *read_final_residency(struct recorder *recorder, process_residencies *processes) MMT_MUST_CHECK;

#endif
