/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps over recorded memory with hand-made tables, for both CPUs on either.
 * It stands on unwind/ alone, so that it also runs for the other CPU.
 */
#include "unit.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "unwind/cpu.h"
#include "unwind/step.h"
#include "unwind/table.h"
#include "unwind/walk.h"

/* The module: its own addresses begin at CODE, at run time at CODE + BIAS. Each rule holds for 16
   bytes: rule n at CODE + 16 n. */
#define CODE 0x1000u
#define BIAS UINT64_C(0x555500000000)
#define RULES 16
#define PC(n) (BIAS + CODE + 16u * (n))           /* inside the code of rule n */
#define RETURN(n) (BIAS + CODE + 16u * (n) + 16u) /* after a call that is its last instruction */

#define STACK UINT64_C(0x7ffc00010000)
#define WORDS 256

struct world {
	const struct unwind_cpu *cpu;
	struct {
		struct table_header header;
		uint32_t pages[2];
		uint32_t rows[RULES]; /* pages and rows: an even number of words */
		struct recipe rules[RULES];
	} file;
	struct walk_module module;
	struct walk_space space;
	uint64_t registers[CPU_REGISTERS];
	uint64_t stack[WORDS]; /* at STACK */
	struct walk walk;
};

static bool read_stack(void *context, uint64_t address, uint64_t *out)
{
	const struct world *w = context;
	if (address % 8 || address < STACK || address - STACK >= sizeof w->stack)
		return false;
	*out = w->stack[(address - STACK) / 8];
	return true;
}

/* A world whose registers have recognisable values, its SP at the stack's beginning. */
static void world_begin(struct world *w, const struct unwind_cpu *cpu)
{
	memset(w, 0, sizeof *w);
	w->cpu = cpu;
	w->file.header = (struct table_header){
		.magic = TABLE_MAGIC,
		.version = TABLE_VERSION,
		.machine = cpu->elf_machine,
		.start = CODE,
		.page_count = 1,
		.row_count = RULES,
		.rule_count = RULES,
	};
	w->file.pages[1] = RULES;
	for (uint32_t i = 0; i < RULES; i++)
		w->file.rows[i] = i * 16 << TABLE_RULE_BITS | i;
	assert_true(table_open(&w->module.table, &w->file, sizeof w->file));
	w->module.start = BIAS + CODE;
	w->module.end = BIAS + CODE + 16 * RULES;
	w->module.bias = BIAS;
	w->space = (struct walk_space){&w->module, 1};
	for (unsigned i = 0; i < CPU_REGISTERS; i++)
		w->registers[i] = 0xbad00000 + i;
	w->registers[cpu->sp] = STACK;
}

static void world_start(struct world *w, uint64_t pc)
{
	walk_begin(&w->walk, w->cpu, w->registers, pc);
}

static enum walk_end step(struct world *w)
{
	const struct walk_reader reader = {read_stack, w};
	return walk_step(&w->walk, &w->space, &reader);
}

static void expect_at(const struct world *w, uint64_t pc, uint64_t sp, uint64_t fp)
{
	assert_int_equal(w->walk.pc, pc);
	assert_int_equal(w->walk.sp, sp);
	assert_int_equal(w->walk.fp, fp);
}

/* ---- frames, in x86-64's shapes ---- */

#define RBX 3u
#define RBP 6u
#define RSP 7u

/* CFA = rsp + 8 n, return address below it: the frame of most code. */
static struct recipe x86_frame(int words)
{
	return (struct recipe){.cfa = RECIPE_REG,
			       .cfa_reg = RSP,
			       .cfa_offset = 8 * words,
			       .ra = RECIPE_AT_CFA,
			       .ra_offset = -8};
}

static void x86_three_frames(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = x86_frame(1); /* at a procedure's entry */
	w.file.rules[2] = x86_frame(4); /* rbp pushed, two words of locals */
	w.file.rules[2].fp = RECIPE_AT_CFA;
	w.file.rules[2].fp_offset = -16;
	w.file.rules[3].cfa = RECIPE_ROOT;
	w.stack[0] = RETURN(2);
	w.stack[3] = 0x1234; /* saved rbp */
	w.stack[4] = RETURN(3);
	world_start(&w, PC(1));
	assert_true(w.walk.exact);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(2), STACK + 8, w.registers[RBP]);
	assert_false(w.walk.exact);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(3), STACK + 40, 0x1234);
	assert_ptr_equal(w.walk.recipe, &w.file.rules[2]);
	assert_int_equal(step(&w), WALK_COMPLETE);
	expect_at(&w, RETURN(3), STACK + 40, 0x1234); /* it stays on the root */
}

static void x86_by_frame_pointer(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_REG,
					  .cfa_reg = RBP,
					  .cfa_offset = 16,
					  .ra = RECIPE_AT_CFA,
					  .ra_offset = -8,
					  .fp = RECIPE_AT_FP,
					  .fp_offset = 0};
	w.file.rules[2] = w.file.rules[1];
	w.registers[RBP] = STACK + 80;
	w.stack[10] = STACK + 160;
	w.stack[11] = RETURN(2);
	w.stack[20] = 77;
	w.stack[21] = RETURN(3);
	world_start(&w, PC(1) + 7);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(2), STACK + 96, STACK + 160);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(3), STACK + 176, 77);
}

/* The PLT's lazy resolver hangs its frame on rbx; a realigned one on a saved pointer. */
static void x86_extra_register_and_deref(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_REG,
					  .cfa_reg = RBX,
					  .cfa_offset = 24,
					  .ra = RECIPE_AT_CFA,
					  .ra_offset = -8,
					  .extra = RECIPE_AT_SP,
					  .extra_offset = 16};
	w.file.rules[2] = (struct recipe){.cfa = RECIPE_DEREF,
					  .cfa_reg = RBX,
					  .cfa_offset = -16,
					  .cfa_add = 8,
					  .ra = RECIPE_AT_CFA,
					  .ra_offset = -8};
	w.registers[RBX] = STACK + 64;
	w.stack[2] = STACK + 200; /* rbx of the caller */
	w.stack[10] = RETURN(2);
	w.stack[23] = STACK + 400; /* at STACK + 200 - 16 */
	w.stack[50] = RETURN(3);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(2), STACK + 88, w.registers[RBP]);
	assert_int_equal(w.walk.extra, STACK + 200);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(3), STACK + 408, w.registers[RBP]);
}

