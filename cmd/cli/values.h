/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Convert texts of the command line to typed values. Each returns NULL, or a description of what is expected. */
#ifndef CLI_VALUES_H
#define CLI_VALUES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <mmtrace/report.h>

struct value_pids {
	pid_t *items; /* owned, without duplicates */
	size_t count;
};

struct value_words {
	const char **items; /* owned array */
	size_t count;
};

const char *value_count(const char *text, size_t *count_ret);
/* 4096, 512K, 4M, 1.5G; KiB and the like too: always powers of 1024. */
const char *value_size(const char *text, uint64_t *bytes_ret);
/* 10s, 500ms, 2m, 1h; a plain number is seconds; fractions are allowed. */
const char *value_duration(const char *text, uint64_t *ns_ret);
/*
 * 10s, 500ms, 2m: after the start of the recording; -10s: before its end; 2026-11-21T10:12:03 (a blank for the T, with
 * or without seconds): local time; @NS: the recording's own clock. 10:12 and 10:12:03 are local times of the day on
 * which the recording began: MMT_TIMESTAMP_TIME_OF_DAY.
 */
const char *value_timestamp(const char *text, struct mmt_timestamp *timestamp_ret);
/* "10%", 0 to below 100: a share of 1. */
const char *value_share(const char *text, double *share_ret);
/* "anon,heap": adds bits 1 << enum mmt_class. */
const char *value_classes(const char *text, uint32_t *classes_ret);
/* The words that the list can contain. */
void value_class_words(const char *words_ret[MMT_CLASS_KINDS + 1]);
/* "123,456", or "123 456" as pidof(1) and pgrep(1) print them. Adds to `pids`. */
const char *value_pids(const char *text, struct value_pids *pids);
const char *value_pids_add(struct value_pids *pids, pid_t pid);
void value_pids_deinit(struct value_pids *pids);

/* Any text; adds it to `words`, which does not own it. */
const char *value_word(const char *text, struct value_words *words);
void value_words_deinit(struct value_words *words);

/* Edit distance: the number of letters to add, remove, change or swap. */
unsigned value_distance(const char *from, const char *to);

#endif
