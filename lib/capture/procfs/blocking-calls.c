// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/procfs/blocking-calls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "capture/procfs/clock.h"
#include "capture/procfs/proc.h"
#include "capture/procfs/scheduling-priority.h"

#define PROCESS_BIT (1ull << 63)
#define PATHS_BIT (1ull << 62)
#define STOPPED_CALL_NS 200000000ULL /* shortest deadline then: a call that answers may wait for a CPU */
#define STOPPED_LATE_NS 20000000ULL  /* ... once that time is used up */
#define END_MILLISECONDS 200	     /* for a helper that makes no call to exit */
#define MILLISECOND_NS 1000000ULL
#define COPY_BYTES (256u << 10) /* at once */
#define COPY_NS 100000000ULL	/* of a file; the next call continues */

#define NO_ROOM (-2) /* a descriptor was sent, but too many are open */

struct request {
	blocking_function *run;
	size_t result_bytes;
};

struct answer {
	uint64_t began_ns, spent_ns, waited_ns;
	int failure; /* errno */
};

uint64_t place_of_process(pid_t pid)
{
	return PROCESS_BIT | (uint32_t)pid;
}

uint64_t place_of_device(uint64_t device_major, uint64_t device_minor)
{
	return makedev(device_major, device_minor) & ~(PROCESS_BIT | PATHS_BIT);
}

/* Send or receive one message with at most one descriptor. Return the size of the message, or -1. */
static ssize_t exchange(int socket, struct iovec parts[2], int *fd, bool receive)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr alignment;
	} control = {0};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = control.bytes};
	const struct cmsghdr *header = &control.alignment;
	ssize_t size;

	if (receive || *fd >= 0)
		message.msg_controllen = sizeof(control.bytes);
	if (!receive && *fd >= 0) {
		control.alignment = (struct cmsghdr){
		    .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
		memcpy(CMSG_DATA(&control.alignment), fd, sizeof(int));
	}
	size = TEMP_FAILURE_RETRY(receive ? recvmsg(socket, &message, MSG_CMSG_CLOEXEC)
					  : sendmsg(socket, &message, MSG_NOSIGNAL));
	if (receive)
		*fd = -1;
	if (receive && size > 0 && message.msg_controllen >= CMSG_LEN(sizeof(int)) &&
	    header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(header), sizeof(int));
	else if (receive && message.msg_flags & MSG_CTRUNC)
		*fd = NO_ROOM;
	return size;
}

static void make_call(struct blocking_call *call, struct answer *answer)
{
	uint64_t work_began_ns = clock_thread_ns(), took_ns;

	call->opened = -1;
	answer->began_ns = clock_now_ns();
	errno = 0;
	call->run(call);
	answer->failure = errno;
	answer->spent_ns = clock_thread_ns() - work_began_ns;
	took_ns = clock_now_ns() - answer->began_ns;
	/* The two clocks differ slightly. */
	answer->waited_ns = took_ns > answer->spent_ns ? took_ns - answer->spent_ns : 0;
}

/* The helper makes one call after the other, until the recorder closes its end of the socket. */
static void serve(void *context, int socket, pid_t recorder)
{
	const struct blocking_host *host = context;
	void *argument = malloc(BLOCKING_ARGUMENT_BYTES), *result = malloc(BLOCKING_RESULT_BYTES);
	int none = -1;

	if (!argument || !result || !helper_process_begin(&socket, &none, recorder))
		_exit(1);
	if (host->raise_nice)
		priority_raise_nice();
	for (;;) {
		struct request request;
		struct iovec received[2] = {{&request, sizeof(request)}, {argument, BLOCKING_ARGUMENT_BYTES}};
		struct answer answer = {0};
		struct iovec sent[2] = {{&answer, sizeof(answer)}, {result, 0}};
		struct blocking_call call = {.argument = argument, .result = result};

		if (exchange(socket, received, &call.given, true) < (ssize_t)sizeof(request))
			_exit(0);
		call.run = request.run;
		call.result_bytes = request.result_bytes;
		make_call(&call, &answer);
		sent[1].iov_len = call.result_bytes;
		if (exchange(socket, sent, &call.opened, false) < 0)
			_exit(0);
		close_descriptor(&call.given);
		close_descriptor(&call.opened);
	}
}

