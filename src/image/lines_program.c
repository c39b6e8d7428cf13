/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the program of a line table. Every row that it makes takes at least a
 * byte of it, so the rows are bounded by its size. Sequences come in any order,
 * and those of functions that the linker dropped lie outside of the code.
 */
#include <stdlib.h>
#include <string.h>

#include "image/dwarf_module.h"
#include "image/dwarf_names.h"
#include "image/lines_table.h"

struct full_row {
	uint64_t address;
	struct packed_row row; /* its offset is not set yet */
};

struct machine {
	struct line_table *table;
	struct dwarf_cursor c;
	uint64_t code_start, code_end;

	uint64_t address, file;
	uint32_t line, column, discriminator;
	bool statement;

	struct full_row *sequence; /* the rows of the one that is being made */
	size_t count, room;
	bool unsorted, failed;
	uint32_t extra[16]; /* lines_file() of files that the program itself defines */
	size_t extra_count;
	size_t row_room, sequence_room;
};

static void reset(struct machine *m)
{
	m->address = 0;
	m->file = 1;
	m->line = 1;
	m->column = 0;
	m->discriminator = 0;
	m->statement = m->table->statement;
	m->count = 0;
	m->unsorted = false;
}

static bool grow(void **array, size_t count, size_t *room, size_t size)
{
	size_t more = *room ? *room * 2 : 256;
	void *moved;
	if (count < *room)
		return true;
	moved = reallocarray(*array, more, size);
	if (!moved)
		return false;
	*array = moved;
	*room = more;
	return true;
}

/* ---- rows ---- */

static uint32_t current_file(struct machine *m)
{
	if (m->file < m->table->file_count)
		return line_table_file(m->table, m->file);
	if (m->file - m->table->file_count < m->extra_count)
		return m->extra[m->file - m->table->file_count];
	return 0;
}

static void add_row(struct machine *m)
{
	struct full_row *last = m->count ? &m->sequence[m->count - 1] : NULL;
	struct full_row *row;
	if (last && last->address == m->address) {
		row = last; /* no instruction is between: the later one counts */
	} else {
		m->unsorted |= last && m->address < last->address;
		if (!grow((void **)&m->sequence, m->count, &m->room, sizeof *m->sequence)) {
			m->failed = true;
			return;
		}
		row = &m->sequence[m->count++];
	}
	row->address = m->address;
	row->row.file = current_file(m);
	row->row.line = m->line;
	row->row.column = m->column <= UINT16_MAX ? (uint16_t)m->column : 0;
	row->row.rest = (uint16_t)(m->discriminator << 1 | m->statement);
	m->discriminator = 0;
}

/* Stable, since of rows with one address the last counts. */
static void sort_rows(struct machine *m)
{
	struct full_row *from = m->sequence, *to = malloc(m->count * sizeof *to), *swap;
	if (!to) {
		m->failed = true;
		return;
	}
	for (size_t width = 1; width < m->count; width *= 2) {
		for (size_t at = 0; at < m->count; at += 2 * width) {
			size_t middle = at + width < m->count ? at + width : m->count;
			size_t end = at + 2 * width < m->count ? at + 2 * width : m->count;
			size_t left = at, right = middle, out = at;
			while (left < middle || right < end) {
				bool take_left = right == end ||
						 (left < middle &&
						  from[left].address <= from[right].address);
				to[out++] = take_left ? from[left++] : from[right++];
			}
		}
		swap = from;
		from = to;
		to = swap;
	}
	m->sequence = from;
	m->room = m->count;
	free(to);
}

/* ---- sequences ---- */

/* Packs the rows of a sequence that ends at m->address. */
static void pack_rows(struct machine *m, uint64_t start, uint64_t end)
{
	struct line_table *t = m->table;
	size_t first = t->row_count;
	for (size_t i = 0; i < m->count && m->sequence[i].address < end; i++) {
		struct packed_row row = m->sequence[i].row;
		row.offset = (uint32_t)(m->sequence[i].address - start);
		if (t->row_count > first && t->rows[t->row_count - 1].offset == row.offset)
			t->row_count--;
		if (!grow((void **)&t->rows, t->row_count, &m->row_room, sizeof *t->rows)) {
			m->failed = true;
			return;
		}
		t->rows[t->row_count++] = row;
	}
	if (!grow((void **)&t->sequences, t->sequence_count, &m->sequence_room,
		  sizeof *t->sequences)) {
		m->failed = true;
		return;
	}
	t->sequences[t->sequence_count++] = (struct line_sequence){start, end, first,
								   t->row_count - first};
}

static void end_sequence(struct machine *m)
{
	uint64_t start, end = m->address;
	if (m->unsorted)
		sort_rows(m);
	if (m->count && !m->failed) {
		start = m->sequence[0].address;
		if (start >= m->code_start && end <= m->code_end && start < end &&
		    end - start <= UINT32_MAX)
			pack_rows(m, start, end);
	}
	reset(m);
}

