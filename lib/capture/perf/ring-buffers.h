/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ring buffers shared with the kernel. Each CPU has a ring of syscall events and, with stack dumps, one or two dump
 * rings. Each ring belongs to a dummy event on this process and exists as long as the recording; the events of the
 * targets write into it. */
#pragma once

#include "capture/perf/perf-events.h"

/* Which CPUs exist, and on which of them calls are missed: cpu-hotplug.c. */
typedef VECTOR(int) cpu_list;

/* Append the CPUs of a list like "0-3,5". False: out of memory. */
bool cpus_parse(const char *text, cpu_list *cpus);

struct mmt_error *cpus_list_online(cpu_list *cpus) MMT_MUST_CHECK;

/* Events are opened for the CPUs that are online when recording begins. When a CPU goes offline, the kernel keeps its
 * per-thread events for later, but closes its per-CPU events for good. While the machine is suspended, all CPUs but the
 * first are offline. Zero-initialise one without CPUs. */
struct cpu_watch {
	cpu_list away;	 /* went offline, and so has no per-CPU events any more */
	cpu_list missed; /* online without events */
	size_t reported; /* of `missed` */
	bool checked;
	uint64_t asleep_ns; /* at the last check */
	uint64_t checked_ns;
};

bool cpus_have(const cpu_list *cpus, int cpu);

/* Note which CPUs are online now. `recorded`: the CPUs for which events were opened. `on_cpus`: they are per-CPU
 * events. `asleep_ns`: how long the machine has been suspended since it was booted. False: out of memory. */
bool cpu_watch_note(struct cpu_watch *watch, const cpu_list *recorded, const cpu_list *online, bool on_cpus,
		    uint64_t asleep_ns);

#define RINGS_BYTES_DEFAULT (32u << 20) /* per CPU */
#define RINGS_RECORD_BYTES_MAX 65536
#define RINGS_LARGE_DUMP_BYTES (8u << 20)  /* room for 127 large dumps, about as many as a starting program needs */
#define RINGS_FAULT_BYTES (4u << 20)	   /* some 50,000 faults */
#define RINGS_ALL_FAULTS_BYTES (32u << 20) /* some 100,000 faults */

struct ring {
	int cpu;
	enum ring_kind kind;
	int fd;
	uint8_t *mapping;  /* the control page, then the data */
	size_t data_bytes; /* a power of two */
	uint8_t *wrapped;  /* borrowed; buffer of RINGS_RECORD_BYTES_MAX for a record that wraps around */
	uint64_t head;	   /* end of the data at the last rings_note_heads() */
	uint64_t peeked;   /* end of the records that rings_peek() has handed out */
};

struct rings {
	VECTOR(struct ring) items;
	uint8_t *wrapped; /* owned; one for all rings, which are read one after the other */
	cpu_list cpus;	  /* online when recording began */
	uint64_t bytes_per_cpu;
	bool shrunk; /* those of small dumps, syscall events or page faults are smaller than requested */
	bool has_large_dumps;
};

/* Create the rings. `bytes_per_cpu` 0: the default size. If the kernel allows too little memory, large dumps have no
 * ring. */
struct mmt_error *rings_create(uint64_t bytes_per_cpu, uint32_t dump_bytes, uint32_t large_dump_bytes,
			       struct rings *rings) MMT_MUST_CHECK;
/* Add a ring for page faults to each CPU, of the largest size that the kernel allows. False: it allows none, or fewer
 * than one for each CPU. `all`: for every fault. */
bool rings_add_faults(struct rings *rings, bool all);
/* Accepts a zeroed value. */
void rings_deinit(struct rings *rings);

/* Return the ring of this kind for the CPU with this index in `cpus`. */
const struct ring *rings_find(const struct rings *rings, size_t cpu_index, enum ring_kind kind);

/* Note how far the rings are filled now. Records up to there are older than all that arrive later. */
void rings_note_heads(struct rings *rings);

/* Hand each record up to the noted head to `handle`, then return the space to the kernel. A record is read-only and
 * valid during the call. An error of `handle` stops reading. */
typedef struct mmt_error *(*ring_handler)(void *context, const void *record, size_t size);
struct mmt_error *rings_read(struct ring *ring, ring_handler handle, void *context) MMT_MUST_CHECK;

/* Hand each record up to the current head to `handle` once, and leave it in the ring. */
struct mmt_error *rings_peek(struct ring *ring, ring_handler handle, void *context) MMT_MUST_CHECK;

/* Whether any ring is more than half full. `large_dumps`: also those for large dumps and page faults, which may overflow
 * without harm, so that reading them must not delay the others. */
bool rings_are_half_full(const struct rings *rings, bool large_dumps);

struct ring_needs {
	uint32_t dump_bytes, large_dump_bytes; /* size of a stack dump; 0: no dumps */
	size_t page_bytes;
};

/* Where the memory for the rings of large dumps comes from. */
enum large_dump_room {
	LARGE_DUMPS_BESIDES,   /* in addition to the other rings */
	LARGE_DUMPS_TAKE_ROOM, /* in addition, and the ring of small dumps is halved */
	LARGE_DUMPS_LEFT_OUT,  /* no large dumps */
};

/* Return the size for each CPU if none is given with -m. */
uint64_t rings_default_bytes(size_t cpu_count);

/* Divide the size given with -m. All rings are powers of two, and the ring of syscall events gets at least half.
 * Without dumps, the dump ring is 0. The ring of large dumps is half as large as the ring of syscall events, but at
 * most RINGS_LARGE_DUMP_BYTES. */
void rings_divide(uint64_t bytes_per_cpu, const struct ring_needs *needs, enum large_dump_room large,
		  uint64_t sizes_ret[RING_KINDS]);
