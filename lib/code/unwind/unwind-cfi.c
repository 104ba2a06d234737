// SPDX-License-Identifier: LGPL-2.1-or-later
/* Steps with the rows of call frame information, and evaluates their DWARF expressions. */
#include <dwarf.h>
#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "code/unwind/unwind-state.h"

#define WORDS_MAX 32
#define SIGN_BIT (1ULL << 63)

struct evaluation {
	struct unwind_state *state;
	struct bytes bytes; /* the rest of the expression */
	uint64_t words[WORDS_MAX];
	unsigned count;
	enum unwind_step failed; /* UNWIND_STEP_DONE: not failed */
};

static void push(struct evaluation *evaluation, uint64_t word)
{
	if (evaluation->count == WORDS_MAX)
		evaluation->failed = UNWIND_STEP_NO_DATA;
	else
		evaluation->words[evaluation->count++] = word;
}

/* The word `depth` below the top of the stack. */
static uint64_t *word_at(struct evaluation *evaluation, unsigned depth)
{
	if (depth < evaluation->count)
		return &evaluation->words[evaluation->count - 1 - depth];
	evaluation->failed = UNWIND_STEP_NO_DATA;
	return &evaluation->words[0];
}

static uint64_t pop(struct evaluation *evaluation)
{
	uint64_t word = *word_at(evaluation, 0);

	evaluation->count -= evaluation->count > 0;
	return word;
}

/* A value that the recording does not have ends the stack. */
static uint64_t known(struct evaluation *evaluation, struct unwind_value value)
{
	value = unwind_look_at(evaluation->state, value);
	if (value.state != UNWIND_VALUE_KNOWN)
		evaluation->failed = value.state == UNWIND_VALUE_MISSING && value.source < UNWIND_READ_REGISTER
					 ? UNWIND_STEP_MISSING
					 : UNWIND_STEP_NO_DATA;
	return value.value;
}

static uint64_t load(struct evaluation *evaluation, unsigned size)
{
	uint64_t word = known(evaluation, unwind_load(evaluation->state, pop(evaluation)));

	if (!size || size > sizeof(word))
		evaluation->failed = UNWIND_STEP_NO_DATA;
	else if (size < sizeof(word))
		word &= (1ULL << 8 * size) - 1;
	return word;
}

/* Only forwards, so that every expression ends. */
static void jump(struct evaluation *evaluation, bool taken)
{
	int16_t distance = (int16_t)bytes_u16(&evaluation->bytes);

	if (distance < 0)
		evaluation->failed = UNWIND_STEP_NO_DATA;
	else if (taken)
		bytes_skip(&evaluation->bytes, (size_t)distance);
}

/* Replaces `left` and `right`, which was pushed last, by one word. Not accepted: division, and what needs a debugger.
 */
static void combine(struct evaluation *evaluation, uint8_t operation)
{
	uint64_t right = pop(evaluation), left = pop(evaluation);
	int64_t a = (int64_t)left, b = (int64_t)right;

	switch (operation) {
	case DW_OP_and:
		return push(evaluation, left & right);
	case DW_OP_or:
		return push(evaluation, left | right);
	case DW_OP_xor:
		return push(evaluation, left ^ right);
	case DW_OP_plus:
		return push(evaluation, left + right);
	case DW_OP_minus:
		return push(evaluation, left - right);
	case DW_OP_mul:
		return push(evaluation, left * right);
	case DW_OP_shl:
		return push(evaluation, right < 64 ? left << right : 0);
	case DW_OP_shr:
		return push(evaluation, right < 64 ? left >> right : 0);
	case DW_OP_shra:
		return push(evaluation, (uint64_t)(a >> (right < 64 ? right : 63)));
	case DW_OP_eq:
		return push(evaluation, a == b);
	case DW_OP_ne:
		return push(evaluation, a != b);
	case DW_OP_ge:
		return push(evaluation, a >= b);
	case DW_OP_gt:
		return push(evaluation, a > b);
	case DW_OP_le:
		return push(evaluation, a <= b);
	case DW_OP_lt:
		return push(evaluation, a < b);
	default:
		evaluation->failed = UNWIND_STEP_NO_DATA;
	}
}

