// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/names/names-helper.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/helper-process.h"
#include "base/map.h"

#define STACK_BYTES (8u << 20)
#define GUARD_BYTES (64u << 10) /* larger than what a function takes at once */
#define EXIT_MILLISECONDS 5000	/* wait this long for a helper that exits, or has nothing to do */

enum names_request {
	REQUEST_OPEN = 1,
	REQUEST_NAMES,
	REQUEST_SPECIAL,
	REQUEST_RANGE,
	REQUEST_MISSING,
	REQUEST_TYPE,
	REQUEST_FILE
};

struct fetched {
	const struct remote_names *names;
	uint64_t address;
	size_t first, count; /* of `frames` */
};

struct names_helper {
	struct names_calls calls;
	struct helper processes[LIMIT_NAMES_ENDS + 2]; /* by `ends`: those that ended may be dying */
	uint32_t ends;
	int failure;	       /* errno: the last one could not be started */
	bool ended;	       /* found while it was asked */
	bool types_end;	       /* the name of a type ended a helper: demangle no more of them */
	VECTOR(char *) silent; /* mount points of file systems that do not answer */
	time_t second;	       /* the last one that was counted */
	unsigned seconds;      /* that the request takes */
	unsigned asleep;       /* of these, the last ones without progress */
	struct timespec used;  /* processor time of the helper */
	struct buffer request;
	void *answer;
	VECTOR(struct fetched) fetched;
	VECTOR(struct module_frame) frames;
	struct id_table texts_by_hash;
	VECTOR(const char *) texts;
	struct arena arena;
};

/* ---- both sides ---- */

/* Read the first line. False: there is none. */
static bool read_line(const char *path, char *line, size_t size)
{
	CLEANUP(fclose) FILE *file = fopen(path, "re");

	return file && fgets(line, (int)size, file);
}

/* Whether every thread of the helper is stopped, or waits for something other than a processor. */
static bool is_asleep(pid_t pid)
{
	CLEANUP(closedir) DIR *threads = NULL;
	char path[64], line[256];
	const struct dirent *thread;
	const char *name_end = NULL;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	threads = opendir(path);
	while (threads && (!name_end || strncmp(name_end, ") R", 3) != 0) && (thread = readdir(threads))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/stat", (int)pid, thread->d_name);
		name_end = read_line(path, line, sizeof(line)) ? strrchr(line, ')') : name_end;
	}
	return name_end && strncmp(name_end, ") R", 3) != 0;
}

/* Wait until the helper reads or writes. False: it makes no progress, or takes too long. Time in which this process is
 * stopped does not count. */
static bool wait_for(struct names_helper *waiting, short events)
{
	const struct helper *process = &waiting->processes[waiting->ends];
	struct pollfd poll_for = {.fd = process->answer, .events = events};
	struct timespec now = {0}, used = {0};
	clockid_t clock = CLOCK_MONOTONIC;
	int ready;

	do {
		ready = poll(&poll_for, 1, 1000);
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec == waiting->second)
			continue;
		waiting->second = now.tv_sec;
		(void)clock_getcpuclockid(process->child, &clock);
		(void)clock_gettime(clock, &used);
		if (ready <= 0 && used.tv_sec == waiting->used.tv_sec && used.tv_nsec == waiting->used.tv_nsec &&
		    is_asleep(process->child))
			waiting->asleep++;
		else
			waiting->asleep = 0;
		waiting->used = used;
		if (++waiting->seconds > LIMIT_NAMES_SECONDS || waiting->asleep > LIMIT_NAMES_ASLEEP_SECONDS)
			return false;
	} while (ready <= 0);
	return true;
}

/* `waiting` is NULL in the helper. False: the other side has ended or, with `waiting`, takes too long. */
static bool transfer(int fd, void *data, size_t size, bool out, struct names_helper *waiting)
{
	int flags = MSG_NOSIGNAL | (waiting ? MSG_DONTWAIT : 0);

	for (size_t done = 0; done < size;) {
		char *position = (char *)data + done;
		ssize_t count = out ? send(fd, position, size - done, flags) : recv(fd, position, size - done, flags);

		if (count > 0) {
			done += (size_t)count;
		} else if (!count || (errno != EAGAIN && errno != EINTR)) {
			if (waiting)
				waiting->ended = true;
			return false;
		} else if (waiting && !wait_for(waiting, out ? POLLOUT : POLLIN)) {
			return false;
		}
	}
	return true;
}

