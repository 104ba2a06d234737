// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/report/stack-origin.h"

#include <string.h>

#include "analysis/resolver/known-runtimes.h"
#include "base/strings.h"
#include "base/syscall-table.h"

bool origin_is_loader(const struct mmt_frame *frame)
{
	return frame->module && (starts_with(frame->module, "ld-linux") || starts_with(frame->module, "ld-musl") ||
				 starts_with(frame->module, "ld-2."));
}

static bool is_library(const char *module)
{
	static const char *const starts[] = {"libc.so", "libc-2.", "libc.musl", "libpthread.so", "libpthread-2."};

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		if (starts_with(module, starts[i]))
			return true;
	}
	return false;
}

static bool is_wrapper(const char *function)
{
	static const char *const wrappers[] = {"mmap64", "sbrk", "syscall"};
	enum call call;

	if (!function)
		return false;
	function += strspn(function, "_");
	for (size_t i = 0; i < sizeof(wrappers) / sizeof(*wrappers); i++) {
		if (!strcmp(function, wrappers[i]))
			return true;
	}
	return call_find(function, &call);
}

/* malloc and its kind in any module, such as an allocator that is linked statically or that replaces it. */
static bool is_allocator(const char *function)
{
	static const char *const names[] = {
	    "malloc",	      "calloc",	     "realloc",	       "reallocarray",	  "memalign",	    "aligned_alloc",
	    "posix_memalign", "libc_malloc", "libc_calloc",    "libc_realloc",	  "int_malloc",	    "int_realloc",
	    "int_memalign",   "sysmalloc",   "sysmalloc_mmap", "PyObject_Malloc", "PyMem_RawMalloc"};

	if (!function)
		return false;
	function += strspn(function, "_");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(function, names[i]))
			return true;
	}
	return false;
}

bool origin_is_c_library(const struct mmt_frame *frame)
{
	if (frame->kind != MMT_FRAME_NATIVE)
		return false;
	return (frame->module && is_library(frame->module)) || origin_is_loader(frame) || is_wrapper(frame->function);
}

static bool starts_with_any(const char *text, const char *const *starts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (starts_with(text, starts[i]))
			return true;
	}
	return false;
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

/* Code that is compiled into the program, but that its author did not write: allocators that only call malloc, the
 * containers of C++ and Rust, and the runtime of Go. */
static bool is_language_library(const char *function)
{
	static const char *const starts[] = {"operator new(",
					     "operator new[](",
					     "std::",
					     "<std::",
					     "__gnu_cxx::",
					     /* Rust's */ "alloc::alloc::",
					     "alloc::borrow::",
					     "alloc::boxed::",
					     "alloc::collections::",
					     "alloc::fmt::",
					     "alloc::raw_vec::",
					     "alloc::rc::",
					     "alloc::slice::",
					     "alloc::str::",
					     "alloc::string::",
					     "alloc::sync::",
					     "alloc::vec::",
					     "<alloc::",
					     "<core::",
					     "core::alloc::",
					     "core::iter::",
					     "core::ops::function::",
					     "core::ptr::",
					     "hashbrown::",
					     "<hashbrown::",
					     "__rust_",
					     "__rdl_",
					     "__rg_",
					     /* Go's */ "runtime.",
					     "internal/runtime/",
					     /* HotSpot's */ "os::malloc(",
					     "os::realloc(",
					     "AllocateHeap("};
	/* The program's own functions can be inlined into these; their names then contain the program's types. */
	static const char *const callers[] = {"std::thread::_State_impl<", "std::_Function_handler<", "std::__invoke",
					      "std::_Bind"};

	if (!function)
		return false;
	function = skip_return_type(function);
	return starts_with_any(function, starts, sizeof(starts) / sizeof(*starts)) &&
	       !starts_with_any(function, callers, sizeof(callers) / sizeof(*callers));
}

bool origin_is_library(const struct mmt_frame *frame)
{
	return origin_is_c_library(frame) || (frame->kind == MMT_FRAME_NATIVE &&
					      (is_language_library(frame->function) || is_allocator(frame->function)));
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

static bool is_function_of_program(const struct mmt_frame *frame)
{
	return frame->function && !mmt_frame_is_runtime(frame) && !is_host(frame) && !origin_is_library(frame);
}

/* An interpreter's frames stand for the function that they interpret, if it has a name, or else for what that calls. */
static size_t find_interpreted(const struct mmt_frame *const *frames, size_t frame_count, size_t place)
{
	for (size_t i = place; i < frame_count; i++) {
		if (!mmt_frame_is_interpreter(frames[i], NULL))
			return frames[i]->kind == MMT_FRAME_JIT && frames[i]->function ? i : place;
		if (!frames[place]->function && frames[i]->function)
			place = i;
	}
	return place;
}

size_t origin_find(const struct mmt_frame *const *frames, size_t frame_count)
{
	size_t place = 0;

	while (place < frame_count && origin_is_library(frames[place]))
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
	if (mmt_frame_is_interpreter(frame, NULL))
		return find_interpreted(frames, frame_count, origin);
	if (frame->function || (frame->kind != MMT_FRAME_JIT && !mmt_frame_is_runtime(frame)))
		return origin;
	for (size_t i = origin + 1; i < frame_count; i++) {
		if (is_function_of_program(frames[i]))
			return i;
	}
	return origin;
}
