/* SPDX-License-Identifier: Apache-2.0 */
#include "script/python.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "image/image.h"

#define INTERPRETERS_MAX 1024u
#define THREADS_MAX 65536u
#define NAME_MAX_BYTES 4096u /* characters of a name or path */
#define LINES_MAX (1u << 20) /* bytes of a table of lines */
#define PYTHON_3_11 0x030bu
#define PYTHON_3_13 0x030du
#define PYTHON_3_14 0x030eu
#define PYTHON_3_15 0x030fu
#define OWNER_C_STACK \
	3 /* the frame is on the C stack: it ends the frames of one call of the C function */

/* ---- the file ---- */

struct wanted {
	const char *name;
	uint64_t *address;
};

static void find_symbols(struct image *image, const struct wanted *wanted, size_t count)
{
	size_t size, names_size;
	const struct image_section *sections, *table = image_section(image, ".dynsym");
	size_t section_count = image_sections(image, &sections);
	if (!table || table->link >= section_count)
		return;
	const uint8_t *symbols = image_section_bytes(image, table, &size);
	const char *names = (const char *)image_section_bytes(image, &sections[table->link],
							      &names_size);
	Elf64_Sym symbol;
	for (size_t at = 0; symbols && names && size - at >= sizeof symbol; at += sizeof symbol) {
		memcpy(&symbol, symbols + at, sizeof symbol);
		if (symbol.st_name >= names_size || !symbol.st_value ||
		    ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT)
			continue;
		const char *name = names + symbol.st_name;
		size_t length = strnlen(name, names_size - symbol.st_name);
		for (size_t i = 0; i < count; i++)
			if (strlen(wanted[i].name) == length &&
			    !memcmp(name, wanted[i].name, length))
				*wanted[i].address = symbol.st_value;
	}
}

bool python_in_file(struct image *image, struct python_file *out)
{
	uint64_t version = 0;
	size_t size;
	*out = (struct python_file){0};
	const struct wanted wanted[] = {{"_PyRuntime", &out->runtime},
					{"PyCode_Type", &out->code_type},
					{"Py_Version", &version}};
	find_symbols(image, wanted, sizeof wanted / sizeof *wanted);
	const uint8_t *bytes = version ? image_bytes_at(image, version, &size) : NULL;
	if (!out->runtime || !out->code_type || !bytes || size < 4)
		return false;
	out->version = (uint32_t)bytes[3] << 8 | bytes[2]; /* 0x030b02f0: 3.11.2 */
	return out->version >= PYTHON_3_11;
}

bool python_is_understood(const struct python_file *file)
{
	return file->version >= PYTHON_3_11 && file->version <= PYTHON_3_15;
}

/* ---- where things are ---- */

static const struct python python_3_11 = {
	.layout = {.runtime_interpreter = 40,
		   .interpreter_next = 0,
		   .interpreter_thread = 16,
		   .thread_next = 8,
		   .thread_ident = 152,
		   .by_record = 1,
		   .has_record = 1,
		   .thread_calls = 56,
		   .record_frame = 8,
		   .record_previous = 16,
		   .frame_code = 32,
		   .frame_previous = 48,
		   .frame_instruction = 56,
		   .frame_mark = 68,
		   .mark_last = 1},
	.code_file = 112,
	.code_name = 128,
	.code_lines = 136,
	.code_line = 72,
	.code_start = 184,
	.text_size = 48,
	.text_wide = 72,
};

static const struct python python_3_12 = {
	.layout = {.runtime_interpreter = 40,
		   .interpreter_next = 0,
		   .interpreter_thread = 72,
		   .thread_next = 8,
		   .thread_ident = 136,
		   .has_record = 1,
		   .thread_calls = 56,
		   .record_frame = 0,
		   .frame_code = 0,
		   .frame_previous = 8,
		   .frame_instruction = 56,
		   .frame_mark = 70,
		   .mark_last = OWNER_C_STACK},
	.code_file = 112,
	.code_name = 128,
	.code_lines = 136,
	.code_line = 68,
	.code_start = 192,
	.text_size = 40,
	.text_wide = 56,
};