/* Other registers than the three that are carried are known in the first frame only. */
static void other_registers_in_the_first_frame(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = x86_frame(0);
	w.file.rules[1].cfa_reg = 10;
	w.file.rules[1].cfa_offset = 16;
	w.file.rules[1].fp = RECIPE_IN_REG;
	w.file.rules[1].fp_offset = 12;
	w.registers[10] = STACK + 32;
	w.stack[5] = RETURN(1);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(1), STACK + 48, w.registers[12]);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	expect_at(&w, RETURN(1), STACK + 48, w.registers[12]);
}

static void lost_register_is_harmful_only_when_used(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = x86_frame(2);
	w.file.rules[1].fp = RECIPE_LOST;
	w.file.rules[2] = x86_frame(2);
	w.file.rules[3] = x86_frame(2);
	w.file.rules[3].cfa_reg = RBP;
	w.stack[1] = RETURN(2);
	w.stack[3] = RETURN(3);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_true(w.walk.fp_lost);
	assert_int_equal(step(&w), WALK_ON);
	assert_true(w.walk.fp_lost); /* unchanged: still lost */
	assert_int_equal(w.walk.pc, RETURN(3));
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	/* And where it is known again, it may be used. */
	w.file.rules[2].fp = RECIPE_AT_CFA;
	w.file.rules[2].fp_offset = 64;
	w.stack[12] = STACK + 128;
	w.stack[17] = RETURN(4);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_ON);
	assert_false(w.walk.fp_lost);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(4), STACK + 144, STACK + 128);
}

/* A saved register that cannot be read is lost; the walk goes on without. */
static void unreadable_register_is_lost(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = x86_frame(2);
	w.file.rules[1].fp = RECIPE_AT_CFA;
	w.file.rules[1].fp_offset = 1 << 20;
	w.file.rules[1].extra = RECIPE_AT_CFA;
	w.file.rules[1].extra_offset = -(1 << 20);
	w.stack[1] = RETURN(2);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_true(w.walk.fp_lost && w.walk.extra_lost);
}

/* ---- frames, in aarch64's shapes ---- */

#define X19 19u
#define X29 29u
#define X30 30u

static struct recipe a64_frame(int bytes)
{
	return (struct recipe){.cfa = RECIPE_REG,
			       .cfa_reg = 31,
			       .cfa_offset = bytes,
			       .ra = RECIPE_AT_CFA,
			       .ra_offset = 8 - bytes,
			       .fp = RECIPE_AT_CFA,
			       .fp_offset = -bytes};
}

static void a64_leaf_in_link_register(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_REG, .cfa_reg = 31};
	w.file.rules[2] = a64_frame(32);
	w.registers[X29] = STACK;
	w.registers[X30] = RETURN(2);
	w.stack[0] = STACK + 96;
	w.stack[1] = RETURN(3);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(2), STACK, STACK); /* nothing was pushed: SP stays */
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(3), STACK + 32, STACK + 96);
}

/* Only the innermost frame can have its return address in the link register. */
static void a64_no_leaf_in_the_middle(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_REG, .cfa_reg = 31};
	w.file.rules[2] = (struct recipe){.cfa = RECIPE_REG, .cfa_reg = 31, .cfa_offset = 16};
	w.registers[X30] = RETURN(1);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	w.registers[X30] = RETURN(2);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
}

/* Return addresses may carry a signature. */
static void a64_signed_return_address(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[1] = a64_frame(16);
	w.stack[1] = RETURN(2) | UINT64_C(0xabcd) << 48;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, RETURN(2));
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_REG, .cfa_reg = 31};
	w.registers[X30] = RETURN(3) | UINT64_C(0x1a) << 52;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, RETURN(3));
}

/* Outlined code is called with the return address of its caller in another register. */
static void a64_return_address_in_register(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[1] = (struct recipe){
		.cfa = RECIPE_REG, .cfa_reg = 31, .ra = RECIPE_IN_REG, .ra_offset = 9};
	w.registers[9] = RETURN(2);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(2), STACK, w.registers[X29]);
	/* A register that does not exist is none. */
	w.file.rules[1].ra_offset = 32;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	w.file.rules[1].ra_offset = -1;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_FRAME);
}

static void vector_frames_are_complex(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[1] = a64_frame(16);
	w.file.rules[1].cfa_vg = 8;
	w.file.rules[2].cfa = RECIPE_COMPLEX;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_COMPLEX);
	world_start(&w, PC(2));
	assert_int_equal(step(&w), WALK_COMPLEX);
}

/* ---- signal frames ---- */

/* The kernel's frame, with what the interrupted code had in its registers. */
static void push_signal_frame(struct world *w, unsigned word, uint64_t pc, uint64_t sp)
{
	uint64_t at = 8 * word;
	for (unsigned i = 0; i < CPU_REGISTERS; i++)
		if (w->cpu->signal_registers[i])
			w->stack[(at + w->cpu->signal_registers[i]) / 8] = 0x51600 + i;
	w->stack[(at + w->cpu->signal_registers[w->cpu->sp]) / 8] = sp;
	w->stack[(at + w->cpu->signal_pc) / 8] = pc;
}

static void signal_on(const struct unwind_cpu *cpu, uint64_t interrupted_sp)
{
	struct world w;
	uint64_t link = RETURN(5);
	world_begin(&w, cpu);
	w.file.rules[1] = cpu->call_pushes ? x86_frame(2) : a64_frame(16);
	w.file.rules[2].cfa = RECIPE_SIGNAL;
	w.file.rules[4] = (struct recipe){.cfa = RECIPE_REG,
					  .cfa_reg = 12, /* known: the frame was interrupted */
					  .ra = RECIPE_IN_REG,
					  .ra_offset = 13};
	w.stack[1] = PC(
		2); /* the handler returns to the trampoline's beginning: one before is no code of it */
	w.file.rules[1].extra = RECIPE_LOST;
	push_signal_frame(&w, 2, PC(4), interrupted_sp);
	w.stack[2 + cpu->signal_registers[12] / 8] = interrupted_sp;
	w.stack[2 + cpu->signal_registers[13] / 8] = link;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, PC(2));
	/* The recipe is looked up one byte before a return address, so tables cover that, too. */
	w.file.rows[1] = 1u * 16 << TABLE_RULE_BITS | 2;
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, PC(4), interrupted_sp, 0x51600 + cpu->fp);
	assert_int_equal(w.walk.extra, 0x51600 + cpu->extra);
	assert_true(w.walk.exact && !w.walk.extra_lost);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, link, interrupted_sp, 0x51600 + cpu->fp);
	assert_false(w.walk.exact);
}

