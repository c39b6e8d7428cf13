/* SPDX-License-Identifier: Apache-2.0 */
/* Both interpreters run on both CPUs: memory is what the test says it is. */
#include "unit.h"

#include <string.h>

#include "trail/trail.h"

#define CODE 0x10000u
#define DATA 0x20000u
#define STACK 0x30000u

struct memory {
	uint8_t code[256];
	size_t code_size;
	uint64_t data[32], stack[32];
	unsigned reads;
};

static size_t read_from(uint64_t start, const void *bytes, size_t have, uint64_t address, void *out,
			size_t size)
{
	uint64_t at = address - start;
	if (address < start || at >= have)
		return 0;
	size = size < have - at ? size : have - at;
	memcpy(out, (const char *)bytes + at, size);
	return size;
}

static size_t read_code(void *context, uint64_t address, void *out, size_t size)
{
	struct memory *m = context;
	return read_from(CODE, m->code, m->code_size, address, out, size);
}

static size_t read_data(void *context, uint64_t address, void *out, size_t size)
{
	struct memory *m = context;
	size_t got = read_from(DATA, m->data, sizeof m->data, address, out, size);
	m->reads++;
	return got ? got : read_from(STACK, m->stack, sizeof m->stack, address, out, size);
}

static struct trail begin(struct memory *m)
{
	struct trail t = {.pc = CODE, .read_code = read_code, .read_data = read_data, .context = m};
	return t;
}

/* ---- aarch64 ---- */

