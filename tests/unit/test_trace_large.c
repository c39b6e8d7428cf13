/* SPDX-License-Identifier: Apache-2.0 */
/* Much code, by many threads; and what a trace tells. */
#include "tracing.h"

/* ---- code larger than what one thread takes at a time ---- */

#define BORDER 0x20000u /* instruction words of aarch64 up to the first border */

static struct image *text_image(const struct isa *isa, const void *code, size_t size)
{
	const struct made_section text = {
		.name = ".text",
		.address = LISTING_START,
		.bytes = code,
		.size = size,
		.code = true,
	};
	return made_image(isa->elf_machine, 0, &text, 1);
}

static void assert_state(const struct trace *t, const struct isa *isa, uint64_t at,
			 const char *expected)
{
	char words[WORDS_MAX];
	if (strcmp(state_words(isa, trace_at(t, at), words), expected) != 0)
		fail_msg("%lx: %s, expected %s", (unsigned long)at, words, expected);
}

static uint64_t word_address(size_t index)
{
	return LISTING_START + 4 * index;
}

static const uint64_t first_entry[] = {LISTING_START};
static const struct trace_input first_only = {.entries = first_entry, .entry_count = 1};

/* Falls over a border, branches over another, and calls what is behind both. */
static void aarch64_across_borders(void **state)
{
	enum { COLD = 2 * BORDER + 100, END = 2 * BORDER + 200 };
	uint32_t *code = malloc((END + 1) * sizeof *code);
	const uint64_t *starts;
	struct image *image;
	struct trace *t;
	(void)state;
	assert_non_null(code);
	for (size_t i = 0; i < END; i++)
		code[i] = 0x91000400;                                     /* add x0, x0, #1 */
	code[0] = 0xf81e0ffe;                                             /* str x30, [sp, #-32]! */
	code[1] = 0x94000000 | (END - 1);                                 /* bl END */
	code[2] = 0xb4000000 | (BORDER - 2) << 5;                         /* cbz x0, BORDER */
	code[100] = 0xf84207fe;                                           /* ldr x30, [sp], #32 */
	code[101] = 0xd65f03c0;                                           /* ret */
	code[BORDER + 100] = 0xb4000000 | (COLD - BORDER - 100) << 5;     /* cbz x0, COLD */
	code[BORDER + 101] = 0x17ffffff & (0x14000000 | (0x4000000 - 1)); /* b . - 4 */
	code[COLD + 10] = 0xf84207fe;
	code[COLD + 11] = 0xd65f03c0;
	code[END] = 0xd65f03c0;
	image = text_image(&isa_aarch64, code, (END + 1) * sizeof *code);
	t = run(image, &isa_aarch64, &first_only);
	assert_state(t, &isa_aarch64, word_address(2), "CFA=sp+32 ra=[CFA-32] fp=same");
	assert_state(t, &isa_aarch64, word_address(101), "CFA=sp ra=lr fp=same");
	assert_state(t, &isa_aarch64, word_address(BORDER), "CFA=sp+32 ra=[CFA-32] fp=same");
	assert_state(t, &isa_aarch64, word_address(BORDER + 101), "CFA=sp+32 ra=[CFA-32] fp=same");
	assert_state(t, &isa_aarch64, word_address(COLD), "CFA=sp+32 ra=[CFA-32] fp=same");
	assert_state(t, &isa_aarch64, word_address(COLD + 11), "CFA=sp ra=lr fp=same");
	assert_true(is_start(t, word_address(END)));
	assert_false(is_start(t, word_address(BORDER)));
	assert_false(is_start(t, word_address(COLD)));
	assert_true(trace_starts(t, &starts) >= 2);
	assert_int_equal(starts[0], LISTING_START);
	trace_free(t);
	image_close(image);
	free(code);
}

