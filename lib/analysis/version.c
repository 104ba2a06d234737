// SPDX-License-Identifier: LGPL-2.1-or-later
/* The versions of mmtrace, of the kernel and of the libraries, for mmtrace --version. */
#include <mmtrace/version.h>

#include <linux/version.h>
#include <pthread.h>
#include <sys/utsname.h>

#include "base/compression.h"
#include "base/map.h"
#include "code/elf/disassembly.h"
#include "code/names/symbols.h"

#ifdef MMTRACE_COMMIT
#define COMMIT "commit " MMTRACE_COMMIT "\n"
#else
#define COMMIT ""
#endif
#define HEADERS_VERSION(shift) ((LINUX_VERSION_CODE >> (shift)) & 0xff)

const char *mmt_version(void)
{
	return MMTRACE_VERSION;
}

/* Written once for the process. */
static char details[1024];

static void make_details(void)
{
	unsigned disassembler = disassembly_library_version(), hash = map_library_version();
	struct utsname system = {0};

	if (uname(&system) != 0)
		snprintf(system.release, sizeof(system.release), "unknown");
	snprintf(details, sizeof(details),
		 "%skernel %.64s %.64s\n"
		 "kernel-headers %d.%d.%d\n"
		 "compiler %s\n"
		 "elfutils %s\n"
		 "zstd %s\n"
		 "capstone %u.%u\n"
		 "xxhash %u.%u.%u\n",
		 COMMIT, system.release, system.machine, HEADERS_VERSION(16), HEADERS_VERSION(8), HEADERS_VERSION(0),
		 __VERSION__, symbols_library_version(), compress_library_version(), disassembler >> 8,
		 disassembler & 0xff, hash / 10000, hash / 100 % 100, hash % 100);
}

const char *mmt_version_details(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_details);
	return details;
}
