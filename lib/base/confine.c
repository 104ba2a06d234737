// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/helper-process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

/* The access of the first version, which all kernels with Landlock know. */
#define WRITING                                                                                                        \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |              \
	 LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |                    \
	 LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |                 \
	 LANDLOCK_ACCESS_FS_MAKE_SYM)

#define SCOPES_SINCE 6	  /* the first version that keeps signals among confined processes */
#define SIGNALS (1u << 1) /* LANDLOCK_SCOPE_SIGNAL */

static void allow_writing(int rules, int place)
{
	struct landlock_path_beneath_attr beneath = {.parent_fd = place};
	struct stat status;

	if (place < 0 || fstat(place, &status) < 0)
		return;
	beneath.allowed_access = S_ISDIR(status.st_mode) ? WRITING : LANDLOCK_ACCESS_FS_WRITE_FILE;
	(void)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
}

/* The directory that libdebuginfod would choose for its cache. */
static int open_cache(void)
{
	const char *own = getenv("DEBUGINFOD_CACHE_PATH"), *caches = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char path[PATH_MAX];

	home = home ?: "/";
	snprintf(path, sizeof(path), "%s/.debuginfod_client_cache", home);
	if (own && *own)
		snprintf(path, sizeof(path), "%s", own);
	else if (access(path, F_OK) < 0 && caches && *caches)
		snprintf(path, sizeof(path), "%s/debuginfod_client", caches);
	else if (access(path, F_OK) < 0)
		snprintf(path, sizeof(path), "%s/.cache/debuginfod_client", home);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(path, S_IRWXU);
		*slash = '/';
	}
	(void)mkdir(path, S_IRWXU);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void forbid_writing(const int *places, size_t count, bool connects)
{
	CLEANUP(close) int null = open("/dev/null", O_PATH | O_CLOEXEC), cache = connects ? open_cache() : -1;
	bool scopes = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) >= SCOPES_SINCE;
	const struct {
		uint64_t files, network, scopes;
	} forbidden = {WRITING | LANDLOCK_ACCESS_FS_EXECUTE, 0, SIGNALS};
	int rules = (int)syscall(SYS_landlock_create_ruleset, &forbidden,
				 scopes ? sizeof(forbidden) : sizeof(forbidden.files), 0);

	if (rules < 0)
		return;
	allow_writing(rules, null);
	allow_writing(rules, cache);
	for (size_t i = 0; i < count; i++)
		allow_writing(rules, places[i]);
	(void)syscall(SYS_landlock_restrict_self, rules, 0);
	close(rules);
}

static void drop_capabilities(bool writes)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3] = {0};
	uint32_t kept = 1u << CAP_DAC_READ_SEARCH;

	if (writes)
		kept |= 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER;
	if (syscall(SYS_capget, &header, has) < 0)
		return;
	has[0].permitted &= kept;
	has[0].effective &= kept;
	has[0].inheritable = 0;
	has[1] = (struct __user_cap_data_struct){0};
	(void)syscall(SYS_capset, &header, has);
}

static void end_before_others(void)
{
	CLEANUP(fclose) FILE *file = fopen("/proc/self/oom_score_adj", "we");

	if (file)
		fputs("1000", file);
}

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

/* Sanitizers trace the process, and write reports, when it exits. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ARCHITECTURE 0
#elif defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE 0
#endif

#define UNKNOWN_CALLS 451 /* from this number on: calls that are newer than this filter */

/* clang-format off */
/* Calls that harm others without a capability, or with one of a new user namespace, and those that change files by
 * their paths. The flags of openat2() are in memory, where no filter sees them. */
static const uint16_t harmful[] = {
	SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_getfd,
	SYS_openat2, SYS_mount, SYS_umount2, SYS_move_mount, SYS_open_tree, SYS_fsopen, SYS_fsconfig, SYS_fsmount,
	SYS_fspick, SYS_mount_setattr, SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns, SYS_bpf,
	SYS_perf_event_open, SYS_io_uring_setup, SYS_userfaultfd, SYS_add_key, SYS_request_key, SYS_keyctl,
	SYS_mknodat, SYS_symlinkat, SYS_fchmodat, SYS_fchownat, SYS_truncate, SYS_setxattr, SYS_lsetxattr,
	SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_fchown, SYS_open_by_handle_at,
	SYS_pidfd_send_signal, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_shmget, SYS_shmat, SYS_shmctl,
	SYS_semget, SYS_semctl, SYS_semop, SYS_semtimedop, SYS_msgget, SYS_msgctl, SYS_msgsnd, SYS_msgrcv,
	SYS_mq_open, SYS_mq_unlink,
};
/* clang-format on */

#ifndef SYS_renameat
#define SYS_renameat SYS_renameat2
#endif

/* libdebuginfod needs these for its servers and its cache, and a command some for its output. */
static const uint16_t network[] = {SYS_socket, SYS_connect, SYS_bind, SYS_listen};
static const uint16_t naming[] = {SYS_linkat,  SYS_unlinkat, SYS_renameat, SYS_renameat2,
				  SYS_mkdirat, SYS_fchmod,   SYS_utimensat};

