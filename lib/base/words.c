// SPDX-License-Identifier: LGPL-2.1-or-later
/* The words of public enumerations. */
#include <mmtrace/words.h>

#include <stddef.h>

#define WORD(value, word, ...) word,

/* Defines the function that returns the word of a value. */
#define NAME(function, type, list, other)                                                                              \
	const char *function(enum type value)                                                                          \
	{                                                                                                              \
		static const char *const words[] = {list(WORD)};                                                       \
                                                                                                                       \
		return (size_t)value < sizeof(words) / sizeof(*words) ? words[value] : (other);                        \
	}

NAME(mmt_class_name, mmt_class, MMT_CLASS_WORDS, "unknown")
NAME(mmt_stack_end_name, mmt_stack_end, MMT_STACK_END_WORDS, "unknown")
NAME(mmt_limit_name, mmt_limit_kind, MMT_LIMIT_WORDS, NULL)
NAME(mmt_row_verdict_name, mmt_row_verdict, MMT_ROW_VERDICT_WORDS, "unknown")
NAME(mmt_verdict_name, mmt_verdict, MMT_VERDICT_WORDS, "unknown")
NAME(mmt_growth_place_name, mmt_growth_place, MMT_GROWTH_PLACE_WORDS, "unknown")
NAME(mmt_heap_verdict_name, mmt_heap_verdict, MMT_HEAP_VERDICT_WORDS, "unknown")
NAME(mmt_row_key_name, mmt_row_key, MMT_ROW_KEY_WORDS, "unknown")
NAME(mmt_change_name, mmt_change, MMT_CHANGE_WORDS, "unknown")
NAME(mmt_diff_relation_name, mmt_diff_relation, MMT_DIFF_RELATION_WORDS, "unknown")
NAME(mmt_warning_name, mmt_warning, MMT_WARNINGS, "unknown")
