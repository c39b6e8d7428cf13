/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "image/image.h"
#include "image/lines.h"
#include "scratch.h"
#include "structure/control.h"
#include "structure/encode.h"
#include "structure/extents.h"
#include "structure/pieces.h"
#include "structure/store.h"
#include "structure/structure.h"

#define COUNT(a) (sizeof a / sizeof(*(a)))

/* ---- pieces ---- */

static void the_innermost_span_wins(void **state)
{
	const struct piece_span spans[] = {{0, 100, 1, 1},  {10, 30, 2, 2},   {20, 25, 3, 3},
					   {90, 120, 4, 2}, {200, 210, 5, 1}, {15, 15, 6, 9}};
	const struct piece_span wanted[] = {{0, 10, 1, 0},   {10, 20, 2, 0}, {20, 25, 3, 0},
					    {25, 30, 2, 0},  {30, 90, 1, 0}, {90, 120, 4, 0},
					    {200, 210, 5, 0}};
	struct piece_span *flat;
	size_t count;
	(void)state;
	assert_true(spans_flatten(spans, COUNT(spans), &flat, &count));
	assert_int_equal(count, COUNT(wanted));
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(flat[i].start, wanted[i].start);
		assert_int_equal(flat[i].end, wanted[i].end);
		assert_int_equal(flat[i].context, wanted[i].context);
	}
	free(flat);
	assert_true(spans_flatten(NULL, 0, &flat, &count));
	assert_int_equal(count, 0);
	free(flat);
}

static void pieces_are_cut_where_anything_changes(void **state)
{
	const struct piece_part parts[] = {{100, 140}, {200, 208}};
	const struct line_row rows[] = {{.address = 104, .end = 120, .file = 1, .line = 7},
					{.address = 120, .end = 204, .file = 1, .line = 8}};
	struct control_block blocks[] = {
		{.start = 100, .end = 116, .last = 112, .loop = WEAVE_NONE},
		{.start = 116, .end = 132, .last = 128, .loop = 0, .control = true},
		{.start = 200, .end = 208, .last = 204, .loop = WEAVE_NONE}};
	const struct control control = {.blocks = blocks, .block_count = 3};
	const struct piece_span spans[] = {{124, 136, 1, 1}};
	const struct pieces_input in = {parts, 2, rows, 2, &control, spans, 1};
	const struct weave_piece wanted[] = {
		{.start = 100, .end = 104, .loop = WEAVE_NONE},
		{.start = 104, .end = 116, .line = 7, .loop = WEAVE_NONE},
		{.start = 116, .end = 120, .line = 7, .loop = 0},
		{.start = 120, .end = 124, .line = 8, .loop = 0},
		{.start = 124, .end = 132, .line = 8, .loop = 0, .context = 1, .control = true},
		{.start = 132, .end = 136, .line = 8, .loop = WEAVE_NONE, .context = 1},
		{.start = 136, .end = 140, .line = 8, .loop = WEAVE_NONE},
		{.start = 200, .end = 204, .line = 8, .loop = WEAVE_NONE},
		{.start = 204, .end = 208, .loop = WEAVE_NONE}};
	struct weave_piece *pieces;
	size_t count;
	(void)state;
	assert_true(pieces_cut(&in, &pieces, &count));
	assert_int_equal(count, COUNT(wanted));
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(pieces[i].start, wanted[i].start);
		assert_int_equal(pieces[i].end, wanted[i].end);
		assert_int_equal(pieces[i].line, wanted[i].line);
		assert_int_equal(pieces[i].known, wanted[i].line != 0);
		assert_int_equal(pieces[i].loop, wanted[i].loop);
		assert_int_equal(pieces[i].context, wanted[i].context);
		assert_int_equal(pieces[i].control, wanted[i].control);
	}
	free(pieces);
}

/* Line 0 with the column of what stands before comes from nowhere; without, its file is meant. That is
   not told where the compiler writes no columns, nor beyond the block. */
