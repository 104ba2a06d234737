/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUPPORT_SPACE_VALID_H
#define SUPPORT_SPACE_VALID_H

#include "model/space/space.h"

/* Check invariants. False: one is violated; *why_ret is a static description. */
bool space_valid(const struct space *space, const char **why_ret);

#endif
