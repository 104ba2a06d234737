// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/time-budget.h"

bool time_budget_allows(struct time_budget *budget, uint64_t now_ns)
{
	budget->left_ns += (int64_t)((now_ns - budget->at_ns) / TIME_BUDGET_SHARE);
	budget->at_ns = now_ns;
	if (budget->left_ns > TIME_BUDGET_SAVED_NS_MAX)
		budget->left_ns = TIME_BUDGET_SAVED_NS_MAX;
	return budget->left_ns > 0;
}

void time_budget_spend(struct time_budget *budget, uint64_t spent_ns)
{
	budget->left_ns -= (int64_t)spent_ns;
}
