// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/resolver/known-runtimes.h"

#include <ctype.h>
#include <string.h>
#include <sys/mman.h>

#include "analysis/report/classes.h"
#include "base/strings.h"

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

static const struct runtime runtimes[] = {
    {.name = "dotnet",
     .label = ".NET",
     .advice = "record with --ask-runtime, or start it with DOTNET_PerfMapEnabled=1 in its environment (3: without "
	       "jitdump)"},
    {.name = "java",
     .label = "Java",
     .advice = "record with --ask-runtime, run `jcmd PID Compiler.perfmap` before recording ends, or start it with "
	       "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
     .frame_pointers = "-XX:+PreserveFramePointer",
     .interpreted = "Interpreter",
     .interpreted_advice = "start it with -Xcomp, which compiles every method (slow to start)"},
    {.name = "node",
     .label = "Node",
     .advice = "start it with --perf-basic-prof --interpreted-frames-native-stack",
     .interpreted = "Builtins_InterpreterEntryTrampoline",
     .interpreted_named = "JS:~",
     .interpreted_advice = "start it with --perf-basic-prof --interpreted-frames-native-stack"},
    {.name = "python",
     .label = "Python",
     .advice = "start it with -X perf or PYTHONPERFSUPPORT=1 in its environment (Python 3.12 and later)",
     .interpreted = "",
     .interpreted_named = "py::",
     .interpreted_advice = "start it with -X perf or PYTHONPERFSUPPORT=1 in its environment (Python 3.12 and later)"},
    {.name = "mono",
     .label = "Mono",
     .advice = "start it with --jitmap",
     .frame_pointers = "MONO_DEBUG=disable_omit_fp",
     .in_environment = true},
    {.name = "php",
     .label = "PHP",
     .advice = "start it with -d opcache.jit_debug=0x10",
     .interpreter = "execute_ex",
     .complete_stacks =
	 "finding their callers takes the instructions of the compiled functions, which are not in the recording; "
	 "start it with -d opcache.jit=off to have them interpreted",
     .interpreted = "",
     .interpreted_named = "",
     .interpreted_advice = "start it with -d opcache.enable_cli=1 -d opcache.jit_buffer_size=32M -d opcache.jit=1205 "
			   "-d opcache.jit_debug=0x10, which names the innermost of nested functions"},
    {.name = "erlang",
     .label = "Erlang",
     .advice = "start it with +JPperf map",
     .complete_stacks = "its compiled functions run on stacks of their own, which are not recorded; no option "
			"changes that"},
    {.name = "luajit",
     .label = "LuaJIT",
     .advice = "it writes no perf map; start it with -joff to have its traces interpreted",
     .complete_stacks =
	 "its traces keep no frame pointers and have no unwind tables; start it with -joff, or call jit.off(), "
	 "to have them interpreted"},
    {.name = "ruby",
     .label = "Ruby",
     .advice = "start it with --yjit-perf (Ruby 3.3 and later)",
     .complete_stacks =
	 "code compiled by YJIT has no unwind tables; start it with --yjit-perf (Ruby 3.3 and later), which keeps "
	 "frame pointers, or without --yjit",
     .interpreted = "",
     .interpreted_named = "",
     .interpreted_advice = "start it with --yjit --yjit-call-threshold=1 --yjit-perf (Ruby 3.3 and later), which "
			   "names the functions that it compiles"},
};

/* Prefixes of file names. Libraries come first: a program may link to one under another name. */
static const struct {
	const char *prefix;
	const char *runtime; /* which runs where a file of this name, a version after it, is mapped; NULL: not known */
	bool is_own;	     /* every function in a module whose name begins like this is the runtime's own */
} files[] = {
    {"libcoreclr.so", "dotnet", false},
    {"libcoreclr", NULL, true},
    {"libclrjit.so", NULL, true},
    {"libclrgc", NULL, true},
    {"libhostfxr.so", NULL, true},
    {"libhostpolicy.so", NULL, true},
    {"libSystem.", NULL, true},
    {"libjvm.so", "java", true},
    {"libjli.so", NULL, true},
    {"libnode.so", "node", true},
    {"libv8", NULL, true},
    {"libpython3", "python", false},
    {"libpython", NULL, true},
    {"libmonosgen", "mono", false},
    {"libmono", NULL, true},
    {"libruby", "ruby", true},
    {"libphp", "php", true},
    {"libluajit", "luajit", true},
    {"node", "node", false},
    {"nodejs", "node", false},
    {"python3", "python", false},
    {"mono-sgen", "mono", false},
    {"mono", "mono", false},
    {"php", "php", false},
    {"beam.smp", "erlang", false},
    {"beam.jit", "erlang", false},
    {"ruby", "ruby", false},
    {"luajit", "luajit", false},
    {"luajit-2.1.0-beta", "luajit", false},
};

/* Programs whose main function starts a runtime; the rest of their code is the runtime's own. */
static const char *const hosts[] = {"dotnet", "java", "node", "bun", "deno"};

const struct runtime *runtimes_find(const char *name)
{
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(*runtimes); i++) {
		if (!strcmp(runtimes[i].name, name))
			return &runtimes[i];
	}
	return NULL;
}

