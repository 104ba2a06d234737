/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Call this first: notes the signal settings that a recorded command must inherit. SIGCHLD is no longer ignored
 * afterwards. */
void stop_signals_note_inherited(void);

/* The signals that were ignored and those that were blocked at that time; the lists end with 0. */
extern int stop_signals_ignored[], stop_signals_blocked[];

/* From now on SIGINT, SIGTERM, SIGHUP and SIGUSR1 make the returned descriptor readable instead of ending the process;
 * those that were ignored stay ignored (nohup). -1 and errno on failure. */
int stop_signals_catch(void);

/* The signals end the process again, after writing `text`, which must stay valid, on standard error. */
void stop_signals_end_with(const char *text);

/* Makes that descriptor readable, as SIGTERM does. */
void stop_signals_stop(void);

/* So does this signal, after that. False and errno on failure. */
bool stop_signals_catch_also(int number);

/* Call this in a forked child that records: signals from the terminal reach only its parent, which then sends SIGTERM;
 * the child gets SIGTERM, too, when the parent ends. False: the parent has ended already. */
bool stop_signals_begin_child(pid_t parent);

/* From now on the signals end the process, as by default. */
void stop_signals_reset(void);

/* From now on the signal has no effect. */
void stop_signals_survive(int number);

/* Waits for a child that reads files. A file system that does not answer may keep it in the kernel, where no signal
 * ends it: then the user's signal ends this process alone, with `text` on standard error (NULL: none). Such a signal
 * that ended the child ends this process, too. Returns the status of waitpid(). */
int stop_signals_await(pid_t child, int stop_fd, const char *text);

/* The number of the first signal that made the descriptor readable. */
int stop_signals_number(int stop_fd);
