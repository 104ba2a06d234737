// SPDX-License-Identifier: LGPL-2.1-or-later
/* Passes each file of the given directories and files to a fuzz target once, so that bugs found by the fuzzer stay
 * fixed. */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned replayed;

static void fail(const char *what, const char *path)
{
	fprintf(stderr, "%s: %s\n", path, what);
	exit(EXIT_FAILURE);
}

static void replay_file(const char *path)
{
	FILE *stream = fopen(path, "rb");
	uint8_t *data = NULL;
	size_t size = 0, count;

	if (!stream)
		fail("cannot be opened", path);
	do {
		data = realloc(data, size + 65536);
		if (!data)
			fail("does not fit into memory", path);
		count = fread(data + size, 1, 65536, stream);
		size += count;
	} while (count);
	if (ferror(stream))
		fail("cannot be read", path);
	fclose(stream);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	replayed++;
}

static void replay_path(const char *path)
{
	struct dirent *entry;
	struct stat status;
	DIR *directory;

	if (stat(path, &status))
		fail("does not exist", path);
	if (!S_ISDIR(status.st_mode)) {
		replay_file(path);
		return;
	}
	directory = opendir(path);
	if (!directory)
		fail("cannot be opened", path);
	while ((entry = readdir(directory))) {
		char *name = NULL;

		if (entry->d_name[0] == '.')
			continue;
		if (asprintf(&name, "%s/%s", path, entry->d_name) < 0)
			fail("out of memory", path);
		replay_path(name);
		free(name);
	}
	closedir(directory);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		replay_path(argv[i]);
	printf("%u inputs replayed\n", replayed);
	/* An empty corpus proves nothing. */
	return replayed ? EXIT_SUCCESS : EXIT_FAILURE;
}
