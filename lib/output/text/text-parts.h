/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parts of a text report, which text-report.c puts together. */
#pragma once

#include "output/selection.h"
#include "output/text/text.h"

#define TEXT_INDENT 2	   /* of lines below another, and of the further lines of a sentence */
#define TEXT_NEGLIGIBLE 20 /* smaller changes than 1/TEXT_NEGLIGIBLE of the growth are ignored */

/* Prominent lines about missing or damaged data; nothing if there is none. */
void text_warnings(struct text *text, const struct mmt_report *report);
/* The same; target, duration and verdict; what stands above the causes. */
void text_summary(struct text *text, const struct mmt_report *report);
/* How reliable the report is, in one sentence; whether that can stand below the figures. */
void text_trust(struct text *text, const struct mmt_report *report);
bool text_figures_are_sound(const struct mmt_report *report);
bool text_is_sound(const struct mmt_report *report); /* these, and most stacks */

/* The file and its date; events, losses, stacks; the check against the kernel's maps; missing data. */
void text_details(struct text *text, const struct mmt_report *report);
/* Single lines of it: the file, and when it was recorded; how many events, and how many were lost; how complete the
 * stacks are, or nothing if there are none; what was reconciled with the kernel's maps, or nothing. */
void text_source(struct text *text, const struct mmt_report *report);
void text_events(struct text *text, const struct mmt_report *report);
void text_stacks(struct text *text, const struct mmt_report *report);
void text_reconciled(struct text *text, const struct mmt_report *report);

/* The result of the comparison with the kernel's maps. */

struct check_sum {
	uint64_t processes, mappings;
	uint64_t mismatch_bytes, unverifiable_bytes, unread_bytes, unknown_bytes;
	uint64_t oldest_ns; /* the longest time from a check to the end */
};

struct checks {
	struct check_sum checked; /* the next three together */
	struct check_sum wrong, equal;
	struct check_sum earlier; /* equal, at the last time that could be compared */
	struct check_sum ended;	  /* not checked: ended by themselves before */
	struct check_sum missing; /* not checked for any other reason */
};

struct checks checks_sum(const struct mmt_report *report);

/* The processes that differ most, by name; then a line for those that are equal, and one for those not checked. */
void text_checks(struct text *text, const struct mmt_report *report);

struct verdict_word {
	const char *word; /* NULL: there is none */
	enum text_style style;
};

/* The word for the verdict on a row or a cause. */
struct verdict_word text_verdict_word(const struct mmt_report *report, enum mmt_row_verdict verdict);

/* The table of causes with most memory, one line each. */

/* The function of the program, of a function that several others call the one that calls it most, or words for a
 * pattern. Who makes a heap grow need not be who keeps its memory. */
const char *text_cause_name(const struct mmt_cause *cause);

struct cause_words {
	char before_name[16];  /* "87 % " or nothing */
	char before_other[64]; /* "through ", "57 % grew in calls from " */
};

/* Another function that the cause has to do with; NULL: none. */
const char *text_cause_other(const struct mmt_cause *cause, struct cause_words *words);
/* Whether the rate of a cause is more than noise. */
bool text_shows_rate(const struct mmt_growth *growth, const struct mmt_cause *cause);
/* Prints an empty line before it; nothing if a single row holds all memory. */
void text_causes(struct text *text, const struct mmt_report *report);

/* What processes are sorted by; false: leave the process out. */
typedef bool (*text_rank_fn)(const struct mmt_report *report, const struct mmt_process *process, int64_t *rank_ret);

/* The process after `previous` (NULL: the first) from the largest rank on, then by place; NULL: no more. */
const struct mmt_process *text_next_process(const struct mmt_report *report, const struct mmt_process *previous,
					    text_rank_fn rank_of);

/* "9 processes: nginx x 8, sh (pid 4711), 12.3 s" */
void text_add_headline(struct text *text, const struct mmt_report *report);
/* What the figures count: "RSS", "Pss and swap". */
const char *text_measure(const struct mmt_growth *growth);
const char *text_measure_with_swap(const struct mmt_growth *growth);
/* Says what Pss is, and what it does not show; nothing if RSS says all. */
void text_put_measure(struct text *text, const struct mmt_report *report);
/* The reason for the verdict if processes grow whose growth the sum of all does not show. */
void text_put_growers(struct text *text, const struct mmt_report *report);
/* "+85.20 MiB  postgres (pid 26649), +12.00 MiB per minute", a line each. */
void text_put_shares(struct text *text, const struct mmt_report *report);
/* By how much the processes that ended had grown. */
void text_put_growth_of_ended(struct text *text, const struct mmt_report *report);

/* How a command of mmtrace failed. Ctrl-C and SIGTERM are no failures, and an OOM kill has its own line. */
void text_command_end(struct text *text, const struct mmt_report *report, const char *before, bool oom_killed);
/* Processes, duration and resident sizes; the verdict. */
void text_verdict(struct text *text, const struct mmt_report *report);
/* Where the growth is: above the causes if these do not show it, and otherwise below. */
void text_growth_above(struct text *text, const struct mmt_report *report);
void text_growth_below(struct text *text, const struct mmt_report *report);

/* Add what a part of MMT_GROWTH_BEFORE is, for instance "malloc arenas", or the name of its file. */
void text_add_kind(struct text *text, const struct mmt_growth_part *part);

/* One to three samples may be of any function that rarely needs a page. */
static inline bool text_knows_toucher(const struct mmt_toucher *toucher)
{
	return toucher->error_bytes < toucher->bytes;
}

#define TEXT_TOUCHER_BYTES_MIN 65536 /* smaller ones are in --json */