/* From 3.13 on, the runtime begins with a list of offsets, each a word: these of them are used. */
enum told {
	TOLD_INTERPRETER,
	TOLD_INTERPRETER_NEXT,
	TOLD_THREAD,
	TOLD_THREAD_NEXT,
	TOLD_THREAD_FRAME,
	TOLD_THREAD_IDENT,
	TOLD_FRAME_PREVIOUS,
	TOLD_FRAME_CODE,
	TOLD_FRAME_INSTRUCTION,
	TOLD_FRAME_OWNER,
	TOLD_CODE_FILE,
	TOLD_CODE_NAME,
	TOLD_CODE_LINES,
	TOLD_CODE_LINE,
	TOLD_CODE_START,
	TOLD_OBJECT_SIZE,
	TOLD_OBJECT_TYPE,
	TOLD_TEXT_STATE,
	TOLD_TEXT_LENGTH,
	TOLD_TEXT_SIZE,
	TOLD_COUNT,
};
#define TOLD_COOKIE 0  /* a word that says that there is a list */
#define TOLD_VERSION 1 /* as in Py_Version */
#define TOLD_WORDS 93  /* that are read */

/* Where they are in the list. */
static const uint8_t told_3_13[TOLD_COUNT] = {
	[TOLD_INTERPRETER] = 5,     [TOLD_INTERPRETER_NEXT] = 8, [TOLD_THREAD] = 9,
	[TOLD_THREAD_NEXT] = 21,    [TOLD_THREAD_FRAME] = 23,    [TOLD_THREAD_IDENT] = 24,
	[TOLD_FRAME_PREVIOUS] = 29, [TOLD_FRAME_CODE] = 30,      [TOLD_FRAME_INSTRUCTION] = 31,
	[TOLD_FRAME_OWNER] = 33,    [TOLD_CODE_FILE] = 35,       [TOLD_CODE_NAME] = 37,
	[TOLD_CODE_LINES] = 38,     [TOLD_CODE_LINE] = 39,       [TOLD_CODE_START] = 43,
	[TOLD_OBJECT_SIZE] = 44,    [TOLD_OBJECT_TYPE] = 45,     [TOLD_TEXT_STATE] = 68,
	[TOLD_TEXT_LENGTH] = 69,    [TOLD_TEXT_SIZE] = 70,
};
static const uint8_t told_3_14[TOLD_COUNT] = {
	[TOLD_INTERPRETER] = 5,     [TOLD_INTERPRETER_NEXT] = 8, [TOLD_THREAD] = 9,
	[TOLD_THREAD_NEXT] = 24,    [TOLD_THREAD_FRAME] = 26,    [TOLD_THREAD_IDENT] = 27,
	[TOLD_FRAME_PREVIOUS] = 32, [TOLD_FRAME_CODE] = 33,      [TOLD_FRAME_INSTRUCTION] = 34,
	[TOLD_FRAME_OWNER] = 36,    [TOLD_CODE_FILE] = 40,       [TOLD_CODE_NAME] = 42,
	[TOLD_CODE_LINES] = 43,     [TOLD_CODE_LINE] = 44,       [TOLD_CODE_START] = 48,
	[TOLD_OBJECT_SIZE] = 50,    [TOLD_OBJECT_TYPE] = 51,     [TOLD_TEXT_STATE] = 78,
	[TOLD_TEXT_LENGTH] = 79,    [TOLD_TEXT_SIZE] = 80,
};
static const uint8_t told_3_15[TOLD_COUNT] = {
	[TOLD_INTERPRETER] = 5,     [TOLD_INTERPRETER_NEXT] = 8, [TOLD_THREAD] = 9,
	[TOLD_THREAD_NEXT] = 24,    [TOLD_THREAD_FRAME] = 26,    [TOLD_THREAD_IDENT] = 30,
	[TOLD_FRAME_PREVIOUS] = 40, [TOLD_FRAME_CODE] = 41,      [TOLD_FRAME_INSTRUCTION] = 42,
	[TOLD_FRAME_OWNER] = 44,    [TOLD_CODE_FILE] = 48,       [TOLD_CODE_NAME] = 50,
	[TOLD_CODE_LINES] = 51,     [TOLD_CODE_LINE] = 52,       [TOLD_CODE_START] = 56,
	[TOLD_OBJECT_SIZE] = 58,    [TOLD_OBJECT_TYPE] = 59,     [TOLD_TEXT_STATE] = 90,
	[TOLD_TEXT_LENGTH] = 91,    [TOLD_TEXT_SIZE] = 92,
};

