/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The instructions around the call that a frame is at. */
#ifndef ANALYSIS_ANNOTATE_H
#define ANALYSIS_ANNOTATE_H

#include <mmtrace/report.h>

#include "analysis/code-view.h"
#include "base/arena.h"

/*
 * See mmt_report_annotate(). `ends_early`: the report ends before the recording does, whose copies of code may be those
 * of a program that its process executed only then.
 */
struct mmt_error *annotate_frame(struct code_view *code, struct arena *arena, const struct mmt_frame *frame,
				 size_t around, bool ends_early, struct mmt_annotation *annotation_ret) MMT_MUST_CHECK;

#endif
