// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/replay/memory-classes.h"

#include "base/strings.h"

/* Runtimes reserve their heaps in pieces at least this large; the malloc of glibc does so too, with 64 and 128 MiB. */
#define RESERVATION_BYTES (32ull << 20)

#define CLASS_BITS 3

#define KIND_RANGE (1u << CLASS_BITS) /* of anonymous memory */

_Static_assert(MMT_CLASS_KINDS <= 1 << CLASS_BITS, "a class fits its bits");

static bool is_range(const struct space_interval *interval)
{
	return !interval->attributes.protection && !interval->attributes.shared &&
	       interval->end - interval->start >= RESERVATION_BYTES;
}

bool classes_is_hugetlb(const struct space_attributes *attributes, const char *path)
{
	return attributes->hugetlb || attributes->hugetlbfs || starts_with(path, "/anon_hugepage");
}

enum mmt_class classes_of_interval(const struct space_interval *interval, const char *path)
{
	const struct space_attributes *attributes = &interval->attributes;
	bool executable = attributes->protection & PROT_EXEC, anonymous;

	if (classes_is_hugetlb(attributes, path))
		return MMT_CLASS_HUGETLB;
	/* Shared anonymous memory is a file without a name to the kernel. */
	if (attributes->shm || starts_with(path, "/SYSV") || starts_with(path, "[anon_shmem:") ||
	    (attributes->shared && (starts_with(path, "/dev/zero") || starts_with(path, "//anon"))))
		return MMT_CLASS_SHM;
	if (attributes->heap || starts_with(path, "[heap"))
		return MMT_CLASS_HEAP;
	if (attributes->stack || attributes->thread_stack || attributes->growsdown || starts_with(path, "[stack") ||
	    starts_with(path, "[anon: glibc: pthread") || starts_with(path, "[anon:stack_and_tls"))
		return MMT_CLASS_THREAD_STACK;
	/* The .NET runtime maps its code twice: here to write it, there to run it. */
	if (starts_with(path, "/memfd:doublemapper") || (executable && starts_with(path, "/memfd:")))
		return MMT_CLASS_JIT;
	anonymous = starts_with(path, "//anon") || starts_with(path, "[anon:") || starts_with(path, "/dev/zero") ||
		    (path[0] != '/' && !starts_with(path, "anon_inode:") && !attributes->inode &&
		     !attributes->device_major && !attributes->device_minor);
	if (!anonymous)
		return MMT_CLASS_FILE;
	if (executable)
		return MMT_CLASS_JIT;
	if (attributes->shared)
		return MMT_CLASS_SHM;
	return is_range(interval) && attributes->noreserve ? MMT_CLASS_GC_RESERVE : MMT_CLASS_ANON;
}

uint32_t classes_kind(enum mmt_class memory_class, const struct space_interval *interval)
{
	if (memory_class == MMT_CLASS_FILE)
		return interval->attributes.path << CLASS_BITS | memory_class;
	return memory_class | (memory_class == MMT_CLASS_ANON && is_range(interval) ? KIND_RANGE : 0);
}

enum mmt_class classes_kind_class(uint32_t kind)
{
	return kind & ((1u << CLASS_BITS) - 1);
}

uint32_t classes_kind_path(uint32_t kind)
{
	return classes_kind_class(kind) == MMT_CLASS_FILE ? kind >> CLASS_BITS : 0;
}

bool classes_kind_is_range(uint32_t kind)
{
	return classes_kind_class(kind) == MMT_CLASS_ANON && kind & KIND_RANGE;
}
