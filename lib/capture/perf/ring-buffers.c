// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/perf/ring-buffers.h"

#include <errno.h>
#include <sys/syscall.h>

#include "base/limits.h"
#include "capture/procfs/permissions.h"

#define SYSCALL_BYTES_MIN (16u << 10)
#define FAULT_PART 8 /* of the default memory of rings, unless every fault is recorded */
#define FAULT_BYTES_MIN (64u << 10)

static uint64_t floor_power_of_two(uint64_t value)
{
	return value ? 1ULL << (63 - __builtin_clzll(value)) : 0;
}

/* Return the smallest ring that can hold a dump. In the worst case the kernel writes a record only if there is room
 * for twice its size. */
static uint64_t least_dump_ring(uint32_t dump_bytes, size_t page_bytes)
{
	uint64_t least = 2 * floor_power_of_two(dump_bytes + page_bytes - 1);

	return least < page_bytes ? page_bytes : least;
}

void rings_divide(uint64_t bytes_per_cpu, const struct ring_needs *needs, enum large_dump_room large,
		  uint64_t sizes_ret[RING_KINDS])
{
	uint64_t syscall_min = SYSCALL_BYTES_MIN > needs->page_bytes ? SYSCALL_BYTES_MIN : needs->page_bytes;
	uint64_t syscall_event = floor_power_of_two(bytes_per_cpu);
	uint64_t dump = 0, dump_min = least_dump_ring(needs->dump_bytes, needs->page_bytes);
	uint64_t large_dump = 0, large_dump_min = least_dump_ring(needs->large_dump_bytes, needs->page_bytes);

	if (needs->dump_bytes) {
		dump = floor_power_of_two(bytes_per_cpu - syscall_event);
		if (!dump)
			dump = syscall_event /= 2;
		dump = dump < dump_min ? dump_min : dump;
	}
	syscall_event = syscall_event < syscall_min ? syscall_min : syscall_event;
	if (large != LARGE_DUMPS_LEFT_OUT) {
		large_dump = syscall_event / 2 < large_dump_min ? large_dump_min : syscall_event / 2;
		if (syscall_event / 2 > RINGS_LARGE_DUMP_BYTES)
			large_dump = RINGS_LARGE_DUMP_BYTES;
	}
	if (large == LARGE_DUMPS_TAKE_ROOM && dump / 2 >= dump_min)
		dump /= 2;
	sizes_ret[RING_SYSCALL] = syscall_event;
	sizes_ret[RING_DUMP] = dump;
	sizes_ret[RING_LARGE_DUMP] = large_dump;
}

/* Keep the first ones. */
static void close_rings(struct rings *rings, size_t kept)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = kept; i < rings->items.count; i++) {
		struct ring *ring = &rings->items.items[i];

		if (ring->mapping)
			munmap(ring->mapping, page_bytes + ring->data_bytes);
		cleanup_close(&ring->fd);
	}
	rings->items.count = kept;
	if (!kept)
		vector_deinit(&rings->items);
}

