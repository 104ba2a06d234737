// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/confine.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Those of the first version, which all kernels with Landlock know. */
#define WRITING                                                                                                        \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |              \
	 LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |                    \
	 LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |                 \
	 LANDLOCK_ACCESS_FS_MAKE_SYM)

static void allow(int rules, int place, uint64_t access)
{
	struct landlock_path_beneath_attr beneath = {.allowed_access = access, .parent_fd = place};

	if (place >= 0)
		(void)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
}

static void forbid_writing(const int *directories, size_t count)
{
	CLEANUP(close) int null = open("/dev/null", O_PATH | O_CLOEXEC);
	struct landlock_ruleset_attr forbidden = {.handled_access_fs = WRITING | LANDLOCK_ACCESS_FS_EXECUTE};
	int rules = (int)syscall(SYS_landlock_create_ruleset, &forbidden, sizeof(forbidden.handled_access_fs), 0);

	if (rules < 0)
		return;
	allow(rules, null, LANDLOCK_ACCESS_FS_WRITE_FILE);
	for (size_t i = 0; i < count; i++)
		allow(rules, directories[i], WRITING);
	(void)syscall(SYS_landlock_restrict_self, rules, 0);
	close(rules);
}

static void end_before_others(void)
{
	CLEANUP(fclose) FILE *file = fopen("/proc/self/oom_score_adj", "we");

	if (file)
		fputs("1000", file);
}

void confine_thread(const int *directories, size_t count)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3] = {0};
	uint32_t kept = 1u << CAP_DAC_READ_SEARCH;
	const char *servers = getenv("DEBUGINFOD_URLS");

	end_before_others();
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (!servers || !*servers)
		forbid_writing(directories, count);
	if (count)
		kept |= 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER | 1u << CAP_CHOWN;
	if (syscall(SYS_capget, &header, has) < 0)
		return;
	has[0].permitted &= kept;
	has[0].effective &= kept;
	has[0].inheritable = 0;
	has[1] = (struct __user_cap_data_struct){0};
	(void)syscall(SYS_capset, &header, has);
}
