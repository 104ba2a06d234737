// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/report/report-build.h"

#include "base/strings.h"

#define FLOOR_BYTES (1ull << 20) /* smaller amounts have no hint */
#define MAPPINGS_MIN 8		 /* of one stack: fewer mappings are not a leak */
#define CODE_MAPPINGS_MIN 32	 /* every program loads some libraries */
#define CODE_BYTES_MIN (32ull << 20)
#define STACK_CACHE_BYTES (40ull << 20) /* glibc caches up to this much of finished threads' stacks */

static const struct {
	const char *name; /* in JSON documents */
	bool by_design;	  /* an allocator or a runtime keeps this memory */
	const char *explanation;
} patterns[MMT_PATTERN_KINDS] = {
    [MMT_PATTERN_ARENA] =
	{"arena", true,
	 "malloc arena: glibc gives threads their own arenas and keeps freed memory in them. If those of several "
	 "threads grow, try MALLOC_ARENA_MAX=2 in its environment, or malloc_trim(0). If it still grows, a heap "
	 "profiler such as heaptrack shows which blocks are not freed"},
    [MMT_PATTERN_THREAD_STACK] = {"thread-stack", true,
				  "thread stacks: glibc caches up to 40 MiB of finished threads' stacks; more belongs "
				  "to threads that still run, or that finished and were never joined or detached"},
    [MMT_PATTERN_HEAP] = {"heap", true,
			  "malloc heap (brk): grew in calls from this stack, others may keep it, and freed blocks "
			  "stay in the heap. Only a heap profiler such as heaptrack shows whether blocks leak or free "
			  "ones lie between used ones (fragmentation); malloc_trim(0) gives free pages back"},
    [MMT_PATTERN_GC_HEAP] = {"gc-heap", true,
			     "heap of a managed runtime, which keeps memory that it has collected; if it keeps "
			     "growing, a heap dump of the runtime shows which objects are kept"},
    [MMT_PATTERN_CODE] = {"code", true,
			  "code and its data, which stay while they are in use; if they keep growing, look for "
			  "libraries or classes that are loaded, or code that is generated, again and again"},
    [MMT_PATTERN_DIRECT_BUFFER] =
	{"direct-buffer", false,
	 "direct ByteBuffers or Unsafe memory of Java, outside its heap, freed when their owner is collected. A leak "
	 "if the program keeps them; -XX:MaxDirectMemorySize limits them. Next: `jcmd PID GC.class_histogram` counts "
	 "java.nio.DirectByteBuffer"},
    [MMT_PATTERN_JVM_NATIVE] =
	{"jvm-native", true,
	 "native memory of the JVM itself: start Java with -XX:NativeMemoryTracking=summary, then `jcmd PID "
	 "VM.native_memory baseline` and later `jcmd PID VM.native_memory summary.diff` show what grows"},
    [MMT_PATTERN_ARRAY_BUFFER] =
	{"array-buffer", false,
	 "contents of Buffers or ArrayBuffers, outside the JavaScript heap, freed when their owner is collected. A "
	 "leak if the program keeps them: a heap snapshot shows what holds them"},
    [MMT_PATTERN_FILE] = {"file", false,
			  "files mapped and not unmapped: a leak if the number of mappings keeps growing; munmap() "
			  "ends it. Unchanged pages are page cache, which the kernel takes back when memory is short"},
    [MMT_PATTERN_MEMFD] =
	{"memfd", false,
	 "memory files (memfd) mapped and not unmapped: a leak if the number of mappings keeps growing; the memory is "
	 "free after munmap() and close() (`ls -l /proc/PID/fd` lists open ones)"},
    [MMT_PATTERN_SHM] = {"shm", false,
			 "shared memory mapped and not unmapped: a leak if the number of mappings keeps growing; "
			 "munmap() or shmdt() ends it (`ipcs -m` lists System V segments)"},
    [MMT_PATTERN_AIO] = {"aio", false,
			 "contexts of io_setup() that were not destroyed: a leak if their number keeps growing; "
			 "io_destroy() ends it. They also count against fs.aio-max-nr"},
    [MMT_PATTERN_METASPACE] = {"metaspace", true,
			       "Metaspace of Java: its classes, which stay until their class loader is collected. If "
			       "it keeps growing, classes are loaded again and again; -XX:MaxMetaspaceSize limits it. "
			       "Next: `jcmd PID VM.classloader_stats` shows by which class loaders"},
    [MMT_PATTERN_PYTHON] = {"python", true,
			    "object arenas of Python: grew in calls from this stack; others may keep them. A leak "
			    "if the program keeps objects: tracemalloc shows which. Next: `memray attach PID` shows "
			    "who makes more, if it can import memray"},
};