/* Calls that newer architectures do not have. */
#ifdef SYS_open
static const uint16_t harmful_old[] = {SYS_mknod,  SYS_symlink, SYS_chmod,  SYS_chown,
				       SYS_lchown, SYS_utime,	SYS_utimes, SYS_futimesat};
static const uint16_t naming_old[] = {SYS_creat, SYS_link, SYS_unlink, SYS_rename, SYS_rmdir, SYS_mkdir};
#endif

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define RETURN(result) BPF_STMT(BPF_RET | BPF_K, result)
#define REFUSE SECCOMP_RET_ERRNO | EPERM

struct call_filter {
	struct sock_filter code[320];
	unsigned short size;
};

static void append(struct call_filter *filter, const struct sock_filter *code, size_t count)
{
	memcpy(filter->code + filter->size, code, count * sizeof(*code));
	filter->size += (unsigned short)count;
}

static void refuse_calls(struct call_filter *filter, const uint16_t *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct sock_filter code[] = {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1), RETURN(REFUSE)};

		append(filter, code, COUNT(code));
	}
}

/* Refuse the call if the test of this argument succeeds. */
static void refuse_argument(struct call_filter *filter, uint32_t call, unsigned argument, uint16_t test, uint32_t value)
{
	const struct sock_filter code[] = {
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4),
	    LOAD(args[argument]),
	    BPF_JUMP(BPF_JMP | test | BPF_K, value, 0, 1),
	    RETURN(REFUSE),
	    LOAD(nr),
	};

	append(filter, code, COUNT(code));
}

static void refuse_opening(struct call_filter *filter, uint32_t flags)
{
	refuse_argument(filter, SYS_openat, 2, BPF_JSET, flags);
#ifdef SYS_open
	refuse_argument(filter, SYS_open, 1, BPF_JSET, flags);
#endif
}

static void filter_calls(bool writes, bool connects)
{
	const struct sock_filter begin[] = {
	    LOAD(arch),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
	    RETURN(REFUSE),
	    LOAD(nr),
	    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, UNKNOWN_CALLS, 0, 1),
	    RETURN(SECCOMP_RET_ERRNO | ENOSYS),
	    /* Its flags are in memory, where no filter sees them. The C library then calls clone(). */
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
	    RETURN(SECCOMP_RET_ERRNO | ENOSYS),
	};
	const struct sock_filter end[] = {RETURN(SECCOMP_RET_ALLOW)};
	struct call_filter filter = {.size = 0};
	struct sock_fprog program = {.filter = filter.code};

	append(&filter, begin, COUNT(begin));
	refuse_calls(&filter, harmful, COUNT(harmful));
#ifdef SYS_open
	refuse_calls(&filter, harmful_old, COUNT(harmful_old));
	if (!writes)
		refuse_calls(&filter, naming_old, COUNT(naming_old));
#endif
	if (!connects)
		refuse_calls(&filter, network, COUNT(network));
	if (!writes)
		refuse_calls(&filter, naming, COUNT(naming));
	/* A terminal would take what is pushed into its input, or pasted, as typed by the user. */
	refuse_argument(&filter, SYS_ioctl, 1, BPF_JEQ, TIOCSTI);
	refuse_argument(&filter, SYS_ioctl, 1, BPF_JEQ, TIOCLINUX);
	/* A socket for datagrams sends to any address, without connect(). */
	refuse_argument(&filter, SYS_socketpair, 1, BPF_JSET, SOCK_DGRAM);
	/* The owner may otherwise give a file that is open for reading more rights than read and write. */
	refuse_argument(&filter, SYS_fchmod, 1, BPF_JSET, S_ISUID | S_ISGID | S_ISVTX);
	refuse_argument(&filter, SYS_clone, 0, BPF_JSET, CLONE_NEWUSER);
	refuse_argument(&filter, SYS_prlimit64, 0, BPF_JSET, UINT32_MAX);
	/* Groups of processes. */
	refuse_argument(&filter, SYS_kill, 0, BPF_JSET, 1u << 31);
	refuse_argument(&filter, SYS_kill, 0, BPF_JEQ, 0);
	if (!writes)
		refuse_opening(&filter, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC);
	else if (!connects)
		refuse_opening(&filter, O_TRUNC);
	append(&filter, end, COUNT(end));
	program.len = filter.size;
	(void)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program);
}

const char *confine_missing(void)
{
	const uint32_t refuse = SECCOMP_RET_ERRNO;
	bool files = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
	bool calls = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &refuse) == 0;

	if (files)
		return calls ? NULL : "seccomp";
	return calls ? "Landlock" : "Landlock and seccomp";
}

void confine_thread(const int *places, size_t count)
{
	const char *servers = getenv("DEBUGINFOD_URLS");
	bool connects = servers && *servers;

	end_before_others();
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	forbid_writing(places, count, connects);
	drop_capabilities(count);
	if (ARCHITECTURE)
		filter_calls(count || connects, connects);
}