static const uint8_t *places_in_list(uint32_t version)
{
	return version == PYTHON_3_13 ? told_3_13 : version == PYTHON_3_14 ? told_3_14 : told_3_15;
}

/* Reads the list. False: it is none, or not in the order of this version, or objects are not as usual (in builds
   without the global lock they are not). */
static bool read_list(const struct python_memory *memory, uint64_t runtime, uint32_t version,
		      uint32_t told[TOLD_COUNT])
{
	const uint8_t *at = places_in_list(version);
	uint64_t words[TOLD_WORDS];
	if (!memory->read(memory->context, runtime, words, sizeof words) ||
	    memcmp(&words[TOLD_COOKIE], "xdebugpy", sizeof *words) != 0 ||
	    words[TOLD_VERSION] >> 16 != version)
		return false;
	for (size_t i = 0; i < TOLD_COUNT; i++) {
		if (words[at[i]] > UINT32_MAX / 2)
			return false;
		told[i] = (uint32_t)words[at[i]];
	}
	return told[TOLD_OBJECT_SIZE] == PYTHON_LENGTH && told[TOLD_OBJECT_TYPE] == PYTHON_TYPE &&
	       told[TOLD_TEXT_LENGTH] == PYTHON_LENGTH &&
	       told[TOLD_TEXT_STATE] == PYTHON_TEXT_STATE;
}

static bool read_told(const struct python_memory *memory, uint32_t version, struct python *out)
{
	uint32_t told[TOLD_COUNT];
	if (!read_list(memory, out->runtime, version, told))
		return false;
	out->layout = (struct python_layout){
		.runtime_interpreter = told[TOLD_INTERPRETER],
		.interpreter_next = told[TOLD_INTERPRETER_NEXT],
		.interpreter_thread = told[TOLD_THREAD],
		.thread_next = told[TOLD_THREAD_NEXT],
		.thread_ident = told[TOLD_THREAD_IDENT],
		.thread_calls = told[TOLD_THREAD_FRAME],
		.frame_code = told[TOLD_FRAME_CODE],
		.frame_previous = told[TOLD_FRAME_PREVIOUS],
		.frame_instruction = told[TOLD_FRAME_INSTRUCTION],
		.frame_mark = told[TOLD_FRAME_OWNER],
		.mark_last = OWNER_C_STACK,
	};
	out->code_file = told[TOLD_CODE_FILE];
	out->code_name = told[TOLD_CODE_NAME];
	out->code_lines = told[TOLD_CODE_LINES];
	out->code_line = told[TOLD_CODE_LINE];
	out->code_start = told[TOLD_CODE_START];
	out->text_size = told[TOLD_TEXT_SIZE];
	out->text_wide = out->text_size + 16;
	return true;
}

bool python_open(const struct python_file *file, uint64_t bias, const struct python_memory *memory,
		 struct python *out)
{
	*out = file->version == PYTHON_3_11 ? python_3_11 : python_3_12;
	out->runtime = file->runtime + bias;
	out->code_type = file->code_type + bias;
	return python_is_understood(file) &&
	       (file->version < PYTHON_3_13 || read_told(memory, file->version, out));
}

/* ---- copies ---- */

