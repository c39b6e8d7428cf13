/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/probe_live.h"

#include "analyze/modules.h"
#include "base/args.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/path.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/probe_left.h"
#include "collect/recorder.h"
#include "collect/session.h"
#include "harvest/probes.h"
#include "probe/changed.h"
#include "probe/choose.h"
#include "probe/meant.h"
#include "probe/modules.h"
#include "probe/patchable.h"
#include "probe/show.h"
#include "probe/steer.h"
#include "profile/profile.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- functions come ---- */

static struct err *find_modules(const struct probe_live *l, struct probe_modules *out)
{
	struct err *e = NULL;
	for (size_t i = 0; i < l->pid_count && !e; i++)
		e = probe_modules_of_process(out, l->pids[i]);
	if (!e && !l->children)
		probe_modules_find_shared(out, l->pids, l->pid_count);
	return e;
}

/* As it was before: the first of them is there. */
static void take_back(struct probes *p, size_t before)
{
	for (size_t i = 0; i < before; i++) {
		p->functions[i].removed |= p->functions[i].fresh;
		p->functions[i].fresh = false;
	}
	probes_forget(p, before);
}

static int tell_added(const struct probes *p, const bool *fresh, struct buf *out)
{
	bool any = false;
	for (size_t i = 0; i < p->count; i++) {
		const struct probe_function *f = &p->functions[i];
		if (!fresh[i])
			continue;
		any |= f->state != PROBE_REFUSED;
		buf_printf(out, "%s (%s): %s%s%s\n", f->name, path_file(f->module),
			   f->state == PROBE_ON         ? "added"
			   : f->state == PROBE_COUNTING ? "added, only counted"
							: "refused",
			   f->reason ? ": " : "", f->reason ? f->reason : "");
	}
	return any ? CMD_OK : CMD_FAILED;
}

static int add(struct probe_live *l, char **words, size_t count, struct buf *out)
{
	struct probes *p = l->probes;
	struct probe_modules modules = {0};
	size_t before = p->count;
	struct err *e = find_modules(l, &modules);
	for (size_t i = 0; i < l->pid_count && !p->patched && !e; i++)
		e = probe_left_clear(l->pids[i], NULL, 0);
	for (size_t i = 0; i < count && !e; i++)
		e = probe_choose(&modules, words[i], p);
	for (size_t i = 0; i < l->pid_count && !p->patched && !e; i++)
		e = probe_refuse_changed(p, before, l->pids[i]);
	if (!e && p->patched) {
		probe_judge_patches(p, &modules, modules.count);
		probe_use_patches(p, before);
	}
	probe_modules_free(&modules);
	for (size_t i = before; i < p->count; i++) {
		p->functions[i].fresh = true;
		if (p->only_calls)
			probes_refuse(&p->functions[i], PROBE_COUNTING, "--metric calls");
	}
	if (e) {
		take_back(p, before);
		buf_printf(out, "%s\n", err_text(e));
		err_free(e);
		return CMD_FAILED;
	}
	bool *fresh = calloc(p->count + 1, sizeof *fresh);
	bool any = false;
	for (size_t i = 0; fresh && i < p->count; i++)
		any |= fresh[i] = p->functions[i].fresh;
	e = fresh ? session_probe_more(l->recorder->session, before) : err_new("out of memory");
	int status = CMD_FAILED;
	if (e)
		buf_printf(out, "%s\n", err_text(e));
	else if (!any)
		buf_puts(out, "they are probed already\n");
	else
		status = tell_added(p, fresh, out);
	err_free(e);
	free(fresh);
	return any ? status : CMD_OK;
}

/* ---- functions go ---- */

static int take_away(struct probe_live *l, char **words, size_t count, struct buf *out)
{
	struct probes *p = l->probes;
	bool *meant = calloc(p->count + 1, sizeof *meant), good = meant;
	for (size_t i = 0; i < count && good; i++)
		good = probe_mark_meant(p, words[i], meant, out);
	for (size_t i = 0; i < p->count && good; i++) {
		struct probe_function *f = &p->functions[i];
		if (!meant[i])
			continue;
		session_probe_less(l->recorder->session, (uint32_t)i + 1);
		f->removed = true;
		buf_printf(out, "%s (%s): removed\n", f->name, path_file(f->module));
	}
	free(meant);
	return good ? CMD_OK : CMD_FAILED;
}

/* ---- what there is ---- */

static struct err *put_all(struct probe_live *l, bool json, struct profile *profile,
			   struct buf *out)
{
	struct modules *modules = NULL;
	struct err *e = modules_open(profile, false, &modules);
	if (e)
		return e;
	if (json) {
		struct json j = json_to_buf(out);
		json_begin_object(&j);
		json_put_u64(&j, "culprit", 1);
		e = probe_show_json(l->probes, profile, modules, false, &j);
		json_end_object(&j);
		json_newline(&j);
	} else {
		probe_show_functions(l->probes, out);
		probe_show_paths(l->probes, profile, modules, l->limit, out);
		e = probe_show_more(l->probes, profile, modules, out);
	}
	modules_close(modules);
	return e;
}

