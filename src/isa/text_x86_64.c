/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86-64 through Zydis, whose names of conditions are jz and jnbe, even in AT&T
 * syntax. Here they are those of the GNU assembler in both syntaxes (je, ja).
 */
#include "isa/text_cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "base/err.h"
#include "isa/text.h"

struct state {
	ZydisDecoder decoder;
	ZydisFormatter formatter;
	bool intel;
};

static struct err *open_style(ZydisFormatterStyle style, void **out)
{
	static const struct {
		ZydisFormatterProperty property;
		ZyanUPointer value;
	} properties[] = {
		{ZYDIS_FORMATTER_PROP_FORCE_RELATIVE_RIPREL, ZYAN_TRUE},
		{ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE},
		{ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_PADDING_DISABLED},
		{ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_PADDING_DISABLED},
		{ZYDIS_FORMATTER_PROP_IMM_PADDING, ZYDIS_PADDING_DISABLED},
	};
	struct state *s = calloc(1, sizeof *s);
	*out = s;
	if (!s)
		return err_new("out of memory");
	ZydisDecoderInit(&s->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisFormatterInit(&s->formatter, style);
	s->intel = style == ZYDIS_FORMATTER_STYLE_INTEL;
	for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
		ZydisFormatterSetProperty(&s->formatter, properties[i].property,
					  properties[i].value);
	return NULL;
}

static struct err *open_state(void **out)
{
	return open_style(ZYDIS_FORMATTER_STYLE_ATT, out);
}

static struct err *open_intel(void **out)
{
	return open_style(ZYDIS_FORMATTER_STYLE_INTEL, out);
}

static void close_state(void *state)
{
	free(state);
}

struct other_name {
	ZydisMnemonic mnemonic;
	const char *name;
};

static const struct other_name conditions[] = {
	{ZYDIS_MNEMONIC_JZ, "je"},         {ZYDIS_MNEMONIC_JNZ, "jne"},
	{ZYDIS_MNEMONIC_JNB, "jae"},       {ZYDIS_MNEMONIC_JNBE, "ja"},
	{ZYDIS_MNEMONIC_JNL, "jge"},       {ZYDIS_MNEMONIC_JNLE, "jg"},
	{ZYDIS_MNEMONIC_SETZ, "sete"},     {ZYDIS_MNEMONIC_SETNZ, "setne"},
	{ZYDIS_MNEMONIC_SETNB, "setae"},   {ZYDIS_MNEMONIC_SETNBE, "seta"},
	{ZYDIS_MNEMONIC_SETNL, "setge"},   {ZYDIS_MNEMONIC_SETNLE, "setg"},
	{ZYDIS_MNEMONIC_CMOVZ, "cmove"},   {ZYDIS_MNEMONIC_CMOVNZ, "cmovne"},
	{ZYDIS_MNEMONIC_CMOVNB, "cmovae"}, {ZYDIS_MNEMONIC_CMOVNBE, "cmova"},
	{ZYDIS_MNEMONIC_CMOVNL, "cmovge"}, {ZYDIS_MNEMONIC_CMOVNLE, "cmovg"},
};

/* Others in AT&T syntax alone. */
static const struct other_name att_names[] = {
	{ZYDIS_MNEMONIC_CBW, "cbtw"},      {ZYDIS_MNEMONIC_CWDE, "cwtl"},
	{ZYDIS_MNEMONIC_CDQE, "cltq"},     {ZYDIS_MNEMONIC_CWD, "cwtd"},
	{ZYDIS_MNEMONIC_CDQ, "cltd"},      {ZYDIS_MNEMONIC_CQO, "cqto"},
	{ZYDIS_MNEMONIC_MOVSXD, "movslq"},
};

static const char *other_name(ZydisMnemonic mnemonic, bool intel)
{
	for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
		if (conditions[i].mnemonic == mnemonic)
			return conditions[i].name;
	for (size_t i = 0; !intel && i < sizeof att_names / sizeof *att_names; i++)
		if (att_names[i].mnemonic == mnemonic)
			return att_names[i].name;
	return NULL;
}

/* movzbl, movswq: an extension says both sizes. */
static const char *extension_name(const ZydisDecodedInstruction *in,
				  const ZydisDecodedOperand *operands, char out[8])
{
	bool is_signed = in->mnemonic == ZYDIS_MNEMONIC_MOVSX;
	if (!is_signed && in->mnemonic != ZYDIS_MNEMONIC_MOVZX)
		return NULL;
	snprintf(out, 8, "mov%c%c%c", is_signed ? 's' : 'z', operands[1].size == 8 ? 'b' : 'w',
		 operands[0].size == 16   ? 'w'
		 : operands[0].size == 32 ? 'l'
					  : 'q');
	return out;
}

/* The size of what is in a vector register is told by the name. */
static bool has_vector(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *operands)
{
	for (unsigned i = 0; i < in->operand_count_visible; i++) {
		ZydisRegisterClass class = operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER
						   ? ZydisRegisterGetClass(operands[i].reg.value)
						   : ZYDIS_REGCLASS_INVALID;
		if (class >= ZYDIS_REGCLASS_MMX && class <= ZYDIS_REGCLASS_ZMM)
			return true;
	}
	return false;
}

static bool is_indirect(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *operands)
{
	return (in->mnemonic == ZYDIS_MNEMONIC_CALL || in->mnemonic == ZYDIS_MNEMONIC_JMP) &&
	       operands[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

/* Where a word of the text begins; NULL: it has none like it. */
static const char *find_word(const char *text, const char *word)
{
	const char *at = word ? strstr(text, word) : NULL;
	while (at && at > text && at[-1] != ' ')
		at = strstr(at + 1, word);
	return at;
}

/* The mnemonic under the other name of its condition, in Intel's syntax. */
static bool rename_intel(const ZydisDecodedInstruction *in, const char *text, char *out,
			 size_t out_size)
{
	const char *base = ZydisMnemonicGetString(in->mnemonic),
		   *other = other_name(in->mnemonic, true);
	const char *at = other ? find_word(text, base) : NULL;
	int written = at ? snprintf(out, out_size, "%.*s%s%s", (int)(at - text), text, other,
				    at + strlen(base))
			 : snprintf(out, out_size, "%s", text);
	return written >= 0 && (size_t)written < out_size;
}

/* "prefixes mnemonic[suffix] operands", the mnemonic under another name. */
static bool rename_mnemonic(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *operands,
			    const char *text, char *out, size_t out_size)
{
	const char *base = ZydisMnemonicGetString(in->mnemonic);
	char extension[8];
	const char *other = extension_name(in, operands, extension);
	if (!other)
		other = other_name(in->mnemonic, false);
	const char *at = find_word(text, base);
	if (!at)
		return snprintf(out, out_size, "%s", text) < (int)out_size;
	const char *suffix = at + strlen(base);
	const char *operand = suffix + strcspn(suffix, " ");
	int length = (int)(operand - suffix);
	bool cut = other || (length == 1 && has_vector(in, operands));
	bool starred = is_indirect(in, operands) && *operand && operand[1] != '*';
	int written = snprintf(out, out_size, "%.*s%s%.*s%s%s", (int)(at - text), text,
			       other ? other : base, cut ? 0 : length, suffix, starred ? " *" : "",
			       operand + starred);
	return written >= 0 && (size_t)written < out_size;
}

static bool format(void *context, const uint8_t *code, size_t size, uint64_t address, char *out,
		   size_t out_size)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	struct state *s = context;
	ZydisDecodedInstruction in;
	char text[TEXT_MAX];
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&s->decoder, code, size, &in, operands)))
		return false;
	if (in.mnemonic == ZYDIS_MNEMONIC_NOP) /* its operands are of no use */
		return snprintf(out, out_size, "nop") < (int)out_size;
	return ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&s->formatter, &in, operands,
							    in.operand_count_visible, text,
							    sizeof text, address, NULL)) &&
	       (s->intel ? rename_intel(&in, text, out, out_size)
			 : rename_mnemonic(&in, operands, text, out, out_size));
}

const struct text_cpu text_x86_64 = {
	.open = open_state,
	.open_intel = open_intel,
	.close = close_state,
	.format = format,
};
