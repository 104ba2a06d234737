// SPDX-License-Identifier: LGPL-2.1-or-later
/* Export formats of other viewers: hostile names, empty reports, and huge figures. */
#include <check.h>
#include <jansson.h>
#include <mmtrace/export.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/compression.h"
#include "base/limits.h"
#include "base/vector.h"
#include "output/export/export-report.h"
#include "support/suite.h"
#include "support/sample-report.h"

#define HOSTILE "a;b\x1b[31m\xff\n\"\\</script>\xe2\x80\xae 7"
#define STEP_NS 1000

static const struct mmt_frame frames[] = {
    {.kind = MMT_FRAME_NATIVE,
     .function = HOSTILE,
     .raw_function = HOSTILE,
     .module = HOSTILE,
     .module_path = HOSTILE,
     .source_file = HOSTILE,
     .source_line = UINT32_MAX,
     .inlined = true,
     .module_offset = UINT64_MAX,
     .address = UINT64_MAX},
    {.kind = MMT_FRAME_NATIVE, .module = "plain.so", .module_offset = 0x1234, .address = 0x7f1234},
    {.kind = MMT_FRAME_UNKNOWN, .address = 0xdeadbeef},
};

static const struct mmt_frame *const stack[] = {&frames[0], &frames[1], &frames[2]};

/* 3 mappings of 10 bytes; 4 bytes of one are unmapped; another row has neither stack nor counts. */
static const struct mmt_lifetime lifetimes[] = {{1, 1, 4, 0}, {1, 5, 10, 1}, {2, MMT_STILL_MAPPED, 16, 2}};
static const struct mmt_lifetime lost[] = {{3, MMT_STILL_MAPPED, 4096, 0}};
static const struct mmt_lifetime huge[] = {{0, MMT_STILL_MAPPED, MMT_BYTES_MAX, UINT32_MAX}};

static const struct mmt_process process = {.pid = 7, .name = HOSTILE};
static const struct mmt_module module = {HOSTILE, "0123456789abcdef"};
static const struct mmt_oom_kill oom_kill = {.pid = 7, .time_ns = 2500};
static const struct mmt_resident_reading reading = {3000, 1 << 20, 0};
static const struct mmt_step step = {.to_ns = 9000, .unfreed_bytes = 4112, .committed_bytes = 4096};

static const struct mmt_row rows[] = {
    {.id = 1, .frames = stack, .frame_count = 3},
    {.id = 2, .lost = true},
};

static const struct mmt_part parts[] = {
    {.row = 0,
     .thread = {7, 8, HOSTILE},
     .file = HOSTILE,
     .memory_class = MMT_CLASS_THREAD_STACK,
     .unfreed_bytes = 16,
     .unfreed_count = 2,
     .allocated_bytes = 30,
     .allocated_count = 3,
     .freed_bytes = 14,
     .freed_count = 1,
     .committed_bytes = 16,
     .committed_before_bytes = 300,
     .resident_bytes = 12,
     .resident_before_bytes = 200,
     .lifetimes = lifetimes,
     .lifetime_count = 3},
    {.row = 1,
     .thread = {7, 0, ""},
     .unfreed_bytes = 4096,
     .allocated_bytes = 4096,
     .resident_bytes = MMT_UNKNOWN,
     .resident_before_bytes = MMT_UNKNOWN,
     .lifetimes = lost,
     .lifetime_count = 1},
};

static const struct mmt_part huge_part = {.thread = {7, 7, "t"},
					  .unfreed_bytes = MMT_BYTES_MAX,
					  .unfreed_count = UINT64_MAX,
					  .allocated_bytes = MMT_BYTES_MAX,
					  .allocated_count = UINT64_MAX,
					  .committed_bytes = MMT_BYTES_MAX,
					  .resident_bytes = MMT_UNKNOWN,
					  .resident_before_bytes = MMT_UNKNOWN,
					  .lifetimes = huge,
					  .lifetime_count = 1};

static struct mmt_report empty_report(void)
{
	struct mmt_report report = sample_report();

	report.rows = NULL;
	report.row_count = 0;
	report.process_count = 0;
	report.resident_reading_count = 0;
	report.from_ns = report.to_ns = report.start_ns = report.end_ns = 1000;
	report.lifetime_step_ns = STEP_NS;
	report.lifetime_steps = 1;
	return report;
}

static struct mmt_report hostile_report(void)
{
	struct mmt_report report = empty_report();

