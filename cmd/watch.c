// SPDX-License-Identifier: LGPL-2.1-or-later
/* mmtrace watch: records continuously and rotates the files. Each recorder starts before the previous one stops, so
 * that no call is missed. This process parses neither recordings nor files of targets. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/message.h"
#include "cli/options.h"
#include "cli/stop-signals.h"
#include "stop-condition.h"

#define NS_PER_SECOND 1000000000ULL
#define RECORDERS_MAX 8	  /* at a time: one that records, and others that pack or run a program */
#define RECORDING_SHARE 8 /* of the directory's size: the largest that a recording gets */
#define BYTES_MIN (8ULL << 20)
#define DELAY_NS_MAX (64 * NS_PER_SECOND)
#define TICK_MILLISECONDS 100
#define NAME_LENGTH 20 /* of 20261130T221500.123Z */

/* A recorder, which after the recording also writes the page and runs the program. */
struct watch_recorder {
	pid_t pid; /* 0: none */
	int fd;	   /* socket: reports the start, conditions that are met, and the end; receives the reason for it */
	uint64_t start_ns;
	char path[PATH_MAX];
	char reason[64]; /* why the recording must end; "": it goes on */
};

struct watch {
	const struct command *command;
	struct value_pids pids;
	struct value_words names;
	struct stop_conditions conditions;
	const char *cgroup, *output, *program;
	bool all_cpus, quiet;
	char **options;	    /* more of `record`; ends with NULL */
	const char **words; /* of the command line of a recorder */
	struct watched_pid {
		int fd; /* readable when the process has ended */
		char number[16];
	} * watched; /* of `pids` */
	uint64_t every_ns, max_bytes;
	int directory;
	struct watch_recorder current, next; /* that records, and that starts */
	unsigned recorders;		     /* these, and those that have recorded */
	uint64_t retry_ns, delay_ns;	     /* do not start one before; how long to wait after the next failure */
	bool has_begun, waits, ends;
	int status; /* of a recorder that could not begin */
};

/* Has `watch` created this file: a recording, the page beside it, or a recording that is being packed? */
static int is_ours(const struct dirent *entry)
{
	const char *name = entry->d_name;

	return strspn(name, "0123456789") == 8 && name[8] == 'T' && strspn(name + 9, "0123456789.") == 10 &&
	       name[NAME_LENGTH - 1] == 'Z';
}

/* Removes the oldest recordings, to leave room for one that is written, and one that is packed into a second file.
 * Those of later than `now`, before the clock was set back, are the oldest. */
