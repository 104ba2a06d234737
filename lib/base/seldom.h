/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is on the way of each event and has hardly ever to be done: apart from that way, it does not slow it down by what
 * it needs to be called. */
#ifndef BASE_SELDOM_H
#define BASE_SELDOM_H

#define SELDOM __attribute__((noinline))

#endif
