// SPDX-License-Identifier: LGPL-2.1-or-later
/* The full screen of `top`: a status line, the report, and a line of keys. */
#include "top.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "cli/message.h"
#include "cli/stop-signals.h"

#define FEW_FRAMES 12 /* of a stack */
#define SPEED_MAX 1024
#define SEEK_NS (10 * NS_PER_SECOND)

/* The other screen of the terminal, without a cursor and without wrapping of lines, and back. */
#define BEGIN "\033[?1049h\033[?25l\033[?7l"
#define END "\033[?7h\033[?25h\033[?1049l"

static const char help[] = "q, Ctrl-C    quit\n"
			   "space        pause, and go on\n"
			   "g            group by the next key: function, module, file, class, process, ...\n"
			   "s, >         sort by the next figure\n"
			   "M, P         sort by memory, or by growth per minute\n"
			   "/            show only what a pattern selects, as --focus; empty: everything\n"
			   "\\            show what a pattern does not select, as --ignore\n"
			   "b            show only what is mapped from now on; again: everything\n"
			   "e            show every frame of the stacks, or less\n"
			   "w            write what is recorded so far to a file\n"
			   "+ -          replay a recording faster or slower\n"
			   "left, right  go 10 seconds back or on in it; at a speed of N, 10 N seconds\n"
			   "arrows       scroll; also Page Up, Page Down, Home and End\n";

struct screen {
	struct top *top;
	struct top_report report; /* in the making */
	char *text;		  /* that is shown; NULL: none yet */
	char notice[80];
	char typed[sizeof(((struct top *)NULL)->filter)]; /* the filter, until Enter */
	size_t scroll, lines;
	unsigned columns, rows;
	unsigned speed;	    /* of what is replayed */
	uint64_t passed_ns; /* until this time of the clock */
	bool paused, helps, types, quits;
	bool excludes;	 /* what is typed */
	bool refresh;	 /* do not wait for the next report */
	bool last_shown; /* the recorder has ended, and nothing can change */
	struct termios before, raw;
	sigset_t mask; /* SIGWINCH, SIGTSTP and SIGCONT are received only while waiting */
	pid_t guard;   /* the process that restores the terminal */
};

bool top_screen_fits(const struct top *top)
{
	const char *terminal = getenv("TERM");

	return !top->display.json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && terminal && *terminal &&
	       strcmp(terminal, "dumb") != 0;
}

/* In a process of its own: restores the terminal when the parent ends, however it ends. */
static void __attribute__((noreturn)) guard_terminal(const struct screen *screen, int fd)
{
	char byte;

	for (const int *number = (const int[]){SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTTOU, SIGTSTP, 0}; *number;
	     number++)
		signal(*number, SIG_IGN);
	(void)!TEMP_FAILURE_RETRY(read(fd, &byte, 1));
	(void)!write(STDOUT_FILENO, END, sizeof(END) - 1);
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &screen->before);
	_exit(EXIT_OK);
}

static bool enter(const struct screen *screen)
{
	return tcsetattr(STDIN_FILENO, TCSANOW, &screen->raw) == 0 &&
	       write(STDOUT_FILENO, BEGIN, sizeof(BEGIN) - 1) > 0;
}

static bool begin(struct screen *screen)
{
	int ends[2];

	if (tcgetattr(STDIN_FILENO, &screen->before) != 0 || pipe2(ends, O_CLOEXEC) != 0)
		return false;
	screen->guard = fork();
	if (screen->guard == 0) {
		close(ends[1]);
		guard_terminal(screen, ends[0]);
	}
	close(ends[0]);
	screen->top->guarded_fd = ends[1];
	screen->raw = screen->before;
	screen->raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	screen->raw.c_cc[VMIN] = 1;
	screen->raw.c_cc[VTIME] = 0;
	screen->raw.c_cc[VQUIT] = _POSIX_VDISABLE;
	return screen->guard > 0 && enter(screen);
}

