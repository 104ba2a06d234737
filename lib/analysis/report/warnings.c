// SPDX-License-Identifier: LGPL-2.1-or-later
/* The warnings of a report: data that is missing in the recording, and why figures or names may be wrong.
 * Lost events have a line of their own in lib/output/text/text-header.c. */
#include "analysis/report/report-build.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/strings.h"

#define WARNINGS_MAX 32
#define PROGRAMS_NAMED 8 /* on another machine all of them are missing */

struct warnings {
	struct arena *arena;
	const char **items;
	enum mmt_warning *codes; /* of the items */
	size_t count, maximum, left_out;
	bool out_of_memory;
};

__attribute__((format(printf, 3, 4))) static void add(struct warnings *warnings, enum mmt_warning code,
						      const char *format, ...)
{
	CLEANUP(free) char *text = NULL;
	va_list arguments;
	int length;

	if (warnings->count == warnings->maximum) {
		warnings->left_out++;
		return;
	}
	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		text = NULL;
	warnings->items[warnings->count] = text ? arena_string(warnings->arena, text) : NULL;
	warnings->codes[warnings->count] = code;
	if (warnings->items[warnings->count])
		warnings->count++;
	else
		warnings->out_of_memory = true;
}

static bool has_sample_bits(const struct reader_metadata *metadata, uint64_t bits)
{
	return array_find(attribute, metadata->attributes, metadata->attribute_count,
			  attribute->is_call && (attribute->sample_type & bits) == bits);
}

static void find_missing_sources(const struct replay *replay, struct warnings *warnings)
{
	const struct reader_metadata *metadata = replay->metadata;
	bool has_dumps = has_sample_bits(metadata, PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);

	for (unsigned call = 0; call < CALL_KINDS; call++) {
		const struct call_description *description = call_describe((enum call)call);

		if (description->missing &&
		    !array_find(attribute, metadata->attributes, metadata->attribute_count,
				attribute->is_call && !attribute->is_enter && attribute->call == call))
			add(warnings, MMT_WARNING_MISSING_SYSCALL, "no syscalls:sys_exit_%s events: %s",
			    description->name, description->missing);
	}
	if (!replay->has_snapshots)
		add(warnings, MMT_WARNING_NO_SNAPSHOTS,
		    "the mappings of the process were never read: what was mapped before is not known, and the result "
		    "is not checked against the kernel");
	if (!has_dumps && !has_sample_bits(metadata, PERF_SAMPLE_CALLCHAIN))
		add(warnings, MMT_WARNING_NO_STACKS, "recorded without call stacks: record with --call-graph");
	else if (!has_dumps)
		add(warnings, MMT_WARNING_NO_STACK_DUMPS,
		    "recorded without registers and stack dumps: the direct caller of mmap is missing from most call "
		    "stacks");
	add(warnings, MMT_WARNING_RECORDED_BY_PERF,
	    "recorded by perf: resident sizes and copies of perf maps are missing; `mmtrace record` records them");
}

/* Names that are present but incomplete. */
static void find_poor_names(int32_t pid, const struct jit_names_state *names, struct warnings *warnings)
{
	if (names->dropped_lines)
		add(warnings, MMT_WARNING_PERF_MAP_LIMIT,
		    "the perf map of process %" PRId32 " has %zu lines beyond a limit: their code has no names", pid,
		    names->dropped_lines);
	if (names->other_clock)
		add(warnings, MMT_WARNING_JITDUMP_CLOCK,
		    "the jitdump of process %" PRId32
		    " uses another clock: replaced code gets the name of the code that replaced it",
		    pid);
	if (names->lost_records)
		add(warnings, MMT_WARNING_JITDUMP_RECORDS,
		    "%zu %s of the jitdump of process %" PRId32
		    " cannot be used because %s: some code has no name, line or unwind table",
		    names->lost_records, names->lost_records == 1 ? "record" : "records", pid,
		    names->lost_records == 1 ? "it is malformed or exceeds a limit"
					     : "they are malformed or exceed a limit");
	if (names->unread_bytes)
		add(warnings, MMT_WARNING_JITDUMP_CUT,
		    "the jitdump of process %" PRId32
		    " ends within a record: code that its last %zu bytes describe has no name",
		    pid, names->unread_bytes);
	if (names->jitdump_failure)
		add(warnings, MMT_WARNING_JITDUMP_UNUSABLE, "the jitdump of process %" PRId32 " is not used: %s", pid,
		    names->jitdump_failure);
}

