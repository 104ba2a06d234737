// SPDX-License-Identifier: LGPL-2.1-or-later
/* main() of every unit test. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/suite.h"
#include "support/temporary.h"

char **test_operands;

static _Atomic int *skipped; /* shared with the processes of the tests */

void skip_suite(const char *why)
{
	fprintf(stderr, "skipped: %s\n", why);
	_exit(EXIT_SKIP); /* without a leak check: the suite may be half made */
}

void skip_test(const char *test, const char *why)
{
	size_t length = strlen(test);

	if (length > 3 && !strcmp(test + length - 3, "_fn")) /* Check's name of the function */
		length -= 3;
	fprintf(stderr, "%.*s: skipped: %s\n", (int)length, test, why);
	atomic_fetch_add(skipped, 1);
}

TCase *add_tcase(Suite *suite, const char *name)
{
	TCase *tcase = tcase_create(name);

	suite_add_tcase(suite, tcase);
	return tcase;
}

static int run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed, count;

	temporary_begin();
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	count = srunner_ntests_run(runner);
	srunner_free(runner);
	temporary_end();
	if (failed)
		return EXIT_FAILURE;
	return *skipped && *skipped >= count ? EXIT_SKIP : EXIT_SUCCESS;
}

int main(int count, char **arguments)
{
	test_operands = arguments + (count > 0);
	skipped = mmap(NULL, sizeof(*skipped), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (skipped == MAP_FAILED) {
		perror("mmap");
		return EXIT_FAILURE;
	}
	return run(test_suite());
}
