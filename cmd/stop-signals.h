/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_STOP_SIGNALS_H
#define CMD_STOP_SIGNALS_H

/*
 * From now on SIGINT, SIGTERM and SIGHUP make the returned descriptor readable instead of ending the process; those
 * that were ignored stay ignored (nohup). A command started later has the default actions again. -1 and errno on
 * failure.
 */
int stop_signals_catch(void);

/* They end the process again. */
void stop_signals_release(void);

/* From now on SIGUSR1 puts its time into the returned descriptor, which does not block. -1 and errno on failure. */
int stop_signals_marks(void);

/*
 * From now on the signal does nothing. One that was ignored stays so, for a command started later too, which has the
 * default action otherwise.
 */
void stop_signals_survive(int number);

/* The signal that made it so: the first. */
int stop_signals_number(int stop_fd);

#endif