static int show(struct probe_live *l, bool json, struct buf *out)
{
	struct profile *profile = NULL;
	struct err *e = session_snapshot(l->recorder->session, &profile);
	if (!e)
		e = put_all(l, json, profile, out);
	profile_free(profile);
	if (!e)
		return CMD_OK;
	buf_clear(out);
	buf_printf(out, "%s\n", err_text(e));
	err_free(e);
	return CMD_FAILED;
}

void probe_live_refresh(struct probe_live *l)
{
	struct profile *profile = NULL;
	if (l->probes->patched && l->recorder->session)
		err_free(session_snapshot(l->recorder->session, &profile));
	profile_free(profile);
}

static int list(struct probe_live *l, bool json, struct buf *out)
{
	probe_live_refresh(l);
	if (!json) {
		probe_show_functions(l->probes, out);
		return CMD_OK;
	}
	struct json j = json_to_buf(out);
	json_begin_object(&j);
	json_put_u64(&j, "culprit", 1);
	probe_show_list(l->probes, &j);
	json_end_object(&j);
	json_newline(&j);
	return CMD_OK;
}

/* ---- answers ---- */

static int handle(void *context, char **words, size_t count, struct buf *out)
{
	struct probe_live *l = context;
	bool json = count > 1 && !strcmp(words[1], "--json");
	if (count < 2 || !l->recorder->session)
		return CMD_FAILED;
	bool changes = !strcmp(words[0], "add") || !strcmp(words[0], "remove");
	if (changes && l->fixed) {
		buf_puts(out, "the program counts its calls itself. Start it with --engine=uprobe "
			      "to change what is probed\n");
		return CMD_FAILED;
	}
	if (!strcmp(words[0], "add"))
		return add(l, words + 2, count - 2, out);
	if (!strcmp(words[0], "remove"))
		return take_away(l, words + 2, count - 2, out);
	if (!strcmp(words[0], "list"))
		return list(l, json, out);
	return show(l, json, out);
}

void probe_live_open(struct probe_live *l)
{
	err_free(steer_open(l->pids, l->pid_count, &l->steer));
}

void probe_live_serve(struct probe_live *l)
{
	steer_serve(l->steer, handle, l);
}

void probe_live_close(struct probe_live *l)
{
	steer_close(l->steer);
	l->steer = NULL;
	free(l->pids);
	l->pids = NULL;
}

/* ---- questions ---- */

static const char *const live_commands[] = {"add", "remove", "list", "show"};

bool probe_live_is_command(const char *word)
{
	for (size_t i = 0; word && i < sizeof live_commands / sizeof *live_commands; i++)
		if (!strcmp(word, live_commands[i]))
			return true;
	return false;
}

static int ask(const char *command, pid_t pid, bool json, const struct args *args)
{
	struct buf answer = {0};
	int status = CMD_FAILED;
	size_t count = 2 + (size_t)args->count;
	char **words = calloc(count, sizeof *words);
	struct err *e = words ? NULL : err_new("out of memory");
	if (words) {
		words[0] = (char *)command;
		words[1] = (char *)(json ? "--json" : "");
		memcpy(words + 2, args->operands, (size_t)args->count * sizeof *words);
		e = steer_ask(pid, words, count, &answer, &status);
	}
	free(words);
	if (e && probe_left_answer(command, pid, json, args, &answer, &status)) {
		err_free(e);
		e = NULL;
	}
	if (e) {
		buf_free(&answer);
		return cmd_fail("probe", e);
	}
	if (status == CMD_OK)
		fputs(buf_text(&answer), stdout);
	else
		fprintf(stderr, "culprit probe: %s", buf_text(&answer));
	buf_free(&answer);
	return status == CMD_OK ? cmd_finish("probe", CMD_OK) : status;
}

int probe_live_ask(int argc, char **argv)
{
	const char *command = argv[1];
	bool changes = !strcmp(command, "add") || !strcmp(command, "remove");
	uint64_t pid = 0;
	bool json = false;
	const struct arg options[] = {
		{'p', "pid", "PID", "the process that culprit probe is at work in", ARG_U64, &pid},
		{0, "json", NULL, "print JSON (list, show)", ARG_FLAG, &json},
		{0},
	};
	struct args args = {
		.command = "probe",
		.usage = "add|remove -p PID FUNCTION... | list|show [--json] -p PID",
		.summary = "Changes or shows what a running culprit probe counts in this process.",
		.options = options,
		.examples = "  culprit probe add -p 4711 'parse_*'\n"
			    "  culprit probe show -p 4711\n",
	};
	int status = cmd_parse(&args, argc - 1, argv + 1);
	if (status >= 0)
		return status;
	if (!pid || pid > INT_MAX)
		return cmd_misused("probe", "%s: of which process? -p PID", command);
	if (changes && !args.count)
		return cmd_misused("probe", "%s: which functions?", command);
	if (!changes && args.count)
		return cmd_misused("probe", "%s: unexpected '%.64s'", command, args.operands[0]);
	return ask(command, (pid_t)pid, json, &args);
}
