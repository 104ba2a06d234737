// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/report-command.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/message.h"

static volatile sig_atomic_t happened;

/* Other causes than a read beyond the end of a file still end the process. */
static void handle_bus_error(int number, siginfo_t *info, void *context)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	char *page = (char *)((uintptr_t)info->si_addr & ~(page_bytes - 1));

	(void)context;
	if (info->si_code == BUS_ADRERR &&
	    mmap(page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page) {
		happened = 1;
		return;
	}
	signal(number, SIG_DFL);
	raise(number);
}

void truncated_files_ignore(void)
{
	struct sigaction action = {.sa_sigaction = handle_bus_error, .sa_flags = SA_SIGINFO};

	sigemptyset(&action.sa_mask);
	(void)sigaction(SIGBUS, &action, NULL);
}

void truncated_files_report(const struct command *command)
{
	if (happened)
		message(command,
			"warning: a program or debug file was cut short while it was read: names may be missing, "
			"and stacks may end early");
}

char *cache_directory(void)
{
	const char *base = getenv("XDG_CACHE_HOME");
	const char *below = "/mmtrace";
	char *directory = NULL;

	/* The specification says to ignore relative paths. */
	if (!base || *base != '/') {
		base = getenv("HOME");
		below = "/.cache/mmtrace";
	}
	if (!base || *base != '/' || asprintf(&directory, "%s%s", base, below) < 0)
		return NULL;
	return directory;
}

const char *report_selection_parse_classes(const char *text, void *value)
{
	return value_classes(text, value);
}

const char *report_selection_parse_timestamp(const char *text, void *value)
{
	return value_timestamp(text, value);
}

const char *report_selection_parse_share(const char *text, void *value)
{
	return value_share(text, value);
}

const char *report_selection_parse_word(const char *text, void *value)
{
	return value_word(text, value);
}

void report_selection_init(struct report_selection *selection)
{
	*selection = (struct report_selection){0};
	mmt_report_options_init(&selection->report);
	value_class_words(selection->class_words);
}

void report_selection_deinit(struct report_selection *selection)
{
	free(selection->cache);
	value_pids_deinit(&selection->pids);
	value_words_deinit(&selection->focus);
	value_words_deinit(&selection->ignore);
	value_words_deinit(&selection->hide);
}

void report_selection_apply(struct report_selection *selection, bool no_cache)
{
	struct mmt_report_options *report = &selection->report;

	report->pids = selection->pids.count ? selection->pids.items : NULL;
	report->pid_count = selection->pids.count;
	report->focus = selection->focus.items;
	report->focus_count = selection->focus.count;
	report->ignore = selection->ignore.items;
	report->ignore_count = selection->ignore.count;
	report->hide = selection->hide.items;
	report->hide_count = selection->hide.count;
	selection->cache = no_cache ? NULL : cache_directory();
	report->cache_directory = selection->cache;
}

int report_selection_finish(const struct command *command, struct report_selection *selection, bool no_cache,
			    int argument_count, char **arguments)
{
	struct mmt_report_options *report = &selection->report;

	if (argument_count > 1)
		return message_usage(command, "unexpected argument '%s': pass only one recording", arguments[1]);
	if (argument_count && selection->input)
		return message_usage(command, "give the recording once: --input %s or %s", selection->input,
				     arguments[0]);
	if (selection->to_given && selection->at_given)
		return message_usage(command, "--at and --to both say where the window ends: give one");
	report->input = argument_count ? arguments[0] : selection->input ? selection->input : DEFAULT_FILE;
	report_selection_apply(selection, no_cache);
	return -1;
}

struct mmt_error *report_create(struct mmt_report_options *options, struct mmt_report **report_ret)
{
	struct progress progress;
	struct mmt_error *error;

	options->progress = progress_begin(&progress, options->input);
	error = mmt_report_create(options, report_ret);
	progress_end(&progress);
	return error;
}

#define MODE 0666 /* and the umask */
#define RECORDING_MAGIC "PERFILE2"

struct result_file {
	const char *path; /* as the user gave it */
	FILE *stream;
	char *target;	 /* what gets replaced, symbolic links resolved; NULL: written directly */
	char *temporary; /* beside the target; in the file system only while `named` */
	bool named;
};

