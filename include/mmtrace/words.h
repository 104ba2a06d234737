/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Enumerations whose values have words in documents and options: DO(value, word). A function returns the word, which is
 * static; of other values "unknown", or NULL for limits. Verdicts on rows share words: those that are
 * undecided are "too-short", parts of leaks and what only grows are "leak". */
#pragma once

#include <mmtrace/error.h>

#define MMT_VALUE(value, ...) value,

/* clang-format off */
/* Kind of memory, derived from the call that mapped it, its file, and later calls such as mprotect(2). */
#define MMT_CLASS_WORDS(DO) \
DO(MMT_CLASS_ANON, "anon")                 /* other anonymous memory */ \
DO(MMT_CLASS_FILE, "file")                 /* a file, memfd or device */ \
DO(MMT_CLASS_HEAP, "heap")                 /* brk */ \
DO(MMT_CLASS_SHM, "shm")                   /* System V and anonymous shared memory */ \
DO(MMT_CLASS_THREAD_STACK, "thread-stack") /* MAP_STACK, or mapped by a function that creates thread stacks */ \
DO(MMT_CLASS_HUGETLB, "hugetlb") \
DO(MMT_CLASS_JIT, "jit")                   /* anonymous memory or memfd, executable now or earlier */ \
DO(MMT_CLASS_GC_RESERVE, "gc-reserve")     /* address space of a managed heap: large, PROT_NONE and MAP_NORESERVE */
enum mmt_class { MMT_CLASS_WORDS(MMT_VALUE) MMT_CLASS_KINDS };
MMT_PUBLIC const char *mmt_class_name(enum mmt_class memory_class);

/* Why a stack ends: words for people, and those of JSON documents. Recordings contain the numbers: the order is
 * fixed. */
#define MMT_STACK_END_WORDS(DO) \
DO(MMT_STACK_END_ENTRY, "complete", "entry") /* reached the thread's entry: _start, clone ... */ \
DO(MMT_STACK_END_DUMP_EXHAUSTED, "stack dump exhausted", "dump_exhausted") /* and no callchain continues it */ \
DO(MMT_STACK_END_DEPTH_LIMIT, "depth limit reached", "depth_limit") /* kernel.perf_event_max_stack, or a limit here */ \
DO(MMT_STACK_END_NO_UNWIND_DATA, "no unwind data", "no_unwind_data") /* for the caller of the last frame */ \
DO(MMT_STACK_END_CALLCHAIN, "end of the frame-pointer chain", "callchain_end") /* before an entry was seen */ \
DO(MMT_STACK_END_INVALID, "stack does not advance", "invalid") /* or the next frame is at an invalid address */ \
DO(MMT_STACK_END_NOT_RECORDED, "no stack recorded", "not_recorded") /* --call-graph none, or the sample was lost */ \
DO(MMT_STACK_END_OTHER_STACK, "continues on another stack", "other_stack") /* such as an alternate signal stack */ \
DO(MMT_STACK_END_COROUTINE, "start of a coroutine", "coroutine") /* reached the function that makecontext(3) started */ \
DO(MMT_STACK_END_RETURN_PROBE, "return probe of another tool", "return_probe") /* the kernel replaced the caller */
enum mmt_stack_end { MMT_STACK_END_WORDS(MMT_VALUE) MMT_STACK_END_KINDS };
MMT_PUBLIC const char *mmt_stack_end_name(enum mmt_stack_end end);

/* With the names that the kernel uses. */
#define MMT_LIMIT_WORDS(DO) \
DO(MMT_LIMIT_NONE, NULL)                    /* none that is known */ \
DO(MMT_LIMIT_MAPPINGS, "vm.max_map_count")  /* `value` and `used` are numbers of mappings; below, bytes */ \
DO(MMT_LIMIT_ADDRESS_SPACE, "RLIMIT_AS") \
DO(MMT_LIMIT_DATA, "RLIMIT_DATA") \
DO(MMT_LIMIT_LOCKED, "RLIMIT_MEMLOCK") \
DO(MMT_LIMIT_COMMIT, "CommitLimit")         /* with vm.overcommit_memory 2; `used`: Committed_AS at most */ \
DO(MMT_LIMIT_MEMORY, "MemTotal+SwapTotal")  /* of one call, with vm.overcommit_memory 0 */ \
DO(MMT_LIMIT_HUGE_PAGES, "HugePages_Total") /* the pool of huge pages of the default size */
enum mmt_limit_kind { MMT_LIMIT_WORDS(MMT_VALUE) MMT_LIMIT_KINDS };
MMT_PUBLIC const char *mmt_limit_name(enum mmt_limit_kind kind);

