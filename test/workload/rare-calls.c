/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rare calls, numbered by their address: shmdt() where nothing is attached. Made by the main thread, by others, by
 * children as their first call, by their children; with the operand "outlive", by a thread that outlives the main one,
 * and by the program that it then executes. With the operand "strange" they have other addresses, follow a call that
 * creates, and have a secret on the stack. Prints how many were made at each place.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/stage.h"

enum { CALLS = 200, THREADS = 20, CHILDREN = 300, SECRETS = 64 };
enum place { OWN, CHILD, EXECUTED, STRANGE, PLACES };

static const char *const names[PLACES] = {"own", "child", "executed", "strange"};
static const char *volatile text = "S3cr3t#!";
static _Atomic uint32_t *made; /* by place; shared with children */

static void make_call(enum place place)
{
	uint32_t number = atomic_fetch_add(&made[place], 1);

	shmdt((void *)(((uintptr_t)place + 1) << 40 | number * stage_page_bytes()));
}

VISIBLE void keep_secret(void)
{
	volatile uint64_t secrets[SECRETS];
	uint64_t secret;

	memcpy(&secret, text, sizeof(secret));
	for (int i = 0; i < SECRETS; i++)
		secrets[i] = secret;
	make_call(STRANGE);
	syscall(SYS_remap_file_pages, (void *)(uintptr_t)secrets[0], 1UL, 1, 0UL, 0);
	KEEP_FRAME();
}

static void *run(void *unused)
{
	make_call(OWN);
	return unused;
}

static void live(void)
{
	make_call(CHILD);
	if (fork() == 0) {
		make_call(CHILD);
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	_exit(0);
}

static void make_calls(void)
{
	for (int i = 0; i < CALLS; i++)
		make_call(OWN);
	for (int i = 0; i < THREADS; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, run, NULL) == 0)
			pthread_join(thread, NULL);
	}
	for (int i = 0; i < CHILDREN; i++) {
		if (fork() == 0)
			live();
		if (i % 4 == 3)
			while (wait(NULL) > 0)
				;
	}
}

static void print_counts(void)
{
	for (int place = 0; place < PLACES; place++) {
		if (made[place])
			printf("made %u %s\n", (unsigned)made[place], names[place]);
	}
	fflush(stdout);
}

static void *outlive(void *itself)
{
	usleep(200000); /* the main thread has ended by then */
	for (int i = 0; i < CALLS; i++)
		make_call(OWN);
	print_counts();
	execl(itself, itself, "executed", (char *)NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	bool executed = argc > 1 && !strcmp(argv[1], "executed");
	struct stage stage = stage_open(argc, argv);
	const char *what = stage.operand_count ? stage.operands[0] : "";
	pthread_t thread;

	made = stage_need(mmap(NULL, stage_page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
			  "mmap");
	if (!executed)
		stage_begin(&stage);
	if (!strcmp(what, "outlive")) {
		pthread_create(&thread, NULL, outlive, "/proc/thread-self/exe");
		pthread_exit(NULL);
	}
	if (!strcmp(what, "strange"))
		for (int i = 0; i < CALLS; i++)
			keep_secret();
	else if (executed)
		for (int i = 0; i < CALLS; i++)
			make_call(EXECUTED);
	else
		make_calls();
	print_counts();
	stage_end(&stage);
	return 0;
}
