// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes a running .NET or Java process write its perf map. ask-runtime.h says how to add a runtime. */
#include "capture/runtimes/ask-runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/strings.h"
#include "capture/recorder/recorder.h"

#define STUCK_NS 500000000ULL /* a child that waits in the kernel for so long may never return */

/* Runs in the child: sends the answer with one write(), a byte and the reason for a refusal. */
static void run_child(void *context, int answer, pid_t recorder)
{
	char text[1 + HELPER_REFUSAL_BYTES] = {HELPER_UNANSWERED};
	struct helper_target target = *(const struct helper_target *)context;

	if (helper_process_begin(&answer, &target.pidfd, recorder))
		text[0] = (char)target.ask(&target, text + 1);
	else
		snprintf(text, sizeof(text), "%c%s", HELPER_REFUSED,
			 "cannot close the recorder's files in the helper process");
	_exit(write(answer, text, 1 + strlen(text + 1)) < 0);
}

bool helper_start(struct helper *helper, const struct helper_target *target)
{
	struct helper_target copy = *target;

	helper_reap(helper);
	return !helper->dying && helper_process_start(helper, SOCK_STREAM | SOCK_NONBLOCK, run_child, &copy);
}

enum helper_answer helper_poll(struct helper *helper, char refusal_ret[HELPER_REFUSAL_BYTES])
{
	char text[1 + HELPER_REFUSAL_BYTES] = {HELPER_UNANSWERED};
	uint64_t now_ns = clock_now_ns();
	ssize_t count;
	bool stuck;

	/* Does the child wait for a file system, before it connects to the runtime? Later it polls its socket, and
	 * sleeps between two attempts. */
	if (!proc_waits_for_file(helper->child))
		helper->stuck_ns = 0;
	else if (!helper->stuck_ns)
		helper->stuck_ns = now_ns;
	stuck = helper->stuck_ns && now_ns - helper->stuck_ns > STUCK_NS;
	count = read(helper->answer, text, sizeof(text) - 1);
	if (count < 0 && (errno == EAGAIN || errno == EINTR) && !stuck)
		return HELPER_WAITS;
	snprintf(refusal_ret, HELPER_REFUSAL_BYTES, "%s",
		 count > 0 ? text + 1
		 : stuck   ? "a file system that it uses does not answer"
			   : "asking it failed");
	(void)helper_end(helper, 0);
	return stuck && count <= 0 ? HELPER_REFUSED : (enum helper_answer)text[0];
}

/* Drops all capabilities, because they survive a change between two users that are not root. */
static bool drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

	return syscall(SYS_capset, &header, none) == 0;
}

const char *target_become_user(pid_t pid, uid_t *owner_ret)
{
	pid_t recorder = getppid();
	gid_t group;

	if (!proc_effective_id(pid, "Uid", owner_ret) || !proc_effective_id(pid, "Gid", &group))
		return "it has exited";
	if (*owner_ret == geteuid() && group == getegid())
		return *owner_ret == 0 || drop_capabilities() ? NULL : "capabilities cannot be dropped";
	if (setgroups(0, NULL) < 0 || setresgid(group, group, group) < 0 ||
	    setresuid(*owner_ret, *owner_ret, *owner_ret) < 0 || (*owner_ret != 0 && !drop_capabilities()))
		return "only its own user may ask it: run as root, or with CAP_SETUID and CAP_SETGID";
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return getppid() == recorder ? NULL : "the recorder is gone";
}

int target_socket_connect(pid_t pid, uid_t owner, int directory, const char *name)
{
	/* O_PATH, so that the socket that is checked is the one that is connected to. */
	CLEANUP(close) int place = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct ucred peer;
	socklen_t size = sizeof(peer);
	struct stat status;
	int fd, failure;

	if (place < 0)
		return -1;
	if (fstat(place, &status) < 0 || !S_ISSOCK(status.st_mode) || status.st_uid != owner) {
		errno = ENOTSOCK;
		return -1;
	}
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", place);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
		/* Another process of the same user could have created the socket under this name. */
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && size == sizeof(peer) &&
		    peer.pid == pid)
			return fd;
		errno = ECONNREFUSED;
	}
	failure = errno;
	close(fd);
	errno = failure;
	return -1;
}

