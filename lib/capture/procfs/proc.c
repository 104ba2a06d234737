// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/procfs/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "base/bytes.h"
#include "capture/procfs/clock.h"
#include "capture/procfs/blocking-calls.h"
#include "capture/procfs/permissions.h"

int text_file_read(int directory, const char *path, char **text_ret)
{
	CLEANUP(close) int fd = openat(directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	CLEANUP(free) char *text = NULL;
	size_t size = 0, capacity = 0;
	ssize_t count = 1;

	if (fd < 0)
		return -errno;
	while (count) {
		if (size + 1 >= capacity) {
			char *larger;

			if (capacity > LIMIT_TEXT_FILE_BYTES)
				return -EFBIG;
			capacity = capacity ? 2 * capacity : 4096;
			larger = realloc(text, capacity);
			if (!larger)
				return -ENOMEM;
			text = larger;
		}
		count = read(fd, text + size, capacity - size - 1);
		if (count < 0 && errno != EINTR)
			return -errno;
		size += count > 0 ? (size_t)count : 0;
	}
	text[size] = '\0';
	*text_ret = TAKE(text);
	return 0;
}

char *proc_text(pid_t pid, const char *name)
{
	char path[64], *text;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return text_file_read(-1, path, &text) < 0 ? NULL : text;
}

char *proc_group_find(char *text, const char *controller)
{
	char *rest = text, *line, *name, *path, *next;

	while ((line = strsep(&rest, "\n"))) {
		name = strchr(line, ':');
		path = name ? strchr(name + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		for (name++; name; name = next) {
			next = strchr(name, ',');
			if (next)
				*next++ = '\0';
			if (!strcmp(name, controller))
				return path;
		}
	}
	return NULL;
}

char *proc_group_path(pid_t pid, const char *controller)
{
	CLEANUP(free) char *text = proc_text(pid, "cgroup");
	const char *path = text ? proc_group_find(text, controller) : NULL;

	return path ? strdup(path) : NULL;
}

int64_t text_file_number(int directory, const char *path, int64_t fallback)
{
	CLEANUP(free) char *text = NULL;
	int64_t value;

	if (text_file_read(directory, path, &text) < 0 || sscanf(text, "%" SCNd64, &value) != 1)
		return fallback;
	return value;
}

bool text_file_field(const char *text, const char *name, char *value, size_t value_size)
{
	size_t name_length = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, name_length) && (line[name_length] == ':' || line[name_length] == ' ')) {
			line += name_length + 1;
			line += strspn(line, " \t");
			snprintf(value, value_size, "%.*s", (int)strcspn(line, "\n"), line);
			return true;
		}
	}
	return false;
}

uint64_t text_file_bytes(const char *text, const char *name)
{
	char value[64];

	return text_file_field(text, name, value, sizeof(value)) ? strtoull(value, NULL, 10) * 1024 : 0;
}

int regular_file_open(const char *path)
{
	CLEANUP(close) int found = open(path, O_PATH | O_CLOEXEC);
	struct stat status;

	if (found < 0 || fstat(found, &status) < 0)
		return -1;
	errno = EINVAL;
	return S_ISREG(status.st_mode) ? target_file_reopen(found) : -1;
}

bool regular_file_is_mapped(const struct stat *status, uint32_t device_major, uint32_t device_minor, uint64_t inode)
{
	bool same_device = major(status->st_dev) == device_major && minor(status->st_dev) == device_minor;

	return status->st_ino == inode && (same_device || device_major == 0 || major(status->st_dev) == 0);
}

/* PF_IO_WORKER and PF_USER_WORKER in the flags of /proc/PID/stat: these threads are always inside the kernel */
#define WORKER_FLAGS 0x00004010u
#define EXITING_FLAG 0x00000004u /* PF_EXITING: no event can be opened any more */
#define KERNEL_PARENT 2		 /* the parent of all other kernel threads */
#define STAT_BYTES 1024
#define STATUS_BYTES 128
#define DIRECTORY_BYTES (1u << 20) /* larger than the list of as many threads as there can be file descriptors */
#define DOT_ENTRIES 2

/* Inode number of the initial namespace (include/linux/proc_ns.h of the kernel). */
#define FIRST_PID_NAMESPACE 0xeffffffcu

