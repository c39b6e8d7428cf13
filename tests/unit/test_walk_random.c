/* SPDX-License-Identifier: Apache-2.0 */
/* Walks by random recipes over random memory: they end, and the cache changes nothing. */
#include "walk_world.h"

#include "unwind/step.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_recipes_end),
		cmocka_unit_test(cached_steps_are_the_same),
		cmocka_unit_test(last_module_is_only_a_shortcut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
