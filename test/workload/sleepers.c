/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* As many sleeping threads as the first operand says, so that attaching to them takes long. */
#include <pthread.h>
#include <unistd.h>

#include "support/stage.h"

static void *sleep_on(void *unused)
{
	for (;;)
		pause();
	return unused;
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t count = stage_number(&stage, 0, 300);

	for (size_t i = 0; i < count; i++) {
		pthread_t thread;

		stage_need_call(-pthread_create(&thread, NULL, sleep_on, NULL), "pthread_create");
	}
	stage_begin(&stage);
	stage_end(&stage);
	return 0;
}
