/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* qemu-user runs a program of another architecture, but does not emulate every kernel interface. */
#pragma once

#include <stdbool.h>

/* Whether an emulator runs this program; if so, prints that it does not show `what`, which the tests need. */
bool emulator_hides(const char *what);
