// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/report/known-runtimes.h"

#include <ctype.h>
#include <string.h>
#include <sys/mman.h>

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

/* Prefixes of file names; a version may follow. Libraries come first: a program may link to one under another name. */
static const struct {
	const char *prefix, *runtime;
} files[] = {
    {"libcoreclr.so", "dotnet"},
    {"libjvm.so", "java"},
    {"libnode.so", "node"},
    {"libpython3", "python"},
    {"libmonosgen", "mono"},
    {"libruby", "ruby"},
    {"libphp", "php"},
    {"node", "node"},
    {"nodejs", "node"},
    {"python3", "python"},
    {"mono-sgen", "mono"},
    {"mono", "mono"},
    {"php", "php"},
    {"beam.smp", "erlang"},
    {"beam.jit", "erlang"},
    {"ruby", "ruby"},
    {"libluajit", "luajit"},
    {"luajit", "luajit"},
    {"luajit-2.1.0-beta", "luajit"},
};

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
		size_t length = strlen(files[i].prefix);

		if (!strncmp(name, files[i].prefix, length) && is_version(name + length))
			return runtimes_find(files[i].runtime);
	}
	return NULL;
}

const struct runtime *runtimes_of_space(const struct space *space,
					const char *(*path_name)(const void *context, uint32_t path),
					const void *context)
{
	const struct space_interval *interval;

	for (uint64_t position = 0; (interval = space_next(space, position)); position = interval->end) {
		const struct runtime *runtime;

		if (!(interval->attributes.protection & PROT_EXEC) || !interval->attributes.inode)
			continue;
		runtime = runtimes_of_file(path_name(context, interval->attributes.path));
		if (runtime)
			return runtime;
	}
	return NULL;
}