	report.input = HOSTILE;
	report.end_ns = report.to_ns = 9000;
	report.start_realtime_ns = 1700000000000000000;
	report.rows = rows;
	report.row_count = 2;
	report.parts = parts;
	report.part_count = 2;
	report.processes = &process;
	report.process_count = 1;
	report.modules = &module;
	report.module_count = 1;
	report.oom_kills = &oom_kill;
	report.oom_kill_count = 1;
	report.resident_readings = report.judged_readings = &reading;
	report.resident_reading_count = report.judged_reading_count = 1;
	report.steps = &step;
	report.step_count = 1;
	report.lifetime_steps = 9;
	report.resident_bytes = 12;
	return report;
}

static struct mmt_report huge_report(void)
{
	struct mmt_report report = hostile_report();

	report.parts = &huge_part;
	report.part_count = 1;
	return report;
}

static char *export_report(const struct mmt_report *report, const char *format, enum mmt_weight weight,
			   size_t *size_ret)
{
	char *text = NULL;
	FILE *stream = open_memstream(&text, size_ret);

	ck_assert_ptr_nonnull(stream);
	ck_assert_ptr_null(mmt_export(report, format, weight, NULL, stream));
	ck_assert_int_eq(fclose(stream), 0);
	return text;
}

static char *inflate_all(const char *data, size_t size, size_t *size_ret)
{
	z_stream stream = {.next_in = (Bytef *)data, .avail_in = (uInt)size};
	char *text = calloc(1, 1 << 20);

	ck_assert_ptr_nonnull(text);
	ck_assert_int_eq(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
	stream.next_out = (Bytef *)text;
	stream.avail_out = (1 << 20) - 1;
	ck_assert_int_eq(inflate(&stream, Z_FINISH), Z_STREAM_END);
	*size_ret = stream.total_out;
	ck_assert_int_eq(inflateEnd(&stream), Z_OK);
	return text;
}

static uint64_t read_varint(const uint8_t **position, const uint8_t *end)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		ck_assert(*position < end);
		value |= (uint64_t)(**position & 0x7f) << shift;
		if (!(*(*position)++ & 0x80))
			return value;
	}
	ck_abort_msg("a number without an end");
	return 0;
}

/* Number of fields of a message; `wanted`: only those with this number. */
static size_t count_fields(const char *data, size_t size, uint64_t wanted)
{
	const uint8_t *position = (const uint8_t *)data, *end = position + size;
	size_t count = 0;

	while (position < end) {
		uint64_t tag = read_varint(&position, end), length;

		ck_assert_uint_gt(tag >> 3, 0);
		ck_assert((tag & 7) == 0 || (tag & 7) == 2);
		length = read_varint(&position, end);
		if (tag & 7) {
			ck_assert_uint_le(length, (uint64_t)(end - position));
			position += length;
		}
		count += !wanted || tag >> 3 == wanted;
	}
	return count;
}

START_TEST(folded_lines)
{
	static const char *const expected[] = {
	    [MMT_WEIGHT_MEMORY] = "212",    [MMT_WEIGHT_UNFREED] = "16",   [MMT_WEIGHT_RESIDENT] = "212",
	    [MMT_WEIGHT_COMMITTED] = "316", [MMT_WEIGHT_ALLOCATED] = "30", [MMT_WEIGHT_COUNT] = "2",
	};
	const char *name = "a:b\\x1b[31m\\xff\\x0a\"\\</script>\\xe2\\x80\\xae 7";
	struct mmt_report report = hostile_report();
	size_t size;
	char *text = export_report(&report, "folded", (enum mmt_weight)_i, &size), *line;
	bool lost_too = _i == MMT_WEIGHT_UNFREED || _i == MMT_WEIGHT_ALLOCATED;

	ck_assert_int_ge(asprintf(&line, "%s (7);0xdeadbeef;plain.so+0x1234;%s %s\n%s%s%s", name, name, expected[_i],
				  lost_too ? name : "", lost_too ? " (7);[calls that were lost] 4096" : "",
				  lost_too ? "\n" : ""),
			 0);
	ck_assert_str_eq(text, line);
	free(line);
	free(text);
}
END_TEST