static void files_without_lines_are_meant(void **state)
{
	const struct piece_part parts[] = {{100, 140}};
	const struct line_row rows[] = {
		{.address = 100, .end = 104, .file = 1, .line = 0},
		{.address = 104, .end = 108, .file = 1, .line = 7, .column = 3},
		{.address = 108, .end = 112, .file = 1, .line = 0, .column = 3},
		{.address = 112, .end = 116, .file = 1, .line = 8, .column = 5},
		{.address = 116, .end = 128, .file = 2, .line = 0},
		{.address = 128, .end = 132, .file = 1, .line = 9},
		{.address = 132, .end = 140, .file = 1, .line = 0},
	};
	struct control_block blocks[] = {
		{.start = 100, .end = 120, .last = 116, .loop = WEAVE_NONE},
		{.start = 120, .end = 140, .last = 136, .loop = WEAVE_NONE}};
	const struct control control = {.blocks = blocks, .block_count = 2};
	const struct pieces_input in = {parts, 1, rows, COUNT(rows), &control, NULL, 0};
	const bool wanted[] = {false, false, false, false, true, false, false, false};
	struct weave_piece *pieces;
	size_t count;
	(void)state;
	assert_true(pieces_cut(&in, &pieces, &count));
	assert_int_equal(count, COUNT(wanted));
	for (size_t i = 0; i < count; i++)
		assert_int_equal(pieces[i].placed, wanted[i]);
	free(pieces);
}

/* ---- the store ---- */

static struct structure_scope sample_scopes[] = {
	{.type = STRUCTURE_PROCEDURE, .name = "f", .file = "f.c", .line = 3, .last_line = 9},
	{.type = STRUCTURE_LOOP,
	 .file = "f.c",
	 .line = 5,
	 .last_line = 4,
	 .header = 0xff8,
	 .irreducible = true},
	{.type = STRUCTURE_INLINE,
	 .parent = 1,
	 .name = "g",
	 .file = "g.h",
	 .line = 1,
	 .last_line = 2,
	 .call_file = "f.c",
	 .call_line = 6,
	 .guessed = true},
	{.type = STRUCTURE_LINE, .parent = 2, .file = "g.h", .line = 2, .last_line = 2}};
static struct structure_range sample_ranges[] = {
	{0x900, 0x910, 3}, {0x1000, 0x1004, 0}, {0x1004, 0x1010, 1}};
static const struct structure_procedure sample = {.scopes = sample_scopes,
						  .scope_count = 4,
						  .ranges = sample_ranges,
						  .range_count = 3,
						  .start = 0x1000,
						  .unresolved = 2,
						  .lines_only = true};

static void expect_text(const char *a, const char *b)
{
	if (!b)
		assert_null(a);
	else
		assert_string_equal(a, b);
}

static void expect_sample(const struct structure_procedure *p)
{
	assert_non_null(p);
	assert_int_equal(p->start, sample.start);
	assert_int_equal(p->unresolved, 2);
	assert_true(p->lines_only && !p->over_budget);
	assert_int_equal(p->scope_count, 4);
	assert_int_equal(p->range_count, 3);
	for (size_t i = 0; i < 4; i++) {
		const struct structure_scope *a = &p->scopes[i], *b = &sample.scopes[i];
		assert_int_equal(a->type, b->type);
		assert_int_equal(a->parent, b->parent);
		assert_int_equal(a->line, b->line);
		assert_int_equal(a->last_line, b->last_line);
		assert_int_equal(a->call_line, b->call_line);
		assert_int_equal(a->header, b->header);
		assert_int_equal(a->guessed, b->guessed);
		assert_int_equal(a->irreducible, b->irreducible);
		expect_text(a->name, b->name);
		expect_text(a->file, b->file);
		expect_text(a->call_file, b->call_file);
	}
	assert_memory_equal(p->ranges, sample.ranges, sizeof sample_ranges);
}

/* Two procedures, the first in two parts. */
static void make_extents(struct extents *x)
{
	static const uint32_t entry_of[] = {1, 2};
	memset(x, 0, sizeof *x);
	x->parts = calloc(3, sizeof *x->parts);
	x->procedures = calloc(2, sizeof *x->procedures);
	x->parts[0] = (struct extent){0x900, 0x910, 0};
	x->parts[1] = (struct extent){0x1000, 0x1010, 0};
	x->parts[2] = (struct extent){0x2000, 0x2010, 1};
	x->part_count = 3;
	x->procedures[0].name = "f";
	x->procedure_count = 2;
	assert_true(extents_group(x, entry_of));
}

static const uint8_t key[STORE_KEY_SIZE] = {1, 2, 3};

