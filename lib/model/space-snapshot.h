/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MODEL_SPACE_SNAPSHOT_H
#define MODEL_SPACE_SNAPSHOT_H

#include "model/space-state.h"

/* The call being applied changed [start, end). */
bool space_snapshot_touch(struct space *space, uint64_t start, uint64_t end);

#endif
