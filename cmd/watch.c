// SPDX-License-Identifier: LGPL-2.1-or-later
/* mmtrace watch: records without end, into one file after another of a directory. The next recorder has begun before
 * the last one is stopped, so that no call is missed. This process parses neither recordings nor files of targets. */
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/message.h"
#include "cli/options.h"
#include "cli/stop-signals.h"
#include "stop-when.h"

#define NS_PER_SECOND 1000000000ULL
#define RECORDINGS_MAX 8  /* at a time */
#define RECORDING_SHARE 8 /* of the directory's size: the largest that a recording gets */
#define BYTES_MIN (8ULL << 20)
#define SHORT_NS (5 * NS_PER_SECOND) /* a shorter recording, on a full disk, delays the next one */
#define DELAY_NS_MAX (64 * NS_PER_SECOND)
#define RESEND_NS NS_PER_SECOND /* a recorder that just starts may lose the signal to stop */
#define NAME_LENGTH 20		/* of 20261130T221500.123Z */

/* From the start of its recorder to the end of the program of --run. */
struct recording {
	pid_t pid;    /* of the recorder, then of the process that runs the program; 0: none */
	int ended_fd; /* readable when that has ended */
	int said_fd;  /* what the recorder says, a line each; -1: it has ended */
	uint64_t start_ns;
	char path[PATH_MAX];
	char reason[64]; /* why it ends; "": it goes on */
};

