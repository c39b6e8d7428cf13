/* SPDX-License-Identifier: Apache-2.0 */
#include "annotate/targets.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/modules.h"
#include "analyze/shorten.h"
#include "annotate/build.h"
#include "base/buf.h"
#include "base/err.h"
#include "image/image.h"
#include "image/names.h"
#include "isa/insn.h"
#include "recipes/procedures.h"

#define STUB_INSNS 6 /* at most, of the stub of an imported function */

struct targets {
	const struct annotation *a;
	struct image *image;
	uint32_t *labels; /* of each instruction */
	struct buf name;
};

struct err *targets_open(const struct annotation *a, struct targets **out)
{
	struct targets *t = calloc(1, sizeof *t);
	uint32_t count = 0;
	*out = NULL;
	if (t)
		t->labels = calloc(a->insn_count + 1, sizeof *t->labels);
	if (!t || !t->labels) {
		targets_close(t);
		return err_new("out of memory");
	}
	t->a = a;
	t->image = modules_image(a->modules, a->module);
	for (size_t i = 0; i < a->insn_count; i++)
		if (a->insns[i].is_target)
			t->labels[i] = ++count;
	*out = t;
	return NULL;
}

void targets_close(struct targets *t)
{
	if (!t)
		return;
	free(t->labels);
	buf_free(&t->name);
	free(t);
}

uint32_t targets_label(const struct targets *t, uint32_t insn)
{
	return t->labels[insn];
}

static const char *import_at(const struct targets *t, uint64_t slot)
{
	return modules_import(t->a->modules, t->a->module, slot);
}

/* The word that a stub loads: by a jump through memory, or from a page that it computes. */
static uint64_t stub_slot(const struct targets *t, uint64_t address)
{
	size_t size = 0;
	const uint8_t *code = image_bytes_at(t->image, address, &size);
	uint64_t page = 0;
	for (unsigned n = 0; code && n < STUB_INSNS && size; n++) {
		struct insn insn;
		t->a->isa->decode(code, size, address, &insn);
		if (insn.kind == INSN_JUMP_INDIRECT && insn.target)
			return insn.target;
		for (unsigned i = 0; i < insn.effect_count; i++)
			if (insn.effects[i].op == EFFECT_LOAD && page)
				return page + (uint64_t)insn.effects[i].imm;
		if (insn.refers)
			page = insn.refers;
		if (!insn.length || insn.length > size || insn.kind == INSN_BAD)
			break;
		code += insn.length;
		size -= insn.length;
		address += insn.length;
	}
	return 0;
}

static const char *set_name(struct targets *t, const char *name, const char *suffix)
{
	char *demangled = name_demangle(name);
	buf_clear(&t->name);
	name_shorten(demangled ? demangled : name, &t->name);
	buf_puts(&t->name, suffix);
	free(demangled);
	return buf_text(&t->name);
}

const char *targets_name(struct targets *t, uint64_t address)
{
	uint32_t inside = annotate_insn_at(t->a, address);
	struct modules_function f;
	if (inside != ANNOTATE_NONE && t->labels[inside]) {
		buf_clear(&t->name);
		buf_printf(&t->name, ".L%" PRIu32, t->labels[inside]);
		return buf_text(&t->name);
	}
	if (procedures_is_stub(t->image, address)) {
		const char *import = import_at(t, stub_slot(t, address));
		if (import)
			return set_name(t, import, "@plt");
	}
	modules_function(t->a->modules, t->a->module, address, true, &f);
	if (!f.name)
		return NULL;
	set_name(t, f.name, "");
	if (address > f.start)
		buf_printf(&t->name, "+0x%" PRIx64, address - f.start);
	return buf_text(&t->name);
}

const char *targets_import(struct targets *t, const struct insn *insn)
{
	bool indirect = insn->kind == INSN_CALL_INDIRECT || insn->kind == INSN_JUMP_INDIRECT;
	const char *import = indirect && insn->target ? import_at(t, insn->target) : NULL;
	return import ? set_name(t, import, "") : NULL;
}
