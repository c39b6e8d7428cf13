/* SPDX-License-Identifier: Apache-2.0 */
#include "paths/hot.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"
#include "paths/choice.h"
#include "paths/result.h"
#include "profile/process_name.h"
#include "profile/profile.h"

/* ---- the modules ---- */

static bool is_program(const struct profile *p, const char *path)
{
	for (size_t i = 0; i < p->process_count; i++)
		if (process_name_is(p->processes[i].name, p->processes[i].command, path_file(path)))
			return true;
	return false;
}

/* Which modules count, by index, malloc'ed; NULL: no memory. */
static bool *choose_modules(const struct profile *p, const struct path_choice *choice)
{
	bool *wanted = calloc(p->module_count + 1, sizeof *wanted);
	for (size_t i = 0; i < p->module_count && wanted; i++) {
		const struct profile_module *m = &p->modules[i];
		wanted[i] = m->kind == PROFILE_FILE &&
			    path_choice_has_module(choice, m->path, is_program(p, m->path));
	}
	return wanted;
}

/* ---- the functions ---- */

/* Removes functions that are not to be counted. */
static void filter(struct hottest *h, const struct path_choice *choice)
{
	size_t kept = 0;
	for (size_t i = 0; i < h->count; i++)
		if (path_choice_has_function(choice, h->functions[i].name))
			h->functions[kept++] = h->functions[i];
		else
			free(h->functions[i].name);
	h->count = kept;
}

/* `modules`: whether they were chosen. */
static struct err *choose(struct path_hot *hot, double cover, bool modules)
{
	const struct hottest *h = &hot->hottest;
	double wanted = (double)h->samples * cover / 100;
	hot->places = calloc(h->count + 1, sizeof *hot->places);
	if (!hot->places)
		return err_new("out of memory");
	while (hot->count < h->count && (double)hot->samples < wanted) {
		const struct hot_function *f = &h->functions[hot->count];
		hot->samples += f->samples;
		hot->places[hot->count++] = (struct path_place){
			hot->profile->modules[f->module].path, f->entry};
	}
	path_places_sort(hot->places, hot->count);
	if (hot->count)
		return NULL;
	if (h->samples)
		return err_new("no function with samples matches");
	return err_new("it has no samples of CPU time in %s",
		       modules ? "these modules"
			       : "the program itself: --module chooses libraries");
}

struct err *path_hot_open(const char *path, double cover, const struct path_choice *choice,
			  struct path_hot *out)
{
	*out = (struct path_hot){.path = path};
	struct err *e = profile_read(path, &out->profile, &out->damage);
	if (e)
		return e;
	bool *wanted = choose_modules(out->profile, choice);
	e = wanted ? hottest_make(out->profile, wanted, &out->hottest) : err_new("out of memory");
	if (!e) {
		filter(&out->hottest, choice);
		e = choose(out, cover, choice->module_count);
	}
	free(wanted);
	return err_context(e, "%s", path);
}

void path_hot_close(struct path_hot *hot)
{
	hottest_free(&hot->hottest);
	profile_free(hot->profile);
	free(hot->places);
	free(hot->damage);
	*hot = (struct path_hot){0};
}

/* ---- what became of it ---- */

struct fate {
	size_t count;
	uint64_t samples;
};

static double share(const struct path_hot *hot, uint64_t samples)
{
	return hot->hottest.all ? 100 * (double)samples / (double)hot->hottest.all : 0;
}

/* What was counted of a function: it may have been so in one program only. */
static const struct path_function *find(const struct path_hot *hot, const struct hot_function *f,
					const struct path_result *result)
{
	const char *path = hot->profile->modules[f->module].path;
	const struct path_function *found = NULL;
	for (size_t i = 0; i < result->count; i++) {
		const struct path_function *r = &result->functions[i];
		if (r->address == f->entry && !strcmp(r->module, path) &&
		    (!found || r->state == PATH_EXACT))
			found = r;
	}
	return found;
}

static void put_fate(const struct path_hot *hot, const struct fate *fate, const char *what,
		     struct buf *out)
{
	if (fate->count)
		buf_printf(out, "%zu of these, with %.1f%%, %s %s\n", fate->count,
			   share(hot, fate->samples), fate->count == 1 ? "was" : "were", what);
}

void path_hot_tell(const struct path_hot *hot, const struct path_result *result, struct buf *out)
{
	struct fate refused = {0}, missing = {0};
	if (hot->damage)
		buf_printf(out, "%s is damaged: %s\n", hot->path, hot->damage);
	for (size_t i = 0; i < hot->count; i++) {
		const struct hot_function *f = &hot->hottest.functions[i];
		const struct path_function *r = find(hot, f, result);
		struct fate *fate = !r ? &missing : &refused;
		if (r && r->state == PATH_EXACT)
			continue;
		fate->count++;
		fate->samples += f->samples;
	}
	buf_printf(out, "%zu function%s chosen by %s: %.1f%% of its samples of CPU time",
		   hot->count, hot->count == 1 ? "" : "s", hot->path, share(hot, hot->samples));
	if (hot->hottest.samples < hot->hottest.all)
		buf_printf(out, ", %.1f%% of those in the chosen modules",
			   100 * (double)hot->samples / (double)hot->hottest.samples);
	buf_puts(out, "\n");
	put_fate(hot, &refused, "refused", out);
	put_fate(hot, &missing, "not met, or left alone", out);
}