bool proc_has_machine_pids(void)
{
	struct stat status;

	return stat("/proc/self/ns/pid", &status) < 0 || status.st_ino == FIRST_PID_NAMESPACE;
}

bool proc_read_thread(pid_t pid, pid_t tid, struct proc_thread *thread_ret)
{
	char name[32], state[STATUS_BYTES], parent[STATUS_BYTES], value[STATUS_BYTES];
	CLEANUP(free) char *text = NULL;
	bool has_memory;

	snprintf(name, sizeof(name), "task/%d/status", tid);
	text = proc_text(pid, name);
	if (!text || !text_file_field(text, "State", state, sizeof(state)) ||
	    !text_file_field(text, "PPid", parent, sizeof(parent)))
		return false;
	has_memory = text_file_field(text, "VmSize", value, sizeof(value));
	*thread_ret = (struct proc_thread){.state = state[0], .parent = (pid_t)strtol(parent, NULL, 10)};
	/* Linux before 6.10 has no such line. */
	thread_ret->in_kernel = text_file_field(text, "Kthread", value, sizeof(value))
				    ? value[0] == '1'
				    : !has_memory && !strchr("ZX", state[0]) &&
					  (thread_ret->parent == KERNEL_PARENT || tid == KERNEL_PARENT) &&
					  proc_has_machine_pids();
	thread_ret->exiting = !has_memory && !thread_ret->in_kernel;
	return true;
}

/* Return a text that the caller frees, with errno ETIMEDOUT if NULL because the process does not answer. */
static char *read_thread_text(struct blocking_calls *calls, pid_t pid, pid_t tid, const char *file)
{
	CLEANUP(free) char *text = malloc(STAT_BYTES + 1);
	char name[32];
	size_t size;

	snprintf(name, sizeof(name), "task/%d/%s", tid, file);
	if (!calls)
		return proc_text(pid, name);
	return text && process_text_read(calls, pid, name, STAT_BYTES, text, &size) ? TAKE(text) : NULL;
}

static bool read_stat(struct blocking_calls *calls, pid_t pid, pid_t tid, uint32_t *flags_ret, uint64_t *ticks_ret)
{
	CLEANUP(free) char *text = read_thread_text(calls, pid, tid, "stat");
	/* The command name may contain blanks and parentheses, so the other fields begin after the last parenthesis. */
	const char *position = text ? strrchr(text, ')') : NULL;

	return position &&
	       sscanf(position + 1,
		      " %*c %*d %*d %*d %*d %*d %" SCNu32 " %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
		      flags_ret, ticks_ret) == 2;
}

bool proc_read_start(struct blocking_calls *calls, pid_t pid, pid_t tid, uint64_t *ticks_ret, bool *exiting_ret)
{
	uint32_t flags;

	/* Threads are attached to as fast as they are created: the helper is only asked when the kernel could wait. */
	if (!read_stat(proc_is_loading(pid) ? calls : NULL, pid, tid, &flags, ticks_ret))
		return false;
	if (exiting_ret)
		*exiting_ret = flags & EXITING_FLAG;
	return true;
}

static bool is_zombie(pid_t tid)
{
	struct proc_thread thread;

	return proc_read_thread(tid, tid, &thread) && (thread.state == 'Z' || thread.state == 'X');
}

#define UNKNOWN_CALL LONG_MIN

/* Return the number of the system call that the thread is in, -1 for none, or UNKNOWN_CALL, as for a running thread.
 */
static long read_call(struct blocking_calls *calls, pid_t pid, pid_t tid)
{
	CLEANUP(free) char *text = read_thread_text(calls, pid, tid, "syscall"); /* "NUMBER 0x..." or "running" */
	char *end = text;
	long call = text ? strtol(text, &end, 10) : 0;

	return end != text ? call : UNKNOWN_CALL;
}

static bool is_one_of(long call, const long *calls, size_t count)
{
	return array_find(item, calls, count, *item == call);
}

bool proc_waits_for_file(pid_t tid)
{
	static const long calls[] = {SYS_openat,   SYS_openat2,	   SYS_newfstatat, SYS_faccessat, SYS_faccessat2,
				     SYS_unlinkat, SYS_getdents64, SYS_statx,	   SYS_fstat,	  SYS_close};

	return is_one_of(read_call(NULL, tid, tid), calls, sizeof(calls) / sizeof(calls[0]));
}

