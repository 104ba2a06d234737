// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/procfs/permissions.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/seccomp.h>

#include "capture/procfs/proc.h"

/* Inode number of the initial user namespace (include/linux/proc_ns.h of the kernel). */
#define FIRST_USER_NAMESPACE 0xeffffffdu
#define PARANOID_MAX 2 /* mainline kernels treat higher values as this one, those of distributions refuse all events   \
			*/

#define SETCAP                                                                                                         \
	{                                                                                                              \
		"sudo setcap cap_perfmon,cap_sys_ptrace,cap_dac_read_search+ep $(command -v mmtrace)",                 \
		    "all users can then record all processes"                                                          \
	}
#define CONTAINER                                                                                                      \
	{                                                                                                              \
		"docker run --cap-add=PERFMON --cap-add=SYS_PTRACE -v /sys/kernel/tracing:/sys/kernel/tracing:ro ...", \
		    "when the container is started"                                                                    \
	}
#define HOST                                                                                                           \
	{                                                                                                              \
		"sudo mmtrace record -p PID", "on the host, with the PID there (`docker top CONTAINER`)"               \
	}

enum reason {
	REASON_FILTER,
	REASON_MODULE,
	REASON_NAMESPACE,
	REASON_CAPABILITIES,
	REASON_NO_TRACEFS,
	/* The reasons for users without privileges, in the order of enum permission. */
	REASON_PARANOID,
	REASON_CPU_EVENTS,
	REASON_TRACEPOINTS,
	REASON_OTHER_USER,
	REASON_PROTECTED,
};

static const struct mmt_refusal refusals[] = {
    [REASON_FILTER] = {"a seccomp filter refuses perf_event_open, as in a container or service",
		       false,
		       {CONTAINER, {"SystemCallFilter=perf_event_open", "in the unit of a service"}}},
    [REASON_MODULE] = {"a security module such as SELinux refuses perf events",
		       false,
		       {{"sudo ausearch -m avc -ts recent", "shows the rule"}}},
    [REASON_NAMESPACE] = {"this is a user namespace, as in a rootless container, whose root has no permission",
			  false,
			  {HOST}},
    [REASON_CAPABILITIES] = {"root has no CAP_PERFMON and CAP_SYS_PTRACE here, as in a container or service",
			     false,
			     {CONTAINER, HOST}},
    [REASON_NO_TRACEFS] = {"no tracefs in /sys/kernel/tracing, and mmtrace may not mount it, as in a container",
			   false,
			   {CONTAINER, HOST}},
    [REASON_PARANOID] = {"the kernel denies users all events (kernel.perf_event_paranoid is more than 2)",
			 true,
			 {{"sudo sysctl kernel.perf_event_paranoid=2 && sudo mmtrace setup",
			   "users can then record their own processes until the next boot"},
			  SETCAP}},
    [REASON_CPU_EVENTS] = {"events of other users' processes need CAP_PERFMON", true, {SETCAP}},
    [REASON_TRACEPOINTS] = {"only root may read the kernel's tracepoints",
			    true,
			    {{"sudo mmtrace setup", "users can then record their own processes until the next boot"},
			     SETCAP}},
    [REASON_OTHER_USER] = {"it belongs to another user, or runs a set-user-ID program", true, {SETCAP}},
    [REASON_PROTECTED] = {"it is outside of this container, or a security module protects it", false, {HOST}},
};

static uint64_t read_own(const char *field, int base)
{
	CLEANUP(free) char *status = NULL;
	char value[32];

	return text_file_read(-1, "/proc/self/status", &status) >= 0 &&
		       text_file_field(status, field, value, sizeof(value))
		   ? strtoull(value, NULL, base)
		   : 0;
}

uint64_t permission_capabilities(void)
{
	return read_own("CapEff", 16);
}

bool permission_is_global(void)
{
	struct stat status;

	return stat("/proc/self/ns/user", &status) < 0 || status.st_ino == FIRST_USER_NAMESPACE;
}

bool permission_was_refused(int errno_value)
{
	return errno_value == EPERM || errno_value == EACCES || errno_value == ENOSYS;
}

const struct mmt_refusal *permission_explain(enum permission permission)
{
	bool process = permission == PERMISSION_PROCESS, events = permission <= PERMISSION_CPU_EVENTS;
	uint64_t enough = process ? 1ull << CAP_SYS_PTRACE : 1ull << CAP_PERFMON | 1ull << CAP_SYS_ADMIN;
	bool capable = permission_is_global() && permission_capabilities() & enough;
	bool filtered = read_own("Seccomp", 10) == SECCOMP_MODE_FILTER;
	bool permitted = text_file_number(-1, "/proc/sys/kernel/perf_event_paranoid", 0) <= PARANOID_MAX;

	if (events && (capable || (permission == PERMISSION_EVENTS && (filtered || permitted))))
		return &refusals[filtered ? REASON_FILTER : REASON_MODULE];
	if (!permission_is_global())
		return &refusals[REASON_NAMESPACE];
	if (process && capable)
		return &refusals[REASON_PROTECTED];
	/* Nor would sudo help. */
	if (geteuid() == 0 || read_own("NoNewPrivs", 10) || !(read_own("CapBnd", 16) & enough))
		return &refusals[permission == PERMISSION_TRACEPOINTS ? REASON_NO_TRACEFS : REASON_CAPABILITIES];
	return &refusals[REASON_PARANOID + permission];
}
