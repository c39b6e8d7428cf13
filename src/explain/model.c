/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "explain/form.h"
#include "isa/insn.h"

#include "explain/model_texts.h"

struct row {
	const char *form; /* up to the tab */
	size_t size;
};

struct model {
	const struct isa *isa;
	char name[32], cpu[64];
	bool generic;
	struct model_usual usual;
	unsigned width, port_count;
	struct row *rows; /* ascending by form, as the file has them */
	size_t row_count;
};

static const char *text_of(const char *name)
{
	for (size_t i = 0; i < sizeof model_texts / sizeof *model_texts; i++)
		if (!strcmp(model_texts[i].name, name))
			return model_texts[i].text;
	return NULL;
}

static const char *next_line(const char *at)
{
	at = strchr(at, '\n');
	return at ? at + 1 : NULL;
}

/* ---- which table ---- */

/* Whether `cpu` is `known`, or begins with it and goes on with another part. */
static bool is_cpu(const char *known, size_t size, const char *cpu)
{
	return !strncmp(known, cpu, size) && (!cpu[size] || cpu[size] == ':');
}

static bool read_usual(const char *text, struct model_usual *u)
{
	return sscanf(text, "%lf %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf", &u->hz,
		      &u->window, &u->l1, &u->l2, &u->l3, &u->dram, &u->walk, &u->mispredict,
		      &u->division, &u->store, &u->forward, &u->atomic, &u->skid) == 13;
}

/* Finds the line of a CPU in cpus.txt: cpu|name|table|numbers. */
static bool choose(const char *cpu, struct model *m)
{
	for (const char *at = text_of("cpus"); at && *at; at = next_line(at)) {
		size_t size = strcspn(at, "|\n");
		if (!size || at[size] != '|' || !is_cpu(at, size, cpu))
			continue;
		const char *name = at + size + 1, *table = name + strcspn(name, "|\n") + 1;
		const char *numbers = table + strcspn(table, "|\n") + 1;
		snprintf(m->cpu, sizeof m->cpu, "%.*s", (int)strcspn(name, "|"), name);
		snprintf(m->name, sizeof m->name, "%.*s", (int)strcspn(table, "|"), table);
		bool good = read_usual(numbers, &m->usual);
		m->usual.hz *= 1e9;
		return good;
	}
	return false;
}

/* A table says for which machine it is. */
static bool fits(const char *text, const struct isa *isa)
{
	const char *machine = strstr(text, "machine ");
	return machine && !strncmp(machine + 8, isa->name, strlen(isa->name));
}

/* ---- reading ---- */

static unsigned count_words(const char *text)
{
	unsigned count = 0;
	while (*text && *text != '\n') {
		text += strspn(text, " ");
		size_t size = strcspn(text, " \n");
		count += size > 0;
		text += size;
	}
	return count;
}

static bool read_table(struct model *m, const char *text)
{
	size_t room = 0;
	for (const char *at = text; at && *at; at = next_line(at)) {
		size_t size = strcspn(at, "\t\n");
		if (at[size] != '\t') {
			if (!strncmp(at, "width ", 6))
				m->width = (unsigned)atoi(at + 6);
			else if (!strncmp(at, "ports ", 6))
				m->port_count = count_words(at + 6);
			continue;
		}
		if (!ARRAY_ROOM(m->rows, m->row_count, room))
			return false;
		m->rows[m->row_count++] = (struct row){at, size};
	}
	return m->width > 0 && m->port_count <= MODEL_PORT_MAX;
}

struct err *model_open(const struct isa *isa, const char *cpu, struct model **out)
{
	char generic[40];
	struct model *m = *out = calloc(1, sizeof *m);
	if (!m)
		return err_new("out of memory");
	m->isa = isa;
	snprintf(generic, sizeof generic, "generic-%s", isa->name);
	const char *text = cpu && *cpu && choose(cpu, m) ? text_of(m->name) : NULL;
	if (!text || !fits(text, isa)) {
		m->generic = true;
		text = choose(generic, m) ? text_of(m->name) : NULL;
	}
	if (text && read_table(m, text))
		return NULL;
	model_close(m);
	*out = NULL;
	return err_new("there is no model of a CPU for %s", isa->name);
}

void model_close(struct model *m)
{
	if (m)
		free(m->rows);
	free(m);
}

const char *model_name(const struct model *m)
{
	return m->name;
}

const char *model_cpu(const struct model *m)
{
	return m->cpu[0] ? m->cpu : NULL;
}

bool model_is_generic(const struct model *m)
{
	return m->generic;
}

const struct model_usual *model_usual(const struct model *m)
{
	return &m->usual;
}

unsigned model_width(const struct model *m)
{
	return m->width;
}

unsigned model_port_count(const struct model *m)
{
	return m->port_count;
}

/* ---- instructions ---- */

static int compare(const struct row *row, const char *form, size_t size)
{
	int order = strncmp(row->form, form, row->size < size ? row->size : size);
	return order ? order : row->size < size ? -1 : row->size > size;
}

static void read_row(const struct row *row, struct model_insn *out)
{
	char *end = NULL;
	const char *at = row->form + row->size + 1;
	out->uops = strtof(at, &end);
	out->latency = strtof(end, &end);
	out->throughput = strtof(end, &end);
	while (*end == ' ' && out->use_count < MODEL_USE_MAX) {
		unsigned long port = strtoul(end + 1, &end, 10);
		if (*end != ':' || port >= MODEL_PORT_MAX)
			break;
		out->uses[out->use_count].port = (uint8_t)port;
		out->uses[out->use_count++].cycles = strtof(end + 1, &end);
	}
	out->known = true;
}

static bool has_memory(const char *form, size_t size, bool arm)
{
	const char *operands = memchr(form, ' ', size);
	return operands &&
	       memchr(operands, arm ? '[' : 'm', size - (size_t)(operands - form)) != NULL;
}

/* Another with the same mnemonic, that goes to memory as this one does. */
static const struct row *find_similar(const struct model *m, const char *form, size_t size)
{
	size_t name = strcspn(form, " ");
	bool arm = m->isa->insn_min == 4, memory = has_memory(form, size, arm);
	size_t at = FIRST_NOT(i, m->row_count, compare(&m->rows[i], form, name) < 0);
	for (; at < m->row_count && !strncmp(m->rows[at].form, form, name); at++)
		if ((m->rows[at].size == name || m->rows[at].form[name] == ' ') &&
		    has_memory(m->rows[at].form, m->rows[at].size, arm) == memory)
			return &m->rows[at];
	return NULL;
}

void model_find(const struct model *m, const char *text, struct model_insn *out)
{
	char form[FORM_MAX];
	form_make(m->isa, text, form);
	size_t size = strlen(form);
	*out = (struct model_insn){.uops = 1, .latency = 1, .throughput = 0.25f};
	size_t at = FIRST_NOT(i, m->row_count, compare(&m->rows[i], form, size) < 0);
	const struct row *row = at < m->row_count && !compare(&m->rows[at], form, size)
					? &m->rows[at]
					: NULL;
	if (!row)
		row = find_similar(m, form, size);
	if (row)
		read_row(row, out);
}
