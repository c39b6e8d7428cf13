/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aarch64 by its text: the assembler's language is regular. The first operand is written, the others are
 * read; stores, compares and branches only read; and a few read what they write.
 */
#include "isa/operands_cpu.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "isa/insn.h"
#include "isa/operands.h"

#define OPERAND_MAX 8
#define NAME_MAX_SIZE 16

struct words {
	char name[NAME_MAX_SIZE];
	const char *at[OPERAND_MAX]; /* operands: not terminated */
	size_t size[OPERAND_MAX];
	unsigned count;
};

/* ---- words ---- */

static void split(const char *text, struct words *out)
{
	size_t length = strcspn(text, " ");
	*out = (struct words){0};
	memcpy(out->name, text, length < NAME_MAX_SIZE ? length : NAME_MAX_SIZE - 1);
	text += length;
	while (*text && out->count < OPERAND_MAX) {
		int depth = 0;
		while (*text == ' ' || *text == ',')
			text++;
		const char *start = text;
		for (; *text && (depth > 0 || *text != ','); text++)
			depth += (*text == '[' || *text == '{') - (*text == ']' || *text == '}');
		if (text == start)
			break;
		out->at[out->count] = start;
		out->size[out->count++] = (size_t)(text - start);
	}
}

static bool starts(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

static bool is_one_of(const char *name, const char *list)
{
	size_t size = strlen(name);
	for (const char *at = list; size && (at = strstr(at, name)) != NULL; at += size)
		if ((at == list || at[-1] == ' ') && (!at[size] || at[size] == ' '))
			return true;
	return false;
}

/* The register at the beginning of `text` as a bit, 0: none, and how wide it is in bytes. */
static uint64_t register_bit(const char *text, size_t size, uint8_t *bytes)
{
	static const char letters[] = "wxbhsdqvz";
	static const uint8_t widths[] = {4, 8, 1, 2, 4, 8, 16, 16, 16};
	*bytes = 8;
	if (size >= 2 && (!strncmp(text, "sp", 2) || (size >= 3 && !strncmp(text, "wsp", 3))))
		return (uint64_t)1 << 31;
	const char *letter = size >= 2 && *text ? strchr(letters, *text) : NULL;
	if (!letter)
		return 0;
	*bytes = widths[letter - letters];
	if (!isdigit((unsigned char)text[1])) /* xzr */
		return 0;
	unsigned long number = strtoul(text + 1, NULL, 10);
	if (number > 31)
		return 0;
	return (uint64_t)1 << (number + (letter - letters >= 2 ? OPERANDS_VECTOR : 0));
}

/* All registers in an operand: {v0.16b, v1.16b}, [x0, x1]. */
static uint64_t registers_in(const char *text, size_t size)
{
	uint64_t set = 0;
	uint8_t bytes;
	for (size_t i = 0; i < size; i++)
		if (isalpha((unsigned char)text[i]) &&
		    (!i || !isalnum((unsigned char)text[i - 1])) && (!i || text[i - 1] != '.'))
			set |= register_bit(text + i, size - i, &bytes);
	return set;
}

static uint8_t number_of(uint64_t bit)
{
	return bit ? (uint8_t)__builtin_ctzll(bit) : INSN_NO_REG;
}

static bool read_constant(const char *text, size_t size, int64_t *out)
{
	if (!size || *text != '#')
		return false;
	*out = strtoll(text + 1, NULL, 0);
	return true;
}

/* ---- memory ---- */

static int find_memory(const struct words *w)
{
	for (unsigned i = 0; i < w->count; i++)
		if (*w->at[i] == '[')
			return (int)i;
	return -1;
}

static void read_memory(const struct words *w, unsigned index, struct operands *out)
{
	const char *text = w->at[index] + 1;
	size_t size = w->size[index] - 1;
	uint8_t bytes;
	bool before = w->at[index][w->size[index] - 1] == '!';
	out->address = registers_in(text, size);
	uint64_t base = register_bit(text, size, &bytes);
	out->base = number_of(base);
	const char *constant = memchr(text, '#', size);
	bool scaled = !(out->address & (out->address - 1)) && !memchr(text, 'l', size);
	out->plain_offset = scaled && out->address == base;
	if (constant && out->plain_offset)
		out->offset = strtoll(constant + 1, NULL, 0);
	if (before) {
		out->base_moves = true;
		out->step = out->offset;
	} else if (index + 1 < w->count) { /* [x0], #8 */
		out->base_moves = true;
		read_constant(w->at[index + 1], w->size[index + 1], &out->step);
		out->address |= registers_in(w->at[index + 1], w->size[index + 1]);
	}
	if (out->base_moves)
		out->writes |= base;
}

static uint8_t width_of(const char *name, uint8_t bytes, unsigned count)
{
	size_t length = strlen(name);
	bool is_pair = starts(name, "ldp") || starts(name, "stp") || starts(name, "ldnp") ||
		       starts(name, "stnp");
	if (starts(name, "ldrsw") || starts(name, "ldursw"))
		return 4;
	if (length > 3 && name[length - 1] == 'b')
		return 1;
	if (length > 3 && name[length - 1] == 'h')
		return 2;
	(void)count;
	return is_pair ? (uint8_t)(2 * bytes) : bytes;
}

/* ---- kinds ---- */

static const char compares[] = "cmp cmn tst fcmp fcmpe ccmp ccmn fccmp fccmpe";
static const char branches[] =
	"cbz cbnz tbz tbnz br blr braa brab braaz brabz blraa blrab blraaz blrabz";
static const char fences[] = "dmb dsb isb sb ssbb pssbb";
static const char reads_flags[] =
	"csel csinc csinv csneg cset csetm cinc cinv cneg fcsel adc adcs sbc "
	"sbcs ngc ngcs ccmp ccmn fccmp fccmpe";
static const char writes_flags[] =
	"adds subs ands bics negs adcs sbcs ngcs cmp cmn tst fcmp fcmpe ccmp "
	"ccmn fccmp fccmpe";
static const char keeps_old[] =
	"movk bfi bfxil bfm bfc fmla fmls mla mls bit bif bsl sdot udot usdot "
	"aese aesd sha1c sha1m sha1p sha256h sha256h2 sha256su0 sha256su1 tbx saba "
	"uaba sabal uabal ssra usra srsra ursra sri sli smlal umlal smlsl umlsl "
	"sqdmlal fmlal bfdot bfmmla smmla ummla ins xtn2 fcvtn2 sqxtn2 uqxtn2 smlal2 "
	"umlal2 sadalp uadalp suqadd usqadd";

static bool is_atomic(const char *name)
{
	static const char *const prefixes[] = {
		"ldadd", "ldclr", "ldset", "ldeor", "ldsmax", "ldsmin", "ldumax", "ldumin",
		"stadd", "stclr", "stset", "steor", "swp",    "cas",    "ldxr",   "ldaxr",
		"ldxp",  "ldaxp", "stxr",  "stlxr", "stxp",   "stlxp"};
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (starts(name, prefixes[i]))
			return true;
	return false;
}

static uint8_t class_of(const char *name)
{
	if (is_one_of(name, fences))
		return OPERANDS_FENCE;
	if (is_atomic(name))
		return OPERANDS_ATOMIC;
	return is_one_of(name, "udiv sdiv fdiv fsqrt") ? OPERANDS_DIVIDE : OPERANDS_PLAIN;
}

/* How many of the first operands are written. */
static unsigned written(const struct words *w)
{
	const char *name = w->name;
	if (is_one_of(name, compares) || is_one_of(name, branches) || is_one_of(name, fences) ||
	    starts(name, "b.") || starts(name, "prf") || !strcmp(name, "b") ||
	    !strcmp(name, "nop") || !strcmp(name, "ret") || starts(name, "msr"))
		return 0;
	if (starts(name, "st"))
		return starts(name, "stxr") || starts(name, "stlxr") || starts(name, "stxp") ||
				       starts(name, "stlxp")
			       ? 1
			       : 0;
	if (starts(name, "ldp") || starts(name, "ldnp") || starts(name, "ldpsw") ||
	    starts(name, "ldxp") || starts(name, "ldaxp"))
		return 2;
	return 1;
}

/* The operand that atomic operations write is the one before the memory. */
static void read_atomic(const struct words *w, unsigned memory, struct operands *out)
{
	bool loads_only = starts(w->name, "ldx") || starts(w->name, "ldax");
	bool stores_only = starts(w->name, "stx") || starts(w->name, "stlx");
	out->load = !stores_only;
	out->store = !loads_only;
	for (unsigned i = 0; i < memory; i++) {
		uint64_t set = registers_in(w->at[i], w->size[i]);
		bool is_result = loads_only || (stores_only ? i == 0 : i + 1 == memory);
		bool compares_it = starts(w->name, "cas") && i == 0;
		if (starts(w->name, "cas") || starts(w->name, "st"))
			is_result = compares_it || (stores_only && i == 0);
		*(is_result ? &out->writes : &out->reads) |= set;
		if (compares_it)
			out->reads |= set;
	}
}

static void read_sum(const struct words *w, struct operands *out)
{
	uint8_t bytes;
	bool minus = starts(w->name, "sub");
	if (w->count < 3 || (!minus && !starts(w->name, "add")) || w->name[3 + (w->name[3] == 's')])
		return;
	uint64_t to = register_bit(w->at[0], w->size[0], &bytes);
	uint64_t from = register_bit(w->at[1], w->size[1], &bytes);
	if (!to || !from || to >> OPERANDS_VECTOR || from >> OPERANDS_VECTOR)
		return;
	out->sum = number_of(to);
	out->addend = number_of(from);
	if (read_constant(w->at[2], w->size[2], &out->added)) {
		out->adds = true;
		if (w->count > 3)
			out->added <<= 12;
		if (minus)
			out->added = -out->added;
	} else if (w->count == 3 && !minus) {
		out->stepper = number_of(register_bit(w->at[2], w->size[2], &bytes));
		out->adds = out->stepper < 32;
	}
}

void operands_aarch64(const char *text, struct operands *out)
{
	struct words w;
	uint8_t bytes = 8;
	split(text, &w);
	int memory = find_memory(&w);
	out->class = class_of(w.name);
	out->reads_flags = is_one_of(w.name, reads_flags) || starts(w.name, "b.");
	out->writes_flags = is_one_of(w.name, writes_flags);
	if (!strcmp(w.name, "ret"))
		out->reads |= (uint64_t)1 << 30;
	if (!strcmp(w.name, "bl") || starts(w.name, "blr"))
		out->writes |= (uint64_t)1 << 30;
	if (memory >= 0)
		read_memory(&w, (unsigned)memory, out);
	if (w.count)
		register_bit(w.at[0] + (*w.at[0] == '{'), w.size[0], &bytes);
	if (memory > 0 && out->class == OPERANDS_ATOMIC) {
		read_atomic(&w, (unsigned)memory, out);
		out->size = width_of(w.name, bytes, w.count);
		return;
	}
	unsigned end = memory >= 0 ? (unsigned)memory : w.count, first_read = written(&w);
	for (unsigned i = 0; i < end; i++)
		*(i < first_read ? &out->writes : &out->reads) |= registers_in(w.at[i], w.size[i]);
	/* "mov v0.d[1], x3" changes a part. */
	bool part = first_read && w.count && memchr(w.at[0], '[', w.size[0]) && memory != 0;
	if (w.count && first_read && (part || is_one_of(w.name, keeps_old)))
		out->reads |= registers_in(w.at[0], w.size[0]);
	if (starts(w.name, "ld")) {
		out->load = true;
		out->fixed = memory < 0; /* ldr x0, 0x1000 */
	} else if (starts(w.name, "st") && memory >= 0) {
		out->store = true;
	}
	if (out->load || out->store)
		out->size = width_of(w.name, bytes, w.count);
	read_sum(&w, out);
}