const char *mmt_pattern_name(enum mmt_pattern pattern)
{
	return pattern < MMT_PATTERN_KINDS ? patterns[pattern].name : NULL;
}

bool mmt_pattern_is_by_design(enum mmt_pattern pattern)
{
	return pattern < MMT_PATTERN_KINDS && patterns[pattern].by_design;
}

const char *mmt_pattern_explanation(enum mmt_pattern pattern)
{
	return pattern < MMT_PATTERN_KINDS ? patterns[pattern].explanation : NULL;
}

static const char arena_of_one_thread[] =
    "malloc arena: most of it belongs to one thread, and freed blocks stay in it; grew in calls from this "
    "stack; others may keep it. A heap profiler such as heaptrack shows which blocks are not freed; malloc_trim(0) "
    "gives free pages back";

static const char arenas_limited[] =
    "malloc arena: freed blocks stay in it, and MALLOC_ARENA_MAX limits the number of arenas already; malloc_trim(0) "
    "gives free pages back. If it still grows, a heap profiler such as heaptrack shows which blocks are not freed";

static const char *hint_of_arenas(enum arena_use use)
{
	return use == ARENAS_LIMITED	     ? arenas_limited
	       : use == ARENAS_OF_ONE_THREAD ? arena_of_one_thread
					     : mmt_pattern_explanation(MMT_PATTERN_ARENA);
}

static const char dotnet_heap[] =
    "memory of the .NET runtime, mostly its garbage-collected heap, which keeps memory that it has collected. A leak "
    "only if the part in use keeps growing (`dotnet-counters monitor -p PID`); DOTNET_GCHeapHardLimit limits it. Next: "
    "`dotnet-gcdump report -p PID` shows which objects are kept";

/* That of Node alone: in other programs with V8, there is no such debugger, and the signal that opens it kills. */
#define NODE_SNAPSHOTS " Next: `node inspect -p PID`, takeHeapSnapshot(): compare two in DevTools"

static const char node_heap[] =
    "JavaScript heap, which keeps memory that it has collected for a while. A leak only if objects stay reachable; "
    "--max-old-space-size limits it." NODE_SNAPSHOTS;
static const char node_buffers[] =
    "contents of Buffers or ArrayBuffers, outside the JavaScript heap, freed when their owner is collected. A leak if "
    "the program keeps them: process.memoryUsage().arrayBuffers is their sum." NODE_SNAPSHOTS;

/* Managed heaps, and allocators that malloc calls or that replace it. */
static const struct {
	const char *module, *function; /* prefixes of a frame's names, behind "lib"; NULL: any */
	const char *label;	       /* name of a growth part's runtime; NULL: none */
	enum mmt_pattern pattern;
	const char *hint;
} variants[] = {
    {"jvm.so", NULL, "Java", MMT_PATTERN_GC_HEAP,
     "heap of Java, which keeps memory that it has collected, up to -Xmx. A leak only if the part in use keeps growing "
     "(`jcmd PID GC.heap_info`). Next: `jcmd PID GC.class_histogram` shows which objects are kept"},
    {"coreclr", NULL, ".NET", MMT_PATTERN_GC_HEAP, dotnet_heap},
    {"clrgc", NULL, NULL, MMT_PATTERN_GC_HEAP, dotnet_heap},
    {"node", "v8::", "Node", MMT_PATTERN_GC_HEAP, node_heap},
    {NULL, "v8::", NULL, MMT_PATTERN_GC_HEAP,
     "JavaScript heap, which keeps memory that it has collected for a while. A leak only if objects stay reachable: "
     "compare two heap snapshots"},
    {"node", NULL, NULL, MMT_PATTERN_ARRAY_BUFFER, node_buffers},
    {NULL, "runtime.", "Go", MMT_PATTERN_GC_HEAP,
     "heap of Go: grew in calls from this stack; others may keep it. Memory goes back some time after it was "
     "collected; GOMEMLIMIT and GOGC limit it. A leak only if objects stay reachable. Next: `go tool pprof "
     "http://HOST:PORT/debug/pprof/heap` (net/http/pprof)"},
    {"beam.", NULL, "Erlang", MMT_PATTERN_GC_HEAP,
     "memory of the Erlang runtime: heaps of its processes, binaries and ETS tables. A leak only if these keep "
     "growing: erlang:memory() in its shell shows which kind grows; process_info(Pid, memory) and ets:info(Table, "
     "memory) show which process or table, and erlang:garbage_collect(Pid) frees binaries that a process holds"},
    {"jemalloc", NULL, NULL, MMT_PATTERN_HEAP,
     "jemalloc's memory: grew in calls from this stack; others may keep it. A heap profile "
     "(MALLOC_CONF=prof:true, jeprof) shows which blocks are not freed; "
     "MALLOC_CONF=dirty_decay_ms:1000,muzzy_decay_ms:0 gives free pages back sooner"},
    {"tcmalloc", NULL, NULL, MMT_PATTERN_HEAP,
     "tcmalloc's memory: grew in calls from this stack; others may keep it. A heap profile (HEAPPROFILE=FILE, "
     "pprof; libtcmalloc_minimal writes none, libtcmalloc does) shows which blocks are not freed; "
     "TCMALLOC_RELEASE_RATE=10 gives free pages back sooner"},
    {"mimalloc", NULL, NULL, MMT_PATTERN_HEAP,
     "mimalloc's memory: grew in calls from this stack; others may keep it. MIMALLOC_SHOW_STATS=1 shows how much "
     "is in use; MIMALLOC_PURGE_DELAY=0 (before version 2.1: MIMALLOC_RESET_DELAY=0) gives free pages back sooner"},
};

