/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Starts short processes one after the other: forks COUNT ROUNDS. After each round it prints "round N" and waits. */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/stage.h"

static void run(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		pid_t pid = stage_need_call(fork(), "fork");

		if (pid == 0) {
			(void)mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			_exit(0);
		}
		stage_need_call(waitpid(pid, NULL, 0), "waitpid");
	}
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t count = stage_number(&stage, 0, 1000), rounds = stage_number(&stage, 1, 1);
	char word[32];

	stage_begin(&stage);
	for (size_t round = 1; round <= rounds; round++) {
		run(count);
		snprintf(word, sizeof(word), "round %zu", round);
		stage_pause(&stage, word);
	}
	stage_end(&stage);
	return 0;
}
