/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Gives a recorder the state of its jobs, as mmt_record() does. One recorder at a time. */
#pragma once

#include "capture/jit-code/jit-reader.h"
#include "capture/memory/residency.h"
#include "capture/recorder/recorder.h"
#include "capture/runtimes/ask-runtime.h"

static inline void recorder_state_init(struct recorder *recorder)
{
	static struct memory_jobs memory;
	static struct runtime_jobs runtimes;
	static struct jit_reader jit_reader;

	memory = (struct memory_jobs){0};
	runtimes = (struct runtime_jobs){0};
	jit_reader = (struct jit_reader){0};
	recorder->jobs.memory = &memory;
	recorder->jobs.runtimes = &runtimes;
	recorder->jobs.jit_reader = &jit_reader;
}
