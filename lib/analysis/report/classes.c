// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/report/classes.h"

#include "analysis/report/stack-origin.h"
#include "base/strings.h"

#define ARENA_BYTES (64ULL << 20) /* glibc's malloc reserves this much for an arena, aligned to it */

#define GUARD_BYTES_MAX (64u << 10) /* below a thread's stack */
#define STACK_BYTES_MAX (16u << 20) /* larger ones are merged with what lies above, or no stacks */

enum mmt_class classes_with_pattern(enum mmt_class memory_class, enum mmt_pattern pattern)
{
	if (memory_class == MMT_CLASS_GC_RESERVE && pattern == MMT_PATTERN_ARENA)
		return MMT_CLASS_ANON;
	if ((memory_class == MMT_CLASS_ANON || memory_class == MMT_CLASS_GC_RESERVE) &&
	    pattern == MMT_PATTERN_THREAD_STACK)
		return MMT_CLASS_THREAD_STACK;
	return memory_class;
}

/* The shape of an arena that is not full. */
static bool is_arena_shaped(const struct space *space, const struct space_interval *interval)
{
	uint64_t end = interval->start + ARENA_BYTES;
	const struct space_interval *next;

	if (interval->start % ARENA_BYTES || interval->end >= end)
		return false;
	next = space_next(space, interval->end);
	return next && next->start == interval->end && !next->attributes.protection && next->end >= end;
}

/* The part of the interval from the last multiple of an arena's size on. */
static struct space_interval last_part(const struct space_interval *interval)
{
	struct space_interval part = *interval;

	part.start = (interval->end - 1) / ARENA_BYTES * ARENA_BYTES;
	return part;
}

bool classes_is_above_guard(const struct space *space, const struct space_interval *interval)
{
	const struct space_interval *below = interval->start ? space_next(space, interval->start - 1) : NULL;

	return below && below->end == interval->start && !below->attributes.protection && !below->attributes.inode &&
	       !below->attributes.shared && below->end - below->start <= GUARD_BYTES_MAX &&
	       interval->attributes.protection && !interval->attributes.shared &&
	       interval->end - interval->start <= STACK_BYTES_MAX;
}

#define DEPTH 12 /* number of inner frames that are examined: an allocator's frames are near the call */

#define ALL_CLASSES ((1u << MMT_CLASS_KINDS) - 1)
#define PRIVATE_MEMORY (1u << MMT_CLASS_ANON | 1u << MMT_CLASS_GC_RESERVE | 1u << MMT_CLASS_JIT)

