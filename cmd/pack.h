/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_PACK_H
#define CMD_PACK_H

#include <stdbool.h>

#include "cmd.h"

/* Says what came of it, unless `quiet`; the exit status. `output` NULL: in the input's place. */
int pack_recording(const struct command *command, const char *input, const char *output, bool quiet);

#endif