struct watch {
	const struct command *command;
	struct value_pids pids;
	struct value_words names;
	struct stop_conditions conditions;
	const char *cgroup, *output, *program;
	bool tree, all_cpus, quiet;
	char **options;	    /* more of `record`; ends with NULL */
	const char **words; /* of the command line of a recorder */
	char (*numbers)[16];
	uint64_t every_ns, max_bytes;
	int directory;
	struct recording recordings[RECORDINGS_MAX];
	struct recording *current, *next; /* that records, and that starts; NULL: none */
	uint64_t retry_ns, delay_ns;	  /* do not start one before; how long to wait after the next failure */
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

static bool is_in_use(const struct watch *watch, const char *name)
{
	for (size_t i = 0; i < RECORDINGS_MAX; i++) {
		const struct recording *recording = &watch->recordings[i];

		if (recording->pid && !strncmp(strrchr(recording->path, '/') + 1, name, NAME_LENGTH))
			return true;
	}
	return false;
}

/* Removes the oldest recordings, to leave room for one that is written, and one that is packed into a second file. */
static void make_room(const struct watch *watch)
{
	uint64_t limit = watch->max_bytes - 3 * (watch->max_bytes / RECORDING_SHARE), total = 0;
	struct dirent **entries;
	int count = scandirat(watch->directory, ".", &entries, is_ours, alphasort);
	struct stat status;

	for (int i = count - 1; i >= 0; i--) {
		if (fstatat(watch->directory, entries[i]->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
			total += (uint64_t)status.st_size;
		if (total > limit && !is_in_use(watch, entries[i]->d_name))
			(void)unlinkat(watch->directory, entries[i]->d_name, 0);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

/* Writes the command line of a recorder for what exists of the targets. Returns its length; 0: nothing does. */
static size_t make_command_line(struct watch *watch, const struct recording *recording)
{
	static char said_text[16], bytes_text[24];
	const char *const first[] = {"record",	 "-o",	       recording->path, "--max-size",
				     bytes_text, "--ready-fd", said_text};
	const char **words = watch->words;
	size_t count = sizeof(first) / sizeof(*first);
	bool found = watch->cgroup || watch->all_cpus;

	memcpy(words, first, sizeof(first));
	snprintf(said_text, sizeof(said_text), "%d", recording->said_fd);
	snprintf(bytes_text, sizeof(bytes_text), "%" PRIu64, watch->max_bytes / RECORDING_SHARE);
	for (size_t i = 0; i < watch->pids.count; i++) {
		/* The first recorder says what is wrong with them. */
		if (watch->has_begun && kill(watch->pids.items[i], 0) != 0 && errno == ESRCH)
			continue;
		snprintf(watch->numbers[i], sizeof(watch->numbers[i]), "%d", (int)watch->pids.items[i]);
		words[count++] = "-p";
		words[count++] = watch->numbers[i];
		found = true;
	}
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
	if (watch->cgroup) {
		words[count++] = "-G";
		words[count++] = watch->cgroup;
	}
	if (watch->all_cpus)
		words[count++] = "--all-cpus";
	if (watch->tree)
		words[count++] = "--tree";
	if (watch->quiet)
		words[count++] = "-q";
	for (size_t i = 0; i < watch->conditions.count; i++) {
		words[count++] = "--stop-when";
		words[count++] = watch->conditions.items[i].text;
	}
	for (char **option = watch->options; *option; option++)
		words[count++] = *option;
	words[count] = NULL;
	return found ? count : 0;
}

/* Forks a process that is stopped with this one. Returns whether this is the child. */
static bool fork_for(struct watch *watch, struct recording *recording)
{
	pid_t parent = getpid();

	fflush(stderr);
	recording->pid = fork();
	if (recording->pid == 0) {
		/* Signals from the terminal reach only the parent, which then sends SIGTERM. */
		(void)setpgid(0, 0);
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		signal(SIGHUP, SIG_DFL);
		/* Otherwise the next mmtrace would find the directory in use. */
		close(watch->directory);
		if (getppid() != parent)
			_exit(EXIT_UNUSABLE);
		return true;
	}
	if (recording->pid > 0) {
		recording->ended_fd = (int)syscall(SYS_pidfd_open, recording->pid, 0);
		if (recording->ended_fd >= 0)
			return false;
		(void)kill(recording->pid, SIGKILL);
		(void)waitpid(recording->pid, NULL, 0);
	}
	message(watch->command, "cannot start a process: %s", strerror(errno));
	recording->pid = 0;
	return false;
}

static void delay_next(struct watch *watch)
{
	watch->retry_ns = clock_ns() + watch->delay_ns;
	watch->delay_ns = 2 * watch->delay_ns < DELAY_NS_MAX ? 2 * watch->delay_ns : DELAY_NS_MAX;
}

/* Starts a recorder, if there is something to record. */
static void start_recorder(struct watch *watch)
{
	struct recording *recording = watch->recordings;
	struct timespec now;
	struct tm utc;
	char time_text[32] = "";
	int ends[2];
	size_t count;

	while (recording < watch->recordings + RECORDINGS_MAX && recording->pid)
		recording++;
	if (recording == watch->recordings + RECORDINGS_MAX) {
		message(watch->command, "warning: %d programs of --run have not ended: no new recording begins before",
			RECORDINGS_MAX - 1);
		return delay_next(watch);
	}
	make_room(watch);
	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (gmtime_r(&now.tv_sec, &utc))
		strftime(time_text, sizeof(time_text), "%Y%m%dT%H%M%S", &utc);
	if (pipe2(ends, O_CLOEXEC) != 0) {
		message(watch->command, "cannot start a recorder: %s", strerror(errno));
		return delay_next(watch);
	}
	*recording = (struct recording){.start_ns = clock_ns(), .said_fd = ends[1]};
	snprintf(recording->path, sizeof(recording->path), "%s/%s.%03ldZ.data", watch->output, time_text,
		 now.tv_nsec / 1000000);
	count = make_command_line(watch, recording);
	if (!count && !watch->names.count)
		watch->ends = !watch->current;
	else if (!count && !watch->current && !watch->waits && !watch->quiet)
		message(watch->command, "waiting for a process of that name");
	watch->waits = !count;
	if (!count)
		watch->retry_ns = clock_ns() + NS_PER_SECOND;
	else if (fork_for(watch, recording)) {
		close(ends[0]);
		_exit(cmd_record(watch->command, (int)count, (char **)(uintptr_t)watch->words));
	}
	close(ends[1]);
	recording->said_fd = ends[0];
	if (recording->pid)
		watch->next = recording;
	else
		close(ends[0]);
	if (count && !recording->pid)
		delay_next(watch);
}

static void stop_recorder(struct recording *recording, const char *reason)
{
	if (!*recording->reason)
		snprintf(recording->reason, sizeof(recording->reason), "%s", reason);
	(void)kill(recording->pid, SIGTERM);
}

/* A line of a recorder: that it records, that it does not any more, or a condition that came true. */
static void take_line(struct watch *watch, struct recording *recording, const char *line)
{
	if (recording == watch->next && !strcmp(line, "recording")) {
		if (watch->current)
			stop_recorder(watch->current, "interval");
		watch->current = recording;
		watch->next = NULL;
		watch->has_begun = true;
		return;
	}
	if (!*recording->reason)
		snprintf(recording->reason, sizeof(recording->reason), "%s", line);
	if (recording != watch->current || (strcmp(line, "ended") != 0 && strcmp(line, "full") != 0))
		return;
	watch->current = NULL;
	if (!strcmp(line, "ended") || clock_ns() - recording->start_ns > SHORT_NS)
		watch->delay_ns = NS_PER_SECOND;
	else
		delay_next(watch);
}

static void read_lines(struct watch *watch, struct recording *recording)
{
	char text[512], *rest = text, *line;
	ssize_t size = read(recording->said_fd, text, sizeof(text) - 1);

	if (size <= 0) {
		close(recording->said_fd);
		recording->said_fd = -1;
		return;
	}
	text[size] = '\0';
	while ((line = strsep(&rest, "\n")))
		if (*line)
			take_line(watch, recording, line);
}

/* In a child: writes a page if something has happened, and runs the program of the user. */
static void __attribute__((noreturn)) conclude(const struct watch *watch, const struct recording *recording)
{
	static const char *const usual[] = {"interval", "stopped", "ended", "full", NULL};
	char page[PATH_MAX + 8];
	pid_t child;

	if (value_choice(usual, recording->reason, strlen(recording->reason)) < 0) {
		snprintf(page, sizeof(page), "%.*s.html", (int)(strlen(recording->path) - strlen(".data")),
			 recording->path);
		child = fork();
		if (child == 0) {
			execl("/proc/self/exe", "mmtrace", "report", "--html", page, "-i", recording->path,
			      (char *)NULL);
			_exit(EXIT_UNUSABLE);
		}
		while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (!watch->program)
		_exit(EXIT_OK);
	execlp(watch->program, watch->program, recording->path, recording->reason, (char *)NULL);
	message(watch->command, "--run: cannot execute %s: %s", watch->program, strerror(errno));
	_exit(EXIT_OK);
}

/* The recorder or the program has ended. */
static void await(struct watch *watch, struct recording *recording)
{
	bool is_recorder = recording->start_ns;
	int status = 0;

	close(recording->ended_fd);
	(void)TEMP_FAILURE_RETRY(waitpid(recording->pid, &status, 0));
	recording->pid = 0;
	if (!is_recorder) {
		if (status && !watch->ends)
			message(watch->command, "--run: %s: %s ended with status %d", recording->path, watch->program,
				WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SIGNAL + WTERMSIG(status));
		return;
	}
	while (recording->said_fd >= 0)
		read_lines(watch, recording);
	recording->start_ns = 0;
	if (recording == watch->next) {
		watch->next = NULL;
		if (!watch->has_begun) {
			watch->ends = true;
			watch->status = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SIGNAL + WTERMSIG(status);
		}
		return delay_next(watch);
	}
	/* It was killed, or the kernel refused something. */
	if (recording == watch->current) {
		watch->current = NULL;
		delay_next(watch);
	}
	if (faccessat(AT_FDCWD, recording->path, R_OK, 0) == 0 && fork_for(watch, recording))
		conclude(watch, recording);
}

/* Milliseconds until something must be done without an event; -1: never. */
static int milliseconds_to_wait(const struct watch *watch, uint64_t now_ns)
{
	const struct recording *current = watch->current;
	uint64_t due_ns = watch->retry_ns;

	if (watch->ends)
		due_ns = now_ns + RESEND_NS;
	else if (watch->next)
		return -1;
	else if (current && !*current->reason && current->start_ns + watch->every_ns > due_ns)
		due_ns = current->start_ns + watch->every_ns;
	if (due_ns <= now_ns)
		return 0;
	return (due_ns - now_ns) / 1000000 < INT_MAX ? (int)((due_ns - now_ns) / 1000000 + 1) : INT_MAX;
}

/* Ends all recorders; when it is called again, also what they or the programs do after that. */
static void end_all(struct watch *watch, bool again)
{
	watch->ends = true;
	for (size_t i = 0; i < RECORDINGS_MAX; i++) {
		struct recording *recording = &watch->recordings[i];

		if (recording->pid && (again || recording == watch->current || recording == watch->next))
			stop_recorder(recording, "stopped");
	}
	watch->current = NULL;
}

static int run(struct watch *watch, int stop_fd, int cut_fd)
{
	struct pollfd ready[2 + 2 * RECORDINGS_MAX] = {{.fd = stop_fd, .events = POLLIN},
						       {.fd = cut_fd, .events = POLLIN}};
	bool busy = true;
	uint64_t time_ns;
	int wait;

	for (;;) {
		busy = false;
		for (size_t i = 0; i < RECORDINGS_MAX; i++) {
			struct recording *recording = &watch->recordings[i];

			busy |= recording->pid != 0;
			ready[2 + 2 * i] = (struct pollfd){recording->pid ? recording->said_fd : -1, POLLIN, 0};
			ready[3 + 2 * i] = (struct pollfd){recording->pid ? recording->ended_fd : -1, POLLIN, 0};
		}
		if (watch->ends && !busy)
			return watch->status;
		wait = milliseconds_to_wait(watch, clock_ns());
		if (wait == 0) {
			start_recorder(watch);
			continue;
		}
		if (poll(ready, sizeof(ready) / sizeof(*ready), wait) < 0)
			continue;
		if (ready[0].revents) {
			(void)stop_signals_number(stop_fd);
			end_all(watch, watch->ends);
		} else if (watch->ends && watch->next) {
			stop_recorder(watch->next, "stopped");
		}
		if (ready[1].revents && read(cut_fd, &time_ns, sizeof(time_ns)) > 0 && watch->current &&
		    !*watch->current->reason)
			snprintf(watch->current->reason, sizeof(watch->current->reason), "signal");
		for (size_t i = 0; i < RECORDINGS_MAX; i++) {
			if (ready[2 + 2 * i].revents)
				read_lines(watch, &watch->recordings[i]);
			if (ready[3 + 2 * i].revents)
				await(watch, &watch->recordings[i]);
		}
	}
}

/* Creates the directory, and keeps another `watch` out of it. */
static bool open_directory(struct watch *watch)
{
	if (mkdir(watch->output, 0700) != 0 && errno != EEXIST) {
		message(watch->command, "cannot create %s: %s", watch->output, strerror(errno));
		return false;
	}
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
	int first = 0, status, stop_fd, cut_fd;
	size_t options = 0;
	const struct option_entry table[] = {
	    OPTION('p', "pid", value_pids, &watch.pids, "PID[,PID...]", "watch these processes, until they end",
		   .group = "What to record"),
	    OPTION(0, "comm", value_word, &watch.names, "COMM",
		   "watch the processes with this command name, also those that start later; may be a pattern, and "
		   "repeated"),
	    OPTION(0, "tree", value_flag, &watch.tree, NULL,
		   "also record existing children, and the children of these; with -p or --comm", .rare = true),
	    OPTION('G', "cgroup", value_string, &watch.cgroup, "PATH|ID", "watch every process of this control group"),
	    OPTION('a', "all-cpus", value_flag, &watch.all_cpus, NULL, "watch every process", .exact = true),
	    OPTION('o', "output", value_string, &watch.output, "DIR", "the directory of the recordings",
		   .group = "Output"),
	    OPTION(0, "every", value_duration, &watch.every_ns, "TIME",
		   "begin a new recording every TIME (default 1h)"),
	    OPTION(0, "max-size", value_size, &watch.max_bytes, "SIZE",
		   "remove the oldest recordings when all have this size (default 1G)"),
	    OPTION(0, "when", stop_when_parse, &watch.conditions, STOP_WHEN_ARGUMENT,
		   "when this comes true, begin a new recording, and write a page on the last one; may be repeated"),
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
	if (status < 0 && !watch.output)
		status = message_usage(command, "pass -o DIR");
	if (status < 0 &&
	    (watch.pids.count != 0) + (watch.names.count != 0) + (watch.cgroup != NULL) + watch.all_cpus != 1)
		status = message_usage(command, "pass one of -p, --comm, -G and -a");
	if (status < 0 && watch.max_bytes < BYTES_MIN)
		status = message_usage(command, "--max-size: at least 8M");
	while (watch.options[options])
		options++;
	watch.words = calloc(16 + 2 * (watch.pids.count + watch.names.count + watch.conditions.count) + options,
			     sizeof(*watch.words));
	watch.numbers = calloc(watch.pids.count + 1, sizeof(*watch.numbers));
	stop_fd = stop_signals_catch();
	cut_fd = stop_signals_marks(SIGUSR2);
	if (status < 0 && (!watch.words || !watch.numbers || stop_fd < 0 || cut_fd < 0)) {
		message(command, "cannot begin: %s", strerror(errno));
		status = EXIT_UNUSABLE;
	}
	if (status < 0)
		status = open_directory(&watch) ? run(&watch, stop_fd, cut_fd) : EXIT_UNUSABLE;
	free(watch.words);
	free(watch.numbers);
	free(watch.pids.items);
	free(watch.names.items);
	return status;
}