/* The recording shows only that a program was executed and that the thread's events ended before its first mapping. If
 * records were lost, that mapping may be among them. */
static void find_setuid_execs_programs(const struct replay *replay, const struct mmt_completeness *completeness,
				       struct warnings *warnings)
{
	struct setuid_execs_count count = setuid_execs_count(&replay->setuid_execs);
	bool lossy = completeness->lost_events || completeness->damaged || replay->lost_events;
	const char *name;

	if (!count.programs)
		return;
	name = intern_get(&replay->processes->names, count.name, NULL);
	if (count.programs == 1)
		add(warnings, MMT_WARNING_SET_USER_ID,
		    "the calls of program %s are not in the recording: %sit is set-user-ID or set-group-ID, so the "
		    "kernel closed the events of its thread (--scope cpus records it), or it ended before it was "
		    "loaded",
		    name, lossy ? "its records were lost, or " : "");
	else
		add(warnings, MMT_WARNING_SET_USER_ID,
		    "the calls of %" PRIu64
		    " programs (%s and others) are not in the recording: %sthey are set-user-ID or set-group-ID, so "
		    "the kernel closed the events of their threads (--scope cpus records them), or they ended before "
		    "they were loaded",
		    count.programs, name, lossy ? "their records were lost, or " : "");
}

/* `with_option`: also name the option for complete stacks. */
static void find_missing_names(const struct replay *replay, const struct process *process,
			       const struct jit_code_state *code, bool with_option, struct warnings *warnings)
{
	const char *option = code->runtime ? runtimes_names_option(code->runtime, false, replay->metadata, process->pid,
								   process->program_ns)
					   : NULL;
	int32_t pid = process->pid;

	if (code->names.has_perf_map || code->names.has_jitdump)
		add(warnings, MMT_WARNING_JIT_CODE_UNNAMED,
		    "some JIT code of process %" PRId32 " has no name: it is missing from the %s", pid,
		    code->names.has_perf_map ? "perf map" : "jitdump");
	else if (option)
		add(warnings, MMT_WARNING_JIT_CODE_UNNAMED,
		    "no names for JIT code in process %" PRId32
		    " (%s): it was started with %s, but the recording has no perf map of it",
		    pid, code->runtime->label, option);
	else if (code->runtime)
		add(warnings, MMT_WARNING_JIT_CODE_UNNAMED,
		    "no names for JIT code in process %" PRId32 " (%s): %s%s%s%s%s", pid, code->runtime->label,
		    code->runtime->advice, with_option ? "; and start it with " : "",
		    with_option ? code->runtime->frame_pointers : "",
		    with_option && code->runtime->in_environment ? " in its environment" : "",
		    with_option ? ", without which stacks may end at its code" : "");
	else
		add(warnings, MMT_WARNING_JIT_CODE_UNNAMED,
		    "no names for JIT code in process %" PRId32
		    ": mmtrace does not know its runtime; check whether it can write a perf map",
		    pid);
}

static void find_interpreted(const struct replay *replay, const struct process *process,
			     const struct jit_code_state *code, struct warnings *warnings)
{
	const struct runtime *runtime = code->interpreter;
	const char *option;

	/* With -Xcomp, the frames of compiled methods look the same. */
	if (!runtime || (!strcmp(runtime->name, "java") &&
			 runtimes_started_with(replay->metadata, process->pid, process->program_ns,
					       OPTION_JAVA_COMPILED, "-Xcomp") == 1))
		return;
	option = runtimes_names_option(runtime, true, replay->metadata, process->pid, process->program_ns);
	add(warnings, MMT_WARNING_INTERPRETED_CODE_UNNAMED,
	    "interpreted functions of process %" PRId32 " (%s) have no names: %s%s%s", process->pid, runtime->label,
	    option ? "it was started with " : runtime->interpreted_advice, option ? option : "",
	    !option		       ? ""
	    : code->names.has_perf_map ? ", but its perf map does not have them"
				       : ", but the recording has no perf map of it");
}

