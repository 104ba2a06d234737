// SPDX-License-Identifier: LGPL-2.1-or-later
#include "support/space-child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/aio_abi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/marks.h"
#include "support/space-valid.h"
#include "support/temporary.h"

#define LINES_MAXIMUM 4096

struct request {
	long number;
	uint64_t arguments[6];
};

struct answer {
	int64_t result;
	uint64_t context;
};

static aio_context_t aio_context; /* the child's own copy counts */

static const long numbers[] = {
    [CALL_MMAP] = SYS_mmap,	    [CALL_MUNMAP] = SYS_munmap,
    [CALL_MREMAP] = SYS_mremap,	    [CALL_BRK] = SYS_brk,
    [CALL_MPROTECT] = SYS_mprotect, [CALL_SHMAT] = SYS_shmat,
    [CALL_SHMDT] = SYS_shmdt,	    [CALL_REMAP_FILE_PAGES] = SYS_remap_file_pages,
    [CALL_IO_SETUP] = SYS_io_setup, [CALL_IO_DESTROY] = SYS_io_destroy,
    [CALL_MADVISE] = SYS_madvise,   [CALL_MSEAL] = 462,
};

/* Nothing here may allocate, because the model would not see it. */
static void serve(int requests, int answers)
{
	struct request request;

	while (read(requests, &request, sizeof(request)) == sizeof(request)) {
		const uint64_t *arguments = request.arguments;
		struct answer answer;

		aio_context = 0;
		answer.result = syscall(request.number, arguments[0], arguments[1], arguments[2], arguments[3],
					arguments[4], arguments[5]);
		if (answer.result == -1)
			answer.result = -errno;
		answer.context = aio_context;
		if (write(answers, &answer, sizeof(answer)) != sizeof(answer))
			break;
	}
	_exit(0);
}

static bool read_line(FILE *maps, struct space_mmap2 *line)
{
	char text[4400], protection[5];
	uint64_t start, end, offset, inode;
	uint32_t major, minor;

	if (!fgets(text, sizeof(text), maps))
		return false;
	ck_assert_int_eq(sscanf(text, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &start, &end,
				protection, &offset, &major, &minor, &inode),
			 7);
	*line = (struct space_mmap2){
	    .start = start,
	    .end = end,
	    .attributes = {.protection = (protection[0] == 'r' ? PROT_READ : 0U) |
					 (protection[1] == 'w' ? PROT_WRITE : 0U) |
					 (protection[2] == 'x' ? PROT_EXEC : 0U),
			   .shared = protection[3] == 's',
			   .heap = strstr(text, " [heap]") != NULL,
			   .stack = strstr(text, " [stack]") != NULL,
			   .shm = strstr(text, " /SYSV") != NULL,
			   .ring = strstr(text, " /[aio]") != NULL,
			   .zero = protection[3] == 'p' && strstr(text, " /dev/zero\n") != NULL,
			   .device_major = major,
			   .device_minor = minor,
			   .inode = inode,
			   .file_offset = offset},
	};
	return true;
}

static size_t read_maps(const struct child *child, struct space_mmap2 *lines)
{
	char path[64];
	size_t count = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)child->pid);
	maps = fopen(path, "re");
	ck_assert_ptr_nonnull(maps);
	while (count < LINES_MAXIMUM && read_line(maps, &lines[count]))
		count++;
	fclose(maps);
	ck_assert_uint_lt(count, LINES_MAXIMUM);
	return count;
}

static void take_snapshot(struct child *child, enum space_snapshot_mode mode)
{
	static struct space_mmap2 lines[LINES_MAXIMUM];
	size_t count = read_maps(child, lines);

	child->now_ns += 1000;
	ck_assert_ptr_null(space_snapshot_begin(child->space, mode, ALLOCATION_BEFORE, child->now_ns));
	for (size_t i = 0; i < count; i++)
		ck_assert_ptr_null(space_snapshot_line(child->space, child->now_ns, lines[i].start, lines[i].end,
						       &lines[i].attributes));
	ck_assert_ptr_null(space_snapshot_end(child->space, child->now_ns));
}

static void open_files(struct child *child)
{
	char path[TEMPORARY_PATH_SIZE];

	temporary_name(path);
	child->files[0] = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ck_assert_int_ge(child->files[0], 0);
	ck_assert_int_eq(ftruncate(child->files[0], 64 * PAGE), 0);
	child->files[1] = open(path, O_RDONLY | O_CLOEXEC);
	unlink(path);
	child->files[2] = memfd_create("mmtrace-space", 0);
	ck_assert_int_eq(ftruncate(child->files[2], 64 * PAGE), 0);
	child->files[3] = socket(AF_PACKET, SOCK_RAW, 0);
	child->shared_memory[0] = shmget(IPC_PRIVATE, 5 * PAGE, IPC_CREAT | 0600);
	child->shared_memory[1] = shmget(IPC_PRIVATE, 3 * PAGE - 100, IPC_CREAT | 0600);
}

struct kernel_rules child_rules(void)
{
	struct utsname name;

	ck_assert_int_eq(uname(&name), 0);
	return kernel_rules_of(name.release);
}