/* Where it is not known what is resident, memory is what is committed. */
START_TEST(folded_memory_of_unknown_residency)
{
	struct mmt_report report = hostile_report();
	struct mmt_part part = report.parts[0];
	size_t size;
	char *text;

	part.resident_bytes = part.resident_before_bytes = MMT_UNKNOWN;
	report.parts = &part;
	report.part_count = 1;
	text = export_report(&report, "folded", MMT_WEIGHT_MEMORY, &size);
	ck_assert_msg(strstr(text, " 316\n") != NULL, "%s", text);
	free(text);
}
END_TEST

static void check_json(const struct mmt_report *report, const char *format)
{
	json_error_t error;
	size_t size;
	char *text = export_report(report, format, MMT_WEIGHT_UNFREED, &size);
	json_t *document = json_loadb(text, size, 0, &error);

	ck_assert_msg(document != NULL, "%s: %s at %d", format, error.text, error.position);
	for (size_t i = 0; i + 1 < size; i++)
		ck_assert_msg((unsigned char)text[i] >= ' ' && (unsigned char)text[i] < 0x7f, "%s: byte %zu", format,
			      i);
	json_decref(document);
	free(text);
}

static void check_protobuf(const struct mmt_report *report, const char *format, bool compressed)
{
	size_t size, plain_size;
	char *text = export_report(report, format, MMT_WEIGHT_UNFREED, &size);
	char *plain = compressed ? inflate_all(text, size, &plain_size) : NULL;

	ck_assert_uint_gt(count_fields(plain ? plain : text, plain ? plain_size : size, 0), 0);
	/* Perfetto refuses a pprof file with an unknown field. */
	ck_assert_uint_eq(count_fields(plain ? plain : text, plain ? plain_size : size, 15), 0);
	free(plain);
	free(text);
}

static void check_lines(const struct mmt_report *report, const char *format, bool compressed)
{
	size_t size, plain_size;
	char *text = export_report(report, format, MMT_WEIGHT_UNFREED, &size);
	char *plain = compressed ? inflate_all(text, size, &plain_size) : NULL;

	for (const char *position = plain ? plain : text; *position; position++)
		ck_assert_msg(*position == '\n' || (*position >= ' ' && *position != 0x7f), "%s: a control character",
			      format);
	free(plain);
	free(text);
}

/* Names can neither end the data nor start a script. */
static void check_page(const struct mmt_report *report)
{
	size_t size, ends = 0;
	char *text = export_report(report, "html", MMT_WEIGHT_UNFREED, &size);

	for (const char *position = text; (position = strstr(position, "</script")) != NULL; position++)
		ends++;
	ck_assert_uint_eq(ends, 2);
	free(text);
}

static void check_formats(const struct mmt_report *report)
{
	check_lines(report, "folded", false);
	check_protobuf(report, "pprof", true);
	check_json(report, "firefox");
	check_protobuf(report, "perfetto", false);
	check_page(report);
}

START_TEST(hostile_names)
{
	struct mmt_report report = hostile_report();

	check_formats(&report);
}
END_TEST

START_TEST(without_any_memory)
{
	struct mmt_report report = empty_report();
	size_t size;
	char *text = export_report(&report, "folded", MMT_WEIGHT_UNFREED, &size);

	ck_assert_uint_eq(size, 0);
	free(text);
	check_formats(&report);
}
END_TEST

START_TEST(huge_figures)
{
	struct mmt_report report = huge_report();
	size_t size;
	char *text = export_report(&report, "folded", MMT_WEIGHT_UNFREED, &size);

	ck_assert_ptr_nonnull(strstr(text, " 18446744073709551614\n"));
	free(text);
	check_protobuf(&report, "pprof", true);
	check_protobuf(&report, "perfetto", false);
	check_formats(&report);
}
END_TEST

/* Viewers that show the innermost function show the program's. */
START_TEST(allocation_functions)
{
	static const char *const left_out[] = {"__mmap64",
					       "free",
					       "operator new[](unsigned long)",
					       "runtime.makeslice",
					       "syscall.Mmap",
					       "golang.org/x/sys/unix.Mmap",
					       "internal/runtime/syscall.Syscall6"};
	static const char *const shown[] = {"main.Mmap", "runtime.main", "free_list",
					    "Pool::operator new(unsigned long)"};
	regex_t pattern;

	ck_assert_int_eq(regcomp(&pattern, "^(" EXPORT_ALLOCATION_FUNCTIONS ")(\\(|$)", REG_EXTENDED | REG_NOSUB), 0);
	array_each(name, left_out, sizeof(left_out) / sizeof(*left_out))
		ck_assert_msg(!regexec(&pattern, *name, 0, NULL, 0), "%s is shown", *name);
	array_each(name, shown, sizeof(shown) / sizeof(*shown))
		ck_assert_msg(regexec(&pattern, *name, 0, NULL, 0), "%s is left out", *name);
	regfree(&pattern);
}
END_TEST

