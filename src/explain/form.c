/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/form.h"

#include <ctype.h>
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "isa/insn.h"

#define NAME_SIZE 24

static bool is_listed(const char *list, const char *word, size_t size)
{
	for (const char *at = list; *at; at += strcspn(at, " "), at += *at == ' ')
		if (strcspn(at, " ") == size && !strncmp(at, word, size))
			return true;
	return false;
}

static bool starts(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* Without what only says how wide the operands are, or which condition is meant. */
static const char *plain_name(char name[NAME_SIZE])
{
	static const char suffixed[] =
		"mov movabs add sub cmp test and or xor not neg inc dec shl shr sar rol ror adc sbb lea imul mul "
		"div idiv push pop call jmp ret xchg xadd cmpxchg bt bts btr btc bsf bsr tzcnt lzcnt popcnt bswap "
		"andn shld shrd sarx shlx shrx rorx";
	size_t size = strlen(name);
	if (starts(name, "b."))
		return "b.cond";
	if (starts(name, "cmov"))
		return "cmov";
	if (starts(name, "set") && size <= 6)
		return "set";
	if (name[0] == 'j' && !starts(name, "jmp"))
		return "jcc";
	if (size && strchr("bwlq", name[size - 1]) && is_listed(suffixed, name, size - 1))
		name[size - 1] = 0;
	return strcmp(name, "movabs") != 0 ? name : "mov";
}

/* ---- operands ---- */

static const char *x86_kind(const char *text, size_t size)
{
	if (*text == '$')
		return "i";
	if (memchr(text, '(', size) || memchr(text, ':', size))
		return "m";
	if (size && *text == '*')
		text++, size--;
	if (!size || *text != '%')
		return "l";
	text++;
	return starts(text, "xmm")   ? "x"
	       : starts(text, "ymm") ? "y"
	       : starts(text, "zmm") ? "z"
	       : *text == 'k'        ? "k"
	       : starts(text, "st")  ? "f"
	       : starts(text, "mm")  ? "n"
				     : "r";
}

/* How long the word at `text` is; and its kind, if it is a register or a number. */
static size_t arm_word(const char *text, size_t left, const char **kind)
{
	static const char registers[] = "xwbhsdqvzp";
	static const char *const kinds[] = {"x", "w", "b", "h", "s", "d", "q", "v", "z", "p"};
	size_t size = 0;
	*kind = NULL;
	if (*text == '#') {
		*kind = "i";
		for (size = 1;
		     size < left && (isalnum((unsigned char)text[size]) || text[size] == '.' ||
				     text[size] == '-' || text[size] == '+');)
			size++;
		return size;
	}
	while (size < left && isalnum((unsigned char)text[size]))
		size++;
	if (!size)
		return 1;
	if (is_listed("xzr sp", text, size))
		*kind = "x";
	else if (is_listed("wzr wsp", text, size))
		*kind = "w";
	const char *letter = strchr(registers, *text);
	bool digits = size > 1;
	for (size_t i = 1; i < size; i++)
		digits &= isdigit((unsigned char)text[i]) != 0;
	if (letter && *letter && digits)
		*kind = kinds[letter - registers];
	return size;
}

static void put(char out[FORM_MAX], size_t *used, const char *text, size_t size)
{
	for (size_t i = 0; i < size && *used + 1 < FORM_MAX; i++)
		out[(*used)++] = text[i];
	out[*used] = 0;
}

static void put_arm(char out[FORM_MAX], size_t *used, const char *text, size_t size)
{
	static const char conditions[] = "eq ne hs cs lo cc mi pl vs vc hi ls ge lt gt le al";
	if (size > 2 && starts(text, "0x")) {
		put(out, used, "l", 1);
		return;
	}
	if (is_listed(conditions, text, size)) {
		put(out, used, "c", 1);
		return;
	}
	for (size_t at = 0; at < size;) {
		const char *kind;
		size_t length = arm_word(text + at, size - at, &kind);
		bool lane = at && text[at - 1] == '[' && isdigit((unsigned char)text[at]);
		if (kind)
			put(out, used, kind, 1);
		else if (text[at] != ' ' && !lane)
			put(out, used, text + at, length);
		at += length;
	}
}

/* ---- the whole ---- */

static const char *skip_prefixes(const char *text)
{
	static const char prefixes[] = "lock rep repne repz repnz notrack bnd data16";
	while (is_listed(prefixes, text, strcspn(text, " ")))
		text += strcspn(text, " "), text += strspn(text, " ");
	return text;
}

void form_make(const struct isa *isa, const char *text, char out[FORM_MAX])
{
	char name[NAME_SIZE];
	size_t used = 0;
	bool arm = isa->elf_machine == EM_AARCH64;
	text = skip_prefixes(text);
	size_t length = strcspn(text, " ");
	snprintf(name, sizeof name, "%.*s", (int)length, text);
	const char *plain = plain_name(name);
	put(out, &used, plain, strlen(plain));
	text += length;
	for (unsigned i = 0; *text; i++) {
		int depth = 0;
		text += strspn(text, " ,");
		const char *start = text;
		for (; *text && (depth > 0 || *text != ','); text++)
			depth += (strchr("([{", *text) != NULL) - (strchr(")]}", *text) != NULL);
		if (text == start)
			break;
		put(out, &used, i ? "," : " ", 1);
		if (arm)
			put_arm(out, &used, start, (size_t)(text - start));
		else
			put(out, &used, x86_kind(start, (size_t)(text - start)), 1);
	}
}
