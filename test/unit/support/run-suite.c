// SPDX-License-Identifier: LGPL-2.1-or-later
#include "support/run-suite.h"

#include <stdlib.h>

#include "support/temporary.h"

int run_suite(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	temporary_begin();
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	temporary_end();
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