static void signal_frames(void **state)
{
	(void)state;
	signal_on(&unwind_cpu_x86_64, STACK + 1600);
	signal_on(&unwind_cpu_aarch64, STACK + 1600);
	/* The handler ran on an alternate stack: the way goes to lower addresses. */
	signal_on(&unwind_cpu_x86_64, STACK - 0x100000);
	signal_on(&unwind_cpu_aarch64, STACK - 0x100000);
}

/* What stands before a trampoline is another's code, for whoever is there. */
static void code_before_a_trampoline(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_SIGNAL, .cfa_add = RECIPE_RETURNED};
	push_signal_frame(&w, 0, PC(4), STACK + 1600);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_NO_RECIPE);
	world_start(&w, PC(1));
	w.walk.exact = false;
	w.walk.pc++;
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, PC(4));
}

static void signal_frame_cut_off(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[1].cfa = RECIPE_SIGNAL;
	w.registers[31] = STACK + 8 * (WORDS - 60);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_MEMORY);
	expect_at(&w, PC(1), w.registers[31], w.registers[X29]);
}

/* ---- ends ---- */

static void zero_return_address_is_complete(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = x86_frame(2);
	w.registers[RBP] = 0;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_COMPLETE);
	expect_at(&w, PC(1), STACK, 0);
}

/* Zero is what most words of a stack are: alone it proves nothing. */
static void zero_return_address_with_a_frame_pointer(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = x86_frame(2);
	w.registers[RBP] = STACK + 64;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	expect_at(&w, PC(1), STACK, STACK + 64);
}

/* SP must go up, whatever a table says. */
static void no_progress(void **state)
{
	static const int32_t offsets[] = {0, -8, -(1 << 30)};
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
		w.file.rules[1] = x86_frame(0);
		w.file.rules[1].cfa_offset = offsets[i];
		world_start(&w, PC(1));
		assert_int_equal(step(&w), WALK_BAD_FRAME);
	}
	/* Nor may a loop of frame pointers go round. */
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_REG,
					  .cfa_reg = RBP,
					  .cfa_offset = 16,
					  .ra = RECIPE_AT_FP,
					  .ra_offset = 8,
					  .fp = RECIPE_AT_FP};
	w.registers[RBP] = STACK + 16;
	w.stack[2] = STACK + 16;
	w.stack[3] = RETURN(1);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	/* A CFA that wraps around the address space is below SP. */
	w.registers[RBP] = UINT64_MAX - 4;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_FRAME);
}

static void bad_memory(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = x86_frame(WORDS + 2);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_MEMORY);
	expect_at(&w, PC(1), STACK, w.registers[RBP]);
	w.file.rules[1] = x86_frame(2);
	w.file.rules[1].cfa = RECIPE_DEREF;
	w.file.rules[1].cfa_offset = -64;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_MEMORY);
}

static void no_recipe_and_no_module(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1].cfa = 200; /* not of ours */
	world_start(&w, PC(0));
	assert_int_equal(step(&w), WALK_NO_RECIPE);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_NO_RECIPE);
	world_start(&w, w.module.end);
	assert_int_equal(step(&w), WALK_NO_MODULE);
	world_start(&w, w.module.start - 1);
	assert_int_equal(step(&w), WALK_NO_MODULE);
	w.space.count = 0;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_NO_MODULE);
}

/* A call that is a module's last instruction returns to an address outside of it. */
static void return_address_at_the_end(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = x86_frame(1);
	w.file.rules[RULES - 1] = x86_frame(3);
	w.stack[0] = RETURN(RULES - 1);
	w.stack[3] = RETURN(2);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, w.module.end);
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, RETURN(2));
}

static void modules_are_found(void **state)
{
	struct walk_module modules[9];
	struct walk_space space = {modules, 9};
	(void)state;
	memset(modules, 0, sizeof modules);
	for (unsigned i = 0; i < 9; i++) {
		modules[i].start = 0x1000 * (i + 1);
		modules[i].end = modules[i].start + (i % 2 ? 0x1000 : 0x800);
	}
	for (; space.count; space.count--) {
		for (uint64_t at = 0; at < 0xc000; at += 0x400) {
			size_t i = at / 0x1000 - 1;
			bool inside = at >= 0x1000 && i < space.count && at < modules[i].end;
			assert_ptr_equal(walk_find_module(&space, at), inside ? &modules[i] : NULL);
		}
	}
	assert_null(walk_find_module(&space, 0x1000));
}

static uint32_t random_bits(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 16;
}

/* Recipes that are whatever they are, but mostly lead upwards; a stack of return addresses and
   addresses of itself. */
static void world_randomise(struct world *w, uint32_t *seed)
{
	for (size_t i = 0; i < sizeof w->file.rules; i++)
		((uint8_t *)w->file.rules)[i] = (uint8_t)(random_bits(seed) % 9);
	for (unsigned i = 0; i < RULES; i++) {
		w->file.rules[i].cfa = w->file.rules[i].cfa % 2 + RECIPE_REG;
		w->file.rules[i].cfa_reg = random_bits(seed) % 2 ? w->cpu->sp : w->cpu->fp;
		w->file.rules[i].cfa_vg = 0;
		if (random_bits(seed) % 4)
			w->file.rules[i].ra = RECIPE_AT_CFA;
		w->file.rules[i].cfa_offset = (int32_t)(8 * (random_bits(seed) % 5));
		w->file.rules[i].cfa_add = 8;
		w->file.rules[i].ra_offset = w->file.rules[i].fp_offset = -8;
		w->file.rules[i].extra_offset = 0;
	}
	w->registers[w->cpu->fp] = STACK + 64;
	for (unsigned i = 0; i < WORDS; i++)
		w->stack[i] = random_bits(seed) % 2 ? PC(random_bits(seed) % RULES) + 1
						    : STACK + 8 * (random_bits(seed) % WORDS);
}