size_t target_socket_exchange(int fd, const void *request, size_t size, void *answer, size_t room, uint64_t wait_ns)
{
	uint64_t now_ns = clock_now_ns(), until_ns = now_ns + wait_ns;
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	size_t received = 0;

	/* A new socket has room for a request, which is short. */
	if (send(fd, request, size, MSG_NOSIGNAL) != (ssize_t)size)
		return 0;
	for (; received < room && now_ns < until_ns; now_ns = clock_now_ns()) {
		ssize_t count;

		if (poll(&poll_fd, 1, (int)((until_ns - now_ns) / 1000000) + 1) <= 0)
			continue;
		count = recv(fd, (uint8_t *)answer + received, room - received, MSG_DONTWAIT);
		if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
			break;
		received += count > 0 ? (size_t)count : 0;
	}
	return received;
}

#define ATTEMPTS 10
#define GUESS_ATTEMPTS 2	 /* of a runtime that may be none */
#define BETWEEN_NS 1000000000ULL /* a starting runtime is not ready, and may write a map without a request */
#define APPEAR_NS 5000000000ULL	 /* from the runtime's answer until the map appears */
#define AT_END_NS 20000000000ULL /* time limit for all processes together when recording ends */
#define AT_ONCE 16		 /* largest number of helpers at the same time */
#define STEP_MICROSECONDS 5000

static const struct askable_runtime *const runtimes[] = {&runtime_dotnet, &runtime_java};

#define RUNTIMES (sizeof(runtimes) / sizeof(*runtimes))

void ask_runtime_note_module(struct traced_process *process, const char *path)
{
	const char *slash = strrchr(path, '/');

	process->has_jit_code |= jit_code_is_path(path);
	for (size_t i = 0; slash && i < RUNTIMES; i++) {
		if (strcmp(slash + 1, runtimes[i]->module) &&
		    (!runtimes[i]->code || !starts_with(slash + 1, runtimes[i]->code)))
			continue;
		/* A guess that was refused was wrong. */
		if (process->runtime && process->runtime->is_guess) {
			process->asked = process->helper.child ? process->asked : ASKED_NOT;
			process->ask_attempts = 0;
			process->ask_at_ns = 0;
		}
		process->runtime = runtimes[i];
	}
	if (process->has_jit_code && !process->runtime)
		process->runtime = &runtime_dotnet_bundled;
	if (process->runtime && !process->ask_at_ns)
		process->ask_at_ns = clock_now_ns() + BETWEEN_NS;
}

static void cancel_request(struct recorder *recorder, struct traced_process *process)
{
	bool asking = process->helper.child;

	(void)helper_end(&process->helper, 0);
	if (asking && process->runtime->give_up)
		process->runtime->give_up(recorder, process);
}

void ask_runtime_forget(struct recorder *recorder, struct traced_process *process)
{
	cancel_request(recorder, process);
	process->runtime = NULL;
	process->asked = ASKED_NOT;
	process->ask_attempts = 0;
	process->ask_at_ns = 0;
	process->has_jit_code = false;
}

static void report_refusal(const struct recorder *recorder, const struct traced_process *process, const char *refusal)
{
	if (!process->runtime->is_guess)
		recorder_message(recorder, true, "no names for the JIT code of process %d (%s): %s", (int)process->pid,
				 process->runtime->name, refusal);
}

static void report_still_writing(const struct recorder *recorder, const struct traced_process *process,
				 const char *reason)
{
	recorder_message(recorder, true, "process %d (%s) may keep writing its perf map: %s", (int)process->pid,
			 process->runtime->name, reason);
}

static void put(struct traced_process *process, bool stop)
{
	const struct helper_target target = {process->pid, proc_namespace_pid(process->pid), process->pidfd,
					     process->runtime->ask, stop};

	/* If no helper can be started, take_answer() reports a refusal. */
	(void)helper_start(&process->helper, &target);
}

static enum helper_answer take_answer(struct traced_process *process, char refusal[HELPER_REFUSAL_BYTES])
{
	if (process->helper.child)
		return helper_poll(&process->helper, refusal);
	snprintf(refusal, HELPER_REFUSAL_BYTES, "mmtrace could not create a process to ask it");
	return HELPER_REFUSED;
}

