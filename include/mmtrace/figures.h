/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The figures of a report, in one table. An entry declares a member of the structs of mmtrace/report.h and writes a key
 * of JSON documents; it can make a column of CSV, a key of --sort, and a sum over rows or parts. A new figure is an
 * entry here, and the code that computes it. The manual has to list it; a lint compares.
 *
 * MMT_ROW_FIGURES(DO) and its like expand to DO(name, unit, known, sum, csv, text, sort..., help) for each of their
 * figures:
 * unit: BYTES, COUNT, NS; or signed: CHANGE (bytes), RATE (bytes per minute, or MMT_RATE_UNKNOWN).
 * known: an expression, where `it` is the struct. Any figure can also have the value MMT_UNKNOWN.
 * sum: SUM if causes, parts and the report add it up; otherwise the code that computes the figure does, if anything.
 * csv: V if it is a column of CSV.
 * text: what text reports call this part of the memory, if a row has it; NULL: they do not show it by this table.
 * sort: V, id, word, key, label for --sort, largest key first; otherwise five times _. If the rows are sorted by it,
 *       text reports show it with this label; NULL: they show it anyway.
 * MMT_PLAIN stands for these four, from sum to sort, of a figure that is shown in JSON documents only, or by code of
 * its own.
 */
#pragma once

#define MMT_SORTED(id, word, key, label) V, id, word, key, label
#define MMT_UNSORTED _, _, _, _, _
#define MMT_PLAIN _, _, NULL, MMT_UNSORTED

/* clang-format off */
/* FIGURE(DO, name, unit, scopes, known, sum, csv, text, sort, help). Scopes: rows (R), causes (C), parts (P), processes
 * (S), the first and the last reading of a process (D), the growth of all processes (G), the whole report (T). */
#define MMT_FIGURES(FIGURE, DO)                                                                                       \
FIGURE(DO, memory_bytes, BYTES, R,C,_,_,_,_,_, true, SUM, V, NULL, MMT_SORTED(MEMORY, "memory", it->memory_bytes, NULL), \
       "resident_bytes + resident_before_bytes + swapped_bytes; or committed, if residency is unknown")               \
FIGURE(DO, resident_bytes, BYTES, R,C,P,S,_,_,T, true, SUM, V, NULL,                                                  \
       MMT_SORTED(RESIDENT, "resident", it->resident_bytes == MMT_UNKNOWN ? 0 : it->memory_bytes, NULL),              \
       "of committed_bytes; of a process: all that it has; of a cause: also in memory mapped before")                 \
FIGURE(DO, resident_before_bytes, BYTES, R,_,P,_,_,_,_, true, SUM, V, NULL, MMT_UNSORTED, "of committed_before_bytes") \
FIGURE(DO, committed_bytes, BYTES, R,C,P,S,_,_,T, true, SUM, V, NULL,                                                 \
       MMT_SORTED(COMMITTED, "committed", it->committed_bytes + it->committed_before_bytes, NULL),                    \
       "accessible bytes; they count for the stack that made them accessible, by mprotect(2) or by mapping them")     \
FIGURE(DO, committed_before_bytes, BYTES, R,_,P,_,_,_,T, true, SUM, V, NULL, MMT_UNSORTED,                            \
       "in addition: made accessible in memory mapped before the window, or that the options leave out")              \
FIGURE(DO, swapped_bytes, BYTES, R,_,_,_,_,_,_, true, SUM, _, "swapped out", MMT_UNSORTED,                            \
       "of both, swapped out when recording ended; 0 if that is not known")                                           \
FIGURE(DO, touched_error_bytes, BYTES, R,_,_,_,_,_,_, true, MMT_PLAIN,                                                \
       "of memory_bytes by touch, an estimate if page faults were sampled: 95 % of all errors are smaller")           \
FIGURE(DO, unfreed_bytes, BYTES, R,C,P,S,_,_,T, true, SUM, V, NULL, MMT_UNSORTED,                                     \
       "mapped in the window and not unmapped at its end")                                                            \