/* A stack has frames, a row by function the name of its own: "System.Private.CoreLib.dll+0x1234". */
static bool is_precompiled(const struct mmt_row *row)
{
	array_each(place, row->frames, row->frame_count) {
		const struct mmt_frame *frame = *place;

		if (frame->kind == MMT_FRAME_NATIVE && !frame->function && frame->module &&
		    (ends_with(frame->module, ".dll") || ends_with(frame->module, ".exe") ||
		     starts_with(frame->module, BUNDLED_ASSEMBLIES)))
			return true;
	}
	return row->name && (strstr(row->name, ".dll+0x") || strstr(row->name, ".exe+0x") ||
			     (starts_with(row->name, BUNDLED_ASSEMBLIES) && strstr(row->name, "+0x")));
}

/* Whether rows of the process with memory that matters need the names of precompiled .NET code. */
static bool needs_precompiled_names(const struct mmt_report *report, int32_t pid)
{
	uint64_t memory_bytes = 0;

	array_each(row, report->rows, report->row_count)
		memory_bytes = saturating_add(memory_bytes, row->memory_bytes, MMT_BYTES_MAX);
	array_each(row, report->rows, report->row_count) {
		if (array_find(of, row->pids, row->pid_count, *of == pid) && row->memory_bytes >= memory_bytes / 100 &&
		    is_precompiled(row))
			return true;
	}
	return false;
}

static void find_unnamed_code(const struct replay *replay, const struct mmt_report *report, struct warnings *warnings)
{
	for (const struct process *process = NULL; (process = processes_next(replay->processes, process));) {
		const struct jit_code_state code = resolver_jit(replay->code, process->index);
		const struct runtime *runtime = code.runtime;
		int32_t pid = process->pid;
		/* Whether the runtime has an option to keep frame pointers that was not set (0), or may not have been
		 * (-1); 1: neither. */
		int keeps = runtime && runtime->frame_pointers
				? runtimes_started_with(replay->metadata, pid, process->program_ns,
							runtime->frame_pointers_option, runtime->frame_pointers)
				: 1;

		find_poor_names(pid, &code.names, warnings);
		/* Unwinding by frame pointers skips callers that keep none, and the recording does not show where. */
		if (code.unchecked_frames && keeps != 1)
			add(warnings, MMT_WARNING_FRAME_POINTERS_UNKNOWN,
			    "process %" PRId32
			    " (%s) %s without %s%s: %scallers of compiled methods %s missing from its stacks",
			    pid, runtime->label, keeps ? "may have been started" : "was started",
			    runtime->frame_pointers, runtime->in_environment ? " in its environment" : "",
			    keeps ? "then " : "", keeps ? "are" : "may be");
		if (code.stacks_end_there && runtime && runtime->complete_stacks)
			add(warnings, MMT_WARNING_STACKS_END_IN_JIT_CODE,
			    "stacks of process %" PRId32 " (%s) end in JIT code: %s", pid, runtime->label,
			    runtime->complete_stacks);
		if (code.unnamed)
			find_missing_names(replay, process, &code, keeps != 1 && !code.unchecked_frames, warnings);
		if (runtime && !strcmp(runtime->name, "dotnet") && needs_precompiled_names(report, pid))
			add(warnings, MMT_WARNING_PRECOMPILED_CODE_UNNAMED,
			    "precompiled code of process %" PRId32
			    " (%s) has no names: start it with DOTNET_ReadyToRun=0 in its environment%s",
			    pid, runtime->label, code.names.has_perf_map ? "" : " and with a perf map");
		find_interpreted(replay, process, &code, warnings);
	}
}