START_TEST(events_are_balanced)
{
	static const struct mmt_lifetime first[] = {{0, 2, 1, 1}, {2, 2, 2, 1}, {2, MMT_STILL_MAPPED, 4, 1}};
	const struct mmt_part part = {.lifetimes = first, .lifetime_count = 3};
	struct mmt_report report = hostile_report();
	struct export_events events;

	report.parts = &part;
	report.part_count = 1;
	ck_assert_ptr_null(export_events_create(&report, &events));
	ck_assert_uint_eq(events.count, 5);
	ck_assert(events.items[1].is_release && events.items[1].lifetime == 0);
	ck_assert(!events.items[2].is_release && events.items[2].lifetime == 1);
	ck_assert(events.items[4].is_release && events.items[4].lifetime == 1);
	free(events.items);
	ck_assert_uint_eq(export_step_ns(&report, 3), 1000 + 3 * STEP_NS);
	ck_assert_uint_eq(export_step_ns(&report, 1000), report.to_ns);
}
END_TEST

#define PROCESSES 1000
#define ROUNDS 3

/* Each event once, those of a process in their earlier order. */
START_TEST(events_by_process)
{
	static const struct mmt_lifetime mapped = {.released_step = MMT_STILL_MAPPED, .bytes = 1};
	static struct mmt_part owned[ROUNDS * PROCESSES];
	const size_t count = ROUNDS * PROCESSES;
	const struct mmt_report report = {.parts = owned, .part_count = count, .process_count = PROCESSES};
	struct export_events events;

	for (size_t i = 0; i < count; i++)
		owned[i] = (struct mmt_part){
		    .process = (i * 7 + i / PROCESSES) % PROCESSES, .lifetimes = &mapped, .lifetime_count = 1};
	ck_assert_ptr_null(export_events_create(&report, &events));
	export_events_sort_by_process(&report, &events);
	ck_assert_uint_eq(events.count, count);
	for (size_t i = 0; i < count; i++) {
		ck_assert_uint_eq(owned[events.items[i].part].process, i / ROUNDS);
		ck_assert(i % ROUNDS == 0 || events.items[i - 1].number < events.items[i].number);
	}
	free(events.items);
}
END_TEST

/* Each process has one mapping, each of a different size. */
START_TEST(many_processes)
{
	static struct mmt_process processes[PROCESSES];
	static struct mmt_lifetime mapped[PROCESSES];
	static struct mmt_part process_parts[PROCESSES];
	struct mmt_report report = hostile_report();
	json_t *document, *threads;
	json_error_t error;
	size_t size;
	char *text;

	for (size_t i = 0; i < PROCESSES; i++) {
		processes[i] = (struct mmt_process){.pid = (int32_t)i + 1, .name = "worker"};
		mapped[i] = (struct mmt_lifetime){1, MMT_STILL_MAPPED, 4096 * (i + 1), 1};
		process_parts[i] = (struct mmt_part){.row = 0,
						     .process = i,
						     .thread = {(int32_t)i + 1, (int32_t)i + 1, "worker"},
						     .unfreed_bytes = mapped[i].bytes,
						     .unfreed_count = 1,
						     .allocated_bytes = mapped[i].bytes,
						     .allocated_count = 1,
						     .lifetimes = &mapped[i],
						     .lifetime_count = 1};
	}
	report.processes = processes;
	report.process_count = PROCESSES;
	report.parts = process_parts;
	report.part_count = PROCESSES;
	check_protobuf(&report, "perfetto", false);
	text = export_report(&report, "firefox", MMT_WEIGHT_UNFREED, &size);
	document = json_loadb(text, size, 0, &error);
	threads = json_object_get(document, "threads");
	ck_assert_uint_eq(json_array_size(threads), PROCESSES);
	for (size_t i = 0; i < PROCESSES; i++) {
		const json_t *thread = json_array_get(threads, i);
		const json_t *weights = json_object_get(json_object_get(thread, "nativeAllocations"), "weight");

		ck_assert_uint_eq(json_array_size(weights), 1);
		ck_assert_int_eq(json_integer_value(json_array_get(weights, 0)), 4096 * ((json_int_t)i + 1));
	}
	json_decref(document);
	free(text);
}
END_TEST

