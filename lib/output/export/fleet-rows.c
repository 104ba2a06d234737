// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rows for databases that hold those of many hosts: a line of JSON for each service, executable and stack. Workers are
 * summed. Nothing that differs between equal hosts identifies a row: no PIDs, addresses or paths. */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/figures.h"
#include "base/limits.h"
#include "base/strings.h"
#include "output/export/export-report.h"
#include "output/json/json-document.h"

#define NS_PER_SECOND UINT64_C(1000000000)

/* What is known of each process. Members are ids of strings. */
struct row_labels {
	uint32_t service, container, pod, executable, build_id;
};

struct row_sum {
	const struct mmt_row *row; /* the largest one with this stack; NULL: stacks without a row of their own */
	uint32_t group;
	struct mmt_part figures;
	double bytes_per_minute;
	bool has_rate; /* of any part */
};

/* Processes with the same labels. */
struct row_group {
	struct row_labels labels;
	uint64_t processes, resident_bytes, used_bytes, limit_bytes;
	struct row_sum other;
	bool has_other;
};

struct fleet_rows {
	const struct export *export;
	FILE *stream;
	struct intern strings, labels, stacks;
	VECTOR(struct row_group) groups; /* by id of their labels */
	VECTOR(uint32_t) group_of;	 /* the group of each process */
	VECTOR(struct row_sum) sums;
	struct buffer text;
	bool failed;
};

static uint32_t string_id(struct fleet_rows *rows, const char *text)
{
	uint32_t id = intern_put_string(&rows->strings, text);

	rows->failed |= id == INTERN_NONE;
	return id;
}

/* The base name, without " (deleted)". */
static uint32_t executable_id(struct fleet_rows *rows, const struct mmt_process *process)
{
	const char *path = process->program ? process->program : process->name ? process->name : "";

	buffer_clear(&rows->text);
	buffer_put(&rows->text, path, mapped_path_length(path));
	buffer_put_u8(&rows->text, '\0');
	return string_id(rows, rows->text.error ? "" : path_file_name((const char *)rows->text.data));
}

static void add_process(struct fleet_rows *rows, const struct mmt_process *process)
{
	const struct export *export = rows->export;
	const struct mmt_control_group *limiting = export->report->limiting_group;
	const char *path = process->control_group ? process->control_group : "";
	const char *build_id = process->program ? export_build_id(export, process->program) : NULL;
	struct export_group_labels from_path;
	struct row_group added = {.resident_bytes = MMT_UNKNOWN, .used_bytes = MMT_UNKNOWN, .limit_bytes = MMT_UNKNOWN};
	struct row_labels *labels = &added.labels;
	struct row_group *group;
	uint64_t number;

	export_group_labels(path, &from_path);
	*labels = (struct row_labels){.container = string_id(rows, from_path.container),
				      .pod = string_id(rows, from_path.pod),
				      .executable = executable_id(rows, process),
				      .build_id = string_id(rows, build_id ? build_id : "")};
	labels->service = export->service      ? string_id(rows, export->service)
			  : *from_path.service ? string_id(rows, from_path.service)
					       : labels->executable;
	if (rows->groups.count + 1 >= LIMIT_EXPORT_ROWS &&
	    intern_find(&rows->labels, labels, sizeof(*labels)) == INTERN_NONE) {
		labels->service = labels->executable = string_id(rows, "other");
		labels->container = labels->pod = labels->build_id = string_id(rows, "");
	}
	if (export_is_new(&rows->labels, labels, sizeof(*labels), &number, &rows->failed))
		rows->failed |= !vector_push(&rows->groups, added);
	rows->failed |= !vector_push(&rows->group_of, (uint32_t)number - 1);
	if (rows->failed || process->ended)
		return;
	group = &rows->groups.items[number - 1];
	group->processes++;
	if (process->readings)
		figure_add(&group->resident_bytes, process->readings->end_resident_bytes);
	if (limiting && group_part_of(path, limiting->path)) {
		group->used_bytes = mmt_control_group_used(limiting);
		group->limit_bytes = mmt_control_group_limit(limiting);
	}
}