/* Whatever recipes say, a walk over 256 words ends, and within as many steps. */
static void random_recipes_end(void **state)
{
	struct world w;
	uint32_t seed = 7;
	unsigned all_steps = 0;
	(void)state;
	for (int round = 0; round < 1000; round++) {
		unsigned steps = 0;
		world_begin(&w, round % 2 ? &unwind_cpu_x86_64 : &unwind_cpu_aarch64);
		world_randomise(&w, &seed);
		world_start(&w, PC(1));
		while (step(&w) == WALK_ON)
			assert_true(++steps <= WORDS + 1);
		all_steps += steps;
	}
	assert_true(all_steps > 500); /* the recipes were not all bad */
}

/* The cache changes nothing but time: one that walks of the same world have filled, too. */
static void cached_steps_are_the_same(void **state)
{
	static struct step_cache cache;
	struct world w;
	uint32_t seed = 11;
	(void)state;
	for (int round = 0; round < 1600; round++) {
		struct walk plain;
		enum walk_end end, cached_end;
		if (round % 16 == 0) {
			world_begin(&w, round % 32 ? &unwind_cpu_x86_64 : &unwind_cpu_aarch64);
			world_randomise(&w, &seed);
			memset(&cache, 0, sizeof cache);
		}
		world_start(&w, PC(random_bits(&seed) % (RULES + 1)));
		plain = w.walk;
		do {
			end = step(&w);
			cached_end = step_cached(&plain, &w.space, &cache, read_stack, &w);
			assert_int_equal(end, cached_end);
			assert_int_equal(w.walk.pc, plain.pc);
			assert_int_equal(w.walk.sp, plain.sp);
			assert_int_equal(w.walk.fp, plain.fp);
			assert_true(end == WALK_NO_MODULE || w.walk.recipe == plain.recipe);
		} while (end == WALK_ON);
	}
}

/* A module's neighbour is found though the frame before was elsewhere. */
static void last_module_is_only_a_shortcut(void **state)
{
	struct walk_module modules[3];
	struct walk_space space = {modules, 3};
	(void)state;
	memset(modules, 0, sizeof modules);
	for (unsigned i = 0; i < 3; i++) {
		modules[i].start = 0x1000 * (i + 1);
		modules[i].end = modules[i].start + 0x800;
	}
	for (unsigned last = 0; last < 3; last++)
		for (uint64_t at = 0; at < 0x5000; at += 0x100)
			assert_ptr_equal(step_find_module(&space, &modules[last], at),
					 walk_find_module(&space, at));
}

static void ends_have_names(void **state)
{
	(void)state;
	for (int end = WALK_ON; end <= WALK_COUNTED; end++)
		assert_true(strlen(walk_end_name((enum walk_end)end)) > 1);
	assert_string_equal(walk_end_name(WALK_COMPLETE), "complete");
	assert_string_equal(walk_end_name((enum walk_end)99), "unknown");
	assert_ptr_equal(unwind_cpu_for(EM_X86_64), &unwind_cpu_x86_64);
	assert_ptr_equal(unwind_cpu_for(EM_AARCH64), &unwind_cpu_aarch64);
	assert_null(unwind_cpu_for(EM_386));
}

/* V8's deoptimizer: the frame is gone from the stack, its caller is in an object. */
static void caller_in_an_object(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = x86_frame(3);
	w.file.rules[2] = (struct recipe){.cfa = RECIPE_DEREF,
					  .cfa_reg = RSP,
					  .cfa_add = 8,
					  .ra = RECIPE_VIA_CFA,
					  .ra_offset = RECIPE_VIA(-8, 96),
					  .fp = RECIPE_VIA_CFA,
					  .fp_offset = RECIPE_VIA(-8, 88)};
	w.stack[2] = RETURN(2);
	w.stack[3] = STACK + 40;      /* SP before it was aligned */
	w.stack[5] = STACK + 800;     /* the object */
	w.stack[111] = STACK + 400;   /* its caller_fp */
	w.stack[112] = RETURN(3) + 7; /* its caller_pc */
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(3) + 7, STACK + 48, STACK + 400);
	assert_int_equal(w.walk.slot, 0); /* nothing that could be compared later */
	/* Both are zero as long as nobody has filled them in: that is not the outermost frame. */
	w.stack[111] = w.stack[112] = 0;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	w.stack[5] = 16;
	assert_int_equal(step(&w), WALK_BAD_MEMORY);
	assert_int_equal(RECIPE_VIA_SLOT(RECIPE_VIA(-32768, 65535)), -32768);
	assert_int_equal(RECIPE_VIA_MEMBER(RECIPE_VIA(-32768, 65535)), 65535);
}

/* The unwinder of exceptions is about to go on in another frame, which an object describes. */
static void caller_that_resumes(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_SPECIAL,
					  .cfa_reg = 31,
					  .cfa_vg = RECIPE_WORD | RECIPE_WORD_MORE | RECIPE_RESUMES,
					  .cfa_offset = 80,
					  .cfa_add = 144,
					  .ra = RECIPE_AT_BASE,
					  .ra_offset = 88,
					  .fp = RECIPE_VIA_BASE,
					  .fp_offset = 40};
	w.stack[5] = STACK + 1600; /* where the handler's FP is */
	w.stack[10] = STACK + 400;
	w.stack[11] = PC(2);
	w.stack[18] = 16; /* what was pushed for the call */
	w.stack[200] = STACK + 512;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	/* It has not called: its recipe is looked up where it goes on, not before. */
	expect_at(&w, PC(2) + 1, STACK + 416, STACK + 512);
	assert_false(w.walk.exact);
	assert_int_equal(w.walk.slot, 0);
	/* The same from a frame that has called something: SP is known there, too. */
	w.file.rules[3] = (struct recipe){.cfa = RECIPE_REG, .cfa_reg = 31};
	w.registers[30] = RETURN(1);
	world_start(&w, PC(3));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, PC(2) + 1, STACK + 416, STACK + 512);
	/* Not further down, not nowhere, and never the outermost. */
	w.stack[10] = STACK - 64;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	w.stack[10] = STACK + 400, w.stack[11] = w.stack[200] = 0;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	w.stack[5] = 8; /* FP cannot be read: it is lost, nothing else */
	w.stack[11] = PC(2);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_true(w.walk.fp_lost);
}

