// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <string.h>

#include "analysis/report/report-build.h"
#include "support/suite.h"

START_TEST(consistent_figures_pass)
{
	const struct mmt_row row = {.allocated_bytes = 12288, .freed_bytes = 4096, .unfreed_bytes = 8192};

	ck_assert_ptr_null(row_figures_verify(&row));
}
END_TEST

/* A disagreement is reported with the figures and the stack, never shown as a result. */
START_TEST(inconsistent_figures_are_errors)
{
	const struct mmt_frame *const frame = &(const struct mmt_frame){.function = "leak"};
	const struct mmt_row row = {
	    .allocated_bytes = 12288, .freed_bytes = 4096, .unfreed_bytes = 4096, .frames = &frame, .frame_count = 1};
	struct mmt_error *error = row_figures_verify(&row);

	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(error->code, MMT_ERROR_INTERNAL);
	ck_assert_ptr_nonnull(strstr(error->message, "12288 bytes mapped, 4096 freed, but 4096 unfreed"));
	ck_assert_ptr_nonnull(strstr(error->message, "leak"));
	mmt_error_destroy(error);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("groups");
	TCase *tcase = add_tcase(suite, "groups");

	tcase_add_tests(tcase, consistent_figures_pass, inconsistent_figures_are_errors);
	return suite;
}