/* Functions that identify a pattern. The first rule that matches any of the inner frames applies. */
static const struct rule {
	const char *module; /* start of its name; NULL: any */
	uint32_t classes;
	enum mmt_pattern pattern;
	const char *functions[10]; /* prefixes of their names; with '$' at the end, complete names; "": any */
} rules[] = {
    /* V8 allocates the contents of ArrayBuffers outside its heap. */
    {NULL, ALL_CLASSES, MMT_PATTERN_ARRAY_BUFFER, {"v8::internal::BackingStore", "node::NodeArrayBufferAllocator::"}},
    {NULL, ALL_CLASSES, MMT_PATTERN_CODE, {"v8::internal::CodeRange"}},
    {NULL,
     ALL_CLASSES,
     MMT_PATTERN_GC_HEAP,
     {"v8::internal::MemoryAllocator::", "v8::internal::Heap::", "v8::internal::IsolateAllocator",
      "v8::base::BoundedPageAllocator"}},
    /* HotSpot uses the same functions to map memory for code and for the heap. */
    {"libjvm.so", ALL_CLASSES, MMT_PATTERN_CODE, {"CodeHeap::", "CodeCache::"}},
    {"libjvm.so", PRIVATE_MEMORY, MMT_PATTERN_METASPACE, {"metaspace::", "Metaspace::", "VirtualSpaceNode::"}},
    {"libjvm.so",
     ALL_CLASSES,
     MMT_PATTERN_GC_HEAP,
     {"os::reserve_memory", "os::commit_memory", "os::pd_", "os::attempt_reserve_memory"}},
    /* .NET */
    {"libcoreclr.so",
     ALL_CLASSES,
     MMT_PATTERN_CODE,
     {"ExecutableAllocator::", "UnlockedLoaderHeap::", "EEJitManager::", "VMToOSInterface::", "MAPMapPEFile"}},
    /* .NET, Go and Erlang */
    {NULL,
     ALL_CLASSES,
     MMT_PATTERN_GC_HEAP,
     {"GCToOSInterface::", "WKS::gc_heap::", "SVR::gc_heap::", "runtime.sysReserve", "runtime.sysAlloc",
      "runtime.sysMap", "runtime.sysUsed", "runtime.(*mheap).", "erts_mmap", "erts_mseg_"}},
    /* malloc of glibc, with debug information */
    {NULL,
     PRIVATE_MEMORY,
     MMT_PATTERN_ARENA,
     {"arena_get2", "arena_get_retry", "_int_new_arena", "new_heap$", "alloc_new_heap", "grow_heap$"}},
    {NULL, 1u << MMT_CLASS_HEAP, MMT_PATTERN_HEAP, {"__default_morecore", "__glibc_morecore", "sysmalloc"}},
    /* HotSpot's own malloc allocations that are large enough for a separate mapping */
    {"libjvm.so",
     1u << MMT_CLASS_ANON,
     MMT_PATTERN_DIRECT_BUFFER,
     {"Unsafe_AllocateMemory", "Unsafe_ReallocateMemory"}},
    {"libjvm.so", 1u << MMT_CLASS_ANON, MMT_PATTERN_JVM_NATIVE, {"os::malloc", "os::realloc"}},
    /* pools of other allocators: the caller that extends one is not the cause */
    {NULL, ALL_CLASSES, MMT_PATTERN_PYTHON, {"_PyObject_Arena", "_PyMem_Arena"}},
    {"libjemalloc.so", ALL_CLASSES, MMT_PATTERN_HEAP, {""}},
    {"libtcmalloc", ALL_CLASSES, MMT_PATTERN_HEAP, {""}},
    {"libmimalloc", ALL_CLASSES, MMT_PATTERN_HEAP, {""}},
    {NULL, ALL_CLASSES, MMT_PATTERN_THREAD_STACK, {"allocate_stack$", "allocate_thread_stack$"}},
    {NULL, ALL_CLASSES, MMT_PATTERN_CODE, {"_dl_map_segments", "_dl_map_object", "map_library$"}},
};

static bool matches(const struct rule *rule, const struct mmt_frame *frame)
{
	if (rule->module && (!frame->module || !starts_with(frame->module, rule->module)))
		return false;
	return array_find(name, rule->functions, sizeof(rule->functions) / sizeof(*rule->functions),
			  *name && (!**name || (frame->function && origin_matches(frame->function, *name))));
}

static bool is_mprotect(const struct mmt_frame *frame)
{
	return frame->function && !strcmp(frame->function + strspn(frame->function, "_"), "mprotect");
}

/* A stripped C library has a name only for its exported function; decide from that and the class. */
static enum mmt_pattern find_by_entry(const struct mmt_frame *const *frames, size_t frame_count,
				      enum mmt_class memory_class)
{
	for (size_t i = 0; i < frame_count && origin_is_c_library(frames[i]); i++) {
		const char *function = frames[i]->function;

		if (origin_is_allocator(function) ||
		    (function && (!strcmp(function, "free") || !strcmp(function, "cfree")))) {
			if (memory_class == MMT_CLASS_HEAP)
				return MMT_PATTERN_HEAP;
			/* malloc changes permissions only to grow an arena. */
			return memory_class == MMT_CLASS_GC_RESERVE ||
				       ((PRIVATE_MEMORY >> memory_class & 1) && is_mprotect(frames[0]))
				   ? MMT_PATTERN_ARENA
				   : MMT_PATTERN_NONE;
		}
		if (function && (starts_with(function, "pthread_create") || starts_with(function, "__pthread_create")))
			return MMT_PATTERN_THREAD_STACK;
	}
	return MMT_PATTERN_NONE;
}

/* A stripped runtime is recognized by its module only. */
static enum mmt_pattern find_by_module(const struct mmt_frame *const *frames, size_t frame_count,
				       enum mmt_class memory_class)
{
	static const char *const runtimes[] = {"libcoreclr.so", "libclrgc", "libjvm.so", "libclrjit.so"};
	size_t origin = origin_find(frames, frame_count);
	const char *module;

