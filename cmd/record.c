// SPDX-License-Identifier: LGPL-2.1-or-later
/* mmtrace record: records, then packs, and says what was recorded. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/message.h"
#include "cli/stop-signals.h"
#include "cli/terminal.h"
#include "record-end.h"
#include "stop-condition.h"

#define PACKING_NICE 10
#define NAMES_SHOWN 8
#define CONDITION_WARNING_NS 5000000000ULL /* how long the figures for one may be unknown in silence */
#define HINT_NAME_BYTES 64		   /* of a name in a hint */

/* The settings from the command line. */
struct record_arguments {
	struct mmt_record_options options;
	struct value_pids pids;
	struct value_words names; /* command names of processes */
	struct stop_conditions conditions;
	bool quiet, raw, report, wait;
	size_t ready_fd; /* 0: none */
};

struct record_context {
	const struct command *command;
	const struct mmt_record_options *options;
	bool quiet;
	struct stop_conditions *conditions;
	int ready_fd;	     /* gets a line when recording has begun, and of `watch` for each condition; -1: none */
	bool shows_progress; /* on a terminal that no recorded command uses, too */
	bool progress_shown; /* the status line is shown, in the last line of the terminal */
	char namesakes[256]; /* a hint at running processes with the command's name; "": none */
	struct record_end end;
};

#define RING_BYTES_MIN 8192
#define RING_BYTES_MAX (1ULL << 30)

static const char *parse_ring_bytes(const char *text, void *value)
{
	uint64_t bytes = 0;
	const char *expected = value_size(text, &bytes);

	if (expected)
		return expected;
	if (bytes < RING_BYTES_MIN || bytes > RING_BYTES_MAX)
		return "a size from 8K to 1G";
	*(uint64_t *)value = bytes;
	return NULL;
}

static const char *parse_call_graph(const char *text, void *value)
{
	static const char *const words[] = {"auto", "fp", "dwarf", "none", NULL}; /* enum mmt_call_graph */
	struct mmt_record_options *options = value;
	uint64_t bytes = MMT_STACK_DUMP_BYTES_DEFAULT;
	int word = value_choice(words, text, strlen(text));

	if (strncmp(text, "dwarf,", 6) == 0) {
		word = MMT_CALL_GRAPH_DWARF;
		if (value_size(text + 6, &bytes) || bytes < 8 || bytes > MMT_STACK_DUMP_BYTES_MAX || bytes % 8)
			return "auto, fp, none, or dwarf,SIZE with a multiple of 8 up to 65280";
	}
	if (word < 0)
		return "auto, fp, dwarf, dwarf,SIZE or none";
	options->call_graph = (enum mmt_call_graph)word;
	options->stack_dump_bytes = (uint32_t)bytes;
	return NULL;
}

/* Writes a hint for the name of running processes, with their PIDs, into `hint`. False: no process has it. */
static bool describe_named(const char *name, char hint[256])
{
	pid_t *pids = NULL;
	size_t count = 0, length;
	struct mmt_error *error = mmt_find_processes(name, &pids, &count);

	mmt_error_destroy(error);
	if (error || !count)
		return false;
	length = (size_t)snprintf(hint, 256, "--comm %s records what runs under that name (pid ", name);
	for (size_t i = 0; i < count && i < NAMES_SHOWN && length < 224; i++)
		length += (size_t)snprintf(hint + length, 256 - length, "%s%d", i ? ", " : "", (int)pids[i]);
	if (length < 250)
		snprintf(hint + length, 256 - length, "%s)", count > NAMES_SHOWN ? " ..." : "");
	free(pids);
	return length < 250;
}

static const char *parse_pids(const char *text, void *value)
{
	const char *expected = value_pids(text, value);
	static char instead[288];
	char hint[256];

	/* A number that is no PID is not the name of a process either. */
	if (!expected || isdigit((unsigned char)*text) || strlen(text) > HINT_NAME_BYTES || !describe_named(text, hint))
		return expected;
	snprintf(instead, sizeof(instead), "a PID; %s", hint);
	return instead;
}

static const char *parse_interval(const char *text, void *value)
{
	if (strcmp(text, "0") != 0)
		return value_duration(text, value);
	*(uint64_t *)value = 0;
	return NULL;
}

/* Whether `top`, `trace` or `watch` has started this recorder, and is its parent. */
static bool is_followed(const struct command *command)
{
	return strcmp(command->name, "record") != 0;
}

