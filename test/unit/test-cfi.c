// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rows of real code, column by column, beside those that readelf prints. */
#include <check.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "code/program.h"

static const char *const columns[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
				      "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "ra"};

#define COLUMNS (sizeof(columns) / sizeof(*columns))

static struct programs *programs;
static struct program *program;

/* Register numbers of the columns of one FDE's table. */
struct table {
	unsigned numbers[COLUMNS];
	size_t count;
};

static unsigned find_column(const char *name)
{
	for (unsigned i = 0; i < COLUMNS; i++) {
		if (!strcmp(columns[i], name))
			return i;
	}
	ck_abort_msg("no register is called %s", name);
}

static void read_header(char *line, struct table *table)
{
	char *position = NULL;

	table->count = 0;
	strtok_r(line, " \n", &position); /* LOC */
	strtok_r(NULL, " \n", &position); /* CFA */
	for (char *name; (name = strtok_r(NULL, " \n", &position));)
		table->numbers[table->count++] = find_column(name);
}

static void compare_rule(const struct cfi_rule *rule, const char *text, unsigned long address)
{
	if (!strcmp(text, "u") || !strcmp(text, "s"))
		ck_assert_msg(rule->kind == CFI_RULE_SAME || rule->kind == CFI_RULE_UNDEFINED ||
				  rule->kind == CFI_RULE_VALUE, /* the stack pointer is the CFA */
			      "%#lx: %s", address, text);
	else if (!strncmp(text, "c", 1)) {
		ck_assert_msg(rule->kind == CFI_RULE_OFFSET, "%#lx: %s", address, text);
		ck_assert_int_eq(rule->offset, atoi(text + 1));
	} else {
		ck_assert_msg(rule->kind == CFI_RULE_EXPRESSION || rule->kind == CFI_RULE_AT_REGISTER ||
				  rule->kind == CFI_RULE_REGISTER,
			      "%#lx: %s", address, text);
	}
}

/* False: another line than a row. */
static bool compare_row(char *line, const struct table *table)
{
	char *position = NULL, *end;
	char *word = strtok_r(line, " \n", &position);
	unsigned long address = word ? strtoul(word, &end, 16) : 0;
	const struct cfi_row *row;

	if (!word || *end || strlen(word) != 16)
		return false;
	row = program_cfi(program, address);
	ck_assert_msg(row != NULL, "no row at %#lx", address);
	ck_assert_uint_eq(row->start, address);
	ck_assert_uint_gt(row->end, address);
	ck_assert_ptr_eq(row, program_cfi(program, row->end - 1));
	word = strtok_r(NULL, " \n", &position);
	if (!strcmp(word, "exp")) {
		ck_assert(row->cfa_expression || row->cfa_load || row->plt_threshold);
	} else {
		char expected[32];

		snprintf(expected, sizeof(expected), "%s+%d", columns[row->cfa_register], row->cfa_offset);
		ck_assert(!row->cfa_expression && !row->cfa_load && !row->plt_threshold);
		ck_assert_str_eq(word, expected);
	}
	for (size_t i = 0; i < table->count; i++) {
		do { /* "r8 (r8)" is one rule */
			word = strtok_r(NULL, " \n", &position);
		} while (word && *word == '(');
		ck_assert_ptr_nonnull(word);
		compare_rule(&row->rules[table->numbers[i]], word, address);
	}
	return true;
}

/* Number of rows compared; those of a CIE, and empty ones, are passed over. */
static size_t compare_file(const char *path)
{
	char command[640], line[1024], previous[1024] = "";
	struct table table = {0}, previous_table = {0};
	bool in_fde = false;
	size_t count = 0;
	FILE *stream;

	snprintf(command, sizeof(command), "readelf --debug-dump=frames-interp -wN %s 2>/dev/null", path);
	ck_assert_ptr_null(programs_create(EM_X86_64, true, &programs));
	ck_assert_ptr_null(programs_open(programs, path, NULL, 0, &program));
	stream = popen(command, "r");
	ck_assert_ptr_nonnull(stream);
	while (fgets(line, sizeof(line), stream)) {
		/* Of two rows with one address the later is meant. */
		if (*previous && strncmp(previous, line, 16))
			count += compare_row(previous, &previous_table);
		*previous = '\0';
		if (strstr(line, " FDE ") || strstr(line, " CIE "))
			in_fde = strstr(line, " FDE ");
		else if (!strncmp(line, "   LOC", 6))
			read_header(line, &table);
		else if (in_fde && *line != '\n') {
			strcpy(previous, line);
			previous_table = table;
		}
	}
	pclose(stream);
	programs_destroy(programs);
	return count;
}

START_TEST(test_rows_of_the_c_library)
{
	char path[512] = "", line[512];
	CLEANUP(fclose) FILE *maps = fopen("/proc/self/maps", "r");

	while (fgets(line, sizeof(line), maps)) {
		if (strstr(line, "/libc.so"))
			ck_assert_int_eq(sscanf(strchr(line, '/'), "%511s", path), 1);
	}
	ck_assert_str_ne(path, "");
	ck_assert_uint_gt(compare_file(path), 10000);
}
END_TEST

START_TEST(test_outside_of_all_rows)
{
	ck_assert_ptr_null(programs_create(EM_X86_64, true, &programs));
	ck_assert_ptr_null(programs_open(programs, "/proc/self/exe", NULL, 0, &program));
	ck_assert_ptr_null(program_cfi(program, 0));
	ck_assert_ptr_null(program_cfi(program, 1ULL << 40));
	ck_assert_ptr_null(program_cfi(program, UINT64_MAX));
	programs_destroy(programs);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cfi");
	TCase *tests = tcase_create("cfi");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, test_rows_of_the_c_library);
	tcase_add_test(tests, test_outside_of_all_rows);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