FIGURE(DO, unfreed_count, COUNT, R,C,P,_,_,_,_, true, SUM, V, NULL,                                                   \
       MMT_SORTED(COUNT, "count", it->unfreed_count, NULL), "mappings that are at least partly unfreed")              \
FIGURE(DO, reserved_bytes, BYTES, R,C,P,S,_,_,T, true, SUM, V, NULL, MMT_UNSORTED, "unfreed bytes that are PROT_NONE") \
FIGURE(DO, original_bytes, BYTES, R,_,_,_,_,_,_, true, SUM, _, NULL, MMT_UNSORTED,                                    \
       "size of the unfreed mappings when they were mapped: more than unfreed_bytes if parts were unmapped")          \
FIGURE(DO, peak_bytes, BYTES, R,_,_,_,_,_,T, true, _, V, NULL,                                                        \
       MMT_SORTED(PEAK, "peak", it->peak_bytes, "peak"), "maximum of the unfreed bytes")                              \
FIGURE(DO, peak_ns, NS, R,_,_,_,_,_,T, it->peak_bytes, MMT_PLAIN, "when it was first reached")                        \
FIGURE(DO, allocated_bytes, BYTES, R,_,P,_,_,_,T, true, SUM, V, NULL,                                                 \
       MMT_SORTED(ALLOCATED, "allocated", it->allocated_bytes, "mapped"), "of all mappings of the window")            \
FIGURE(DO, allocated_count, COUNT, R,_,P,_,_,_,_, true, SUM, V, NULL, MMT_UNSORTED, "all mappings of the window")     \
FIGURE(DO, freed_bytes, BYTES, R,_,P,_,_,_,T, true, SUM, V, NULL,                                                     \
       MMT_SORTED(FREED, "freed", it->freed_bytes, "freed"), "part of these: unmapped in the window")                 \
FIGURE(DO, freed_count, COUNT, R,_,P,_,_,_,_, true, SUM, V, NULL, MMT_UNSORTED, "completely unmapped mappings")       \
FIGURE(DO, smallest_bytes, BYTES, R,_,_,_,_,_,_, it->unfreed_count, MMT_PLAIN,                                        \
       "unfreed bytes of a single mapping, as is largest_bytes")                                                      \
FIGURE(DO, largest_bytes, BYTES, R,_,_,_,_,_,_, it->unfreed_count, MMT_PLAIN, "see smallest_bytes")                   \
FIGURE(DO, first_ns, NS, R,C,_,_,_,_,_, it->unfreed_count, _, _, NULL,                                                \
       MMT_SORTED(AGE, "age", it->unfreed_bytes ? UINT64_MAX - it->first_ns : 0, NULL),                               \
       "when the oldest unfreed mapping was mapped")                                                                  \
FIGURE(DO, last_ns, NS, R,C,_,_,_,_,_, it->unfreed_count, MMT_PLAIN, "when the newest was")                           \
FIGURE(DO, mapping_count, COUNT, R,C,_,S,_,_,_, true, SUM, _, NULL,                                                   \
       MMT_SORTED(MAPPINGS, "mappings", it->mapping_count, NULL),                                                     \
       "mappings after merging, as the kernel counts them for vm.max_map_count; at the end of the window")            \
FIGURE(DO, bytes_per_minute, RATE, R,C,_,_,_,_,_, it->bytes_per_minute != MMT_RATE_UNKNOWN, _, _, NULL,             \
       MMT_SORTED(RATE, "rate", it->bytes_per_minute > 0 ? (uint64_t)it->bytes_per_minute : 0, NULL),                 \
       "slope of committed_bytes since rate_from_ns, as far as they are resident or swapped; unknown below two seconds") \
FIGURE(DO, outlived_count, COUNT, R,_,_,_,_,_,_, true, MMT_PLAIN,                                                     \
       "unfreed mappings that are older than outlived_ns; 0 if committed bytes led to the verdict")                   \
FIGURE(DO, outlived_ns, NS, R,_,_,_,_,_,_, it->outlived_ns < MMT_UNKNOWN / 2048, MMT_PLAIN,                           \
       "longer than the lifetimes of nearly all freed mappings; 0: none was freed")                                   \