static void take_first_answer(const struct recorder *recorder, struct traced_process *process)
{
	char refusal[HELPER_REFUSAL_BYTES] = "";
	enum helper_answer answer = take_answer(process, refusal);
	unsigned attempts;

	if (answer == HELPER_AGREED || answer == HELPER_UNANSWERED) {
		process->runtime = process->runtime->is_guess ? &runtime_dotnet : process->runtime;
		process->map_is_ours = true;
	}
	process->map_is_ours &= answer != HELPER_REFUSED;
	switch (answer) {
	case HELPER_WAITS:
		break;
	case HELPER_AGREED:
		process->asked = ASKED_AGREED;
		/* A runtime that writes the map only once has written it before it answers. */
		process->ask_at_ns = clock_now_ns() + (process->runtime->keeps_writing ? APPEAR_NS : 0);
		break;
	case HELPER_UNANSWERED:
		report_refusal(recorder, process, refusal);
		/* It may still write a map. */
		process->asked = process->runtime->keeps_writing ? ASKED_WRITES : ASKED_DONE;
		break;
	case HELPER_REFUSED:
		/* A helper that does not exit is stuck, as the next one would be. */
		attempts = process->runtime->is_guess ? GUESS_ATTEMPTS : ATTEMPTS;
		process->asked = ++process->ask_attempts < attempts && !process->helper.dying ? ASKED_NOT : ASKED_DONE;
		process->ask_at_ns = clock_now_ns() + BETWEEN_NS;
		if (process->asked == ASKED_DONE)
			report_refusal(recorder, process, refusal);
		break;
	}
}

/* Checks whether the runtime has created the map file. Its answer alone does not prove that. */
static void check_map_appeared(struct recorder *recorder, struct traced_process *process)
{
	char refusal[HELPER_REFUSAL_BYTES];

	if (perf_maps_exists(recorder, process)) {
		recorder_message(recorder, false, "process %d (%s) was asked for a perf map and writes one",
				 (int)process->pid, process->runtime->name);
	} else if (clock_now_ns() > process->ask_at_ns) {
		snprintf(refusal, sizeof(refusal), "it agreed to write a perf map, but there is no /tmp/perf-%d.map",
			 (int)process->namespace_pid);
		report_refusal(recorder, process, refusal);
	} else {
		return;
	}
	/* A runtime that keeps writing is asked to stop when recording ends. */
	process->asked = process->runtime->keeps_writing ? ASKED_WRITES : ASKED_DONE;
}

/* Makes one step for one process. `at_end`: a process that has not been asked yet, because it was found too late, is
 * asked now, once. */
static void step(struct recorder *recorder, struct traced_process *process, bool at_end)
{
	char refusal[HELPER_REFUSAL_BYTES] = "";
	enum helper_answer answer;

	switch (process->asked) {
	case ASKED_NOT:
		if (!at_end && (process->runtime->at_end || clock_now_ns() < process->ask_at_ns))
			break;
		process->ask_attempts = at_end ? ATTEMPTS : process->ask_attempts;
		/* Do not ask a process that has a map: its runtime would overwrite the map. */
		if (perf_maps_exists(recorder, process)) {
			process->asked = ASKED_DONE;
			break;
		}
		if (process->runtime->prepare)
			process->runtime->prepare(recorder, process);
		put(process, false);
		process->asked = ASKED_NOW;
		process->map_is_ours = !process->runtime->is_guess; /* from now on, unless it refuses */
		break;
	case ASKED_NOW:
		take_first_answer(recorder, process);
		break;
	case ASKED_AGREED:
		check_map_appeared(recorder, process);
		break;
	case ASKED_WRITES:
		if (!at_end)
			break;
		put(process, true);
		process->asked = ASKED_TO_END;
		break;
	case ASKED_TO_END:
		answer = take_answer(process, refusal);
		if (answer == HELPER_WAITS)
			break;
		process->asked = ASKED_DONE;
		if (answer != HELPER_AGREED)
			report_still_writing(recorder, process, refusal);
		break;
	case ASKED_DONE:
		break;
	}
}

/* Makes one step for every process. Returns the number of processes that need more steps. */
static size_t step_all(struct recorder *recorder, bool at_end)
{
	size_t asking = 0, busy = 0;

	for (size_t i = 0; i < recorder->processes.items.count; i++)
		asking += recorder->processes.items.items[i]->helper.child != 0;
	process_table_each(process, &recorder->processes, true) {
		bool was_asking = process->helper.child;

		if (process->ended || !process->runtime || (asking >= AT_ONCE && !was_asking)) {
			busy += !process->ended && process->runtime && process->asked != ASKED_DONE;
			continue;
		}
		step(recorder, process, at_end);
		asking = asking + (process->helper.child != 0) - was_asking;
		busy += process->asked != ASKED_DONE;
	}
	return busy;
}

void ask_runtimes(struct recorder *recorder)
{
	if (recorder->options->ask_runtime)
		(void)step_all(recorder, false);
}

static void give_up(struct recorder *recorder)
{
	process_table_each(process, &recorder->processes, true) {
		if (process->ended || !process->runtime || process->asked == ASKED_DONE)
			continue;
		cancel_request(recorder, process);
		if (process->asked == ASKED_NOT || process->asked == ASKED_NOW)
			report_refusal(recorder, process, "no answer before the recorder had to end");
		if (process->map_is_ours && process->runtime->keeps_writing)
			report_still_writing(recorder, process, "it did not confirm that it stops");
	}
}

