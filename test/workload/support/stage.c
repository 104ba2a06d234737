/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/stage.h"

struct stage stage_open(int argc, char **argv)
{
	struct stage stage = {.operand_count = argc - 1, .operands = argv + 1};

	if (stage.operand_count > 0 && !strcmp(stage.operands[0], "--exit")) {
		stage.exit_by_itself = true;
		stage.operand_count--;
		stage.operands++;
	}
	return stage;
}

static void wait_for_line(void)
{
	char byte;

	while (read(STDIN_FILENO, &byte, 1) == 1 && byte != '\n')
		;
}

void stage_pause(const struct stage *stage, const char *word)
{
	if (stage->exit_by_itself)
		return;
	dprintf(STDOUT_FILENO, "%s\n", word);
	wait_for_line();
}

void stage_begin(const struct stage *stage)
{
	stage_pause(stage, "ready");
}

void stage_expect(const char *format, ...)
{
	char line[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	dprintf(STDOUT_FILENO, "expect %s\n", line);
}

void stage_end(const struct stage *stage)
{
	dprintf(STDOUT_FILENO, "done\n");
	if (!stage->exit_by_itself)
		wait_for_line();
}

size_t stage_number(const struct stage *stage, int index, size_t otherwise)
{
	return index < stage->operand_count ? strtoul(stage->operands[index], NULL, 0) : otherwise;
}

void *stage_need(void *pointer, const char *what)
{
	if (pointer == MAP_FAILED || !pointer) {
		perror(what);
		exit(1);
	}
	return pointer;
}

int stage_need_call(int status, const char *what)
{
	if (status < 0) {
		perror(what);
		exit(1);
	}
	return status;
}

size_t stage_page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

void stage_touch(void *start, size_t length)
{
	volatile char *bytes = start;

	for (size_t offset = 0; offset < length; offset += stage_page_bytes())
		bytes[offset] = 1;
}
