// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/report/stack-origin.h"

#include "analysis/resolver/known-runtimes.h"
#include "base/strings.h"

bool origin_matches(const char *name, const char *rule)
{
	size_t length = strlen(rule);

	if (length && rule[length - 1] == '$')
		return strlen(name) == length - 1 && !strncmp(name, rule, length - 1);
	return starts_with(name, rule);
}

/* The last of the rules is empty. `name` may be NULL. */
static bool matches_any(const char *name, const char *const *rules)
{
	while (name && **rules && !origin_matches(name, *rules))
		rules++;
	return name && **rules;
}

static const char *skip_underscores(const char *function)
{
	return function ? function + strspn(function, "_") : NULL;
}

bool origin_is_allocator(const char *function)
{
	static const char *const names[] = {
	    "malloc$",	       "calloc$",   "realloc$",		"reallocarray$",    "memalign$", "aligned_alloc$",
	    "posix_memalign$", "sysmalloc", "PyObject_Malloc$", "PyMem_RawMalloc$", "xmalloc$",	 "xcalloc$",
	    "xrealloc$",       "g_malloc",  "g_realloc",	"g_slice_alloc",    ""};
	const char *name = skip_underscores(function);

	if (name)
		name += starts_with(name, "libc_") ? strlen("libc_") : starts_with(name, "int_") ? strlen("int_") : 0;
	return matches_any(name, names);
}

bool origin_is_loader(const struct mmt_frame *frame)
{
	static const char *const loaders[] = {"ld-linux", "ld-musl", "ld-2.", ""};

	return matches_any(frame->module, loaders);
}

bool origin_is_c_library(const struct mmt_frame *frame)
{
	static const char *const libraries[] = {"libc.so",	 "libc-2.",	  "libc.musl",
						"libpthread.so", "libpthread-2.", ""};
	static const char *const wrappers[] = {"mmap64$", "sbrk$", "syscall$", ""};
	const char *name = skip_underscores(frame->function);
	enum call call;

	return frame->kind == MMT_FRAME_NATIVE && (matches_any(frame->module, libraries) || origin_is_loader(frame) ||
						   matches_any(name, wrappers) || (name && call_find(name, &call)));
}

/* Where the qualified name begins: behind the return type, which demangled names of C++ templates begin with. */
static const char *skip_return_type(const char *function)
{
	const char *name = function;
	int depth = 0;

	for (const char *place = function; *place && (depth || *place != '('); place++) {
		depth += *place == '<' ? 1 : *place == '>' ? -1 : 0;
		if (!depth && *place == ' ' && !starts_with(name, "operator"))
			name = place + 1;
	}
	return name;
}

/* The trait in Rust's "<type as trait>::function"; NULL: none. */
static const char *trait_of(const char *function)
{
	int depth = 0;

	for (const char *place = *function == '<' ? function : ""; *place; place++) {
		depth += *place == '<' ? 1 : *place == '>' ? -1 : 0;
		if (depth == 1 && starts_with(place, " as "))
			return place + strlen(" as ");
		if (!depth)
			break;
	}
	return NULL;
}

bool mmt_frame_is_language_library(const struct mmt_frame *frame)
{
	const char *function = frame->kind == MMT_FRAME_NATIVE ? frame->function : NULL;
	/* clang-format off */
	static const char *const starts[] = {
	    /* C++ */ "operator new(", "operator new[](", "std::", "<std::", "__gnu_cxx::",
	    /* Rust */ "alloc::alloc::", "alloc::borrow::", "alloc::boxed::", "alloc::collections::", "alloc::fmt::",
	    "alloc::raw_vec::", "alloc::rc::", "alloc::slice::", "alloc::str::", "alloc::string::", "alloc::sync::",
	    "alloc::vec::", "<alloc::", "<core::", "core::alloc::", "core::iter::", "core::ops::function::",
	    "core::ptr::", "hashbrown::", "<hashbrown::", "__rust_", "__rdl_", "__rg_",
	    /* Go */ "runtime.", "runtime/internal/", "internal/runtime/", "syscall.", "golang.org/x/sys/",
	    /* HotSpot */ "os::malloc(", "os::realloc(", "AllocateHeap(", ""};
	/* clang-format on */
	/* The program's own functions can be inlined into these; their names then contain the program's types. */
	static const char *const callers[] = {"std::thread::_State_impl<", "std::_Function_handler<", "std::__invoke",
					      "std::_Bind", ""};
	/* Only Rust's own library implements these, if only for types of the program. */
	static const char *const traits[] = {"alloc::vec::", "alloc::slice::", ""};

	if (!function)
		return false;
	function = skip_return_type(function);
	return matches_any(trait_of(function), traits) ||
	       (matches_any(function, starts) && !matches_any(function, callers));
}

