// SPDX-License-Identifier: LGPL-2.1-or-later
/* mmt_check_create(): checks what the kernel, the permissions and the limits of this system allow to record.
 * mmt_setup(): saves the tracepoints for users who may not read tracefs. */
#include <mmtrace/machine.h>

#include <linux/capability.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "capture/procfs/clock.h"
#include "capture/perf/ring-buffers.h"
#include "capture/perf/scope.h"
#include "capture/procfs/permissions.h"

#define USUAL_EVENTS 24 /* of a thread on one CPU */

struct check {
	struct mmt_check result; /* must be the first member, because callers hold a pointer to it */
	VECTOR(struct mmt_check_item) items;
	struct arena arena;
	uint64_t capabilities; /* effective */
	bool can_record_all;
	bool out_of_memory;
};

__attribute__((format(printf, 5, 6))) static void add(struct check *check, enum mmt_check_state state,
						      const char *subject, const char *remedy, const char *format, ...)
{
	struct mmt_check_item item = {.state = state, .subject = subject};
	CLEANUP(free) char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	item.finding = text ? arena_string(&check->arena, text) : NULL;
	item.remedy = remedy && state != MMT_CHECK_GOOD ? arena_string(&check->arena, remedy) : NULL;
	check->out_of_memory |= !item.finding || !vector_push(&check->items, item);
}

static bool has(const struct check *check, unsigned capability)
{
	return check->capabilities >> capability & 1;
}

static void check_kernel(struct check *check)
{
	struct utsname kernel = {0};

	uname(&kernel);
	add(check, kernel_is_supported(kernel.release) ? MMT_CHECK_GOOD : MMT_CHECK_MISSING, "kernel",
	    "use " KERNEL_SUPPORTED, "Linux %s on %s", kernel.release, kernel.machine);
	if (architecture_find(kernel.machine))
		add(check, MMT_CHECK_GOOD, "processor", NULL,
		    "64-bit processes; a 64-bit kernel does not report the calls of 32-bit ones");
	else
		add(check, MMT_CHECK_MISSING, "processor", NULL,
		    "mmtrace cannot record on %s, only on x86_64 and aarch64", kernel.machine);
}

/* Adds what permits that for good to the last item. */
static void add_remedy(struct check *check, const struct mmt_refusal *refusal)
{
	struct mmt_check_item *item = check->out_of_memory ? NULL : &check->items.items[check->items.count - 1];

	if (!item || !refusal || item->state == MMT_CHECK_GOOD)
		return;
	item->remedy = refusal->remedies[0].command;
	item->remedy_effect = refusal->remedies[0].effect;
}

/* `source` is NULL if the tracepoints cannot be read. */
static void check_permissions(struct check *check, const struct tracepoint_source *source)
{
	long long paranoid = text_file_number(-1, "/proc/sys/kernel/perf_event_paranoid", 2);
	struct mmt_error *refused = events_check_permitted();
	bool restricted = true;

	/* Ask the kernel in the same way as a recording does whether it permits kernel-internal tracepoints. */
	if (!refused && source)
		mmt_error_destroy(events_are_restricted(source, &restricted));
	else if (!refused)
		restricted = !((has(check, CAP_PERFMON) || has(check, CAP_SYS_ADMIN)) && permission_is_global());
	check->can_record_all = !restricted;
	if (refused)
		add(check, MMT_CHECK_MISSING, "permissions", NULL, "%s", refused->message);
	else if (check->can_record_all)
		add(check, MMT_CHECK_GOOD, "permissions", NULL, "all events (kernel.perf_event_paranoid is %lld)",
		    paranoid);
	else
		add(check, MMT_CHECK_LIMITED, "permissions", NULL,
		    "own processes (kernel.perf_event_paranoid is %lld, no CAP_PERFMON)", paranoid);
	add_remedy(check, refused ? refused->refusal : permission_explain(PERMISSION_CPU_EVENTS));
	mmt_error_destroy(refused);
	if (permission_is_global() && has(check, CAP_SYS_PTRACE) && has(check, CAP_DAC_READ_SEARCH))
		add(check, MMT_CHECK_GOOD, "other users", NULL, "their processes too");
	else
		add(check, MMT_CHECK_LIMITED, "other users", NULL, "own processes only (%s)",
		    permission_is_global() ? "no CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"
					   : "a user namespace, whose capabilities do not apply to other users");
	add_remedy(check, permission_explain(PERMISSION_PROCESS));
}

/* Reports whether events can be opened. Leaves no descriptor open. *usable_ret: they can. */
static void check_events(struct check *check, bool *usable_ret)
{
	struct tracepoint_source source;
	struct mmt_error *error = tracefs_open(&source);

	check_permissions(check, error ? NULL : &source);
	*usable_ret = !error;
	if (!error) {
		add(check, MMT_CHECK_GOOD, "tracepoints", NULL, "%s",
		    source.directory < 0 ? "read from " TRACEFS_SAVED_DIRECTORY "/" TRACEFS_SAVED_NAME
					   " (mmtrace setup)"
					 : "read from tracefs");
		tracefs_close(&source);
	} else {
		add(check, MMT_CHECK_MISSING, "tracepoints", "sudo mmtrace setup", "%s", error->message);
		add_remedy(check, error->refusal);
	}
	mmt_error_destroy(error);
}

