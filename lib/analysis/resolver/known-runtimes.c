// SPDX-License-Identifier: LGPL-2.1-or-later
/* What reports know of each runtime: its libraries, frames and JIT. known-runtimes.h says how to add one. */
#include "analysis/resolver/known-runtimes.h"

#include <ctype.h>

#include "base/strings.h"

static const struct runtime runtimes[] = {
    {.name = "go", .label = "Go"}, /* recognised by its modules, not by their names */
    {.name = "dotnet",
     .label = ".NET",
     .advice = "record with --ask-runtime, or start it with DOTNET_PerfMapEnabled=1 in its environment (3: without "
	       "jitdump)",
     .perf_map = "DOTNET_PerfMapEnabled",
     .perf_map_option = OPTION_DOTNET_PERF_MAP},
    {.name = "java",
     .label = "Java",
     .advice = "record with --ask-runtime, run `jcmd PID Compiler.perfmap` before recording ends, or start it with "
	       "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
     .frame_pointers = "-XX:+PreserveFramePointer",
     .frame_pointers_option = OPTION_JAVA_FRAME_POINTERS,
     .interpreted = "Interpreter",
     .interpreted_advice = "start it with -Xcomp, which compiles every method (slow to start)"},
    {.name = "node",
     .label = "Node",
     .advice = "start it with --perf-basic-prof --interpreted-frames-native-stack",
     .interpreted = "Builtins_InterpreterEntryTrampoline",
     .interpreted_named = "JS:~",
     .perf_map = "--perf-basic-prof",
     .perf_map_option = OPTION_NODE_PERF_MAP,
     .interpreted_frames = "--interpreted-frames-native-stack",
     .interpreted_frames_option = OPTION_NODE_INTERPRETED_FRAMES,
     .interpreted_advice = "start it with --perf-basic-prof --interpreted-frames-native-stack"},
    {.name = "python",
     .label = "Python",
     .advice = "start it with -X perf or PYTHONPERFSUPPORT=1 in its environment (Python 3.12 and later)",
     .interpreted = "",
     .interpreted_named = "py::",
     .loop = "_PyEval_EvalFrameDefault",
     .perf_map = "-X perf or PYTHONPERFSUPPORT",
     .perf_map_option = OPTION_PYTHON_PERF_MAP,
     .interpreted_frames = "-X perf or PYTHONPERFSUPPORT",
     .interpreted_frames_option = OPTION_PYTHON_PERF_MAP,
     .interpreted_advice = "start it with -X perf or PYTHONPERFSUPPORT=1 in its environment (Python 3.12 and later)"},
    {.name = "mono",
     .label = "Mono",
     .advice = "start it with --jitmap",
     .frame_pointers = "MONO_DEBUG=disable_omit_fp",
     .frame_pointers_option = OPTION_MONO_FRAME_POINTERS,
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
     .loop = "execute_ex",
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
     .loop = "vm_exec_core",
     .interpreted_advice = "start it with --yjit --yjit-call-threshold=1 --yjit-perf (Ruby 3.3 and later), which "
			   "names the functions that it compiles"},
};

#define PYTHON_WITH_MAPS 12 /* 3.12 is the first version that can write a perf map */

static const struct runtime old_python = {
    .name = "python",
    .label = "Python",
    .advice = "its version cannot write a perf map",
    .interpreted = "",
    .interpreted_named = "py::",
    .loop = "_PyEval_EvalFrameDefault",
    .interpreted_advice = "its version cannot write a perf map; run the program with Python 3.12 or later and -X perf"};

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
	return array_find(runtime, runtimes, sizeof(runtimes) / sizeof(*runtimes), !strcmp(runtime->name, name));
}

/* Whether the text is a version: digits, dots, dashes, or the end of a library such as ".so.72", "-2.0.so.1.0.0". */
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
	/* JIT code of .NET, whose library is in the program if that was published as a single file. */
	if (starts_with(path, "/memfd:doublemapper"))
		return runtimes_find("dotnet");
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		const char *version = name + strlen(files[i].prefix);

		if (!files[i].runtime || !starts_with(name, files[i].prefix) || !is_version(version))
			continue;
		return !strcmp(files[i].runtime, "python") && *version == '.' &&
			       strtoul(version + 1, NULL, 10) < PYTHON_WITH_MAPS
			   ? &old_python
			   : runtimes_find(files[i].runtime);
	}
	return NULL;
}

bool runtimes_interpret_in(const char *path, const char **loop_ret)
{
	const struct runtime *runtime = runtimes_of_file(path);

	*loop_ret = runtime ? runtime->loop : NULL;
	/* Extension modules of Python's own library. */
	return *loop_ret || strstr(path, "/lib-dynload/");
}

bool runtimes_own_library(const char *module)
{
	return array_find(file, files, sizeof(files) / sizeof(*files),
			  file->is_own && starts_with(module, file->prefix));
}

bool runtimes_start_in(const char *module)
{
	return array_find(host, hosts, sizeof(hosts) / sizeof(*hosts), !strcmp(module, *host));
}

int runtimes_started_with(const struct reader_metadata *metadata, int32_t pid, uint64_t program_ns,
			  enum runtime_option option, const char *text)
{
	const uint64_t *value = runtime_options_find(&metadata->options, pid, program_ns, option);

	if (value || runtime_options_find(&metadata->options, pid, program_ns, OPTIONS_READ))
		return value && *value;
	return metadata->command_line && strstr(metadata->command_line, text) ? 1 : -1;
}

const char *runtimes_names_option(const struct runtime *runtime, bool interpreted,
				  const struct reader_metadata *metadata, int32_t pid, uint64_t program_ns)
{
	const char *option = interpreted ? runtime->interpreted_frames : runtime->perf_map;
	const uint64_t *map = runtime_options_find(&metadata->options, pid, program_ns, runtime->perf_map_option);
	const uint64_t *frames =
	    runtime_options_find(&metadata->options, pid, program_ns, runtime->interpreted_frames_option);

	return option && map && *map && (!interpreted || (frames && *frames)) ? option : NULL;
}