FIGURE(DO, advised_ns, NS, R,_,_,_,_,_,_, it->advised_ns, MMT_PLAIN,                                                  \
       "MMT_ROW_UNDECIDED, _TOO_SHORT: how long to record for a verdict; otherwise 0")                                \
FIGURE(DO, resident_ns, NS, _,_,_,_,_,_,T, it->resident_ns, MMT_PLAIN,                                                \
       "when resident pages were read: at the end, or the last time before to_ns; of several processes the earliest") \
FIGURE(DO, unfiltered_unfreed_bytes, BYTES, _,_,_,_,_,_,T, true, MMT_PLAIN,                                           \
       "what unfreed_bytes would be without classes, focus and ignore")                                               \
FIGURE(DO, unfiltered_committed_bytes, BYTES, _,_,_,_,_,_,T, true, MMT_PLAIN,                                         \
       "what committed_bytes + committed_before_bytes would be")                                                      \
FIGURE(DO, ended_bytes, BYTES, _,_,_,_,_,_,T, true, MMT_PLAIN,                                                        \
       "unfreed in children that ended before a target; not part of other figures")                                   \
FIGURE(DO, before_bytes, BYTES, _,_,_,S,_,_,T, true, MMT_PLAIN,                                                       \
       "mapped before the window (or the fork) and still mapped")                                                     \
FIGURE(DO, kernel_bytes, BYTES, _,_,_,S,_,_,T, true, MMT_PLAIN,                                                       \
       "mapped by the kernel and still mapped: executed programs, stack growth, vdso")                                \
FIGURE(DO, too_recent_bytes, BYTES, _,_,_,_,_,_,T, true, MMT_PLAIN,                                                   \
       "mapped in [allocations_to_ns, to_ns) and still mapped")                                                       \
FIGURE(DO, given_back_bytes, BYTES, _,_,_,S,_,_,_, true, MMT_PLAIN,                                                   \
       "size of the ranges whose pages madvise(2) freed, added up over the calls")                                    \
FIGURE(DO, reconciled_bytes, BYTES, _,_,_,S,_,_,_, true, MMT_PLAIN,                                                   \
       "corrected from the kernel's maps: mapped or unmapped without an event")                                       \
FIGURE(DO, unknown_bytes, BYTES, _,_,_,S,_,_,_, true, MMT_PLAIN, "pages that are in no snapshot")                     \
FIGURE(DO, checked_ns, NS, _,_,_,S,_,_,_, it->checked, MMT_PLAIN, "when the kernel's maps were read")                 \
FIGURE(DO, check_age_ns, NS, _,_,_,S,_,_,_, it->checked, MMT_PLAIN,                                                   \
       "time from the check to the end or exec of the process, or the end of the recording")                          \
FIGURE(DO, checked_mappings, COUNT, _,_,_,S,_,_,_, it->checked, MMT_PLAIN, "in the kernel's maps")                    \
FIGURE(DO, compared_bytes, BYTES, _,_,_,S,_,_,_, it->checked, MMT_PLAIN, "total size of these")                       \
FIGURE(DO, mismatch_bytes, BYTES, _,_,_,S,_,_,_, it->checked, MMT_PLAIN,                                              \
       "pages that differ between the model and these; heap said to be made in the recording, but older by the first") \
FIGURE(DO, unverifiable_bytes, BYTES, _,_,_,S,_,_,_, it->checked, MMT_PLAIN,                                          \
       "changed by calls that ran while the kernel's maps were read")                                                 \
FIGURE(DO, unread_bytes, BYTES, _,_,_,S,_,_,_, it->checked, MMT_PLAIN,                                                \
       "part of these: moved while the first maps were read, and missing in later ones")                              \
