// SPDX-License-Identifier: LGPL-2.1-or-later
/* The text format of valgrind's massif: unfreed bytes at up to SNAPSHOTS times and at their peak. Every
 * DETAILED_EVERY-th snapshot, the peak and the last one have a tree with the callers below each function. Its nodes are
 * created once; their bytes are those of the current snapshot. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/vector.h"
#include "output/export/export-report.h"

#define SNAPSHOTS 100
#define DETAILED_EVERY 10
#define ROOT 0
#define NO_NODE 0 /* no child or sibling: the root is neither */

struct node {
	uint64_t bytes;
	uint32_t parent, first_child, last_child, next_sibling;
	uint32_t label;
};

struct massif {
	const struct export *export;
	FILE *stream;
	struct export_events events;
	struct export_levels levels;
	struct intern labels;
	VECTOR(struct node) nodes;
	struct map children;	    /* parent << 32 | label -> node */
	VECTOR(uint32_t) outermost; /* by part: the node of its process */
	struct buffer text;
	uint32_t number; /* of the next snapshot */
	bool failed;
};

static uint32_t find_child(struct massif *massif, uint32_t parent, uint32_t label)
{
	uint64_t key = (uint64_t)parent << 32 | label;
	const uint64_t *known = map_get(&massif->children, key);
	const struct node node = {.parent = parent, .label = label};
	uint32_t place = (uint32_t)massif->nodes.count;
	struct node *above;

	if (known)
		return (uint32_t)*known;
	if (!map_put(&massif->children, key, place) || !vector_push(&massif->nodes, node)) {
		massif->failed = true;
		return ROOT;
	}
	above = &massif->nodes.items[parent];
	if (above->last_child)
		massif->nodes.items[above->last_child].next_sibling = place;
	else
		above->first_child = place;
	above->last_child = place;
	return place;
}

/* "0x401136: leak (leak.c:12)". */
static uint32_t label_of(struct massif *massif, const char *name, const struct mmt_frame *frame)
{
	const char *place = frame ? frame->source_file ? frame->source_file : frame->module_path : NULL;
	char address[32], line[16] = "";
	uint32_t id;

	snprintf(address, sizeof(address), "0x%" PRIX64 ": ", frame ? frame->address : 0);
	buffer_clear(&massif->text);
	export_put_escaped(&massif->text, address);
	export_put_escaped(&massif->text, name);
	if (place) {
		export_put_escaped(&massif->text, frame->source_file ? " (" : " (in ");
		export_put_escaped(&massif->text, place);
		if (frame->source_file)
			snprintf(line, sizeof(line), ":%" PRIu32, frame->source_line);
		export_put_escaped(&massif->text, line);
		export_put_escaped(&massif->text, ")");
	}
	buffer_put_u8(&massif->text, 0);
	id = massif->text.error ? INTERN_NONE : intern_put(&massif->labels, massif->text.data, massif->text.size);
	massif->failed |= id == INTERN_NONE;
	return id;
}

/* Add nodes from the innermost frame outwards to the process. */
static uint32_t put_stack(struct massif *massif, const struct mmt_part *part)
{
	const struct mmt_report *report = massif->export->report;
	const struct mmt_group *group = &report->groups[part->group];
	uint32_t node = ROOT;
	char text[EXPORT_NAME_BYTES];

	if (!group->frame_count)
		node = find_child(massif, node, label_of(massif, export_no_frames(group), NULL));
	for (size_t i = 0; i < group->frame_count && !massif->failed; i++) {
		const struct mmt_frame *frame = group->frames[i];

		node = find_child(massif, node, label_of(massif, export_frame_name(frame, text), frame));
	}
	export_process_name(&report->processes[part->process], text);
	return find_child(massif, node, label_of(massif, text, NULL));
}

static struct mmt_error *make_tree(struct massif *massif)
{
	const struct mmt_report *report = massif->export->report;
	uint32_t node = ROOT;

	if (!vector_append(&massif->nodes))
		return &error_no_memory;
	for (size_t i = 0; i < report->part_count && !massif->failed; i++) {
		const struct mmt_part *part = &report->parts[i];

		if (!i || part->group != part[-1].group || part->process != part[-1].process)
			node = put_stack(massif, part);
		if (!vector_push(&massif->outermost, node))
			return &error_no_memory;
	}
	return massif->failed ? &error_no_memory : NULL;
}

/* Add the unfreed bytes after a step to the nodes; returns their sum. */
static void fill_tree(struct massif *massif, uint32_t step)
{
	const struct mmt_report *report = massif->export->report;

	for (size_t i = 0; i < massif->nodes.count; i++)
		massif->nodes.items[i].bytes = 0;
	for (size_t i = 0; i < report->part_count; i++) {
		const struct mmt_part *part = &report->parts[i];
		uint64_t bytes = 0;

		for (size_t j = 0; j < part->lifetime_count; j++) {
			if (part->lifetimes[j].allocated_step <= step && part->lifetimes[j].released_step > step)
				bytes += part->lifetimes[j].bytes;
		}
		for (uint32_t node = massif->outermost.items[i]; bytes; node = massif->nodes.items[node].parent) {
			massif->nodes.items[node].bytes += bytes;
			if (node == ROOT)
				break;
		}
	}
}