bool python_read_pieces(void *context, uint64_t address, void *out, size_t size)
{
	const struct python_pieces *c = context;
	struct python_piece piece;
	for (uint64_t at = 0; c->size - at >= sizeof piece; at += sizeof piece + piece.size) {
		memcpy(&piece, c->bytes + at, sizeof piece);
		if (piece.size > c->size - at - sizeof piece)
			return false;
		uint64_t offset = address - piece.address;
		if (offset > piece.size || size > piece.size - offset)
			continue;
		memcpy(out, c->bytes + at + sizeof piece + offset, size);
		return true;
	}
	return false;
}

/* ---- calls ---- */

static uint64_t word(const struct python_memory *memory, uint64_t address)
{
	uint64_t value;
	return memory->read(memory->context, address, &value, sizeof value) ? value : 0;
}

void python_threads(const struct python *p, const struct python_memory *memory,
		    bool (*see)(void *context, uint64_t thread), void *context)
{
	const struct python_layout *l = &p->layout;
	uint64_t interpreter = word(memory, p->runtime + l->runtime_interpreter);
	unsigned left = THREADS_MAX;
	for (unsigned i = 0; interpreter && i < INTERPRETERS_MAX; i++) {
		uint64_t thread = word(memory, interpreter + l->interpreter_thread);
		for (; thread && left; left--) {
			if (!see(context, thread))
				return;
			thread = word(memory, thread + l->thread_next);
		}
		interpreter = word(memory, interpreter + l->interpreter_next);
	}
}

/* Adds the calls from `frame` on, up to the one that ends those of one call of the C function. */
static size_t add_calls(const struct python *p, const struct python_memory *memory, uint64_t *frame,
			struct python_call *calls, size_t max)
{
	const struct python_layout *l = &p->layout;
	size_t count = 0;
	while (*frame && count < max) {
		uint8_t mark = 0;
		uint64_t here = *frame;
		memory->read(memory->context, here + l->frame_mark, &mark, sizeof mark);
		bool last = mark == l->mark_last;
		*frame = word(memory, here + l->frame_previous);
		if (last && !l->by_record) {
			calls[count++] = (struct python_call){.instruction = here};
			break;
		}
		/* References have marks in their lowest bits. */
		uint64_t code = word(memory, here + l->frame_code) & ~7ull;
		if (!code) { /* that is no frame */
			*frame = 0;
			break;
		}
		calls[count++] = (struct python_call){
			.code = code, .instruction = word(memory, here + l->frame_instruction)};
		if (last)
			break;
	}
	return count;
}

size_t python_calls(const struct python *p, const struct python_memory *memory, uint64_t thread,
		    struct python_call *calls, size_t max)
{
	const struct python_layout *l = &p->layout;
	uint64_t at = word(memory, thread + l->thread_calls);
	size_t count = 0;
	if (l->has_record && !l->by_record)
		at = word(memory, at + l->record_frame);
	while (at && count < max) {
		uint64_t frame = l->by_record ? word(memory, at + l->record_frame) : at;
		count += add_calls(p, memory, &frame, calls + count, max - count);
		if (!l->by_record) {
			at = frame;
			continue;
		}
		if (count < max)
			calls[count++] = (struct python_call){.instruction = at};
		at = word(memory, at + l->record_previous);
	}
	return count;
}

/* ---- functions ---- */

/* Characters have 1, 2 or 4 bytes. */
static char *to_utf8(const uint8_t *from, size_t count, unsigned bytes)
{
	char *text = malloc(count * 4 + 1), *to = text;
	for (size_t i = 0; text && i < count; i++) {
		uint32_t c = 0;
		memcpy(&c, from + i * bytes, bytes);
		to += utf8_encode(c, to);
	}
	if (text)
		*to = '\0';
	return text;
}

/* The flags of a str object: how many bytes a character has, whether the text is behind its head, whether it is ASCII.
   Before them is how it is interned (at most 3), in two bits, or in sixteen: some releases of 3.14 have it so. Text that
   is behind its head has a flag that is within the sixteen bits if they are not all of that number. */
static uint32_t text_flags(uint32_t state)
{
	return (state & 0xffff) <= 3 ? state >> 16 : state >> 2;
}

