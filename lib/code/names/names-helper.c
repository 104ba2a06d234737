// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/names/names-helper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/map.h"

#define REQUEST_MAX (UINT64_C(1) << 32) /* a copied module may be large */

enum names_request { REQUEST_OPEN = 1, REQUEST_NAMES, REQUEST_SPECIAL, REQUEST_RANGE, REQUEST_NAMED, REQUEST_MISSING };

/* ---- both sides ---- */

/* False: the other side has ended. */
static bool receive(int fd, void *data, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t got = read(fd, (char *)data + done, size - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return true;
}

static bool transmit(int fd, const void *data, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t sent = send(fd, (const char *)data + done, size - done, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		done += (size_t)sent;
	}
	return true;
}

static bool transmit_message(int fd, const struct buffer *message)
{
	uint64_t size = message->size;

	return !message->error && transmit(fd, &size, sizeof(size)) && transmit(fd, message->data, message->size);
}

/* ---- in the helper ---- */

struct server {
	const struct names_calls *calls;
	struct map opened;	    /* number -> struct symbols */
	volatile uint32_t *current; /* number of the module in use: whose fault an end is */
	struct buffer answer;
};

static void put_text(struct buffer *answer, const char *text)
{
	size_t length = text ? strnlen(text, LIMIT_NAMES_TEXT_BYTES) : 0;

	buffer_put(answer, text ? text : "", length);
	buffer_put_u8(answer, 0);
}

static void put_frames(struct server *server, struct symbols *symbols, uint64_t address)
{
	struct module_frame frames[LIMIT_INLINED_FRAMES] = {0};
	size_t count = symbols ? symbols_find(symbols, address, frames) : 1;

	buffer_put_u8(&server->answer, symbols ? (uint8_t)symbols_debug_state(symbols) : MODULE_READABLE);
	buffer_put_u8(&server->answer, (uint8_t)count);
	for (size_t i = 0; i < count; i++) {
		put_text(&server->answer, frames[i].function);
		put_text(&server->answer, frames[i].raw_function);
		put_text(&server->answer, frames[i].source_file);
		buffer_put_u32(&server->answer, frames[i].source_line);
		buffer_put_u8(&server->answer, frames[i].inlined);
	}
}

static void put_special(struct server *server, struct symbols *symbols)
{
	size_t place = server->answer.size, position = 0;
	struct special_function function;
	uint32_t count = 0;

	buffer_put_u32(&server->answer, 0);
	while (symbols && (function.name = symbols_next_special(symbols, &position, &function.start, &function.end))) {
		put_text(&server->answer, function.name);
		buffer_put_u64(&server->answer, function.start);
		buffer_put_u64(&server->answer, function.end);
		count++;
	}
	buffer_patch_u32(&server->answer, place, count);
}

static void put_range(struct server *server, bool found, uint64_t start, uint64_t end)
{
	buffer_put_u8(&server->answer, found);
	buffer_put_u64(&server->answer, start);
	buffer_put_u64(&server->answer, end);
}

static void open_module(struct server *server, uint32_t number, struct bytes *request)
{
	enum symbols_use use = bytes_u8(request);
	struct bytes description = bytes_sub(request, bytes_u64(request));
	struct symbols *symbols = server->calls->open(server->calls->context, &description, use);

	if (symbols && !map_put_pointer(&server->opened, number, symbols))
		_exit(EXIT_FAILURE);
}

static void serve_one(struct server *server, struct bytes *request)
{
	enum names_request kind = bytes_u8(request);
	uint32_t number = bytes_u32(request);
	struct symbols *symbols = map_get_pointer(&server->opened, number);
	uint64_t start = 0, end = 0;
	size_t others = 0;
	bool found;

	*server->current = number;
	switch (kind) {
	case REQUEST_OPEN:
		open_module(server, number, request);
		break;
	case REQUEST_NAMES:
		put_frames(server, symbols, bytes_u64(request));
		break;
	case REQUEST_SPECIAL:
		put_special(server, symbols);
		break;
	case REQUEST_RANGE:
		found = symbols && symbols_function_range(symbols, bytes_u64(request), &start, &end);
		put_range(server, found, start, end);
		break;
	case REQUEST_NAMED:
		found = symbols && symbols_named_range(symbols, bytes_string(request), &start, &end);
		put_range(server, found, start, end);
		break;
	case REQUEST_MISSING:
		put_text(&server->answer, symbols ? symbols_missing_part(symbols, &others) : NULL);
		buffer_put_u64(&server->answer, others);
	}
}

/* Limit one request. The alarm ends a helper whose parent was killed while it waits for something. */
static void limit_time(void)
{
	struct rusage usage;
	struct rlimit limit;

	(void)getrusage(RUSAGE_SELF, &usage);
	(void)getrlimit(RLIMIT_CPU, &limit);
	limit.rlim_cur = (rlim_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + LIMIT_NAMES_PROCESSOR_SECONDS;
	if (limit.rlim_cur < limit.rlim_max)
		(void)setrlimit(RLIMIT_CPU, &limit);
	alarm(LIMIT_NAMES_SECONDS);
}

static void serve(struct server *server, int fd)
{
	uint64_t size;

	while (receive(fd, &size, sizeof(size))) {
		CLEANUP(free) void *data = malloc(size + 1);
		struct bytes request = bytes_over(data, size);

		if (!data || !receive(fd, data, size))
			return;
		limit_time();
		buffer_clear(&server->answer);
		while (bytes_left(&request))
			serve_one(server, &request);
		if (!transmit_message(fd, &server->answer))
			return;
		alarm(0);
	}
}

/* Read the first line. False: there is none. */
static bool read_line(const char *path, char *line, size_t size)
{
	CLEANUP(fclose) FILE *file = fopen(path, "re");

	return file && fgets(line, (int)size, file);
}

/* Beyond what the parent has: the kernel counts that too. Let the kernel end this process before others. */
static void limit_memory(void)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), data = 0;
	char line[256], *position = line;
	struct rlimit limit;
	FILE *file;

	if (read_line("/proc/self/statm", line, sizeof(line))) {
		for (int field = 0; field < 6; field++)
			data = strtoull(position, &position, 10);
	}
	(void)getrlimit(RLIMIT_DATA, &limit);
	data = (data + (uint64_t)sysconf(_SC_PHYS_PAGES) / LIMIT_NAMES_MEMORY_SHARE) * page;
	if (data < limit.rlim_cur) {
		limit.rlim_cur = data;
		(void)setrlimit(RLIMIT_DATA, &limit);
	}
	file = fopen("/proc/self/oom_score_adj", "we");
	if (file) {
		fputs("1000", file);
		fclose(file);
	}
}