struct mmt_error *blocking_calls_start(struct blocking_calls *calls, const struct blocking_host *host)
{
	calls->host = *host;
	if (helper_process_start(&calls->process, SOCK_SEQPACKET, serve, &calls->host))
		return NULL;
	return error_system(errno, "cannot create a helper process (ulimit -u, pids.max)");
}

/* Runs in the helper. */
static void find_namespace(struct blocking_call *call)
{
	struct stat status = {0};

	(void)stat(call->argument, &status);
	*(uint64_t *)call->result = status.st_ino;
}

uint64_t place_of_paths(struct blocking_calls *calls, pid_t pid)
{
	uint64_t namespace = 0;
	char path[64];
	struct blocking_call call = BLOCKING_CALL(place_of_process(pid), find_namespace, &path, -1, &namespace);

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", proc_living_thread(pid));
	if (!blocking_call(calls, &call))
		return place_of_process(pid);
	return PATHS_BIT | (namespace ?: place_of_process(pid));
}

/* Forget the places of helpers that have returned from their calls and are gone. */
static void reap(struct blocking_calls *calls)
{
	size_t kept = 0;

	for (size_t i = 0; i < calls->blocked.count; i++) {
		if (helper_process_wait(calls->blocked.items[i].child, 0) < 0)
			calls->blocked.items[kept++] = calls->blocked.items[i];
	}
	calls->blocked.count = kept;
}

__attribute__((format(printf, 3, 4))) static void warn_once(const struct blocking_calls *calls, bool *warned,
							    const char *format, ...)
{
	char text[512];
	va_list arguments;

	if (*warned)
		return;
	*warned = true;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	calls->host.warn(calls->host.context, text);
}

static void report_helper(struct blocking_calls *calls, const char *fault)
{
	warn_once(calls, &calls->reported_helper,
		  "a helper process that reads the mappings and files of recorded processes %s: some of these are "
		  "missing",
		  fault);
}

bool blocking_calls_are_stuck(struct blocking_calls *calls, uint64_t place)
{
	if (!calls->blocked.count)
		return false;
	reap(calls);
	return array_find(blocked, calls->blocked.items, calls->blocked.count, blocked->place == place);
}

bool blocking_calls_would_fail(struct blocking_calls *calls, uint64_t place)
{
	if (blocking_calls_are_stuck(calls, place))
		return true;
	if (calls->blocked.count < LIMIT_BLOCKED_HELPERS)
		return false;
	report_helper(calls, "cannot be created: too many others wait for file systems that do not answer");
	return true;
}

void blocking_calls_end(struct blocking_calls *calls)
{
	(void)helper_end(&calls->process, END_MILLISECONDS);
	for (size_t i = 0; i < calls->blocked.count; i++)
		kill(calls->blocked.items[i].child, SIGKILL);
	reap(calls);
	vector_deinit(&calls->blocked);
	*calls = (struct blocking_calls){0};
}

/* The helper does not answer, and another one is started for the next call. This one exits when its call returns: until
 * then its place is known to be stuck, while a killed helper might leave it at once. */
static void abandon(struct blocking_calls *calls, uint64_t place)
{
	const struct blocked_place blocked = {place, calls->process.child};

	close(calls->process.answer);
	calls->process.child = 0;
	(void)vector_push(&calls->blocked, blocked);
	if (place & PROCESS_BIT)
		warn_once(
		    calls, &calls->reported_memory,
		    "process %d does not answer, perhaps because a file system does not: its mappings and resident "
		    "pages cannot be read, and are missing if it stays so",
		    (int)(uint32_t)place);
	else
		warn_once(calls, &calls->reported_files,
			  "a file system of a recorded process does not answer: perf maps, jitdumps, build-ids and "
			  "modules on it are missing (mount point: device %u:%u in /proc/PID/mountinfo)",
			  major(place & ~PATHS_BIT), minor(place & ~PATHS_BIT));
}

