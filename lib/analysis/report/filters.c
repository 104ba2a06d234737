// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/report/filters.h"

#include <fnmatch.h>
#include <inttypes.h>

#include "base/errors.h"
#include "base/strings.h"

static const char *const keys[FILTER_KEYS] = {
    [FILTER_FUNCTION] = "function", [FILTER_MODULE] = "module", [FILTER_FILE] = "file",
    [FILTER_CLASS] = "class",	    [FILTER_THREAD] = "thread",
};

bool filters_match(const char *pattern, const char *name)
{
	return name && (!strcmp(name, pattern) || !fnmatch(pattern, name, 0));
}

static struct mmt_error *parse(const char *option, bool ignores, const char *text, struct filter *filter)
{
	size_t length = strcspn(text, "=");
	bool is_class = false;

	*filter = (struct filter){.key = FILTER_NAME, .pattern = text, .ignores = ignores};
	if (text[length]) {
		filter->key = FILTER_FUNCTION;
		while (filter->key < FILTER_KEYS &&
		       (strlen(keys[filter->key]) != length || strncmp(keys[filter->key], text, length) != 0))
			filter->key++;
		filter->pattern = text + length + 1;
	}
	if (filter->key == FILTER_KEYS)
		return error_create(MMT_ERROR_INVALID,
				    "%s: '%.*s' in '%s' is not function, module, file, class or thread; if the name "
				    "itself contains '=', write 'function=%s'",
				    option, (int)length, text, text, text);
	if (!*filter->pattern)
		return error_create(MMT_ERROR_INVALID, "%s: '%s' has no pattern", option, text);
	for (unsigned kind = 0; kind < MMT_CLASS_KINDS; kind++)
		is_class |= filters_match(filter->pattern, mmt_class_name((enum mmt_class)kind));
	if (filter->key == FILTER_CLASS && !is_class)
		return error_create(MMT_ERROR_INVALID,
				    "%s: no class matches '%s'; the classes are anon, file, heap, shm, thread-stack, "
				    "hugetlb, jit and gc-reserve",
				    option, filter->pattern);
	return NULL;
}

struct mmt_error *filters_parse(const struct mmt_report_options *options, struct filters *filters_ret)
{
	struct mmt_error *error = NULL;
	struct filter filter;

	*filters_ret = (struct filters){0};
	for (size_t i = 0; !error && i < options->focus_count + options->ignore_count; i++) {
		bool ignores = i >= options->focus_count;
		const char *text = ignores ? options->ignore[i - options->focus_count] : options->focus[i];

		error = parse(ignores ? "--ignore" : "--focus", ignores, text, &filter);
		if (!error && !vector_push(&filters_ret->items, filter))
			error = &error_no_memory;
		filters_ret->focus_keys |= ignores ? 0 : 1u << filter.key;
		filters_ret->by_frames |= FILTER_FRAME_KEYS >> filter.key & 1;
		filters_ret->by_threads |= filter.key == FILTER_THREAD;
	}
	if (error)
		vector_deinit(&filters_ret->items);
	return error;
}

static bool matches_path(const char *pattern, const char *path)
{
	const char *slash = strrchr(path, '/');

	return filters_match(pattern, path) || (slash && filters_match(pattern, slash + 1));
}

static bool matches_file(const char *pattern, const char *path)
{
	CLEANUP(free) char *linked = NULL;
	size_t length;

	if (!path || matches_path(pattern, path))
		return path != NULL;
	length = mapped_path_length(path);
	linked = path[length] ? strndup(path, length) : NULL;
	return linked && matches_path(pattern, linked);
}

static bool matches(const struct filter *filter, const struct filter_subject *subject)
{
	char number[16];

	switch (filter->key) {
	case FILTER_FILE:
		return matches_file(filter->pattern, subject->file);
	case FILTER_CLASS:
		return filters_match(filter->pattern, mmt_class_name(subject->memory_class));
	case FILTER_THREAD:
		snprintf(number, sizeof(number), "%" PRId32, subject->tid);
		return subject->thread &&
		       (filters_match(filter->pattern, subject->thread) || !strcmp(filter->pattern, number));
	default:
		break;
	}
	for (size_t i = 0; i < subject->frame_count; i++) {
		const struct mmt_frame *frame = subject->frames[i];

		if (filter->key != FILTER_MODULE && (filters_match(filter->pattern, frame->function) ||
						     filters_match(filter->pattern, frame->raw_function)))
			return true;
		if (filter->key != FILTER_FUNCTION && (filters_match(filter->pattern, frame->module) ||
						       filters_match(filter->pattern, frame->module_path)))
			return true;
	}
	return false;
}

unsigned filters_matches(const struct filters *filters, const struct filter_subject *subject)
{
	unsigned considered = subject->frames_only ? FILTER_FRAME_KEYS : ~0u, matched = 0;

	array_each(filter, filters->items.items, filters->items.count) {
		unsigned bit = filter->ignores ? FILTER_IGNORED : 1u << filter->key;

		if (considered >> filter->key & 1 && !(matched & bit) && matches(filter, subject))
			matched |= bit;
	}
	return matched;
}

bool filters_select(const struct filters *filters, const struct filter_subject *subject)
{
	return filters_matches(filters, subject) ==
	       (filters->focus_keys & (subject->frames_only ? FILTER_FRAME_KEYS : ~0u));
}
