/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What main() of every unit test ends with. */
#ifndef SUPPORT_RUN_SUITE_H
#define SUPPORT_RUN_SUITE_H

#include "support/marks.h"

/* Takes the suite; gives the exit status of the program. */
int run_suite(Suite *suite);

#endif
