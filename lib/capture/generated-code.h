/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The bytes of generated code, for stacks of code that keeps no frame pointers: read when recording ends, without
 * stopping the process, of those that live then. Only pages that are in memory are read: no page is made for it.
 */
#ifndef CAPTURE_GENERATED_CODE_H
#define CAPTURE_GENERATED_CODE_H

#include "base/error.h"
#include "capture/recorder.h"

/* Of the executable mappings in the final snapshots, CODE_BYTES_MAX in all, into recorder->code. */
struct mmt_error *generated_code_copy(struct recorder *recorder) MMT_MUST_CHECK;

#endif