void ask_runtimes_at_end(struct recorder *recorder)
{
	uint64_t end_ns = clock_now_ns() + AT_END_NS;

	if (!recorder->options->ask_runtime)
		return;
	while (step_all(recorder, true)) {
		if (clock_now_ns() >= end_ns || recorder_stop_requests(recorder) > recorder->stop_requests) {
			give_up(recorder);
			break;
		}
		usleep(STEP_MICROSECONDS);
		process_table_update(&recorder->processes);
	}
}

void ask_runtime_clean_up(struct recorder *recorder, struct traced_process *process, bool earlier)
{
	if (process->map_is_ours && !perf_maps_remove(recorder, process, earlier))
		recorder_message(recorder, true,
				 "cannot remove /tmp/perf-%d.map, which process %d wrote for this recording",
				 (int)process->namespace_pid, (int)process->pid);
	process->map_is_ours = false;
}

void ask_runtime_ended(struct recorder *recorder, struct traced_process *process)
{
	cancel_request(recorder, process);
	ask_runtime_clean_up(recorder, process, false);
}

/* Joins strings as /proc shows them. 0: they do not fit. */
static size_t join_strings(char *const *strings, char *text)
{
	size_t size = 0;

	for (; *strings && size <= LIMIT_OPTION_TEXT_BYTES; strings++)
		size += (size_t)snprintf(text + size, LIMIT_OPTION_TEXT_BYTES + 1 - size, "%s", *strings) + 1;
	if (size <= LIMIT_OPTION_TEXT_BYTES)
		return size;
	explicit_bzero(text, LIMIT_OPTION_TEXT_BYTES + 1);
	return 0;
}

/* `at_end`: of the command that the recorder executed, which may have ended. */
static struct mmt_error *scan_options(struct recorder *recorder, pid_t pid, uint64_t began_ns, bool at_end,
				      bool *read_ret)
{
	size_t room = LIMIT_OPTION_TEXT_BYTES, arguments_size = 0, variables_size = 0;
	CLEANUP(free) char *arguments = calloc(2, room + 1);
	char *variables = arguments ? arguments + room + 1 : NULL;
	bool known = true, gone = false, stored;

	if (!arguments)
		return &error_no_memory;
	if (at_end) {
		arguments_size = join_strings(recorder->options->command, arguments);
		variables_size = join_strings(environ, variables);
		known = variables_size || !*environ;
	} else if (process_text_read(&recorder->calls, pid, "cmdline", room, arguments, &arguments_size)) {
		/* A text that was cut may end within a value. */
		known = process_text_read(&recorder->calls, pid, "environ", room, variables, &variables_size);
		/* Both are empty when a process ends, too. */
		if (!variables_size) {
			gone = !process_text_read(&recorder->calls, pid, "cmdline", room, variables, &variables_size) ||
			       !variables_size;
			explicit_bzero(variables, variables_size);
			variables_size = 0;
		}
	} else {
		arguments_size = 0;
	}
	/* If the process is stuck or its exec has not set the arguments yet, try again later; and if the command ended
	 * between the two, at the end. */
	*read_ret = arguments_size && !gone &&
		    (variables_size || at_end || pid != recorder->command.pid || began_ns != recorder->command.exec_ns);
	stored =
	    !*read_ret || runtime_options_scan(&recorder->jobs.runtimes->options, pid, began_ns, arguments,
					       arguments_size, known ? variables : NULL, known ? variables_size : 0);
	/* Both may contain passwords. */
	explicit_bzero(arguments, arguments_size);
	explicit_bzero(variables, variables_size);
	return stored ? NULL : &error_no_memory;
}

struct mmt_error *read_options(struct recorder *recorder, struct traced_process *process)
{
	struct traced_command *command = &recorder->command;
	uint64_t began_ns = process->program_ns;
	bool read = process->options_of == began_ns + 1;
	struct mmt_error *error;

	if (read || recorder->jobs.runtimes->options.values.count >= LIMIT_OPTIONS)
		return NULL;
	error = scan_options(recorder, process->pid, began_ns, false, &read);
	process->options_of = read ? began_ns + 1 : 0;
	command->options_read |= read && process->pid == command->pid && began_ns == command->exec_ns;
	return error;
}

struct mmt_error *read_command_options(struct recorder *recorder)
{
	struct traced_command *command = &recorder->command;

	return command->exec_ns && !command->options_read
		   ? scan_options(recorder, command->pid, command->exec_ns, true, &command->options_read)
		   : NULL;
}