/* One long way through all regions; an instruction stands on each border. */
static void x86_across_borders(void **state)
{
	enum { COUNT_LONG = 120000, SIZE = 1 + 10 * COUNT_LONG + 2 };
	const char *frame = "CFA=sp+16 ra=[CFA-8] fp=same";
	uint8_t *code = calloc(1, SIZE);
	struct image *image;
	struct trace *t;
	(void)state;
	assert_non_null(code);
	code[0] = 0x53; /* push %rbx */
	for (size_t i = 0; i < COUNT_LONG; i++) {
		code[1 + 10 * i] = 0x48; /* movabs $0, %rax */
		code[2 + 10 * i] = 0xb8;
	}
	code[SIZE - 2] = 0x5b; /* pop %rbx */
	code[SIZE - 1] = 0xc3; /* ret */
	image = text_image(&isa_x86_64, code, SIZE);
	t = run(image, &isa_x86_64, &first_only);
	for (size_t i = 0; i < COUNT_LONG; i++)
		assert_state(t, &isa_x86_64, LISTING_START + 1 + 10 * i, frame);
	assert_state(t, &isa_x86_64, LISTING_START + SIZE - 2, frame);
	assert_state(t, &isa_x86_64, LISTING_START + SIZE - 1, "CFA=sp+8 ra=[CFA-8] fp=same");
	trace_free(t);
	image_close(image);
	free(code);
}

/* ---- the number of threads ---- */

struct places {
	struct {
		uint64_t address;
		unsigned length;
		bool start, fresh;
		char words[WORDS_MAX];
	} * all;
	size_t count, capacity;
	const struct isa *isa;
};

static void note_place(void *context, const struct trace_point *p)
{
	struct places *places = context;
	if (places->count == places->capacity) {
		places->capacity = places->capacity ? 2 * places->capacity : 1024;
		places->all = realloc(places->all, places->capacity * sizeof *places->all);
		assert_non_null(places->all);
	}
	memset(&places->all[places->count], 0, sizeof *places->all);
	places->all[places->count].address = p->address;
	places->all[places->count].length = p->length;
	places->all[places->count].start = p->start;
	places->all[places->count].fresh = p->fresh;
	state_words(places->isa, p->state, places->all[places->count].words);
	places->count++;
}

static struct places trace_with(const char *threads, struct image *image, const struct isa *isa)
{
	struct places places = {.isa = isa};
	struct trace *t;
	setenv("CULPRIT_THREADS", threads, 1);
	t = run(image, isa, &first_only);
	unsetenv("CULPRIT_THREADS");
	trace_each(t, true, note_place, &places);
	trace_free(t);
	return places;
}

static uint32_t random_number(void)
{
	static uint32_t seed = 1;
	seed = seed * 1103515245 + 12345;
	return seed >> 16;
}

#define PROCEDURE 8 /* words */
#define PROCEDURES (4 * BORDER / PROCEDURE + 77)

static uint32_t to_procedure(uint32_t op, size_t from)
{
	size_t to = PROCEDURE * (random_number() * 7 % PROCEDURES);
	return op | ((uint32_t)(to - from) & 0x3ffffff);
}

/* Procedures that call, jump to and fall into each other all over the place; some nothing leads to,
   some never return. */
static void make_procedure(uint32_t *code, size_t at)
{
	uint32_t kind = random_number() % 8, size = 1 + random_number() % 4;
	code[at] = 0xf8000ffe | (512 - 16 * size) << 12; /* str x30, [sp, #-size]! */
	code[at + 1] = 0xb4000080;                       /* cbz x0, . + 16 */
	code[at + 2] = to_procedure(0x94000000, at + 2); /* bl */
	code[at + 3] = kind < 2 ? to_procedure(0x14000000, at + 3) : 0x91000400; /* b, add */
	code[at + 4] = kind == 2 ? 0xd4200000 : 0x91000400;                      /* brk, add */
	code[at + 5] = 0xf84007fe | 16 * size << 12; /* ldr x30, [sp], #size */
	code[at + 6] = kind == 3   ? to_procedure(0x14000000, at + 6)
		       : kind == 4 ? 0xd61f0000    /* br x0 */
				   : 0xd65f03c0;   /* ret */
	code[at + 7] = kind == 5 ? 0 : 0xd503201f; /* no instruction, nop */
}

static void any_number_of_threads(void **state)
{
	uint32_t *code = malloc(PROCEDURES * PROCEDURE * sizeof *code);
	struct image *image;
	struct places one, four;
	(void)state;
	assert_non_null(code);
	for (size_t i = 0; i < PROCEDURES; i++)
		make_procedure(code, i * PROCEDURE);
	image = text_image(&isa_aarch64, code, PROCEDURES * PROCEDURE * sizeof *code);
	one = trace_with("1", image, &isa_aarch64);
	four = trace_with("4", image, &isa_aarch64);
	assert_true(one.count > PROCEDURES * (PROCEDURE - 1));
	assert_int_equal(one.count, four.count);
	for (size_t i = 0; i < one.count; i++)
		assert_memory_equal(&one.all[i], &four.all[i], sizeof one.all[i]);
	image_close(image);
	free(one.all);
	free(four.all);
	free(code);
}

