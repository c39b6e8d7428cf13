/* SPDX-License-Identifier: Apache-2.0 */
/* Which procedures come back to their caller. */
#include "flow/returns.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "flow/trace.h"
#include "isa/insn.h"
#include "unit.h"

#define START 0x1000u

struct code {
	const void *bytes;
	size_t size;
};

static const uint8_t *bytes_at(const void *context, uint64_t address, size_t *size)
{
	const struct code *code = context;
	*size = 0;
	if (address < START || address - START >= code->size)
		return NULL;
	*size = code->size - (address - START);
	return (const uint8_t *)code->bytes + (address - START);
}

/* Asks about the procedure at `entry`. `known` may be NULL. */
static bool ask(const struct isa *isa, const void *bytes, size_t size, uint64_t entry,
		const struct returns *known)
{
	struct code code = {bytes, size};
	struct returns r = known ? *known : (struct returns){0};
	bool first, again;
	r.isa = isa;
	r.bytes = bytes_at;
	r.context = &code;
	assert_true(returns_init(&r));
	first = procedure_returns(&r, entry);
	again = procedure_returns(&r, entry); /* from memory */
	assert_int_equal(first, again);
	returns_free(&r);
	return first;
}

static bool ask_aarch64(const uint32_t *code, size_t count)
{
	return ask(&isa_aarch64, code, count * sizeof *code, START, NULL);
}

static bool ask_x86(const char *code, size_t size)
{
	return ask(&isa_x86_64, code, size, START, NULL);
}