void child_start(struct child *child)
{
	const struct kernel_rules rules = child_rules();
	const struct space_options options = {.page_bytes = PAGE, .rules = &rules};
	int requests[2], answers[2];

	memset(child, 0, sizeof(*child));
	child->now_ns = 1000;
	child->allocation = ALLOCATION_FIRST;
	open_files(child);
	ck_assert_int_eq(pipe2(requests, 0) | pipe2(answers, 0), 0);
	child->pid = fork();
	ck_assert_int_ge(child->pid, 0);
	if (!child->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(requests[1]);
		close(answers[0]);
		serve(requests[0], answers[1]);
	}
	close(requests[0]);
	close(answers[1]);
	child->requests = requests[1];
	child->answers = answers[0];
	ck_assert_ptr_null(space_create(&options, &child->space));
	child_syscall(child, SYS_getpid, 0, 0, 0, 0, 0, 0);
	take_snapshot(child, SPACE_SNAPSHOT_DEFINE);
	ck_assert_uint_eq(space_counts(child->space).mapped_bytes, 0);
	child->now_ns += 1000000000;
}

void child_stop(struct child *child)
{
	struct space_check check;

	take_snapshot(child, SPACE_SNAPSHOT_CHECK);
	check = space_check_result(child->space);
	ck_assert(check.done);
	ck_assert_uint_gt(check.mappings, 0);
	ck_assert_uint_eq(check.mismatch_bytes, 0);
	ck_assert_uint_eq(check.unverifiable_bytes, 0);
	close(child->requests);
	close(child->answers);
	waitpid(child->pid, NULL, 0);
	for (size_t i = 0; i < CHILD_FILES; i++)
		close(child->files[i]);
	shmctl(child->shared_memory[0], IPC_RMID, NULL);
	shmctl(child->shared_memory[1], IPC_RMID, NULL);
	space_destroy(child->space);
}

static struct answer ask(struct child *child, const struct request *request)
{
	struct answer answer;

	ck_assert_int_eq(write(child->requests, request, sizeof(*request)), sizeof(*request));
	ck_assert_int_eq(read(child->answers, &answer, sizeof(answer)), sizeof(answer));
	return answer;
}

int64_t child_syscall(struct child *child, long number, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		      uint64_t a5)
{
	const struct request request = {number, {a0, a1, a2, a3, a4, a5}};

	return ask(child, &request).result;
}

/* The records that the kernel would have written: new mappings, and what a failed mprotect changed nevertheless. */
static size_t make_mmap2(const struct child *child, const struct space_call *call, struct space_mmap2 *mmap2_records)
{
	bool failed = call->result < 0 && call->result > -4096;
	uint64_t start = (uint64_t)call->result, end = start + 1;
	size_t count = 0, total;

	if (call->kind == CALL_MPROTECT && failed) {
		start = call->arguments[0];
		end = start + call->arguments[1];
	} else if (failed || (call->kind != CALL_MMAP && call->kind != CALL_SHMAT)) {
		return 0;
	}
	total = read_maps(child, mmap2_records);
	for (size_t i = 0; i < total; i++) {
		if (mmap2_records[i].start >= end || mmap2_records[i].end <= start)
			continue;
		if (call->kind == CALL_MPROTECT && mmap2_records[i].attributes.protection != call->arguments[2])
			continue;
		mmap2_records[count++] = mmap2_records[i];
	}
	return count;
}

/* Whether the kernel has one mapping there. The model joins neighbours that the kernel keeps apart, for instance those
 * of two descriptors of a file. */
static bool is_one_mapping(const struct child *child, uint64_t start, uint64_t end)
{
	static struct space_mmap2 lines[LINES_MAXIMUM];
	size_t count = read_maps(child, lines);

	for (size_t i = 0; i < count; i++) {
		if (lines[i].start <= start && end <= lines[i].end)
			return true;
	}
	return false;
}

/* A failed move of several mappings has moved some of them, up to one that is sealed or beyond the limit: only a
 * snapshot shows which. `one`: the source was one mapping. */
static bool undecidable(const struct child *child, const struct space_call *call, bool one)
{
	const struct space_interval *source = space_find(child->space, call->arguments[0]);

	if (call->kind != CALL_MREMAP || !(call->arguments[3] & MREMAP_FIXED) ||
	    (call->result != -ENOMEM && call->result != -EPERM))
		return false;
	return call->result == -EPERM || !one || !source || call->arguments[2] > call->arguments[1] ||
	       source->end < call->arguments[0] + call->arguments[1];
}