/* `start` NULL: any, even none. */
static bool matches(const char *name, const char *start)
{
	return !start || (name && starts_with(name, start));
}

static const char *hint_of_stacks(const struct mmt_row *row, uint64_t live_threads)
{
	uint64_t finished;

	if (row->unfreed_count < MAPPINGS_MIN)
		return NULL;
	/* Rows other than stacks have other mappings, too, so that their number is not that of threads. */
	if (row->name)
		return mmt_pattern_explanation(MMT_PATTERN_THREAD_STACK);
	finished = row->unfreed_count > live_threads ? row->unfreed_count - live_threads : 0;
	if (finished > row->unfreed_count / 2 && row->unfreed_bytes / row->unfreed_count * finished > STACK_CACHE_BYTES)
		return "stacks of threads that finished and were never joined or detached: a leak. Call pthread_join() "
		       "or pthread_detach() for every thread";
	return finished ? mmt_pattern_explanation(MMT_PATTERN_THREAD_STACK)
			: "stacks of threads that still run: a leak if their number keeps growing; a thread pool "
			  "limits them. Next: `gdb -p PID -batch -ex 'thread apply all bt'` shows what they wait for";
}

/* Whether most of what it mapped is still mapped, in many mappings, and of the class that the pattern is about. */
static bool is_hoard(const struct mmt_row *row)
{
	enum mmt_class memory_class = row->pattern == MMT_PATTERN_SHM ? MMT_CLASS_SHM : MMT_CLASS_FILE;

	return row->unfreed_count >= MAPPINGS_MIN && row->freed_count < row->unfreed_count &&
	       row->class_bytes[memory_class] > row->unfreed_bytes / 2;
}

const char *hints_of_row(const struct mmt_row *row, uint64_t live_threads, enum arena_use arenas)
{
	uint64_t committed = row->committed_bytes + row->committed_before_bytes;
	bool large = row->unfreed_bytes >= FLOOR_BYTES || committed >= FLOOR_BYTES;

	switch (row->pattern) {
	case MMT_PATTERN_THREAD_STACK:
		return hint_of_stacks(row, live_threads);
	case MMT_PATTERN_CODE:
		return row->unfreed_count >= CODE_MAPPINGS_MIN || committed >= CODE_BYTES_MIN
			   ? mmt_pattern_explanation(MMT_PATTERN_CODE)
			   : NULL;
	case MMT_PATTERN_ARENA:
		return large ? hint_of_arenas(arenas) : NULL;
	case MMT_PATTERN_AIO:
		return is_hoard(row) ? mmt_pattern_explanation(MMT_PATTERN_AIO) : NULL;
	case MMT_PATTERN_FILE:
	case MMT_PATTERN_MEMFD:
	case MMT_PATTERN_SHM:
		return large && is_hoard(row) ? mmt_pattern_explanation(row->pattern) : NULL;
	default:
		break;
	}
	for (size_t i = 0; large && i < sizeof(variants) / sizeof(*variants); i++) {
		for (size_t j = 0; variants[i].pattern == row->pattern && j < row->frame_count; j++) {
			const char *module = row->frames[j]->module;

			if (matches(module && starts_with(module, "lib") ? module + 3 : module, variants[i].module) &&
			    matches(row->frames[j]->function, variants[i].function))
				return variants[i].hint;
		}
	}
	return large ? mmt_pattern_explanation(row->pattern) : NULL;
}

static const char calls_unknown[] =
    "no row shows the code: calls outside the reported time may have mapped it. A longer "
    "window or recording shows their stacks; record with --faults=sampled to see which "
    "code touches new pages";
static const char made_writable[] =
    "touched after mprotect made it writable, which no row counts: record with --faults=sampled to see which code "
    "touches new pages";
