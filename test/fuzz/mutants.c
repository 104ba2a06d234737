// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 *     mutants [-n COUNT] [-o NUMBER] FILE...
 *
 * Passes mutants of the recordings to a fuzz target, which is linked with this file. Their number determines them: -o
 * writes one to standard output. A process of its own runs the target; if it ends, this one says with which mutant.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vector.h"
#include "mutate-recording.h"

#define SECONDS_MAX 60 /* of processor time, for one mutant */
#define MUTANT_BYTES (16u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static VECTOR(struct recording_parts *) recordings;

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "mutants: %s: %s\n", what, why);
	exit(2);
}

static void read_file(const char *path)
{
	FILE *stream = fopen(path, "rb");
	struct recording_parts *parts;
	struct buffer data;
	size_t count;

	if (!stream)
		fail(path, "cannot be opened");
	buffer_init(&data, MUTANT_BYTES);
	do {
		char block[65536];

		count = fread(block, 1, sizeof(block), stream);
		buffer_put(&data, block, count);
	} while (count);
	if (ferror(stream) || data.error)
		fail(path, "cannot be read");
	fclose(stream);
	parts = recording_parts_read(data.data, data.size);
	if (parts && !vector_push(&recordings, parts))
		fail(path, "out of memory");
	buffer_deinit(&data);
}

static void make(uint64_t number, struct buffer *mutant)
{
	buffer_clear(mutant);
	recording_parts_mutate(recordings.items[number % recordings.count], number, mutant);
}

static void limit_time(void)
{
	const struct itimerval limit = {.it_value.tv_sec = SECONDS_MAX};

	setitimer(ITIMER_PROF, &limit, NULL);
}

/* Never returns. *number: the mutant that the target has. */
static void run(volatile uint64_t *number, uint64_t count)
{
	struct buffer mutant;

	buffer_init(&mutant, MUTANT_BYTES);
	for (; *number < count; ++*number) {
		make(*number, &mutant);
		limit_time();
		LLVMFuzzerTestOneInput(mutant.data, mutant.size);
	}
	buffer_deinit(&mutant);
	exit(EXIT_SUCCESS);
}

static void write_one(uint64_t number)
{
	struct buffer mutant;

	buffer_init(&mutant, MUTANT_BYTES);
	make(number, &mutant);
	if (fwrite(mutant.data, 1, mutant.size, stdout) != mutant.size || fflush(stdout))
		fail("standard output", "cannot be written");
	buffer_deinit(&mutant);
}

static int run_all(uint64_t count)
{
	volatile uint64_t *number =
	    mmap(NULL, sizeof(*number), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0;
	pid_t pid;

	if (number == MAP_FAILED)
		fail("mmap", "out of memory");
	*number = 0;
	pid = fork();
	if (!pid)
		run(number, count);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		fail("fork", "failed");
	if (WIFEXITED(status) && !WEXITSTATUS(status)) {
		printf("%llu mutants of %zu recordings\n", (unsigned long long)*number, recordings.count);
		return EXIT_SUCCESS;
	}
	fprintf(stderr, "mutants: number %llu ended the program: %s\n", (unsigned long long)*number,
		!WIFSIGNALED(status)	      ? "see above"
		: WTERMSIG(status) == SIGPROF ? "it took too long"
					      : strsignal(WTERMSIG(status)));
	return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	uint64_t count = 0, number = 0;
	bool one = false;
	int option, status = EXIT_SUCCESS;

	while ((option = getopt(argc, argv, "n:o:")) != -1) {
		if (option == 'n')
			count = strtoull(optarg, NULL, 10);
		else if (option == 'o')
			number = strtoull(optarg, NULL, 10), one = true;
		else
			return 2;
	}
	for (int i = optind; i < argc; i++)
		read_file(argv[i]);
	if (!recordings.count)
		fail("arguments", "no recording");
	if (one)
		write_one(number);
	else
		status = run_all(count);
	for (size_t i = 0; i < recordings.count; i++)
		recording_parts_destroy(recordings.items[i]);
	vector_deinit(&recordings);
	return status;
}