static void index_registers_in_exact_frames(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_SPECIAL,
					  .cfa_reg = RSP,
					  .cfa_vg = RECIPE_INDEX(9, 3) | RECIPE_WORD,
					  .cfa_offset = 8,
					  .cfa_add = 8,
					  .ra = RECIPE_AT_CFA,
					  .ra_offset = -8};
	w.registers[9] = 4;
	w.stack[5] = STACK + 80;
	w.stack[10] = RETURN(2);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(2), STACK + 88, w.registers[RBP]);
	/* Mixed with the word instead, as longjmp's secret is */
	w.file.rules[1].cfa_vg = RECIPE_INDEX(9, 0) | RECIPE_WORD | RECIPE_MIXED;
	w.file.rules[1].cfa_offset = 40;
	w.stack[5] = (STACK + 80) ^ 4;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(2), STACK + 88, w.registers[RBP]);
	/* What it calls may have anything in r9. */
	w.file.rules[3] = x86_frame(1);
	w.stack[0] = RETURN(1);
	w.registers[9] = 3;
	world_start(&w, PC(3));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
}

/* What the first frame has in a register that it has overwritten is not its caller's. */
static void a_lost_register_is_not_found_near(void **state)
{
	static const struct recipe by_fp = {.cfa = RECIPE_REG,
					    .cfa_reg = 29,
					    .cfa_offset = 16,
					    .ra = RECIPE_AT_CFA,
					    .ra_offset = -8};
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_REG, .cfa_reg = 31, .fp = RECIPE_LOST};
	w.file.rules[2] = by_fp;
	w.registers[30] = RETURN(2);
	w.registers[29] = STACK + 64;
	w.stack[9] = RETURN(3);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_REG, .cfa_reg = 31, .extra = RECIPE_LOST};
	w.file.rules[2].cfa_reg = 19;
	w.registers[19] = STACK + 64;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	w.file.rules[1].extra = RECIPE_SAME;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(3), STACK + 80, w.registers[29]);
}

static void popped_return_address(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_x86_64);
	w.registers[RSP] = STACK + 64;
	w.file.rules[1] = (struct recipe){
		.cfa = RECIPE_SPECIAL, .cfa_reg = RSP, .ra = RECIPE_AT_SP, .ra_offset = -8};
	w.stack[7] = RETURN(2);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(2), STACK + 64, w.registers[RBP]);
	/* Only so far down, where a recipe says so, and before anything else was called. */
	w.file.rules[1].ra_offset = -136;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	w.file.rules[1] = (struct recipe){
		.cfa = RECIPE_REG, .cfa_reg = RSP, .ra = RECIPE_AT_CFA, .ra_offset = -8};
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	w.file.rules[1] = (struct recipe){
		.cfa = RECIPE_SPECIAL, .cfa_reg = RSP, .ra = RECIPE_AT_SP, .ra_offset = -8};
	w.file.rules[3] = x86_frame(1);
	w.registers[RSP] = STACK + 56;
	w.stack[7] = RETURN(1);
	world_start(&w, PC(3));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
}

/* OCaml's caml_c_call on aarch64 keeps its return address in x19, whatever is called. */
static void return_address_in_the_extra_register(void **state)
{
	struct world w;
	(void)state;
	world_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_REG, /* saves x19 */
					  .cfa_reg = 31,
					  .cfa_offset = 32,
					  .ra = RECIPE_AT_CFA,
					  .ra_offset = -8,
					  .extra = RECIPE_AT_CFA,
					  .extra_offset = -16};
	w.file.rules[2] = w.file.rules[1];
	w.file.rules[3] = (struct recipe){
		.cfa = RECIPE_REG, .cfa_reg = 31, .ra = RECIPE_IN_REG, .ra_offset = 19};
	w.stack[3] = RETURN(2);
	w.stack[6] = RETURN(4);
	w.stack[7] = RETURN(3);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(3), STACK + 64, w.registers[X29]);
	assert_int_equal(step(&w), WALK_ON);
	expect_at(&w, RETURN(4), STACK + 64, w.registers[X29]);
	/* It cannot be its own caller, again and again. */
	w.stack[6] = RETURN(3);
	world_start(&w, PC(1));
	for (int i = 0; i < 3; i++)
		assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
	/* Nor does any other register do. */
	w.file.rules[3].ra_offset = 20;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_BAD_FRAME);
}

/* From code that is walked by FP to compiled code: where its SP is, its recipe says. */
static void stack_pointer_from_the_frame_record(void **state)
{
	struct recipe r = {.cfa = RECIPE_REG,
			   .cfa_reg = 31,
			   .cfa_offset = 128,
			   .ra = RECIPE_AT_CFA,
			   .ra_offset = -104,
			   .fp = RECIPE_AT_CFA,
			   .fp_offset = -112};
	struct walk w = {.cpu = &unwind_cpu_aarch64, .sp = STACK, .fp = STACK + 96};
	(void)state;
	assert_true(step_pointer_compiled(&w, &r, false)); /* an argument lies below its record */
	assert_int_equal(w.sp, STACK + 80);
	w.sp = STACK;
	r.fp_offset = -128, r.ra_offset = -120; /* the record is at the bottom */
	assert_true(step_pointer_compiled(&w, &r, false));
	assert_int_equal(w.sp, STACK + 96);
	w.sp = STACK;
	r.ra_offset = -8; /* that is no record: FP is that of somebody farther out */
	assert_false(step_pointer_compiled(&w, &r, false));
	r.ra_offset = 8, r.fp_offset = 0; /* that would be below the callee's record */
	assert_false(step_pointer_compiled(&w, &r, false));
	w.sp = STACK + 104; /* the caller has none */
	assert_false(step_pointer_compiled(&w, &r, false));
	r.cfa_reg = 29; /* SP is not needed */
	w.sp = STACK;
	assert_true(step_pointer_compiled(&w, &r, false));
	assert_int_equal(w.sp, STACK + 96);
	r = (struct recipe){.cfa = RECIPE_SIGNAL};
	assert_false(step_pointer_compiled(&w, &r, false));
	r.cfa = RECIPE_ROOT;
	assert_true(step_pointer_compiled(&w, &r, false));
}