START_TEST(protobuf_encoding)
{
	struct buffer buffer, message;

	buffer_init(&buffer, 1000);
	buffer_init(&message, 1000);
	protobuf_number(&buffer, 1, 150);
	protobuf_number(&buffer, 135, UINT64_MAX);
	protobuf_string(&message, 2, "\x1b!");
	protobuf_message(&buffer, 3, &message);
	ck_assert_uint_eq(message.size, 0);
	ck_assert_uint_eq(buffer.size, 3 + 12 + 9);
	ck_assert_mem_eq(buffer.data,
			 "\x08\x96\x01"
			 "\xb8\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
			 "\x1a\x07\x12\x05\\x1b!",
			 24);
	buffer_deinit(&buffer);
	buffer_deinit(&message);
}
END_TEST

START_TEST(compressed_stream)
{
	size_t size = 0, plain_size;
	char *text = NULL, *plain;
	FILE *below = open_memstream(&text, &size), *stream = gzip_open(below);

	for (unsigned i = 0; i < 100000; i++)
		ck_assert_int_gt(fprintf(stream, "%u ", i % 10), 0);
	ck_assert_int_eq(fclose(stream), 0);
	ck_assert_int_eq(fclose(below), 0);
	plain = inflate_all(text, size, &plain_size);
	ck_assert_uint_eq(plain_size, 200000);
	ck_assert_uint_lt(size, 10000);
	free(plain);
	free(text);
	below = fopen("/dev/full", "w");
	stream = gzip_open(below);
	ck_assert_int_gt(fprintf(stream, "text"), 0);
	(void)fclose(stream);
	ck_assert(fflush(below) == EOF || ferror(below));
	fclose(below);
}
END_TEST

/* An OOM kill at 2500 ns is in a window that starts before it, and not at the start of a later one. */
START_TEST(window_has_its_oom_kills)
{
	struct mmt_report report = hostile_report();
	size_t size;
	char *text;
	json_t *document, *markers;

	report.from_ns = _i ? 2501 : 2500;
	text = export_report(&report, "firefox", MMT_WEIGHT_UNFREED, &size);
	document = json_loadb(text, size, 0, NULL);
	markers = json_object_get(json_array_get(json_object_get(document, "threads"), 0), "markers");
	ck_assert_int_eq(json_integer_value(json_object_get(markers, "length")), _i ? 0 : 1);
	ck_assert_uint_eq(json_array_size(json_object_get(markers, "data")), _i ? 0 : 1);
	ck_assert_uint_eq(json_array_size(json_object_get(markers, "startTime")), _i ? 0 : 1);
	json_decref(document);
	free(text);
}
END_TEST

/* Longer than the buffers on the way. */
START_TEST(long_text)
{
	char name[100001], *text = NULL, *plain;
	size_t size = 0, plain_size;
	FILE *below = open_memstream(&text, &size), *stream = gzip_open(below);

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	ck_assert_uint_eq(fwrite(name, 1, strlen(name), stream), strlen(name));
	ck_assert_int_eq(fclose(stream), 0);
	ck_assert_int_eq(fclose(below), 0);
	plain = inflate_all(text, size, &plain_size);
	ck_assert_uint_eq(plain_size, strlen(name));
	ck_assert_str_eq(plain, name);
	free(plain);
	free(text);
}
END_TEST

START_TEST(long_name)
{
	struct mmt_report report = hostile_report();
	char name[100001], *text, *plain;
	size_t size, plain_size;
	struct mmt_process long_process = {.pid = 7, .name = "p"};
	struct mmt_frame frame = {.kind = MMT_FRAME_UNKNOWN, .function = name};
	const struct mmt_frame *const long_stack[] = {&frame};
	struct mmt_row long_rows[] = {{.id = 1, .frames = long_stack, .frame_count = 1}, {.id = 2, .lost = true}};

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	report.rows = long_rows;
	report.processes = &long_process;
	text = export_report(&report, "pprof", MMT_WEIGHT_UNFREED, &size);
	plain = inflate_all(text, size, &plain_size);
	ck_assert_ptr_nonnull(memmem(plain, plain_size, name, strlen(name)));
	free(plain);
	free(text);
}
END_TEST

