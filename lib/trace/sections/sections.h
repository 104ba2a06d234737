/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* mmtrace's feature sections and perf's table of build-ids as plain values. mmtrace-file(5) has their layouts. */
#pragma once

#include <mmtrace/report.h>

#include "base/map.h"
#include "trace/read/recording-file.h"
#include "trace/sections/section-codec.h"

/* The purpose of an event attribute; the index is the position of the attribute in the file. */
enum attribute_role {
	ROLE_OTHER = 0,
	ROLE_SYSCALL = 1, /* exit of a call */
	ROLE_DUMP = 2,	  /* stack dump of a call */
	ROLE_NEW_TASK = 3,
	ROLE_SIDE_BAND = 4, /* mappings, names, forks, exits */
	ROLE_SNAPSHOT = 5,
	ROLE_LOCK = 6, /* mmap_lock events of old recordings, which are ignored */
	ROLE_LARGE_DUMP =
	    7, /* a larger stack dump of a call that also has a ROLE_DUMP; enabled while the call rate is low */
	ROLE_FAULT = 8,	  /* page faults, one of as many as the attribute's period says */
	ROLE_RECLAIM = 9, /* a thread begins or ends to free memory, so that it can allocate some */
};

static inline bool role_is_dump(enum attribute_role role)
{
	return role == ROLE_DUMP || role == ROLE_LARGE_DUMP;
}

/* They have a ring of their own. Calls do not depend on them. */
static inline bool role_is_paging(enum attribute_role role)
{
	return role == ROLE_FAULT || role == ROLE_RECLAIM;
}

struct device_number {
	uint32_t major, minor;
};

/* FEATURE_MMTRACE_INFO, in the preamble. */
struct recording_info {
	char *recorder_version; /* "0.1.0"; owned */
	uint64_t start_ns;	/* recording's clock, when events were enabled */
	uint64_t start_realtime_ns;
	uint32_t page_bytes;
	enum mmt_call_graph call_graph;
	uint32_t stack_dump_bytes; /* 0: no dumps */
	uint32_t callchain_limit;  /* kernel.perf_event_max_stack */
	uint32_t mapping_limit;	   /* vm.max_map_count; 0: not known, always so before version 3 */
	bool command;		   /* started by mmtrace */
	bool on_cpus;		   /* per-CPU events, not per-thread events */
	bool all_processes;	   /* all processes, or all of a control group: no targets */
	bool in_cgroups;	   /* on_cpus: in control groups */
	VECTOR(int32_t) targets;   /* requested processes */
	VECTOR(uint32_t) roles;	   /* enum attribute_role */
	/* of hugetlbfs; empty before version 4 */
	VECTOR(struct device_number) hugetlb_devices;
};

/* FEATURE_MMTRACE_LOSS, written when recording stops: in mmtrace's files without it, it did not finish. */
struct recording_loss {
	uint64_t stop_ns;
	enum mmt_record_end end;
	VECTOR(uint64_t) lost; /* by attribute, from PERF_FORMAT_LOST */
	uint64_t missed_threads;
	uint64_t missed_cpus;	 /* came online without events */
	uint64_t left_processes; /* left the recorded control group */
};

/* FEATURE_MMTRACE_PERF_MAPS. */
struct perf_map_growth {
	uint64_t time_ns;
	uint64_t length; /* length of the file at that time: later lines appeared later */
};

struct perf_map_copy {
	int32_t pid;
	int32_t namespace_pid;
	VECTOR(struct perf_map_growth) growth;
	uint8_t *text; /* owned */
	size_t text_size;
	size_t packed_size; /* in the recorder: the text is zstd frames of this size; 0: it is plain */
};

struct perf_map_copies {
	VECTOR(struct perf_map_copy) maps;
};

/* FEATURE_MMTRACE_JITDUMPS. */
struct jitdump_copy {
	int32_t pid;
	int32_t namespace_pid;
	bool knows_program;
	uint64_t program_ns;	  /* start of the program that mapped it, 0 before the recording */
	uint8_t *data;		  /* owned */
	size_t size, packed_size; /* as those of a perf map */
};

struct jitdump_copies {
	VECTOR(struct jitdump_copy) dumps;
};

/* FEATURE_MMTRACE_RESIDENCY: runs of resident pages, ascending, disjoint, page aligned. */
struct resident_run {
	uint64_t start, end;
};

typedef VECTOR(struct resident_run) resident_runs;

