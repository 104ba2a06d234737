// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/patterns.h"

#include <string.h>

#include "analysis/origin.h"

#define DEPTH 12 /* frames that are looked at: an allocator's work lies near the call */

#define ALL_CLASSES ((1u << MMT_CLASS_KINDS) - 1)
#define PRIVATE_MEMORY (1u << MMT_CLASS_ANON | 1u << MMT_CLASS_GC_RESERVE | 1u << MMT_CLASS_JIT)

/* A function that gives its pattern away. The first rule that any of the inner frames matches counts. */
static const struct rule {
	const char *module;   /* start of its name; NULL: any */
	const char *function; /* start of its name, a last '$' also its end */
	uint32_t classes;
	enum mmt_pattern pattern; /* MMT_PATTERN_NONE: looks like one below but is the program's own */
} rules[] = {
    /* V8 keeps the contents of ArrayBuffers apart from its heap: those belong to the program. */
    {NULL, "v8::internal::BackingStore", ALL_CLASSES, MMT_PATTERN_NONE},
    {NULL, "v8::internal::CodeRange", ALL_CLASSES, MMT_PATTERN_CODE},
    {NULL, "v8::internal::MemoryAllocator::", ALL_CLASSES, MMT_PATTERN_GC_HEAP},
    {NULL, "v8::internal::Heap::", ALL_CLASSES, MMT_PATTERN_GC_HEAP},
    {NULL, "v8::internal::IsolateAllocator", ALL_CLASSES, MMT_PATTERN_GC_HEAP},
    {NULL, "v8::base::BoundedPageAllocator", ALL_CLASSES, MMT_PATTERN_GC_HEAP},
    /* HotSpot: what takes memory for code asks the same functions as what takes it for the heap. */
    {"libjvm.so", "CodeHeap::", ALL_CLASSES, MMT_PATTERN_CODE},
    {"libjvm.so", "CodeCache::", ALL_CLASSES, MMT_PATTERN_CODE},
    {"libjvm.so", "os::reserve_memory", ALL_CLASSES, MMT_PATTERN_GC_HEAP},
    {"libjvm.so", "os::commit_memory", ALL_CLASSES, MMT_PATTERN_GC_HEAP},
    {"libjvm.so", "os::pd_", ALL_CLASSES, MMT_PATTERN_GC_HEAP},
    {"libjvm.so", "os::attempt_reserve_memory", ALL_CLASSES, MMT_PATTERN_GC_HEAP},
    /* .NET */
    {"libcoreclr.so", "ExecutableAllocator::", ALL_CLASSES, MMT_PATTERN_CODE},
    {"libcoreclr.so", "UnlockedLoaderHeap::", ALL_CLASSES, MMT_PATTERN_CODE},
    {"libcoreclr.so", "EEJitManager::", ALL_CLASSES, MMT_PATTERN_CODE},
    {"libcoreclr.so", "VMToOSInterface::", ALL_CLASSES, MMT_PATTERN_CODE},
    {"libcoreclr.so", "MAPMapPEFile", ALL_CLASSES, MMT_PATTERN_CODE},
    {NULL, "GCToOSInterface::", ALL_CLASSES, MMT_PATTERN_GC_HEAP},
    {NULL, "WKS::gc_heap::", ALL_CLASSES, MMT_PATTERN_GC_HEAP},
    {NULL, "SVR::gc_heap::", ALL_CLASSES, MMT_PATTERN_GC_HEAP},
    /* Go */
    {NULL, "runtime.sysReserve", ALL_CLASSES, MMT_PATTERN_GC_HEAP},
    {NULL, "runtime.sysAlloc", ALL_CLASSES, MMT_PATTERN_GC_HEAP},
    {NULL, "runtime.sysMap", ALL_CLASSES, MMT_PATTERN_GC_HEAP},
    {NULL, "runtime.sysUsed", ALL_CLASSES, MMT_PATTERN_GC_HEAP},
    {NULL, "runtime.(*mheap).", ALL_CLASSES, MMT_PATTERN_GC_HEAP},
    /* malloc of glibc, with debug information */
    {NULL, "arena_get2", PRIVATE_MEMORY, MMT_PATTERN_ARENA},
    {NULL, "arena_get_retry", PRIVATE_MEMORY, MMT_PATTERN_ARENA},
    {NULL, "_int_new_arena", PRIVATE_MEMORY, MMT_PATTERN_ARENA},
    {NULL, "new_heap$", PRIVATE_MEMORY, MMT_PATTERN_ARENA},
    {NULL, "alloc_new_heap", PRIVATE_MEMORY, MMT_PATTERN_ARENA},
    {NULL, "grow_heap$", PRIVATE_MEMORY, MMT_PATTERN_ARENA},
    {NULL, "__default_morecore", 1u << MMT_CLASS_HEAP, MMT_PATTERN_HEAP},
    {NULL, "__glibc_morecore", 1u << MMT_CLASS_HEAP, MMT_PATTERN_HEAP},
    {NULL, "sysmalloc", 1u << MMT_CLASS_HEAP, MMT_PATTERN_HEAP},
    /* Other allocators' pools, which any of their callers may happen to extend */
    {NULL, "_PyObject_Arena", ALL_CLASSES, MMT_PATTERN_HEAP},
    {NULL, "_PyMem_Arena", ALL_CLASSES, MMT_PATTERN_HEAP},
    {"libjemalloc.so", "", ALL_CLASSES, MMT_PATTERN_HEAP},
    {"libtcmalloc", "", ALL_CLASSES, MMT_PATTERN_HEAP},
    {"libmimalloc", "", ALL_CLASSES, MMT_PATTERN_HEAP},
    {NULL, "allocate_stack$", ALL_CLASSES, MMT_PATTERN_THREAD_STACK},
    {NULL, "allocate_thread_stack$", ALL_CLASSES, MMT_PATTERN_THREAD_STACK},
    {NULL, "_dl_map_segments", ALL_CLASSES, MMT_PATTERN_CODE},
    {NULL, "_dl_map_object", ALL_CLASSES, MMT_PATTERN_CODE},
    {NULL, "map_library$", ALL_CLASSES, MMT_PATTERN_CODE},
};

