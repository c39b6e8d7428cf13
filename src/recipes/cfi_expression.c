/* SPDX-License-Identifier: Apache-2.0 */
#include "recipes/cfi_expression.h"
#include <dwarf.h>
#include <elf.h>
#include "isa/insn.h"

#define STACK_MAX 16
#define OPERATIONS_MAX 96 /* the longest that compilers write has about 20 */

#define X86_64_PC 16
#define AARCH64_PC 32
#define AARCH64_VG 46

struct stack {
	struct evaluation *evaluation;
	struct cursor cursor;
	const uint8_t *first;
	struct value values[STACK_MAX];
	unsigned depth;
};

static bool push(struct stack *stack, struct value value)
{
	if (stack->depth == STACK_MAX)
		return false;
	stack->values[stack->depth++] = value;
	return true;
}

static bool push_constant(struct stack *stack, uint64_t constant)
{
	return push(stack, (struct value){.base = VALUE_CONSTANT, .add = (int64_t)constant});
}

static bool is_constant(const struct value *value)
{
	return value->base == VALUE_CONSTANT && !value->memory && !value->vg;
}

static bool push_register(struct stack *stack, uint64_t reg, int64_t offset)
{
	struct evaluation *evaluation = stack->evaluation;
	bool arm = evaluation->isa->elf_machine == EM_AARCH64;
	if (reg == (arm ? AARCH64_PC : X86_64_PC)) {
		evaluation->used_pc = true;
		return push_constant(stack, evaluation->pc + (uint64_t)offset);
	}
	if (arm && reg == AARCH64_VG)
		return push(stack, (struct value){.add = offset, .vg = 1});
	if (reg >= evaluation->isa->register_count)
		return false;
	return push(stack,
		    (struct value){.base = VALUE_REGISTER, .reg = (uint8_t)reg, .add = offset});
}

static struct value *top(struct stack *stack, unsigned below)
{
	return below < stack->depth ? &stack->values[stack->depth - 1 - below] : NULL;
}

static bool dereference(struct stack *stack)
{
	struct value *value = top(stack, 0);
	if (!value || value->memory || value->vg || value->shift || value->base == VALUE_CONSTANT)
		return false;
	value->memory = true;
	value->inner = value->add;
	value->add = 0;
	return true;
}

static bool is_plain_register(const struct value *value)
{
	return value->base == VALUE_REGISTER && !value->memory && !value->indexed && !value->vg;
}

/* left + right, where at most one of them has a base, or both are registers. */
static bool add(struct value *left, const struct value *right)
{
	struct value sum = left->base == VALUE_CONSTANT ? *right : *left;
	if (left->base != VALUE_CONSTANT && right->base != VALUE_CONSTANT) {
		const struct value *index = left->shift ? left : right;
		sum = left->shift ? *right : *left;
		if (!is_plain_register(left) || !is_plain_register(right) || sum.shift)
			return false;
		sum.indexed = true;
		sum.index = index->reg;
		sum.index_shift = index->shift;
	}
	sum.add = (int64_t)((uint64_t)left->add + (uint64_t)right->add);
	sum.vg = (int64_t)((uint64_t)left->vg + (uint64_t)right->vg);
	*left = sum;
	return true;
}

static bool negate(struct value *value)
{
	if (value->base != VALUE_CONSTANT)
		return false;
	value->add = (int64_t)(0 - (uint64_t)value->add);
	value->vg = (int64_t)(0 - (uint64_t)value->vg);
	return true;
}

static bool multiply(struct value *left, const struct value *right)
{
	struct value product = is_constant(right) ? *left : *right;
	uint64_t factor = (uint64_t)(is_constant(right) ? right->add : left->add);
	if (!is_constant(left) && !is_constant(right))
		return false;
	if (is_plain_register(&product) && !product.add && !product.shift &&
	    (factor == 2 || factor == 4 || factor == 8)) {
		product.shift = factor == 2 ? 1 : factor == 4 ? 2 : 3;
		*left = product;
		return true;
	}
	if (product.base != VALUE_CONSTANT)
		return false;
	product.add = (int64_t)((uint64_t)product.add * factor);
	product.vg = (int64_t)((uint64_t)product.vg * factor);
	*left = product;
	return true;
}

