/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The head of the file: event attributes and the sections that are known when recording starts. */
#ifndef CAPTURE_HEAD_H
#define CAPTURE_HEAD_H

#include "base/error.h"
#include "capture/recorder.h"

/* Gives them to the writer; recorder->start_ns is set. */
struct mmt_error *head_add(struct recorder *recorder) MMT_MUST_CHECK;

#endif