/* Reads a str object. */
static char *read_text(const struct python *p, const struct python_memory *memory, uint64_t object)
{
	uint8_t head[PYTHON_TEXT_HEAD];
	uint64_t count;
	uint32_t state;
	if (!object || !memory->read(memory->context, object, head, sizeof head))
		return NULL;
	memcpy(&count, head + PYTHON_LENGTH, sizeof count);
	memcpy(&state, head + PYTHON_TEXT_STATE, sizeof state);
	uint32_t flags = text_flags(state);
	unsigned bytes = flags & 7;
	bool compact = flags & 8, ascii = flags & 16;
	if (!compact || (bytes != 1 && bytes != 2 && bytes != 4) || count > NAME_MAX_BYTES)
		return NULL;
	uint8_t *raw = malloc((size_t)count * bytes + 1);
	char *text = NULL;
	if (raw && memory->read(memory->context, object + (ascii ? p->text_size : p->text_wide),
				raw, (size_t)count * bytes))
		text = to_utf8(raw, (size_t)count, bytes);
	free(raw);
	return text;
}

static bool read_lines(const struct python *p, const struct python_memory *memory, uint64_t code,
		       struct python_function *out)
{
	uint64_t object = word(memory, code + p->code_lines),
		 size = word(memory, object + PYTHON_LENGTH);
	if (!object || size > LINES_MAX)
		return false;
	out->lines = malloc((size_t)size + 1);
	out->lines_size = (size_t)size;
	return out->lines &&
	       memory->read(memory->context, object + PYTHON_BYTES, out->lines, (size_t)size);
}

bool python_function_read(const struct python *p, const struct python_memory *memory, uint64_t code,
			  struct python_function *out)
{
	*out = (struct python_function){.start = code + p->code_start};
	if (word(memory, code + PYTHON_TYPE) != p->code_type ||
	    !memory->read(memory->context, code + p->code_line, &out->line, sizeof out->line))
		return false;
	out->name = read_text(p, memory, word(memory, code + p->code_name));
	out->file = read_text(p, memory, word(memory, code + p->code_file));
	if (out->name && out->file && read_lines(p, memory, code, out))
		return true;
	python_function_free(out);
	return false;
}

void python_function_free(struct python_function *f)
{
	free(f->name);
	free(f->file);
	free(f->lines);
	*f = (struct python_function){0};
}

/* ---- lines ---- */

/* Numbers have 6 bits in a byte, the lowest first; another bit says whether more follow. */
static uint32_t read_number(const struct python_function *f, size_t *at)
{
	uint32_t value = 0;
	for (unsigned shift = 0; *at < f->lines_size && shift < 30; shift += 6) {
		uint8_t byte = f->lines[(*at)++];
		value |= (uint32_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value;
}

/* The lowest bit is the sign. */
static int32_t read_signed(const struct python_function *f, size_t *at)
{
	uint32_t value = read_number(f, at);
	return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

enum { LINE_NEXT = 10, LINE_WITHOUT_COLUMNS = 13, LINE_LONG = 14, LINE_NONE = 15 };

/* The table: an entry for some instructions in a row. Its first byte has the highest bit set, then the kind in four bits
   and the number of instructions less one in three. What follows depends on the kind; only how far the line is from the
   one before matters here. */
uint32_t python_line(const struct python_function *f, uint64_t instruction)
{
	uint64_t wanted = (instruction - f->start) / PYTHON_UNIT, unit = 0;
	int64_t line = f->line;
	for (size_t at = 0; at < f->lines_size && unit <= wanted;) {
		uint8_t first = f->lines[at++];
		unsigned kind = first >> 3 & 15;
		unit += (first & 7u) + 1;
		if (kind >= LINE_NEXT && kind < LINE_WITHOUT_COLUMNS)
			line += kind - LINE_NEXT;
		else if (kind == LINE_WITHOUT_COLUMNS || kind == LINE_LONG)
			line += read_signed(f, &at);
		if (unit > wanted)
			return kind == LINE_NONE || line < 0 ? 0 : (uint32_t)line;
		while (at < f->lines_size && !(f->lines[at] & 128))
			at++;
	}
	return 0;
}