/* Containers, pods and services have labels; what names users, sessions and PIDs has none. */
START_TEST(control_groups)
{
#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
#define POD_ "1b4e28ba_2fa1_11d2_883f_0016d3cca427"
#define LONG "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
	static const struct {
		const char *path, *service, *container, *pod;
	} cases[] = {
	    {"/system.slice/docker-" ID ".scope", "", ID, ""},
	    {"/docker/" ID, "", ID, ""},
	    {"/docker/" ID "/system.slice/nginx.service", "nginx.service", ID, ""},
	    {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container", "", ID, ""},
	    {"/kubepods/burstable/pod" POD "/" ID, "", ID, POD},
	    {"/kubepods/pod00112233445566778899aabbccddeeff/" ID, "", ID, "00112233445566778899aabbccddeeff"},
	    {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" POD_ ".slice/cri-containerd-" ID
	     ".scope",
	     "", ID, POD},
	    {"/kubepods.slice/kubepods-pod" POD_ ".slice/crio-" ID ".scope", "", ID, POD},
	    {"/system.slice/containerd.service/kubepods-burstable-pod" POD_ ".slice:cri-containerd:" ID, "", ID, POD},
	    {"/../../kubepods-pod" POD_ ".slice/cri-containerd-" ID ".scope", "", ID, POD},
	    {"/docker/" ID "/kubelet/kubepods/pod" POD "/f" ID, "", ID, POD},
	    {"/kubepods/burstable/podc0ffee/" ID "0", "", "", ""},
	    {"/kubepods/pod" POD "0/pod" POD "-1/pod1b4e28ba2fa111d2-883f-0016-d3cc-a427/pod-/pod", "", "", POD},
	    {"/system.slice/nginx.service/workers", "nginx.service", "", ""},
	    {"/system.slice/system-postgresql.slice/postgresql@15-main.service", "postgresql@.service", "", ""},
	    {"/user.slice/user-1000.slice/user@1000.service/app.slice/run-4711.service", "user@.service", "", ""},
	    {"/a;b\x1b[31m\xff\n\"\\<.service", "a;b\x1b[31m\xff\n\"\\<.service", "", ""},
	    {"/" LONG LONG LONG LONG ".service", "", "", ""},
	    {"/user.slice/user-1000.slice/session-3.scope", "", "", ""},
	    {"/run-p4711.service", "", "", ""},
	    {"", "", "", ""},
	};
	struct export_group_labels labels;

	ck_assert_uint_eq(sizeof(cases) / sizeof(*cases), 21);
	export_group_labels(cases[_i].path, &labels);
	ck_assert_str_eq(labels.service, cases[_i].service);
	ck_assert_str_eq(labels.container, cases[_i].container);
	ck_assert_str_eq(labels.pod, cases[_i].pod);
}
END_TEST

START_TEST(pprof_has_labels)
{
	struct mmt_process in_group = {.pid = 7, .name = "p", .control_group = "/kubepods/pod" POD "/" ID};
	struct mmt_report report = hostile_report();
	size_t size, plain_size;
	char *text, *plain;

	report.processes = &in_group;
	text = export_report(&report, "pprof", MMT_WEIGHT_UNFREED, &size);
	plain = inflate_all(text, size, &plain_size);
	ck_assert_ptr_nonnull(memmem(plain, plain_size, "k8s_pod_uid", 11));
	ck_assert_ptr_nonnull(memmem(plain, plain_size, ID, 64));
	ck_assert_ptr_null(memmem(plain, plain_size, "service_name", 12));
	free(plain);
	free(text);
}
END_TEST

/* The rows of a report, as an array; each is a line. */
static json_t *rows_of(const struct mmt_report *report)
{
	size_t size;
	char *text = export_report(report, "rows", MMT_WEIGHT_UNFREED, &size);
	json_t *result = json_array();

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		json_t *row = json_loads(line, 0, NULL);

		ck_assert_msg(json_is_object(row), "%s", line);
		json_array_append_new(result, row);
	}
	free(text);
	return result;
}

static void check_row(const json_t *row, const char *key, const char *expected)
{
	const json_t *value = json_object_get(row, key);

	ck_assert_ptr_nonnull(value);
	if (expected)
		ck_assert_str_eq(json_string_value(value) ? json_string_value(value) : "(no text)", expected);
	else
		ck_assert_msg(json_is_null(value), "%s is not null", key);
}