/*
 * Whether the text is a version: digits, dots and dashes, or a suffix of a library such as ".so.72" or "-2.0.so.1.0.0".
 */
static bool is_version(const char *text)
{
	const char *library = strstr(text, ".so");

	for (const char *end = library ? library : text + strlen(text); text < end; text++) {
		if (!isdigit((unsigned char)*text) && *text != '.' && *text != '-')
			return false;
	}
	return true;
}

const struct runtime *runtimes_of_file(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	if (!slash)
		return NULL;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		if (files[i].runtime && starts_with(name, files[i].prefix) &&
		    is_version(name + strlen(files[i].prefix)))
			return runtimes_find(files[i].runtime);
	}
	return NULL;
}

bool runtimes_own_library(const char *module)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		if (files[i].is_own && starts_with(module, files[i].prefix))
			return true;
	}
	return false;
}

bool runtimes_start_in(const char *module)
{
	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
		if (!strcmp(module, hosts[i]))
			return true;
	}
	return false;
}

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

/* Adjacent mappings of which some belong to a heap: those from `start` to the end of the last large part. */
struct range_search {
	uint64_t mapped_end;  /* of the interval before */
	uint64_t start;	      /* where regions may begin; 0: none */
	uint64_t first, last; /* the range so far; 0: no large part */
	uint64_t best_start, best_end;
};

static void end_range(struct range_search *search)
{
	if (search->first && search->last - search->first > search->best_end - search->best_start) {
		search->best_start = search->first;
		search->best_end = search->last;
	}
	search->start = search->first = search->last = 0;
}

/* Other memory ends a sequence of regions that has no large part yet. */
static void look_at(struct range_search *search, const struct space *space, const struct space_interval *interval)
{
	uint64_t bytes = interval->end - interval->start;

	if (interval->start != search->mapped_end || !can_be_heap(interval))
		end_range(search);
	search->mapped_end = interval->end;
	if (!can_be_heap(interval))
		return;
	if (interval->attributes.protection) {
		bool other = classes_is_arena(space, interval, MMT_CLASS_ANON) ||
			     classes_is_above_guard(space, interval) ||
			     (interval->start % REGION_BYTES && bytes < FIRST_PART_BYTES);

		if (other)
			search->start = 0;
		else if (!search->start || interval->start % REGION_BYTES)
			search->start = interval->start;
	}
	if (bytes < RANGE_PART_BYTES || !search->start)
		return;
	search->first = search->first ? search->first : search->start;
	search->last = interval->end;
}

struct heap_finder heap_finder_create(const struct space *space, const struct runtime *runtime)
{
	struct heap_finder finder = {.space = space, .runtime = runtime};
	const struct space_interval *interval;
	struct range_search search = {0};
	uint64_t least = is_runtime(&finder, "java") ? JAVA_RANGE_BYTES : 0;

	if (!is_runtime(&finder, "java") && !is_runtime(&finder, "dotnet"))
		return finder;
	for (uint64_t position = 0; (interval = space_next(space, position)); position = interval->end)
		look_at(&search, space, interval);
	end_range(&search);
	if (search.best_end - search.best_start >= least) {
		finder.start = search.best_start;
		finder.end = search.best_end;
	}
	return finder;
}

static bool is_java_heap(const struct heap_finder *finder, const struct space_interval *interval)
{
	return (interval->start >= JAVA_HEAP_START && interval->end <= JAVA_HEAP_END) ||
	       (interval->start >= finder->start && interval->end <= finder->end);
}

/* Pages of V8's heap, which the kernel may show as one mapping. */
static bool is_v8_heap(const struct heap_finder *finder, const struct space_interval *interval)
{
	return interval->start % V8_PAGE_BYTES == 0 && interval->end % V8_PAGE_BYTES == 0 &&
	       !classes_is_above_guard(finder->space, interval);
}

enum gc_heap heap_finder_ask(const struct heap_finder *finder, const struct space_interval *interval,
			     enum mmt_class memory_class, const char *path)
{
	/* ZGC */
	if (memory_class == MMT_CLASS_FILE && starts_with(path, "/memfd:java_heap"))
		return GC_HEAP_JAVA;
	if (memory_class != MMT_CLASS_ANON)
		return GC_HEAP_NONE;
	if (is_runtime(finder, "java") && is_java_heap(finder, interval))
		return GC_HEAP_JAVA;
	if (is_runtime(finder, "dotnet") && interval->start >= finder->start && interval->end <= finder->end)
		return GC_HEAP_DOTNET;
	if (is_runtime(finder, "node") && is_v8_heap(finder, interval))
		return GC_HEAP_NODE;
	if (!finder->runtime && interval->start >= GO_HEAP_START && interval->end <= GO_HEAP_END)
		return GC_HEAP_GO;
	return GC_HEAP_NONE;
}

const char *gc_heap_name(enum gc_heap heap)
{
	static const char *const names[] = {
	    [GC_HEAP_GO] = "Go", [GC_HEAP_JAVA] = "Java", [GC_HEAP_DOTNET] = ".NET", [GC_HEAP_NODE] = "Node"};

	return names[heap];
}