/* Counts the bytes of address ranges in ascending order. */
struct page_cursor {
	const resident_runs *runs;
	size_t next;
	uint64_t counted_bytes; /* in all ranges so far */
};

uint64_t page_cursor_count(struct page_cursor *cursor, uint64_t start, uint64_t end);

uint64_t page_runs_bytes(const resident_runs *runs);

struct process_residency {
	int32_t pid;
	uint64_t time_ns;	 /* when the pages were read; 0: not known */
	uint64_t resident_bytes; /* RSS reported by the kernel at that time; 0: not known */
	resident_runs runs;
};

typedef VECTOR(struct process_residency) process_residencies;

struct recording_residency {
	process_residencies processes; /* at stop */
	process_residencies at_start;  /* of targets that ran before the recording began; empty before version 2 */
	/* Made by section_read(): PID -> place of the first with it. */
	struct map places, start_places;
};

void process_residencies_deinit(process_residencies *processes);

/* FEATURE_MMTRACE_HUGE_PAGES: private anonymous memory in transparent huge pages when recording ended, and how much of
 * a sample of it is zero. */

/* /sys/kernel/mm/transparent_hugepage/enabled */
enum huge_setting { HUGE_SETTING_UNKNOWN = 0, HUGE_ALWAYS = 1, HUGE_MADVISE = 2, HUGE_NEVER = 3 };

struct process_huge_pages {
	int32_t pid;
	uint64_t bytes;
	uint64_t sampled_bytes; /* size of the sample; 0: there is none */
	uint64_t zero_bytes;	/* of the sample */
};

struct recording_huge_pages {
	enum huge_setting setting;
	VECTOR(struct process_huge_pages) processes; /* whose huge pages are known */
	struct map places;			     /* made by section_read(): PID -> place of the first with it */
};

/* For section_read() and section_write(); their `deinit` accepts a zeroed value. */
extern const struct section_kind section_info, section_loss, section_perf_maps, section_jitdumps, section_residency,
    section_huge_pages;

void perf_map_copy_deinit(struct perf_map_copy *copy);

/* Of a process at the start, or at the end, of a decoded recording; NULL: not recorded. */
const struct process_residency *recording_residency_of(const struct recording_residency *residency, bool at_start,
						       int32_t pid);

/* Of a process of a decoded recording; NULL: not recorded. */
const struct process_huge_pages *recording_huge_pages_of(const struct recording_huge_pages *huge, int32_t pid);

/* FEATURE_MMTRACE_HEAP: the censuses of malloc heaps, in the order of time. lib/capture/heap takes them. It also sends
 * them from its helper process in this form. */
struct heap_censuses {
	VECTOR(struct mmt_heap_census) items;
};

extern const struct section_kind section_heap; /* for section_read() and section_write() */

void heap_census_deinit(struct mmt_heap_census *census);
/* FEATURE_BUILD_ID of perf: the build-id of each mapped module. */
struct build_id_entry {
	char *path; /* owned; as in MMAP2 records */
	uint8_t bytes[20];
	uint8_t size; /* 1 to 20 */
};

struct build_ids {
	VECTOR(struct build_id_entry) entries;
};

void build_ids_deinit(struct build_ids *ids);
void build_ids_encode(const struct build_ids *ids, struct buffer *buffer);
struct mmt_error *build_ids_decode(struct bytes *bytes, struct build_ids *ids_ret) MMT_MUST_CHECK;

/* FEATURE_MMTRACE_IMAGES: the mapped modules, by device and inode, which do not depend on the root in which a path is
 * resolved; and copies of modules that cannot be found by their path on the recording machine. */

struct module_copy {
	uint32_t device_major, device_minor;
	uint64_t inode;
	char *path; /* owned; as in MMAP2 records or the snapshot */
	uint8_t build_id[20];
	uint8_t build_id_size;	 /* 0: no build-id */
	uint64_t size;		 /* of the file; 0: no copy */
	uint32_t offset, stored; /* the compressed copy in the section */
};

struct module_copies {
	VECTOR(struct module_copy) images;
	const struct recording_file *file; /* NULL: not read from a file */
};

void module_copies_deinit(struct module_copies *copies);

/* The size of an image's index entry. */
uint64_t module_copies_entry_bytes(const struct module_copy *image);

/* Writes the index to the start of the buffer, or over the one that is there: first encode it, to make room, then
 * append the copies, enter them in `copies`, and encode it again. */
