// SPDX-License-Identifier: LGPL-2.1-or-later
/* Asks JDK 17 and later for a perf map: Compiler.perfmap, sent through the attach mechanism of the HotSpot JVM. A file
 * .attach_pidPID and SIGQUIT make the JVM open the socket .java_pidPID in /tmp, which accepts a command and its
 * arguments as strings. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>

#include "capture/recorder/recorder.h"
#include "capture/runtimes/ask-runtime.h"

#define ATTACH_NS 5000000000ULL
#define ANSWER_NS 10000000000ULL
#define ANSWER_BYTES 4096
#define STEP_MICROSECONDS 10000

struct java {
	const struct helper_target *target;
	uid_t owner;
	int directory; /* the process's /tmp, O_PATH */
	bool handles_signal;
	char socket_name[32], trigger_name[32];
};

/* Creates .attach_pidPID. An existing file has the same effect, and is not removed afterwards. */
static bool make_trigger(const struct java *java, bool *made_ret)
{
	CLEANUP(close)
	int fd = openat(java->directory, java->trigger_name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat status;

	*made_ret = fd >= 0;
	if (fd >= 0)
		return true;
	if (errno != EEXIST || fstatat(java->directory, java->trigger_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	errno = EEXIST;
	return S_ISREG(status.st_mode) && status.st_uid == java->owner;
}

/* Makes the JVM start its listener thread, as it does at the first attach. An existing socket may be stale: a killed
 * JVM leaves it behind, and a new JVM may get the same PID. */
static int wake_listener(const struct java *java, char refusal[HELPER_REFUSAL_BYTES])
{
	uint64_t until_ns = clock_now_ns() + ATTACH_NS;
	bool made;
	int fd = -1;

	/* SIGQUIT would kill a process that does not handle it. */
	if (!java->handles_signal) {
		snprintf(
		    refusal, HELPER_REFUSAL_BYTES,
		    "it does not handle SIGQUIT, which attaching requires: it runs with -Xrs, or is still starting");
		return -1;
	}
	if (!make_trigger(java, &made)) {
		snprintf(refusal, HELPER_REFUSAL_BYTES, "cannot create %s in its /tmp: %s", java->trigger_name,
			 strerrorname_np(errno));
		return -1;
	}
	if (syscall(SYS_pidfd_send_signal, java->target->pidfd, SIGQUIT, NULL, 0) < 0)
		snprintf(refusal, HELPER_REFUSAL_BYTES, "cannot send SIGQUIT to it: %s", strerrorname_np(errno));
	while (!*refusal &&
	       (fd = target_socket_connect(java->target->pid, java->owner, java->directory, java->socket_name)) < 0) {
		if (clock_now_ns() >= until_ns)
			snprintf(refusal, HELPER_REFUSAL_BYTES,
				 "it did not open its attach socket within %llu s: it runs with "
				 "-XX:+DisableAttachMechanism, or is stopped",
				 ATTACH_NS / 1000000000);
		usleep(STEP_MICROSECONDS);
	}
	if (made)
		(void)unlinkat(java->directory, java->trigger_name, 0);
	return fd;
}

/* Sends the command. The answer has the status in decimal, a newline, then the output of the command. */
static enum helper_answer command(int fd, char refusal[HELPER_REFUSAL_BYTES])
{
	/* The version of the protocol, the command, and three arguments, of which two are empty. */
	static const char request[] = "1\0jcmd\0Compiler.perfmap\0\0";
	char answer[ANSWER_BYTES + 1];
	const char *text;

	answer[target_socket_exchange(fd, request, sizeof(request), answer, ANSWER_BYTES, ANSWER_NS)] = '\0';
	text = strchr(answer, '\n');
	if (!strncmp(answer, "0\n", 2))
		return HELPER_AGREED;
	if (!*answer) {
		snprintf(refusal, HELPER_REFUSAL_BYTES, "no answer within %llu s", ANSWER_NS / 1000000000);
		return HELPER_UNANSWERED;
	}
	if (strstr(answer, "Unknown diagnostic command"))
		snprintf(refusal, HELPER_REFUSAL_BYTES,
			 "it does not support Compiler.perfmap, which needs JDK 17 or later");
	else
		snprintf(refusal, HELPER_REFUSAL_BYTES, "Compiler.perfmap fails: %.*s",
			 text ? (int)strcspn(text + 1, "\n") : 0, text ? text + 1 : "");
	return HELPER_REFUSED;
}

static void name_trigger(pid_t namespace_pid, char name[32])
{
	snprintf(name, 32, ".attach_pid%d", (int)namespace_pid);
}

/* Notes whether .attach_pidPID exists before the request. If it does not, it is removed afterwards. */
static void check_trigger(struct recorder *recorder, struct traced_process *process)
{
	CLEANUP(close) int fd = -1;
	char name[32];

	name_trigger(process->namespace_pid, name);
	if (process->tmp_directory >= 0)
		fd = target_file_find(&recorder->calls, process->tmp_place, process->tmp_directory, name, TARGET_BESIDE,
				      NULL);
	process->had_trigger = fd >= 0 || process->tmp_directory < 0;
}

static void remove_trigger(struct recorder *recorder, const struct traced_process *process)
{
	char name[32];

	if (process->had_trigger || process->tmp_directory < 0)
		return;
	name_trigger(process->namespace_pid, name);
	(void)target_file_remove(&recorder->calls, process->tmp_place, process->tmp_directory, name, process->owner);
}

static enum helper_answer ask(const struct helper_target *target, char refusal_ret[HELPER_REFUSAL_BYTES])
{
	struct java java = {.target = target,
			    .directory = target_directory_open(target->pid, "/tmp"),
			    .handles_signal = proc_catches_signal(target->pid, SIGQUIT)};
	CLEANUP(close) int directory = java.directory;
	CLEANUP(close) int fd = -1;
	const char *refused = target_become_user(target->pid, &java.owner);

	if (directory < 0 || target->pidfd < 0)
		refused = "cannot open its /tmp";
	if (refused) {
		snprintf(refusal_ret, HELPER_REFUSAL_BYTES, "%s", refused);
		return HELPER_REFUSED;
	}
	snprintf(java.socket_name, sizeof(java.socket_name), ".java_pid%d", (int)target->namespace_pid);
	name_trigger(target->namespace_pid, java.trigger_name);
	fd = target_socket_connect(target->pid, java.owner, directory, java.socket_name);
	if (fd < 0)
		fd = wake_listener(&java, refusal_ret);
	return fd >= 0 ? command(fd, refusal_ret) : HELPER_REFUSED;
}

const struct askable_runtime runtime_java = {
    .name = "Java",
    .module = "libjvm.so",
    .at_end = true,
    .ask = ask,
    .prepare = check_trigger,
    .give_up = remove_trigger,
};
