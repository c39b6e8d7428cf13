/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/probe_left.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/args.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/path.h"
#include "cmd/cmd.h"
#include "collect/agents/left.h"
#include "collect/paths/left.h"
#include "harvest/probes.h"
#include "probe/choose.h"
#include "probe/meant.h"
#include "probe/modules.h"
#include "probe/show.h"

struct err *probe_left_clear(pid_t pid, char *why, size_t size)
{
	bool code;
	struct err *e = left_clear(pid, &code);
	if (!e || !code)
		return e;
	if (size)
		snprintf(why, size, "%s", err_text(e));
	err_free(e);
	return NULL;
}

/* ---- their names ---- */

struct names {
	struct probes probes; /* those that are in the process */
	uint64_t *addresses;  /* of their functions, in memory */
};

static struct err *name_one(struct names *n, struct probe_modules *modules,
			    const struct left_probe *left)
{
	char text[32];
	size_t before = n->probes.count;
	snprintf(text, sizeof text, "0x%" PRIx64, left->function);
	struct err *e = probe_choose(modules, text, &n->probes);
	if (e || n->probes.count != before + 1)
		return e;
	struct probe_function *f = &n->probes.functions[before];
	f->state = PROBE_ON;
	f->sums = left->sums;
	f->everywhere = true;
	n->addresses[before] = left->function;
	return NULL;
}

static struct err *name_all(struct names *n, pid_t pid)
{
	struct left left;
	struct probe_modules modules = {0};
	struct err *e = left_read(pid, &left);
	*n = (struct names){.probes.patched = true};
	if (!e)
		e = probe_modules_of_process(&modules, pid);
	n->addresses = calloc(left.count + 1, sizeof *n->addresses);
	if (!e && !n->addresses)
		e = err_new("out of memory");
	for (size_t i = 0; i < left.count && !e; i++)
		if (left.all[i].on)
			e = name_one(n, &modules, &left.all[i]);
	probe_modules_free(&modules);
	left_free(&left);
	return e;
}

/* ---- commands ---- */

static void list(const struct names *n, bool json, struct buf *out)
{
	if (!json) {
		probe_show_functions(&n->probes, out);
		return;
	}
	struct json j = json_to_buf(out);
	json_begin_object(&j);
	json_put_u64(&j, "culprit", 1);
	probe_show_list(&n->probes, &j);
	json_end_object(&j);
	json_newline(&j);
}

static int take_out(const struct names *n, pid_t pid, const struct args *args, struct buf *out)
{
	const struct probes *p = &n->probes;
	bool *meant = calloc(p->count + 1, sizeof *meant), good = meant;
	uint64_t *functions = calloc(p->count + 1, sizeof *functions);
	size_t count = 0;
	for (int i = 0; i < args->count && good; i++)
		good = probe_mark_meant(p, args->operands[i], meant, out);
	for (size_t i = 0; i < p->count && good && functions; i++)
		if (meant[i])
			functions[count++] = n->addresses[i];
	struct err *e = functions ? NULL : err_new("out of memory");
	if (good && !e)
		e = left_take_out(pid, functions, count);
	for (size_t i = 0; i < p->count && good && !e; i++)
		if (meant[i])
			buf_printf(out, "%s (%s): removed\n", p->functions[i].name,
				   path_file(p->functions[i].module));
	if (e)
		buf_printf(out, "%s\n", err_text(e));
	good = good && !e;
	err_free(e);
	free(functions);
	free(meant);
	return good ? CMD_OK : CMD_FAILED;
}

/* `remove '*'` also takes out what a killed culprit paths has left. Returns whether there was something. */
static bool clear_paths(const char *command, pid_t pid, const struct args *args, struct buf *out,
			int *status)
{
	enum left_found found = LEFT_NOTHING;
	if (strcmp(command, "remove") || args->count != 1 || strcmp(args->operands[0], "*"))
		return false;
	struct err *e = paths_left_clear(pid, &found);
	bool any = e || found == LEFT_CLEARED;
	if (any)
		buf_printf(out, "%s\n",
			   e ? err_text(e)
			     : "the paths that a killed culprit paths has counted: removed");
	*status = e ? CMD_FAILED : CMD_OK;
	err_free(e);
	return any;
}

bool probe_left_answer(const char *command, pid_t pid, bool json, const struct args *args,
		       struct buf *out, int *status)
{
	struct names n;
	bool lists = !strcmp(command, "list"), removes = !strcmp(command, "remove");
	struct err *e = name_all(&n, pid);
	bool any = !e && n.probes.count, paths = clear_paths(command, pid, args, out, status);
	if (any && lists) {
		fprintf(stderr,
			"culprit: process %d: the culprit probe that counted there was killed: "
			"'culprit probe remove' takes its probes out\n",
			(int)pid);
		list(&n, json, out);
		*status = CMD_OK;
	} else if (any && removes) {
		bool good = !paths || *status == CMD_OK;
		*status = take_out(&n, pid, args, out);
		*status = good ? *status : CMD_FAILED;
	} else if (any) {
		buf_printf(out,
			   "process %d: the culprit probe that counted there was killed: 'culprit "
			   "probe list' shows what it has left, 'remove' takes it out\n",
			   (int)pid);
		*status = CMD_FAILED;
	}
	err_free(e);
	probes_free(&n.probes);
	free(n.addresses);
	return any || paths;
}
