// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "analysis/report/stack-origin.h"
#include "analysis/report/classes.h"
#include "support/suite.h"

#define FRAMES_MAX 8

/* "module:function", innermost first; a function "" has no name. */
static const struct {
	enum mmt_pattern expected;
	enum mmt_class memory_class;
	const char *frames[FRAMES_MAX];
} cases[] = {
    {MMT_PATTERN_NONE, MMT_CLASS_ANON, {"libc.so.6:mmap", "app:leak", "app:main"}},
    {MMT_PATTERN_NONE, MMT_CLASS_ANON, {NULL}},
    {MMT_PATTERN_ARENA,
     MMT_CLASS_GC_RESERVE,
     {"libc.so.6:mmap", "libc.so.6:new_heap", "libc.so.6:arena_get2", "libc.so.6:malloc", "app:work"}},
    {MMT_PATTERN_ARENA, MMT_CLASS_ANON, {"libc.so.6:mprotect", "libc.so.6:grow_heap", "libc.so.6:malloc"}},
    {MMT_PATTERN_ARENA, MMT_CLASS_GC_RESERVE, {"libc.so.6:mmap", "libc.so.6:", "libc.so.6:malloc", "app:work"}},
    {MMT_PATTERN_NONE, MMT_CLASS_ANON, {"libc.so.6:mmap", "libc.so.6:", "libc.so.6:malloc", "app:leak"}},
    {MMT_PATTERN_NONE, MMT_CLASS_ANON, {"libc.so.6:mmap", "libc.so.6:sysmalloc", "libc.so.6:malloc", "app:leak"}},
    {MMT_PATTERN_HEAP, MMT_CLASS_HEAP, {"libc.so.6:brk", "libc.so.6:sbrk", "libc.so.6:", "libc.so.6:malloc", "app:x"}},
    {MMT_PATTERN_HEAP, MMT_CLASS_HEAP, {"app:brk", "app:sbrk", "app:__glibc_morecore", "app:sysmalloc", "app:malloc"}},
    {MMT_PATTERN_NONE, MMT_CLASS_HEAP, {"libc.so.6:brk", "libc.so.6:sbrk", "app:own_allocator"}},
    {MMT_PATTERN_THREAD_STACK, MMT_CLASS_THREAD_STACK, {"libc.so.6:mmap", "libc.so.6:pthread_create", "app:spawn"}},
    {MMT_PATTERN_THREAD_STACK, MMT_CLASS_ANON, {"libc.so.6:mmap", "libc.so.6:allocate_stack", "libc.so.6:", "app:x"}},
    {MMT_PATTERN_NONE,
     MMT_CLASS_ANON,
     {"libc.so.6:mmap", "libc.so.6:calloc", "ld-linux-x86-64.so.2:", "libc.so.6:pthread_create", "app:x"}},
    {MMT_PATTERN_GC_HEAP, MMT_CLASS_ANON, {"libc.so.6:mmap", "libjvm.so:os::pd_commit_memory(char*)", "libjvm.so:x"}},
    {MMT_PATTERN_CODE,
     MMT_CLASS_JIT,
     {"libc.so.6:mmap", "libjvm.so:os::pd_commit_memory", "libjvm.so:CodeHeap::expand"}},
    {MMT_PATTERN_GC_HEAP, MMT_CLASS_ANON, {"app:runtime.mmap", "app:runtime.sysReserveOS", "app:runtime.main"}},
    {MMT_PATTERN_GC_HEAP, MMT_CLASS_ANON, {"node:v8::base::OS::Allocate", "node:v8::internal::MemoryAllocator::Get"}},
    {MMT_PATTERN_ARRAY_BUFFER,
     MMT_CLASS_ANON,
     {"node:v8::base::OS::Allocate", "node:v8::internal::BackingStore::Allocate", "node:v8::internal::Heap::X"}},
    {MMT_PATTERN_GC_HEAP, MMT_CLASS_GC_RESERVE, {"libc.so.6:mmap", "libcoreclr.so:", "libcoreclr.so:"}},
    {MMT_PATTERN_CODE, MMT_CLASS_JIT, {"libc.so.6:mmap", "libcoreclr.so:", "libcoreclr.so:"}},
    {MMT_PATTERN_NONE, MMT_CLASS_ANON, {"libc.so.6:mmap", "libcoreclr.so:", "libcoreclr.so:"}},
    {MMT_PATTERN_GC_HEAP, MMT_CLASS_ANON, {"libc.so.6:mprotect", "libcoreclr.so:", "libcoreclr.so:"}},
    {MMT_PATTERN_ARENA, MMT_CLASS_ANON, {"libc.so.6:mprotect", "libc.so.6:", "libc.so.6:malloc", "app:work"}},
    {MMT_PATTERN_NONE, MMT_CLASS_ANON, {"libc.so.6:mprotect", "app:own_allocator", "libc.so.6:malloc"}},
    {MMT_PATTERN_DIRECT_BUFFER,
     MMT_CLASS_ANON,
     {"libc.so.6:mmap", "libc.so.6:malloc", "libjvm.so:os::malloc(unsigned long)", "libjvm.so:Unsafe_AllocateMemory0"}},
    {MMT_PATTERN_JVM_NATIVE,
     MMT_CLASS_ANON,
     {"libc.so.6:mmap", "libc.so.6:malloc", "libjvm.so:os::malloc(unsigned long)", "libjvm.so:Arena::grow"}},
    {MMT_PATTERN_HEAP,
     MMT_CLASS_HEAP,
     {"libc.so.6:brk", "libc.so.6:malloc", "libjvm.so:os::malloc(unsigned long)", "libjvm.so:Unsafe_AllocateMemory0"}},
    {MMT_PATTERN_ARENA,
     MMT_CLASS_ANON,
     {"libc.so.6:mprotect", "libc.so.6:calloc", "node:v8::internal::BackingStore::Allocate"}},
    {MMT_PATTERN_HEAP,
     MMT_CLASS_HEAP,
     {"libc.so.6:brk", "libc.so.6:malloc", "node:v8::internal::BackingStore::Allocate"}},
    {MMT_PATTERN_METASPACE,
     MMT_CLASS_ANON,
     {"libc.so.6:mmap", "libjvm.so:os::commit_memory", "libjvm.so:metaspace::VirtualSpaceNode::commit_range"}},
    {MMT_PATTERN_NONE, MMT_CLASS_GC_RESERVE, {"libc.so.6:mmap", "leak.so:map", "libcoreclr.so:"}},
    {MMT_PATTERN_CODE, MMT_CLASS_FILE, {"ld-linux-x86-64.so.2:", "libc.so.6:dlopen", "app:load"}},
    {MMT_PATTERN_CODE, MMT_CLASS_ANON, {"ld-linux-x86-64.so.2:__mmap64", "ld-linux-x86-64.so.2:_dl_map_segments"}},
    {MMT_PATTERN_GC_HEAP,
     MMT_CLASS_ANON,
     {"libc.so.6:mmap", "beam.smp:erts_mmap", "beam.smp:", "beam.smp:erts_mseg_x"}},
    {MMT_PATTERN_GC_HEAP, MMT_CLASS_ANON, {"libc.so.6:mprotect", "libcoreclr.so in app:", "libcoreclr.so in app:"}},
    {MMT_PATTERN_PYTHON, MMT_CLASS_ANON, {"libc.so.6:mmap", "python3.11:_PyObject_ArenaMmap", "python3.11:main"}},
    {MMT_PATTERN_PYTHON,
     MMT_CLASS_ANON,
     {"libc.so.6:__mmap64", "libc.so.6:mmap", "python3.11:", "python3.11:PyList_New"}},
    {MMT_PATTERN_PYTHON, MMT_CLASS_ANON, {"libc.so.6:mmap", "libpython3.13.so.1.0:", "extension.so:grow"}},
    {MMT_PATTERN_NONE, MMT_CLASS_SHM, {"libc.so.6:mmap", "python3.11:", "python3.11:PyList_New"}},
    {MMT_PATTERN_NONE, MMT_CLASS_ANON, {"libc.so.6:mmap", "libc.so.6:malloc", "python3.11:", "python3.11:PyList_New"}},
    {MMT_PATTERN_NONE, MMT_CLASS_ANON, {"libc.so.6:mmap", "libc.so.6:malloc", "libc.so.6:strdup", "python3.11:"}},
    {MMT_PATTERN_NONE,
     MMT_CLASS_ANON,
     {"ld-linux-x86-64.so.2:mmap", "ld-linux-x86-64.so.2:", "libc.so.6:dlopen", "python3.11:"}},
    {MMT_PATTERN_NONE, MMT_CLASS_ANON, {"libc.so.6:mmap", "extension.so:", "python3.11:", "python3.11:PyList_New"}},
};