/* The first node with bytes among a node and its next siblings; NO_NODE: none. */
static uint32_t next_with_bytes(const struct massif *massif, uint32_t node)
{
	while (node != NO_NODE && !massif->nodes.items[node].bytes)
		node = massif->nodes.items[node].next_sibling;
	return node;
}

static unsigned count_children(const struct massif *massif, uint32_t node)
{
	unsigned count = 0;

	for (uint32_t child = massif->nodes.items[node].first_child; (child = next_with_bytes(massif, child));
	     child = massif->nodes.items[child].next_sibling)
		count++;
	return count;
}

static void put_node(const struct massif *massif, uint32_t node, unsigned depth)
{
	const char *label = node == ROOT ? "(heap allocation functions) malloc/new/new[], --alloc-fns, etc."
					 : intern_get(&massif->labels, massif->nodes.items[node].label, NULL);

	fprintf(massif->stream, "%*sn%u: %" PRIu64 " %s\n", (int)depth, "", count_children(massif, node),
		massif->nodes.items[node].bytes, label);
}

static void put_tree(const struct massif *massif)
{
	uint32_t node = ROOT, next;
	unsigned depth = 0;

	put_node(massif, ROOT, 0);
	for (;;) {
		next = next_with_bytes(massif, massif->nodes.items[node].first_child);
		if (next != NO_NODE) {
			depth++;
		} else {
			while (node != ROOT && next == NO_NODE) {
				next = next_with_bytes(massif, massif->nodes.items[node].next_sibling);
				if (next == NO_NODE) {
					node = massif->nodes.items[node].parent;
					depth--;
				}
			}
			if (next == NO_NODE)
				return;
		}
		node = next;
		put_node(massif, node, depth);
	}
}

static void put_snapshot(struct massif *massif, uint64_t time_ns, uint32_t step, uint64_t bytes, const char *tree)
{
	fprintf(massif->stream,
		"#-----------\nsnapshot=%" PRIu32 "\n#-----------\ntime=%" PRIu64 "\nmem_heap_B=%" PRIu64
		"\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=%s\n",
		massif->number++, (time_ns - massif->export->report->from_ns) / 1000000, bytes, tree ? tree : "empty");
	if (!tree)
		return;
	fill_tree(massif, step);
	put_tree(massif);
}

static size_t find_peak(const struct export_levels *levels)
{
	size_t peak = 0;

	for (size_t i = 1; i < levels->count; i++) {
		if (levels->items[i].bytes > levels->items[peak].bytes)
			peak = i;
	}
	return peak;
}

/* Whether a level is a snapshot: SNAPSHOTS at equal distances between the first and the last, and the peak. */
static void put_snapshots(struct massif *massif)
{
	const struct mmt_report *report = massif->export->report;
	const struct export_level *levels = massif->levels.items;
	size_t count = massif->levels.count, peak = find_peak(&massif->levels);
	size_t every = count / SNAPSHOTS + 1, taken = 0;

	for (size_t i = 0; i + 1 < count; i++) {
		const char *tree = i == peak ? "peak" : NULL;

		if (i != peak && i % every)
			continue;
		if (!tree && taken % DETAILED_EVERY == DETAILED_EVERY - 1)
			tree = "detailed";
		put_snapshot(massif, export_step_ns(report, levels[i].step), levels[i].step, levels[i].bytes, tree);
		taken++;
	}
	put_snapshot(massif, report->to_ns, report->lifetime_steps, levels[count - 1].bytes,
		     peak == count - 1 ? "peak" : "detailed");
}

static struct mmt_error *put_file(struct massif *massif)
{
	struct mmt_error *error = make_tree(massif);

	if (error)
		return error;
	buffer_clear(&massif->text);
	export_put_escaped(&massif->text, massif->export->report->input);
	fprintf(massif->stream, "desc: mmtrace export\ncmd: %.*s\ntime_unit: ms\n", (int)massif->text.size,
		massif->text.size ? (const char *)massif->text.data : "");
	put_snapshots(massif);
	return buffer_finish(&massif->text);
}

struct mmt_error *export_massif(const struct export *export, FILE *stream)
{
	struct massif massif = {.export = export, .stream = stream};
	struct mmt_error *error = export_events_create(export->report, &massif.events);

	buffer_init(&massif.text, EXPORT_BUFFER_MAX);
	if (!error)
		error = export_levels_create(export->report, &massif.events, &massif.levels);
	if (!error)
		error = put_file(&massif);
	buffer_deinit(&massif.text);
	export_levels_deinit(&massif.levels);
	export_events_deinit(&massif.events);
	intern_deinit(&massif.labels);
	vector_deinit(&massif.nodes);
	vector_deinit(&massif.outermost);
	map_deinit(&massif.children);
	return error;
}