static void check_rings(struct check *check)
{
	struct mmt_record_options options;
	struct mmt_error *error;
	struct rings rings;
	struct rlimit limit = {0};
	char allowed[32] = "unlimited";

	mmt_record_options_init(&options);
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur != RLIM_INFINITY)
		snprintf(allowed, sizeof(allowed), "%llu KiB", (unsigned long long)limit.rlim_cur >> 10);
	error = rings_create(0, events_dump_bytes(&options), events_large_dump_bytes(&options), &rings);
	if (error && !error->refusal)
		add(check, MMT_CHECK_MISSING, "ring buffers", NULL, "%s", error->message);
	else if (!error)
		add(check, rings.shrunk ? MMT_CHECK_LIMITED : MMT_CHECK_GOOD, "ring buffers",
		    "sudo sysctl kernel.perf_event_mlock_kb=16384, or a larger `ulimit -l`",
		    "%llu KiB for each CPU%s (kernel.perf_event_mlock_kb is %lld, ulimit -l %s)",
		    (unsigned long long)rings.bytes_per_cpu >> 10,
		    rings.shrunk ? ": events are lost sooner under load" : "",
		    (long long)text_file_number(-1, "/proc/sys/kernel/perf_event_mlock_kb", -1), allowed);
	if (scope_threads_are_cheap(rings.cpus.count, USUAL_EVENTS))
		add(check, MMT_CHECK_GOOD, "CPUs", NULL, "%zu: events of threads cost little", rings.cpus.count);
	else if (check->can_record_all)
		add(check, MMT_CHECK_GOOD, "CPUs", NULL,
		    "%zu: events in control groups or on CPUs cost less than of threads", rings.cpus.count);
	else
		add(check, MMT_CHECK_LIMITED, "CPUs", NULL,
		    "%zu: only events of threads, with which a pair of mmap and munmap takes about %u us longer",
		    rings.cpus.count, scope_threads_cost_us(rings.cpus.count, USUAL_EVENTS));
	add_remedy(check, permission_explain(PERMISSION_CPU_EVENTS));
	mmt_error_destroy(error);
	rings_deinit(&rings);
}

static void check_files_and_ptrace(struct check *check)
{
	int64_t scope = text_file_number(-1, "/proc/sys/kernel/yama/ptrace_scope", 0);
	bool refused = scope > 0 && !has(check, CAP_SYS_PTRACE);
	struct rlimit limit = {0};

	getrlimit(RLIMIT_NOFILE, &limit);
	add(check, limit.rlim_max >= 4096 ? MMT_CHECK_GOOD : MMT_CHECK_LIMITED, "open files",
	    "raise the hard limit: ulimit -Hn 1048576 as root, or LimitNOFILE= of the service", "%llu at most",
	    (unsigned long long)limit.rlim_max);
	add(check, refused ? MMT_CHECK_LIMITED : MMT_CHECK_GOOD, "JIT code", "sudo sysctl kernel.yama.ptrace_scope=0",
	    refused
		? "of commands only: that of processes attached to cannot be copied (kernel.yama.ptrace_scope is %lld)"
		: "can be copied (kernel.yama.ptrace_scope is %lld)",
	    (long long)scope);
}

static void check_namespaces(struct check *check)
{
	bool user = permission_is_global(), processes = proc_has_machine_pids();

	if (!clock_is_of_events())
		add(check, MMT_CHECK_MISSING, "namespaces", "record from outside of this time namespace",
		    "a time namespace, whose clock differs from that of the kernel's events");
	else if (user && processes)
		add(check, MMT_CHECK_GOOD, "namespaces", NULL,
		    "those of the machine; processes of containers are seen");
	else
		add(check, MMT_CHECK_LIMITED, "namespaces",
		    "run on the machine itself, or in a container with --pid=host --privileged",
		    "inside a container%s%s", processes ? "" : ": only its own processes are seen",
		    user ? "" : "; its root has no permission to open events");
}

struct mmt_error *mmt_check_create(struct mmt_check **check_ret)
{
	struct check *check = calloc(1, sizeof(*check));
	const char *unconfined = confine_missing();
	bool usable;

	if (!check)
		return &error_no_memory;
	check->capabilities = permission_capabilities();
	check_kernel(check);
	check_events(check, &usable);
	if (usable)
		check_rings(check);
	check_files_and_ptrace(check);
	check_namespaces(check);
	if (unconfined)
		add(check, MMT_CHECK_LIMITED, "confinement", NULL,
		    "reports read recordings without %s, which this system does not have", unconfined);
	else
		add(check, MMT_CHECK_GOOD, "confinement", NULL,
		    "reports read recordings confined by Landlock and seccomp");
	check->result.items = check->items.items;
	check->result.item_count = check->items.count;
	if (check->out_of_memory) {
		mmt_check_destroy(&check->result);
		return &error_no_memory;
	}
	*check_ret = &check->result;
	return NULL;
}

void mmt_check_destroy(struct mmt_check *check)
{
	struct check *mutable = (struct check *)check;

	if (!mutable)
		return;
	vector_deinit(&mutable->items);
	arena_deinit(&mutable->arena);
	free(mutable);
}

struct mmt_error *mmt_setup(const char **path_ret)
{
	*path_ret = TRACEFS_SAVED_DIRECTORY "/" TRACEFS_SAVED_NAME;
	return tracefs_save(TRACEFS_SAVED_DIRECTORY);
}
