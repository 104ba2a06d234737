/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "model/space/space.h"

/* Check invariants. False: one is violated; *why_ret is a static description. */
bool space_valid(const struct space *space, const char **why_ret);