static struct memory aarch64(const uint32_t *words, size_t count)
{
	struct memory m = {.code_size = count * 4};
	memcpy(m.code, words, count * 4);
	return m;
}
#define AARCH64(...) \
	aarch64((const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

static void a_loop_counts_down(void **state)
{
	/* again: subs x0, x0, #1; b.ne again; svc #0 */
	struct memory m = AARCH64(0xf1000400, 0x54ffffe1, 0xd4000001);
	struct trail t = begin(&m);
	(void)state;
	t.registers[0] = 3;
	trail_follow_aarch64(&t, TRAIL_STEPS);
	assert_int_equal(t.end, TRAIL_SYSTEM);
	assert_int_equal(t.edge_count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(t.edges[i].from, CODE + 4);
		assert_int_equal(t.edges[i].to, i < 2 ? CODE : CODE + 8);
	}
	assert_int_equal(t.registers[0], 0);
	/* An endless one ends, too. */
	t = begin(&m);
	t.registers[0] = 1u << 30;
	trail_follow_aarch64(&t, TRAIL_STEPS);
	assert_int_equal(t.end, TRAIL_LONG);
	assert_in_range(t.edge_count, 1, TRAIL_EDGES);
}

static void stores_are_private(void **state)
{
	/* str x1, [x0]; strb w2, [x0, #3]; ldr x3, [x0]; ldr w4, [x0, #2]; svc #0 */
	struct memory m = AARCH64(0xf9000001, 0x39000c02, 0xf9400003, 0xb8402004, 0xd4000001);
	struct trail t = begin(&m);
	(void)state;
	m.data[0] = 42;
	t.registers[0] = DATA;
	t.registers[1] = 0x1122334455667788;
	t.registers[2] = 0xff;
	trail_follow_aarch64(&t, TRAIL_STEPS);
	assert_int_equal(t.steps, 4);
	assert_true(t.registers[3] == 0x11223344ff667788);
	assert_int_equal(t.registers[4], 0x3344ff66);
	assert_int_equal(m.data[0], 42);
	assert_int_equal(m.reads, 0);
}

static void what_is_not_known_ends_it(void **state)
{
	/* fmov x0, d0; add x1, x0, #1; cbz x1, .; */
	struct memory m = AARCH64(0x9e660000, 0x91000401, 0xb4000001);
	struct trail t = begin(&m);
	(void)state;
	trail_follow_aarch64(&t, TRAIL_STEPS);
	assert_int_equal(t.end, TRAIL_UNKNOWN);
	assert_int_equal(t.edge_count, 0);
	assert_int_equal(t.steps, 2);
	/* fmov x0, d0; str x1, [x0]: it may store anywhere */
	m = AARCH64(0x9e660000, 0xf9000001);
	t = begin(&m);
	trail_follow_aarch64(&t, TRAIL_STEPS);
	assert_int_equal(t.end, TRAIL_MEMORY);
	/* str q0, [x0]; ldr x1, [x0]; ldr x2, [x0, #16]; cbz x2, .+8; cbz x1, . */
	m = AARCH64(0x3d800000, 0xf9400001, 0xf9400802, 0xb4000042, 0xb4000001, 0xb4000001);
	t = begin(&m);
	t.registers[0] = DATA;
	trail_follow_aarch64(&t, TRAIL_STEPS);
	assert_int_equal(t.end, TRAIL_UNKNOWN);
	assert_int_equal(t.edge_count, 1);
	assert_int_equal(t.edges[0].to, CODE + 20);
}

static void memory_that_is_not_there_ends_it(void **state)
{
	/* ldr x1, [x0]; cbz x1, . */
	struct memory m = AARCH64(0xf9400001, 0xb4000001);
	struct trail t = begin(&m);
	(void)state;
	t.registers[0] = 8;
	trail_follow_aarch64(&t, TRAIL_STEPS);
	assert_int_equal(t.end, TRAIL_MEMORY);
	/* The last word of the data, and half of one beyond it. */
	t = begin(&m);
	t.registers[0] = DATA + sizeof m.data - 4;
	trail_follow_aarch64(&t, TRAIL_STEPS);
	assert_int_equal(t.end, TRAIL_MEMORY);
	/* nop; then the code ends */
	m = AARCH64(0xd503201f);
	t = begin(&m);
	trail_follow_aarch64(&t, TRAIL_STEPS);
	assert_int_equal(t.end, TRAIL_NO_CODE);
	assert_int_equal(t.steps, 1);
	t.pc = CODE + 2;
	trail_follow_aarch64(&t, TRAIL_STEPS);
	assert_int_equal(t.end, TRAIL_NO_CODE);
}

static void calls_and_returns(void **state)
{
	/* bl 1f; cbz x0, .+8; nop; svc #0; 1: mov x0, #0; ret */
	struct memory m = AARCH64(0x94000004, 0xb4000040, 0xd503201f, 0xd4000001, 0xd2800000,
				  0xd65f03c0);
	struct trail t = begin(&m);
	(void)state;
	t.registers[0] = 5;
	trail_follow_aarch64(&t, TRAIL_STEPS);
	assert_int_equal(t.end, TRAIL_SYSTEM);
	assert_int_equal(t.edge_count, 1);
	assert_int_equal(t.edges[0].to, CODE + 12);
	/* A jump by a register is an edge: br x5 */
	m = AARCH64(0xd61f00a0, 0xd503201f, 0xd4000001);
	t = begin(&m);
	t.registers[5] = CODE + 8;
	trail_follow_aarch64(&t, TRAIL_STEPS);
	assert_int_equal(t.edge_count, 1);
	assert_int_equal(t.edges[0].to, CODE + 8);
}

static void too_many_stores_end_it(void **state)
{
	/* again: str x1, [x0], #8; b again */
	struct memory m = AARCH64(0xf8008401, 0x17ffffff);
	struct trail t = begin(&m);
	(void)state;
	t.registers[0] = DATA;
	trail_follow_aarch64(&t, TRAIL_STEPS);
	assert_int_equal(t.end, TRAIL_FULL);
	assert_int_equal(t.store_count, TRAIL_STORES);
}

/* ---- x86-64 ---- */

static struct memory x86_64(const char *bytes, size_t size)
{
	struct memory m = {.code_size = size};
	memcpy(m.code, bytes, size);
	return m;
}
#define X86_64(text) x86_64(text, sizeof text - 1)

static void a_loop_counts_down_x86_64(void **state)
{
	/* again: sub rax, 1; jne again; syscall */
	struct memory m = X86_64("\x48\x83\xe8\x01\x75\xfa\x0f\x05");
	struct trail t = begin(&m);
	(void)state;
	t.registers[0] = 3;
	trail_follow_x86_64(&t, TRAIL_STEPS);
	assert_int_equal(t.end, TRAIL_SYSTEM);
	assert_int_equal(t.edge_count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(t.edges[i].from, CODE + 4);
		assert_int_equal(t.edges[i].to, i < 2 ? CODE : CODE + 6);
	}
}

static void stores_are_private_x86_64(void **state)
{
	/* mov [rdi], rax; mov [rdi+3], dl; mov rcx, [rdi]; mov esi, [rdi+2]; syscall */
	struct memory m = X86_64("\x48\x89\x07\x88\x57\x03\x48\x8b\x0f\x8b\x77\x02\x0f\x05");
	struct trail t = begin(&m);
	(void)state;
	m.data[0] = 42;
	t.registers[5] = DATA;
	t.registers[0] = 0x1122334455667788;
	t.registers[1] = 0xff;
	trail_follow_x86_64(&t, TRAIL_STEPS);
	assert_int_equal(t.steps, 4);
	assert_true(t.registers[2] == 0x11223344ff667788);
	assert_int_equal(t.registers[4], 0x3344ff66);
	assert_int_equal(m.data[0], 42);
	assert_int_equal(m.reads, 0);
}

static void what_is_not_known_ends_it_x86_64(void **state)
{
	/* movq rax, xmm0; add rax, 1; je . */
	struct memory m = X86_64("\x66\x48\x0f\x7e\xc0\x48\x83\xc0\x01\x74\xfe");
	struct trail t = begin(&m);
	(void)state;
	trail_follow_x86_64(&t, TRAIL_STEPS);
	assert_int_equal(t.end, TRAIL_UNKNOWN);
	assert_int_equal(t.steps, 2);
	/* movq rax, xmm0; xor eax, eax; je .+2: zero is known */
	m = X86_64("\x66\x48\x0f\x7e\xc0\x31\xc0\x74\x00\x0f\x05");
	t = begin(&m);
	trail_follow_x86_64(&t, TRAIL_STEPS);
	assert_int_equal(t.end, TRAIL_SYSTEM);
	assert_int_equal(t.edge_count, 1);
	/* movups [rdi], xmm0; mov rax, [rdi]; test rax, rax; je . */
	m = X86_64("\x0f\x11\x07\x48\x8b\x07\x48\x85\xc0\x74\xfe");
	t = begin(&m);
	t.registers[5] = DATA;
	trail_follow_x86_64(&t, TRAIL_STEPS);
	assert_int_equal(t.end, TRAIL_UNKNOWN);
	assert_int_equal(t.steps, 3);
}

static void code_that_ends_x86_64(void **state)
{
	/* The last instruction is cut: jne near */
	struct memory m = X86_64("\x90\x0f\x85\x10\x00");
	struct trail t = begin(&m);
	(void)state;
	trail_follow_x86_64(&t, TRAIL_STEPS);
	assert_int_equal(t.end, TRAIL_NO_CODE);
	assert_int_equal(t.edge_count, 0);
	assert_int_equal(t.steps, 1);
	/* Prefixes without end */
	m = X86_64("\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66");
	t = begin(&m);
	trail_follow_x86_64(&t, TRAIL_STEPS);
	assert_true(t.end != TRAIL_LONG);
}

static void calls_and_returns_x86_64(void **state)
{
	/* call 1f; test eax, eax; je 2f; nop; 2: syscall; 1: xor eax, eax; ret */
	struct memory m = X86_64("\xe8\x07\x00\x00\x00\x85\xc0\x74\x01\x90\x0f\x05\x31\xc0\xc3");
	struct trail t = begin(&m);
	(void)state;
	t.registers[7] = STACK + 64;
	t.registers[0] = 5;
	trail_follow_x86_64(&t, TRAIL_STEPS);
	assert_int_equal(t.end, TRAIL_SYSTEM);
	assert_int_equal(t.edge_count, 1);
	assert_int_equal(t.edges[0].from, CODE + 7);
	assert_int_equal(t.edges[0].to, CODE + 10);
	assert_int_equal(t.registers[7], STACK + 64);
	assert_int_equal(m.stack[7], 0);
}

/* Any bytes are followed without harm: reads stay in what is there, and it ends. */
static void any_code(void **state)
{
	uint64_t seed = 12345;
	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct memory m = {.code_size = sizeof m.code};
		for (size_t i = 0; i < sizeof m.code; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			m.code[i] = (uint8_t)(seed >> 40);
		}
		struct trail t = begin(&m);
		for (int i = 0; i < 32; i++)
			t.registers[i] = i % 2 ? DATA + 8u * (unsigned)i : seed >> i;
		trail_follow_x86_64(&t, TRAIL_STEPS);
		assert_true(t.end != TRAIL_ON && t.edge_count <= TRAIL_EDGES);
		t = begin(&m);
		for (int i = 0; i < 32; i++)
			t.registers[i] = i % 2 ? DATA + 8u * (unsigned)i : seed >> i;
		trail_follow_aarch64(&t, TRAIL_STEPS);
		assert_true(t.end != TRAIL_ON && t.edge_count <= TRAIL_EDGES);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loop_counts_down),
		cmocka_unit_test(stores_are_private),
		cmocka_unit_test(what_is_not_known_ends_it),
		cmocka_unit_test(memory_that_is_not_there_ends_it),
		cmocka_unit_test(calls_and_returns),
		cmocka_unit_test(too_many_stores_end_it),
		cmocka_unit_test(a_loop_counts_down_x86_64),
		cmocka_unit_test(stores_are_private_x86_64),
		cmocka_unit_test(what_is_not_known_ends_it_x86_64),
		cmocka_unit_test(code_that_ends_x86_64),
		cmocka_unit_test(calls_and_returns_x86_64),
		cmocka_unit_test(any_code),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