struct stack {
	struct mmt_frame room[FRAMES_MAX];
	const struct mmt_frame *frames[FRAMES_MAX];
	char names[FRAMES_MAX][64];
};

static size_t make_frames(const char *const *texts, struct stack *stack)
{
	size_t count = 0;

	for (; count < FRAMES_MAX && texts[count]; count++) {
		char *colon = strchr(strcpy(stack->names[count], texts[count]), ':');

		*colon = '\0';
		stack->room[count] = (struct mmt_frame){
		    .kind = MMT_FRAME_NATIVE, .module = stack->names[count], .function = colon[1] ? colon + 1 : NULL};
		stack->frames[count] = &stack->room[count];
	}
	return count;
}

START_TEST(pattern_of_stack)
{
	struct stack stack;
	size_t count = make_frames(cases[_i].frames, &stack);

	ck_assert_int_eq(patterns_find(stack.frames, count, cases[_i].memory_class), cases[_i].expected);
}
END_TEST

START_TEST(pattern_of_shared_memory)
{
	ck_assert_int_eq(patterns_of_shared(MMT_CLASS_SHM, ""), MMT_PATTERN_SHM);
	ck_assert_int_eq(patterns_of_shared(MMT_CLASS_FILE, "/memfd:x (deleted)"), MMT_PATTERN_MEMFD);
	ck_assert_int_eq(patterns_of_shared(MMT_CLASS_FILE, "/[aio] (deleted)"), MMT_PATTERN_AIO);
	ck_assert_int_eq(patterns_of_shared(MMT_CLASS_FILE, "/srv/data"), MMT_PATTERN_FILE);
	ck_assert_int_eq(patterns_of_shared(MMT_CLASS_FILE, "/dev/dri/card0"), MMT_PATTERN_NONE);
	ck_assert_int_eq(patterns_of_shared(MMT_CLASS_FILE, "anon_inode:[perf_event]"), MMT_PATTERN_NONE);
	ck_assert_int_eq(patterns_of_shared(MMT_CLASS_FILE, ""), MMT_PATTERN_NONE);
	ck_assert_int_eq(patterns_of_shared(MMT_CLASS_ANON, ""), MMT_PATTERN_NONE);
}
END_TEST