bool proc_may_be_in_clone(struct blocking_calls *calls, pid_t pid, pid_t tid)
{
	static const long clones[] = {
	    UNKNOWN_CALL,
#ifdef SYS_fork
	    SYS_fork,
#endif
#ifdef SYS_vfork
	    SYS_vfork,
#endif
	    SYS_clone,	  SYS_clone3,
	};

	return is_one_of(read_call(calls, pid, tid), clones, sizeof(clones) / sizeof(clones[0]));
}

bool proc_may_be_in_memory_call(struct blocking_calls *calls, pid_t pid, pid_t tid)
{
	static const long memory_calls[] = {
	    UNKNOWN_CALL,      SYS_mmap,  SYS_munmap, SYS_mremap,	    SYS_brk,	  SYS_mprotect,
	    SYS_pkey_mprotect, SYS_shmat, SYS_shmdt,  SYS_remap_file_pages, SYS_io_setup, SYS_io_destroy,
	};
	struct proc_thread thread;
	uint64_t start_ticks;
	uint32_t flags;

	if (!proc_read_thread(pid, tid, &thread) || thread.exiting || !strchr("RD", thread.state) ||
	    (read_stat(calls, pid, tid, &flags, &start_ticks) && flags & WORKER_FLAGS))
		return false;
	return thread.state == 'R' ||
	       is_one_of(read_call(calls, pid, tid), memory_calls, sizeof(memory_calls) / sizeof(memory_calls[0]));
}

bool proc_is_kernel_thread(pid_t pid)
{
	struct proc_thread thread;

	return proc_read_thread(pid, pid, &thread) && thread.in_kernel;
}

pid_t proc_parent_of(pid_t pid)
{
	struct proc_thread thread;

	return proc_read_thread(pid, pid, &thread) ? thread.parent : 0;
}

bool proc_list_processes(proc_pids *pids)
{
	CLEANUP(closedir) DIR *directory = opendir("/proc");
	const struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		if (entry->d_name[0] > '0' && entry->d_name[0] <= '9' &&
		    !vector_push(pids, (pid_t)strtol(entry->d_name, NULL, 10)))
			return false;
	}
	return directory;
}

static bool read_status_field(pid_t pid, const char *name, char value[STATUS_BYTES])
{
	CLEANUP(free) char *text = proc_text(pid, "status");

	return text && text_file_field(text, name, value, STATUS_BYTES);
}

uint64_t proc_own_peak_bytes(void)
{
	CLEANUP(free) char *text = NULL;

	return text_file_read(-1, "/proc/self/status", &text) < 0 ? 0 : text_file_bytes(text, "VmHWM");
}

static struct mmt_error *error_no_process(pid_t pid)
{
	if (kill(pid, 0) == 0 || errno != ESRCH)
		return error_create(MMT_ERROR_SYSTEM,
				    "cannot read /proc/%d: /proc is mounted with hidepid (run as root), or too many "
				    "files are open (raise `ulimit -n`)",
				    pid);
	return error_create(MMT_ERROR_NO_PROCESS, "no process %d", pid);
}

static struct mmt_error *refuse_zombie(pid_t pid)
{
	return error_create(MMT_ERROR_NO_PROCESS, "process %d has ended already (zombie)", pid);
}

bool proc_is_32_bit_program(int fd)
{
	unsigned char identification[EI_NIDENT];

	return pread(fd, identification, sizeof(identification), 0) == sizeof(identification) &&
	       !memcmp(identification, ELFMAG, SELFMAG) && identification[EI_CLASS] == ELFCLASS32;
}

bool elf_program_header(const void *data, size_t size, size_t number, Elf64_Phdr *header_ret)
{
	struct bytes bytes = bytes_over(data, size);
	const void *header;
	Elf64_Ehdr file;

	if (size < sizeof(file))
		return false;
	memcpy(&file, data, sizeof(file));
	if (memcmp(file.e_ident, ELFMAG, SELFMAG) || file.e_ident[EI_CLASS] != ELFCLASS64 ||
	    file.e_ident[EI_DATA] != ELFDATA2LSB || number >= file.e_phnum || file.e_phnum > LIMIT_PROGRAM_HEADERS ||
	    file.e_phentsize < sizeof(*header_ret))
		return false;
	bytes_skip(&bytes, file.e_phoff);
	bytes_skip(&bytes, number * file.e_phentsize);
	header = bytes_take(&bytes, sizeof(*header_ret));
	if (header)
		memcpy(header_ret, header, sizeof(*header_ret));
	return header;
}