void module_copies_encode_index(const struct module_copies *copies, struct buffer *buffer);

/* Decodes the index; on error the value is empty. The file must outlive it. */
struct mmt_error *module_copies_load(const struct recording_file *file,
				     struct module_copies *copies_ret) MMT_MUST_CHECK;

/* Reads the content of a copied file; the caller owns it. Exactly image->size bytes. */
struct mmt_error *module_copies_extract(const struct module_copies *copies, const struct module_copy *image,
					uint8_t **data_ret) MMT_MUST_CHECK;

/* The section FEATURE_MMTRACE_CODE: the latest bytes of JIT code, by process and program. lib/capture/jit-code reads
 * them from the processes, analysis/resolver/jit-rows.c unwinds with them. */

/* Contiguous bytes. */
struct jit_code_run {
	uint64_t start; /* address in the process */
	size_t size;
	size_t offset; /* in jit_code.bytes */
};

struct jit_code_program {
	int32_t pid;
	uint64_t until_ns; /* when another program replaced it in the process, or another process got its PID;
			      UINT64_MAX: never */
	VECTOR(struct jit_code_run) runs; /* ascending, disjoint */
};

struct jit_code {
	VECTOR(struct jit_code_program) programs;
	struct buffer bytes;
};

/* The kernel's names for memory that belongs to no module: executable memory there is JIT code. */
bool jit_code_is_path(const char *path);

/* The same, and modules of .NET: their precompiled code has no frame pointers and no known unwind tables. */
bool jit_code_is_wanted(const char *path);

extern const struct section_kind section_code; /* only for section_read() */

/* A page of a program, compressed by compressor_frame(). */
struct jit_code_page {
	uint64_t address;
	const uint8_t *frame;
	size_t frame_bytes;
};

/* Begins the section, which contains this many programs. packing_end() ends it. */
struct mmt_error *jit_code_encode(struct section_packing *packing, size_t programs,
				  struct buffer *buffer) MMT_MUST_CHECK;
/* The pages ascend, and are of one size. */
struct mmt_error *jit_code_encode_program(struct section_packing *packing, int32_t pid, uint64_t until_ns,
					  const struct jit_code_page *pages, size_t count,
					  size_t page_bytes) MMT_MUST_CHECK;

/* The code of the program that began in the process at this time; NULL: none. */
const struct jit_code_program *jit_code_find(const struct jit_code *code, int32_t pid, uint64_t began_ns);

/* At most `size` bytes from `address` on. Returns their number, 0: none. Borrowed. */
size_t jit_code_at(const struct jit_code *code, const struct jit_code_program *program, uint64_t address, size_t size,
		   const uint8_t **code_ret);

/* At most `size` bytes that end at `address`. */
size_t jit_code_before(const struct jit_code *code, const struct jit_code_program *program, uint64_t address,
		       size_t size, const uint8_t **code_ret);

/* FEATURE_MMTRACE_STACKS, of packed recordings: all symbolized stacks. They replace the stack dumps needed to unwind
 * them, and the modules and maps needed to symbolize them. Samples have the number of their stack. */

#define RESOLVED_NO_TEXT UINT32_MAX

/* As in struct mmt_frame; texts are numbers. */
struct packed_name {
	uint64_t address, module_offset;
	uint32_t function, raw_function, module, module_path, source_file;
	uint32_t source_line;
	enum mmt_frame_kind kind;
	bool inlined, doubtful;
};

/* How to find better names than the recorded ones: `module_offset` of the names is an ELF address in the module. */
enum packed_lookup {
	PACKED_LOOKUP_NONE = 0, /* it is not, or the recording is older */
	PACKED_LOOKUP_ADDRESS = 1,
	PACKED_LOOKUP_RETURN_ADDRESS = 2
};

/* The names of a frame are contiguous, inlined functions first. */
struct packed_frame {
	uint32_t first_name, name_count;
	uint32_t process; /* index */
	enum packed_lookup lookup;
};

#define STACK_END_LOST 255 /* instead of an enum mmt_stack_end: for the stacks of calls that were lost */

struct packed_stack {
	uint32_t end;
	uint32_t first_frame, frame_count; /* in stack_frames */
};