/* Add what one process has of a row. The rate of a row that several groups have is divided by their memory. */
static void add_part(struct fleet_rows *rows, const struct mmt_part *part)
{
	const struct mmt_row *row = &rows->export->report->rows[part->row];
	const struct {
		uint64_t identity, group, memory_class;
	} key = {row->identity ? row->identity : row->id, rows->group_of.items[part->process], row->memory_class};
	double share =
	    row->memory_bytes ? (double)export_weight(part, MMT_WEIGHT_MEMORY) / (double)row->memory_bytes : 0;
	struct row_sum *sum, added = {.row = row,
				      .group = (uint32_t)key.group,
				      .figures = {.resident_bytes = MMT_UNKNOWN, .resident_before_bytes = MMT_UNKNOWN}};
	uint64_t number;

	if (export_is_new(&rows->stacks, &key, sizeof(key), &number, &rows->failed))
		rows->failed |= !vector_push(&rows->sums, added);
	if (rows->failed)
		return;
	sum = &rows->sums.items[number - 1];
	figures_add_to_part(&sum->figures, part);
	if (row->bytes_per_minute == MMT_RATE_UNKNOWN || !row->memory_bytes)
		return;
	sum->has_rate = true;
	sum->bytes_per_minute += (double)row->bytes_per_minute * (share < 1 ? share : 1);
}

/* Those with most memory first. */
COMPARISON(compare_sums, struct row_sum,
	   order_of(export_weight(&b->figures, MMT_WEIGHT_MEMORY), export_weight(&a->figures, MMT_WEIGHT_MEMORY))
	   ?: order_of(b->figures.unfreed_bytes, a->figures.unfreed_bytes)
	   ?: order_of(b->figures.allocated_bytes, a->figures.allocated_bytes)
	   ?: order_of(a->row->id, b->row->id) ?: order_of(a->group, b->group))

static void put_time(struct document *document, const char *key, const struct mmt_report *report, uint64_t ns)
{
	uint64_t realtime_ns = report->start_realtime_ns + (ns - report->start_ns);
	time_t seconds = (time_t)(realtime_ns / NS_PER_SECOND);
	char date[32] = "", text[64];
	struct tm utc;

	if (report->start_realtime_ns && gmtime_r(&seconds, &utc))
		strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(text, sizeof(text), "%s.%03" PRIu64 "Z", date, realtime_ns / 1000000 % 1000);
	document_string(document, key, *date ? text : NULL);
}

/* "leak (app)", or "app+0x12"; no addresses. */
static void put_frame(struct fleet_rows *rows, struct document *document, const struct mmt_frame *frame)
{
	char room[EXPORT_NAME_BYTES];
	const char *name =
	    frame->function || frame->kind == MMT_FRAME_NATIVE ? export_frame_name(frame, room) : "[unknown]";

	buffer_clear(&rows->text);
	buffer_put(&rows->text, name, strlen(name));
	if (frame->module && name != room) {
		buffer_put(&rows->text, " (", strlen(" ("));
		buffer_put(&rows->text, frame->module, strlen(frame->module));
		buffer_put_u8(&rows->text, ')');
	}
	buffer_put_u8(&rows->text, '\0');
	document_string(document, NULL, rows->text.error ? NULL : (const char *)rows->text.data);
}

static void put_label(struct fleet_rows *rows, struct document *document, const char *key, uint32_t id)
{
	const char *text = intern_get(&rows->strings, id, NULL);

	document_string(document, key, *text ? text : NULL);
}

