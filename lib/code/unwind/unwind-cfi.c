// SPDX-License-Identifier: LGPL-2.1-or-later
/* Steps with the rows of call frame information. */
#include "code/unwind/unwind-state.h"

enum unwind_step unwind_step_by_signal_frame(struct unwind_state *state)
{
	const struct unwind_rules *rules = state->rules;
	struct unwind_value caller[UNWIND_REGISTERS] = {0};
	uint64_t frame, address, interrupted;

	if (!unwind_use_pointer(state, state->registers[rules->stack_pointer], &frame))
		return UNWIND_STEP_MISSING;
	for (unsigned i = 0; i < rules->register_count; i++)
		caller[rules->signal_registers[i]] = unwind_load(state, frame + rules->signal_offset + UNWIND_WORD * i);
	if (!unwind_use_address(state, caller[rules->instruction_pointer], &address))
		return UNWIND_STEP_MISSING;
	unwind_enter_caller(state, caller, address, frame, UNWIND_BY_SIGNAL_FRAME);
	state->is_return_address = false;
	state->other_stack = !unwind_use_pointer(state, caller[rules->stack_pointer], &interrupted) &&
			     caller[rules->stack_pointer].state == UNWIND_VALUE_KNOWN;
	return UNWIND_STEP_DONE;
}

static enum unwind_step find_cfa(struct unwind_state *state, const struct cfi_row *row, uint64_t *cfa_ret)
{
	struct unwind_value base = state->registers[row->cfa_register];
	uint64_t stack_pointer, least;

	if (row->cfa_kind == CFI_CFA_UNKNOWN)
		return UNWIND_STEP_NO_DATA;
	if (state->stack_pointer_is_bound && row->cfa_register == state->rules->stack_pointer)
		return UNWIND_STEP_NO_DATA;
	if (!unwind_use_pointer(state, base, cfa_ret))
		return unwind_failed_value(state, base);
	*cfa_ret += (uint64_t)(int64_t)row->cfa_offset;
	if (row->cfa_kind == CFI_CFA_PLT && (state->address & 15) >= row->plt_threshold)
		*cfa_ret += UNWIND_WORD;
	if (row->cfa_kind == CFI_CFA_LOAD) {
		base = unwind_load(state, *cfa_ret);
		if (!unwind_use_pointer(state, base, cfa_ret))
			return unwind_failed_value(state, base);
		*cfa_ret += row->cfa_addend;
	}
	if (*cfa_ret & (UNWIND_WORD - 1u))
		return UNWIND_STEP_INVALID;
	/* Only a leaf function that keeps its return address in a register may have no frame. */
	least = state->rules->return_address_pushed || state->is_return_address ? 1 : 0;
	if (unwind_use_pointer(state, state->registers[state->rules->stack_pointer], &stack_pointer) &&
	    *cfa_ret < stack_pointer + least)
		return UNWIND_STEP_INVALID;
	return UNWIND_STEP_DONE;
}

/* The caller's value of the register that `rule` describes; *slot_ret: where it is saved, 0: not on the stack. */
static struct unwind_value apply_rule(struct unwind_state *state, const struct cfi_rule *rule, uint64_t cfa,
				      uint64_t *slot_ret)
{
	uint64_t place;

	*slot_ret = 0;
	switch ((enum cfi_rule_kind)rule->kind) {
	case CFI_RULE_SAME:
		return state->registers[rule->number];
	case CFI_RULE_OFFSET:
		*slot_ret = cfa + (uint64_t)(int64_t)rule->offset;
		return unwind_saved_value(state, *slot_ret);
	case CFI_RULE_VALUE:
		return unwind_derived_value(cfa + (uint64_t)(int64_t)rule->offset);
	case CFI_RULE_REGISTER:
		return state->registers[rule->reg];
	case CFI_RULE_AT_REGISTER:
		if (!unwind_use_pointer(state, state->registers[rule->reg], &place))
			break;
		*slot_ret = place + (uint64_t)(int64_t)rule->offset;
		return unwind_saved_value(state, *slot_ret);
	case CFI_RULE_UNKNOWN:
	case CFI_RULE_UNDEFINED:
		break;
	}
	return (struct unwind_value){0};
}

/* Replace the registers by the caller's. All rules refer to the old registers, so the results are stored after the last
 * rule. */
static void restore_registers(struct unwind_state *state, const struct cfi_row *row, uint64_t cfa)
{
	const struct unwind_rules *rules = state->rules;
	struct unwind_value restored[CFI_REGISTERS];
	uint64_t ignored;

	for (unsigned i = 0; i < row->rule_count; i++)
		restored[i] = apply_rule(state, &row->rules[i], cfa, &ignored);
	for (unsigned i = 0; i < rules->register_count; i++) {
		if (!(rules->preserved >> i & 1))
			state->registers[i].state = UNWIND_VALUE_LOST;
	}
	state->registers[rules->stack_pointer] = unwind_derived_value(cfa);
	for (unsigned i = 0; i < row->rule_count; i++)
		state->registers[row->rules[i].number] = restored[i];
	if (!rules->return_address_pushed)
		state->registers[rules->link_register].state = UNWIND_VALUE_LOST;
}

enum unwind_step unwind_step_by_cfi(struct unwind_state *state, const struct cfi_row *row)
{
	const struct unwind_rules *rules = state->rules;
	const struct cfi_rule *rule = cfi_row_rule(row, row->return_column);
	struct unwind_value return_address = {0};
	uint64_t cfa, slot = 0, address;
	enum unwind_step step;

	if (rule && rule->kind == CFI_RULE_UNDEFINED)
		return UNWIND_STEP_ENTRY;
	if (row->other_stack)
		return UNWIND_STEP_OTHER_STACK;
	if (row->signal_frame)
		return unwind_step_by_signal_frame(state);
	step = find_cfa(state, row, &cfa);
	if (step != UNWIND_STEP_DONE)
		return step;
	if (rule)
		return_address = apply_rule(state, rule, cfa, &slot);
	/* Still in the link register. A frame that has called another function has lost it: see restore_registers(). */
	else if (!rules->return_address_pushed && row->return_column == rules->link_register)
		return_address = state->registers[row->return_column];
	if (!unwind_use_address(state, return_address, &address)) {
		state->wanted = slot;
		return unwind_failed_value(state, return_address);
	}
	if (row->deduced) {
		int call = unwind_follows_call(state, address);

		/* A frame of a resumed coroutine returns, without a call, to code that restores its caller. */
		if (call == 0 || (row->unsure && call < 0)) {
			struct code_place place = {0};

			(void)state->callbacks->find(state->callbacks->context, address, true, &place);
			if (!place.row || !place.row->other_stack) {
				state->rejected = address;
				return UNWIND_STEP_NO_DATA;
			}
		}
	}
	if (!address)
		return UNWIND_STEP_ENTRY;
	restore_registers(state, row, cfa);
	unwind_enter_frame(state, address, slot, UNWIND_BY_CFI);
	return UNWIND_STEP_DONE;
}