/* The verdict on a row or a cause; see mmtrace-internals(7). */
#define MMT_ROW_VERDICT_WORDS(DO) \
DO(MMT_ROW_UNKNOWN, "unknown")     /* it holds nothing that was mapped or made accessible in the window */ \
DO(MMT_ROW_TOO_SHORT, "too-short") /* the window is too short for any verdict */ \
DO(MMT_ROW_UNDECIDED, "too-short") /* it is long enough for other rows: see advised_ns */ \
DO(MMT_ROW_LEAK, "leak")           /* allocated throughout the recording, older than freed mappings were */ \
DO(MMT_ROW_PART_OF_LEAK, "leak")   /* of a row: not a leak by itself, but together with other rows of its function */ \
DO(MMT_ROW_KEEPS_GROWING, "leak")  /* a leak or not: an allocator or a runtime keeps it, or a buffer fills */ \
DO(MMT_ROW_CACHE, "cache")         /* allocated early, and kept */ \
DO(MMT_ROW_MADE_EARLY, "cache")    /* too few mappings for a cache; they may be a pool that is touched bit by bit */ \
DO(MMT_ROW_TRAFFIC, "traffic")     /* no older than freed mappings were */
enum mmt_row_verdict { MMT_ROW_VERDICT_WORDS(MMT_VALUE) MMT_ROW_VERDICTS };
MMT_PUBLIC const char *mmt_row_verdict_name(enum mmt_row_verdict verdict);

/* How the resident size changed over time. mmtrace-internals(7) describes the rules. */
#define MMT_VERDICT_WORDS(DO) \
DO(MMT_VERDICT_UNKNOWN, "unknown")     /* no resident sizes were recorded */ \
DO(MMT_VERDICT_TOO_SHORT, "too-short") /* the recording is too short: see advised_ns */ \
DO(MMT_VERDICT_GROWING, "growing") \
DO(MMT_VERDICT_PLATEAU, "plateau")     /* grew and then stayed level: see settled_ns */ \
DO(MMT_VERDICT_STEADY, "steady") \
DO(MMT_VERDICT_SHRINKING, "shrinking")
enum mmt_verdict { MMT_VERDICT_WORDS(MMT_VALUE) MMT_VERDICT_KINDS };
MMT_PUBLIC const char *mmt_verdict_name(enum mmt_verdict verdict);

/* Owner of a page that was resident either at the start or at the end, but not both. */
#define MMT_GROWTH_PLACE_WORDS(DO) \
DO(MMT_GROWTH_MADE, "made")           /* a mapping made during the recording */ \
DO(MMT_GROWTH_COMMITTED, "committed") /* an older mapping that was made accessible during the recording */ \
DO(MMT_GROWTH_BEFORE, "before")       /* memory that was accessible before the recording */ \
DO(MMT_GROWTH_KERNEL, "kernel")       /* mapped by the kernel: programs, stacks */ \
DO(MMT_GROWTH_UNMAPPED, "unmapped")   /* an older mapping that was unmapped */ \
DO(MMT_GROWTH_ENDED, "ended")         /* a process that ended: all of its RSS */ \
DO(MMT_GROWTH_UNREAD, "unread")       /* a process whose pages were not read: the change of its RSS */
enum mmt_growth_place { MMT_GROWTH_PLACE_WORDS(MMT_VALUE) MMT_GROWTH_PLACES };
MMT_PUBLIC const char *mmt_growth_place_name(enum mmt_growth_place place);

/* What the censuses of a malloc heap show. */
#define MMT_HEAP_VERDICT_WORDS(DO) \
DO(MMT_HEAP_NO_VERDICT, "unknown")        /* no trend, or fewer than three censuses */ \
DO(MMT_HEAP_LEVEL, "level") \
DO(MMT_HEAP_IN_USE_GROWS, "in-use-grows") /* from each census to the next */ \
DO(MMT_HEAP_FREE_GROWS, "free-grows")     /* likewise */
enum mmt_heap_verdict { MMT_HEAP_VERDICT_WORDS(MMT_VALUE) };
MMT_PUBLIC const char *mmt_heap_verdict_name(enum mmt_heap_verdict verdict);

/* The figure of each stack in the format that has only one: "folded". */
#define MMT_WEIGHT_WORDS(DO) \
DO(MMT_WEIGHT_MEMORY, "memory")       /* the default, as reports are sorted: see mmt_row.memory_bytes */ \
DO(MMT_WEIGHT_UNFREED, "unfreed")     /* includes address space that is only reserved */ \
DO(MMT_WEIGHT_RESIDENT, "resident")   /* of unfreed bytes; 0 where not known */ \
DO(MMT_WEIGHT_COMMITTED, "committed") \
DO(MMT_WEIGHT_ALLOCATED, "allocated") \
DO(MMT_WEIGHT_COUNT, "count")         /* mappings that are not unmapped */
enum mmt_weight { MMT_WEIGHT_WORDS(MMT_VALUE) MMT_WEIGHT_KINDS };

/* What the rows of a report are. */
#define MMT_ROW_KEY_WORDS(DO) \
DO(MMT_BY_STACK, "stack") \
DO(MMT_BY_FUNCTION, "function") /* the innermost function outside the C library and the loader */ \
DO(MMT_BY_MODULE, "module")     /* the module of that function */ \
DO(MMT_BY_FILE, "file")         /* path of the mapped file, or the class in brackets: "[anon]" */ \
DO(MMT_BY_CLASS, "class") \
DO(MMT_BY_PROCESS, "process") \
DO(MMT_BY_THREAD, "thread")     /* the rows are stacks; see `thread_totals` and `releases` of the report */ \
DO(MMT_BY_TOUCH, "touch")       /* the stacks of page faults whose pages are new and still resident; no verdicts */
enum mmt_row_key { MMT_ROW_KEY_WORDS(MMT_VALUE) };
MMT_PUBLIC const char *mmt_row_key_name(enum mmt_row_key key);