/* An operation that pushes a constant, or another one with operands on the stack. */
static void push_constant(struct evaluation *evaluation, uint8_t operation)
{
	struct bytes *bytes = &evaluation->bytes;

	switch (operation) {
	case DW_OP_lit0 ... DW_OP_lit31:
		return push(evaluation, operation - DW_OP_lit0);
	case DW_OP_const1u:
		return push(evaluation, bytes_u8(bytes));
	case DW_OP_const1s:
		return push(evaluation, (uint64_t)(int8_t)bytes_u8(bytes));
	case DW_OP_const2u:
		return push(evaluation, bytes_u16(bytes));
	case DW_OP_const2s:
		return push(evaluation, (uint64_t)(int16_t)bytes_u16(bytes));
	case DW_OP_const4u:
		return push(evaluation, bytes_u32(bytes));
	case DW_OP_const4s:
		return push(evaluation, (uint64_t)(int32_t)bytes_u32(bytes));
	case DW_OP_const8u:
	case DW_OP_const8s:
		return push(evaluation, bytes_u64(bytes));
	case DW_OP_constu:
		return push(evaluation, bytes_uleb128(bytes));
	case DW_OP_consts:
		return push(evaluation, (uint64_t)bytes_sleb128(bytes));
	default:
		combine(evaluation, operation);
	}
}

static void exchange(uint64_t *one, uint64_t *other)
{
	uint64_t word = *one;

	*one = *other;
	*other = word;
}

static void run(struct evaluation *evaluation, uint8_t operation)
{
	struct unwind_state *state = evaluation->state;
	struct bytes *bytes = &evaluation->bytes;
	unsigned number;
	uint64_t word;

	switch (operation) {
	case DW_OP_breg0 ... DW_OP_breg31:
		number = operation - DW_OP_breg0;
		if (number == state->rules->instruction_pointer)
			word = state->address - state->is_return_address;
		else
			word = known(evaluation,
				     number < CFI_REGISTERS ? state->registers[number] : (struct unwind_value){0});
		return push(evaluation, word + (uint64_t)bytes_sleb128(bytes));
	case DW_OP_deref:
		return push(evaluation, load(evaluation, sizeof(word)));
	case DW_OP_deref_size:
		return push(evaluation, load(evaluation, bytes_u8(bytes)));
	case DW_OP_dup:
		return push(evaluation, *word_at(evaluation, 0));
	case DW_OP_over:
		return push(evaluation, *word_at(evaluation, 1));
	case DW_OP_pick:
		return push(evaluation, *word_at(evaluation, bytes_u8(bytes)));
	case DW_OP_drop:
		(void)pop(evaluation);
		return;
	case DW_OP_rot: /* the top goes below the two others */
		exchange(word_at(evaluation, 0), word_at(evaluation, 1));
		return exchange(word_at(evaluation, 1), word_at(evaluation, 2));
	case DW_OP_swap:
		return exchange(word_at(evaluation, 0), word_at(evaluation, 1));
	case DW_OP_abs:
		word = pop(evaluation);
		return push(evaluation, word & SIGN_BIT ? -word : word);
	case DW_OP_neg:
		return push(evaluation, -pop(evaluation));
	case DW_OP_not:
		return push(evaluation, ~pop(evaluation));
	case DW_OP_plus_uconst:
		return push(evaluation, pop(evaluation) + bytes_uleb128(bytes));
	case DW_OP_bra:
		return jump(evaluation, pop(evaluation));
	case DW_OP_skip:
		return jump(evaluation, true);
	case DW_OP_nop:
		return;
	default:
		push_constant(evaluation, operation);
	}
}

/* Evaluate an expression; `pushed`, which may be NULL, is on its stack at the start. UNWIND_STEP_MISSING: it needs a
 * word that was not recorded. UNWIND_STEP_NO_DATA: it needs other data, or no compiler writes such an expression. Time
 * is bounded for any expression. */