static void clear_progress(struct record_context *record)
{
	if (record->progress_shown)
		fputs("\r\033[K", stderr);
	record->progress_shown = false;
}

/* The status line in the last line of the terminal. Parts that do not fit are left out. */
struct status_line {
	char text[256];
	size_t length, width;
};

__attribute__((format(printf, 2, 3))) static void put_status(struct status_line *line, const char *format, ...)
{
	int gap = line->length ? 2 : 0;
	char part[128];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(part, sizeof(part), format, arguments);
	va_end(arguments);
	if (length < 0 || (size_t)length >= sizeof(part) || line->length + (size_t)(gap + length) > line->width) {
		line->width = line->length; /* leave out later parts, too */
		return;
	}
	line->length +=
	    (size_t)snprintf(line->text + line->length, sizeof(line->text) - line->length, "%*s%s", gap, "", part);
}

/* Appends what the readings show, with the verdict in the words of the report, which also knows leaks. */
static void put_growth(struct status_line *line, const struct record_end *end)
{
	const struct mmt_growth *growth = &end->growth;
	char size[MMT_SIZE_TEXT], change[MMT_SIZE_TEXT], rate[MMT_SIZE_TEXT];

	if (!end->growth_known)
		return;
	put_status(line, "%s %s", end->growth_of, mmt_format_bytes(growth->end_bytes, size));
	if (growth->end_swap_bytes)
		put_status(line, "swap %s", mmt_format_bytes(growth->end_swap_bytes, size));
	put_status(line, "%s", mmt_format_change(mmt_growth_change(growth), change));
	if (growth->bytes_per_minute != MMT_RATE_UNKNOWN)
		put_status(line, "%s/min", mmt_format_change(growth->bytes_per_minute, rate));
	put_status(line, "%s", mmt_verdict_headline(growth->verdict));
}

/* Judges the readings so far. Returns whether these are of Pss. */
static bool judge_growth(struct record_end *end, const struct mmt_record_progress *progress)
{
	bool by_pss = false;

	/* As in the report: if processes share much memory. */
	for (size_t i = 0, j = 0; !by_pss && i < progress->pss_reading_count; i++) {
		const struct mmt_resident_reading *pss = &progress->pss_readings[i];

		while (j < progress->resident_reading_count && progress->resident_readings[j].time_ns < pss->time_ns)
			j++;
		by_pss = j < progress->resident_reading_count &&
			 mmt_growth_goes_by_pss(progress->resident_readings[j].resident_bytes, pss->resident_bytes);
	}
	end->growth_known = progress->resident_reading_count > 0;
	end->growth = mmt_growth_judge(by_pss ? progress->pss_readings : progress->resident_readings,
				       by_pss ? progress->pss_reading_count : progress->resident_reading_count);
	end->growth_of = by_pss ? "Pss" : "RSS";
	if (!progress->pss_reading_count && progress->resident_processes > 1)
		end->growth_of = "sum of RSS";
	return by_pss;
}

/* Stop the recording, or let `watch` start the next recorder first. */
static void check_conditions(struct record_context *record, const struct mmt_record_progress *progress, bool by_pss)
{
	const char *met = stop_condition_check(record->conditions, progress,
					       by_pss ? progress->pss_readings : progress->resident_readings,
					       by_pss ? progress->pss_reading_count : progress->resident_reading_count);

	for (size_t i = 0; i < record->conditions->count; i++) {
		struct stop_condition *condition = &record->conditions->items[i];

		if (!condition->unknown || condition->warned || progress->elapsed_ns < CONDITION_WARNING_NS)
			continue;
		clear_progress(record);
		message(record->command, "warning: %s cannot be met: nothing is known here about what it compares",
			condition->text);
		condition->warned = true;
	}
	if (!met)
		return;
	clear_progress(record);
	message(record->command, "condition met: %s", met);
	if (!is_followed(record->command))
		stop_signals_stop();
	else
		(void)dprintf(record->ready_fd, "%s\n", met); /* fails if `watch` has already replaced this recorder */
}

