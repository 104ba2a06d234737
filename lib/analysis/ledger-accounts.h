/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which account something belongs to. For the files of the ledger alone. */
#ifndef ANALYSIS_LEDGER_ACCOUNTS_H
#define ANALYSIS_LEDGER_ACCOUNTS_H

#include "analysis/ledger.h"

enum ledger_side ledger_side(const struct ledger *ledger, uint64_t time_ns);

/* Makes the account, and asks for its row, when it is the first time. */
struct mmt_error *ledger_account(struct ledger *ledger, uint32_t stack, uint32_t process, uint32_t kind,
				 uint32_t *number_ret) MMT_MUST_CHECK;

#endif