static bool transmit(int fd, const struct buffer *message, struct names_helper *waiting)
{
	uint64_t size = message->size;

	return !message->error && transfer(fd, &size, sizeof(size), true, waiting) &&
	       transfer(fd, message->data, message->size, true, waiting);
}

/* ---- in the helper ---- */

struct server {
	const struct names_calls *calls;
	int socket;
	struct map opened; /* number -> struct symbols */
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
	buffer_patch(&server->answer, place, count, sizeof(count));
}

/* A file system that does not answer keeps this process here. */
static void try_file(struct server *server, const char *path)
{
	CLEANUP(close) int fd = -1;
	struct stat status;
	char byte;

	if (stat(path, &status) == 0 && S_ISREG(status.st_mode))
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && pread(fd, &byte, 1, 0) == 1)
		(void)!pread(fd, &byte, 1, status.st_size - 1);
	buffer_put_u8(&server->answer, 0);
}

static void serve_one(struct server *server, struct bytes *request)
{
	enum names_request kind = bytes_u8(request);
	uint32_t number = bytes_u32(request);
	struct symbols *symbols = map_get_pointer(&server->opened, number);
	uint64_t address, start = 0, end = 0;
	struct bytes description;
	enum symbols_use use;
	CLEANUP(free) char *type = NULL;
	const char *name;
	bool found;

	errno = 0;
	switch (kind) {
	case REQUEST_OPEN:
		use = bytes_u8(request);
		description = bytes_sub(request, bytes_u64(request));
		symbols = server->calls->open(server->calls->context, &description, use);
		if (symbols && !map_put_pointer(&server->opened, number, symbols))
			_exit(EXIT_FAILURE);
		break;
	case REQUEST_NAMES:
		put_frames(server, symbols, bytes_u64(request));
		break;
	case REQUEST_SPECIAL:
		put_special(server, symbols);
		break;
	case REQUEST_RANGE:
		name = bytes_string(request);
		address = bytes_u64(request);
		found = symbols && (*name ? symbols_named_range(symbols, name, &start, &end)
					  : symbols_function_range(symbols, address, &start, &end));
		buffer_put_u8(&server->answer, found);
		buffer_put_u64(&server->answer, start);
		buffer_put_u64(&server->answer, end);
		break;
	case REQUEST_TYPE:
		type = demangle_type(bytes_string(request));
		put_text(&server->answer, type);
		break;
	case REQUEST_FILE:
		try_file(server, bytes_string(request));
		break;
	case REQUEST_MISSING:
		put_text(&server->answer, symbols ? symbols_missing_part(symbols) : NULL);
	}
	/* A library without memory gives no names, as if there were none. */
	if (errno == ENOMEM)
		_exit(EXIT_FAILURE);
}