static bool divide(int64_t a, int64_t b, int64_t *out)
{
	if (!b || (a == INT64_MIN && b == -1))
		return false;
	*out = a / b;
	return true;
}

static bool shift(uint8_t operation, int64_t a, uint64_t bits, int64_t *out)
{
	if (operation == DW_OP_shl)
		*out = bits < 64 ? (int64_t)((uint64_t)a << bits) : 0;
	else if (operation == DW_OP_shr)
		*out = bits < 64 ? (int64_t)((uint64_t)a >> bits) : 0;
	else
		*out = a >> (bits < 64 ? bits : 63);
	return true;
}

/* What needs both operands as plain numbers. */
static bool arithmetic(uint8_t operation, int64_t a, int64_t b, int64_t *out)
{
	switch (operation) {
	case DW_OP_and:
		*out = a & b;
		return true;
	case DW_OP_or:
		*out = a | b;
		return true;
	case DW_OP_xor:
		*out = a ^ b;
		return true;
	case DW_OP_eq:
		*out = a == b;
		return true;
	case DW_OP_ne:
		*out = a != b;
		return true;
	case DW_OP_ge:
		*out = a >= b;
		return true;
	case DW_OP_gt:
		*out = a > b;
		return true;
	case DW_OP_le:
		*out = a <= b;
		return true;
	case DW_OP_lt:
		*out = a < b;
		return true;
	case DW_OP_div:
		return divide(a, b, out);
	case DW_OP_mod:
		if (!b)
			return false;
		*out = (int64_t)((uint64_t)a % (uint64_t)b);
		return true;
	case DW_OP_shl:
	case DW_OP_shr:
	case DW_OP_shra:
		return shift(operation, a, (uint64_t)b, out);
	default:
		return false;
	}
}

static bool binary(struct stack *stack, uint8_t operation)
{
	struct value *right = top(stack, 0), *left = top(stack, 1);
	if (!right || !left)
		return false;
	stack->depth--;
	switch (operation) {
	case DW_OP_plus:
		return add(left, right);
	case DW_OP_minus:
		return negate(right) && add(left, right);
	case DW_OP_mul:
		return multiply(left, right);
	case DW_OP_shl:
		if (!is_constant(right) || (uint64_t)right->add > 62)
			break;
		right->add = (int64_t)(UINT64_C(1) << right->add);
		return multiply(left, right);
	default:
		break;
	}
	return is_constant(left) && is_constant(right) &&
	       arithmetic(operation, left->add, right->add, &left->add);
}

static bool unary(struct stack *stack, uint8_t operation)
{
	struct value *value = top(stack, 0);
	if (!value)
		return false;
	if (operation == DW_OP_plus_uconst) {
		value->add = (int64_t)((uint64_t)value->add + cursor_uleb(&stack->cursor));
		return true;
	}
	if (operation == DW_OP_neg)
		return negate(value);
	if (!is_constant(value))
		return false;
	if (operation == DW_OP_not)
		value->add = ~value->add;
	else if (value->add < 0) /* DW_OP_abs */
		return negate(value);
	return true;
}

static bool shuffle(struct stack *stack, uint8_t operation)
{
	struct value *first = top(stack, 0), *second = top(stack, 1), *third = top(stack, 2), held;
	struct value *picked;
	switch (operation) {
	case DW_OP_dup:
		return first && push(stack, *first);
	case DW_OP_over:
		return second && push(stack, *second);
	case DW_OP_pick:
		picked = top(stack, cursor_u8(&stack->cursor));
		return picked && push(stack, *picked);
	case DW_OP_drop:
		return first && stack->depth--;
	case DW_OP_swap:
		if (!second)
			return false;
		held = *first;
		*first = *second;
		*second = held;
		return true;
	default: /* DW_OP_rot */
		if (!third)
			return false;
		held = *first;
		*first = *second;
		*second = *third;
		*third = held;
		return true;
	}
}