static void what_is_stored_comes_back(void **state)
{
	const char *path = scratch("store");
	struct extents x, y;
	struct store s;
	struct structure_procedure *p;
	uint8_t other[STORE_KEY_SIZE] = {9};
	(void)state;
	make_extents(&x);
	assert_true(store_start(&s, 2));
	assert_null(store_get(&s, 0));
	store_put(&s, 0, &sample);
	p = store_get(&s, 0);
	expect_sample(p);
	structure_procedure_free(p);
	assert_null(store_get(&s, 1));
	assert_null(store_get(&s, 2));
	store_save(&s, AT_FDCWD, path, key, &x);
	store_free(&s);

	assert_false(store_load(&s, AT_FDCWD, path, other, &y));
	assert_true(store_load(&s, AT_FDCWD, path, key, &y));
	assert_int_equal(y.procedure_count, 2);
	assert_string_equal(y.procedures[0].name, "f");
	assert_null(y.procedures[1].name);
	assert_int_equal(extents_start(&y, 0), 0x1000);
	assert_int_equal(extents_at(&y, 0x905), 0);
	assert_int_equal(extents_at(&y, 0x200f), 1);
	assert_int_equal(extents_at(&y, 0x2010), EXTENT_NONE);
	p = store_get(&s, 0);
	expect_sample(p);
	structure_procedure_free(p);
	/* One more, and both are in the next file. */
	store_put(&s, 1, &sample);
	store_save(&s, AT_FDCWD, path, key, &y);
	store_free(&s);
	extents_free(&y);
	assert_true(store_load(&s, AT_FDCWD, path, key, &y));
	for (uint32_t i = 0; i < 2; i++) {
		p = store_get(&s, i);
		expect_sample(p);
		structure_procedure_free(p);
	}
	store_free(&s);
	extents_free(&y);
	extents_free(&x);
}