static void *serve(void *context)
{
	struct server *server = context;
	int fd = server->socket;
	struct rusage usage;
	struct rlimit limit;
	uint64_t size;

	while (transfer(fd, &size, sizeof(size), false, NULL)) {
		CLEANUP(free) void *data = malloc(size + 1);
		struct bytes request = bytes_over(data, size);

		if (!data || !transfer(fd, data, size, false, NULL))
			break;
		/* Limit one request. The alarm ends a helper whose parent was killed while it waits for something. */
		(void)getrusage(RUSAGE_SELF, &usage);
		(void)getrlimit(RLIMIT_CPU, &limit);
		limit.rlim_cur =
		    (rlim_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + LIMIT_NAMES_PROCESSOR_SECONDS;
		/* At the hard limit the kernel sends SIGKILL, which does not say why. */
		if (limit.rlim_cur >= limit.rlim_max)
			limit.rlim_cur = limit.rlim_max - 1;
		(void)setrlimit(RLIMIT_CPU, &limit);
		alarm(LIMIT_NAMES_SECONDS);
		buffer_clear(&server->answer);
		while (bytes_left(&request))
			serve_one(server, &request);
		if (!transmit(fd, &server->answer, NULL))
			break;
		alarm(0);
	}
	_exit(EXIT_SUCCESS);
}

static void run_helper(void *context, int socket, pid_t parent)
{
	struct server server = {.calls = context, .socket = socket};
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), data = 0;
	char line[256], *position = line;
	const struct rlimit no_core = {0};
	struct rlimit limit;
	pthread_attr_t attributes;
	pthread_t thread;
	int none = -1;
	sigset_t limits;

	/* Names are worth more than a closed descriptor. */
	(void)helper_process_begin(&server.socket, &none, parent);
	/* The thread that forked this process may end before others ask. */
	(void)prctl(PR_SET_PDEATHSIG, 0);
	(void)signal(SIGXCPU, SIG_DFL);
	(void)signal(SIGALRM, SIG_DFL);
	sigemptyset(&limits);
	sigaddset(&limits, SIGXCPU);
	sigaddset(&limits, SIGALRM);
	(void)sigprocmask(SIG_UNBLOCK, &limits, NULL);
	(void)prctl(PR_SET_NAME, "mmtrace-names");
	/* Limit memory beyond what the parent has: the kernel counts that too. */
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
	confine_thread(NULL, 0);
	/* A core file would contain the memory of the recorded processes. */
	(void)setrlimit(RLIMIT_CORE, &no_core);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	buffer_init(&server.answer, LIMIT_NAMES_ANSWER_BYTES);
	/* Debug information makes libdw take more stack than a low `ulimit -s` gives, whose hard limit stays. */
	(void)getrlimit(RLIMIT_STACK, &limit);
	if (limit.rlim_cur < STACK_BYTES && pthread_attr_init(&attributes) == 0 &&
	    pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0 &&
	    pthread_attr_setguardsize(&attributes, GUARD_BYTES) == 0 &&
	    pthread_create(&thread, &attributes, serve, &server) == 0)
		(void)pthread_join(thread, NULL);
	(void)serve(&server);
}

/* ---- in this process ---- */

struct names_helper *names_helper_create(const struct names_calls *calls)
{
	struct names_helper *helper = calloc(1, sizeof(*helper));

	if (!helper)
		return NULL;
	helper->calls = *calls;
	buffer_init(&helper->request, LIMIT_NAMES_REQUEST_BYTES);
	return helper;
}

void names_helper_destroy(struct names_helper *helper)
{
	if (!helper)
		return;
	(void)helper_end(&helper->processes[helper->ends], EXIT_MILLISECONDS);
	for (uint32_t i = 0; i < helper->ends; i++)
		helper_reap(&helper->processes[i]);
	buffer_deinit(&helper->request);
	free(helper->answer);
	vector_deinit_each(&helper->silent, item, free(*item));
	vector_deinit(&helper->fetched);
	vector_deinit(&helper->frames);
	id_table_deinit(&helper->texts_by_hash);
	vector_deinit(&helper->texts);
	arena_deinit(&helper->arena);
	free(helper);
}

static bool start(struct names_helper *helper)
{
	struct helper *process = &helper->processes[helper->ends];

	if (process->child && helper_process_wait(process->child, 0) < 0)
		return true;
	/* It was killed while it had nothing to do: no module is at fault. */
	if (process->child) {
		close(process->answer);
		*process++ = (struct helper){0};
		helper->ends++;
	}
	if (helper->ends > LIMIT_NAMES_ENDS)
		return false;
	if (helper_process_start(process, SOCK_STREAM, run_helper, &helper->calls))
		return true;
	helper->failure = errno;
	helper->ends++;
	return false;
}

int names_helper_failure(const struct names_helper *helper)
{
	return helper->failure ?: helper->ends ? -1 : 0;
}

/* The helper has ended, or must end, because of this module: read less of it. MODULE_READABLE: its exit status shows
 * why. */
static void blame(struct names_helper *helper, struct remote_names *names, enum module_state state)
{
	int status = helper_end(&helper->processes[helper->ends], state == MODULE_READABLE ? EXIT_MILLISECONDS : 0);
	int signal = status < 0 ? SIGKILL : WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	if (state == MODULE_READABLE) {
		/* It exits if there is no memory. */
		state = !signal					 ? MODULE_LIMITED_NAMES
			: signal == SIGXCPU || signal == SIGALRM ? MODULE_SLOW_NAMES
			: signal == SIGKILL			 ? MODULE_UNREAD_NAMES
								 : MODULE_POOR_NAMES;
	}
	helper->ends++;
	if (names->helper != helper->ends)
		return;
	names->use++;
	names->state = state;
}

