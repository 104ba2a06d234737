/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Holds a process and its children at their exit (ptrace), so that their maps can be read after their last change. A
 * separate thread waits for them, because the kernel reports only to the tracing thread. Each signal and each new
 * thread also stops the traced thread briefly; set-user-ID programs run without their privileges.
 */
#ifndef CAPTURE_PROCESS_EXIT_WATCH_H
#define CAPTURE_PROCESS_EXIT_WATCH_H

#include <sys/types.h>

#include "base/errors.h"

struct exit_watch;

struct mmt_error *exit_watch_start(pid_t pid, struct exit_watch **watch_ret) MMT_MUST_CHECK;

/* Releases all processes. Accepts NULL. */
void exit_watch_stop(struct exit_watch *watch);

/* Readable when a process is held at its end; -1 for NULL. */
int exit_watch_descriptor(const struct exit_watch *watch);

/* The process that is held; 0: none. The next one is held only after exit_watch_release(). */
pid_t exit_watch_next(struct exit_watch *watch);
void exit_watch_release(struct exit_watch *watch);

#endif