/* How long to wait for an answer. With each helper that does not answer, the patience gets smaller. */
static uint64_t patience_ns(const struct blocking_calls *calls, uint64_t place, bool stopped)
{
	uint64_t wait_ns =
	    (place & PROCESS_BIT ? LIMIT_BLOCKED_MEMORY_NS : LIMIT_BLOCKED_FILES_NS) / (calls->blocked.count + 1);
	uint64_t left_ns = calls->lost_ns < LIMIT_BLOCKED_STOPPED_NS ? LIMIT_BLOCKED_STOPPED_NS - calls->lost_ns : 0;
	uint64_t least_ns = left_ns ? STOPPED_CALL_NS : STOPPED_LATE_NS;

	if (stopped && wait_ns > left_ns / 3 * 2)
		wait_ns = left_ns / 3 * 2; /* each call leaves time for the next */
	return wait_ns > least_ns ? wait_ns : least_ns;
}

/* Wait for the answer. A stop of the recording shortens the wait. */
static bool wait_for_answer(struct blocking_calls *calls, uint64_t place)
{
	struct pollfd items[] = {{.fd = calls->process.answer, .events = POLLIN},
				 {.fd = calls->host.stop_fd, .events = POLLIN}};
	uint64_t began_ns = clock_now_ns(), now_ns = began_ns, end_ns = now_ns + patience_ns(calls, place, false);
	bool stopped = false;

	do {
		uint64_t left_ms = end_ns > now_ns ? (end_ns - now_ns + MILLISECOND_NS - 1) / MILLISECOND_NS : 0;
		uint64_t stopped_ns;

		if (poll(items, 2, (int)left_ms) > 0 && items[0].revents)
			return true;
		now_ns = clock_now_ns();
		if (!items[1].revents)
			continue;
		items[1] = (struct pollfd){.fd = -1};
		stopped = true;
		began_ns = now_ns;
		stopped_ns = now_ns + patience_ns(calls, place, true);
		end_ns = stopped_ns < end_ns ? stopped_ns : end_ns;
	} while (now_ns < end_ns);
	if (stopped)
		calls->lost_ns += now_ns - began_ns;
	return false;
}

/* Return whether the helper answers. */
static bool ask(struct blocking_calls *calls, struct blocking_call *call)
{
	struct request request = {call->run, call->result_bytes};
	struct iovec sent[2] = {{&request, sizeof(request)}, {(void *)(uintptr_t)call->argument, call->argument_bytes}};
	struct answer answer = {0};
	struct iovec received[2] = {{&answer, sizeof(answer)}, {call->result, call->result_bytes}};
	bool dead, answered = false;
	ssize_t size;

	if (!calls->process.child && !helper_process_start(&calls->process, SOCK_SEQPACKET, serve, &calls->host)) {
		report_helper(calls, "cannot be created (ulimit -u, pids.max)");
		return false;
	}
	calls->host.begin_wait(calls->host.context);
	dead = exchange(calls->process.answer, sent, &call->given, false) < 0;
	if (!dead && wait_for_answer(calls, call->place)) {
		size = exchange(calls->process.answer, received, &call->opened, true);
		answered = size >= (ssize_t)sizeof(answer);
		dead = !answered;
		call->result_bytes = dead ? 0 : (size_t)size - sizeof(answer);
	}
	calls->host.end_wait(calls->host.context);
	if (dead) {
		(void)helper_end(&calls->process, END_MILLISECONDS);
		report_helper(calls, "was killed, perhaps because memory is short");
	} else if (!answered) {
		abandon(calls, call->place);
	} else {
		calls->began_ns = answer.began_ns;
		calls->spent_ns += answer.spent_ns;
		call->waited_ns = answer.waited_ns;
		errno = call->opened == NO_ROOM ? EMFILE : answer.failure;
		call->opened = call->opened == NO_ROOM ? -1 : call->opened;
	}
	return answered;
}