const char *mmt_pattern_name(enum mmt_pattern pattern)
{
	static const char *const names[MMT_PATTERN_KINDS] = {
	    [MMT_PATTERN_ARENA] = "arena", [MMT_PATTERN_THREAD_STACK] = "thread-stack",
	    [MMT_PATTERN_HEAP] = "heap",   [MMT_PATTERN_GC_HEAP] = "gc-heap",
	    [MMT_PATTERN_CODE] = "code",
	};

	return pattern < MMT_PATTERN_KINDS ? names[pattern] : NULL;
}

const char *mmt_pattern_explanation(enum mmt_pattern pattern)
{
	static const char *const explanations[MMT_PATTERN_KINDS] = {
	    [MMT_PATTERN_ARENA] = "an arena of malloc: addresses reserved for the threads that use it, of which only "
				  "the committed part is "
				  "memory; no leak unless the committed part keeps growing, then use a heap profiler, "
				  "or MALLOC_ARENA_MAX",
	    [MMT_PATTERN_THREAD_STACK] =
		"a thread's stack: the C library keeps up to 40 MiB of them for new threads; more means threads that "
		"still run, or ended and were neither joined nor detached",
	    [MMT_PATTERN_HEAP] = "grown by an allocator, for whoever needed the next piece: freed blocks stay with it; "
				 "when it keeps growing, "
				 "a heap profiler tells which blocks",
	    [MMT_PATTERN_GC_HEAP] = "the heap of a managed runtime, which keeps what it has collected; when it keeps "
				    "growing, the runtime's own "
				    "heap dump tells which objects",
	    [MMT_PATTERN_CODE] =
		"code and data of programs, loaded or generated: stays while they are in use; when it keeps "
		"growing, look for libraries loaded and code generated again and again",
	};

	return pattern < MMT_PATTERN_KINDS ? explanations[pattern] : NULL;
}

