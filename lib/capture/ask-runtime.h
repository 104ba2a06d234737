/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * --ask-runtime: have a runtime that runs without a perf map write one, and leave things as they were afterwards. .NET
 * is asked when it is first seen and told to stop when recording ends; Java, whose map is a picture of one moment, is
 * asked when recording ends. Whatever fails is a warning.
 */
#ifndef CAPTURE_ASK_RUNTIME_H
#define CAPTURE_ASK_RUNTIME_H

#include <stddef.h>

#include "base/error.h"
#include "capture/recorder.h"

/* A file that is mapped executable tells which runtime this is. */
void ask_runtime_note_image(struct known_process *process, const char *path);

/* The process executes another program. */
void ask_runtime_forget(struct known_process *process);

/* Ask those that can be asked by now; once a second. Only with the option, as below. */
struct mmt_error *ask_runtimes(struct recorder *recorder) MMT_MUST_CHECK;

/* Recording has ended: ask those that are asked late, tell the others to stop. Before the maps are copied. */
struct mmt_error *ask_runtimes_at_end(struct recorder *recorder) MMT_MUST_CHECK;

/* The map of a process has been copied: remove it if it was made for us. */
void ask_runtime_clean_up(struct known_process *process);

/* One runtime's ways. `refusal_ret`: why it did not do it, "" when it did; index, because processes move. */
#define ASK_REFUSAL_BYTES 256
struct mmt_error *ask_dotnet(struct recorder *recorder, size_t index, bool enable,
			     char refusal_ret[ASK_REFUSAL_BYTES]) MMT_MUST_CHECK;
struct mmt_error *ask_java(struct recorder *recorder, size_t index, char refusal_ret[ASK_REFUSAL_BYTES]) MMT_MUST_CHECK;

#endif
