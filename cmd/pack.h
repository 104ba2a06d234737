/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PACK_H
#define PACK_H

#include <stdbool.h>

#include "cmd.h"

struct pack_arguments {
	const char *input;
	const char *output; /* NULL: in the input's place */
	bool no_code, quiet;
};

/* Says what came of it, unless `quiet`; the exit status. */
int pack_recording(const struct command *command, const struct pack_arguments *arguments);

#endif