FIGURE(DO, start_resident_bytes, BYTES, _,_,_,_,D,_,_, true, MMT_PLAIN, "RSS at the first reading")                   \
FIGURE(DO, end_resident_bytes, BYTES, _,_,_,_,D,_,_, true, MMT_PLAIN, "RSS at the last reading")                      \
FIGURE(DO, start_swapped_bytes, BYTES, _,_,_,_,D,_,_, true, MMT_PLAIN, "VmSwap at the first reading")                 \
FIGURE(DO, end_swapped_bytes, BYTES, _,_,_,_,D,_,_, true, MMT_PLAIN, "VmSwap at the last reading")                    \
FIGURE(DO, lazy_free_bytes, BYTES, _,_,_,_,D,_,_, true, MMT_PLAIN,                                                    \
       "of end_resident_bytes, if recording ended then: freed with MADV_FREE, but not yet reclaimed; 0: not known")   \
FIGURE(DO, start_private_bytes, BYTES, _,_,_,_,D,_,_, it->private_known, MMT_PLAIN,                                   \
       "what the process has alone; changes of it by processes that begin or stop sharing it are no growth")          \
FIGURE(DO, end_private_bytes, BYTES, _,_,_,_,D,_,_, it->private_known, MMT_PLAIN, "likewise")                         \
FIGURE(DO, start_bytes, BYTES, _,_,_,_,_,G,_, true, MMT_PLAIN,                                                        \
       "RSS of the processes that count at the start of the window")                                                  \
FIGURE(DO, end_bytes, BYTES, _,_,_,_,_,G,_, true, MMT_PLAIN, "at its end")                                            \
FIGURE(DO, peak_bytes, BYTES, _,_,_,_,_,G,_, true, MMT_PLAIN, "the most, of these processes")                         \
FIGURE(DO, peak_with_brief_bytes, BYTES, _,_,_,_,_,G,_, it->peak_with_brief_bytes, MMT_PLAIN,                         \
       "the most of the measure with what short-lived processes, which do not count, had of their own; 0: none")       \
FIGURE(DO, start_ns, NS, _,_,_,_,_,G,_, it->verdict, MMT_PLAIN, "the time of the first reading")                      \
FIGURE(DO, end_ns, NS, _,_,_,_,_,G,_, it->verdict, MMT_PLAIN, "of the last one")                                      \
FIGURE(DO, peak_ns, NS, _,_,_,_,_,G,_, it->verdict, MMT_PLAIN, "of the largest one")                                  \
FIGURE(DO, start_swap_bytes, BYTES, _,_,_,_,_,G,_, it->verdict, MMT_PLAIN,                                            \
       "swapped out at the start, in addition to what is resident")                                                   \
FIGURE(DO, end_swap_bytes, BYTES, _,_,_,_,_,G,_, it->verdict, MMT_PLAIN, "at the end")                                \
FIGURE(DO, start_pss_bytes, BYTES, _,_,_,_,_,G,_, it->by_pss, MMT_PLAIN, "Pss at the start")                          \
FIGURE(DO, end_pss_bytes, BYTES, _,_,_,_,_,G,_, it->by_pss, MMT_PLAIN, "Pss at the end")                              \
FIGURE(DO, peak_pss_bytes, BYTES, _,_,_,_,_,G,_, it->by_pss, MMT_PLAIN, "the largest Pss")                            \
FIGURE(DO, start_private_bytes, BYTES, _,_,_,_,_,G,_, it->by_pss, MMT_PLAIN,                                          \
       "part of Pss at the start: in pages that only one process maps")                                               \
FIGURE(DO, end_private_bytes, BYTES, _,_,_,_,_,G,_, it->by_pss, MMT_PLAIN, "likewise, at the end")                    \
FIGURE(DO, outside_bytes, CHANGE, _,_,_,_,_,G,_, it->by_pss, MMT_PLAIN,                                               \
       "change of Pss because other processes began (negative) or stopped sharing memory: no growth")                 \
FIGURE(DO, bytes_per_minute, RATE, _,_,_,_,_,G,_, it->bytes_per_minute != MMT_RATE_UNKNOWN, MMT_PLAIN,                \
       "slope of the lowest readings since rate_from_ns; 0 if it is noise; unknown below two seconds")                \