static volatile sig_atomic_t stops, continues; /* by SIGTSTP and SIGCONT */

static void note_change(int number)
{
	stops |= number == SIGTSTP;
	continues |= number == SIGCONT;
}

/* The shell gets the terminal as it was. Recording continues. */
static void take_job_signals(const struct screen *screen)
{
	struct sigaction change;
	sigset_t blocked;

	if (stops) {
		(void)!write(STDOUT_FILENO, END, sizeof(END) - 1);
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &screen->before);
		/* Nobody could continue an orphaned process: SIGTSTP does not stop that, as SIGSTOP would. */
		(void)sigaction(SIGTSTP, &(struct sigaction){.sa_handler = SIG_DFL}, &change);
		raise(SIGTSTP);
		(void)sigprocmask(SIG_SETMASK, &screen->mask, &blocked);
		(void)sigprocmask(SIG_SETMASK, &blocked, NULL);
		(void)sigaction(SIGTSTP, &change, NULL);
	}
	if (stops || continues)
		(void)enter(screen);
	stops = continues = 0;
}

static void draw(struct screen *screen)
{
	const char *text = screen->helps ? help : screen->text ? screen->text : "waiting for the first report\n";
	const char *no_colour = getenv("NO_COLOR");
	const struct top *top = screen->top;
	size_t room = screen->rows > 2 ? screen->rows - 2 : 0, line = 0, scroll;
	char *shown = NULL, at[MMT_SIZE_TEXT];
	size_t size = 0;
	FILE *stream = open_memstream(&shown, &size);

	if (!stream)
		return;
	screen->lines = 0;
	for (const char *c = text; *c; c++)
		screen->lines += *c == '\n';
	if (screen->scroll + room > screen->lines)
		screen->scroll = screen->lines > room ? screen->lines - room : 0;
	scroll = screen->helps ? 0 : screen->scroll;
	/* Erase before each line: behind one that fills the terminal, the cursor is still on its last column. */
	fprintf(stream, "\033[H\033[K%smmtrace top%s%s  by %s  sorted by %s", no_colour && *no_colour ? "" : "\033[7m",
		screen->paused ? "  PAUSED" : "", top->ended && !top->replays ? "  RECORDING HAS ENDED" : "",
		mmt_row_key_name(top->selection.report.by), sort_choices[top->display.text.sort]);
	if (top->replays)
		fprintf(stream, "  at %s, speed %u", top->ended ? "its end" : mmt_format_duration(top->at_ns, at),
			screen->speed);
	if (*top->filter)
		fputs(top->excludes ? "  without " : "  filter ", stream);
	mmt_write_escaped(top->filter, stream);
	fputs(top->baseline_ns ? "  since the baseline" : "", stream);
	fputs("\033[m", stream);
	while (*text && line < scroll + room) {
		size_t length = strcspn(text, "\n");

		if (line++ >= scroll)
			fprintf(stream, "\n\033[K%.*s\033[m", (int)length, text);
		text += length + (text[length] == '\n');
	}
	fprintf(stream, "\n\033[J\033[%u;1H", screen->rows);
	if (screen->types) {
		fputs(screen->excludes ? "without: " : "filter: ", stream);
		mmt_write_escaped(screen->typed, stream);
		fputc('_', stream);
	} else {
		fputs(*screen->notice ? screen->notice
				      : "q quit  space pause  g group  s sort  / filter  b baseline  e frames  h help",
		      stream);
	}
	if (fclose(stream) == 0)
		screen->quits |= write(STDOUT_FILENO, shown, size) < 0 && errno != EINTR && errno != EAGAIN;
	free(shown);
}

static struct mmt_error *copy_recording(const void *context, FILE *stream)
{
	FILE *recording = (FILE *)(uintptr_t)context;
	char buffer[65536];
	size_t count;

	while ((count = fread(buffer, 1, sizeof(buffer), recording)) > 0)
		fwrite(buffer, 1, count, stream);
	return NULL;
}