/* False: there is no answer, because of this module. */
static bool exchange(struct names_helper *helper, struct remote_names *names, struct bytes *answer_ret)
{
	int fd = helper->processes[helper->ends].answer;
	uint64_t size;

	free(helper->answer);
	helper->answer = NULL;
	helper->ended = false;
	helper->seconds = 0;
	helper->asleep = 0;
	if (transmit(fd, &helper->request, helper) && transfer(fd, &size, sizeof(size), false, helper) &&
	    size <= LIMIT_NAMES_ANSWER_BYTES) {
		helper->answer = malloc(size + 1);
		if (!helper->answer)
			memory_failed();
		if (helper->answer && transfer(fd, helper->answer, size, false, helper)) {
			*answer_ret = bytes_over(helper->answer, size);
			return true;
		}
	}
	blame(helper, names, helper->ended ? MODULE_READABLE : MODULE_SLOW_NAMES);
	return false;
}

static void begin_request(struct names_helper *helper, enum names_request kind, const struct remote_names *names)
{
	buffer_put_u8(&helper->request, (uint8_t)kind);
	buffer_put_u32(&helper->request, names->number);
}

/* Send one request per query, all of one module, until a helper answers. False: none
 * does. */
static bool ask(struct names_helper *helper, enum names_request kind, const struct names_query *queries, size_t count,
		const char *name, struct bytes *answer_ret)
{
	struct remote_names *names = queries->names;
	size_t place;

	while (start(helper)) {
		buffer_clear(&helper->request);
		if (names->helper != helper->ends + 1 && names->use != SYMBOLS_NONE) {
			names->helper = helper->ends + 1;
			begin_request(helper, REQUEST_OPEN, names);
			buffer_put_u8(&helper->request, (uint8_t)names->use);
			place = helper->request.size;
			buffer_put_u64(&helper->request, 0);
			helper->calls.describe(names, &helper->request);
			buffer_patch(&helper->request, place, helper->request.size - place - sizeof(uint64_t),
				     sizeof(uint64_t));
		}
		for (size_t i = 0; i < count; i++) {
			begin_request(helper, kind, names);
			if (kind == REQUEST_RANGE)
				buffer_put_string(&helper->request, name ? name : "");
			if (kind == REQUEST_NAMES || kind == REQUEST_RANGE)
				buffer_put_u64(&helper->request, queries[i].address);
		}
		if (exchange(helper, names, answer_ret))
			return true;
	}
	if (names->state == MODULE_READABLE)
		names->state = MODULE_UNREAD_NAMES;
	return false;
}

/* False: the answer was damaged. */
static bool is_valid(struct names_helper *helper, struct remote_names *names, const struct bytes *answer)
{
	if (!bytes_ok(answer))
		blame(helper, names, MODULE_POOR_NAMES);
	return bytes_ok(answer);
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
	/* What an earlier helper died of, or that none could be started, stays true. */
	if (query->names->use == SYMBOLS_ALL && query->names->state != MODULE_UNREAD_NAMES)
		query->names->state = state;
}

static void fetch(struct names_helper *helper, const struct names_query *queries, size_t count)
{
	/* Each module has the limits of one exchange. */
	for (size_t first = 0, next; first < count; first = next) {
		size_t kept = helper->fetched.count, kept_frames = helper->frames.count;
		struct bytes answer;

		for (next = first + 1; next < count && queries[next].names == queries[first].names; next++)
			;
		while (ask(helper, REQUEST_NAMES, queries + first, next - first, NULL, &answer)) {
			for (size_t i = first; i < next && bytes_ok(&answer); i++)
				keep_frames(helper, &queries[i], &answer);
			if (is_valid(helper, queries[first].names, &answer))
				break;
			helper->fetched.count = kept;
			helper->frames.count = kept_frames;
		}
	}
}

void remote_names_fetch(struct names_helper *helper, const struct names_query *queries, size_t count)
{
	helper->fetched.count = 0;
	helper->frames.count = 0;
	fetch(helper, queries, count);
}

