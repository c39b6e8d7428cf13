/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "isa/operands.h"

#include "isa/insn.h"

#define X(n) ((uint64_t)1 << (n))
#define V(n) ((uint64_t)1 << (OPERANDS_VECTOR + (n)))

static struct operands arm(const char *text)
{
	struct operands o;
	operands_read(&isa_aarch64, NULL, 0, text, &o);
	return o;
}

static struct operands x86(const char *bytes, size_t size)
{
	struct operands o;
	operands_read(&isa_x86_64, (const uint8_t *)bytes, size, "", &o);
	return o;
}
#define X86(bytes) x86(bytes, sizeof bytes - 1)

static void arithmetic_writes_the_first(void **state)
{
	(void)state;
	struct operands o = arm("eor x4, x2, x3, lsr #3");
	assert_int_equal(o.writes, X(4));
	assert_int_equal(o.reads, X(2) | X(3));
	assert_false(o.load || o.store || o.writes_flags);
	o = arm("subs x1, x1, #0x1");
	assert_true(o.writes_flags && o.adds);
	assert_int_equal(o.added, -1);
	o = arm("cmp x1, x2");
	assert_int_equal(o.writes, 0);
	assert_int_equal(o.reads, X(1) | X(2));
	o = arm("b.ne 0x400000");
	assert_true(o.reads_flags);
	assert_int_equal(o.reads | o.writes, 0);
	o = arm("fmla v0.4s, v1.4s, v2.4s");
	assert_int_equal(o.reads, V(0) | V(1) | V(2));
	assert_int_equal(o.writes, V(0));
	o = arm("movk x2, #0xcbbf, lsl #16");
	assert_int_equal(o.reads, X(2));
	o = arm("mov x0, xzr");
	assert_int_equal(o.reads, 0);
}

static void loads_and_stores(void **state)
{
	(void)state;
	struct operands o = arm("ldr x3, [x3, #0x10]");
	assert_true(o.load && !o.store && o.plain_offset && !o.stack);
	assert_int_equal(o.writes, X(3));
	assert_int_equal(o.address, X(3));
	assert_int_equal(o.offset, 16);
	assert_int_equal(o.size, 8);
	o = arm("ldrb w1, [x2], #1");
	assert_true(o.base_moves);
	assert_int_equal(o.step, 1);
	assert_int_equal(o.size, 1);
	assert_int_equal(o.writes, X(1) | X(2));
	o = arm("ldr x0, [x1, x2, lsl #3]");
	assert_int_equal(o.address, X(1) | X(2));
	assert_false(o.plain_offset);
	o = arm("stp x29, x30, [sp, #-0x20]!");
	assert_true(o.store && !o.load && o.stack);
	assert_int_equal(o.reads, X(29) | X(30));
	assert_int_equal(o.size, 16);
	assert_int_equal(o.writes, X(31));
	o = arm("str w4, [x0, #4]");
	assert_int_equal(o.size, 4);
	assert_int_equal(o.writes, 0);
	o = arm("ldp q0, q1, [x0]");
	assert_int_equal(o.writes, V(0) | V(1));
	assert_int_equal(o.size, 32);
}

static void what_waits_long(void **state)
{
	(void)state;
	assert_int_equal(arm("udiv x0, x1, x2").class, OPERANDS_DIVIDE);
	assert_int_equal(arm("fsqrt d0, d1").class, OPERANDS_DIVIDE);
	assert_int_equal(arm("dmb ish").class, OPERANDS_FENCE);
	struct operands o = arm("ldaddal x1, x0, [x2]");
	assert_int_equal(o.class, OPERANDS_ATOMIC);
	assert_true(o.load && o.store);
	assert_int_equal(o.reads, X(1));
	assert_int_equal(o.writes, X(0));
	assert_int_equal(o.address, X(2));
	o = arm("stxr w3, x2, [x0]");
	assert_int_equal(o.writes, X(3));
	assert_int_equal(o.reads, X(2));
}

static void of_x86_64(void **state)
{
	(void)state;
	struct operands o = X86("\x48\x8b\x3f"); /* mov (%rdi), %rdi */
	assert_true(o.load && !o.store && o.plain_offset);
	assert_int_equal(o.address, X(5));
	assert_int_equal(o.writes, X(5));
	assert_int_equal(o.size, 8);
	o = X86("\x48\x89\x44\x24\x08"); /* mov %rax, 8(%rsp) */
	assert_true(o.store && !o.load && o.stack);
	assert_int_equal(o.offset, 8);
	o = X86("\xf0\x48\x0f\xc1\x07"); /* lock xadd %rax, (%rdi) */
	assert_int_equal(o.class, OPERANDS_ATOMIC);
	o = X86("\x48\xf7\xf1"); /* div %rcx */
	assert_int_equal(o.class, OPERANDS_DIVIDE);
	assert_int_equal(o.reads, X(0) | X(1) | X(2));
	assert_int_equal(o.writes, X(0) | X(1));
	o = X86("\x31\xc0"); /* xor %eax, %eax */
	assert_int_equal(o.reads, 0);
	assert_int_equal(o.writes, X(0));
	o = X86("\x48\x83\xc0\x08"); /* add $8, %rax */
	assert_true(o.adds && o.writes_flags);
	assert_int_equal(o.added, 8);
	o = X86("\x8b\x05\x10\x00\x00\x00"); /* mov 0x10(%rip), %eax */
	assert_true(o.load && o.fixed);
}

static void of_nothing(void **state)
{
	(void)state;
	struct operands o = arm("");
	assert_int_equal(o.reads | o.writes | o.address, 0);
	o = arm(".inst 0x00000000");
	assert_false(o.load || o.store);
	o = x86("", 0);
	assert_int_equal(o.reads | o.writes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arithmetic_writes_the_first),
		cmocka_unit_test(loads_and_stores),
		cmocka_unit_test(what_waits_long),
		cmocka_unit_test(of_x86_64),
		cmocka_unit_test(of_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
