/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The buffers shared with the kernel: a ring of syscall events and, with stack dumps, one or two dump rings per CPU.
 * Each belongs to a dummy event on this process, which lives as long as the recording; the events of the targets write
 * into them.
 */
#ifndef CAPTURE_PERF_RING_BUFFERS_H
#define CAPTURE_PERF_RING_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "base/vector.h"
#include "capture/perf/cpu-hotplug.h"
#include "capture/perf/perf-events.h"

#define RINGS_BYTES_DEFAULT (32u << 20)	     /* per CPU */
#define RINGS_BYTES_TOTAL_MAX (256ull << 20) /* over all CPUs, for the default */
#define RINGS_RECORD_BYTES_MAX 65536
#define RINGS_LARGE_DUMP_BYTES (8u << 20) /* room for 127 large dumps, about a burst of a starting program */

struct ring {
	int cpu;
	enum ring_kind kind;
	int fd;
	uint8_t *mapping;  /* control page, then the data */
	size_t data_bytes; /* a power of two */
	uint8_t *wrapped;  /* RINGS_RECORD_BYTES_MAX: buffer for a record that wraps around */
	uint64_t head;	   /* as of rings_note_heads() */
	uint64_t peeked;   /* rings_peek() has handed out everything before this */
};

struct rings {
	VECTOR(struct ring) items;
	cpu_list cpus; /* the online CPUs, then those that may come online */
	size_t online_count;
	size_t left_out_count;	/* number of other CPUs that may come online */
	uint64_t bytes_per_cpu; /* actual size for an online CPU; others have an eighth */
	bool shrunk;		/* rings other than those for large dumps are smaller than requested */
	bool has_large_dumps;
};

/* `bytes_per_cpu` 0: the default. If the kernel grants too little memory, large dumps have no ring. */
struct mmt_error *rings_create(uint64_t bytes_per_cpu, uint32_t dump_bytes, uint32_t large_dump_bytes,
			       struct rings *rings) MMT_MUST_CHECK;
/* Accepts a zeroed value. */
void rings_deinit(struct rings *rings);

/* The ring of this kind for the CPU with this index in `cpus`. */
const struct ring *rings_find(const struct rings *rings, size_t cpu_index, enum ring_kind kind);

/* Note how far the rings are filled now; records up to there are older than all that arrive later. */
void rings_note_heads(struct rings *rings);
void ring_note_head(struct ring *ring);

/*
 * Hands each record up to the noted head to `handle`, then returns the space to the kernel. A record is valid during
 * the call and read-only. An error of `handle` ends the reading.
 */
typedef struct mmt_error *(*ring_handler)(void *context, const void *record, size_t size);
struct mmt_error *rings_read(struct ring *ring, ring_handler handle, void *context) MMT_MUST_CHECK;

/* Hands each record up to the current head to `handle`, once, and leaves it in the ring. */
struct mmt_error *rings_peek(struct ring *ring, ring_handler handle, void *context) MMT_MUST_CHECK;

/* Is any ring more than half full? */
bool rings_are_filling(const struct rings *rings);
/* The same without the rings for large dumps, which must not delay the others. */
bool rings_are_urgent(const struct rings *rings);

struct ring_needs {
	uint32_t dump_bytes, large_dump_bytes; /* of a stack dump; 0: there are none */
	size_t page_bytes;
};

/* Where the memory for large dumps comes from. */
enum large_dump_room {
	LARGE_DUMPS_BESIDES,   /* in addition to the other rings */
	LARGE_DUMPS_TAKE_ROOM, /* likewise, and the ring of small dumps is halved */
	LARGE_DUMPS_LEFT_OUT,  /* no large dumps */
};

/* Divides the size given with -m: all rings are powers of two, and the ring of syscall events gets at least half. The
 * dump ring is 0 without dumps. The ring of large dumps has half the size of the ring of syscall events, up to
 * RINGS_LARGE_DUMP_BYTES. */
void rings_divide(uint64_t bytes_per_cpu, const struct ring_needs *needs, enum large_dump_room large,
		  uint64_t sizes_ret[RING_KINDS]);

#endif