/* Drop the right to write files, where the kernel has Landlock, and root's capabilities except that of reading. */
static void drop_privileges(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct reading[_LINUX_CAPABILITY_U32S_3] = {
	    {.effective = 1u << CAP_DAC_READ_SEARCH, .permitted = 1u << CAP_DAC_READ_SEARCH}};
	/* Those of the first version, which all kernels with Landlock know; no rule allows any. */
	struct landlock_ruleset_attr writing = {
	    .handled_access_fs =
		LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
		LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |
		LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
		LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM};
	const char *servers = getenv("DEBUGINFOD_URLS");
	int rules = -1;

	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* What debuginfod servers deliver is written to a cache. */
	if (!servers || !*servers)
		rules = (int)syscall(SYS_landlock_create_ruleset, &writing, sizeof(writing.handled_access_fs), 0);
	if (rules >= 0) {
		(void)syscall(SYS_landlock_restrict_self, rules, 0);
		close(rules);
	}
	if (syscall(SYS_capset, &header, reading) < 0) {
		memset(reading, 0, sizeof(reading));
		(void)syscall(SYS_capset, &header, reading);
	}
}

static _Noreturn void run_helper(const struct names_calls *calls, volatile uint32_t *current, int socket)
{
	static const int ignored[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
	struct server server = {.calls = calls, .current = current};
	const struct rlimit no_core = {0};
	int null;
	sigset_t none;

	/* The parent ends this process; a signal for its process group must not. */
	for (int i = 1; i < NSIG; i++)
		(void)signal(i, SIG_DFL);
	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
		(void)signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* The host may have closed the standard descriptors, and the socket be one of them. */
	socket = fcntl(socket, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 0; i <= STDERR_FILENO; i++)
		(void)dup2(null, i);
	if (socket > STDERR_FILENO + 1)
		(void)dup2(socket, STDERR_FILENO + 1);
	(void)close_range(STDERR_FILENO + 2, ~0u, 0);
	(void)prctl(PR_SET_NAME, "mmtrace-names");
	limit_memory();
	drop_privileges();
	/* A core file would contain the memory of the recorded processes. */
	(void)setrlimit(RLIMIT_CORE, &no_core);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	buffer_init(&server.answer, LIMIT_NAMES_ANSWER_BYTES);
	serve(&server, STDERR_FILENO + 1);
	_exit(EXIT_SUCCESS);
}

/* ---- in this process ---- */

struct fetched {
	const struct remote_names *names;
	uint64_t address;
	size_t first, count; /* of `frames` */
};

struct names_helper {
	struct names_calls calls;
	int socket; /* -1: no process */
	pid_t pid;
	uint32_t number;	    /* of this process, from 1 */
	uint32_t ends;		    /* of helpers */
	volatile uint32_t *current; /* shared with the helper */
	struct buffer request;
	void *answer;
	VECTOR(struct fetched) fetched;
	VECTOR(struct module_frame) frames;
	size_t next; /* of `fetched`: probably wanted next */
	struct id_table texts_by_hash;
	VECTOR(const char *) texts;
	struct arena arena;
};

void remote_names_deinit(struct remote_names *names)
{
	vector_deinit(&names->special);
}

struct names_helper *names_helper_create(const struct names_calls *calls)
{
	struct names_helper *helper = calloc(1, sizeof(*helper));

	if (!helper)
		return NULL;
	helper->calls = *calls;
	helper->socket = -1;
	helper->current =
	    mmap(NULL, sizeof(*helper->current), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	buffer_init(&helper->request, REQUEST_MAX);
	if (helper->current != MAP_FAILED)
		return helper;
	free(helper);
	return NULL;
}

/* Returns the status that waitpid() reports. */
static int stop(struct names_helper *helper)
{
	int status = 0;

	if (helper->socket < 0)
		return 0;
	close(helper->socket);
	helper->socket = -1;
	while (waitpid(helper->pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

void names_helper_destroy(struct names_helper *helper)
{
	if (!helper)
		return;
	(void)stop(helper);
	munmap((void *)helper->current, sizeof(*helper->current));
	buffer_deinit(&helper->request);
	free(helper->answer);
	vector_deinit(&helper->fetched);
	vector_deinit(&helper->frames);
	id_table_deinit(&helper->texts_by_hash);
	vector_deinit(&helper->texts);
	arena_deinit(&helper->arena);
	free(helper);
}

static bool start(struct names_helper *helper)
{
	int ends[2];

	if (helper->socket >= 0)
		return true;
	if (helper->ends > LIMIT_NAMES_ENDS)
		return false;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		helper->ends++;
		return false;
	}
	helper->pid = fork();
	if (!helper->pid) {
		close(ends[0]);
		run_helper(&helper->calls, helper->current, ends[1]);
	}
	close(ends[1]);
	helper->socket = ends[0];
	helper->number++;
	if (helper->pid > 0)
		return true;
	close(ends[0]);
	helper->socket = -1;
	helper->ends++;
	return false;
}

uint32_t names_helper_ends(const struct names_helper *helper)
{
	return helper->ends;
}

/* Whether the helper waits for something other than a disk or a processor. */
static bool is_asleep(pid_t pid)
{
	char path[64], line[256];
	const char *name_end;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	name_end = read_line(path, line, sizeof(line)) ? strrchr(line, ')') : NULL;
	return name_end && !strncmp(name_end, ") S", 3);
}

/* Wait for the answer. False: the helper makes no progress, or takes too long. */
static bool wait_for_answer(const struct names_helper *helper)
{
	struct pollfd poll_for = {.fd = helper->socket, .events = POLLIN};
	struct timespec before = {0}, now = {0};
	clockid_t clock = CLOCK_MONOTONIC;
	int asleep = 0;

	for (int second = 0; second < LIMIT_NAMES_SECONDS && asleep < LIMIT_NAMES_ASLEEP_SECONDS; second++) {
		int ready = poll(&poll_for, 1, 1000);

		if (ready > 0)
			return true;
		if (ready < 0 && errno == EINTR) {
			second--;
			continue;
		}
		(void)clock_getcpuclockid(helper->pid, &clock);
		(void)clock_gettime(clock, &now);
		if (now.tv_sec == before.tv_sec && now.tv_nsec == before.tv_nsec && is_asleep(helper->pid))
			asleep++;
		else
			asleep = 0;
		before = now;
	}
	return false;
}

/* False: the helper ended, or takes too long. */
static bool exchange(struct names_helper *helper, struct bytes *answer_ret)
{
	uint64_t size;

	free(helper->answer);
	helper->answer = NULL;
	if (!transmit_message(helper->socket, &helper->request) || !wait_for_answer(helper) ||
	    !receive(helper->socket, &size, sizeof(size)) || size > LIMIT_NAMES_ANSWER_BYTES)
		return false;
	helper->answer = malloc(size + 1);
	*answer_ret = bytes_over(helper->answer, size);
	return helper->answer && receive(helper->socket, helper->answer, size);
}

/* The helper has ended, or must end, because of one of these modules: read less of it. `nonsense`: its answer was not
 * valid. */
static void blame(struct names_helper *helper, const struct names_query *queries, size_t count, bool nonsense)
{
	uint32_t number = *helper->current;
	bool known = false, crashed;
	int status;

	(void)kill(helper->pid, SIGKILL);
	status = stop(helper);
	/* The kernel kills a process if memory runs out or the limit of time is reached; libdw exits if there is no
	 * memory. */
	crashed = nonsense || (WIFSIGNALED(status) && WTERMSIG(status) != SIGXCPU && WTERMSIG(status) != SIGKILL);
	helper->ends++;
	for (size_t i = 0; i < count; i++)
		known |= queries[i].names->number == number;
	for (size_t i = 0; i < count; i++) {
		struct remote_names *names = queries[i].names;

		/* A module may be in several queries. */
		if ((known && names->number != number) || names->helper != helper->number)
			continue;
		names->helper = 0;
		names->use++;
		names->state = crashed ? MODULE_POOR_NAMES : MODULE_LIMITED_NAMES;
	}
}

static void begin_request(struct names_helper *helper, enum names_request kind, const struct remote_names *names)
{
	buffer_put_u8(&helper->request, (uint8_t)kind);
	buffer_put_u32(&helper->request, names->number);
}

static void put_open(struct names_helper *helper, struct remote_names *names)
{
	size_t place;
	uint64_t size;

	if (names->helper == helper->number || names->use == SYMBOLS_NONE)
		return;
	names->helper = helper->number;
	begin_request(helper, REQUEST_OPEN, names);
	buffer_put_u8(&helper->request, (uint8_t)names->use);
	place = helper->request.size;
	buffer_put_u64(&helper->request, 0);
	helper->calls.describe(names, &helper->request);
	size = helper->request.size - place - sizeof(size);
	if (!helper->request.error)
		memcpy(helper->request.data + place, &size, sizeof(size));
}

/* Send one request per query, with `text` if it is not NULL, until a helper answers. False: none does. */
static bool ask(struct names_helper *helper, enum names_request kind, const struct names_query *queries, size_t count,
		const char *text, struct bytes *answer_ret)
{
	while (start(helper)) {
		buffer_clear(&helper->request);
		for (size_t i = 0; i < count; i++) {
			put_open(helper, queries[i].names);
			begin_request(helper, kind, queries[i].names);
			if (text)
				buffer_put_string(&helper->request, text);
			else if (kind == REQUEST_NAMES || kind == REQUEST_RANGE)
				buffer_put_u64(&helper->request, queries[i].address);
		}
		if (exchange(helper, answer_ret))
			return true;
		blame(helper, queries, count, false);
	}
	for (size_t i = 0; i < count; i++) {
		if (queries[i].names->state == MODULE_READABLE)
			queries[i].names->state = MODULE_LIMITED_NAMES;
	}
	return false;
}

/* The text once for all equal ones; NULL: it is empty, or out of memory. */
static const char *keep_text(struct names_helper *helper, struct bytes *answer)
{
	const char *text = bytes_string(answer);
	size_t length = strlen(text), position = 0;
	uint64_t hash;
	uint32_t id;

	if (!length)
		return NULL;
	hash = id_table_hash(&helper->texts_by_hash, text, length);
	while ((id = id_table_next(&helper->texts_by_hash, hash, &position)) != ID_NONE) {
		if (!strcmp(helper->texts.items[id], text))
			return helper->texts.items[id];
	}
	text = arena_string(&helper->arena, text);
	if (!text || !vector_push(&helper->texts, text))
		return NULL;
	if (id_table_add(&helper->texts_by_hash, hash) == ID_NONE)
		helper->texts.count--;
	return text;
}

static void keep_frames(struct names_helper *helper, const struct names_query *query, struct bytes *answer)
{
	struct fetched fetched = {.names = query->names, .address = query->address, .first = helper->frames.count};
	uint8_t state = bytes_u8(answer), count = bytes_u8(answer);

	if (!count || count > LIMIT_INLINED_FRAMES || state > MODULE_MISSING_NAMES)
		bytes_fail(answer, "names");
	for (uint8_t i = 0; i < count && bytes_ok(answer); i++) {
		struct module_frame frame = {.function = keep_text(helper, answer),
					     .raw_function = keep_text(helper, answer),
					     .source_file = keep_text(helper, answer)};

		frame.source_line = bytes_u32(answer);
		frame.inlined = bytes_u8(answer) && i + 1 < count;
		if (!vector_push(&helper->frames, frame))
			return;
		fetched.count++;
	}
	if (!bytes_ok(answer) || !vector_push(&helper->fetched, fetched))
		return;
	/* What an earlier helper died of stays true. */
	if (query->names->use == SYMBOLS_ALL)
		query->names->state = state;
}

void remote_names_fetch(struct names_helper *helper, const struct names_query *queries, size_t count, bool more)
{
	size_t kept = more ? helper->fetched.count : 0, kept_frames = more ? helper->frames.count : 0;
	struct bytes answer;

	do {
		helper->fetched.count = kept;
		helper->frames.count = kept_frames;
		if (!ask(helper, REQUEST_NAMES, queries, count, NULL, &answer))
			return;
		for (size_t i = 0; i < count && bytes_ok(&answer); i++)
			keep_frames(helper, &queries[i], &answer);
		if (!bytes_ok(&answer))
			blame(helper, queries, count, true);
	} while (!bytes_ok(&answer));
}

static const struct fetched *find_fetched(struct names_helper *helper, const struct remote_names *names,
					  uint64_t address)
{
	for (size_t i = 0; i < helper->fetched.count; i++) {
		size_t place = (helper->next + i) % helper->fetched.count;
		const struct fetched *fetched = &helper->fetched.items[place];

		if (fetched->names == names && fetched->address == address) {
			helper->next = place;
			return fetched;
		}
	}
	return NULL;
}

size_t remote_names_find(struct names_helper *helper, struct remote_names *names, uint64_t address,
			 struct module_frame frames_ret[LIMIT_INLINED_FRAMES])
{
	const struct fetched *fetched = find_fetched(helper, names, address);

	if (!fetched) {
		remote_names_fetch(helper, &(struct names_query){names, address}, 1, false);
		fetched = find_fetched(helper, names, address);
	}
	frames_ret[0] = (struct module_frame){0};
	if (!fetched)
		return 1;
	memcpy(frames_ret, helper->frames.items + fetched->first, fetched->count * sizeof(*frames_ret));
	return fetched->count;
}

const struct special_function *remote_names_special(struct names_helper *helper, struct remote_names *names,
						    uint64_t address)
{
	const struct names_query query = {.names = names};
	struct bytes answer;

	if (!names->special_listed && ask(helper, REQUEST_SPECIAL, &query, 1, NULL, &answer)) {
		for (uint32_t left = bytes_u32(&answer); left && bytes_ok(&answer); left--) {
			struct special_function function = {.name = keep_text(helper, &answer)};

			function.start = bytes_u64(&answer);
			function.end = bytes_u64(&answer);
			if (!function.name || !vector_push(&names->special, function))
				break;
		}
	}
	names->special_listed = true;
	for (size_t i = 0; i < names->special.count; i++) {
		if (names->special.items[i].start <= address && address < names->special.items[i].end)
			return &names->special.items[i];
	}
	return NULL;
}

static bool find_range(struct names_helper *helper, enum names_request kind, const struct names_query *query,
		       const char *name, uint64_t *start_ret, uint64_t *end_ret)
{
	struct bytes answer;
	bool found = ask(helper, kind, query, 1, name, &answer) && bytes_u8(&answer);

	if (!found)
		return false;
	*start_ret = bytes_u64(&answer);
	*end_ret = bytes_u64(&answer);
	return bytes_ok(&answer);
}

bool remote_names_range(struct names_helper *helper, struct remote_names *names, uint64_t address, uint64_t *start_ret,
			uint64_t *end_ret)
{
	return find_range(helper, REQUEST_RANGE, &(struct names_query){names, address}, NULL, start_ret, end_ret);
}

bool remote_names_named(struct names_helper *helper, struct remote_names *names, const char *name, uint64_t *start_ret,
			uint64_t *end_ret)
{
	return find_range(helper, REQUEST_NAMED, &(struct names_query){names, 0}, name, start_ret, end_ret);
}

char *remote_names_missing_part(struct names_helper *helper, struct remote_names *names, size_t *others_ret)
{
	const struct names_query query = {.names = names};
	struct bytes answer;
	const char *text;

	if (!ask(helper, REQUEST_MISSING, &query, 1, NULL, &answer))
		return NULL;
	text = bytes_string(&answer);
	*others_ret = bytes_u64(&answer);
	return *text && bytes_ok(&answer) ? strdup(text) : NULL;
}