#define MMT_CHANGE_WORDS(DO) \
DO(MMT_CHANGE_NEW, "new") \
DO(MMT_CHANGE_GONE, "gone") \
DO(MMT_CHANGE_GROWN, "grown") \
DO(MMT_CHANGE_SHRUNK, "shrunk") \
DO(MMT_CHANGE_SAME, "same")
enum mmt_change { MMT_CHANGE_WORDS(MMT_VALUE) };
MMT_PUBLIC const char *mmt_change_name(enum mmt_change change);

/* What the two recordings are of. */
#define MMT_DIFF_RELATION_WORDS(DO) \
DO(MMT_DIFF_RUNS, "runs")                   /* runs of one program: the growth within each is compared */ \
DO(MMT_DIFF_SAME_PROCESS, "same-process")   /* one process, first earlier, then later */ \
DO(MMT_DIFF_OTHER_PROGRAM, "other-program") /* no two processes have the same name: stacks can hardly match */
enum mmt_diff_relation { MMT_DIFF_RELATION_WORDS(MMT_VALUE) };
MMT_PUBLIC const char *mmt_diff_relation_name(enum mmt_diff_relation relation);

/* Why a report may be incomplete: DO(id, name in JSON documents, meaning). The names are stable. */
#define MMT_WARNINGS(DO) \
DO(MISSING_SYSCALL, "missing-syscall", "no events of a system call") \
DO(NO_SNAPSHOTS, "no-snapshots", "the mappings of the process were never read") \
DO(NO_STACKS, "no-stacks", "recorded without call stacks") \
DO(NO_STACK_DUMPS, "no-stack-dumps", "recorded without registers and stack memory") \
DO(RECORDED_BY_PERF, "recorded-by-perf", "no resident sizes and perf maps") \
DO(VFORK_CHILDREN, "vfork-children", "children of vfork(2) may count twice") \
DO(MISSING_ARGUMENTS, "missing-arguments", "calls without arguments are ignored") \
DO(UNKNOWN_EFFECT, "unknown-effect", "events do not show the effect of these calls") \
DO(FAKED_CALLS, "faked-calls", "a seccomp filter or a tracer answered calls") \
DO(UNEXPLAINED_MISMATCH, "unexplained-mismatch", "differs from the kernel's maps, with no event lost") \
DO(SET_USER_ID, "set-user-id", "calls of set-user-ID programs are missing") \
DO(JIT_CODE_UNNAMED, "jit-code-unnamed", "no names for JIT code") \
DO(PERF_MAP_LIMIT, "perf-map-limit", "lines of a perf map were ignored") \
DO(JITDUMP_CLOCK, "jitdump-clock", "a jitdump uses another clock") \
DO(JITDUMP_RECORDS, "jitdump-records", "records of a jitdump were ignored") \
DO(JITDUMP_CUT, "jitdump-cut", "a jitdump ends within a record") \
DO(JITDUMP_UNUSABLE, "jitdump-unusable", "a jitdump was ignored") \
DO(FRAME_POINTERS_UNKNOWN, "frame-pointers-unknown", "JIT code may have no frame pointers: callers may be missing") \
DO(STACKS_END_IN_JIT_CODE, "stacks-end-in-jit-code", "their callers are missing") \
DO(PRECOMPILED_CODE_UNNAMED, "precompiled-code-unnamed", "no names for precompiled .NET code") \
DO(INTERPRETED_CODE_UNNAMED, "interpreted-code-unnamed", "no names for interpreted functions") \
DO(MODULE_UNUSABLE, "module-unusable", "an ELF file is missing, or is not the recorded one") \
DO(MODULES_NOT_KEPT, "modules-not-kept", "advice for such files") \
DO(DEBUG_INFORMATION, "debug-information", "debug information is damaged or incomplete") \
DO(MORE_WARNINGS, "more-warnings", "number of warnings that were omitted") \
DO(UNRECORDED_CHILDREN, "unrecorded-children", "a process had children that are not in the recording") \
DO(STILL_RUNNING, "still-running", "processes of the command outlived it, and the recording") \
DO(INHERITED_NOT_COPIED, "inherited-not-copied", "what forked processes inherited is left out") \
DO(STACKS_LEFT_OUT, "stacks-left-out", "there are too many different call stacks") \
DO(NAMES_UNREAD, "names-unread", "the process that reads names was killed or not started")
#define MMT_WARNING_ID(id, ...) MMT_WARNING_##id,
enum mmt_warning { MMT_WARNINGS(MMT_WARNING_ID) };
MMT_PUBLIC const char *mmt_warning_name(enum mmt_warning warning);
/* clang-format on */