#define AARCH64(...)                                 \
	ask_aarch64((const uint32_t[]){__VA_ARGS__}, \
		    sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
#define X86(code) ask_x86(code, sizeof code - 1)

#define RET 0xd65f03c0
#define BRK 0xd4200000
#define ADD 0x91000400 /* add x0, x0, #1 */
#define BL(words) (0x94000000 | ((words)&0x3ffffff))
#define B(words) (0x14000000 | ((words)&0x3ffffff))
#define CBZ(words) (0xb4000000 | ((words)&0x7ffff) << 5)

static void a_return(void **state)
{
	(void)state;
	assert_true(AARCH64(ADD, RET));
	assert_true(X86("\x90\xc3"));
}

static void a_trap(void **state)
{
	(void)state;
	assert_false(AARCH64(ADD, BRK, RET));
	assert_false(X86("\x90\x0f\x0b\xc3")); /* nop; ud2; ret */
}

static void an_endless_loop(void **state)
{
	(void)state;
	assert_false(AARCH64(ADD, B(-1), RET));
	assert_false(X86("\x90\xeb\xfd\xc3")); /* nop; jmp . - 1; ret */
}

static void a_return_on_one_of_the_ways(void **state)
{
	(void)state;
	assert_true(AARCH64(CBZ(2), BRK, RET));
	assert_true(AARCH64(CBZ(2), RET, BRK));
	assert_false(AARCH64(CBZ(2), BRK, B(-1), RET));
	assert_true(X86("\x74\x02\x0f\x0b\xc3")); /* je . + 4; ud2; ret */
	assert_false(X86("\x74\x02\x0f\x0b\xeb\xfc\xc3"));
}

/* Who knows where these go. */
static void a_jump_through_a_register(void **state)
{
	(void)state;
	assert_true(AARCH64(0xd61f0000)); /* br x0 */
	assert_true(X86("\xff\xe0"));     /* jmp *%rax */
}

/* The kernel comes back to what follows it, or not at all: so a thread ends, in a loop. */
static void a_system_call(void **state)
{
	(void)state;
	assert_true(AARCH64(0xd4000001, RET)); /* svc #0 */
	assert_false(AARCH64(0xd4000001, BRK));
	assert_false(AARCH64(0xd4000001, 0x17ffffff)); /* b . - 4 */
	assert_true(X86("\x0f\x05\xc3"));              /* syscall; ret */
	assert_false(X86("\x0f\x05\x0f\x0b"));         /* syscall; ud2 */
	assert_false(X86("\x0f\x05\xeb\xfc"));         /* syscall; jmp . - 2 */
}

static void a_call_of_what_never_returns(void **state)
{
	(void)state;
	assert_false(AARCH64(BL(2), RET, BRK));
	assert_true(AARCH64(BL(2), RET, RET));
	assert_false(X86("\xe8\x01\x00\x00\x00\xc3\x0f\x0b")); /* call . + 6; ret; ud2 */
	assert_true(X86("\xe8\x01\x00\x00\x00\xc3\xc3"));
}

static void a_jump_to_what_never_returns(void **state)
{
	(void)state;
	assert_false(AARCH64(B(2), RET, BRK));
	assert_true(AARCH64(B(2), BRK, RET));
}

/* Behind a last call that never returns, another procedure begins. */
static void a_call_before_a_prologue(void **state)
{
	(void)state;
	assert_false(AARCH64(BL(100), 0xa9be7bfd, RET)); /* stp x29, x30, [sp, #-32]! */
	/* call far; nops up to 0x1010; push %rbp; ... */
	assert_true(X86("\xe8\x00\x10\x00\x00\x55\xc3"));
	assert_false(X86("\xeb\x09\x90\x90\x90\x90\x90\x90\x90\x90\x90\xe8\x00\x10\x00\x00"
			 "\x55\x48\x89\xe5\xc3"));
}

static void known_by_name(void **state)
{
	static const uint32_t code[] = {RET, B(-1), BL(-2), RET};
	static const uint64_t names[] = {0x10, START, 0x5000};
	const struct returns known = {.noreturn = names, .noreturn_count = 3};
	(void)state;
	assert_true(ask(&isa_aarch64, code, sizeof code, START, NULL));
	assert_false(ask(&isa_aarch64, code, sizeof code, START, &known));
	assert_false(ask(&isa_aarch64, code, sizeof code, START + 4, &known));
	assert_false(ask(&isa_aarch64, code, sizeof code, START + 8, &known));
	assert_true(ask(&isa_aarch64, code, sizeof code, START + 12, &known));
	assert_true(procedure_is_noreturn(&known, START));
	assert_true(procedure_is_noreturn(&known, 0x5000));
	assert_true(procedure_is_noreturn(&known, TRACE_NO_RETURN));
	assert_false(procedure_is_noreturn(&known, START + 4)); /* that takes a look */
}

/* call *0x2000; ret. What the word holds decides. */
static void known_by_a_word_of_memory(void **state)
{
	static const uint8_t code[] = {0xff, 0x15, 0xfa, 0x0f, 0, 0, 0xc3, 0x0f, 0x0b};
	struct trace_slot slots[] = {{0x1ff8, START}, {0x2000, TRACE_NO_RETURN}, {0x2008, START}};
	struct returns known = {.isa = &isa_x86_64, .slots = slots, .slot_count = 3};
	struct insn call;
	(void)state;
	isa_x86_64.decode(code, sizeof code, START, &call);
	assert_int_equal(call.kind, INSN_CALL_INDIRECT);
	assert_int_equal(call_target(&known, &call), TRACE_NO_RETURN);
	assert_false(ask(&isa_x86_64, code, sizeof code, START, &known));
	slots[1].procedure = START + 7; /* ud2 */
	assert_int_equal(call_target(&known, &call), START + 7);
	assert_false(ask(&isa_x86_64, code, sizeof code, START, &known));
	slots[1].procedure = START + 6; /* ret */
	assert_true(ask(&isa_x86_64, code, sizeof code, START, &known));
	known.slot_count = 1;
	assert_int_equal(call_target(&known, &call), 0);
	assert_true(ask(&isa_x86_64, code, sizeof code, START, &known));
}

static void target_of_a_direct_call(void **state)
{
	static const uint32_t code[] = {BL(4)};
	const struct returns nothing = {.isa = &isa_aarch64};
	struct insn call;
	(void)state;
	isa_aarch64.decode((const uint8_t *)code, 4, START, &call);
	assert_int_equal(call_target(&nothing, &call), START + 16);
}

/* A procedure that calls itself first of all, and two that call each other. */
static void recursion(void **state)
{
	(void)state;
	assert_true(AARCH64(BL(0), RET));
	assert_true(AARCH64(BL(2), RET, BL(-2), RET));
	assert_false(AARCH64(CBZ(2), BL(-1), BRK));
}

/* Seen through a few calls that never return, not through many. */
static void depth(void **state)
{
	/* each: bl next; ret */
	uint32_t code[41];

	(void)state;
	for (unsigned i = 0; i < 40; i += 2) {
		code[i] = BL(2);
		code[i + 1] = RET;
	}
	code[40] = BRK;
	assert_false(ask(&isa_aarch64, code, sizeof code, START + 4 * 38, NULL));
	assert_false(ask(&isa_aarch64, code, sizeof code, START + 4 * 36, NULL));
	assert_false(ask(&isa_aarch64, code, sizeof code, START + 4 * 34, NULL));
	assert_true(ask(&isa_aarch64, code, sizeof code, START, NULL));
}

/* Too long to look to its end: it is thought to return. */
static void huge_procedure(void **state)
{
	enum { SIZE = 100000 };
	uint32_t *code = malloc(SIZE * sizeof *code);
	(void)state;
	assert_non_null(code);
	for (size_t i = 0; i < SIZE - 1; i++)
		code[i] = ADD;
	code[SIZE - 1] = BRK;
	assert_true(ask(&isa_aarch64, code, SIZE * sizeof *code, START, NULL));
	assert_false(ask(&isa_aarch64, code, SIZE * sizeof *code, START + 4 * (SIZE - 100), NULL));
	for (size_t i = 0; i < SIZE - 1; i++) /* more branches than are followed */
		code[i] = CBZ(50);
	assert_true(ask(&isa_aarch64, code, SIZE * sizeof *code, START, NULL));
	free(code);
}

static unsigned long decoded;

static void decode_and_count(const uint8_t *code, size_t size, uint64_t address, struct insn *out)
{
	decoded++;
	isa_aarch64.decode(code, size, address, out);
}

/* Every instruction a call of another procedure that is like this: no answer may take long. */
static void calls_without_end(void **state)
{
	enum { SIZE = 200000, STEP = 251 };
	uint32_t *code = malloc(SIZE * sizeof *code);
	struct isa counting = isa_aarch64;
	(void)state;
	assert_non_null(code);
	counting.decode = decode_and_count;
	for (size_t i = 0; i < SIZE; i++)
		code[i] = BL((STEP * (i % 600 + 1)) % (SIZE - i));
	for (size_t i = 0; i < 50; i++) {
		decoded = 0;
		assert_true(ask(&counting, code, SIZE * sizeof *code, START + 4 * i, NULL));
		assert_in_range(decoded, 1000, 50000); /* twice 20000, and a little */
	}
	free(code);
}

/* Code that is not there, that ends too early, that is none. */
static void no_code(void **state)
{
	static const uint32_t code[] = {ADD, ADD};
	(void)state;
	assert_true(ask(&isa_aarch64, code, sizeof code, 0x9000, NULL));
	assert_true(ask(&isa_aarch64, code, sizeof code, START, NULL));
	assert_false(AARCH64(0, RET));
	assert_false(X86("\x06\xc3"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_return),
		cmocka_unit_test(a_trap),
		cmocka_unit_test(an_endless_loop),
		cmocka_unit_test(a_return_on_one_of_the_ways),
		cmocka_unit_test(a_jump_through_a_register),
		cmocka_unit_test(a_system_call),
		cmocka_unit_test(a_call_of_what_never_returns),
		cmocka_unit_test(a_jump_to_what_never_returns),
		cmocka_unit_test(a_call_before_a_prologue),
		cmocka_unit_test(known_by_name),
		cmocka_unit_test(known_by_a_word_of_memory),
		cmocka_unit_test(target_of_a_direct_call),
		cmocka_unit_test(recursion),
		cmocka_unit_test(depth),
		cmocka_unit_test(huge_procedure),
		cmocka_unit_test(calls_without_end),
		cmocka_unit_test(no_code),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