/* Rewrites the status line every second. The last call has the last readings. */
static void show_progress(void *context, const struct mmt_record_progress *progress)
{
	struct record_context *record = context;
	struct status_line line = {0};
	char text[MMT_SIZE_TEXT];

	check_conditions(record, progress, judge_growth(&record->end, progress));
	if (!record->shows_progress)
		return;
	line.width = terminal_width(STDERR_FILENO) - 1;
	if (line.width >= sizeof(line.text))
		line.width = sizeof(line.text) - 1;
	put_status(&line, "%s", mmt_format_duration(progress->elapsed_ns, text));
	put_growth(&line, &record->end);
	put_status(&line, "%s %s", mmt_format_count(progress->events, text),
		   progress->events == 1 ? "event" : "events");
	put_status(&line, "%s lost", mmt_format_count(progress->lost_events, text));
	put_status(&line, "%s written", mmt_format_bytes(progress->file_bytes, text));
	if (progress->lost_stack_dumps)
		put_status(&line, "%s stack dumps lost", mmt_format_count(progress->lost_stack_dumps, text));
	clear_progress(record);
	fputs(line.text, stderr);
	fflush(stderr);
	record->progress_shown = true;
}

static void show_message(void *context, bool warning, const char *text)
{
	struct record_context *record = context;

	if (!warning && record->quiet && !record->options->verbose)
		return;
	clear_progress(record);
	message(record->command, "%s%s", warning ? "warning: " : "", text);
}

/* Prints the processes that were chosen by number and exist. */
static void put_processes(const pid_t *ids, size_t count)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		char path[64], name[64] = "";
		FILE *stream;
		pid_t inside;

		if (kill(ids[i], 0) < 0 && errno == ESRCH)
			continue;
		if (found++ >= NAMES_SHOWN)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/comm", (int)ids[i]);
		stream = fopen(path, "re");
		if (stream && fgets(name, sizeof(name), stream))
			name[strcspn(name, "\n")] = '\0';
		if (stream)
			fclose(stream);
		fputs(found > 1 ? ", " : "", stderr);
		mmt_write_escaped(name, stderr);
		fprintf(stderr, *name ? " (pid %d" : "pid %d", (int)ids[i]);
		inside = mmt_pid_in_container(ids[i]);
		if (inside != ids[i])
			fprintf(stderr, ", %d in its container", (int)inside);
		fputs(*name ? ")" : "", stderr);
	}
	if (found > NAMES_SHOWN)
		fprintf(stderr, " and %zu more", found - NAMES_SHOWN);
}

/* Reports the start to systemd, as sd_notify(3) does. */
static void notify_service_manager(void)
{
	static const char ready[] = "READY=1";
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = path ? strlen(path) : 0;
	int fd;

	if (!length || length >= sizeof(address.sun_path) || (*path != '/' && *path != '@'))
		return;
	memcpy(address.sun_path, path, length);
	if (*path == '@')
		*address.sun_path = '\0'; /* an abstract socket */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)sendto(fd, ready, strlen(ready), MSG_NOSIGNAL, (const struct sockaddr *)&address,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
	close(fd);
}

static void show_start(void *context)
{
	struct record_context *record = context;
	const struct mmt_record_options *options = record->options;

	if (!record->quiet && !is_followed(record->command)) {
		fputs(options->wait_name ? "mmtrace record: waiting for a new " : "mmtrace record: recording ", stderr);
		mmt_write_escaped(options->wait_name ? options->wait_name : "", stderr);
		put_processes(options->pids, options->pid_count);
		if (options->all_cpus)
			fputs("every process", stderr);
		if (options->cgroup) {
			fputs("control group ", stderr);
			mmt_write_escaped(options->cgroup, stderr);
		}
		if (options->command) {
			fputs(options->all_cpus || options->cgroup ? " while this runs: " : "a new ", stderr);
			mmt_write_escaped(options->command[0], stderr);
		}
		fputs("; Ctrl-C stops\n", stderr);
	}
	if (*record->namesakes)
		message(record->command, "%s", record->namesakes);
	/* A command may be the service that reports when it is ready. */
	if (!options->command)
		notify_service_manager();
	if (record->ready_fd >= 0) {
		if (write(record->ready_fd, "recording\n", 10) < 0)
			message(record->command, "warning: --ready-fd %d: %s", record->ready_fd, strerror(errno));
		if (is_followed(record->command))
			return;
		close(record->ready_fd);
	}
	record->ready_fd = -1;
}