static enum unwind_step evaluate(struct unwind_state *state, struct bytes expression, const uint64_t *pushed,
				 uint64_t *value_ret)
{
	struct evaluation evaluation = {.state = state, .bytes = expression};

	if (pushed)
		push(&evaluation, *pushed);
	if (!bytes_left(&expression) || bytes_left(&expression) > LIMIT_EXPRESSION_BYTES)
		return UNWIND_STEP_NO_DATA;
	while (evaluation.failed == UNWIND_STEP_DONE && bytes_ok(&evaluation.bytes) && bytes_left(&evaluation.bytes))
		run(&evaluation, bytes_u8(&evaluation.bytes));
	*value_ret = *word_at(&evaluation, 0);
	return bytes_ok(&evaluation.bytes) ? evaluation.failed : UNWIND_STEP_NO_DATA;
}

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

static enum unwind_step compute_cfa(struct unwind_state *state, const struct cfi_row *row, uint64_t *cfa_ret)
{
	struct unwind_value base = state->registers[row->cfa_register];

	if (row->cfa_kind == CFI_CFA_EXPRESSION)
		return evaluate(state, cfi_row_expression(row, row->cfa_offset), NULL, cfa_ret);
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
	}
	return UNWIND_STEP_DONE;
}

static enum unwind_step find_cfa(struct unwind_state *state, const struct cfi_row *row, uint64_t *cfa_ret)
{
	uint64_t cfa, stack_pointer, least;
	enum unwind_step step = compute_cfa(state, row, &cfa);

	if (step != UNWIND_STEP_DONE)
		return step;
	if (cfa & (UNWIND_WORD - 1u))
		return UNWIND_STEP_INVALID;
	/* Only a leaf function that keeps its return address in a register may have no frame. */
	least = state->rules->return_address_pushed || state->is_return_address ? 1 : 0;
	if (unwind_use_pointer(state, state->registers[state->rules->stack_pointer], &stack_pointer) &&
	    cfa < stack_pointer + least)
		return UNWIND_STEP_INVALID;
	*cfa_ret = cfa;
	return UNWIND_STEP_DONE;
}

/* The caller's value of the register that `rule` describes; *slot_ret: where it is saved, 0: not on the stack. */
static struct unwind_value apply_rule(struct unwind_state *state, const struct cfi_row *row,
				      const struct cfi_rule *rule, uint64_t cfa, uint64_t *slot_ret)
{
	uint64_t place;
	enum unwind_step step;

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
	case CFI_RULE_EXPRESSION:
	case CFI_RULE_VALUE_EXPRESSION:
		step = evaluate(state, cfi_row_expression(row, rule->offset), &cfa, &place);
		/* A larger dump would have what is missing, so that this is not the end of the unwind data. */
		if (step == UNWIND_STEP_MISSING)
			return (struct unwind_value){.source = UNWIND_SOURCE_DERIVED, .state = UNWIND_VALUE_MISSING};
		if (step != UNWIND_STEP_DONE)
			break;
		if (rule->kind == CFI_RULE_VALUE_EXPRESSION)
			return unwind_derived_value(place);
		*slot_ret = place;
		return unwind_saved_value(state, place);
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
		restored[i] = apply_rule(state, row, &row->rules[i], cfa, &ignored);
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
	/* What an expression has read is not recorded: do not cache such a stack. */
	state->result->reads_overflow |= row->has_expressions;
	step = find_cfa(state, row, &cfa);
	if (step != UNWIND_STEP_DONE)
		return step;
	if (rule)
		return_address = apply_rule(state, row, rule, cfa, &slot);
	/* Still in the link register. A frame that has called another function has lost it: see restore_registers(). */
	else if (!rules->return_address_pushed && row->return_column == rules->link_register)
		return_address = state->registers[row->return_column];
	if (!unwind_use_address(state, return_address, &address)) {
		state->wanted = slot;
		return unwind_failed_value(state, return_address);
	}
	if (row->deduced) {
		int call = unwind_follows_call(state, address);

		if (call == 0 || (row->unsure && call < 0)) {
			state->rejected = address;
			return UNWIND_STEP_NO_DATA;
		}
	}
	if (!address)
		return UNWIND_STEP_ENTRY;
	restore_registers(state, row, cfa);
	unwind_enter_frame(state, address, slot, row->has_expressions ? UNWIND_BY_EXPRESSION : UNWIND_BY_CFI);
	return UNWIND_STEP_DONE;
}