static void put_row(struct fleet_rows *rows, const struct row_sum *sum)
{
	const struct mmt_report *report = rows->export->report;
	const struct row_group *group = &rows->groups.items[sum->group];
	const struct mmt_row *row = sum->row;
	const struct mmt_part *figures = &sum->figures;
	struct document document;
	uint64_t unnamed = 0;
	char identity[17];

	for (size_t i = 0; row && i < row->frame_count; i++)
		unnamed += !row->frames[i]->function;
	document_start(&document, rows->stream, DOCUMENT_COMPACT);
	put_time(&document, "start_time", report, report->from_ns);
	put_time(&document, "end_time", report, report->to_ns);
	document_string(&document, "host_name", report->host && *report->host ? report->host : NULL);
	put_label(rows, &document, "service_name", group->labels.service);
	put_label(rows, &document, "container_id", group->labels.container);
	put_label(rows, &document, "k8s_pod_uid", group->labels.pod);
	put_label(rows, &document, "executable_name", group->labels.executable);
	put_label(rows, &document, "executable_build_id", group->labels.build_id);
	document_unsigned(&document, "processes", group->processes);
	document_unsigned(&document, "process_resident_bytes", group->resident_bytes);
	document_unsigned(&document, "group_used_bytes", group->used_bytes);
	document_unsigned(&document, "group_limit_bytes", group->limit_bytes);
	document_string(&document, "attributed_by", report->by == MMT_BY_TOUCH ? "touch" : "stack");
	snprintf(identity, sizeof(identity), "%016" PRIx64, row ? row->identity : 0);
	document_string(&document, "stack_id", row ? identity : "other");
	document_unsigned(&document, "unnamed_frames", unnamed);
	document_string(&document, "class", row ? mmt_class_name(row->memory_class) : NULL);
	document_string(&document, "verdict", row ? mmt_row_verdict_name(row->verdict) : NULL);
	document_unsigned(&document, "unfreed_bytes", figures->unfreed_bytes);
	document_unsigned(&document, "unfreed_count", figures->unfreed_count);
	document_unsigned(&document, "committed_bytes", export_weight(figures, MMT_WEIGHT_COMMITTED));
	document_unsigned(&document, "resident_bytes",
			  report->resident_bytes == MMT_UNKNOWN ? MMT_UNKNOWN
								: export_weight(figures, MMT_WEIGHT_RESIDENT));
	document_unsigned(&document, "allocated_bytes", figures->allocated_bytes);
	document_unsigned(&document, "allocated_count", figures->allocated_count);
	document_unsigned(&document, "freed_bytes", figures->freed_bytes);
	document_unsigned(&document, "freed_count", figures->freed_count);
	/* A sum of hostile figures may not fit. */
	if (sum->has_rate && sum->bytes_per_minute < (double)INT64_MAX && sum->bytes_per_minute > -(double)INT64_MAX)
		document_signed(&document, "bytes_per_minute", (int64_t)sum->bytes_per_minute);
	else
		document_null(&document, "bytes_per_minute");
	document_each(&document, "stack", i, row ? row->frame_count : 0)
		put_frame(rows, &document, row->frames[i]);
	document_finish(&document);
}

/* Sum up by labels and stack, and write the largest. */
struct mmt_error *export_rows(const struct export *export, FILE *stream)
{
	struct fleet_rows rows = {.export = export, .stream = stream};
	struct buffer *const buffers[] = {&rows.text};
	const struct mmt_report *report = export->report;
	size_t position = 0, first;
	struct mmt_part part;

	export_begin_buffers(buffers, 1);
	for (size_t i = 0; i < report->process_count && !rows.failed; i++)
		add_process(&rows, &report->processes[i]);
	while (!rows.failed && export_next(report, &position, &first, &part))
		add_part(&rows, &part);
	if (!rows.failed && rows.sums.count)
		qsort(rows.sums.items, rows.sums.count, sizeof(*rows.sums.items), compare_sums);
	for (size_t i = 0; i < rows.sums.count && !rows.failed; i++) {
		const struct row_sum *sum = &rows.sums.items[i];
		struct row_sum *other = &rows.groups.items[sum->group].other;

		if (i < LIMIT_EXPORT_ROWS) {
			put_row(&rows, sum);
			continue;
		}
		figures_add_to_part(&other->figures, &sum->figures);
		other->bytes_per_minute += sum->bytes_per_minute;
		other->has_rate |= sum->has_rate;
		other->group = sum->group;
		rows.groups.items[sum->group].has_other = true;
	}
	array_each(group, rows.groups.items, rows.failed ? 0 : rows.groups.count)
		if (group->has_other)
			put_row(&rows, &group->other);
	intern_deinit(&rows.strings);
	intern_deinit(&rows.labels);
	intern_deinit(&rows.stacks);
	vector_deinit(&rows.groups);
	vector_deinit(&rows.group_of);
	vector_deinit(&rows.sums);
	return export_end_buffers(buffers, 1, rows.failed, NULL);
}