START_TEST(every_pattern_is_explained)
{
	ck_assert_ptr_null(mmt_pattern_name(MMT_PATTERN_NONE));
	ck_assert_ptr_null(mmt_pattern_explanation(MMT_PATTERN_NONE));
	for (unsigned pattern = MMT_PATTERN_NONE + 1; pattern < MMT_PATTERN_KINDS; pattern++) {
		ck_assert_ptr_nonnull(mmt_pattern_name(pattern));
		ck_assert_ptr_nonnull(mmt_pattern_explanation(pattern));
	}
}
END_TEST

static size_t find_origin(const char *const *texts)
{
	struct stack stack;
	size_t count = make_frames(texts, &stack);

	return origin_find(stack.frames, count);
}

START_TEST(origin)
{
	static const char *const dynamic[] = {"libc.so.6:mmap", "libc.so.6:", "ld-linux-x86-64.so.2:x", "app:leak",
					      NULL};
	static const char *const single[] = {"app:__mmap64", "app:leak", "app:main", NULL};
	static const char *const nothing[] = {"libc.so.6:mmap", "libc.so.6:start_thread", NULL};
	static const char *const near[] = {"libcrypto.so.3:CRYPTO_malloc", "app:main", NULL};

	static const char *const containers[] = {
	    "libc.so.6:malloc",
	    "libstdc++.so.6:operator new(unsigned long)",
	    "app:std::__new_allocator<char>::allocate(unsigned long, void const*)",
	    "app:void std::vector<int, std::allocator<int> >::_M_realloc_append<int const&>(int const&)",
	    "app:void Cache::fill<int>(std::vector<int>&)",
	    NULL};
	static const char *const rust[] = {"libc.so.6:malloc",
					   "app:__rdl_alloc",
					   "app:alloc::raw_vec::finish_grow",
					   "app:<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem",
					   "app:<alloc::string::String as core::clone::Clone>::clone",
					   "app:<shop::Waker as alloc::task::Wake>::wake",
					   "app:shop::load",
					   NULL};
	static const char *const bound[] = {
	    "libc.so.6:malloc", "app:<shop::Table as shop::Load<<shop::Key as alloc::vec::Kind>::Owned>>::load", NULL};
	static const char *const own[] = {"libc.so.6:malloc", "app:Pool::operator new(unsigned long)", "app:main",
					  NULL};
	static const char *const similar[] = {"libc.so.6:malloc", "app:stdx::grow(std::string)", "app:main", NULL};

	static const char *const map[] = {"libc.so.6:malloc", "app:hashbrown::raw::RawTable<T,A>::reserve_rehash",
					  "app:std::collections::hash::map::HashMap<K,V,S>::insert", "app:shop::load",
					  NULL};
	/* The program's lambda may be inlined into the library's function that calls it. */
	static const char *const thread[] = {
	    "libc.so.6:malloc",
	    "app:std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#1}> > >::_M_run()",
	    "libstdc++.so.6.0.30:", "libc.so.6:start_thread", NULL};
	static const char *const linked[] = {
	    "app:__mmap64", "app:sysmalloc_mmap", "app:_int_malloc", "app:malloc", "app:read_all", "app:main", NULL};
	static const char *const python[] = {"libpool.so:_PyMem_RawMalloc", "libpool.so:_PyObject_Malloc", "app:load",
					     NULL};
	static const char *const truncated[] = {"libc.so.6:malloc", "libstdc++.so.6:operator new(unsigned long)", NULL};

	static const char *const go[] = {"app:runtime.sysMmap", "app:runtime.(*mheap).grow", "app:runtime.mallocgc",
					 "app:main.handle",	"app:runtime.main",	     NULL};

	static const char *const go_syscall[] = {"app:runtime/internal/syscall.Syscall6", "app:syscall.(*mmapper).Mmap",
						 "app:golang.org/x/sys/unix.Mmap", "app:main.(*Pool).Get", NULL};

	static const char *const other_malloc[] = {"libc.so.6:mmap", "libjemalloc.so.2:", "libjemalloc.so.2:",
						   "app:std::vector<int>::resize(unsigned long)", "app:open_session",
						   NULL};

	ck_assert_uint_eq(find_origin(other_malloc), 4);
	ck_assert_uint_eq(find_origin(go_syscall), 3);
	ck_assert_uint_eq(find_origin(go), 3);
	ck_assert_uint_eq(find_origin(linked), 4);
	ck_assert_uint_eq(find_origin(python), 2);
	ck_assert_uint_eq(find_origin(map), 3);
	ck_assert_uint_eq(find_origin(thread), 1);
	ck_assert_uint_eq(find_origin(truncated), 1);
	ck_assert_uint_eq(find_origin(containers), 4);
	ck_assert_uint_eq(find_origin(rust), 5);
	ck_assert_uint_eq(find_origin(bound), 1);
	ck_assert_uint_eq(find_origin(own), 1);
	ck_assert_uint_eq(find_origin(similar), 1);
	ck_assert_uint_eq(find_origin(dynamic), 3);
	ck_assert_uint_eq(find_origin(single), 1);
	ck_assert_uint_eq(find_origin(nothing), 2);
	ck_assert_uint_eq(find_origin(near), 0);
}
END_TEST