static const char touched_only[] = "first touched without a system call, so no stack is recorded: record with "
				   "--faults=sampled to see which code touches new pages";

const char *hints_of_growth(const struct mmt_growth_part *part, uint64_t made_writable_bytes, enum arena_use arenas)
{
	if (part->bytes < (int64_t)FLOOR_BYTES)
		return NULL;
	switch (part->pattern) {
	case MMT_PATTERN_THREAD_STACK:
		return "threads used more of their stacks than before (deep calls, large local variables); not a leak";
	case MMT_PATTERN_FILE:
		if (part->copied_bytes > part->bytes / 2)
			return "mapped private and writable: pages that the process wrote are memory of its own, until "
			       "munmap; those that it only read are page cache";
		return "pages of a mapped file are page cache, which the kernel takes back when memory is short unless "
		       "the process changed them; not a leak";
	case MMT_PATTERN_GC_HEAP:
		for (size_t i = 0; part->runtime && i < sizeof(variants) / sizeof(*variants); i++) {
			if (variants[i].label && !strcmp(variants[i].label, part->runtime))
				return variants[i].hint;
		}
		return mmt_pattern_explanation(part->pattern);
	case MMT_PATTERN_ARENA:
		return hint_of_arenas(arenas);
	case MMT_PATTERN_HEAP:
		return mmt_pattern_explanation(part->pattern);
	default:
		break;
	}
	if (part->pattern || part->place != MMT_GROWTH_BEFORE || part->toucher_count ||
	    (part->memory_class != MMT_CLASS_ANON && part->memory_class != MMT_CLASS_SHM))
		return NULL;
	if (made_writable_bytes == HINTS_BETWEEN)
		return "it grew between the two recordings: only one of that time shows the code";
	if (made_writable_bytes == HINTS_CALLS_UNKNOWN)
		return calls_unknown;
	return made_writable_bytes >= (uint64_t)part->bytes / 2 ? made_writable : touched_only;
}

const char *hints_with_faults(const char *hint, bool unattributed)
{
	if (hint != calls_unknown && hint != made_writable && hint != touched_only)
		return hint;
	return unattributed ? NULL
			    : "page faults name nobody here: who touches memory of a runtime is rarely who keeps it";
}

const char *hints_with_census(const char *hint)
{
	if (hint && (hint == mmt_pattern_explanation(MMT_PATTERN_HEAP) || hint == arena_of_one_thread ||
		     hint == arenas_limited))
		return "malloc heap: grew in calls from this stack; others may keep it. The line \"malloc heap\" "
		       "shows which blocks in use grow (a leak if in every reading, or a cache), or that free ones lie "
		       "between them (fragmentation); malloc_trim(0) gives free pages back";
	return hint && hint == mmt_pattern_explanation(MMT_PATTERN_ARENA)
		   ? "malloc arena: grew in calls from this stack; others may keep it. The line \"malloc heap\" "
		     "shows which blocks in use grow (a leak if in every reading, or a cache), or that free ones do: "
		     "then try MALLOC_ARENA_MAX=2 in its environment, or malloc_trim(0)"
		   : hint;
}

#define HUGE_FLOOR_BYTES (8ull << 20)
#define HUGE_SAMPLE_BYTES_MIN (512u << 10) /* of at least four huge pages */
#define HUGE_SHARE 4			   /* a smaller share of the huge pages than 1/this is harmless */
#define HUGE_MEMORY_SHARE 16		   /* nor is less than 1/this of the memory */

const char *hints_of_huge_pages(const struct mmt_huge_pages *huge, uint64_t memory_bytes, bool always)
{
	if (!huge->bytes || huge->zero_bytes == MMT_UNKNOWN || huge->zero_bytes < HUGE_FLOOR_BYTES ||
	    huge->sampled_bytes < HUGE_SAMPLE_BYTES_MIN || huge->zero_bytes < huge->bytes / HUGE_SHARE ||
	    huge->zero_bytes < memory_bytes / HUGE_MEMORY_SHARE)
		return NULL;
	return always ? "a huge page takes 2 MiB of RSS as soon as a byte of it is written, and this system gives them "
			"to every program. `echo madvise >/sys/kernel/mm/transparent_hugepage/enabled` limits them to "
			"programs that ask for them; for this one alone, prctl(PR_SET_THP_DISABLE) turns them off when "
			"it starts, or madvise(MADV_NOHUGEPAGE) for one mapping"
		      : "a huge page takes 2 MiB of RSS as soon as a byte of it is written. The program or its "
			"allocator asks for them with madvise(MADV_HUGEPAGE): ask only for memory that is filled soon. "
			"prctl(PR_SET_THP_DISABLE) turns them off when it starts";
}
