/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Maps memory until the kernel refuses it; the operand selects the limit: address-space, data, locked or huge-pages. */
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/stage.h"

#define BLOCK_BYTES ((size_t)2 << 20)
#define LIMIT_BYTES ((rlim_t)128 << 20)
#define LOCKED_BYTES ((rlim_t)3 << 20)

/* CAP_IPC_LOCK exempts root from the limit of locked memory. */
static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};

	stage_need_call((int)syscall(SYS_capset, &header, none), "capset");
}

static void limit(int resource, rlim_t bytes)
{
	struct rlimit limit;

	stage_need_call(getrlimit(resource, &limit), "getrlimit");
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	stage_need_call(setrlimit(resource, &limit), "setrlimit");
}

VISIBLE int ask_until_refused(int flags)
{
	void *block;

	do {
		block = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	} while (block != MAP_FAILED);
	return errno;
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	const char *kind = argv[argc - 1];
	int flags = 0;

	stage_begin(&stage);
	if (!strcmp(kind, "address-space")) {
		limit(RLIMIT_AS, LIMIT_BYTES);
	} else if (!strcmp(kind, "data")) {
		limit(RLIMIT_DATA, LIMIT_BYTES);
	} else if (!strcmp(kind, "locked")) {
		limit(RLIMIT_MEMLOCK, LOCKED_BYTES);
		drop_capabilities();
		flags = MAP_LOCKED;
	} else {
		flags = MAP_HUGETLB;
	}
	stage_expect("failed=mmap error=%d count=1 asked=%zu stack=mmap<ask_until_refused<main",
		     ask_until_refused(flags), BLOCK_BYTES);
	stage_end(&stage);
	return 0;
}