/* In the child. Only its owner may read a recording. */
static int copy_packed(const struct top *top, const char *name)
{
	struct pack_arguments arguments = {.input = name, .quiet = true};
	FILE *recording = fopen(top->path, "re");
	int status = EXIT_UNUSABLE;

	umask(077);
	if (recording)
		status = result_file_write(top->command, name, copy_recording, recording);
	if (!recording || ferror(recording)) {
		message(top->command, "cannot read %s: %s", top->path, strerror(errno));
		status = EXIT_UNUSABLE;
	} else if (status == EXIT_OK) {
		status = pack_recording(top->command, &arguments);
	}
	if (status)
		(void)unlink(name);
	return status;
}

/* What is recorded so far, packed, in a file of the current directory. Says why not if that fails. */
static void write_recording(struct screen *screen)
{
	char name[sizeof("mmtrace-20260101-000000.data")] = "";
	time_t now = time(NULL);
	int status = -1, ends[2];
	struct tm local;
	ssize_t count;
	pid_t child;

	if (localtime_r(&now, &local))
		strftime(name, sizeof(name), "mmtrace-%Y%m%d-%H%M%S.data", &local);
	snprintf(screen->notice, sizeof(screen->notice), "cannot write %s", name);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return;
	child = fork();
	if (child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(screen->top->guarded_fd);
		if (dup2(ends[1], STDOUT_FILENO) < 0 || dup2(ends[1], STDERR_FILENO) < 0)
			_exit(EXIT_UNUSABLE);
		_exit(copy_packed(screen->top, name));
	}
	close(ends[1]);
	/* A line of few characters. */
	count = child > 0 ? TEMP_FAILURE_RETRY(read(ends[0], screen->notice, sizeof(screen->notice) - 1)) : 0;
	if (count > 0) {
		screen->notice[count] = '\0';
		screen->notice[strcspn(screen->notice, "\n")] = '\0';
	}
	close(ends[0]);
	if (child > 0 && TEMP_FAILURE_RETRY(waitpid(child, &status, 0)) == child && !status)
		snprintf(screen->notice, sizeof(screen->notice), "written: %s", name);
}

static void handle_filter(struct screen *screen, char key)
{
	char *typed = screen->typed;
	size_t length = strlen(typed);

	if (key == '\r' || key == '\n') {
		memcpy(screen->top->filter, typed, sizeof(screen->typed));
		screen->top->excludes = screen->excludes;
		screen->types = false;
		screen->refresh = true;
	} else if (key == '\033') {
		screen->types = false;
	} else if (key == '\177' || key == '\b') {
		while (length && (typed[--length] & 0xc0) == 0x80) /* within a UTF-8 character */
			;
		typed[length] = '\0';
	} else if (!iscntrl((unsigned char)key) && length + 1 < sizeof(screen->typed)) {
		typed[length] = key;
		typed[length + 1] = '\0';
	}
}

static void handle_key(struct screen *screen, char key)
{
	struct top *top = screen->top;
	struct mmt_report_options *report = &top->selection.report;

	screen->helps = (key == 'h' || key == '?') && !screen->helps;
	*screen->notice = '\0';
	screen->refresh |= key && strchr("gsMPbe", key);
	switch (key) {
	case 'q':
		screen->quits = true;
		break;
	case ' ':
		screen->paused = !screen->paused;
		screen->refresh |= !screen->paused;
		break;
	case 'g':
		report->by = report->by >= MMT_BY_THREAD ? MMT_BY_STACK : report->by + 1;
		report->then_by = MMT_BY_STACK;
		screen->scroll = 0;
		break;
	case 's':
	case '>':
		if (!sort_choices[++top->display.text.sort])
			top->display.text.sort = 0;
		break;
	case 'M':
	case 'P':
		top->display.text.sort = key == 'M' ? MMT_SORT_MEMORY : MMT_SORT_RATE;
		break;
	case 'b':
		top->baseline_ns = top->baseline_ns ? 0 : top_now_ns(top);
		break;
	case '+':
		screen->speed *= screen->speed < SPEED_MAX ? 2 : 1;
		break;
	case '-':
		screen->speed /= screen->speed > 1 ? 2 : 1;
		break;
	case 'e':
		top->display.text.stack_frames = top->display.text.stack_frames ? 0 : FEW_FRAMES;
		break;
	case 'w':
		if (!top->replays)
			write_recording(screen);
		break;
	case '/':
	case '\\':
		screen->types = true;
		screen->excludes = key == '\\';
		*screen->typed = '\0';
		break;
	}
}