/* Writes what the user may have meant by a command that does not exist. False: nothing is known. */
static bool describe_missing(const char *name, char hint[256])
{
	char *end;
	long pid = strtol(name, &end, 10);

	if (isdigit((unsigned char)*name) && !*end && pid > 0 && pid <= INT_MAX &&
	    (kill((pid_t)pid, 0) == 0 || errno == EPERM)) {
		snprintf(hint, 256, "-p %ld records the process with this PID", pid);
		return true;
	}
	/* execve() says the same if the interpreter of a script does not exist. A name without a slash is looked for in
	 * PATH. */
	if (strchr(name, '/') && access(name, X_OK) == 0) {
		snprintf(hint, 256, "the file exists, but not the program in its first line, or its dynamic loader");
		return true;
	}
	return strlen(name) <= HINT_NAME_BYTES && describe_named(name, hint);
}

/* Prints the command line with which root records the same; a command still runs as this user. */
static void put_as_root(const struct command *command, const struct mmt_record_options *options)
{
	bool before_command = options->command && geteuid();
	char path[32], *given = NULL;
	FILE *stream = NULL;
	size_t size = 0;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)getppid());
	if (is_followed(command))
		stream = fopen(path, "re");
	fputs("permission denied; try:\n  sudo", stderr);
	for (size_t i = 0; stream ? getdelim(&given, &size, '\0', stream) > 0 : options->command_line[i] != NULL; i++) {
		const char *word = !i ? program_invocation_name : stream ? given : options->command_line[i];

		putc(' ', stderr);
		put_shell_word(word, stderr);
		if (before_command && !strcmp(word, "--")) {
			fprintf(stderr, " setpriv --reuid=%u --regid=%u --init-groups", (unsigned)geteuid(),
				(unsigned)getegid());
			before_command = false;
		}
	}
	putc('\n', stderr);
	if (stream)
		fclose(stream);
	free(given);
}

/* Prints the error. Returns the status that a shell returns for a command that it cannot run. */
static int report_failure(const struct command *command, const struct mmt_record_options *options,
			  struct mmt_error *error)
{
	const struct mmt_refusal *refusal = error->refusal;
	int status = EXIT_UNUSABLE;
	char hint[256];

	if (error->code == MMT_ERROR_STOPPED)
		status = EXIT_SIGNAL + stop_signals_number(options->stop_fd);
	if (error->code == MMT_ERROR_COMMAND)
		status = error->errno_value == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
	if (refusal) {
		/* What to do first, then why, then what permits recording for good. */
		fprintf(stderr, "mmtrace %s: ", command->name);
		if (refusal->root_may)
			put_as_root(command, options);
		fprintf(stderr, "%s\n", error->message);
		for (const struct mmt_remedy *remedy = refusal->remedies; remedy->command; remedy++)
			fprintf(stderr, "%s:\n  %s\n", remedy->effect, remedy->command);
	} else {
		if (status != EXIT_NOT_FOUND || !describe_missing(options->command[0], hint))
			*hint = '\0';
		message(command, "%s%s%s%s", error->message,
			error->code == MMT_ERROR_NO_MEMORY ? message_no_memory_cause() : "", *hint ? "; " : "", hint);
	}
	mmt_error_destroy(error);
	return status;
}

/* Returns "mmtrace" and the words, with "--" before the command: an owned array of borrowed words; NULL: out of memory.
 */
static const char **make_command_line(char **words, char *const *command)
{
	const char **line;
	size_t count = 0;

	while (words[count])
		count++;
	line = calloc(count + 3, sizeof(*line));
	if (!line)
		return NULL;
	line[0] = "mmtrace";
	count = 1;
	for (char **word = words; *word; word++) {
		if (word == command && strcmp(line[count - 1], "--") != 0)
			line[count++] = "--";
		line[count++] = *word;
	}
	return line;
}

/* Returns a line that says in which state the file is, and how to pack it, owned; NULL: out of memory. */
static char *describe_unpacked(const char *before, const char *file, const char *state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return NULL;
	fprintf(stream, "mmtrace record: %s", before);
	mmt_write_escaped(file, stream);
	fprintf(stream, " %s stack memory; `mmtrace pack ", state);
	put_shell_word(file, stream);
	fputs("` packs it\n", stream);
	fclose(stream);
	return text;
}