static bool jump(struct stack *stack, uint8_t operation)
{
	int16_t distance = (int16_t)cursor_u16(&stack->cursor);
	const struct value *condition = top(stack, 0);
	if (operation == DW_OP_bra) {
		if (!condition || !is_constant(condition))
			return false;
		stack->depth--;
		if (!condition->add)
			return true;
	}
	if (distance < stack->first - stack->cursor.at ||
	    distance > stack->cursor.end - stack->cursor.at)
		return false;
	stack->cursor.at += distance;
	return true;
}

static bool constant(struct stack *stack, uint8_t operation)
{
	struct cursor *cursor = &stack->cursor;
	switch (operation) {
	case DW_OP_const1u:
		return push_constant(stack, cursor_u8(cursor));
	case DW_OP_const1s:
		return push_constant(stack, (uint64_t)(int8_t)cursor_u8(cursor));
	case DW_OP_const2u:
		return push_constant(stack, cursor_u16(cursor));
	case DW_OP_const2s:
		return push_constant(stack, (uint64_t)(int16_t)cursor_u16(cursor));
	case DW_OP_const4u:
		return push_constant(stack, cursor_u32(cursor));
	case DW_OP_const4s:
		return push_constant(stack, (uint64_t)(int32_t)cursor_u32(cursor));
	case DW_OP_constu:
		return push_constant(stack, cursor_uleb(cursor));
	case DW_OP_consts:
		return push_constant(stack, (uint64_t)cursor_sleb(cursor));
	default:
		return push_constant(stack, cursor_u64(cursor)); /* addr, const8u, const8s */
	}
}

static bool operate(struct stack *stack, uint8_t operation)
{
	struct cursor *cursor = &stack->cursor;
	uint64_t reg;
	if (operation >= DW_OP_lit0 && operation <= DW_OP_lit31)
		return push_constant(stack, operation - DW_OP_lit0);
	if (operation >= DW_OP_breg0 && operation <= DW_OP_breg31)
		return push_register(stack, operation - DW_OP_breg0, cursor_sleb(cursor));
	switch (operation) {
	case DW_OP_bregx:
		reg = cursor_uleb(cursor);
		return push_register(stack, reg, cursor_sleb(cursor));
	case DW_OP_addr:
	case DW_OP_const1u ... DW_OP_consts:
		return constant(stack, operation);
	case DW_OP_dup ... DW_OP_swap:
	case DW_OP_rot:
		return shuffle(stack, operation);
	case DW_OP_deref:
		return dereference(stack);
	case DW_OP_deref_size:
		return cursor_u8(cursor) == 8 && dereference(stack);
	case DW_OP_abs:
	case DW_OP_neg:
	case DW_OP_not:
	case DW_OP_plus_uconst:
		return unary(stack, operation);
	case DW_OP_skip:
	case DW_OP_bra:
		return jump(stack, operation);
	case DW_OP_call_frame_cfa:
		return push(stack, (struct value){.base = VALUE_CFA});
	case DW_OP_nop:
		return true;
	default:
		return binary(stack, operation);
	}
}

bool expression_evaluate(struct evaluation *evaluation, struct cursor block, bool cfa_on_stack,
			 struct value *out)
{
	struct stack stack;
	stack.evaluation = evaluation;
	stack.cursor = block;
	stack.first = block.at;
	stack.depth = 0;
	if (cfa_on_stack)
		push(&stack, (struct value){.base = VALUE_CFA});
	for (unsigned count = 0; cursor_left(&stack.cursor); count++) {
		if (count == OPERATIONS_MAX || !*evaluation->budget)
			return false;
		--*evaluation->budget;
		if (!operate(&stack, cursor_u8(&stack.cursor)) || stack.cursor.bad)
			return false;
	}
	if (!stack.depth)
		return false;
	*out = stack.values[stack.depth - 1];
	return !out->shift;
}
