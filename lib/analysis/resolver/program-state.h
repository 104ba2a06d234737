/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The states of modules and their numbers in packed recordings. */
#ifndef ANALYSIS_RESOLVER_PROGRAM_STATE_H
#define ANALYSIS_RESOLVER_PROGRAM_STATE_H

#include "code/elf/module.h"
#include "trace/format/wire.h"

/* State of a module that could not be (fully) used. */
static inline enum wire_program_state wire_program_state(enum program_state state)
{
	switch (state) {
	case PROGRAM_MISSING:
		return WIRE_PROGRAM_MISSING;
	case PROGRAM_OTHER_BUILD:
		return WIRE_PROGRAM_OTHER_BUILD;
	case PROGRAM_CHANGED:
		return WIRE_PROGRAM_CHANGED;
	case PROGRAM_POOR_NAMES:
		return WIRE_PROGRAM_POOR_NAMES;
	case PROGRAM_LIMITED_NAMES:
		return WIRE_PROGRAM_LIMITED_NAMES;
	case PROGRAM_MISSING_NAMES:
		return WIRE_PROGRAM_MISSING_NAMES;
	case PROGRAM_READABLE:
	case PROGRAM_NOT_ELF:
	case PROGRAM_BROKEN:
		break;
	}
	return WIRE_PROGRAM_BROKEN;
}

/* Numbers unknown to this version become PROGRAM_BROKEN. */
static inline enum program_state wire_to_program_state(enum wire_program_state state)
{
	for (unsigned i = PROGRAM_MISSING; i <= PROGRAM_MISSING_NAMES; i++) {
		if (wire_program_state((enum program_state)i) == state)
			return (enum program_state)i;
	}
	return PROGRAM_BROKEN;
}

#endif