static void find_unusable_programs(const struct replay *replay, struct warnings *warnings)
{
	static const char *const reasons[] = {
	    [MODULE_MISSING] = "is missing",
	    [MODULE_OTHER_BUILD] = "is not the build that was recorded",
	    [MODULE_BROKEN] = "is not a valid ELF file",
	    [MODULE_CHANGED] = "was changed after it was recorded, and has no build-id to compare",
	    [MODULE_SILENT] = "is on a file system that does not answer",
	};
	enum module_state state;
	size_t position = 0, count = 0;
	const char *path;

	while ((path = resolver_unusable(replay->code, &position, &state, NULL))) {
		if (!reasons[state])
			continue;
		if (++count <= PROGRAMS_NAMED)
			add(warnings, MMT_WARNING_MODULE_UNUSABLE,
			    "%s %s: its frames have no names, and stacks may end there", path, reasons[state]);
	}
	if (count > PROGRAMS_NAMED)
		add(warnings, MMT_WARNING_MODULE_UNUSABLE, "%zu more ELF files cannot be used", count - PROGRAMS_NAMED);
	if (count)
		add(warnings, MMT_WARNING_MODULES_NOT_KEPT,
		    "to keep names in a recording, run `mmtrace pack` where its ELF files are, or record with "
		    "--images all");
}

static void find_poor_debug_information(const struct replay *replay, struct warnings *warnings)
{
	static const char *const reasons[] = {
	    [MODULE_POOR_NAMES] = "is damaged",
	    [MODULE_LIMITED_NAMES] = "exceeds a limit of mmtrace",
	    [MODULE_SLOW_NAMES] = "takes too long to read",
	    [MODULE_MISSING_NAMES] =
		"refers to another file that is missing (.dwo, .dwp, or the one in .gnu_debugaltlink)",
	};
	int failure = modules_names_failure(resolver_modules(replay->code));
	const char *unread = failure > 0   ? "could not be started: "
			     : failure < 0 ? "was killed, perhaps because memory is short, or ended too often"
					   : "was killed or could not be started";
	enum module_state state;
	size_t position = 0, count = 0;
	const char *path;
	char *missing;

	while ((path = resolver_unusable(replay->code, &position, &state, &missing))) {
		CLEANUP(free) char *part = missing;

		if (state < MODULE_POOR_NAMES || state == MODULE_SILENT || ++count > PROGRAMS_NAMED)
			continue;
		if (state == MODULE_UNREAD_NAMES)
			add(warnings, MMT_WARNING_NAMES_UNREAD,
			    "names and lines of %s are missing: the process that reads them %s%s", path, unread,
			    failure > 0 ? strerrordesc_np(failure) : "");
		else if (part)
			add(warnings, MMT_WARNING_DEBUG_INFORMATION,
			    "the debug information of %s refers to other files that are missing (%s): some of its "
			    "lines and inlined functions are missing",
			    path, part);
		else
			add(warnings, MMT_WARNING_DEBUG_INFORMATION,
			    "the debug information of %s %s: some of its lines and inlined functions are missing", path,
			    reasons[state]);
	}
	if (count > PROGRAMS_NAMED)
		add(warnings, MMT_WARNING_DEBUG_INFORMATION,
		    "the debug information of %zu more ELF files is incomplete", count - PROGRAMS_NAMED);
}

/* Calls that a seccomp filter or a tracer answered instead of the kernel. */
static void find_faked_calls(const struct replay *replay, const struct mmt_report *report, struct warnings *warnings)
{
	const struct mmt_completeness *completeness = &report->completeness;
	bool lossy = completeness->lost_events || completeness->damaged || completeness->missed_threads ||
		     completeness->missed_cpus || completeness->left_processes || completeness->incomplete;
	bool wrong = completeness->reconciled_bytes ||
		     array_find(process, report->processes, report->process_count, process->mismatch_bytes);

	if (replay->faked_calls)
		add(warnings, MMT_WARNING_FAKED_CALLS,
		    "%" PRIu64 " %s returned address 0, which the kernel never does: a seccomp filter or a tracer "
		    "answered the calls in its place. They mapped nothing and are ignored; other calls "
		    "answered in this way cannot be recognized",
		    replay->faked_calls, replay->faked_calls == 1 ? "call that maps memory" : "calls that map memory");
	else if (replay->metadata->ours && !lossy && wrong)
		add(warnings, MMT_WARNING_UNEXPLAINED_MISMATCH,
		    "the figures differ from the kernel's maps although no event was lost; possible causes: a seccomp "
		    "filter that skips calls but makes them look successful, or 32-bit calls (int 0x80) of a 64-bit "
		    "program, which are not recorded");
}