bool blocking_call(struct blocking_calls *calls, struct blocking_call *call)
{
	call->opened = -1;
	call->waited_ns = 0;
	if (!calls || !calls->host.context) {
		struct answer answer;

		make_call(call, &answer);
		if (calls)
			calls->began_ns = answer.began_ns;
		call->waited_ns = answer.waited_ns;
		errno = answer.failure;
		return true;
	}
	if (!blocking_calls_would_fail(calls, call->place) && ask(calls, call))
		return true;
	errno = ETIMEDOUT;
	return false;
}

uint64_t blocking_calls_clock_ns(const struct blocking_calls *calls)
{
	return clock_thread_ns() + (calls ? calls->spent_ns : 0);
}

struct file_answer {
	bool good;
	int opened; /* -1: nothing was opened */
	struct stat status;
	uint64_t place; /* of the files in a directory */
	uint64_t copied_bytes;
};

/* What the helper does with a file, and what came of it. */
struct file_request {
	bool (*run)(const struct file_request *wanted, int given, struct file_answer *answer);
	uint64_t resolve; /* how the path is found */
	bool wants_status;
	uint64_t offset, size; /* what is read */
	uid_t owner;	       /* of a file that is removed */
	pid_t pid;
	char path[PATH_MAX];
};

static void handle_file(struct blocking_call *call)
{
	const struct file_request *wanted = call->argument;
	struct file_answer *answer = call->result;

	*answer = (struct file_answer){.opened = -1};
	answer->good = wanted->run(wanted, call->given, answer);
	call->opened = answer->opened;
}

/* False: no answer, or the request failed. */
static bool ask_about_file(struct blocking_calls *calls, uint64_t place, int given, struct file_request *request,
			   const char *path, struct file_answer *answer)
{
	size_t path_bytes = strlen(path) + 1;
	struct blocking_call call = BLOCKING_CALL(place, handle_file, request, given, answer);

	call.argument_bytes = offsetof(struct file_request, path) + path_bytes;
	*answer = (struct file_answer){.opened = -1};
	if (path_bytes > sizeof(request->path)) {
		errno = ENAMETOOLONG;
		return false;
	}
	memcpy(request->path, path, path_bytes);
	answer->good = blocking_call(calls, &call) && answer->good;
	answer->opened = call.opened;
	return answer->good;
}

static bool find(const struct file_request *wanted, int given, struct file_answer *answer)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC | (wanted->resolve ? O_NOFOLLOW : 0),
			       .resolve = wanted->resolve};
	int directory = given < 0 ? AT_FDCWD : given;

	answer->opened = (int)syscall(SYS_openat2, directory, wanted->path, &how, sizeof(how));
	if (answer->opened < 0 && errno == ENOSYS && wanted->resolve != (TARGET_IN_ROOT))
		answer->opened = openat(directory, wanted->path, (int)how.flags);
	return answer->opened >= 0 && (!wanted->wants_status || fstat(answer->opened, &answer->status) == 0);
}

int target_file_find(struct blocking_calls *calls, uint64_t place, int directory, const char *path, uint64_t resolve,
		     struct stat *status_ret)
{
	struct file_request request = {.run = find, .resolve = resolve, .wants_status = status_ret};
	struct file_answer answer;

	if (!ask_about_file(calls, place, directory == AT_FDCWD ? -1 : directory, &request, path, &answer)) {
		close_descriptor(&answer.opened);
		return -1;
	}
	if (status_ret)
		*status_ret = answer.status;
	return answer.opened;
}