/* Open /proc/PID/exe, whose file system may not answer. Return whether it is a 32-bit program; errno is set if it
 * cannot be opened, or if there is no answer. */
static void check_class(struct blocking_call *call)
{
	CLEANUP(close) int fd = open(call->argument, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool *is_32_bit = call->result;
	int failure = fd < 0 ? errno : 0;

	*is_32_bit = fd >= 0 && proc_is_32_bit_program(fd);
	errno = failure;
}

bool proc_runs_32_bit_program(struct blocking_calls *calls, pid_t pid)
{
	bool is_32_bit = false;
	char path[64];
	struct blocking_call call = BLOCKING_CALL(place_of_paths(calls, pid), check_class, &path, -1, &is_32_bit);

	snprintf(path, sizeof(path), "/proc/%d/exe", proc_living_thread(pid));
	return blocking_call(calls, &call) && is_32_bit;
}

struct mmt_error *proc_check_target(struct blocking_calls *calls, pid_t pid)
{
	struct proc_thread thread;
	char value[STATUS_BYTES];
	bool is_32_bit;
	long process;

	if (pid <= 0)
		return error_create(MMT_ERROR_INVALID, "%d is not a PID", pid);
	if (pid == getpid())
		return error_create(MMT_ERROR_INVALID, "cannot record process %d: it is the recorder itself", pid);
	if (!proc_read_thread(pid, pid, &thread) || !read_status_field(pid, "Tgid", value))
		return error_no_process(pid);
	process = strtol(value, NULL, 10);
	if (process != pid)
		return error_create(MMT_ERROR_INVALID,
				    "%d is a thread of process %ld: use -p %ld, and `mmtrace report --focus thread=%d`",
				    pid, process, process, pid);
	if (thread.in_kernel)
		return error_create(MMT_ERROR_UNSUPPORTED, "%d is a kernel thread: it has no memory of its own", pid);
	if (proc_has_ended(pid))
		return refuse_zombie(pid);
	is_32_bit = proc_runs_32_bit_program(calls, pid);
	if (errno == EACCES || errno == EPERM)
		return error_refused(permission_explain(PERMISSION_PROCESS),
				     "cannot read the maps of process %d: permission denied", pid);
	if (errno && errno != ETIMEDOUT)
		return proc_has_ended(pid) && is_zombie(pid) ? refuse_zombie(pid) : error_no_process(pid);
	if (is_32_bit)
		return error_create(MMT_ERROR_UNSUPPORTED,
				    "process %d is a 32-bit program: its system calls cannot be recorded on a 64-bit "
				    "kernel",
				    pid);
	return NULL;
}

bool proc_name(pid_t pid, pid_t tid, char name[PROC_NAME_BYTES])
{
	CLEANUP(free) char *text = NULL;
	char file[32];

	snprintf(file, sizeof(file), "task/%d/comm", tid);
	text = proc_text(pid, file);
	if (text)
		snprintf(name, PROC_NAME_BYTES, "%.*s", (int)strlen(text) - 1, text); /* it may contain line breaks */
	return text;
}

#define STORED_NAME_BYTES 15 /* length of a command name in the kernel */

bool proc_name_matches(const char *command, const char *name)
{
	if (!strcmp(name, command) || !fnmatch(name, command, 0))
		return true;
	return strlen(name) > STORED_NAME_BYTES && strlen(command) == STORED_NAME_BYTES &&
	       !strncmp(name, command, STORED_NAME_BYTES);
}

bool proc_list_threads(pid_t pid, proc_pids *threads, bool *complete_ret)
{
	CLEANUP(free) char *entries = malloc(DIRECTORY_BYTES);
	CLEANUP(close) int fd = -1;
	size_t count = threads->count;
	bool ok, complete = false;
	ssize_t size;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ok = fd >= 0 && entries;
	/* With few threads, one call returns all of them. */
	for (bool first = true; ok && (size = getdents64(fd, entries, DIRECTORY_BYTES)) > 0; first = false) {
		for (ssize_t offset = 0; ok && offset < size;) {
			const struct dirent64 *entry = (const void *)(entries + offset);

			ok = entry->d_name[0] == '.' || vector_push(threads, (pid_t)strtol(entry->d_name, NULL, 10));
			offset += entry->d_reclen;
		}
		/* To continue a listing, the kernel looks up the thread at which it stopped. If that thread has exited,
		 * the kernel ends the list, or continues at a position counted from the start, where other threads may
		 * be by now. So a listing is complete only if one getdents() call returned all threads, the last of
		 * them is still alive, and no exited thread was skipped. */
		if (ok && first && threads->count > count)
			complete =
			    lseek(fd, 0, SEEK_CUR) == (off_t)(DOT_ENTRIES + threads->count - count) &&
			    (syscall(SYS_tgkill, pid, threads->items[threads->count - 1], 0) == 0 || errno != ESRCH);
	}
	/* A process that is gone has no list that could be incomplete. */
	if (complete_ret && fd >= 0 && entries)
		*complete_ret = complete;
	return ok;
}

/* Return a thread that is alive; 0: there is none, -1: unknown. */
static pid_t find_living_thread(pid_t pid)
{
	CLEANUP(vector) proc_pids threads = {0};
	const pid_t *living;

	if (!proc_list_threads(pid, &threads, NULL))
		return -1;
	living = array_find(thread, threads.items, threads.count, !is_zombie(*thread));
	return living ? *living : 0;
}

/* The kernel sets the end of the code when it has mapped the program and its interpreter. */
bool proc_is_loading(pid_t pid)
{
	CLEANUP(free) char *text = proc_text(pid, "statm"); /* pages: size, resident, shared, code ... */
	uint64_t size, code;

	return text && sscanf(text, "%" SCNu64 " %*u %*u %" SCNu64, &size, &code) == 2 && size && !code;
}

bool proc_has_ended(pid_t pid)
{
	return (kill(pid, 0) < 0 && errno == ESRCH) || (is_zombie(pid) && !find_living_thread(pid));
}

#define PIDFD_EXIT (1ULL << 3) /* PIDFD_INFO_EXIT: the status, once the parent has waited */

int proc_end_status(pid_t pid, int pidfd)
{
	struct {
		uint64_t mask, control_group;
		uint32_t ids[11]; /* PID to fsgid */
		int32_t status;
	} info = {.mask = PIDFD_EXIT};
	CLEANUP(free) char *text = is_zombie(pid) ? proc_text(pid, "stat") : NULL;
	const char *last = text ? strrchr(text, ' ') : NULL;

	if (ioctl(pidfd, _IOWR(0xff, 11, info), &info) == 0 && (info.mask & PIDFD_EXIT))
		return info.status;
	/* As long as its parent has not waited for it, no other process has had the PID. */
	return last && !syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) ? (int)strtol(last, NULL, 10) : -1;
}