static void deinit(struct result_file *file)
{
	free(file->target);
	free(file->temporary);
	file->target = file->temporary = NULL;
}

/* A new or regular file is replaced; anything else, such as a pipe, is written directly. */
static bool is_replaced(const char *path)
{
	struct stat status;

	return stat(path, &status) < 0 ? errno == ENOENT : S_ISREG(status.st_mode) != 0;
}

/* A user may pass the recording as the output by mistake, and it cannot be made again. */
static bool is_recording(const char *path)
{
	char magic[sizeof(RECORDING_MAGIC) - 1];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool same = fd >= 0 && read(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic) &&
		    !memcmp(magic, RECORDING_MAGIC, sizeof(magic));

	if (fd >= 0)
		close(fd);
	return same;
}

/* With O_TMPFILE, nothing is left behind if the process is killed. It gets its name through /proc. */
static int open_beside(struct result_file *file)
{
	char *directory = access("/proc/self/fd", X_OK) == 0 ? strdup(file->target) : NULL;
	int fd = directory ? open(dirname(directory), O_TMPFILE | O_WRONLY | O_CLOEXEC, MODE) : -1;

	free(directory);
	if (fd >= 0)
		return fd;
	file->named = true;
	return open(file->temporary, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, MODE);
}

static int open_replacement(struct result_file *file)
{
	struct stat status;
	int fd;

	file->target = realpath(file->path, NULL);
	if (!file->target)
		file->target = strdup(file->path);
	if (!file->target || asprintf(&file->temporary, "%s.new-%d", file->target, (int)getpid()) < 0) {
		file->temporary = NULL;
		errno = ENOMEM;
		return -1;
	}
	fd = open_beside(file);
	if (fd >= 0 && stat(file->target, &status) == 0)
		(void)fchmod(fd, status.st_mode & 0777);
	return fd;
}

/* False after a message; then do not call finish_result(). */
static bool open_result(const struct command *command, const char *path, struct result_file *file_ret)
{
	struct result_file file = {.path = path};
	bool replaced;
	int fd;

	if (strcmp(path, "-") == 0) {
		file.stream = stdout;
		*file_ret = file;
		return true;
	}
	replaced = is_replaced(path);
	if (replaced && is_recording(path)) {
		message(command, "%s is a recording, which would be replaced: choose another name for the output",
			path);
		return false;
	}
	fd = replaced ? open_replacement(&file) : open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		file.stream = fdopen(fd, "w");
	if (!file.stream) {
		message(command, "cannot write %s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		deinit(&file);
		return false;
	}
	*file_ret = file;
	return true;
}

static bool take_name(struct result_file *file)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fileno(file->stream));
	if (!file->named && linkat(AT_FDCWD, link, AT_FDCWD, file->temporary, AT_SYMLINK_FOLLOW) < 0)
		return false;
	file->named = true;
	return rename(file->temporary, file->target) == 0;
}

/* `complete`: give the file its name; otherwise remove it. False after a message: it could not be written. */
static bool finish_result(const struct command *command, struct result_file *file, bool complete)
{
	bool written = fflush(file->stream) == 0 && !ferror(file->stream);

	if (complete && written && file->target) {
		written = take_name(file);
		file->named &= !written;
	}
	if (complete && !written)
		message(command, "cannot write %s: %s", file->path, strerror(errno));
	if (file->named)
		unlink(file->temporary);
	if (file->stream != stdout && fclose(file->stream) != 0 && complete && written) {
		message(command, "cannot write %s: %s", file->path, strerror(errno));
		written = false;
	}
	deinit(file);
	return !complete || written;
}

int result_file_write(const struct command *command, const char *path,
		      struct mmt_error *(*write)(const void *context, FILE *stream), const void *context)
{
	struct result_file file;
	struct mmt_error *error;
	bool written;

	if (!open_result(command, path, &file))
		return EXIT_UNUSABLE;
	error = write(context, file.stream);
	written = finish_result(command, &file, !error);
	if (error)
		message_error(command, error);
	return written && !error ? EXIT_OK : EXIT_UNUSABLE;
}