/* The name of a runtime without symbols says less than its caller's. */
START_TEST(function_of_the_program)
{
	static const struct {
		size_t place;
		const char *frames[FRAMES_MAX];
	} stacks[] = {
	    {1, {"libc.so.6:mmap", "app:leak", "app:main"}},
	    {1, {"libc.so.6:mmap", "libcoreclr.so:gc_heap::grow", "app:leak"}},
	    {3, {"libc.so.6:mmap", "libcoreclr.so:", "libcoreclr.so:", "[jit]:Program::Main()", "dotnet:main"}},
	    {4, {"libc.so.6:mmap", "[jit]:", "libcoreclr.so:", "libSystem.Native.so:x", "[jit]:Program::Main()"}},
	    {3, {"libc.so.6:mmap", "libjvm.so:", "libc.so.6:qsort", "app:callback"}},
	    {1, {"libc.so.6:mmap", "libclrgc.so:", "libcoreclr.so:", "libc.so.6:start_thread"}},
	    {1, {"libc.so.6:mmap", "libjvm.so:", "java:main", "libc.so.6:__libc_start_main"}},
	    /* Of a program without symbols it is the best one available. */
	    {1, {"libc.so.6:mmap", "app:", "app:main"}},
	    {2, {"libc.so.6:mmap", "libc.so.6:malloc"}},
	    /* Interpreters: the function that is interpreted, or else what it calls; other libraries count themselves.
	     */
	    {4, {"libc.so.6:mmap", "python3.12:resize", "python3.12:", "libpython3.12.so.1.0:", "[jit]:py::leak"}},
	    {1, {"libc.so.6:mmap", "python3.12:resize", "python3.12:_PyEval_EvalFrameDefault"}},
	    {2, {"libc.so.6:malloc", "libruby-3.1.so.3.1.2:", "ruby3.1:rb_str_times", "ruby3.1:", "libc.so.6:x"}},
	    {1, {"libc.so.6:malloc", "php8.2:zend_malloc", "php8.2:", "[jit]:", "php8.2:execute_ex"}},
	    {1, {"libc.so.6:mmap", "numpy.so:alloc", "python3.12:call", "[jit]:py::leak"}},
	};

	for (size_t i = 0; i < sizeof(stacks) / sizeof(*stacks); i++) {
		struct stack stack;
		size_t count = make_frames(stacks[i].frames, &stack);
		char paths[FRAMES_MAX][64];

		for (size_t j = 0; j < count; j++) {
			if (stack.frames[j]->module && !strcmp(stack.frames[j]->module, "[jit]"))
				stack.room[j].kind = MMT_FRAME_JIT;
			(void)snprintf(paths[j], sizeof(paths[j]), "/usr/bin/%s", stack.frames[j]->module);
			stack.room[j].module_path = paths[j];
		}
		ck_assert_uint_eq(origin_of_stack(stack.frames, count), stacks[i].place);
	}
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("patterns");
	TCase *tcase = add_tcase(suite, "patterns");

	tcase_add_loop_test(tcase, pattern_of_stack, 0, (int)(sizeof(cases) / sizeof(cases[0])));
	tcase_add_tests(tcase, pattern_of_shared_memory, every_pattern_is_explained, origin, function_of_the_program);
	return suite;
}