bool proc_sleeps(pid_t pid)
{
	CLEANUP(vector) proc_pids threads = {0};
	struct proc_thread state;

	if (!proc_list_threads(pid, &threads, NULL))
		return false;
	return !array_find(tid, threads.items, threads.count,
			   proc_read_thread(pid, *tid, &state) && state.state == 'R');
}

bool proc_is_ending(pid_t pid)
{
	CLEANUP(vector) proc_pids threads = {0};
	struct proc_thread state;

	if (!proc_list_threads(pid, &threads, NULL))
		return kill(pid, 0) < 0 && errno == ESRCH;
	return !array_find(tid, threads.items, threads.count, proc_read_thread(pid, *tid, &state) && !state.exiting);
}

pid_t proc_living_thread(pid_t pid)
{
	pid_t living = is_zombie(pid) ? find_living_thread(pid) : 0;

	return living > 0 ? living : pid;
}

pid_t proc_namespace_pid(pid_t pid)
{
	char value[STATUS_BYTES];
	const char *last;

	if (!read_status_field(pid, "NStgid", value))
		return pid;
	last = strrchr(value, '\t');
	return (pid_t)strtol(last ? last : value, NULL, 10);
}

bool proc_effective_id(pid_t pid, const char *name, unsigned *id_ret)
{
	char value[STATUS_BYTES];

	return read_status_field(pid, name, value) && sscanf(value, "%*u %u", id_ret) == 1;
}