int64_t child_call_as(struct child *child, long number, enum call kind, uint64_t a0, uint64_t a1, uint64_t a2,
		      uint64_t a3, uint64_t a4, uint64_t a5)
{
	static struct space_mmap2 mmap2_records[LINES_MAXIMUM];
	struct space_call call = {.kind = kind, .arguments = {a0, a1, a2, a3, a4, a5}, .thread = 1};
	bool one = kind != CALL_MREMAP || is_one_mapping(child, a0, a0 + a1);

	call.result = child_syscall(child, number, a0, a1, a2, a3, a4, a5);
	call.time_ns = child->now_ns += 1000;
	call.allocation = child->allocation++;
	call.commit = call.allocation;
	call.mmap2_records = mmap2_records;
	call.mmap2_count = make_mmap2(child, &call, mmap2_records);
	snprintf(child->last, sizeof(child->last),
		 "kind %d (%#" PRIx64 ", %#" PRIx64 ", %#" PRIx64 ", %#" PRIx64 ", %#" PRIx64 ", %#" PRIx64
		 ") = %#" PRIx64,
		 (int)kind, a0, a1, a2, a3, a4, a5, (uint64_t)call.result);
	ck_assert_ptr_null(space_apply(child->space, &call));
	if (undecidable(child, &call, one)) {
		take_snapshot(child, SPACE_SNAPSHOT_CHECK);
		space_finish(child->space);
	}
	return call.result;
}

int64_t child_call(struct child *child, enum call kind, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		   uint64_t a5)
{
	return child_call_as(child, numbers[kind], kind, a0, a1, a2, a3, a4, a5);
}

void child_mmap2(struct child *child, uint64_t address)
{
	static struct space_mmap2 lines[LINES_MAXIMUM];
	size_t count = read_maps(child, lines);

	for (size_t i = 0; i < count; i++) {
		if (lines[i].start <= address && address < lines[i].end)
			ck_assert_ptr_null(space_mmap2(child->space, &lines[i]));
	}
}

uint64_t child_file_offset(struct child *child, uint64_t address)
{
	static struct space_mmap2 lines[LINES_MAXIMUM];
	size_t count = read_maps(child, lines);

	for (size_t i = 0; i < count; i++) {
		if (lines[i].start <= address && address < lines[i].end)
			return lines[i].attributes.file_offset + (address - lines[i].start);
	}
	ck_abort_msg("nothing at %#" PRIx64, address);
	return 0;
}

uint64_t child_io_setup(struct child *child, uint64_t events)
{
	static struct space_mmap2 lines[LINES_MAXIMUM];
	const struct request request = {SYS_io_setup, {events, (uint64_t)(uintptr_t)&aio_context}};
	struct answer answer = ask(child, &request);
	size_t count = read_maps(child, lines);

	for (size_t i = 0; answer.result == 0 && i < count; i++) {
		bool made;

		if (lines[i].start != answer.context)
			continue;
		ck_assert_ptr_null(space_mmap2_ring(child->space, &lines[i], 1, child->now_ns, &made));
		ck_assert(made);
	}
	snprintf(child->last, sizeof(child->last), "io_setup = %" PRId64, answer.result);
	return answer.result == 0 ? answer.context : 0;
}

void child_limit(struct child *child, bool limit, uint64_t bytes)
{
	static struct space_mmap2 lines[LINES_MAXIMUM];
	struct rlimit value = {RLIM_INFINITY, RLIM_INFINITY};
	size_t count = read_maps(child, lines);

	if (limit) {
		value.rlim_cur = bytes;
		for (size_t i = 0; i < count; i++)
			value.rlim_cur += lines[i].end - lines[i].start;
	}
	ck_assert_int_eq(prlimit(child->pid, RLIMIT_AS, &value, NULL), 0);
	snprintf(child->last, sizeof(child->last), "limit");
}

static uint64_t model_bytes(const struct space *space)
{
	struct space_counts counts = space_counts(space);

	return counts.mapped_bytes + counts.kernel_bytes + counts.before_bytes;
}

/* The model's state of the line's first byte, in the kernel's terms. */
static bool equal_page(const struct space_interval *interval, uint64_t address, const struct space_mmap2 *line)
{
	const struct space_attributes *model = &interval->attributes, *kernel = &line->attributes;

	return model->protection == kernel->protection && model->shared == kernel->shared &&
	       model->device_major == kernel->device_major && model->device_minor == kernel->device_minor &&
	       model->inode == kernel->inode && !model->unknown &&
	       (!kernel->inode || kernel->zero ||
		model->file_offset + (address - interval->start) == kernel->file_offset + (address - line->start));
}

void child_compare(struct child *child, unsigned int step)
{
	static struct space_mmap2 lines[LINES_MAXIMUM];
	size_t count = read_maps(child, lines);
	const char *why = "";
	uint64_t total = 0;

	ck_assert_msg(space_valid(child->space, &why), "step %u: %s after %s", step, why, child->last);
	for (size_t i = 0; i < count; i++) {
		const struct space_interval *interval;

		total += lines[i].end - lines[i].start;
		for (uint64_t position = lines[i].start; position < lines[i].end; position = interval->end) {
			interval = space_find(child->space, position);
			ck_assert_msg(interval, "step %u: %#" PRIx64 " is missing after %s", step, position,
				      child->last);
			ck_assert_msg(equal_page(interval, position, &lines[i]),
				      "step %u: %#" PRIx64 " differs (prot %u) after %s", step, position,
				      interval->attributes.protection, child->last);
		}
	}
	ck_assert_msg(total == model_bytes(child->space),
		      "step %u: %" PRIu64 " bytes, the kernel has %" PRIu64 " after %s", step,
		      model_bytes(child->space), total, child->last);
}
