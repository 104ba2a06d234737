// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The attach mechanism of the HotSpot virtual machine: a file .attach_pidPID and SIGQUIT have it open the socket
 * .java_pidPID in /tmp, which takes a command and its arguments as strings. JDK 17 and later know Compiler.perfmap.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/ask-runtime.h"
#include "capture/clock.h"
#include "capture/proc.h"
#include "capture/target-socket.h"

#define ATTACH_NS 5000000000ULL
#define ANSWER_NS 10000000000ULL
#define ANSWER_BYTES 4096

struct java {
	struct recorder *recorder;
	pid_t pid, namespace_pid;
	int pidfd;
	int directory; /* its /tmp, O_PATH */
	char socket_name[32], trigger_name[32];
};

/* A thread of the machine that was not attached to before starts to listen. */
static struct mmt_error *wake_listener(const struct java *java, char refusal[ASK_REFUSAL_BYTES])
{
	uint64_t until_ns = clock_now_ns() + ATTACH_NS;
	CLEANUP(close) int trigger = -1;
	struct mmt_error *error = NULL;
	bool more = true;

	/* One that does not handle the signal would die of it. */
	if (!proc_catches_signal(java->pid, SIGQUIT)) {
		snprintf(refusal, ASK_REFUSAL_BYTES,
			 "it does not handle SIGQUIT, without which it cannot be attached to (-Xrs, or it is just "
			 "starting)");
		return NULL;
	}
	trigger = target_file_create(java->pid, java->directory, java->trigger_name, O_RDWR);
	if (trigger < 0) {
		snprintf(refusal, ASK_REFUSAL_BYTES, "%s cannot be made in its /tmp: %s", java->trigger_name,
			 strerrorname_np(errno));
		return NULL;
	}
	if (syscall(SYS_pidfd_send_signal, java->pidfd, SIGQUIT, NULL, 0) < 0)
		snprintf(refusal, ASK_REFUSAL_BYTES, "it cannot be signalled: %s", strerrorname_np(errno));
	while (!error && more && !*refusal && !target_socket_exists(java->pid, java->directory, java->socket_name))
		error = target_wait(java->recorder, until_ns, &more);
	(void)unlinkat(java->directory, java->trigger_name, 0);
	if (!more)
		snprintf(refusal, ASK_REFUSAL_BYTES,
			 "it does not listen within %llu s (-XX:+DisableAttachMechanism, or it is stopped)",
			 ATTACH_NS / 1000000000);
	return error;
}

/* The status in decimal, a newline, then what the command says. */
static void judge_answer(const char *answer, char refusal[ASK_REFUSAL_BYTES])
{
	const char *text = strchr(answer, '\n');

	if (!strncmp(answer, "0\n", 2))
		return;
	if (!*answer)
		snprintf(refusal, ASK_REFUSAL_BYTES, "no answer within %llu s", ANSWER_NS / 1000000000);
	else if (strstr(answer, "Unknown diagnostic command"))
		snprintf(refusal, ASK_REFUSAL_BYTES, "it does not know Compiler.perfmap; JDK 17 and later do");
	else
		snprintf(refusal, ASK_REFUSAL_BYTES, "Compiler.perfmap fails: %.*s",
			 text ? (int)strcspn(text + 1, "\n") : 0, text ? text + 1 : "");
}

static struct mmt_error *command(const struct java *java, int fd, char refusal[ASK_REFUSAL_BYTES])
{
	/* Version of the protocol, command, and always three arguments. */
	static const char request[] = "1\0jcmd\0Compiler.perfmap\0\0";
	const struct exchange exchange = {java->recorder, fd, clock_now_ns() + ANSWER_NS};
	char answer[ANSWER_BYTES + 1];
	size_t received = 0;
	bool sent;
	struct mmt_error *error = target_socket_send(&exchange, request, sizeof(request), &sent);

	if (!error && sent)
		error = target_socket_receive(&exchange, answer, ANSWER_BYTES, &received);
	answer[received] = '\0';
	judge_answer(answer, refusal);
	return error;
}

static struct mmt_error *ask(const struct java *java, char refusal[ASK_REFUSAL_BYTES])
{
	CLEANUP(close) int fd = target_socket_connect(java->pid, java->directory, java->socket_name);
	struct mmt_error *error;

	if (fd < 0) {
		error = wake_listener(java, refusal);
		if (error || *refusal)
			return error;
		fd = target_socket_connect(java->pid, java->directory, java->socket_name);
	}
	if (fd < 0) {
		snprintf(refusal, ASK_REFUSAL_BYTES, "%s in its /tmp cannot be connected to: %s", java->socket_name,
			 strerrorname_np(errno));
		return NULL;
	}
	return command(java, fd, refusal);
}

struct mmt_error *ask_java(struct recorder *recorder, size_t index, char refusal_ret[ASK_REFUSAL_BYTES])
{
	const struct known_process *process = &recorder->processes.items.items[index];
	struct java java = {.recorder = recorder,
			    .pid = process->pid,
			    .namespace_pid = proc_namespace_pid(process->pid),
			    .pidfd = process->pidfd,
			    .directory = target_directory_open(process->pid, "/tmp")};
	CLEANUP(close) int directory = java.directory;

	if (directory < 0 || java.pidfd < 0) {
		snprintf(refusal_ret, ASK_REFUSAL_BYTES, "its /tmp cannot be opened");
		return NULL;
	}
	snprintf(java.socket_name, sizeof(java.socket_name), ".java_pid%d", (int)java.namespace_pid);
	snprintf(java.trigger_name, sizeof(java.trigger_name), ".attach_pid%d", (int)java.namespace_pid);
	return ask(&java, refusal_ret);
}