bool proc_catches_signal(pid_t pid, int number)
{
	char value[STATUS_BYTES];

	return read_status_field(pid, "SigCgt", value) && (strtoull(value, NULL, 16) >> (number - 1) & 1);
}

char *proc_environment(pid_t pid, const char *name)
{
	CLEANUP(free) char *text = malloc(LIMIT_ENVIRONMENT_BYTES + 1);
	size_t length = strlen(name), size = 0;

	if (!text)
		return NULL;
	(void)process_text_read(NULL, pid, "environ", LIMIT_ENVIRONMENT_BYTES, text, &size);
	for (const char *entry = text; entry < text + size; entry += strlen(entry) + 1) {
		bool cut = entry + strlen(entry) == text + size;

		if (!strncmp(entry, name, length) && entry[length] == '=')
			return cut ? NULL : strdup(entry + length + 1);
	}
	return NULL;
}

uint64_t proc_start_boot_ns(struct blocking_calls *calls, pid_t pid)
{
	uint64_t ticks;

	return proc_read_start(calls, pid, pid, &ticks, NULL) ? ticks * (1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK))
							      : 0;
}

uint64_t proc_start_realtime_ns(struct blocking_calls *calls, pid_t pid)
{
	uint64_t started_ns = proc_start_boot_ns(calls, pid), boot_ns, real_ns;

	if (!started_ns)
		return 0;
	boot_ns = clock_read_ns(CLOCK_BOOTTIME);
	real_ns = clock_read_ns(CLOCK_REALTIME);
	return boot_ns > started_ns ? real_ns - (boot_ns - started_ns) : real_ns;
}

#define WORD_BYTES sizeof(uint64_t)
#define ENTRY_BYTES (2 * WORD_BYTES) /* type and value */
#define ENTRIES_MAX 128
#define GAP_BYTES_MAX 256 /* between the vector and the strings: alignment, or words that the loader removed */

static uint64_t read_word(const uint8_t *stack, size_t offset)
{
	uint64_t word;

	memcpy(&word, stack + offset, sizeof(word));
	return word;
}

/* Find the end of the vector with entries from `offset` on, and the address of its lowest string. False: the vector is
 * truncated, or there is none. */
static bool find_end(const uint8_t *stack, size_t size, size_t offset, size_t *end_ret, uint64_t *string_ret)
{
	bool found = false;

	for (unsigned i = 0; i < ENTRIES_MAX && size - offset >= ENTRY_BYTES; i++, offset += ENTRY_BYTES) {
		uint64_t type = read_word(stack, offset);

		if (type == AT_RANDOM) {
			*string_ret = read_word(stack, offset + WORD_BYTES);
			found = true;
		}
		if (type == AT_NULL) {
			*end_ret = offset + ENTRY_BYTES;
			return found;
		}
	}
	return false;
}

size_t program_strings_find(const uint8_t *stack, size_t size, uint64_t address)
{
	size_t end;
	uint64_t string;

	for (size_t offset = -address % WORD_BYTES; offset + 3 * ENTRY_BYTES <= size; offset += WORD_BYTES) {
		/* Three entries that the kernel writes in this order. */
		if (read_word(stack, offset) != AT_PHDR || read_word(stack, offset + ENTRY_BYTES) != AT_PHENT ||
		    read_word(stack, offset + 2 * ENTRY_BYTES) != AT_PHNUM ||
		    !find_end(stack, size, offset, &end, &string))
			continue;
		/* In a copy of the vector made by the program, the strings are far away. */
		if (string - (address + end) < GAP_BYTES_MAX)
			return string - address < size ? (size_t)(string - address) : size;
	}
	return size;
}

/* Take a number and the character behind it. */
static bool take_number(const char **position, int base, char behind, uint64_t *value_ret)
{
	char *end;

	errno = 0;
	*value_ret = strtoull(*position, &end, base);
	if (end == *position || errno || *end != behind)
		return false;
	*position = end + 1;
	return true;
}

