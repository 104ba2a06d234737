// SPDX-License-Identifier: LGPL-2.1-or-later
/* Evaluates the DWARF expressions of call frame information. */
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

static uint64_t register_value(struct evaluation *evaluation, unsigned number)
{
	struct unwind_state *state = evaluation->state;

	if (number == state->rules->instruction_pointer)
		return state->address - state->is_return_address;
	return known(evaluation, number < CFI_REGISTERS ? state->registers[number] : (struct unwind_value){0});
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

/* An operation that pushes a constant. False: it is another one. */
static bool read_constant(struct bytes *bytes, uint8_t operation, uint64_t *value_ret)
{
	switch (operation) {
	case DW_OP_lit0 ... DW_OP_lit31:
		*value_ret = operation - DW_OP_lit0;
		break;
	case DW_OP_const1u:
		*value_ret = bytes_u8(bytes);
		break;
	case DW_OP_const1s:
		*value_ret = (uint64_t)(int8_t)bytes_u8(bytes);
		break;
	case DW_OP_const2u:
		*value_ret = bytes_u16(bytes);
		break;
	case DW_OP_const2s:
		*value_ret = (uint64_t)(int16_t)bytes_u16(bytes);
		break;
	case DW_OP_const4u:
		*value_ret = bytes_u32(bytes);
		break;
	case DW_OP_const4s:
		*value_ret = (uint64_t)(int32_t)bytes_u32(bytes);
		break;
	case DW_OP_const8u:
	case DW_OP_const8s:
		*value_ret = bytes_u64(bytes);
		break;
	case DW_OP_constu:
		*value_ret = bytes_uleb128(bytes);
		break;
	case DW_OP_consts:
		*value_ret = (uint64_t)bytes_sleb128(bytes);
		break;
	default:
		return false;
	}
	return true;
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

static void exchange(uint64_t *one, uint64_t *other)
{
	uint64_t word = *one;

	*one = *other;
	*other = word;
}

static void run(struct evaluation *evaluation, uint8_t operation)
{
	struct bytes *bytes = &evaluation->bytes;
	uint64_t word;

	if (read_constant(bytes, operation, &word)) {
		push(evaluation, word);
		return;
	}
	switch (operation) {
	case DW_OP_breg0 ... DW_OP_breg31:
		word = register_value(evaluation, operation - DW_OP_breg0);
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
		combine(evaluation, operation);
	}
}

enum unwind_step unwind_evaluate(struct unwind_state *state, struct bytes expression, const uint64_t *pushed,
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
