/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLI_STOP_SIGNALS_H
#define CLI_STOP_SIGNALS_H

/*
 * Before anything else here: what a command that is started later shall find as if it were started without mmtrace.
 * SIGCHLD is no longer ignored then.
 */
void stop_signals_note_inherited(void);

/* The numbers of the signals that were ignored and of those that were blocked then, with a 0 behind. */
const int *stop_signals_ignored(void);
const int *stop_signals_blocked(void);

/*
 * From now on SIGINT, SIGTERM and SIGHUP make the returned descriptor readable instead of ending the process; those
 * that were ignored stay ignored (nohup). -1 and errno on failure.
 */
int stop_signals_catch(void);

/* They end the process again. */
void stop_signals_release(void);

/* From now on SIGUSR1 puts its time into the returned descriptor, which does not block. -1 and errno on failure. */
int stop_signals_marks(void);

/* From now on the signal does nothing. */
void stop_signals_survive(int number);

/* The signal that made it so: the first. */
int stop_signals_number(int stop_fd);

#endif