FIGURE(DO, rate_from_ns, NS, _,_,_,_,_,G,_, it->verdict, MMT_PLAIN,                                                   \
       "the second half or, if that is later, since settled_ns; at least the last quarter")                            \
FIGURE(DO, floor_bytes, BYTES, _,_,_,_,_,G,_, it->floor_bytes, MMT_PLAIN, "smaller changes are noise; 0: unknown")    \
FIGURE(DO, settled_ns, NS, _,_,_,_,_,G,_, it->settled_ns, MMT_PLAIN,                                                  \
       "since when it is level: of a PLATEAU, or at the end of GROWING or SHRINKING; 0: it was not")                   \
FIGURE(DO, advised_ns, NS, _,_,_,_,_,G,_, it->verdict == MMT_VERDICT_TOO_SHORT && it->advised_ns, MMT_PLAIN,          \
       "how long to record; 0 in a report: it is as long, but RSS was read too rarely")                               \
FIGURE(DO, unfreed_growth_bytes, BYTES, _,_,_,_,_,G,_, true, MMT_PLAIN,                                               \
       "MMT_VERDICT_PLATEAU and _STEADY: by how much unfreed mappings grew that leak, but are hardly resident, since " \
       "memory is level; 0 without causes, which need rows by stack")                                                 \
FIGURE(DO, pages_start_bytes, BYTES, _,_,_,_,_,G,_, it->parts_known, MMT_PLAIN,                                       \
       "resident size when the first resident pages were read")                                                       \
FIGURE(DO, pages_end_bytes, BYTES, _,_,_,_,_,G,_, it->parts_known, MMT_PLAIN, "when the last were")                   \
FIGURE(DO, pages_start_ns, NS, _,_,_,_,_,G,_, it->parts_known && it->pages_start_ns, MMT_PLAIN,                       \
       "when that was; of several processes the earliest")                                                            \
FIGURE(DO, pages_end_ns, NS, _,_,_,_,_,G,_, it->parts_known && it->pages_end_ns, MMT_PLAIN, "likewise")               \
FIGURE(DO, changing_bytes, CHANGE, _,_,_,_,_,G,_, it->parts_known, MMT_PLAIN,                                         \
       "what the process gained or lost between the readings of its size and of its pages")                           \
FIGURE(DO, unexplained_bytes, CHANGE, _,_,_,_,_,G,_, it->parts_known, MMT_PLAIN,                                      \
       "0 if the sum of the parts lies between what the two kinds of readings show")                                  \
FIGURE(DO, hugetlb_bytes, CHANGE, _,_,_,_,_,G,_, it->parts_known, MMT_PLAIN,                                          \
       "change of huge pages of hugetlbfs, which are neither in RSS nor in the parts")

/* A census of a malloc heap. */
#define MMT_CENSUS_FIGURES(DO)                                                                                        \
DO(mapped_bytes, BYTES, true, MMT_PLAIN, "of the heap and all arenas, without blocks that have mappings of their own") \
DO(walked_bytes, BYTES, true, MMT_PLAIN, "part of these that was read; the figures below are of this part")           \
DO(in_use_count, COUNT, true, MMT_PLAIN, "blocks in use")                                                             \
DO(in_use_low, BYTES, true, MMT_PLAIN, "bytes in use in all of mapped_bytes: at least")                               \
DO(in_use_high, BYTES, true, MMT_PLAIN, "at most")                                                                    \
DO(free_count, COUNT, true, MMT_PLAIN, "free blocks between others")                                                  \
DO(free_bytes, BYTES, true, MMT_PLAIN, "size of these")                                                               \
DO(tcache_bytes, BYTES, true, MMT_PLAIN, "free blocks in the caches of threads")                                      \
DO(fastbin_bytes, BYTES, true, MMT_PLAIN, "free blocks in fastbins")                                                  \
DO(top_bytes, BYTES, true, MMT_PLAIN, "free memory at the ends of the arenas")                                        \
DO(trimmable_bytes, BYTES, true, MMT_PLAIN, "whole free pages: the most that malloc_trim(0) gives back")              \
DO(mmapped_count, COUNT, true, MMT_PLAIN, "large blocks with mappings of their own")                                  \
DO(mmapped_bytes, BYTES, true, MMT_PLAIN, "size of these")