static int compare_sequences(const void *a, const void *b)
{
	const struct line_sequence *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* Cuts what an earlier one covers already. */
static void part_sequences(struct line_table *t)
{
	size_t kept = 0;
	uint64_t covered = 0;
	if (t->sequence_count)
		qsort(t->sequences, t->sequence_count, sizeof *t->sequences, compare_sequences);
	for (size_t i = 0; i < t->sequence_count; i++) {
		struct line_sequence s = t->sequences[i];
		uint64_t start = s.start;
		if (s.end <= covered)
			continue;
		while (s.start < covered && s.count > 1 &&
		       start + t->rows[s.first + 1].offset <= covered) {
			s.first++;
			s.count--;
		}
		/* Offsets count from the start: it moves, and the rows with it. */
		if (s.start < covered) {
			for (size_t k = 0; k < s.count; k++) {
				uint64_t at = start + t->rows[s.first + k].offset;
				t->rows[s.first + k].offset = at > covered
								      ? (uint32_t)(at - covered)
								      : 0;
			}
			s.start = covered;
		}
		t->sequences[kept++] = s;
		covered = s.end;
	}
	t->sequence_count = kept;
}

/* ---- opcodes ---- */

static void advance(struct machine *m, uint64_t steps)
{
	m->address += steps * m->table->minimum;
}

static void define_file(struct machine *m, struct dwarf_cursor *c)
{
	struct line_table *t = m->table;
	const char *name = dwarf_take_string(c);
	uint64_t directory = dwarf_take_uleb(c);
	if (c->bad || m->extra_count == sizeof m->extra / sizeof m->extra[0])
		return;
	m->extra[m->extra_count++] = lines_intern(t, directory, name);
}

static void run_extended(struct machine *m)
{
	uint64_t length = dwarf_take_uleb(&m->c);
	struct dwarf_cursor c = m->c;
	if (!dwarf_skip(&m->c, length) || length == 0)
		return;
	c.end = m->c.at;
	switch (dwarf_take(&c, 1)) {
	case DW_LNE_end_sequence:
		end_sequence(m);
		break;
	case DW_LNE_set_address:
		m->address = dwarf_take(&c, dwarf_left(&c) < 8 ? dwarf_left(&c) : 8);
		break;
	case DW_LNE_define_file:
		define_file(m, &c);
		break;
	case DW_LNE_set_discriminator:
		m->discriminator = (uint32_t)dwarf_take_uleb(&c);
		break;
	}
}

static void pass_operands(struct machine *m, uint8_t opcode)
{
	for (int i = 0; i < m->table->operands[opcode - 1]; i++)
		dwarf_take_uleb(&m->c);
}

static void run_standard(struct machine *m, uint8_t opcode)
{
	const struct line_table *t = m->table;
	switch (opcode) {
	case DW_LNS_copy:
		add_row(m);
		break;
	case DW_LNS_advance_pc:
		advance(m, dwarf_take_uleb(&m->c));
		break;
	case DW_LNS_advance_line:
		m->line += (uint32_t)dwarf_take_sleb(&m->c);
		break;
	case DW_LNS_set_file:
		m->file = dwarf_take_uleb(&m->c);
		break;
	case DW_LNS_set_column:
		m->column = (uint32_t)dwarf_take_uleb(&m->c);
		break;
	case DW_LNS_negate_stmt:
		m->statement = !m->statement;
		break;
	case DW_LNS_const_add_pc:
		advance(m, (255u - t->opcode_base) / t->line_range);
		break;
	case DW_LNS_fixed_advance_pc:
		m->address += dwarf_take(&m->c, 2);
		break;
	default: /* of no consequence, or not known: the header says what it takes */
		pass_operands(m, opcode);
	}
}

static void run(struct machine *m)
{
	const struct line_table *t = m->table;
	while (m->c.at < m->c.end && !m->c.bad && !m->failed) {
		uint8_t opcode = *m->c.at++;
		if (opcode >= t->opcode_base) {
			unsigned int rest = opcode - t->opcode_base;
			m->line += (uint32_t)(t->line_base + (int)(rest % t->line_range));
			advance(m, rest / t->line_range);
			add_row(m);
		} else if (opcode == 0) {
			run_extended(m);
		} else {
			run_standard(m, opcode);
		}
	}
}

static void give_back(struct line_table *t)
{
	void *smaller = t->row_count ? realloc(t->rows, t->row_count * sizeof *t->rows) : NULL;
	if (smaller)
		t->rows = smaller;
	smaller = t->sequence_count
			  ? realloc(t->sequences, t->sequence_count * sizeof *t->sequences)
			  : NULL;
	if (smaller)
		t->sequences = smaller;
}

void line_table_make_rows(struct line_table *t)
{
	struct machine m = {.table = t};
	t->has_rows = true;
	if (!t->good)
		return;
	dwarf_module_code(lines_module(t->lines), &m.code_start, &m.code_end);
	m.c = (struct dwarf_cursor){t->program.bytes, t->program.bytes + t->program.size, false};
	reset(&m);
	run(&m);
	if (m.c.bad || m.failed || m.count)
		dwarf_note(t->file->note, "the line table at %#llx is broken",
			   (unsigned long long)t->offset);
	free(m.sequence);
	part_sequences(t);
	give_back(t);
}

void line_table_drop_rows(struct line_table *t)
{
	free(t->rows);
	free(t->sequences);
	t->rows = NULL;
	t->sequences = NULL;
	t->row_count = t->sequence_count = 0;
	t->has_rows = false;
}
