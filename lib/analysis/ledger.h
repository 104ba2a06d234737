/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who mapped how much, and how much of it is gone: one account per stack and process, one birth per call that mapped
 * something. A birth lives as long as any of its bytes, so memory follows what is mapped and how many different stacks
 * there are, not the length of the recording.
 */
#ifndef ANALYSIS_LEDGER_H
#define ANALYSIS_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/map.h"
#include "base/vector.h"

#define LEDGER_BUCKETS 64
#define LEDGER_NO_ACCOUNT UINT32_MAX

struct birth {
	uint32_t account; /* LEDGER_NO_ACCOUNT: its stack is not told yet */
	uint32_t process; /* index */
	uint32_t thread;  /* the caller's number */
	uint64_t time_ns;
	uint64_t born_bytes, live_bytes;
	bool in_use;
};

struct account {
	uint32_t stack;
	uint32_t process; /* index */
	uint64_t allocated_bytes, allocated_count;
	uint64_t freed_bytes, freed_count;
	uint64_t change[LEDGER_BUCKETS]; /* of unfreed bytes, by time; modulo 2^64, so a decrease is a large number */
};

struct ledger {
	VECTOR(struct birth) births; /* number - BIRTH_FIRST */
	VECTOR(uint32_t) free_births;
	VECTOR(struct account) accounts;
	struct map account_numbers; /* stack and process -> place in `accounts` */
	uint64_t start_ns;
	uint64_t now_ns;    /* set by the caller before each change */
	uint64_t bucket_ns; /* doubles when the buckets are full */
	bool out_of_memory; /* sticky: observers cannot return errors */
};

void ledger_init(struct ledger *ledger, uint64_t start_ns);
void ledger_deinit(struct ledger *ledger);

/* A number for what the next call creates, without a stack and without bytes. */
struct mmt_error *ledger_open(struct ledger *ledger, uint32_t process, uint32_t thread,
			      uint32_t *birth_ret) MMT_MUST_CHECK;

/* Bytes come to or go from a birth. Numbers below BIRTH_FIRST are ignored. */
void ledger_born(struct ledger *ledger, uint32_t birth, uint64_t bytes);
void ledger_released(struct ledger *ledger, uint32_t birth, uint64_t bytes);

/* The call is over and has created nothing. */
void ledger_drop(struct ledger *ledger, uint32_t birth);

/* The call has created something and its stack is known. */
struct mmt_error *ledger_settle(struct ledger *ledger, uint32_t birth, uint32_t stack) MMT_MUST_CHECK;

/* NULL: not a birth in use. */
const struct birth *ledger_birth(const struct ledger *ledger, uint32_t birth);

/* Unfreed bytes of an account at `points` equal steps up to `end_ns`. */
void ledger_trend(const struct ledger *ledger, const struct account *account, uint64_t end_ns, uint64_t *points_ret,
		  unsigned points);

#endif