/* Where nothing of the callee's lies above its record, SP is known whatever the caller does with FP. */
static void stack_pointer_above_the_frame_record(void **state)
{
	struct recipe r = {.cfa = RECIPE_REG, .cfa_reg = 31, .cfa_offset = 64};
	struct walk w = {.cpu = &unwind_cpu_aarch64, .sp = STACK, .fp = STACK + 96};
	(void)state;
	r.ra = RECIPE_AT_CFA, r.ra_offset = -16;
	assert_true(step_pointer_compiled(&w, &r, true));
	assert_int_equal(w.sp, STACK);
	w.fp_lost = true;
	assert_true(step_pointer_compiled(&w, &r, true));
	assert_int_equal(w.sp, STACK);
	w = (struct walk){.cpu = &unwind_cpu_x86_64, .sp = STACK, .fp = STACK + 96};
	assert_true(step_pointer_compiled(&w, &r, false));
	assert_int_equal(w.sp, STACK);
}

/* What is known of a frame by the code ahead. */
static void made_frames_on_aarch64(void **state)
{
	const uint32_t stp = 0xa9bf7bfd, below = 0xa9037bfd, mov = 0x910003fd, add = 0x910303fd,
		       ldp = 0xa8c17bfd, ret = 0xd65f03c0, sub = 0xd10103ff, nop = 0xd503201f,
		       udiv = 0x9ac10929, b_ne = 0x54000041, cbz = 0xb4000041, tbz = 0x36000041,
		       call = 0x94000010, jump = 0x14000010, blr = 0xd63f0040, ldr = 0xf84107fe,
		       other = 0xa9bf53f3; /* stp x19, x20 */
	const struct {
		uint32_t code[MADE_BYTES / 4];
		enum made_frame made;
	} cases[] = {
		{{stp, mov, call}, MADE_NO_FRAME},
		{{mov, call}, MADE_NO_FRAME},
		{{sub, below, add, call}, MADE_NO_FRAME},
		{{nop, udiv, cbz, b_ne, tbz, other, stp}, MADE_NO_FRAME},
		{{udiv, tbz + 0x20, udiv, jump, stp, mov}, MADE_NO_FRAME}, /* around the jump */
		{{udiv, tbz, udiv, jump, stp, mov}, MADE_FRAME},           /* to the jump */
		{{udiv, 0x36ffffe1, udiv, jump, stp, mov}, MADE_FRAME},    /* backwards */
		{{ret}, MADE_NO_FRAME},
		{{udiv, b_ne, ret}, MADE_NO_FRAME},
		{{ldp, ret}, MADE_FRAME},
		{{ldr, ret}, MADE_FRAME},
		{{call, ldp, ret}, MADE_FRAME},
		{{blr, stp, mov}, MADE_FRAME},
		{{jump, stp, mov}, MADE_FRAME},
		{{udiv, udiv, udiv, udiv, udiv, udiv, udiv, udiv}, MADE_FRAME},
		{{0, ret}, MADE_FRAME}, /* the end of what could be read */
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(made_frame_aarch64(cases[i].code), cases[i].made);
}

static void made_frames_on_x86_64(void **state)
{
	static const uint8_t push[MADE_BYTES] = {0x55, 0x48, 0x89, 0xe5},
			     mov[MADE_BYTES] = {0x48, 0x89, 0xe5, 0x5d},
			     other_mov[MADE_BYTES] = {0x48, 0x8b, 0xec},
			     endbr[MADE_BYTES] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55},
			     ret[MADE_BYTES] = {0xc3}, ret_n[MADE_BYTES] = {0xc2, 0x10, 0},
			     pop[MADE_BYTES] = {0x5d, 0xc3},
			     sub[MADE_BYTES] = {0x48, 0x83, 0xec, 0x10};
	(void)state;
	assert_int_equal(made_frame_x86_64(push), MADE_NO_FRAME);
	assert_int_equal(made_frame_x86_64(endbr), MADE_NO_FRAME);
	assert_int_equal(made_frame_x86_64(ret), MADE_NO_FRAME);
	assert_int_equal(made_frame_x86_64(ret_n), MADE_NO_FRAME);
	assert_int_equal(made_frame_x86_64(mov), MADE_PUSHED);
	assert_int_equal(made_frame_x86_64(other_mov), MADE_PUSHED);
	assert_int_equal(made_frame_x86_64(pop), MADE_FRAME);
	assert_int_equal(made_frame_x86_64(sub), MADE_FRAME);
}

/* The same, where some instructions come first that say nothing. */
static void made_frames_ahead_on_x86_64(void **state)
{
	static const struct {
		uint8_t code[MADE_BYTES];
		enum made_frame made;
	} cases[] = {
		/* mov -0x30(%rcx), %rbx; testl $1, 0xf(%rbx); jne; push %rbp */
		{{0x48, 0x8b, 0x59, 0xd0, 0xf7, 0x43, 0x0f, 1, 0, 0, 0, 0x0f, 0x85, 1, 2, 3, 4,
		  0x55},
		 MADE_NO_FRAME},
		/* mov %eax, -0x14000(%rsp); push %rbp */
		{{0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff, 0x55}, MADE_NO_FRAME},
		/* mov 8(%rsi), %r10d; movabs $, %r11; cmp %r11, %r10; jne; nopw 0(%rax,%rax); push %rbp */
		{{0x44, 0x8b, 0x56, 8,    0x49, 0xbb, 1,    2,    3,    4,   5,
		  6,    7,    8,    0x4d, 0x3b, 0xd3, 0x75, 0x20, 0x90, 0x55},
		 MADE_NO_FRAME},
		/* cmp 0x338(%r15), %rsp; ja; ret */
		{{0x49, 0x3b, 0xa7, 0x38, 3, 0, 0, 0x0f, 0x87, 1, 2, 3, 4, 0xc3}, MADE_NO_FRAME},
		/* mov 0x108(%r15), %r10; test %eax, (%r10); ret */
		{{0x4d, 0x8b, 0x97, 8, 1, 0, 0, 0x41, 0x85, 2, 0xc3}, MADE_NO_FRAME},
		/* test %eax, (%r10); pop %rbp; ret: there is a frame until then */
		{{0x41, 0x85, 2, 0x5d, 0xc3}, MADE_FRAME},
		/* mov %rax, %rbx; mov %rbp, %rsp; ret */
		{{0x48, 0x89, 0xc3, 0x48, 0x89, 0xec, 0xc3}, MADE_FRAME},
		/* mov $1, %ebp; ret */
		{{0xbd, 1, 0, 0, 0, 0xc3}, MADE_FRAME},
		/* lea 8(%rsp), %rsp; ret */
		{{0x48, 0x8d, 0x64, 0x24, 8, 0xc3}, MADE_FRAME},
		/* cmp $5, %rax; call; push %rbp */
		{{0x48, 0x83, 0xf8, 5, 0xe8, 1, 2, 3, 4, 0x55}, MADE_FRAME},
		/* as many as are looked at */
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0xc3}, MADE_NO_FRAME},
		{{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3}, MADE_FRAME},
		/* as far as code was read */
		{{0x49, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8,    0x49,
		  0xbb, 1,    2, 3, 4, 5, 6, 7, 8, 0x49, 0xbb},
		 MADE_FRAME},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(made_frame_x86_64(cases[i].code), cases[i].made);
}

