/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the known options of runtimes from /proc/PID/cmdline and environ: see trace/sections/runtime-options.h. */
#ifndef CAPTURE_RUNTIMES_READ_OPTIONS_H
#define CAPTURE_RUNTIMES_READ_OPTIONS_H

#include "base/errors.h"

struct recorder;
struct traced_process;

/* Reads those of the program that the process runs now, unless it was asked for that program before. */
struct mmt_error *read_options(struct recorder *recorder, struct traced_process *process) MMT_MUST_CHECK;

#endif