static void check_number(const json_t *row, const char *key, long long expected)
{
	ck_assert_int_eq(json_integer_value(json_object_get(row, key)), expected);
}

/* Two workers of a service, and another one in a container, with the same stack: two rows. */
START_TEST(rows_of_workers)
{
	static const struct mmt_process_readings readings = {.end_resident_bytes = 100};
	static const struct mmt_control_group group = {
	    .path = "/sys/fs/cgroup/system.slice/app.service",
	    .end_ns = 1,
	    .end = {[MMT_GROUP_LIMIT] = 5000, [MMT_GROUP_HIGH] = MMT_UNKNOWN}};
	struct mmt_process processes[3] = {
	    {.pid = 11, .program = "/opt/app (deleted)", .control_group = "/system.slice/app.service"},
	    {.pid = 12, .program = "/opt/app", .control_group = "/system.slice/app.service", .readings = &readings},
	    {.pid = 13, .program = "/opt/app", .control_group = "/docker/" ID},
	};
	struct mmt_row row = {.id = 1,
			      .identity = 0xabc,
			      .frames = stack,
			      .frame_count = 3,
			      .memory_bytes = 100,
			      .verdict = MMT_ROW_LEAK,
			      .bytes_per_minute = 1000};
	struct mmt_part workers[3] = {{0}};
	struct mmt_report report = hostile_report();
	json_t *result, *first, *second;

	for (size_t i = 0; i < 3; i++)
		workers[i] = (struct mmt_part){.process = i,
					       .unfreed_bytes = 30 + 5 * i,
					       .unfreed_count = 1,
					       .allocated_bytes = 40,
					       .resident_bytes = i == 2 ? 20 : 40};
	report.host = "web-1";
	report.rows = &row;
	report.row_count = 1;
	report.processes = processes;
	report.process_count = 3;
	report.parts = workers;
	report.part_count = 3;
	report.limiting_group = &group;
	result = rows_of(&report);
	ck_assert_uint_eq(json_array_size(result), 2);
	first = json_array_get(result, 0);
	second = json_array_get(result, 1);
	check_row(first, "start_time", "2023-11-14T22:13:20.000Z");
	check_row(first, "host_name", "web-1");
	check_row(first, "service_name", "app.service");
	check_row(first, "executable_name", "app");
	check_row(first, "container_id", NULL);
	check_row(first, "stack_id", "0000000000000abc");
	check_row(first, "verdict", "leak");
	check_number(first, "processes", 2);
	check_number(first, "process_resident_bytes", 100);
	check_number(first, "group_limit_bytes", 5000);
	check_number(first, "unfreed_bytes", 65);
	check_number(first, "unfreed_count", 2);
	check_number(first, "resident_bytes", 80);
	check_number(first, "allocated_bytes", 80);
	check_number(first, "bytes_per_minute", 800);
	check_number(first, "unnamed_frames", 2);
	check_row(second, "service_name", "app");
	check_row(second, "container_id", ID);
	check_row(second, "process_resident_bytes", NULL);
	check_row(second, "group_limit_bytes", NULL);
	check_number(second, "unfreed_bytes", 40);
	check_number(second, "bytes_per_minute", 200);
	/* No path, PID or address. */
	ck_assert_str_eq(json_string_value(json_array_get(json_object_get(second, "stack"), 1)), "plain.so+0x1234");
	ck_assert_str_eq(json_string_value(json_array_get(json_object_get(second, "stack"), 2)), "[unknown]");
	json_decref(result);
}
END_TEST

START_TEST(rows_of_hostile_names)
{
	struct mmt_report report = hostile_report();
	json_t *result;

	report.host = HOSTILE;
	result = rows_of(&report);
	ck_assert_uint_eq(json_array_size(result), 2);
	check_row(json_array_get(result, 0), "host_name", "a;b\x1b[31m\\xff\n\"\\</script>\u202e 7");
	check_number(json_array_get(result, 0), "committed_bytes", 316);
	check_row(json_array_get(result, 0), "start_time", "2023-11-14T22:13:20.000Z");
	check_row(json_array_get(result, 1), "executable_build_id", NULL);
	json_decref(result);
}
END_TEST