static const struct fetched *find_fetched(const struct names_helper *helper, const struct remote_names *names,
					  uint64_t address)
{
	return array_find(fetched, helper->fetched.items, helper->fetched.count,
			  fetched->names == names && fetched->address == address);
}

size_t remote_names_find(struct names_helper *helper, struct remote_names *names, uint64_t address,
			 struct module_frame frames_ret[LIMIT_INLINED_FRAMES])
{
	const struct fetched *fetched = find_fetched(helper, names, address);

	if (!fetched) {
		fetch(helper, &(struct names_query){names, address}, 1);
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

	while (!names->special_listed && ask(helper, REQUEST_SPECIAL, &query, 1, NULL, &answer)) {
		names->special.count = 0;
		for (uint32_t left = bytes_u32(&answer); left && bytes_ok(&answer); left--) {
			struct special_function function = {.name = keep_text(helper, &answer)};

			function.start = bytes_u64(&answer);
			function.end = bytes_u64(&answer);
			if (!function.name || !vector_push(&names->special, function))
				break;
		}
		names->special_listed = is_valid(helper, names, &answer);
	}
	return array_find(special, names->special.items, names->special.count,
			  special->start <= address && address < special->end);
}

bool remote_names_range(struct names_helper *helper, struct remote_names *names, const char *name, uint64_t address,
			uint64_t *start_ret, uint64_t *end_ret)
{
	const struct names_query query = {names, address};
	struct bytes answer;
	bool found;

	do {
		if (!ask(helper, REQUEST_RANGE, &query, 1, name, &answer))
			return false;
		found = bytes_u8(&answer);
		*start_ret = bytes_u64(&answer);
		*end_ret = bytes_u64(&answer);
	} while (!is_valid(helper, names, &answer));
	return found;
}

char *remote_names_missing_part(struct names_helper *helper, struct remote_names *names)
{
	const struct names_query query = {.names = names};
	struct bytes answer;
	const char *text;

	do {
		if (!ask(helper, REQUEST_MISSING, &query, 1, NULL, &answer))
			return NULL;
		text = bytes_string(&answer);
	} while (!is_valid(helper, names, &answer));
	return *text ? strdup(text) : NULL;
}

const char *names_helper_type(struct names_helper *helper, const char *name)
{
	struct remote_names none = {.use = SYMBOLS_NONE};
	struct bytes answer;

	if (helper->types_end || !start(helper))
		return NULL;
	buffer_clear(&helper->request);
	begin_request(helper, REQUEST_TYPE, &none);
	buffer_put_string(&helper->request, name);
	helper->types_end = !exchange(helper, &none, &answer);
	return helper->types_end ? NULL : keep_text(helper, &answer);
}

/* The longest mount point that the path begins with, found without asking its file system, owned. NULL: not known. */
static char *find_mount_point(const char *path)
{
	CLEANUP(fclose) FILE *mounts = setmntent("/proc/self/mounts", "re");
	char room[8192], *found = NULL;
	struct mntent mount;
	size_t longest = 0;

	while (mounts && getmntent_r(mounts, &mount, room, sizeof(room))) {
		size_t length = strlen(mount.mnt_dir);

		if (length <= longest || strncmp(path, mount.mnt_dir, length) != 0 || path[length] != '/')
			continue;
		longest = length;
		free(found);
		found = strdup(mount.mnt_dir);
	}
	return found;
}

bool names_helper_file_answers(struct names_helper *helper, const char *path)
{
	struct remote_names none = {.use = SYMBOLS_NONE};
	CLEANUP(free) char *mount_point = helper->silent.count ? find_mount_point(path) : NULL;
	struct bytes answer;

	if (mount_point &&
	    array_find(silent, helper->silent.items, helper->silent.count, !strcmp(mount_point, *silent)))
		return false;
	if (!start(helper))
		return !helper->silent.count;
	buffer_clear(&helper->request);
	begin_request(helper, REQUEST_FILE, &none);
	buffer_put_string(&helper->request, path);
	if (exchange(helper, &none, &answer) || helper->ended)
		return true;
	if (!mount_point)
		mount_point = find_mount_point(path);
	if (mount_point && vector_push(&helper->silent, mount_point))
		mount_point = NULL;
	return false;
}
