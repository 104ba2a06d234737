// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/message.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mmtrace/output.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static void put_line(const struct command *command, const char *format, va_list arguments)
{
	char *line = NULL;

	if (vasprintf(&line, format, arguments) < 0)
		line = NULL;
	if (command)
		fprintf(stderr, "mmtrace %s: ", command->name);
	else
		fputs("mmtrace: ", stderr);
	mmt_write_escaped(line ? line : "out of memory", stderr);
	putc('\n', stderr);
	free(line);
}

void message(const struct command *command, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	put_line(command, format, arguments);
	va_end(arguments);
}

const char *message_no_memory_cause(void)
{
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	struct rlimit limit;
	char pages[32] = ""; /* of the address space in use */

	if (fd >= 0) {
		(void)!read(fd, pages, sizeof(pages) - 1);
		close(fd);
	}
	/* A request that fails may be as large as what is left. */
	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    strtoull(pages, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) < limit.rlim_cur / 2)
		return "";
	return "; the limit of the address space is too low: raise it with `ulimit -v`";
}

int message_error(const struct command *command, struct mmt_error *error)
{
	bool no_memory = error->code == MMT_ERROR_NO_MEMORY;

	message(command, "%s%s", error->message, no_memory ? message_no_memory_cause() : "");
	mmt_error_destroy(error);
	return EXIT_UNUSABLE;
}

int message_input_error(const struct command *command, const char *input, struct mmt_error *error)
{
	if (error->errno_value != ENOENT || strcmp(input, DEFAULT_FILE) != 0)
		return message_error(command, error);
	message(command, "there is no " DEFAULT_FILE " in this directory; record first: mmtrace record -p PID");
	mmt_error_destroy(error);
	return EXIT_UNUSABLE;
}

int message_usage(const struct command *command, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	put_line(command, format, arguments);
	va_end(arguments);
	if (command)
		fprintf(stderr, "See 'mmtrace %s --help'.\n", command->name);
	else
		fputs("See 'mmtrace --help'.\n", stderr);
	return EXIT_UNUSABLE;
}

#define SECOND_NS ((uint64_t)1000000000)
#define PATIENCE_NS SECOND_NS		 /* before the first line */
#define AGAIN_NS (SECOND_NS / 5)	 /* between lines */
#define ESTIMATE_FROM_NS (SECOND_NS / 2) /* earlier estimates are too uncertain */
#define NAME_BYTES_MAX 40		 /* so that the line has less than 80 columns */

#define WIPE "\r\033[K"

static volatile sig_atomic_t line_stands;

void progress_wipe(void)
{
	static const char wipe[] = WIPE;

	if (line_stands)
		(void)!write(STDERR_FILENO, wipe, sizeof(wipe) - 1);
}

/* Remove the line, so that the shell's prompt does not appear behind it. */
static void wipe_and_die(int number)
{
	progress_wipe();
	signal(number, SIG_DFL);
	raise(number); /* delivered when this returns */
}

/* Wipe the line at a signal that has its default action. */
static void wipe_at(int number)
{
	struct sigaction action = {.sa_handler = wipe_and_die}, before;

	if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
		(void)sigaction(number, &action, NULL);
}

uint64_t clock_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * SECOND_NS + (uint64_t)time.tv_nsec;
}

static void write_line(const struct progress *progress, uint64_t elapsed_ns, uint64_t done, uint64_t total,
		       FILE *stream)
{
	char text[MMT_SIZE_TEXT];
	uint64_t left_ns;

	fputs("reading ", stream);
	mmt_write_escaped(progress->name, stream);
	if (!total) {
		fprintf(stream, ": %s", mmt_format_bytes(done, text));
		return;
	}
	done = done < total ? done : total;
	fprintf(stream, ": %.0f %%", 100.0 * (double)done / (double)total);
	if (elapsed_ns < ESTIMATE_FROM_NS || !done)
		return;
	/* If the rate stays the same. */
	left_ns = (uint64_t)((double)elapsed_ns * (double)(total - done) / (double)done);
	fprintf(stream, ", %" PRIu64 " s left", (left_ns + SECOND_NS - 1) / SECOND_NS);
}

static void tell(void *context, uint64_t done, uint64_t total)
{
	struct progress *progress = context;
	uint64_t now = clock_ns();

	if (now - progress->start_ns < PATIENCE_NS || now - progress->told_ns < AGAIN_NS)
		return;
	progress->told_ns = now;
	line_stands = true;
	fputs(WIPE, stderr);
	write_line(progress, now - progress->start_ns, done, total, stderr);
	fflush(stderr);
}

/* The last component of a path, if it is short enough. */
static const char *short_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash && slash[1] ? slash + 1 : path;

	if (!strcmp(path, "-"))
		return "standard input";
	for (size_t i = 0; name[i]; i++) {
		if (i == NAME_BYTES_MAX || (unsigned char)name[i] < ' ') /* escaped, it would be longer */
			return "the recording";
	}
	return name;
}

const struct mmt_progress *progress_begin(struct progress *progress, const char *name)
{
	const char *terminal = getenv("TERM");

	*progress = (struct progress){
	    .watch = {.tell = tell, .context = progress}, .name = short_name(name), .start_ns = clock_ns()};
	if (!isatty(STDERR_FILENO) || !terminal || !strcmp(terminal, "dumb") || tcgetpgrp(STDERR_FILENO) != getpgrp())
		return NULL;
	wipe_at(SIGINT);
	wipe_at(SIGTERM);
	return &progress->watch;
}

void progress_end(void)
{
	progress_wipe();
	line_stands = false;
}