/* ---- what a trace tells ---- */

/* 1000 ret; 1004 data; 100c ret */
static const uint32_t with_gap[] = {0xd65f03c0, 0, 1, 0xd65f03c0};
static const uint64_t gap_entries[] = {0x1000, 0x100c};
static const struct trace_input gap_input = {.entries = gap_entries, .entry_count = 2};

static void each_place_once(void **state)
{
	struct image *image = text_image(&isa_aarch64, with_gap, sizeof with_gap);
	struct trace *t = run(image, &isa_aarch64, &gap_input);
	struct places all = {.isa = &isa_aarch64}, reached = {.isa = &isa_aarch64};
	(void)state;
	trace_each(t, true, note_place, &all);
	assert_int_equal(all.count, 3);
	assert_int_equal(all.all[0].address, 0x1000);
	assert_int_equal(all.all[0].length, 4);
	assert_true(all.all[0].start && all.all[0].fresh);
	assert_int_equal(all.all[1].address, 0x1004);
	assert_int_equal(all.all[1].length, 8);
	assert_string_equal(all.all[1].words, "-");
	assert_false(all.all[1].start || all.all[1].fresh);
	assert_int_equal(all.all[2].address, 0x100c);
	assert_true(all.all[2].start && !all.all[2].fresh);
	trace_each(t, false, note_place, &reached);
	assert_int_equal(reached.count, 2);
	assert_int_equal(reached.all[1].address, 0x100c);
	free(all.all);
	free(reached.all);
	trace_free(t);
	image_close(image);
}

static void bytes_are_those_of_the_code(void **state)
{
	struct image *image = text_image(&isa_aarch64, with_gap, sizeof with_gap);
	struct trace *t = run(image, &isa_aarch64, &gap_input);
	size_t size;
	(void)state;
	assert_memory_equal(trace_bytes(t, 0x1008, &size), &with_gap[2], 8);
	assert_int_equal(size, 8);
	assert_null(trace_bytes(t, 0xfff, &size));
	assert_int_equal(size, 0);
	assert_null(trace_bytes(t, 0x1010, &size));
	assert_null(trace_at(t, 0x1002));
	assert_null(trace_at(t, 0xffc));
	assert_null(trace_at(t, 0x1010));
	assert_non_null(trace_at(t, 0x100c));
	trace_free(t);
	image_close(image);
}

static void no_code_at_all(void **state)
{
	const struct made_section data = {
		.name = ".data", .address = 0x1000, .bytes = with_gap, .size = sizeof with_gap};
	struct image *image = made_image(EM_AARCH64, 0x1000, &data, 1);
	struct trace *t = run(image, &isa_aarch64, &gap_input);
	struct places places = {.isa = &isa_aarch64};
	const uint64_t *starts;
	(void)state;
	assert_int_equal(trace_starts(t, &starts), 0);
	trace_each(t, true, note_place, &places);
	assert_int_equal(places.count, 0);
	trace_free(t);
	trace_free(NULL);
	image_close(image);
}

/* Entries that lie outside, between instructions, or twice in the list. */
static void entries_that_make_no_sense(void **state)
{
	static const uint64_t entries[] = {0, 0x1002, 0x1000, 0x1000, 0x5000, UINT64_MAX};
	struct image *image = text_image(&isa_aarch64, with_gap, 4);
	struct trace *t = run(image, &isa_aarch64,
			      &(struct trace_input){.entries = entries, .entry_count = 6});
	const uint64_t *starts;
	(void)state;
	assert_int_equal(trace_starts(t, &starts), 1);
	assert_int_equal(starts[0], 0x1000);
	trace_free(t);
	image_close(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aarch64_across_borders),      cmocka_unit_test(x86_across_borders),
		cmocka_unit_test(any_number_of_threads),       cmocka_unit_test(each_place_once),
		cmocka_unit_test(bytes_are_those_of_the_code), cmocka_unit_test(no_code_at_all),
		cmocka_unit_test(entries_that_make_no_sense),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