	if (frame_count && origin_is_loader(frames[0]) && memory_class == MMT_CLASS_FILE)
		return MMT_PATTERN_CODE;
	module = origin < frame_count ? frames[origin]->module : NULL;
	if (!module)
		return MMT_PATTERN_NONE;
	/* Python itself maps private memory only for its arenas; what is larger than their objects is malloc's. */
	if ((starts_with(module, "python3") || starts_with(module, "libpython3")) && !frames[origin]->function &&
	    origin && origin <= 2 && !origin_is_allocator(frames[origin - 1]->function) &&
	    memory_class == MMT_CLASS_ANON)
		return MMT_PATTERN_PYTHON;
	if (!array_find(runtime, runtimes, sizeof(runtimes) / sizeof(*runtimes), starts_with(module, *runtime)))
		return MMT_PATTERN_NONE;
	/* .NET commits parts of its heap's range when it needs them. */
	if (memory_class == MMT_CLASS_GC_RESERVE || (memory_class == MMT_CLASS_ANON && is_mprotect(frames[0])))
		return MMT_PATTERN_GC_HEAP;
	return memory_class == MMT_CLASS_JIT ? MMT_PATTERN_CODE : MMT_PATTERN_NONE;
}

enum mmt_pattern patterns_find(const struct mmt_frame *const *frames, size_t frame_count, enum mmt_class memory_class)
{
	size_t depth = smaller_of(frame_count, DEPTH);
	enum mmt_pattern pattern = find_by_entry(frames, frame_count, memory_class);

	/* glibc extended the heap; the caller does not matter. */
	if (pattern)
		return pattern;
	array_each(rule, rules, sizeof(rules) / sizeof(*rules)) {
		if (rule->classes >> memory_class & 1 && array_find(frame, frames, depth, matches(rule, *frame)))
			return rule->pattern;
	}
	return find_by_module(frames, frame_count, memory_class);
}

enum mmt_pattern patterns_of_shared(enum mmt_class memory_class, const char *path)
{
	if (memory_class == MMT_CLASS_SHM)
		return MMT_PATTERN_SHM;
	if (memory_class != MMT_CLASS_FILE)
		return MMT_PATTERN_NONE;
	if (starts_with(path, "/[aio]"))
		return MMT_PATTERN_AIO;
	/* Java with ZGC. */
	if (starts_with(path, "/memfd:java_heap"))
		return MMT_PATTERN_GC_HEAP;
	if (starts_with(path, "/memfd:"))
		return MMT_PATTERN_MEMFD;
	/* Nothing is known about device mappings and the kernel's rings. */
	return path[0] == '/' && path[1] != '[' && !starts_with(path, "/dev/") ? MMT_PATTERN_FILE : MMT_PATTERN_NONE;
}

/* Heaps of managed runtimes */

/* Address ranges of heaps: HotSpot's with compressed pointers (32 bits), and Go's first TiB. */
#define JAVA_HEAP_START (2ULL << 30)
#define JAVA_HEAP_END (32ULL << 30)
#define GO_HEAP_START 0xc000000000ULL
#define GO_HEAP_END (GO_HEAP_START + (1ULL << 40))

#define RANGE_PART_BYTES (1ULL << 30)  /* a heap is reserved in one range with at least one part of this size */
#define JAVA_RANGE_BYTES JAVA_HEAP_END /* smaller heaps have compressed pointers */
#define REGION_BYTES (1ULL << 20)      /* regions of a heap begin at multiples of this */
#define FIRST_PART_BYTES (8ULL << 20)  /* unless other memory below is in one mapping with the first ones */
#define V8_PAGE_BYTES (256ULL << 10)

static bool is_runtime(const struct heap_finder *finder, const char *name)
{
	return finder->runtime && !strcmp(finder->runtime->name, name);
}

/* Private anonymous memory, accessible or reserved. */
static bool can_be_heap(const struct space_interval *interval)
{
	return !interval->attributes.shared && !interval->attributes.inode && !interval->attributes.heap &&
	       !(interval->attributes.protection & PROT_EXEC);
}

static bool may_be_go_heap(const struct space_interval *interval)
{
	return interval->start >= GO_HEAP_START && interval->end <= GO_HEAP_END && can_be_heap(interval);
}

bool classes_may_have_go_heap(const struct space *space)
{
	const struct space_interval *interval = space_next(space, GO_HEAP_START);

	return interval && may_be_go_heap(interval);
}

static bool is_go_heap(const struct heap_finder *finder, const struct space_interval *interval)
{
	return is_runtime(finder, "go") && may_be_go_heap(interval);
}