int process_root_open(struct blocking_calls *calls, pid_t pid)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/root", proc_living_thread(pid));
	return target_file_find(calls, place_of_process(pid), AT_FDCWD, name, TARGET_ANYWHERE, NULL);
}

int target_directory_open(pid_t pid, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	CLEANUP(close) int root = process_root_open(NULL, pid);

	return root < 0 ? -1 : (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

static bool find_directory(const struct file_request *wanted, int given, struct file_answer *answer)
{
	struct statx status = {0};

	(void)given;
	answer->opened = target_directory_open(wanted->pid, wanted->path);
	/* Only the device is wanted, which needs no answer of the file system. */
	if (answer->opened >= 0)
		(void)statx(answer->opened, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &status);
	answer->place = place_of_device(status.stx_dev_major, status.stx_dev_minor);
	return answer->opened >= 0;
}

int target_directory_find(struct blocking_calls *calls, pid_t pid, const char *path, uint64_t *place_ret)
{
	struct file_request request = {.run = find_directory, .pid = pid};
	struct file_answer answer;

	if (!ask_about_file(calls, place_of_paths(calls, pid), -1, &request, path, &answer))
		return -1;
	*place_ret = answer.place;
	return answer.opened;
}

static bool stat_file(const struct file_request *wanted, int given, struct file_answer *answer)
{
	(void)wanted;
	return fstat(given, &answer->status) == 0;
}

bool target_file_stat(struct blocking_calls *calls, uint64_t place, int fd, struct stat *status_ret)
{
	struct file_request request = {.run = stat_file};
	struct file_answer answer;

	if (!ask_about_file(calls, place, fd, &request, "", &answer))
		return false;
	*status_ret = answer.status;
	return true;
}

int target_file_reopen(int given)
{
	char name[32];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", given);
	return open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* Copy a part into a memfd, so that the file is opened once for more than the result of a call can hold. */
static bool copy_file(const struct file_request *wanted, int given, struct file_answer *answer)
{
	CLEANUP(close) int fd = target_file_reopen(given);
	CLEANUP(free) uint8_t *piece = malloc(COPY_BYTES);
	uint64_t end_ns = clock_now_ns() + COPY_NS;
	ssize_t count = fd < 0 || !piece ? -1 : 1;

	answer->opened = memfd_create("", MFD_CLOEXEC);
	while (count > 0 && answer->copied_bytes < wanted->size && clock_now_ns() < end_ns) {
		uint64_t left = wanted->size - answer->copied_bytes;

		count = pread(fd, piece, left < COPY_BYTES ? left : COPY_BYTES,
			      (off_t)(wanted->offset + answer->copied_bytes));
		if (count > 0 && write(answer->opened, piece, (size_t)count) != count)
			count = -1;
		answer->copied_bytes += count > 0 ? (uint64_t)count : 0;
	}
	return count >= 0 || answer->copied_bytes;
}

ssize_t target_file_read(struct blocking_calls *calls, uint64_t place, int fd, void *data, size_t size, uint64_t offset)
{
	size_t total = 0;
	ssize_t count = 1;

	while (total < size && count > 0) {
		struct file_request request = {.run = copy_file, .offset = offset + total, .size = size - total};
		struct file_answer answer;

		count = -1;
		if (ask_about_file(calls, place, fd, &request, "", &answer))
			count = pread(answer.opened, (uint8_t *)data + total,
				      answer.copied_bytes < size - total ? answer.copied_bytes : size - total, 0);
		total += count > 0 ? (size_t)count : 0;
		close_descriptor(&answer.opened);
	}
	return count < 0 && !total ? -1 : (ssize_t)total;
}

static bool remove_file(const struct file_request *wanted, int given, struct file_answer *answer)
{
	const struct stat *status = &answer->status;

	if (fstatat(given, wanted->path, &answer->status, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT;
	return S_ISREG(status->st_mode) && status->st_uid == wanted->owner &&
	       (unlinkat(given, wanted->path, 0) == 0 || errno == ENOENT);
}

bool target_file_remove(struct blocking_calls *calls, uint64_t place, int directory, const char *name, uid_t owner)
{
	struct file_request request = {.run = remove_file, .owner = owner};
	struct file_answer answer;

	return directory < 0 || ask_about_file(calls, place, directory, &request, name, &answer);
}

/* A part of a file of /proc. */
struct part {
	int64_t offset; /* -1: at the position of the file */
	uint64_t size;
};

static void read_process(struct blocking_call *call)
{
	const struct part *part = call->argument;
	ssize_t count =
	    TEMP_FAILURE_RETRY(part->offset < 0 ? read(call->given, call->result, part->size)
						: pread(call->given, call->result, part->size, (off_t)part->offset));

	call->result_bytes = count > 0 ? (size_t)count : 0;
}

ssize_t process_file_read(struct blocking_calls *calls, pid_t pid, int fd, void *data, size_t size, int64_t offset)
{
	const struct part part = {offset, size < BLOCKING_RESULT_BYTES ? size : BLOCKING_RESULT_BYTES};
	struct blocking_call call = BLOCKING_CALL(place_of_process(pid), read_process, &part, fd, (char *)data);

	call.result_bytes = part.size;
	if (!blocking_call(calls, &call))
		return -1;
	return call.result_bytes || !errno ? (ssize_t)call.result_bytes : -1;
}

static void open_process_file(struct blocking_call *call)
{
	call->opened = open(call->argument, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

int process_file_open(struct blocking_calls *calls, pid_t pid, const char *name)
{
	char path[64];
	struct blocking_call call = {.place = place_of_process(pid),
				     .run = open_process_file,
				     .argument = path,
				     .argument_bytes = sizeof(path),
				     .given = -1};

	snprintf(path, sizeof(path), "/proc/%d/%s", proc_living_thread(pid), name);
	if (!blocking_call(calls, &call))
		return -1;
	/* The Yama security module may let only ancestors of a process open its memory, and the helper is none. The
	 * kernel refuses this as the last step, so opening does not block here either. */
	if (call.opened < 0 && (errno == EACCES || errno == EPERM) && !strcmp(name, "mem"))
		open_process_file(&call);
	return call.opened;
}

struct text_request {
	uint64_t offset;
	char path[64];
};

static void read_text(struct blocking_call *call)
{
	const struct text_request *wanted = call->argument;
	CLEANUP(close) int fd = open(wanted->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t room = call->result_bytes;
	ssize_t count = fd < 0 ? 0 : 1;

	call->result_bytes = 0;
	while (count > 0 && call->result_bytes < room) {
		count = pread(fd, (char *)call->result + call->result_bytes, room - call->result_bytes,
			      (off_t)(wanted->offset + call->result_bytes));
		call->result_bytes += count > 0 ? (size_t)count : 0;
	}
}

bool process_text_read(struct blocking_calls *calls, pid_t pid, const char *name, size_t room, char *text,
		       size_t *size_ret)
{
	struct text_request request;
	size_t part, count;
	bool good;

	snprintf(request.path, sizeof(request.path), "/proc/%d/%s", proc_living_thread(pid), name);
	*size_ret = 0;
	do {
		struct blocking_call call =
		    BLOCKING_CALL(place_of_process(pid), read_text, &request, -1, text + *size_ret);

		part = room - *size_ret < BLOCKING_RESULT_BYTES ? room - *size_ret : BLOCKING_RESULT_BYTES;
		call.result_bytes = part;
		request.offset = *size_ret;
		good = blocking_call(calls, &call);
		count = good ? call.result_bytes : 0;
		*size_ret += count;
		good = good && !errno;
	} while (good && count == part && *size_ret < room);
	text[*size_ret] = '\0';
	return good && *size_ret < room;
}