/* Whatever byte is changed, wherever it is cut: nothing or the truth, never anything else. */
static void a_damaged_file_is_noticed(void **state)
{
	const char *path = scratch("damaged");
	struct extents x, y;
	struct store s;
	struct stat st;
	int fd;
	(void)state;
	make_extents(&x);
	assert_true(store_start(&s, 2));
	store_put(&s, 0, &sample);
	store_save(&s, AT_FDCWD, path, key, &x);
	store_free(&s);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	for (off_t at = 0; at < st.st_size; at++) {
		uint8_t byte, changed;
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		changed = byte ^ 0x41;
		assert_int_equal(pwrite(fd, &changed, 1, at), 1);
		if (store_load(&s, AT_FDCWD, path, key, &y)) {
			assert_null(store_get(&s, 0));
			store_free(&s);
			extents_free(&y);
		}
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	for (off_t size = st.st_size; size-- > 0;) {
		assert_int_equal(ftruncate(fd, size), 0);
		assert_false(store_load(&s, AT_FDCWD, path, key, &y));
	}
	close(fd);
	extents_free(&x);
}

static uint32_t number_text(void *context, const char *text)
{
	(void)text;
	return ++*(uint32_t *)context;
}

static void foreign_bytes_are_refused(void **state)
{
	static const char *const texts[] = {NULL, "a", "b", "c", "d", "e", "f", "g", "h", "i"};
	uint32_t next = 0;
	const struct encode_texts numbers = {number_text, &next};
	struct buf bytes = {0};
	(void)state;
	assert_true(encode_procedure(&sample, &numbers, &bytes));
	for (size_t size = 0; size < bytes.size; size++)
		assert_null(decode_procedure((uint8_t *)bytes.data, size, texts, 10));
	assert_null(decode_procedure((uint8_t *)bytes.data, bytes.size, texts, 2));
	for (size_t i = 0; i < bytes.size; i++)
		for (int value = 0; value < 256; value++) {
			char before = bytes.data[i];
			struct structure_procedure *p;
			bytes.data[i] = (char)value;
			p = decode_procedure((uint8_t *)bytes.data, bytes.size, texts, 10);
			for (size_t k = 1; p && k < p->scope_count; k++)
				assert_true(p->scopes[k].parent < k);
			for (size_t k = 0; p && k < p->range_count; k++)
				assert_true(p->ranges[k].scope < p->scope_count);
			structure_procedure_free(p);
			bytes.data[i] = before;
		}
	buf_free(&bytes);
}

/* ---- a program ---- */

static const char program[] =
	"static inline __attribute__((always_inline)) int twice(const int *a, int n)\n" /* 1 */
	"{\n"
	"	int sum = 0;\n"
	"	for (int i = 0; i < n; i++)\n" /* 4 */
	"		sum += a[i] ^ n;\n"
	"	return sum * 2;\n"
	"}\n"
	"\n"
	"__attribute__((noinline)) int outer(const int *a, int n, int m)\n" /* 9 */
	"{\n"
	"	int sum = 0;\n"
	"	for (int k = 0; k < m; k++)\n" /* 12 */
	"		sum -= twice(a + k, n);\n"
	"	return sum;\n"
	"}\n"
	"\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	int a[32] = {argc};\n"
	"	(void)argv;\n"
	"	return outer(a, argc, 16);\n"
	"}\n";

/* The chain of the deepest loop of `outer`, as text from the inside out. */
static void expect_chain(struct structure *structure, const char *wanted, bool guessed)
{
	char text[256] = "";
	const struct structure_procedure *p = NULL;
	uint32_t at = 0, best = 0;
	for (size_t i = 0; i < structure_count(structure); i++) {
		const char *name;
		uint64_t entry = structure_entry(structure, i, &name);
		if (name && !strcmp(name, "outer"))
			p = structure_find(structure, entry);
	}
	assert_non_null(p);
	assert_int_equal(p->lines_only, guessed);
	for (uint32_t i = 0; i < p->scope_count; i++) {
		uint32_t depth = 0;
		for (uint32_t up = i; up; up = p->scopes[up].parent)
			depth += p->scopes[up].type == STRUCTURE_LOOP;
		if (p->scopes[i].type == STRUCTURE_LOOP && depth > best) {
			best = depth;
			at = i;
		}
	}
	for (;; at = p->scopes[at].parent) {
		const struct structure_scope *s = &p->scopes[at];
		size_t used = strlen(text);
		if (s->type == STRUCTURE_LOOP)
			snprintf(text + used, sizeof text - used, "loop %u, ", s->line);
		else
			snprintf(text + used, sizeof text - used, "%s %u call %u, ", s->name,
				 s->line, s->call_line);
		if (s->type == STRUCTURE_INLINE)
			assert_int_equal(s->guessed, guessed);
		if (!at)
			break;
	}
	assert_string_equal(text, wanted);
	for (size_t i = 0; i < p->range_count; i++)
		for (uint64_t x = p->ranges[i].start; x < p->ranges[i].end; x++)
			assert_int_equal(structure_scope_at(p, x), p->ranges[i].scope);
}

static struct err *count_procedures(void *context, const struct structure_procedure *p)
{
	size_t *count = context;
	assert_true(p->scope_count && p->scopes[0].type == STRUCTURE_PROCEDURE);
	++*count;
	return NULL;
}

static void a_program_has_its_structure(void **state)
{
	struct structure_options options = {0};
	struct structure *structure;
	struct image *image;
	(void)state;
	scratch_compile("structured", program, "-O1 -g");
	assert_null(image_open(scratch("structured"), &image));
	for (int round = 0; round < 4; round++) { /* the second time from the cache */
		size_t count = 0;
		options.source = round / 2 ? STRUCTURE_LINES_ONLY : STRUCTURE_AUTO;
		assert_null(structure_open(image, &options, &structure));
		assert_null(structure_damage(structure));
		expect_chain(structure,
			     round / 2 ? "loop 4, twice 1 call 0, loop 12, outer 9 call 0, "
				       : "loop 4, twice 1 call 13, loop 12, outer 9 call 0, ",
			     round / 2);
		assert_null(structure_each(structure, round % 2 ? 1 : 0, count_procedures, &count));
		assert_int_equal(count, structure_count(structure));
		assert_null(structure_find(structure, 0));
		structure_close(structure);
	}
	image_close(image);
}

static void too_little_time_leaves_loops_out(void **state)
{
	struct structure_options options = {.budget_ns = 1};
	struct structure *structure;
	struct image *image;
	bool left_out = false;
	(void)state;
	scratch_compile("hurried", program, "-O1 -g");
	assert_null(image_open(scratch("hurried"), &image));
	assert_null(structure_open(image, &options, &structure));
	for (size_t i = 0; i < structure_count(structure); i++) {
		const char *name;
		const struct structure_procedure *p = structure_find(
			structure, structure_entry(structure, i, &name));
		assert_non_null(p);
		left_out |= p->over_budget;
		for (size_t k = 0; p->over_budget && k < p->scope_count; k++)
			assert_int_not_equal(p->scopes[k].type, STRUCTURE_LOOP);
	}
	assert_true(left_out);
	structure_close(structure);
	image_close(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_innermost_span_wins),
		cmocka_unit_test(pieces_are_cut_where_anything_changes),
		cmocka_unit_test(files_without_lines_are_meant),
		cmocka_unit_test(what_is_stored_comes_back),
		cmocka_unit_test(a_damaged_file_is_noticed),
		cmocka_unit_test(foreign_bytes_are_refused),
		cmocka_unit_test(a_program_has_its_structure),
		cmocka_unit_test(too_little_time_leaves_loops_out),
	};
	setenv("XDG_CACHE_HOME", scratch("."), 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