struct heap_finder heap_finder_create(const struct space *space, const struct runtime *runtime, bool glibc)
{
	struct heap_finder finder = {.space = space, .runtime = runtime};
	uint64_t least = is_runtime(&finder, "java") ? JAVA_RANGE_BYTES : 0;
	uint64_t mapped_end = 0; /* of the interval before */
	uint64_t start = 0;	 /* where regions may begin; 0: none */
	uint64_t first = 0;	 /* of the range so far; 0: no large part */

	/* An address proves nothing: other allocators align their memory too. */
	space_each(interval, space, glibc && !finder.has_arenas) {
		struct space_interval part = last_part(interval);

		finder.has_arenas = can_be_heap(interval) && interval->attributes.protection &&
				    part.start >= interval->start && is_arena_shaped(space, &part) &&
				    !is_go_heap(&finder, interval);
	}
	if (!is_runtime(&finder, "java") && !is_runtime(&finder, "dotnet"))
		return finder;
	/* Of adjacent mappings, those belong to a heap that lie from `start` to the end of the last large part. */
	space_each(interval, space, true) {
		uint64_t bytes = interval->end - interval->start;

		if (interval->start != mapped_end || !can_be_heap(interval))
			start = first = 0;
		mapped_end = interval->end;
		if (!can_be_heap(interval))
			continue;
		/* Other memory ends a sequence of regions that has no large part yet. */
		if (interval->attributes.protection &&
		    (is_arena_shaped(space, interval) || classes_is_above_guard(space, interval) ||
		     (interval->start % REGION_BYTES && bytes < FIRST_PART_BYTES)))
			start = 0;
		else if (interval->attributes.protection && (!start || interval->start % REGION_BYTES))
			start = interval->start;
		if (bytes < RANGE_PART_BYTES || !start)
			continue;
		first = first ? first : start;
		if (interval->end - first > finder.end - finder.start) {
			finder.start = first;
			finder.end = interval->end;
		}
	}
	if (finder.end - finder.start < least)
		finder.start = finder.end = 0;
	return finder;
}

bool heap_finder_is_arena(const struct heap_finder *finder, const struct space_interval *interval,
			  enum mmt_class memory_class)
{
	bool full = interval->start % ARENA_BYTES == 0 && interval->end - interval->start == ARENA_BYTES;

	return finder->has_arenas && memory_class == MMT_CLASS_ANON && interval->attributes.protection &&
	       !is_go_heap(finder, interval) && (full || is_arena_shaped(finder->space, interval));
}

uint64_t heap_finder_find_arena(const struct heap_finder *finder, const struct space_interval *interval,
				enum mmt_class memory_class)
{
	struct space_interval last = last_part(interval);

	if (memory_class == MMT_CLASS_THREAD_STACK)
		memory_class = MMT_CLASS_ANON;
	return last.start >= interval->start && heap_finder_is_arena(finder, &last, memory_class) ? last.start
												  : interval->end;
}

enum gc_heap heap_finder_ask(const struct heap_finder *finder, const struct space_interval *interval,
			     enum mmt_class memory_class, const char *path)
{
	uint64_t start = interval->start, end = interval->end;
	bool in_range = start >= finder->start && end <= finder->end;

	/* ZGC */
	if (memory_class == MMT_CLASS_FILE && starts_with(path, "/memfd:java_heap"))
		return GC_HEAP_JAVA;
	if (memory_class != MMT_CLASS_ANON)
		return GC_HEAP_NONE;
	if (is_runtime(finder, "java") && (in_range || (start >= JAVA_HEAP_START && end <= JAVA_HEAP_END)))
		return GC_HEAP_JAVA;
	if (is_runtime(finder, "dotnet") && in_range)
		return GC_HEAP_DOTNET;
	/* Pages of V8's heap, which the kernel may show as one mapping. */
	if (is_runtime(finder, "node") && start % V8_PAGE_BYTES == 0 && end % V8_PAGE_BYTES == 0 &&
	    !classes_is_above_guard(finder->space, interval))
		return GC_HEAP_NODE;
	return is_go_heap(finder, interval) ? GC_HEAP_GO : GC_HEAP_NONE;
}

const char *gc_heap_name(enum gc_heap heap)
{
	static const char *const names[] = {
	    [GC_HEAP_GO] = "Go", [GC_HEAP_JAVA] = "Java", [GC_HEAP_DOTNET] = ".NET", [GC_HEAP_NODE] = "Node"};

	return names[heap];
}
