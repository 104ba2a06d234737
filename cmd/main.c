// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds the command, and runs it. */
#include <dlfcn.h>
#include <locale.h>
#include <malloc.h>
#include <mmtrace/version.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/message.h"
#include "cli/terminal.h"
#include "cli/stop-signals.h"

#define LARGE_BLOCK_BYTES (1 << 20)

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

const struct command commands[] = {
    {"record", cmd_record, "record the memory calls of a running process",
     LINES("[OPTIONS] -p PID[,PID...]", "[OPTIONS] [--] COMMAND [ARGUMENT...]"),
     "Record every mmap, munmap, mremap, brk, mprotect, shmat and shmdt of a process into a file, each with its call "
     "stack. mmtrace changes nothing in the process unless --ask-runtime is given. Recording stops on "
     "Ctrl-C or SIGTERM, when the process ends, or after --duration.",
     LINES("record -p 1234                      a process, until Ctrl-C",
	   "record --duration 1m -- ./server    a new process, for a minute",
	   "record --comm 'worker-*' --report   by name; then show the report"),
     false},
    {"report", cmd_report, "show unfreed bytes by stack", LINES("[OPTIONS] [FILE]"),
     "Show the call stacks that mapped memory which was still mapped when the recording ended, largest first.",
     LINES("report                              mmtrace.data of this directory",
	   "report --html page.html x.data      a page for a browser",
	   "report --from 30s --focus 'lib*.so' made after 30 s by these modules"),
     true},
    {"top", cmd_top, "show the report of a process while it runs",
     LINES("[OPTIONS] -p PID[,PID...]", "[OPTIONS] -- COMMAND [ARGUMENT...]", "[OPTIONS] FILE"),
     "Record a process, and show each second what `mmtrace report` would show of the recording so far. On a terminal "
     "keys group, sort and filter the rows; otherwise the reports follow one another.",
     LINES("top -p 1234                         a process; h shows the keys",
	   "top --json --interval 1m --comm app a line of JSON each minute"),
     false},
    {"trace", cmd_trace, "show each memory call as it happens",
     LINES("[OPTIONS] -p PID[,PID...]", "[OPTIONS] -- COMMAND [ARGUMENT...]", "[OPTIONS] FILE"),
     "Record a process, and print a line for each memory call: what was called, and which memory it mapped, freed, "
     "moved or committed. The line says who mapped that memory, and how long ago.",
     LINES("trace -p 1234 --min-bytes 1M        large calls of a process",
	   "trace --failed --stacks 10 -p 1234  who is refused memory"),
     false},
    {"watch", cmd_watch, "record continuously into a directory of limited size",
     LINES("[OPTIONS] -o DIR -p PID[,PID...] [-- RECORD-OPTION...]",
	   "[OPTIONS] -o DIR --comm NAME [-- RECORD-OPTION...]"),
     "Record for weeks, and rotate the files. Each is an ordinary recording; the oldest are removed. With --when, mmtrace "
     "also rotates and writes an HTML page when memory grows.",
     LINES("watch -o leak --comm app            an hour in each file, 1 GiB in all",
	   "watch -o leak -p 12 --when 'rss>2G' and a page when RSS exceeds 2 GiB"),
     false},
    {"export", cmd_export, "write a report in the format of another viewer", LINES("[OPTIONS] --format FORMAT [FILE]"),
     "Write what the report shows in a format that other tools read: folded stacks, pprof, Firefox "
     "Profiler and Perfetto.",
     LINES("export -f pprof -o leak.pb.gz       for pprof",
	   "export -f folded -o leak.folded     for flamegraph.pl or speedscope"),
     true},
    {"diff", cmd_diff, "show what grew between two recordings", LINES("[OPTIONS] BEFORE AFTER"),
     "Compare two recordings of the same program stack by stack: what is new, gone, grown and shrunk.",
     LINES("diff before.data after.data         what grew between two recordings",
	   "diff --fail-above 10M a.data b.data status 1 if 10 MiB more leak"),
     true},
    {"dump", cmd_dump, "show a recording event by event", LINES("[OPTIONS] [FILE]"),
     "Write one line per event in time order, with every field.", LINES(NULL), true},
    {"pack", cmd_pack, "symbolize a recording so that it can be reported elsewhere", LINES("[OPTIONS] [FILE]"),
     "Unwind and symbolize every stack of a recording and replace the copied stack memory by the function names. The "
     "packed recording can be reported on any machine and shared without memory contents.",
     LINES(NULL), true},
    {"check", cmd_check, "show what can be recorded here", LINES(""),
     "Show what can be recorded on this machine with the user's permissions, and how to fix what cannot.", LINES(NULL),
     false},
    {"setup", cmd_setup, "let users record their own processes", LINES("[OPTIONS]"),
     "Run by root once after each boot: store in /run/mmtrace the tracepoint numbers that other users may not read, so "
     "that they can record their own processes.",
     LINES(NULL), false},
    {"help", cmd_help, "open the manual of a command", LINES("[COMMAND | examples]"),
     "Open the manual page of a command; `help examples` shows what to begin with.", LINES(NULL), false},
    {.name = NULL},
};