static bool is_library(const struct mmt_frame *frame)
{
	static const char *const mallocs[] = {"libjemalloc.", "libtcmalloc", "libmimalloc", ""};

	return origin_is_c_library(frame) ||
	       (frame->kind == MMT_FRAME_NATIVE &&
		(mmt_frame_is_language_library(frame) || origin_is_allocator(frame->function) ||
		 matches_any(frame->module, mallocs)));
}

static bool is_host(const struct mmt_frame *frame)
{
	return frame->module && runtimes_start_in(frame->module);
}

bool mmt_frame_is_interpreter(const struct mmt_frame *frame, bool *is_loop_ret)
{
	const char *loop = NULL;
	bool is =
	    frame->kind == MMT_FRAME_NATIVE && frame->module_path && runtimes_interpret_in(frame->module_path, &loop);

	if (is_loop_ret)
		*is_loop_ret = loop && frame->function && starts_with(frame->function, loop);
	return is;
}

bool mmt_frame_is_runtime(const struct mmt_frame *frame)
{
	if (frame->kind != MMT_FRAME_NATIVE || !frame->module)
		return false;
	return runtimes_own_library(frame->module) || mmt_frame_is_interpreter(frame, NULL) ||
	       (is_host(frame) && (!frame->function || strcmp(frame->function, "main") != 0));
}

/* JIT code that is no function of the program: stubs, and what the runtime brings along. */
static bool is_library_of_runtime(const char *function)
{
	static const char *const starts[] = {"java.", "jdk.",	 "sun.",    "System.", "Interop.", "IL_STUB", "Stub",
					     "stub",  "Builtin", "vtable ", "I2C/C2I", "py::<",	   ""};

	/* "StubRoutines (1)" has no return type. */
	return starts_with(function, "Stub") || matches_any(skip_return_type(function), starts) ||
	       strstr(function, " node:") || (starts_with(function, "py::") && strstr(function, "/lib/python3"));
}

bool origin_is_unnamed_code(const struct mmt_frame *frame)
{
	bool is_loop;

	if (frame->kind == MMT_FRAME_JIT)
		return !frame->function || !strcmp(frame->function, "Interpreter");
	return (mmt_frame_is_interpreter(frame, &is_loop) && is_loop) ||
	       (frame->function && starts_with(frame->function, "Builtins_InterpreterEntryTrampoline"));
}

size_t origin_of_runtime(const struct mmt_row *row)
{
	size_t unnamed = row->frame_count;

	for (size_t i = row->origin; i < row->frame_count; i++) {
		const struct mmt_frame *frame = row->frames[i];

		if (origin_is_unnamed_code(frame))
			unnamed = smaller_of(unnamed, i);
		else if (frame->function &&
			 (frame->kind == MMT_FRAME_JIT ? !is_library_of_runtime(frame->function)
						       : unnamed == row->frame_count && !mmt_frame_is_runtime(frame) &&
							     !is_host(frame) && !is_library(frame)))
			return i;
	}
	return unnamed;
}

size_t origin_find(const struct mmt_frame *const *frames, size_t frame_count)
{
	size_t place = 0;

	while (place < frame_count && is_library(frames[place]))
		place++;
	if (place < frame_count)
		return place;
	/* All frames are of libraries, for instance in a truncated stack: a container is better than no name. */
	for (place = 0; place < frame_count && origin_is_c_library(frames[place]);)
		place++;
	return place;
}

size_t origin_of_stack(const struct mmt_frame *const *frames, size_t frame_count)
{
	size_t origin = origin_find(frames, frame_count);
	const struct mmt_frame *frame = origin < frame_count ? frames[origin] : NULL;

	if (!frame)
		return origin;
	/* An interpreter's frames stand for the function that they interpret, or if it has no name what it calls. */
	if (mmt_frame_is_interpreter(frame, NULL)) {
		for (size_t i = origin; i < frame_count; i++) {
			if (!mmt_frame_is_interpreter(frames[i], NULL))
				return frames[i]->kind == MMT_FRAME_JIT && frames[i]->function ? i : origin;
			if (!frames[origin]->function && frames[i]->function)
				origin = i;
		}
		return origin;
	}
	if (frame->function || (frame->kind != MMT_FRAME_JIT && !mmt_frame_is_runtime(frame)))
		return origin;
	for (size_t i = origin + 1; i < frame_count; i++) {
		if (frames[i]->function && !mmt_frame_is_runtime(frames[i]) && !is_host(frames[i]) &&
		    !is_library(frames[i]))
			return i;
	}
	return origin;
}