/* The part of which one function touched more than any cause holds: its stack is the first. NULL: there is none. */
const struct mmt_growth_part *text_first_touched(const struct text *text, const struct mmt_report *report);

/* The largest part that no row shows, if it grew by more than any cause holds. NULL: there is none. */
const struct mmt_growth_part *text_first_older(const struct mmt_report *report);

#define TEXT_NEXT ". Next: " /* stands before the command in a hint */

/* Find the command that shows more about what stands first, and print it. */
void text_find_next(struct text *text, const struct mmt_report *report);
void text_next(struct text *text);

/* "412.0 MiB (+- 6 %)" */
void text_add_touched(struct text *text, const struct mmt_toucher *toucher);
/* Below a part: what explains it, if anything is known. */
void text_put_part_hint(struct text *text, const struct mmt_growth_part *part);
/* A line of growth that belongs to no part; nothing if it is 0. */
void text_put_rest(struct text *text, int64_t bytes, const char *what);
/* The same for a change of swapped memory, which the parts of RSS do not include. */
void text_put_swap(struct text *text, int64_t bytes);

/* Whether the report shows all memory of the processes; then memory that no row shows was mapped before. */
bool text_growth_is_of_all(const struct mmt_report *report);

/* What grew in the malloc heap that changed most, in a sentence; nothing if unknown, or a small part of the growth. */
void text_heap_answer(struct text *text, const struct mmt_report *report);
/* The kinds of blocks, as tables, and why heaps were not read; of heaps with a part in the growth, or of the others. */
void text_heaps(struct text *text, const struct mmt_report *report, bool that_matter);

/* What grew in the heaps that both recordings counted; with `blocks` the kinds of blocks, as a table. */
void text_diff_heaps(struct text *text, const struct mmt_diff *diff, bool blocks);

/* The frames of one stack as aligned lines. */

/* Marks in the stacks printed so far that are explained below them. */
struct text_stack_marks {
	bool doubtful, unnamed, folded, cut;
	bool between; /* frames between two functions are folded without a line */
	bool ends[MMT_STACK_END_KINDS];
};

/* Whether the first screen omits no more of it than the options ask for. */
bool text_stack_is_complete(const struct text *text, const struct mmt_row *row);

/* `named`: the function that the table of causes names, which is shown in any case; NULL: none. */
void text_stack(struct text *text, const struct mmt_row *row, const char *named, unsigned indent,
		struct text_stack_marks *marks);

/* Lines below the stacks that explain their marks, and how to record so that no callers are missing. */

struct text_explanations {
	struct text_stack_marks marks;	      /* of the stacks shown */
	bool reserved;			      /* a figure is marked so */
	bool touched;			      /* rows are by touch */
	bool verdicts[MMT_ROW_VERDICTS];      /* of rows */
	const char *hints[MMT_PATTERN_KINDS]; /* hints that have been printed */
	uint64_t lost_stack_dumps, exhausted_stacks;
	bool notes;		   /* the header has some */
	bool stacks_not_asked_for; /* some recording has no stacks, or that is unknown */
	bool small_dumps;	   /* some recording has dumps below the maximum size */
	bool largest_dumps;	   /* some recording has dumps of the maximum size */
	bool no_dumps;		   /* some recording has no dumps, or that is unknown */
};

/* Add what is missing in a recording. Call this once for each recording shown. */
void text_explanations_add(struct text_explanations *explanations, const struct mmt_report *report);

/* Print them after an empty line; nothing if there is nothing to explain. */
void text_explanations(struct text *text, const struct text_explanations *explanations);

extern const char *const text_verdict_meanings[MMT_ROW_VERDICTS]; /* NULL: no word is shown */

#define TEXT_FRAME_NAME_BYTES 4096

/* The function's name, "module+0x1234" or "0x1234"; the latter two in `room`. */
const char *text_frame_name(const struct mmt_frame *frame, char room[TEXT_FRAME_NAME_BYTES]);

/* The sections of a text report that are printed only when they have content. */

/* The part of the recording that --from and --to select; the classes and processes that were selected. */
void text_window(struct text *text, const struct mmt_report *report);
void text_choice(struct text *text, const struct mmt_report *report);
/* The memory of each process, and unfreed bytes by class, if there is more than one. */
void text_processes(struct text *text, const struct mmt_report *report);
void text_classes(struct text *text, const struct mmt_report *report);
/* For each thread, the bytes that it mapped and released, and whose memory it released. */
void text_threads(struct text *text, const struct mmt_report *report);
/* The most frequent call for which the kernel refused memory, and the limit that it met, if that is known. */
void text_refused(struct text *text, const struct mmt_report *report);
/* The stacks that touched memory that was mapped before: the first one, or, below the first screen, the others. */
void text_touchers(struct text *text, const struct mmt_report *report, struct text_stack_marks *marks);
/* Failed calls, the most frequent ones with their stacks. */
void text_failures(struct text *text, const struct mmt_report *report, struct text_stack_marks *marks);
/* The table of report --every: memory at equal steps of time. */
void text_steps(struct text *text, const struct mmt_report *report, const struct selection *selection);

/* How the two recordings are related; nothing for two runs of one program. */
void text_diff_verdict(struct text *text, const struct mmt_diff *diff);
void text_diff_relation(struct text *text, const struct mmt_diff *diff);

#define TEXT_DIFF_UNCERTAIN_BYTES 128

/* Why a match is uncertain: a sentence in `room`, which is returned. */
const char *text_diff_uncertain(const struct mmt_diff_entry *entry, char room[TEXT_DIFF_UNCERTAIN_BYTES]);