const struct command *command_find(const char *name)
{
	for (const struct command *command = commands; command->name; command++)
		if (strcmp(command->name, name) == 0)
			return command;
	return NULL;
}

int command_refuse(const char *name)
{
	const char *suggestion = NULL; /* begins with the name, or else is the most similar one */
	unsigned best = 3;

	for (const struct command *command = commands; command->name; command++) {
		unsigned distance = value_distance(name, command->name);

		if (name[0] && name[1] && !strncmp(name, command->name, strlen(name)))
			distance = 0;
		if (distance < best) {
			best = distance;
			suggestion = command->name;
		}
	}
	if (suggestion)
		return message_usage(NULL, "unknown command '%s'; did you mean '%s'?", name, suggestion);
	return message_usage(NULL, "unknown command '%s'", name);
}

#ifdef MMTRACE_STATIC
#define LINK "link static, without debuginfod\n"

__typeof__(dlopen) __real_dlopen, __wrap_dlopen;

/* libdw would load libdebuginfod, which needs a dynamic linker and its C library. */
void *__wrap_dlopen(const char *file, int mode)
{
	(void)file;
	(void)mode;
	return NULL;
}
#else
#define LINK "link dynamic\n"
#endif

/* In a child, which may stay in the kernel. */
static int run_apart(const struct command *command, int argc, char **argv)
{
	pid_t parent = getpid(), child = fork();
	int status, number;

	if (child == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent))
		_exit(EXIT_UNUSABLE);
	if (child <= 0)
		return command->run(command, argc, argv);
	status = stop_signals_await(child, stop_signals_catch(), NULL);
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	number = WTERMSIG(status);
	if (number == SIGSEGV || number == SIGBUS || number == SIGABRT || number == SIGKILL) {
		message(command, "reading ended with signal %d (%s)%s: the output is incomplete", number,
			sigdescr_np(number),
			number == SIGKILL  ? ", probably because memory ran out"
			: number == SIGBUS ? ", perhaps because an ELF file was truncated meanwhile"
					   : "");
		return EXIT_UNUSABLE;
	}
	signal(number, SIG_DFL);
	raise(number);
	return EXIT_SIGNAL + number;
}

static int run(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2)
		return message_usage(NULL, "no command given");
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		printf("mmtrace %s\n%s" LINK, mmt_version(), mmt_version_details());
		return EXIT_OK;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		help_print();
		return EXIT_OK;
	}
	command = command_find(argv[1]);
	if (!command)
		return *argv[1] == '-' ? message_usage(NULL, "unknown option %s", argv[1]) : command_refuse(argv[1]);
	return (command->reads ? run_apart : command->run)(command, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	static char line[4096];

	/* A line of a message is one write, so that lines of other programs do not cut it. */
	(void)setvbuf(stderr, line, _IOLBF, sizeof(line));
	/* Large tables then grow by mremap() without being copied, and leave no holes in the heap. */
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
	stop_signals_note_inherited();
	/* Writing beyond RLIMIT_FSIZE then fails like any other write. */
	stop_signals_survive(SIGXFSZ);
	setlocale(LC_ALL, "");
	/* Commands with much output have called this already; it detects write errors of the others. */
	return pager_finish(NULL, run(argc, argv));
}
