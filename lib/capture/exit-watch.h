/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Holds a process and its children, with all their threads, at their ends (ptrace), so that their maps can be read when
 * nothing changes them any more. A thread of its own waits for them: the kernel reports only to the thread that traces.
 * Signals and new threads stop for a moment, too; a program that is set-user-ID does not get its rights.
 */
#ifndef CAPTURE_EXIT_WATCH_H
#define CAPTURE_EXIT_WATCH_H

#include <sys/types.h>

#include "base/error.h"

struct exit_watch;

struct mmt_error *exit_watch_start(pid_t pid, struct exit_watch **watch_ret) MMT_MUST_CHECK;

/* Lets go of all. Accepts NULL. */
void exit_watch_stop(struct exit_watch *watch);

/* Readable when a process is held at its end; -1 for NULL. */
int exit_watch_descriptor(const struct exit_watch *watch);

/* The process that is held; 0: none. It must be let go by exit_watch_let_go() before there is another. */
pid_t exit_watch_next(struct exit_watch *watch);
void exit_watch_let_go(struct exit_watch *watch);

#endif