/* Of a recording that is replayed. */
static void seek(struct screen *screen, bool back)
{
	struct top *top = screen->top;
	uint64_t ns = SEEK_NS * screen->speed;

	if (!top->replays || (!back && top->ended))
		return;
	top->at_ns = !back ? top->at_ns + ns : top->at_ns > ns + NS_PER_SECOND ? top->at_ns - ns : NS_PER_SECOND;
	top->ended = screen->last_shown = false;
	screen->refresh = true;
}

static void read_keys(struct screen *screen)
{
	char keys[64 + 1] = "", key;
	size_t page = screen->rows > 3 ? screen->rows - 3 : 1;
	ssize_t count = read(STDIN_FILENO, keys, sizeof(keys) - 1);

	screen->quits |= count == 0 || (count < 0 && errno != EINTR);
	for (ssize_t i = 0; i < count; i++) {
		bool sequence = keys[i] == '\033' && i + 2 < count && (keys[i + 1] == '[' || keys[i + 1] == 'O');

		if (sequence) {
			/* What follows "ESC [": the last character, or the number before '~'. */
			char number = isdigit((unsigned char)keys[i + 3]) ? '\0' : keys[i + 2];

			for (i += 2; i < count && (keys[i] < 0x40 || keys[i] > 0x7e); i++)
				;
			key = keys[i] == '~' ? number : keys[i];
			if (key == 'B')
				screen->scroll++;
			else if (key == 'A')
				screen->scroll -= screen->scroll > 0;
			else if (key == '6')
				screen->scroll += page;
			else if (key == '5')
				screen->scroll -= screen->scroll > page ? page : screen->scroll;
			else if (key == 'H' || key == '1')
				screen->scroll = 0;
			else if (key == 'F' || key == '4')
				screen->scroll = screen->lines;
			else if (key == 'C' || key == 'D')
				seek(screen, key == 'D');
		} else if (screen->types) {
			handle_filter(screen, keys[i]);
		} else {
			handle_key(screen, keys[i]);
		}
	}
}

static void drop_report(struct screen *screen)
{
	(void)top_report_end(&screen->report, true);
	free(screen->report.text);
	screen->report.text = NULL;
}

/* Shows the report that is complete. */
static void take_report(struct screen *screen)
{
	struct top_report *report = &screen->report;
	int status = top_report_end(report, false);
	struct top *top = screen->top;
	char *end;

	screen->refresh |= status == TOP_AGAIN;
	if (status > EXIT_SIGNAL) {
		/* The next copy would end as this one, for instance at a mapped file that was truncated. */
		(void)top_report_end(report, true);
		snprintf(screen->notice, sizeof(screen->notice), "the report was ended by signal %d",
			 status - EXIT_SIGNAL);
	} else if (report->text && status != TOP_AGAIN) {
		free(screen->text);
		screen->text = report->text;
		report->text = NULL;
		end = strrchr(screen->text, '\f');
		if (end) {
			*end = '\0';
			top->at_ns = strtoull(end + 1, NULL, 10);
		}
	}
	/* Unless the user has gone back meanwhile. */
	top->ended |= status == TOP_END && !screen->refresh;
	screen->last_shown |= report->last || (status == TOP_END && !screen->refresh);
	free(report->text);
	report->text = NULL;
}