bool procmaps_parse(const char *line, size_t length, struct procmaps_line *line_ret)
{
	const char *position = line, *end = line + length, *permissions;
	uint64_t major, minor;
	size_t path_length = 0;

	if (!take_number(&position, 16, '-', &line_ret->start) || !take_number(&position, 16, ' ', &line_ret->end) ||
	    end - position < 5)
		return false;
	permissions = position;
	position += 5;
	if (!take_number(&position, 16, ' ', &line_ret->file_offset) || !take_number(&position, 16, ':', &major) ||
	    !take_number(&position, 16, ' ', &minor) || !take_number(&position, 10, ' ', &line_ret->inode) ||
	    position > end || line_ret->start >= line_ret->end || major > UINT32_MAX || minor > UINT32_MAX)
		return false;
	line_ret->protection = (permissions[0] == 'r' ? PROT_READ : 0) | (permissions[1] == 'w' ? PROT_WRITE : 0) |
			       (permissions[2] == 'x' ? PROT_EXEC : 0);
	line_ret->shared = permissions[3] == 's';
	line_ret->device_major = (uint32_t)major;
	line_ret->device_minor = (uint32_t)minor;
	while (position < end && *position == ' ')
		position++;
	/* The kernel escapes a newline in a path as \012 and escapes nothing else. */
	while (position < end && path_length < LIMIT_PATH_BYTES - 1) {
		if (end - position >= 4 && !memcmp(position, "\\012", 4)) {
			line_ret->path[path_length++] = '\n';
			position += 4;
		} else {
			line_ret->path[path_length++] = *position++;
		}
	}
	line_ret->path[path_length] = '\0';
	if (path_length == 0)
		snprintf(line_ret->path, LIMIT_PATH_BYTES, "//anon");
	return true;
}

/* longer than any line; the kernel returns up to a page of lines per read */
#define TEXT_BYTES (64u << 10)

bool mapping_scan_begin(struct mapping_scan *scan, struct blocking_calls *calls, pid_t pid, int maps)
{
	*scan = (struct mapping_scan){.calls = calls, .pid = pid, .text = malloc(TEXT_BYTES)};
	(void)lseek(maps, 0, SEEK_SET);
	return scan->text;
}

void mapping_scan_end(struct mapping_scan *scan)
{
	free(scan->text);
	*scan = (struct mapping_scan){0};
}

bool mapping_scan_line(struct mapping_scan *scan, int file, const char **line_ret, size_t *length_ret)
{
	char *text = scan->text + scan->position, *newline;

	scan->line_ns = scan->read_ns;
	while (!(newline = memchr(text, '\n', scan->size - scan->position))) {
		uint64_t asked_ns = clock_now_ns();
		bool begun = scan->size > scan->position;
		ssize_t count;

		scan->size -= scan->position;
		memmove(scan->text, text, scan->size);
		scan->position = 0;
		text = scan->text;
		count = process_file_read(scan->calls, scan->pid, file, scan->text + scan->size,
					  TEXT_BYTES - scan->size, -1);
		/* A busy machine may run the helper milliseconds after it was asked: what happened in between is not
		 * to be applied to maps that show it. */
		scan->read_ns = count >= 0 && scan->calls ? scan->calls->began_ns : asked_ns;
		scan->line_ns = begun ? scan->line_ns : scan->read_ns;
		scan->complete = count == 0;
		scan->stuck = count < 0 && errno == ETIMEDOUT;
		if (count <= 0)
			return false;
		scan->size += (size_t)count;
	}
	scan->position += (size_t)(newline - text) + 1;
	*newline = '\0';
	*line_ret = text;
	*length_ret = (size_t)(newline - text);
	return true;
}

bool mapping_scan_next(struct mapping_scan *scan, int maps, struct procmaps_line *line_ret)
{
	const char *line;
	size_t length;

	return mapping_scan_line(scan, maps, &line, &length) && procmaps_parse(line, length, line_ret);
}

uint64_t mapping_find_break(struct blocking_calls *calls, pid_t pid)
{
	CLEANUP(close) int maps = process_file_open(calls, pid, "maps");
	struct mapping_scan scan;
	struct procmaps_line line;
	uint64_t end = 0;

	if (maps < 0 || !mapping_scan_begin(&scan, calls, pid, maps))
		return 0;
	for (size_t i = 0; i < LIMIT_BREAK_LINES && mapping_scan_next(&scan, maps, &line); i++) {
		if (!strcmp(line.path, "[heap]"))
			end = line.end;
		else if (end)
			break;
	}
	mapping_scan_end(&scan);
	return end;
}