/* Completeness of the names of JIT code. */
struct jit_names_state {
	bool has_perf_map, has_jitdump;
	size_t dropped_lines;	     /* lines of the perf map over the limit */
	size_t lost_records;	     /* records of jitdumps that are invalid or over the limit */
	size_t unread_bytes;	     /* bytes of jitdumps after a truncated record */
	bool other_clock;	     /* the timestamps of a jitdump are unusable */
	const char *jitdump_failure; /* why a jitdump is not used; NULL: all are */
};

struct packed_process {
	uint32_t runtime; /* text */
	struct jit_names_state names;
	uint32_t jitdump_failure; /* text, which a decoded value has in `names`, too */
	bool unchecked_frames;	  /* callers of its JIT code were found only by frame pointer */
	bool stacks_end_there;	  /* stacks end in its JIT code, because its callers are unknown */
	bool released;		  /* after its end others ran: it no longer counts */
	bool released_known;	  /* older recordings do not have that */
};

/* A module that could not be used. */
struct packed_module {
	uint32_t path;	  /* text */
	uint32_t state;	  /* enum module_state */
	uint32_t missing; /* text: the missing files that cause the state; or none */
};

/* Zero-initialise an empty value. */
struct packed_stacks {
	struct intern texts; /* while encoding */
	uint8_t *content;    /* of a decoded value */
	VECTOR(const char *) read_texts;
	VECTOR(struct packed_name) names;
	VECTOR(struct packed_frame) frames;
	VECTOR(uint32_t) stack_frames;
	VECTOR(struct packed_stack) stacks;
	VECTOR(struct packed_process) processes;
	VECTOR(struct packed_module) modules;
	uint32_t damage;			    /* text: damage of the recording that was packed */
	uint64_t unfinished_records, unfinished_ns; /* discarded from that recording: see struct reorder_unfinished */
};

/* For section_read() and section_write(). All numbers in a decoded value are valid. */
extern const struct section_kind section_stacks;

/* Returns the number of a text, which may be NULL; false: out of memory. */
bool packed_stacks_put_text(struct packed_stacks *stacks, const char *text, uint32_t *number_ret);

/* A text of a decoded value; NULL for RESOLVED_NO_TEXT. Lives as long as the value. */
const char *packed_stacks_text(const struct packed_stacks *stacks, uint32_t number);

/* FEATURE_MMTRACE_OPTIONS: options with which the programs of recorded processes were started, as far as they are in
 * the table of runtime-options.c. Command lines and environments contain passwords, so nothing else of them is
 * recorded, and of these options only numbers. Collect only those that a report uses. To add one, add its number here,
 * and a row there. */

/* Numbers in the file. */
enum runtime_option {
	OPTIONS_READ = 0, /* not an option: those of this program that are missing were not given */
	OPTION_JAVA_FRAME_POINTERS = 1,
	OPTION_JAVA_COMPILED = 2,
	OPTION_MONO_FRAME_POINTERS = 8,
	OPTION_MALLOC_ARENA_MAX = 18,
	OPTION_DOTNET_PERF_MAP = 19,
	OPTION_NODE_PERF_MAP = 20,
	OPTION_NODE_INTERPRETED_FRAMES = 21,
	OPTION_PYTHON_PERF_MAP = 22
};

struct option_value {
	int32_t pid;
	uint32_t option;   /* enum runtime_option, or one that this version does not know */
	uint64_t began_ns; /* start of the program: its fork or exec; 0: before the recording */
	uint64_t value;
};

struct runtime_options {
	VECTOR(struct option_value) values; /* ascending by pid, began_ns and option, if decoded */
};

extern const struct section_kind section_options; /* for section_read() */

/* Adds the known options in the arguments and variables of a program, each of which ends with a zero byte. Of several
 * values of an option, the one that the runtime uses is added. `variables` NULL: these are not known, and so neither
 * is which options were not given. Call this once for each program. False: out of memory. */
bool runtime_options_scan(struct runtime_options *options, int32_t pid, uint64_t began_ns, const char *arguments,
			  size_t arguments_size, const char *variables, size_t variables_size) MMT_MUST_CHECK;

/* Compressed with zstd inside. Sorts the values, and drops further values of an option. */
struct mmt_error *runtime_options_encode(struct runtime_options *options, struct buffer *buffer) MMT_MUST_CHECK;

/* The value of an option of decoded options; NULL: not given, or not known. */
const uint64_t *runtime_options_find(const struct runtime_options *options, int32_t pid, uint64_t began_ns,
				     enum runtime_option option);