static bool read_small(void *context, uint64_t address, uint64_t *out)
{
	if (address < STACK || address - STACK >= 64)
		return false;
	*out = ((const uint64_t *)context)[(address - STACK) / 8];
	return true;
}

/* The caller is where the call left it, not where FP leads to. */
static void steps_without_a_frame(void **state)
{
	uint64_t stack[8] = {STACK + 96, 0x1234, 0x5678}, registers[CPU_REGISTERS] = {0};
	struct walk w;
	(void)state;
	registers[30] = 0x4444;
	registers[31] = STACK;
	registers[29] = STACK + 96;
	walk_begin(&w, &unwind_cpu_aarch64, registers, 0x8000);
	assert_false(step_unmade(&w, MADE_FRAME, read_small, stack));
	assert_true(step_unmade(&w, MADE_NO_FRAME, read_small, stack));
	assert_int_equal(w.pc, 0x4444);
	assert_int_equal(w.sp, STACK);
	assert_int_equal(w.fp, STACK + 96);
	assert_int_equal(w.slot, 0);
	assert_false(w.exact);
	assert_false(step_unmade(&w, MADE_NO_FRAME, read_small, stack)); /* only the first one */
	registers[30] = 0;
	walk_begin(&w, &unwind_cpu_aarch64, registers, 0x8000);
	assert_false(step_unmade(&w, MADE_NO_FRAME, read_small, stack));

	registers[6] = STACK + 96; /* rbp */
	registers[7] = STACK + 8;
	walk_begin(&w, &unwind_cpu_x86_64, registers, 0x8000);
	assert_true(step_unmade(&w, MADE_NO_FRAME, read_small, stack));
	assert_int_equal(w.pc, 0x1234);
	assert_int_equal(w.sp, STACK + 16);
	assert_int_equal(w.slot, STACK + 8);
	registers[7] = STACK;
	walk_begin(&w, &unwind_cpu_x86_64, registers, 0x8000);
	assert_true(step_unmade(&w, MADE_PUSHED, read_small, stack));
	assert_int_equal(w.pc, 0x1234);
	assert_int_equal(w.sp, STACK + 16);
	assert_int_equal(w.fp, STACK + 96);
	stack[0]++; /* that was not pushed */
	walk_begin(&w, &unwind_cpu_x86_64, registers, 0x8000);
	assert_false(step_unmade(&w, MADE_PUSHED, read_small, stack));
	assert_int_equal(w.pc, 0x8000);
}

/* Go's objects among the words: two of its gs, and the thread. */
#define GO_G0 100
#define GO_G 120
#define GO_M 140
#define GO_AT(word) (STACK + 8u * (word))

static struct recipe go_recipe(const struct unwind_cpu *cpu, int cfa, int second)
{
	bool pushes = cpu->call_pushes;
	return (struct recipe){.cfa = (uint8_t)cfa,
			       .cfa_reg = pushes ? 14 : 28,
			       .cfa_offset = 48,
			       .cfa_vg = 24,
			       .cfa_add = RECIPE_PAIR(56, second),
			       .ra = RECIPE_AT_CFA,
			       .ra_offset = -8};
}

static void go_begin(struct world *w, const struct unwind_cpu *cpu)
{
	world_begin(w, cpu);
	w->stack[GO_G0 + 6] = w->stack[GO_G + 6] = GO_AT(GO_M);
	w->stack[GO_M] = GO_AT(GO_G0);
	w->stack[GO_M + 3] = GO_AT(GO_G);
	w->registers[cpu->call_pushes ? 14 : 28] = GO_AT(GO_G0);
	w->file.rules[1] = (struct recipe){.cfa = RECIPE_REG,
					   .cfa_reg = cpu->sp,
					   .cfa_offset = 16,
					   .ra = RECIPE_AT_CFA,
					   .ra_offset = -8};
	w->registers[cpu->sp] = GO_AT(60); /* above the goroutine's stack */
	w->stack[61] = RETURN(2);
}

static void goroutine_that_waits(void **state)
{
	const struct unwind_cpu *cpus[] = {&unwind_cpu_x86_64, &unwind_cpu_aarch64};
	struct world w;
	(void)state;
	for (int i = 0; i < 2; i++) {
		go_begin(&w, cpus[i]);
		w.file.rules[2] = go_recipe(cpus[i], RECIPE_PARKED, 8);
		w.stack[GO_G + 7] = GO_AT(10); /* where it left its stack */
		w.stack[10] = RETURN(3);
		world_start(&w, PC(1));
		assert_int_equal(step(&w), WALK_ON);
		assert_int_equal(step(&w), WALK_ON);
		assert_int_equal(w.walk.pc, RETURN(3));
		assert_int_equal(w.walk.sp, GO_AT(11));
		assert_int_equal(w.walk.slot, 0); /* another goroutine may have the same words */
		/* A register that holds no g. */
		w.registers[i ? 28 : 14] = GO_AT(200);
		world_start(&w, PC(1));
		assert_int_equal(step(&w), WALK_ON);
		assert_int_equal(step(&w), WALK_BAD_MEMORY);
		w.stack[206] = GO_AT(GO_M);
		assert_int_equal(step(&w), WALK_BAD_FRAME);
		/* Nobody waits. */
		w.registers[i ? 28 : 14] = GO_AT(GO_G0);
		w.stack[GO_M + 3] = 0;
		world_start(&w, PC(1));
		assert_int_equal(step(&w), WALK_ON);
		assert_int_equal(step(&w), WALK_BAD_FRAME);
		w.file.rules[2].ra = RECIPE_IN_G; /* where that is not a mistake */
		assert_int_equal(step(&w), WALK_COMPLETE);
	}
}

