/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aarch64 through capstone. Where one encoding has several names it tells another
 * than assemblers do for a few; those are put right here.
 */
#include "isa/text_cpu.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <capstone/capstone.h>

#include "base/err.h"
#include "isa/insn_aarch64.h"

/* Loaded where instructions are shown and not before: its tables of all CPUs take 3 MB in each process. */
struct library {
	void *handle;
	__typeof__(cs_open) *open;
	__typeof__(cs_close) *close;
	__typeof__(cs_malloc) *malloc;
	__typeof__(cs_free) *free;
	__typeof__(cs_disasm_iter) *disassemble;
};

struct state {
	struct library capstone;
	csh handle;
	cs_insn *insn;
};

static struct err *load(struct library *l)
{
	char name[32];
	snprintf(name, sizeof name, "libcapstone.so.%d", CS_API_MAJOR);
	l->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!l->handle)
		return err_new("instructions of aarch64 need capstone: %s", dlerror());
	*(void **)&l->open = dlsym(l->handle, "cs_open");
	*(void **)&l->close = dlsym(l->handle, "cs_close");
	*(void **)&l->malloc = dlsym(l->handle, "cs_malloc");
	*(void **)&l->free = dlsym(l->handle, "cs_free");
	*(void **)&l->disassemble = dlsym(l->handle, "cs_disasm_iter");
	if (l->open && l->close && l->malloc && l->free && l->disassemble)
		return NULL;
	return err_new("instructions of aarch64 need capstone: %s is another library", name);
}

static void close_state(void *context)
{
	struct state *s = context;
	if (s->insn)
		s->capstone.free(s->insn, 1);
	if (s->handle)
		s->capstone.close(&s->handle);
	if (s->capstone.handle)
		dlclose(s->capstone.handle);
	free(s);
}

static struct err *open_state(void **out)
{
	struct state *s = *out = calloc(1, sizeof *s);
	struct err *e = s ? load(&s->capstone) : err_new("out of memory");
	if (e)
		goto failed;
	if (s->capstone.open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &s->handle) == CS_ERR_OK)
		s->insn = s->capstone.malloc(s->handle);
	if (s->insn)
		return NULL;
	e = err_new("out of memory");
failed:
	if (s)
		close_state(s);
	return e;
}

/* Words of the hint space whose names came with later versions of the architecture. */
static const char *hint_name(uint32_t word)
{
	static const struct {
		uint32_t hint;
		const char *name;
	} names[] = {
		{0x07, "xpaclri"},   {0x08, "pacia1716"}, {0x0a, "pacib1716"}, {0x0c, "autia1716"},
		{0x0e, "autib1716"}, {0x10, "esb"},       {0x11, "psb csync"}, {0x12, "tsb csync"},
		{0x14, "csdb"},      {0x18, "paciaz"},    {0x19, "paciasp"},   {0x1a, "pacibz"},
		{0x1b, "pacibsp"},   {0x1c, "autiaz"},    {0x1d, "autiasp"},   {0x1e, "autibz"},
		{0x1f, "autibsp"},   {0x20, "bti"},       {0x22, "bti c"},     {0x24, "bti j"},
		{0x26, "bti jc"},
	};
	if ((word & 0xfffff01f) != 0xd503201f)
		return NULL;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].hint == bits(word, 11, 5))
			return names[i].name;
	return NULL;
}

/* General register `number`; 31 is the stack pointer where it is an address, else zero. */
static const char *reg_name(char out[8], bool wide, unsigned number, bool is_address)
{
	if (number == ZR)
		snprintf(out, 8, "%s", is_address ? "sp" : wide ? "xzr" : "wzr");
	else
		snprintf(out, 8, "%c%u", wide ? 'x' : 'w', number);
	return out;
}

/* movz and movn are "mov" of the value that they make, where no other encoding makes it. */
static bool format_move(uint32_t word, char *out, size_t out_size)
{
	bool wide = bit(word, 31), inverted = bits(word, 30, 29) == 0;
	unsigned shift = bits(word, 22, 21) * 16;
	uint64_t part = bits(word, 20, 5), value = part << shift;
	if (bits(word, 28, 23) != 0x25 || bits(word, 30, 29) == 1 || bits(word, 30, 29) == 3 ||
	    (!wide && shift > 16) || (!part && shift) || (inverted && !wide && part == 0xffff))
		return false;
	if (inverted)
		value = ~value;
	if (!wide)
		value &= UINT32_MAX;
	char name[8];
	snprintf(out, out_size, "mov %s, #0x%" PRIx64, reg_name(name, wide, rd(word), false),
		 value);
	return true;
}

/* "x0, xzr, #0xff" of an orr is "mov x0, #0xff". */
static bool drop_zero(const char *operands, char *out, size_t out_size)
{
	const char *zero = strstr(operands, "zr, ");
	if (!zero || zero == operands)
		return false;
	snprintf(out, out_size, "mov %.*s%s", (int)(zero - 1 - operands), operands, zero + 4);
	return true;
}

/* The atomics of ARMv8.1, which older versions of capstone do not know. */
static bool format_atomic(uint32_t word, char *out, size_t out_size)
{
	static const char *const sizes[] = {"b", "h", "", ""};
	static const char *const names[] = {"add",  "clr",  "eor",  "set",
					    "smax", "smin", "umax", "umin"};
	unsigned size = bits(word, 31, 30), op = bits(word, 14, 12);
	bool acquire, release, compare = (word & 0x3fa07c00) == 0x08a07c00;
	char name[8], s[8], t[8], n[8];
	if (compare) {
		acquire = bit(word, 22), release = bit(word, 15);
		snprintf(name, sizeof name, "cas");
	} else if ((word & 0x3f200c00) == 0x38200000 && (!bit(word, 15) || !op)) {
		acquire = bit(word, 23), release = bit(word, 22);
		bool is_store = !bit(word, 15) && !acquire && rd(word) == ZR;
		snprintf(name, sizeof name, "%s%s",
			 bit(word, 15) ? ""
			 : is_store    ? "st"
				       : "ld",
			 bit(word, 15) ? "swp" : names[op]);
	} else {
		return false;
	}
	bool stores = name[0] == 's' && name[1] == 't';
	reg_name(s, size == 3, rm(word), false);
	reg_name(t, size == 3, rd(word), false);
	snprintf(out, out_size, "%s%s%s%s %s%s%s, [%s]", name, acquire ? "a" : "",
		 release ? "l" : "", sizes[size], s, stores ? "" : ", ", stores ? "" : t,
		 reg_name(n, true, rn(word), true));
	return true;
}

static bool format(void *context, const uint8_t *code, size_t size, uint64_t address, char *out,
		   size_t out_size)
{
	struct state *s = context;
	uint32_t word;
	if (size < sizeof word)
		return false;
	memcpy(&word, code, sizeof word);
	const char *hint = hint_name(word);
	if (hint) {
		snprintf(out, out_size, "%s", hint);
		return true;
	}
	if (format_move(word, out, out_size) || format_atomic(word, out, out_size))
		return true;
	size = sizeof word;
	if (!s->capstone.disassemble(s->handle, &code, &size, &address, s->insn))
		return false;
	if (!strcmp(s->insn->mnemonic, "orr") && bits(word, 28, 23) == 0x24 && rn(word) == ZR &&
	    drop_zero(s->insn->op_str, out, out_size))
		return true;
	snprintf(out, out_size, "%s%s%s", s->insn->mnemonic, s->insn->op_str[0] ? " " : "",
		 s->insn->op_str);
	return true;
}

const struct text_cpu text_aarch64 = {
	.open = open_state,
	.close = close_state,
	.format = format,
};