static bool starts_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static bool matches_function(const char *function, const char *rule)
{
	size_t length = strlen(rule);

	if (length && rule[length - 1] == '$')
		return strlen(function) == length - 1 && !strncmp(function, rule, length - 1);
	return starts_with(function, rule);
}

static bool matches(const struct rule *rule, const struct mmt_frame *frame)
{
	if (rule->module && (!frame->module || !starts_with(frame->module, rule->module)))
		return false;
	return !*rule->function || (frame->function && matches_function(frame->function, rule->function));
}

static bool is_one_of(const char *function, const char *const *names, size_t count)
{
	for (size_t i = 0; function && i < count; i++) {
		if (!strcmp(function, names[i]))
			return true;
	}
	return false;
}

static bool is_malloc(const char *function)
{
	static const char *const names[] = {"malloc",	     "calloc",		"realloc",  "__libc_malloc",
					    "__libc_calloc", "__libc_realloc",	"memalign", "posix_memalign",
					    "aligned_alloc", "__libc_memalign", "free",	    "cfree"};

	return is_one_of(function, names, sizeof(names) / sizeof(*names));
}

static bool is_thread_creation(const char *function)
{
	return function && (starts_with(function, "pthread_create") || starts_with(function, "__pthread_create"));
}

/* A stripped C library names only the function it was entered by: that and the kind of memory must do. */
static enum mmt_pattern find_by_entry(const struct mmt_frame *const *frames, size_t frame_count,
				      enum mmt_class memory_class)
{
	for (size_t i = 0; i < frame_count && origin_is_c_library(frames[i]); i++) {
		if (is_malloc(frames[i]->function)) {
			if (memory_class == MMT_CLASS_HEAP)
				return MMT_PATTERN_HEAP;
			return memory_class == MMT_CLASS_GC_RESERVE ? MMT_PATTERN_ARENA : MMT_PATTERN_NONE;
		}
		if (is_thread_creation(frames[i]->function))
			return MMT_PATTERN_THREAD_STACK;
	}
	return MMT_PATTERN_NONE;
}

/* And a stripped runtime only its file. */
static enum mmt_pattern find_by_module(const struct mmt_frame *const *frames, size_t frame_count,
				       enum mmt_class memory_class)
{
	static const char *const runtimes[] = {"libcoreclr.so", "libclrgc", "libjvm.so", "libclrjit.so"};
	size_t origin = origin_find(frames, frame_count);

	if (frame_count && origin_is_loader(frames[0]) && memory_class == MMT_CLASS_FILE)
		return MMT_PATTERN_CODE;
	if (origin == frame_count || !frames[origin]->module)
		return MMT_PATTERN_NONE;
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(*runtimes); i++) {
		if (!starts_with(frames[origin]->module, runtimes[i]))
			continue;
		if (memory_class == MMT_CLASS_GC_RESERVE)
			return MMT_PATTERN_GC_HEAP;
		return memory_class == MMT_CLASS_JIT ? MMT_PATTERN_CODE : MMT_PATTERN_NONE;
	}
	return MMT_PATTERN_NONE;
}

enum mmt_pattern patterns_find(const struct mmt_frame *const *frames, size_t frame_count, enum mmt_class memory_class)
{
	size_t depth = frame_count < DEPTH ? frame_count : DEPTH;
	enum mmt_pattern pattern;

	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		if (!(rules[i].classes >> memory_class & 1))
			continue;
		for (size_t frame = 0; frame < depth; frame++) {
			if (matches(&rules[i], frames[frame]))
				return rules[i].pattern;
		}
	}
	pattern = find_by_entry(frames, frame_count, memory_class);
	return pattern ? pattern : find_by_module(frames, frame_count, memory_class);
}

bool patterns_are_decided(const struct mmt_frame *const *frames, size_t frame_count, size_t *origin)
{
	while (*origin < frame_count && origin_is_c_library(frames[*origin]))
		++*origin;
	return frame_count >= DEPTH && *origin < frame_count;
}