/* Packs the recording. If this fails, the recording stays as it is: the exit status is that of recording. */
static bool pack_recorded(const struct command *command, const char *file, const struct record_arguments *arguments,
			  const char *interrupted)
{
	static const char failure[] = "was not packed and still contains";
	const struct pack_arguments pack = {
	    .input = file, .quiet = arguments->quiet, .no_summary = !arguments->options.verbose};
	char *failed = describe_unpacked("", file, failure);
	const struct sched_param none = {0};
	int policy = sched_getscheduler(0);
	bool packed;

	/* Packing can wait: it must not slow down what was recorded. At nice 10 it gets a tenth of the time of an
	 * ordinary thread of a busy system; at nice 19, a seventieth, users waited three times as long. Keep a policy
	 * that the user has chosen. The recorder has set the flag, which takes privileges to clear. */
	if ((policy & ~SCHED_RESET_ON_FORK) == SCHED_OTHER)
		(void)sched_setscheduler(0, SCHED_BATCH | (policy & SCHED_RESET_ON_FORK), &none);
	(void)setpriority(PRIO_PROCESS, 0, PACKING_NICE);
	stop_signals_end_with(interrupted ? interrupted : "");
	packed = pack_recording(command, &pack) == EXIT_OK;
	if (!packed)
		fputs(failed ? failed : "", stderr);
	/* Packing has replaced the words of the signal handler. */
	free(failed);
	return packed;
}