static void make_room(const struct watch *watch, const char *now)
{
	uint64_t limit = watch->max_bytes - 3 * (watch->max_bytes / RECORDING_SHARE), total = 0;
	const char *written = watch->current.pid ? strrchr(watch->current.path, '/') + 1 : "";
	struct dirent **entries;
	int count = scandirat(watch->directory, ".", &entries, is_ours, alphasort);
	struct stat status;

	for (int i = 2 * count - 1; i >= 0; i--) {
		const char *name = entries[i % count]->d_name;

		if ((strcmp(name, now) > 0) != (i < count))
			continue;
		if (fstatat(watch->directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
			total += (uint64_t)status.st_size;
		if (total > limit && strcmp(name, written) != 0)
			(void)unlinkat(watch->directory, name, 0);
	}
	for (int i = 0; i < count; i++)
		free(entries[i]);
	if (count >= 0)
		free(entries);
}

static bool has_ended(int pidfd)
{
	return poll(&(struct pollfd){pidfd, POLLIN, 0}, 1, 0) != 0;
}

/* Writes the command line of a recorder for what exists of the targets. Returns its length; 0: nothing does. */
static size_t make_command_line(struct watch *watch, const char *path, int fd)
{
	static char fd_text[16], bytes_text[24];
	const char *const own[] = {"-o", path, "--max-size", bytes_text, "--ready-fd", fd_text};
	const char **words = watch->words;
	size_t count = 0;
	bool found = watch->cgroup || watch->all_cpus;

	words[count++] = "record";
	for (char **option = watch->options; *option; option++)
		words[count++] = *option;
	memcpy(words + count, own, sizeof(own));
	count += sizeof(own) / sizeof(*own);
	snprintf(fd_text, sizeof(fd_text), "%d", fd);
	snprintf(bytes_text, sizeof(bytes_text), "%" PRIu64, watch->max_bytes / RECORDING_SHARE);
	for (size_t i = 0; i < watch->pids.count; i++) {
		if (has_ended(watch->watched[i].fd))
			continue;
		words[count++] = "-p";
		words[count++] = watch->watched[i].number;
		found = true;
	}
	/* Children that these have forked since. */
	if (watch->has_begun && watch->pids.count)
		words[count++] = "--tree";
	for (size_t i = 0; i < watch->names.count; i++) {
		pid_t *pids = NULL;
		size_t processes = 0;

		mmt_error_destroy(mmt_find_processes(watch->names.items[i], &pids, &processes));
		free(pids);
		if (!processes)
			continue;
		words[count++] = "--comm";
		words[count++] = watch->names.items[i];
		found = true;
	}
	if (watch->cgroup || watch->all_cpus)
		words[count++] = watch->cgroup ? "-G" : "--all-cpus";
	if (watch->cgroup)
		words[count++] = watch->cgroup;
	if (watch->quiet)
		words[count++] = "-q";
	for (size_t i = 0; i < watch->conditions.count; i++) {
		words[count++] = "--until";
		words[count++] = watch->conditions.items[i].text;
	}
	words[count] = NULL;
	return found ? count : 0;
}

/* Returns the status that a shell has of it. It ends with this process. */
static int run_program(const char *path, const char *const *words)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		execv(path, (char **)(uintptr_t)words);
		_exit(EXIT_CANNOT_RUN);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

/* In the child: writes a page if something has happened, and runs the user's program. */
static void conclude(const struct watch *watch, const char *path, const char *reason)
{
	static const char *const usual[] = {"interval", "stopped", "ended", "full", "failed", NULL};
	char page[PATH_MAX + 8];
	const char *const report[] = {"mmtrace", "report", "--html", page, "-i", path, NULL};
	const char *const program[] = {watch->program, path, reason, NULL};
	mode_t mask;
	int status;

	if (value_choice(usual, reason, strlen(reason)) < 0) {
		snprintf(page, sizeof(page), "%.*s.html", (int)(strlen(path) - strlen(".data")), path);
		mask = umask(077);
		if (run_program("/proc/self/exe", report) == 0)
			message(watch->command, "%s: wrote %s", reason, page);
		(void)umask(mask);
	}
	status = watch->program ? run_program(watch->program, program) : 0;
	if (status)
		message(watch->command, "--run: %s ended with status %d for %s", watch->program, status, path);
}

/* In the child. It ends with its parent. */
static void __attribute__((noreturn))
run_recorder(const struct watch *watch, const char *path, size_t count, int fd, pid_t parent)
{
	char reason[sizeof(watch->current.reason)] = "stopped";
	int status;

	close(watch->directory); /* whose lock it would keep */
	close(watch->next.fd);	 /* so that these end when the parent does */
	if (watch->current.pid)
		close(watch->current.fd);
	/* A SIGTERM before that had no effect, but the parent has already sent the reason. */
	if (!stop_signals_begin_child(parent) || recv(fd, reason, 1, MSG_PEEK | MSG_DONTWAIT) >= 0)
		_exit(EXIT_UNUSABLE);
	stop_signals_survive(SIGUSR2); /* which may be sent to all processes of a unit */
	status = cmd_record(watch->command, (int)count, (char **)(uintptr_t)watch->words);
	stop_signals_reset();
	/* Report the end to the parent if somebody else has stopped the recorder. */
	(void)shutdown(fd, SHUT_WR);
	if (access(path, R_OK) == 0) {
		if (read(fd, reason, sizeof(reason)) > 0)
			reason[sizeof(reason) - 1] = '\0';
		if (getppid() == parent)
			conclude(watch, path, reason);
	}
	_exit(status);
}

static void delay_next(struct watch *watch)
{
	watch->retry_ns = clock_ns() + watch->delay_ns;
	watch->delay_ns = 2 * watch->delay_ns < DELAY_NS_MAX ? 2 * watch->delay_ns : DELAY_NS_MAX;
}

/* Send the reason, and let the recorder finish alone. `stop`: it still records. */
static void release(struct watch_recorder *recorder, const char *reason, bool stop)
{
	const char *why = *recorder->reason ? recorder->reason : reason;

	if (!recorder->pid)
		return;
	(void)!send(recorder->fd, why, strlen(why) + 1, MSG_NOSIGNAL);
	if (stop)
		(void)kill(recorder->pid, SIGTERM);
	close(recorder->fd);
	recorder->pid = 0;
}

static void start_recorder(struct watch *watch)
{
	struct watch_recorder *next = &watch->next;
	pid_t parent = getpid();
	struct timespec now;
	struct tm utc;
	char time_text[32] = "";
	int ends[2];
	size_t count;

	if (watch->recorders == RECORDERS_MAX) {
		message(watch->command, "warning: all %d recorders are busy packing or with --run; retrying",
			RECORDERS_MAX);
		return delay_next(watch);
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
		message(watch->command, "cannot start a recorder: %s", strerror(errno));
		return delay_next(watch);
	}
	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (gmtime_r(&now.tv_sec, &utc))
		strftime(time_text, sizeof(time_text), "%Y%m%dT%H%M%S", &utc);
	*next = (struct watch_recorder){.start_ns = clock_ns(), .fd = ends[0]};
	snprintf(next->path, sizeof(next->path), "%s/%s.%03ldZ.data", watch->output, time_text, now.tv_nsec / 1000000);
	make_room(watch, strrchr(next->path, '/') + 1);
	count = make_command_line(watch, next->path, ends[1]);
	if (!count) {
		watch->ends = !watch->names.count && !watch->current.pid;
		if (!watch->current.pid && !watch->waits && !watch->quiet && !watch->ends)
			message(watch->command, "waiting for a process of that name");
		watch->retry_ns = clock_ns() + NS_PER_SECOND;
	} else {
		next->pid = fork();
		if (next->pid == 0)
			run_recorder(watch, next->path, count, ends[1], parent);
		if (next->pid < 0) {
			message(watch->command, "cannot start a recorder: %s", strerror(errno));
			next->pid = 0;
			delay_next(watch);
		}
	}
	watch->waits = !count;
	watch->recorders += next->pid != 0;
	close(ends[1]);
	if (!next->pid)
		close(ends[0]);
}

/* A line of a recorder: it has started, it has ended, or a condition is met. */
static void take_line(struct watch *watch, struct watch_recorder *recorder, const char *line)
{
	static const char *const ends[] = {"ended", "full", "failed", NULL};

	if (recorder == &watch->next) {
		release(&watch->current, "interval", true);
		watch->current = watch->next;
		watch->next.pid = 0;
		watch->has_begun = true;
		watch->status = EXIT_OK;
	} else if (value_choice(ends, line, strlen(line)) < 0) {
		if (!*recorder->reason || !strcmp(line, "oom"))
			snprintf(recorder->reason, sizeof(recorder->reason), "%s", line);
	} else {
		/* A disk that is full now may be so for long. */
		if (!strcmp(line, "failed"))
			delay_next(watch);
		else
			watch->delay_ns = NS_PER_SECOND;
		release(recorder, line, false);
	}
}

static void read_lines(struct watch *watch, struct watch_recorder *recorder)
{
	char text[512], *rest = text, *line;
	ssize_t size = recv(recorder->fd, text, sizeof(text) - 1, 0);

	if (size <= 0) {
		/* It failed to start, or somebody stopped or killed it. If nothing is left to record, that is why. */
		close(recorder->fd);
		recorder->pid = 0;
		if (make_command_line(watch, recorder->path, -1)) {
			watch->ends |= !watch->has_begun;
			return delay_next(watch);
		}
		watch->retry_ns = clock_ns() + NS_PER_SECOND;
		return;
	}
	text[size] = '\0';
	while (recorder->pid && (line = strsep(&rest, "\n"))) {
		if (!*line)
			continue;
		take_line(watch, recorder, line);
		recorder = &watch->current; /* if it was the next one */
	}
}

/* Milliseconds until something must be done without an event; -1: never. */
static int milliseconds_to_wait(const struct watch *watch)
{
	const struct watch_recorder *current = &watch->current;
	uint64_t due_ns = watch->retry_ns, now_ns = clock_ns();

	if (watch->ends)
		return TICK_MILLISECONDS;
	if (watch->next.pid)
		return -1;
	if (current->pid && !*current->reason && current->start_ns + watch->every_ns > due_ns)
		due_ns = current->start_ns + watch->every_ns;
	if (due_ns <= now_ns)
		return 0;
	return (due_ns - now_ns) / 1000000 < INT_MAX ? (int)((due_ns - now_ns) / 1000000 + 1) : INT_MAX;
}

/* Run until a signal, and until packing and programs have finished. A second signal ends these, because they end with
 * their parent. */
static int run(struct watch *watch, int stop_fd)
{
	struct watch_recorder *const recorders[] = {&watch->current, &watch->next};
	int wait, status, number;

	for (;;) {
		struct pollfd ready[3] = {{stop_fd, POLLIN, 0}};

		for (; watch->recorders && waitpid(-1, &status, WNOHANG) > 0; watch->recorders--)
			if (!watch->has_begun && !watch->status)
				watch->status =
				    WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SIGNAL + WTERMSIG(status);
		if (watch->ends && !watch->recorders)
			return watch->status;
		wait = milliseconds_to_wait(watch);
		if (wait == 0)
			start_recorder(watch);
		for (size_t i = 0; i < 2; i++)
			ready[1 + i] = (struct pollfd){recorders[i]->pid ? recorders[i]->fd : -1, POLLIN, 0};
		if (poll(ready, 3, wait) < 0)
			continue;
		for (size_t i = 0; i < 2; i++)
			if (ready[1 + i].revents)
				read_lines(watch, recorders[i]);
		number = ready[0].revents ? stop_signals_number(stop_fd) : 0;
		if (number == SIGUSR2 && !*watch->current.reason)
			snprintf(watch->current.reason, sizeof(watch->current.reason), "signal");
		if (!number || number == SIGUSR2)
			continue;
		if (watch->ends)
			return EXIT_SIGNAL + number;
		watch->ends = true;
		watch->status = watch->has_begun ? EXIT_OK : EXIT_SIGNAL + number;
		release(&watch->next, "stopped", true);
		release(&watch->current, "stopped", true);
	}
}

/* Creates the directory, and keeps another `watch` out of it. */
static bool open_directory(struct watch *watch)
{
	watch->directory = -1;
	if (mkdir(watch->output, 0700) == 0 || errno == EEXIST)
		watch->directory = open(watch->output, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (watch->directory >= 0 && flock(watch->directory, LOCK_EX | LOCK_NB) == 0)
		return true;
	message(watch->command, errno == EWOULDBLOCK ? "%s: another mmtrace watch writes into it" : "cannot use %s: %m",
		watch->output);
	return false;
}

int cmd_watch(const struct command *command, int argc, char **argv)
{
	struct watch watch = {
	    .command = command, .every_ns = 3600 * NS_PER_SECOND, .max_bytes = 1ULL << 30, .delay_ns = NS_PER_SECOND};
	int first = 0, status, stop_fd;
	const struct option_entry table[] = {
	    OPTION('p', "pid", value_pids, &watch.pids, "PID[,PID...]", "watch these processes, until they end",
		   .group = "What to record"),
	    OPTION(0, "comm", value_word, &watch.names, "COMM",
		   "watch the processes with this command name, also those that start later; may be a pattern, and "
		   "repeated"),
	    OPTION('G', "cgroup", value_string, &watch.cgroup, "PATH|ID", "watch every process of this control group"),
	    OPTION('a', "all-cpus", value_flag, &watch.all_cpus, NULL, "watch every process", .exact = true),
	    OPTION('o', "output", value_string, &watch.output, "DIR", "the directory of the recordings",
		   .group = "Output"),
	    OPTION(0, "every", value_duration, &watch.every_ns, "TIME",
		   "rotate every TIME: start the next recording (default 1h)"),
	    OPTION(0, "max-size", value_size, &watch.max_bytes, "SIZE",
		   "remove the oldest recordings beyond this total (default 1G)"),
	    OPTION(0, "when", stop_condition_parse, &watch.conditions, "CONDITION",
		   "rotate and write an HTML page when this is met: rss>SIZE, growth>SIZE/TIME, group>N% of the control "
		   "group's limit, psi>N%, mappings>N% of their limit, or oom; may be repeated"),
	    OPTION(0, "run", value_string, &watch.program, "PROGRAM",
		   "run PROGRAM with the file and the reason as arguments when a recording is complete"),
	    OPTION('q', "quiet", value_flag, &watch.quiet, NULL, "print only warnings and errors"),
	    OPTIONS_END,
	};

	status = options_parse(command, table, OPTIONS_FIRST, argc, argv, &first);
	watch.options = argv + first;
	if (status < 0 && *watch.options && (first < 2 || strcmp(argv[first - 1], "--") != 0 || **watch.options != '-'))
		status = message_usage(command, "unexpected argument '%s': options of mmtrace record follow --",
				       *watch.options);
	if (status < 0 && (!watch.output || strlen(watch.output) > PATH_MAX - 64))
		status = message_usage(command, "pass -o DIR, of less than 4,000 bytes");
	if (status < 0 &&
	    (watch.pids.count != 0) + (watch.names.count != 0) + (watch.cgroup != NULL) + watch.all_cpus != 1)
		status = message_usage(command, "pass one of -p, --comm, -G and -a");
	if (status < 0 && watch.max_bytes < BYTES_MIN)
		status = message_usage(command, "--max-size: at least 8M");
	if (status < 0 && watch.program && (!strchr(watch.program, '/') || access(watch.program, X_OK) != 0))
		status =
		    message_usage(command, "--run: '%s' is not the path of a program, such as ./run", watch.program);
	for (size_t i = 0; status < 0 && i < watch.conditions.count; i++)
		if (watch.conditions.items[i].window_ns > watch.every_ns)
			status = message_usage(command, "--when %s: the time is longer than a recording; see --every",
					       watch.conditions.items[i].text);
	watch.words = calloc(16 + 2 * (watch.pids.count + watch.names.count + watch.conditions.count) + (size_t)argc,
			     sizeof(*watch.words));
	watch.watched = calloc(watch.pids.count + 1, sizeof(*watch.watched));
	stop_fd = stop_signals_catch();
	if (status < 0 &&
	    (!watch.words || !watch.watched || stop_fd < 0 || !stop_signals_catch_also(SIGUSR2))) {
		message(command, "cannot begin: %s", strerror(errno));
		status = EXIT_UNUSABLE;
	}
	for (size_t i = 0; status < 0 && i < watch.pids.count; i++) {
		struct watched_pid *watched = &watch.watched[i];

		snprintf(watched->number, sizeof(watched->number), "%d", (int)watch.pids.items[i]);
		watched->fd = (int)syscall(SYS_pidfd_open, watch.pids.items[i], 0);
		if (watched->fd >= 0 && !has_ended(watched->fd))
			continue;
		message(command, "no process %d", (int)watch.pids.items[i]);
		status = EXIT_UNUSABLE;
	}
	if (status < 0)
		status = open_directory(&watch) ? run(&watch, stop_fd) : EXIT_UNUSABLE;
	free(watch.words);
	free(watch.watched);
	free(watch.pids.items);
	free(watch.names.items);
	return status;
}
