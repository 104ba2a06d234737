/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/children.h"
#include "support/stage.h"

enum { CHILDREN_MAX = 32 };

static int tell[2];
static pid_t awaited[CHILDREN_MAX];
static int awaited_count;

void children_open(void)
{
	stage_need_call(pipe(tell), "pipe");
}

int children_descriptor(void)
{
	return tell[1];
}

void children_open_as_child(int descriptor)
{
	tell[1] = descriptor;
	children_begin();
}

void children_begin(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void children_report_and_stay(void)
{
	pid_t self = getpid();

	stage_need_call((int)write(tell[1], &self, sizeof(self)), "write");
	for (;;)
		pause();
}

pid_t children_await(void)
{
	pid_t child = 0;

	if (awaited_count == CHILDREN_MAX || read(tell[0], &child, sizeof(child)) != sizeof(child)) {
		fprintf(stderr, "no child told\n");
		exit(1);
	}
	awaited[awaited_count++] = child;
	return child;
}

void children_end(void)
{
	for (int i = 0; i < awaited_count; i++)
		kill(awaited[i], SIGKILL);
	while (wait(NULL) > 0)
		;
}