/* Recording ends with the command or the targets, but not what these started. */
static void find_still_running(const struct replay *replay, struct warnings *warnings)
{
	size_t running = 0;
	int32_t pid = 0;

	for (const struct process *process = NULL; (process = processes_next(replay->processes, process));) {
		if (!process->parent_pid && replay_is_alive(replay, process))
			return;
		if (replay_is_alive(replay, process) && !running++)
			pid = process->pid;
	}
	if (running)
		add(warnings, MMT_WARNING_STILL_RUNNING,
		    "%zu %s of the %s still ran when it ended, and recording with it: record -p %" PRId32 "%s", running,
		    running == 1 ? "process" : "processes", replay->metadata->info.command ? "command" : "target", pid,
		    running == 1 ? "" : " and others");
}

/* What a report leaves out to bound its memory; and children: a supervisor may be level while its workers grow. */
static void find_left_out(const struct replay *replay, struct warnings *warnings)
{
	uint64_t not_copied = replay->processes->not_copied;

	if (not_copied)
		add(warnings, MMT_WARNING_INHERITED_NOT_COPIED,
		    "the mappings that %" PRIu64
		    " forked processes inherited are left out: too many for a recording of this size",
		    not_copied);
	if (replay->stacks_left_out)
		add(warnings, MMT_WARNING_STACKS_LEFT_OUT,
		    "the stacks of %" PRIu64
		    " calls are left out: too many different ones for a recording of this size",
		    replay->stacks_left_out);
	array_each(children, replay->notes.unrecorded_children.items, replay->notes.unrecorded_children.count) {
		add(warnings, MMT_WARNING_UNRECORDED_CHILDREN,
		    "process %" PRId32 " had %" PRIu64
		    " %s when recording began, which %s not in the recording: record with --tree",
		    children->parent, children->count, children->count == 1 ? "child" : "children",
		    children->count == 1 ? "is" : "are");
	}
}

struct mmt_error *warnings_describe(const struct replay *replay, struct arena *arena, struct mmt_report *report)
{
	struct mmt_completeness *completeness = &report->completeness;
	struct warnings warnings = {.arena = arena,
				    .items = arena_alloc(arena, WARNINGS_MAX + 1, sizeof(*warnings.items)),
				    .codes = arena_alloc(arena, WARNINGS_MAX + 1, sizeof(*warnings.codes)),
				    .maximum = WARNINGS_MAX};

	if (!warnings.items || !warnings.codes)
		return &error_no_memory;
	if (!replay->metadata->ours)
		find_missing_sources(replay, &warnings);
	else if (!array_find(attribute, replay->metadata->attributes, replay->metadata->attribute_count,
			     attribute->role == ROLE_NEW_TASK))
		add(&warnings, MMT_WARNING_VFORK_CHILDREN,
		    "recorded without CAP_PERFMON: vfork children, which share their parent's memory until they "
		    "execute a program, are treated as copies of it");
	if (replay->calls_without_entry)
		add(&warnings, MMT_WARNING_MISSING_ARGUMENTS,
		    "%" PRIu64 " calls were recorded without their arguments and are ignored",
		    replay->calls_without_entry);
	find_left_out(replay, &warnings);
	if (!report->windowed)
		find_still_running(replay, &warnings);
	/* Calls that are counted although their events do not show their effect. */
	for (unsigned call = 0; call < CALL_KINDS; call++) {
		const struct call_description *description = call_describe((enum call)call);
		uint64_t count = report->events[description->counter];

		if (description->unknown && count)
			add(&warnings, MMT_WARNING_UNKNOWN_EFFECT, "%" PRIu64 " %s of %s: %s", count,
			    count == 1 ? "call" : "calls", description->name, description->unknown);
	}
	find_faked_calls(replay, report, &warnings);
	find_setuid_execs_programs(replay, completeness, &warnings);
	find_unnamed_code(replay, report, &warnings);
	find_unusable_programs(replay, &warnings);
	find_poor_debug_information(replay, &warnings);
	if (warnings.left_out) {
		warnings.maximum++;
		add(&warnings, MMT_WARNING_MORE_WARNINGS, "%zu more notes are not shown", warnings.left_out);
	}
	completeness->warnings = warnings.items;
	completeness->warning_codes = warnings.codes;
	completeness->warning_count = warnings.count;
	return warnings.out_of_memory ? &error_no_memory : NULL;
}