/* The procedure that needs a larger stack has its PC, and on aarch64 its return address, in the g. */
static void goroutine_that_grows(void **state)
{
	struct world w;
	(void)state;
	go_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[2] = go_recipe(w.cpu, RECIPE_PARKED, 0);
	w.file.rules[2].ra = w.file.rules[2].extra = RECIPE_IN_G;
	w.file.rules[2].ra_offset = 64;
	w.file.rules[2].extra_offset = 96;
	w.file.rules[3] = (struct recipe){
		.cfa = RECIPE_REG, .cfa_reg = 31, .ra = RECIPE_IN_REG, .ra_offset = 19};
	w.stack[GO_G + 7] = GO_AT(10);
	w.stack[GO_G + 8] = RETURN(3);
	w.stack[GO_G + 12] = RETURN(4);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, RETURN(3));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, RETURN(4));
	assert_int_equal(w.walk.sp, GO_AT(10));
	/* What comes after the goroutine was given up is not its work any more. */
	w.file.rules[1].extra = RECIPE_LOST;
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(step(&w), WALK_COMPLETE);
}

/* Go called C (2), which called Go (3), which called C (2), which called Go (3): no register tells. */
static void calls_of_c_in_each_other(void **state)
{
	struct world w;
	(void)state;
	go_begin(&w, &unwind_cpu_x86_64);
	w.registers[14] = 77;
	w.file.rules[2] = go_recipe(w.cpu, RECIPE_DEPTH, 8);
	w.file.rules[2].cfa_offset = 8;
	w.file.rules[2].cfa_add = RECIPE_PAIR(16, 8);
	w.file.rules[2].cfa_vg = 0;
	w.file.rules[3] = go_recipe(w.cpu, RECIPE_CALLBACK, 24);
	w.file.rules[3].extra = RECIPE_LOST;
	w.stack[GO_G + 1] = GO_AT(50); /* the end of its stack */
	w.stack[62 + 1] = GO_AT(GO_G); /* whose it was … */
	w.stack[62 + 2] = 8 * 40;      /* … and how deep */
	w.stack[10] = RETURN(3);
	w.stack[GO_G0 + 7] = GO_AT(70); /* SP at the innermost callback, */
	w.stack[70] = GO_AT(80);        /* and at the next one */
	w.stack[70 + 2] = RETURN(2);
	w.stack[73 + 1] = GO_AT(GO_G);
	w.stack[73 + 2] = 8 * 30;
	w.stack[20] = RETURN(3);
	w.stack[80 + 2] = RETURN(4);
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON); /* in C */
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, RETURN(3));
	assert_int_equal(w.walk.sp, GO_AT(11));
	w.walk.left = 0; /* as if it were the first callback */
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, RETURN(2));
	assert_int_equal(w.walk.sp, GO_AT(73));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.sp, GO_AT(21));
	assert_int_equal(step(&w), WALK_ON); /* not the innermost one again */
	assert_int_equal(w.walk.pc, RETURN(4));
	assert_int_equal(w.walk.sp, GO_AT(83));
}

/* A handler made it call something between two instructions. */
static void call_between_two_instructions(void **state)
{
	struct world w;
	(void)state;
	go_begin(&w, &unwind_cpu_aarch64);
	w.file.rules[1] = (struct recipe){.cfa = RECIPE_AWAY,
					  .cfa_reg = 31,
					  .cfa_offset = 48,
					  .cfa_add = 1,
					  .ra = RECIPE_AT_CFA,
					  .ra_offset = -48,
					  .extra_offset = 28};
	w.file.rules[2] = (struct recipe){.cfa = RECIPE_REG, .cfa_reg = 31, .ra = RECIPE_SAME};
	w.stack[60] = PC(2);
	w.stack[64] = RETURN(3); /* what was in the link register */
	world_start(&w, PC(1));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, PC(2));
	assert_true(w.walk.exact);
	assert_int_equal(w.walk.g, GO_AT(GO_G0));
	assert_int_equal(step(&w), WALK_ON);
	assert_int_equal(w.walk.pc, RETURN(3));
	assert_int_equal(w.walk.sp, GO_AT(66));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x86_three_frames),
		cmocka_unit_test(x86_by_frame_pointer),
		cmocka_unit_test(x86_extra_register_and_deref),
		cmocka_unit_test(other_registers_in_the_first_frame),
		cmocka_unit_test(lost_register_is_harmful_only_when_used),
		cmocka_unit_test(unreadable_register_is_lost),
		cmocka_unit_test(a64_leaf_in_link_register),
		cmocka_unit_test(a64_no_leaf_in_the_middle),
		cmocka_unit_test(a64_signed_return_address),
		cmocka_unit_test(a64_return_address_in_register),
		cmocka_unit_test(vector_frames_are_complex),
		cmocka_unit_test(signal_frames),
		cmocka_unit_test(signal_frame_cut_off),
		cmocka_unit_test(code_before_a_trampoline),
		cmocka_unit_test(zero_return_address_is_complete),
		cmocka_unit_test(zero_return_address_with_a_frame_pointer),
		cmocka_unit_test(no_progress),
		cmocka_unit_test(bad_memory),
		cmocka_unit_test(no_recipe_and_no_module),
		cmocka_unit_test(return_address_at_the_end),
		cmocka_unit_test(modules_are_found),
		cmocka_unit_test(random_recipes_end),
		cmocka_unit_test(cached_steps_are_the_same),
		cmocka_unit_test(last_module_is_only_a_shortcut),
		cmocka_unit_test(caller_in_an_object),
		cmocka_unit_test(caller_that_resumes),
		cmocka_unit_test(index_registers_in_exact_frames),
		cmocka_unit_test(a_lost_register_is_not_found_near),
		cmocka_unit_test(popped_return_address),
		cmocka_unit_test(return_address_in_the_extra_register),
		cmocka_unit_test(stack_pointer_from_the_frame_record),
		cmocka_unit_test(stack_pointer_above_the_frame_record),
		cmocka_unit_test(made_frames_on_aarch64),
		cmocka_unit_test(made_frames_on_x86_64),
		cmocka_unit_test(made_frames_ahead_on_x86_64),
		cmocka_unit_test(steps_without_a_frame),
		cmocka_unit_test(ends_have_names),
		cmocka_unit_test(goroutine_that_waits),
		cmocka_unit_test(goroutine_that_grows),
		cmocka_unit_test(calls_of_c_in_each_other),
		cmocka_unit_test(call_between_two_instructions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