/* What is beyond the limit is in one row, with its bytes. */
START_TEST(rows_are_bounded)
{
	enum { MORE = LIMIT_EXPORT_ROWS + 50 };
	static struct mmt_row many[MORE];
	static struct mmt_part many_parts[MORE];
	struct mmt_report report = hostile_report();
	json_t *result, *other;
	uint64_t sum = 0;

	for (size_t i = 0; i < MORE; i++) {
		many[i] =
		    (struct mmt_row){.id = (uint32_t)i + 1, .identity = i + 1, .bytes_per_minute = MMT_RATE_UNKNOWN};
		many_parts[i] = (struct mmt_part){.row = i, .unfreed_bytes = i, .resident_bytes = i};
	}
	report.rows = many;
	report.row_count = MORE;
	report.parts = many_parts;
	report.part_count = MORE;
	result = rows_of(&report);
	ck_assert_uint_eq(json_array_size(result), LIMIT_EXPORT_ROWS + 1);
	for (size_t i = 0; i <= LIMIT_EXPORT_ROWS; i++)
		sum += (uint64_t)json_integer_value(json_object_get(json_array_get(result, i), "unfreed_bytes"));
	ck_assert_uint_eq(sum, MORE * (MORE - 1) / 2);
	other = json_array_get(result, LIMIT_EXPORT_ROWS);
	check_row(other, "stack_id", "other");
	check_row(other, "verdict", NULL);
	check_number(other, "resident_bytes", 50 * 49 / 2);
	json_decref(result);
}
END_TEST

/* Nor do many executables make many rows. */
START_TEST(executables_are_bounded)
{
	enum { MORE = 2 * LIMIT_EXPORT_ROWS };
	static struct mmt_process many[MORE];
	static struct mmt_part many_parts[2 * MORE];
	static char names[MORE][8];
	struct mmt_row both[] = {{.id = 1, .identity = 1}, {.id = 2, .identity = 2}};
	struct mmt_report report = hostile_report();
	json_t *result;

	for (size_t i = 0; i < MORE; i++) {
		snprintf(names[i], sizeof(names[i]), "p%zu", i);
		many[i] = (struct mmt_process){.pid = 1, .name = names[i]};
		many_parts[i] = (struct mmt_part){.row = 0, .process = i, .resident_bytes = 1 + i};
		many_parts[MORE + i] = (struct mmt_part){.row = 1, .process = i, .resident_bytes = 1};
	}
	report.rows = both;
	report.processes = many;
	report.process_count = MORE;
	report.parts = many_parts;
	report.part_count = 2 * MORE;
	result = rows_of(&report);
	ck_assert_uint_le(json_array_size(result), 2 * LIMIT_EXPORT_ROWS);
	check_row(json_array_get(result, 0), "service_name", "other");
	check_number(json_array_get(result, 0), "processes", LIMIT_EXPORT_ROWS + 1);
	json_decref(result);
}
END_TEST

START_TEST(invalid_requests_are_refused)
{
	struct mmt_report report = hostile_report();
	struct mmt_error *error = mmt_export(&report, "flamegraph", MMT_WEIGHT_MEMORY, NULL, stdout);

	ck_assert_str_eq(error->message, "unknown format 'flamegraph'");
	mmt_error_destroy(error);
	report.by = MMT_BY_FUNCTION;
	error = mmt_export(&report, "folded", MMT_WEIGHT_MEMORY, NULL, stdout);
	ck_assert_int_eq(error->code, MMT_ERROR_INVALID);
	mmt_error_destroy(error);
	report = hostile_report();
	report.lifetime_step_ns = 0;
	error = mmt_export(&report, "folded", MMT_WEIGHT_MEMORY, NULL, stdout);
	ck_assert_int_eq(error->code, MMT_ERROR_INVALID);
	mmt_error_destroy(error);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("export");
	TCase *tests = add_tcase(suite, "export");

	tcase_add_loop_test(tests, folded_lines, 0, MMT_WEIGHT_KINDS);
	tcase_add_tests(tests, folded_memory_of_unknown_residency, hostile_names, without_any_memory, huge_figures,
			allocation_functions, events_are_balanced, events_by_process,
			many_processes, protobuf_encoding, compressed_stream);
	tcase_add_loop_test(tests, window_has_its_oom_kills, 0, 2);
	tcase_add_test(tests, long_text);
	tcase_add_tests(tests, long_name);
	tcase_add_loop_test(tests, control_groups, 0, 21);
	tcase_add_tests(tests, pprof_has_labels, rows_of_workers, rows_of_hostile_names, executables_are_bounded,
			rows_are_bounded);
	tcase_add_test(tests, invalid_requests_are_refused);
	return suite;
}