/* Starts the next report if it is time. Returns for how many milliseconds to wait; -1: until something happens. */
static int start_next(struct screen *screen)
{
	uint64_t now_ns = clock_ns(), next_ns = screen->report.start_ns + screen->top->interval_ns;

	if (screen->refresh)
		drop_report(screen);
	else if (screen->report.running || screen->paused || screen->last_shown)
		return -1;
	else if (now_ns < next_ns && !screen->top->ended)
		return top_milliseconds(next_ns - now_ns);
	screen->refresh = false;
	if (!top_report_start(screen->top, &screen->report, true)) {
		drop_report(screen);
		snprintf(screen->notice, sizeof(screen->notice), "cannot start a report: %s", strerror(errno));
		return top_milliseconds(screen->top->interval_ns);
	}
	return -1;
}

static int show(struct screen *screen, int stop_fd, int recorder_fd)
{
	struct top *top = screen->top;

	while (!screen->quits) {
		struct pollfd ready[] = {
		    {.fd = stop_fd, .events = POLLIN},
		    {.fd = STDIN_FILENO, .events = POLLIN},
		    {.fd = top->ended ? -1 : recorder_fd, .events = POLLIN},
		    {.fd = -1, .events = POLLIN},
		};
		struct winsize size = {0};
		struct timespec timeout;
		uint64_t now_ns;
		int wait, status;

		if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || !size.ws_col || !size.ws_row)
			size = (struct winsize){.ws_row = 24, .ws_col = 80};
		screen->refresh |= screen->columns && screen->columns != size.ws_col;
		screen->columns = size.ws_col;
		screen->rows = size.ws_row;
		wait = start_next(screen);
		draw(screen);
		ready[3].fd = screen->report.running ? screen->report.fd : -1;
		timeout = (struct timespec){wait / 1000, wait % 1000 * 1000000L};
		if (ppoll(ready, 4, wait < 0 ? NULL : &timeout, &screen->mask) < 0) {
			take_job_signals(screen);
			screen->passed_ns = clock_ns();
			continue;
		}
		now_ns = clock_ns();
		/* The time that has passed on the screen passes in a recording that is replayed. */
		if (top->replays && !screen->paused && !top->ended)
			top->at_ns += (now_ns - screen->passed_ns) * screen->speed;
		screen->passed_ns = now_ns;
		if (ready[0].revents) {
			status = stop_signals_number(stop_fd);
			return status == SIGINT ? EXIT_OK : EXIT_SIGNAL + status;
		}
		if (ready[1].revents)
			read_keys(screen);
		top->ended |= ready[2].revents != 0;
		if (ready[3].revents && !top_report_read(&screen->report))
			take_report(screen);
	}
	return EXIT_OK;
}

int top_screen_show(struct top *top, int stop_fd, int recorder_fd, struct top_report *report)
{
	struct sigaction change = {.sa_handler = note_change}, before;
	struct screen screen = {.top = top, .refresh = true, .speed = 1};
	int status = EXIT_UNUSABLE, reason = 0;
	sigset_t changes;

	(void)report;
	top->at_ns = NS_PER_SECOND;
	screen.passed_ns = clock_ns();
	sigemptyset(&changes);
	for (const int *number = (const int[]){SIGWINCH, SIGCONT, SIGTSTP, 0}; *number; number++) {
		sigaddset(&changes, *number);
		if (sigaction(*number, &change, &before) == 0 && *number == SIGTSTP && before.sa_handler == SIG_IGN)
			(void)sigaction(*number, &before, NULL);
	}
	sigprocmask(SIG_BLOCK, &changes, &screen.mask);
	if (begin(&screen))
		status = show(&screen, stop_fd, recorder_fd);
	else
		reason = errno;
	close(top->guarded_fd);
	while (screen.guard > 0 && waitpid(screen.guard, NULL, 0) < 0 && errno == EINTR)
		;
	if (reason)
		message(top->command, "cannot use the terminal: %s", strerror(reason));
	drop_report(&screen);
	free(screen.text);
	return status;
}
