/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/machine.h"

#include <string.h>
#include <sys/utsname.h>

#include "base/buf.h"
#include "base/json.h"
#include "explain/model.h"
#include "isa/insn.h"
#include "profile/profile.h"

#define REACH_SHARE 0.05 /* of the samples of a slow load */

/* Older recordings do not say which CPU: then the host's name decides. */
static bool is_here(const struct profile *p)
{
	char cpu[CPU_ID_MAX];
	struct utsname system;
	if (uname(&system) || strcmp(p->machine, system.machine) != 0)
		return false;
	cpu_id(cpu);
	return *p->cpu ? !strcmp(p->cpu, cpu) : !strcmp(p->host, system.nodename);
}

static void fill(double *value, double usual)
{
	if (*value <= 0)
		*value = usual;
}

static void fill_usual(struct calibration *c, const struct model *model)
{
	const struct model_usual *u = model_usual(model);
	unsigned skid = u->skid < CALIBRATE_SKID ? (unsigned)u->skid : 0;
	fill(&c->hz, u->hz);
	fill(&c->width, model_width(model) < 8 ? model_width(model) : 8);
	fill(&c->l1, u->l1);
	fill(&c->l2, u->l2);
	fill(&c->l3, u->l3);
	fill(&c->dram, u->dram);
	fill(&c->walk, u->walk);
	fill(&c->mispredict, u->mispredict);
	fill(&c->division, u->division);
	fill(&c->store, u->store);
	fill(&c->forward, u->forward);
	fill(&c->atomic, u->atomic);
	fill(&c->handed, c->l1 + 1);
	fill(&c->plain, 0.1);
	fill(&c->l1_size, 32 << 10);
	fill(&c->l2_size, 1 << 20);
	if (!c->clock[0]) {
		c->skid_load[skid] = 1;
		c->skid_other[0] = 1;
	}
}

struct err *machine_open(const struct profile *p, const struct isa *isa, struct machine *out)
{
	char cpu[CPU_ID_MAX] = "";
	*out = (struct machine){0};
	bool here = is_here(p);
	if (here) {
		cpu_id(cpu);
		calibrate(&out->numbers, true);
		out->measured = true;
	}
	struct err *e = model_open(isa, *p->cpu ? p->cpu : cpu, &out->model);
	if (e)
		return e;
	fill_usual(&out->numbers, out->model);
	out->window = model_usual(out->model)->window;
	for (unsigned i = 1; i < CALIBRATE_SKID; i++) {
		if (out->numbers.skid_load[i] > REACH_SHARE)
			out->reach = i;
		if (out->numbers.skid_other[i] > REACH_SHARE)
			out->reach_other = i;
	}
	return NULL;
}

void machine_close(struct machine *m)
{
	model_close(m->model);
	m->model = NULL;
}

void machine_note(const struct machine *m, const struct profile *p, struct buf *out)
{
	if (model_is_generic(m->model) && *p->cpu)
		buf_printf(out, "there is no model of this CPU (%s): a generic one (%s) is used\n",
			   p->cpu, model_name(m->model));
	else if (model_is_generic(m->model))
		buf_printf(
			out,
			"the recording does not say of which CPU it is: a generic model (%s) is used\n",
			model_name(m->model));
	if (!m->measured)
		buf_printf(
			out,
			"recorded on another machine: latencies and clock are those usual for %s\n",
			model_cpu(m->model) ? model_cpu(m->model) : "such a CPU");
	else if (m->numbers.problem[0])
		buf_printf(out, "%s\n", m->numbers.problem);
}

void machine_json(const struct machine *m, struct json *j)
{
	json_put_string(j, "cpu", model_cpu(m->model));
	json_put_string(j, "model", model_name(m->model));
	json_put_bool(j, "measured", m->measured);
	json_put_double(j, "hz", m->numbers.hz);
	json_put_u64(j, "skid", m->reach);
}