/* Shows the report, as the user would. */
static void show_report(const char *file)
{
	pid_t child = fork();

	if (child == 0) {
		stop_signals_end_with("");
		execl("/proc/self/exe", "mmtrace", "report", "-i", file, (char *)NULL);
		_exit(EXIT_UNUSABLE);
	}
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Returns the current name of the recording, owned. NULL: its name is not known, or out of memory. */
static char *find_file(const struct command *command, const struct mmt_record_options *options,
		       const struct mmt_record_summary *summary)
{
	char *file = NULL;

	if (summary->place == MMT_RECORD_ELSEWHERE) {
		message(command, "warning: %s was renamed during recording; its new name is not known",
			options->output);
		return NULL;
	}
	if (asprintf(&file, "%s%s", options->output, summary->place == MMT_RECORD_AT_OLD ? ".old" : "") < 0)
		return NULL;
	if (summary->place == MMT_RECORD_AT_OLD)
		message(command, "warning: another recorder replaced %s; this recording is now %s", options->output,
			file);
	return file;
}

/* Packs the recording, and prints how recording ended, what it shows, and what to do next. Returns the exit status. */
static int conclude(const struct command *command, const struct record_arguments *arguments, struct record_end *end,
		    struct mmt_error *write_error)
{
	const struct mmt_record_options *options = &arguments->options;
	bool removed = !end->summary->file_bytes, stream = strcmp(options->output, "-") == 0;
	char *found = removed ? NULL : find_file(command, options, end->summary);
	const char *file = found ? found : options->output;
	bool shows = arguments->report && !arguments->quiet && isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);
	bool packs = found && !stream && !arguments->raw, packed = false;
	int status = end->summary->command_status;
	char *interrupted = NULL;
	pid_t child;

	if (write_error) {
		message(command, "%s", write_error->message);
		if (!removed && !stream && !is_followed(command)) /* which may remove it */
			message(command, "recording stopped; %s contains what was written before", file);
		mmt_error_destroy(write_error);
	}
	end->stop_signal = stop_signals_number(options->stop_fd);
	while (stop_signals_number(options->stop_fd))
		;
	/* Packing takes time: let `watch` start the next recorder now. */
	if (is_followed(command) && end->summary->end != MMT_RECORD_END_STOPPED)
		(void)dprintf((int)arguments->ready_fd, "%s\n",
			      end->summary->end == MMT_RECORD_END_SIZE		 ? "full"
			      : end->summary->end == MMT_RECORD_END_WRITE_FAILED ? "failed"
										 : "ended");
	if (!removed && !arguments->quiet)
		record_end_put_reason(end);
	else if (end->summary->end == MMT_RECORD_END_SIZE && is_followed(command) && arguments->raw)
		message(command, "recording stopped: maximum size reached; --max-size changes it");
	/* The signal may come when the packed recording has just replaced it. */
	if (packs)
		interrupted =
		    describe_unpacked("packing was interrupted: ", file, "is complete, but may still contain");
	child = fork();
	/* Without a child, this process does it. */
	if (child <= 0) {
		if (packs) {
			packed = pack_recorded(command, file, arguments, interrupted);
		} else if (!found && !removed && !arguments->raw)
			message(command, "the recording was not packed and contains stack memory");
		if (!removed && !arguments->quiet)
			record_end_put_answer(end, found || stream ? file : NULL, packed);
	}
	if (child == 0)
		_exit(EXIT_OK);
	if (child > 0 && WIFSIGNALED(stop_signals_await(child, options->stop_fd, interrupted))) {
		fputs(interrupted ? interrupted : "", stderr);
		if (!removed && !arguments->quiet)
			record_end_put_answer(end, found || stream ? file : NULL, false);
	}
	free(interrupted);
	if (found && !stream && shows)
		show_report(file);
	free(found);
	if (end->summary->end == MMT_RECORD_END_WRITE_FAILED ||
	    (end->summary->end == MMT_RECORD_END_SIZE && is_followed(command)))
		return EXIT_EXCEEDED;
	if (!options->command || status == -1)
		return EXIT_OK;
	return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

static int record(const struct command *command, struct record_arguments *arguments, char **words)
{
	struct mmt_record_options *options = &arguments->options;
	const char **command_line = make_command_line(words, options->command);
	struct mmt_record_summary summary = {.command_status = -1};
	struct record_context context = {.command = command,
					 .options = options,
					 .quiet = arguments->quiet,
					 .conditions = &arguments->conditions,
					 .ready_fd = arguments->ready_fd ? (int)arguments->ready_fd : -1,
					 .end = {.options = options, .summary = &summary}};
	struct mmt_error *error, *write_error = NULL;
	int status;

	/* Somebody who passes a mere name may mean what runs. */
	if (options->command && !arguments->quiet && !options->command[1] &&
	    strlen(options->command[0]) <= HINT_NAME_BYTES && !strpbrk(options->command[0], "/*?[") &&
	    !describe_named(options->command[0], context.namesakes))
		*context.namesakes = '\0';
	options->command_line = command_line;
	options->message = show_message;
	options->started = show_start;
	options->progress = show_progress;
	context.shows_progress = !arguments->quiet && !options->command && isatty(STDERR_FILENO);
	options->context = &context;
	options->reading_interval_ns = arguments->conditions.count ? 1000000000 : 0;
	for (size_t i = 0; i < arguments->conditions.count; i++)
		options->counts_mappings |= arguments->conditions.items[i].kind == STOP_MAPPINGS;
	options->stop_fd = stop_signals_catch();
	options->command_ignores = stop_signals_ignored;
	options->command_blocks = stop_signals_blocked;
	if (options->stop_fd < 0) {
		free(command_line);
		message(command, "cannot set up signal handling: %s", strerror(errno));
		return EXIT_UNUSABLE;
	}
	/* With SIGPIPE ignored, writing to a closed pipe fails like writing to a full disk. */
	stop_signals_survive(SIGPIPE);
	error = mmt_record(options, &summary, &write_error);
	clear_progress(&context);
	status =
	    error ? report_failure(command, options, error) : conclude(command, arguments, &context.end, write_error);
	free(command_line);
	return status;
}

/* Adds the processes with these command names. Returns the exit status; negative: continue. */
static int find_named(const struct command *command, struct record_arguments *arguments)
{
	for (size_t i = 0; i < arguments->names.count; i++) {
		const char *name = arguments->names.items[i], *refused = NULL;
		pid_t *pids = NULL;
		size_t count = 0;
		struct mmt_error *error = mmt_find_processes(name, &pids, &count);

		if (error)
			return message_error(command, error);
		if (!count) {
			message(command,
				"--comm: no process has the command name '%s'; `ps -e -o pid,comm` shows the names, "
				"and `mmtrace record --wait` waits for a new process",
				name);
			return EXIT_UNUSABLE;
		}
		for (size_t j = 0; !refused && j < count; j++)
			refused = value_pids_add(&arguments->pids, pids[j]);
		free(pids);
		if (refused) {
			message(command, "--comm: out of memory");
			return EXIT_UNUSABLE;
		}
	}
	return -1;
}

/* Replaces PIDs that only a process in a container has, by that process. Returns the exit status; negative: continue.
 */
static int find_in_containers(const struct command *command, struct record_arguments *arguments)
{
	for (size_t i = 0; i < arguments->pids.count; i++) {
		pid_t pid = arguments->pids.items[i], found = 0, *pids = NULL;
		struct mmt_error *error;
		size_t count = 0;
		int others = 0;

		if (kill(pid, 0) == 0 || errno != ESRCH)
			continue;
		error = mmt_find_processes("*", &pids, &count);
		for (size_t j = 0; !error && j < count; j++) {
			if (mmt_pid_in_container(pids[j]) != pid)
				continue;
			others += found != 0;
			found = pids[j];
		}
		free(pids);
		if (error)
			return message_error(command, error);
		if (others) {
			message(
			    command,
			    "--pid: %d processes have the PID %d in their containers, and none has it here: pass the "
			    "PID here, such as %d",
			    others + 1, (int)pid, (int)found);
			return EXIT_UNUSABLE;
		}
		if (found)
			arguments->pids.items[i] = found;
	}
	return -1;
}

/* Checks what mmt_record() does not, and passes it the rest. Returns the exit status; negative: continue. */
static int check_arguments(const struct command *command, struct record_arguments *given, char **arguments)
{
	struct mmt_record_options *options = &given->options;
	int status;

	/* The command does not inherit the descriptor, so that its reader sees the end. */
	if (given->ready_fd && given->ready_fd <= STDERR_FILENO)
		return message_usage(command,
				     "--ready-fd %zu: use a descriptor from 3 on, which the command does not need",
				     given->ready_fd);
	if (given->ready_fd > INT_MAX || (given->ready_fd && fcntl((int)given->ready_fd, F_SETFD, FD_CLOEXEC) < 0))
		return message_usage(command, "--ready-fd: descriptor %zu is not open", given->ready_fd);
	if (given->wait && given->names.count != 1)
		return message_usage(command, "--wait needs one --comm NAME");
	status = given->wait ? -1 : find_named(command, given);
	if (status < 0)
		status = find_in_containers(command, given);
	if (status >= 0)
		return status;
	options->wait_name = given->wait ? given->names.items[0] : NULL;
	options->pids = given->pids.items;
	options->pid_count = given->pids.count;
	options->command = *arguments ? arguments : NULL;
	return -1;
}

/* In the order of enum mmt_record_scope, mmt_images and mmt_code. */
static const char *const scope_words[] = {"auto", "threads", "cpus", "cgroup", NULL};
static const char *const fault_words[] = {"auto", "none", "sampled", "all", NULL};
static const char *const image_words[] = {"missing", "all", "none", NULL};
static const char *const code_words[] = {"all", "none", NULL};

/* Parses the command line. Returns the same as options_parse(). */
static int parse_arguments(const struct command *command, struct record_arguments *arguments, int argc, char **argv,
			   int *first_ret)
{
	const struct option_entry table[] = {
	    OPTION(
		'p', "pid", parse_pids, &arguments->pids, "PID[,PID...]",
		"attach to these processes, with all their threads and later children; --tree adds existing children",
		.group = "What to record"),
	    OPTION(0, "comm", value_word, &arguments->names, "COMM",
		   "attach to every process with this command name, as `ps -e -o comm` shows it; may be a pattern such "
		   "as 'worker-*', and repeated"),
	    OPTION(0, "wait", value_flag, &arguments->wait, NULL,
		   "wait for the next process of the name in --comm, and record it from its start; needs root",
		   .rare = true),
	    OPTION(0, "tree", value_flag, &arguments->options.tree, NULL,
		   "also record existing children, and the children of these; with -p or --comm", .rare = true),
	    OPTION('a', "all-cpus", value_flag, &arguments->options.all_cpus, NULL,
		   "record every process, now and later", .exact = true),
	    OPTION('G', "cgroup", value_string, &arguments->options.cgroup, "PATH|ID",
		   "record every process of this control group, and of the groups below it, such as a container or "
		   "service"),
	    OPTION(0, "duration", value_duration, &arguments->options.duration_ns, "TIME",
		   "stop after TIME: 10s, 500ms, 2m, 1h", .group = "How long"),
	    OPTION(0, "max-size", value_size, &arguments->options.max_bytes, "SIZE",
		   "stop when SIZE is written: 100M, 2G", .rare = true),
	    OPTION(0, "until", stop_condition_parse, &arguments->conditions, "CONDITION",
		   "stop when this is met: rss>SIZE, growth>SIZE/TIME, or group>N% of the control group's limit; "
		   "may be repeated",
		   .rare = true),
	    OPTION('g', "call-graph", parse_call_graph, &arguments->options, "auto|fp|dwarf[,SIZE]|none",
		   "how stacks are recorded: auto suits most programs; dwarf,SIZE copies SIZE bytes of each stack",
		   .group = "Stacks and names", .rare = true),
	    OPTION(0, "faults", NULL, &arguments->options.faults, "auto|none|sampled|all",
		   "record which code touches memory: every 97th page fault, the default where events on CPUs are "
		   "permitted, or each one, which costs more",
		   .choices = fault_words, .rare = true),
	    OPTION(0, "ask-runtime", value_flag, &arguments->options.ask_runtime, NULL,
		   "ask .NET and Java processes for a perf map, if they were started without one", .exact = true,
		   .rare = true),
	    OPTION('o', "output", value_string, &arguments->options.output, "FILE",
		   "write the recording to FILE (default " DEFAULT_FILE "); an existing FILE is renamed to FILE.old; "
		   "-: write to standard output, for a pipe",
		   .group = "Output"),
	    OPTION(0, "report", value_flag, &arguments->report, NULL,
		   "show the report when recording has ended; on a terminal, unless -q"),
	    OPTION(
		0, "raw", value_flag, &arguments->raw, NULL,
		"keep stack memory and registers instead of packing the recording at the end, as `mmtrace pack` does",
		.rare = true),
	    OPTION(0, "ready-fd", value_count, &arguments->ready_fd, "N",
		   "write a line to descriptor N when recording begins; then close it", .rare = true),
	    OPTION('q', "quiet", value_flag, &arguments->quiet, NULL, "print only warnings and errors"),
	    OPTION('v', "verbose", value_flag, &arguments->options.verbose, NULL,
		   "show what the recorder is doing, and its events, stack dumps and cost", .rare = true),
	    OPTION('m', "ring-size", parse_ring_bytes, &arguments->options.ring_bytes, "SIZE",
		   "ring buffer memory per CPU; a larger one loses fewer events under load", .group = "More"),
	    OPTION(
		0, "lean", value_flag, &arguments->options.lean, NULL,
		"record only a small stack dump with each call: cheap, for programs that map and unmap all the time"),
	    OPTION(0, "no-compress", value_flag, &arguments->options.no_compress, NULL,
		   "write uncompressed records: a much larger file, which older tools can read"),
	    OPTION(0, "no-census", value_flag, &arguments->options.no_census, NULL,
		   "do not count what is in the malloc heaps of the processes"),
	    OPTION(0, "no-madvise", value_flag, &arguments->options.no_madvise, NULL,
		   "do not record calls of madvise that give memory back; cheaper for programs that make very many of "
		   "them"),
	    OPTION(
		0, "scope", NULL, &arguments->options.scope, "auto|threads|cgroup|cpus",
		"where to open the events; auto: for each thread, or in the control group or on the CPUs if there are "
		"too many threads or CPUs",
		.choices = scope_words),
	    OPTION(
		0, "snapshot-interval", parse_interval, &arguments->options.snapshot_interval_ns, "TIME",
		"check against the kernel's maps every TIME, and record which pages are resident; 0 (default): check "
		"only a command and its children, at growing intervals"),
	    OPTION(
		0, "images", NULL, &arguments->options.images, "missing|all|none",
		"which ELF files to copy into the recording; missing (default): those that this machine cannot open by "
		"their path, as in containers",
		.choices = image_words),
	    OPTION(0, "code", NULL, &arguments->options.code, "all|none",
		   "whether to copy JIT code into the recording; unwinding JIT code without frame pointers needs it",
		   .choices = code_words),
	    OPTIONS_END,
	};

	return options_parse(command, table, OPTIONS_FIRST, argc, argv, first_ret);
}

int cmd_record(const struct command *command, int argc, char **argv)
{
	struct record_arguments arguments = {0};
	int first = 0, status;

	mmt_record_options_init(&arguments.options);
	status = parse_arguments(command, &arguments, argc, argv, &first);
	if (status < 0)
		status = check_arguments(command, &arguments, argv + first);
	if (status < 0)
		status = record(command, &arguments, argv);
	free(arguments.pids.items);
	free(arguments.names.items);
	return status;
}