/* `refused_ret`: the kernel may accept smaller rings, or rings without those for large dumps. */
static struct mmt_error *open_ring(struct rings *rings, int cpu, enum ring_kind kind, uint64_t data_bytes,
				   bool *refused_ret)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct ring *ring = vector_append(&rings->items);
	struct perf_event_attr attribute;
	void *mapping;

	if (!ring)
		return &error_no_memory;
	*ring = (struct ring){.cpu = cpu, .kind = kind, .data_bytes = data_bytes, .wrapped = rings->wrapped};
	events_describe_dummy(&attribute);
	attribute.inherit = 0;
	attribute.wakeup_watermark = (uint32_t)(data_bytes / 4);
	ring->fd = (int)syscall(SYS_perf_event_open, &attribute, 0, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (ring->fd < 0) {
		int errno_value = errno;

		if (errno_value == EINVAL)
			return error_create(MMT_ERROR_UNSUPPORTED, "cannot open a perf event: the kernel does not "
								   "support its attributes; use " KERNEL_SUPPORTED);
		if (errno_value == EMFILE || errno_value == ENFILE) {
			*refused_ret = kind == RING_LARGE_DUMP; /* recording works without them */
			return error_system(
			    errno_value,
			    "cannot open a perf event: too many files are open; raise the limit with `ulimit -n`");
		}
		if (permission_was_refused(errno_value))
			return error_refused(permission_explain(PERMISSION_EVENTS),
					     "cannot open a perf event: permission denied");
		return error_system(errno_value, "cannot open a perf event");
	}
	mapping = mmap(NULL, page_bytes + data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (mapping == MAP_FAILED) {
		*refused_ret = errno == EPERM || errno == ENOMEM;
		return error_system(
		    errno,
		    "cannot map a ring buffer of %llu KiB for CPU %d (see -m, kernel.perf_event_mlock_kb "
		    "and ulimit -l)",
		    (unsigned long long)data_bytes >> 10, cpu);
	}
	ring->mapping = mapping;
	return NULL;
}

bool rings_add_faults(struct rings *rings, bool all)
{
	uint64_t most = all ? RINGS_ALL_FAULTS_BYTES : RINGS_FAULT_BYTES;
	uint64_t bytes = floor_power_of_two(LIMIT_RINGS_TOTAL_BYTES / rings->cpus.count / (all ? 1 : FAULT_PART));
	size_t count = rings->items.count;
	bool refused = true, done = false;

	bytes = bytes > FAULT_BYTES_MIN ? bytes : FAULT_BYTES_MIN;
	most = smaller_of(bytes, most);
	for (bytes = most; !done && refused && bytes >= FAULT_BYTES_MIN; bytes /= 2) {
		done = true;
		refused = false;
		for (size_t i = 0; done && i < rings->cpus.count; i++) {
			struct mmt_error *error = open_ring(rings, rings->cpus.items[i], RING_FAULT, bytes, &refused);

			done = !error;
			mmt_error_destroy(error);
		}
		if (done)
			rings->bytes_per_cpu += bytes;
		else
			close_rings(rings, count);
		rings->shrunk |= done && bytes < most;
	}
	return done;
}

/* Open the largest rings that the kernel allows. `large`: the first way to try for getting memory for large dumps. */
static struct mmt_error *open_divided(struct rings *rings, uint64_t bytes_per_cpu, const struct ring_needs *needs,
				      uint64_t sizes[RING_KINDS], bool *refused_ret)
{
	enum large_dump_room large = needs->large_dump_bytes ? LARGE_DUMPS_BESIDES : LARGE_DUMPS_LEFT_OUT;

	for (;; large++) {
		struct mmt_error *error = NULL;

		rings_divide(bytes_per_cpu, needs, large, sizes);
		*refused_ret = false;
		array_while(cpu, rings->cpus.items, rings->cpus.count, !error) {
			for (unsigned kind = 0; !error && kind < RING_KINDS; kind++)
				if (sizes[kind])
					error = open_ring(rings, *cpu, (enum ring_kind)kind, sizes[kind], refused_ret);
		}
		if (!error)
			return NULL;
		close_rings(rings, 0);
		if (!*refused_ret || large == LARGE_DUMPS_LEFT_OUT)
			return error;
		mmt_error_destroy(error);
	}
}

uint64_t rings_default_bytes(size_t cpu_count)
{
	uint64_t bytes = floor_power_of_two(LIMIT_RINGS_TOTAL_BYTES / cpu_count);

	return bytes < RINGS_BYTES_DEFAULT ? bytes : RINGS_BYTES_DEFAULT;
}

struct mmt_error *rings_create(uint64_t bytes_per_cpu, uint32_t dump_bytes, uint32_t large_dump_bytes,
			       struct rings *rings)
{
	const struct ring_needs needs = {
	    .dump_bytes = dump_bytes,
	    .large_dump_bytes = large_dump_bytes,
	    .page_bytes = (size_t)sysconf(_SC_PAGESIZE),
	};
	uint64_t sizes[RING_KINDS], wanted[RING_KINDS], smallest[RING_KINDS];
	struct mmt_error *error;
	bool refused;

	memset(rings, 0, sizeof(*rings));
	error = cpus_list_online(&rings->cpus);
	if (error)
		return error;
	rings->wrapped = malloc(RINGS_RECORD_BYTES_MAX);
	if (!rings->wrapped)
		return &error_no_memory;
	if (!bytes_per_cpu)
		bytes_per_cpu = rings_default_bytes(rings->cpus.count);
	rings_divide(bytes_per_cpu, &needs, LARGE_DUMPS_LEFT_OUT, wanted);
	rings_divide(0, &needs, LARGE_DUMPS_LEFT_OUT, smallest);
	for (;;) {
		error = open_divided(rings, bytes_per_cpu, &needs, sizes, &refused);
		if (!error)
			break;
		if (!refused || !memcmp(sizes, smallest, sizeof(sizes)))
			return error;
		mmt_error_destroy(error);
		bytes_per_cpu /= 2;
	}
	rings->shrunk = sizes[RING_SYSCALL] < wanted[RING_SYSCALL] || sizes[RING_DUMP] < wanted[RING_DUMP];
	rings->has_large_dumps = sizes[RING_LARGE_DUMP];
	for (unsigned kind = 0; kind < RING_KINDS; kind++)
		rings->bytes_per_cpu += sizes[kind];
	return NULL;
}

void rings_deinit(struct rings *rings)
{
	close_rings(rings, 0);
	free(rings->wrapped);
	vector_deinit(&rings->cpus);
}

const struct ring *rings_find(const struct rings *rings, size_t cpu_index, enum ring_kind kind)
{
	return array_find(ring, rings->items.items, rings->items.count,
			  ring->cpu == rings->cpus.items[cpu_index] && ring->kind == kind);
}

static struct perf_event_mmap_page *control_page(const struct ring *ring)
{
	return (struct perf_event_mmap_page *)ring->mapping;
}

static uint64_t present_head(const struct ring *ring)
{
	return __atomic_load_n(&control_page(ring)->data_head, __ATOMIC_ACQUIRE);
}

void rings_note_heads(struct rings *rings)
{
	for (size_t i = 0; i < rings->items.count; i++)
		rings->items.items[i].head = present_head(&rings->items.items[i]);
}

/* Find the record at `tail`, and copy it to `wrapped` if it wraps around the end of the ring. */
static struct mmt_error *get_record(struct ring *ring, uint64_t tail, uint64_t head, const void **record_ret,
				    size_t *size_ret)
{
	uint8_t *data = ring->mapping + control_page(ring)->data_offset;
	size_t offset = tail & (ring->data_bytes - 1);
	size_t until_end = ring->data_bytes - offset;
	/* Records are 8-aligned: a header never wraps. */
	size_t size = ((const struct perf_event_header *)(const void *)(data + offset))->size;

	*size_ret = size;
	*record_ret = data + offset;
	if (size < sizeof(struct perf_event_header) || size > head - tail)
		return error_create(MMT_ERROR_SYSTEM, "the kernel's ring buffer holds a record of %zu bytes", size);
	if (size > until_end) {
		memcpy(ring->wrapped, data + offset, until_end);
		memcpy(ring->wrapped + until_end, data, size - until_end);
		*record_ret = ring->wrapped;
	}
	return NULL;
}

struct mmt_error *rings_peek(struct ring *ring, ring_handler handle, void *context)
{
	uint64_t head = present_head(ring), position = control_page(ring)->data_tail;
	struct mmt_error *error = NULL;

	position = larger_of(position, ring->peeked);
	while (!error && position < head) {
		const void *record = NULL;
		size_t size;

		error = get_record(ring, position, head, &record, &size) ?: handle(context, record, size);
		position += size;
	}
	ring->peeked = position;
	return error;
}

struct mmt_error *rings_read(struct ring *ring, ring_handler handle, void *context)
{
	struct perf_event_mmap_page *control = control_page(ring);
	uint64_t tail = control->data_tail;
	struct mmt_error *error = NULL;

	while (!error && tail < ring->head) {
		const void *record = NULL;
		size_t size;

		error = get_record(ring, tail, ring->head, &record, &size);
		if (error)
			return error;
		error = handle(context, record, size);
		tail += size;
		/* Give space back early: the targets write all the time. */
		if ((tail & (ring->data_bytes / 16 - 1)) < size)
			__atomic_store_n(&control->data_tail, tail, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&control->data_tail, tail, __ATOMIC_RELEASE);
	return error;
}

bool rings_are_half_full(const struct rings *rings, bool large_dumps)
{
	return array_find(ring, rings->items.items, rings->items.count,
			  (large_dumps || ring->kind < RING_LARGE_DUMP) &&
			      present_head(ring) - control_page(ring)->data_tail > ring->data_bytes / 2);
}
