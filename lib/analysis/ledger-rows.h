/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The rows of a ledger: what is unfreed in each now, at most, and over time. For the files of the ledger alone. */
#ifndef ANALYSIS_LEDGER_ROWS_H
#define ANALYSIS_LEDGER_ROWS_H

#include "analysis/ledger.h"

#define LEDGER_FIRST_BUCKET_NS 1000000

/* `bytes` (modulo 2^64: a decrease is a large number) come to a row; they count from `trend_ns` in its trend, and from
 * now in its steps. */
void ledger_rows_change(struct ledger *ledger, uint32_t row, uint64_t trend_ns, uint64_t bytes);

/* The same of a birth whose stack is not told. */
void ledger_rows_change_waiting(struct ledger *ledger, struct birth *birth, uint64_t trend_ns, uint64_t bytes);

/* The same two for `bytes` of the total that are PROT_NONE or, modulo 2^64, no longer are: of a row, which says whether
 * they count; in steps alone. */
void ledger_rows_reserve(struct ledger *ledger, uint32_t row, uint64_t time_ns, uint64_t bytes);
void ledger_rows_reserve_waiting(struct ledger *ledger, struct birth *birth, uint64_t bytes);

/* What is left of a birth whose stack was waited for too long comes to its row, as of its call. */
void ledger_rows_enter(struct ledger *ledger, uint32_t row, const struct birth *birth);

/* The row of a birth is known, and with it that of what waited. LEDGER_NO_ROW: it has none. */
void ledger_rows_tell(struct ledger *ledger, struct birth *birth, uint32_t row);

#endif