/* A kind of blocks in use. */
#define MMT_HEAP_KIND_FIGURES(DO)                                                                                     \
DO(smallest_bytes, BYTES, true, MMT_PLAIN, "size of the smallest block, with its header of 8 bytes")                  \
DO(largest_bytes, BYTES, true, MMT_PLAIN, "of the largest")                                                           \
DO(start_count, COUNT, true, MMT_PLAIN, "blocks in the first reading")                                                 \
DO(end_count, COUNT, true, MMT_PLAIN, "in the last one")                                                              \
DO(start_bytes, BYTES, true, MMT_PLAIN, "size of these in the first reading")                                          \
DO(end_bytes, BYTES, true, MMT_PLAIN, "in the last one")                                                              \
DO(after_free_count, COUNT, true, MMT_PLAIN, "blocks at the end directly above free memory, which they keep")         \
DO(after_free_bytes, BYTES, true, MMT_PLAIN, "size of that free memory")
/* clang-format on */

#define MMT_IF_R(...) __VA_ARGS__
#define MMT_IF_C(...) __VA_ARGS__
#define MMT_IF_P(...) __VA_ARGS__
#define MMT_IF_S(...) __VA_ARGS__
#define MMT_IF_D(...) __VA_ARGS__
#define MMT_IF_G(...) __VA_ARGS__
#define MMT_IF_T(...) __VA_ARGS__
#define MMT_IF_V(...) __VA_ARGS__
#define MMT_IF__(...)

#define MMT_OF_ROW(DO, name, unit, r, c, p, s, d, g, t, ...) MMT_IF_##r(DO(name, unit, __VA_ARGS__))
#define MMT_OF_CAUSE(DO, name, unit, r, c, p, s, d, g, t, ...) MMT_IF_##c(DO(name, unit, __VA_ARGS__))
#define MMT_OF_PART(DO, name, unit, r, c, p, s, d, g, t, ...) MMT_IF_##p(DO(name, unit, __VA_ARGS__))
#define MMT_OF_PROCESS(DO, name, unit, r, c, p, s, d, g, t, ...) MMT_IF_##s(DO(name, unit, __VA_ARGS__))
#define MMT_OF_READINGS(DO, name, unit, r, c, p, s, d, g, t, ...) MMT_IF_##d(DO(name, unit, __VA_ARGS__))
#define MMT_OF_GROWTH(DO, name, unit, r, c, p, s, d, g, t, ...) MMT_IF_##g(DO(name, unit, __VA_ARGS__))
#define MMT_OF_REPORT(DO, name, unit, r, c, p, s, d, g, t, ...) MMT_IF_##t(DO(name, unit, __VA_ARGS__))

#define MMT_ROW_FIGURES(DO) MMT_FIGURES(MMT_OF_ROW, DO)
#define MMT_CAUSE_FIGURES(DO) MMT_FIGURES(MMT_OF_CAUSE, DO)
#define MMT_PART_FIGURES(DO) MMT_FIGURES(MMT_OF_PART, DO)
#define MMT_PROCESS_FIGURES(DO) MMT_FIGURES(MMT_OF_PROCESS, DO)
#define MMT_READINGS_FIGURES(DO) MMT_FIGURES(MMT_OF_READINGS, DO)
#define MMT_GROWTH_FIGURES(DO) MMT_FIGURES(MMT_OF_GROWTH, DO)
#define MMT_REPORT_FIGURES(DO) MMT_FIGURES(MMT_OF_REPORT, DO)

#define MMT_TYPE_BYTES uint64_t
#define MMT_TYPE_COUNT uint64_t
#define MMT_TYPE_NS uint64_t
#define MMT_TYPE_CHANGE int64_t
#define MMT_TYPE_RATE int64_t

/* A member of a struct. */
#define MMT_MEMBER(name, unit, ...) MMT_TYPE_##unit name;
