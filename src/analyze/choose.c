/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/choose.h"

#include "analyze/serial.h"
#include "analyze/summary.h"
#include "base/buf.h"
#include "base/err.h"
#include "profile/format.h"
#include "profile/process_name.h"
#include "profile/profile.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct err *choose_no_metric(const struct profile *p, const char *path, const char *wanted)
{
	struct buf names = {0};
	for (size_t i = 0; i < p->metric_count; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", p->metrics[i].name);
	struct err *e = err_new("%s has no metric '%s', only: %s", path, wanted,
				names.size ? buf_text(&names) : "none");
	buf_free(&names);
	return e;
}

struct err *choose_metric(const struct profile *p, const char *path, const char *wanted,
			  uint32_t *metric)
{
	char *end;
	*metric = 0;
	if (!wanted)
		return NULL;
	for (uint32_t i = 0; i < p->metric_count; i++)
		if (!strcmp(p->metrics[i].name, wanted)) {
			*metric = i;
			return NULL;
		}
	unsigned long number = strtoul(wanted, &end, 10);
	if (isdigit((unsigned char)wanted[0]) && !*end && number < p->metric_count) {
		*metric = (uint32_t)number;
		return NULL;
	}
	return choose_no_metric(p, path, wanted);
}

struct err *choose_check_samples(const struct profile *p, const char *path)
{
	if (p->value_count || p->lost_count || !p->counted_count)
		return NULL;
	return err_new(
		"%s has no samples, but counts of paths: culprit report --by=path %s shows them, as does culprit view; culprit diff "
		"--by=path compares them",
		path, path);
}

struct err *choose_profile(const char *path, const char *wanted, struct profile **profile,
			   uint32_t *metric, struct summary *summary, struct buf *notes)
{
	return choose_profile_without(path, NULL, wanted, profile, metric, summary, notes);
}

struct err *choose_profile_without(const char *path, const struct profile_spare *spare,
				   const char *wanted, struct profile **profile, uint32_t *metric,
				   struct summary *summary, struct buf *notes)
{
	return choose_profile_prepared(path, spare, wanted, &(struct choose_prepare){0}, profile,
				       metric, summary, notes);
}

struct err *choose_profile_prepared(const char *path, const struct profile_spare *spare,
				    const char *wanted, const struct choose_prepare *prepare,
				    struct profile **profile, uint32_t *metric,
				    struct summary *summary, struct buf *notes)
{
	char *damage = NULL;
	struct err *e = profile_read_without(path, spare, profile, &damage);
	if (damage)
		buf_printf(notes, "damaged: %s\n", damage);
	free(damage);
	if (!e && prepare->run)
		e = prepare->run(*profile, prepare->context);
	if (!e)
		e = wanted && serial_is_wanted(wanted)
			    ? err_context(serial_add(*profile, metric), "%s", path)
			    : choose_metric(*profile, path, wanted, metric);
	if (!e)
		e = choose_check_samples(*profile, path);
	if (e)
		return e;
	if ((*profile)->shortened)
		buf_puts(
			notes,
			"shortened: the callers of rare samples are left out, and deep recursion is folded; report --full "
			"and culprit db export keep them\n");
	if (!wanted)
		*metric = profile_main(*profile);
	summary_make(*profile, *metric, summary);
	summary_warn(summary, *profile, notes);
	return NULL;
}

/* A number is compared with the id, else the text with the name. */
static bool is_number(const char *wanted, long *number)
{
	char *end;
	*number = strtol(wanted, &end, 10);
	return *wanted && !*end;
}

static bool wants_thread(const char *wanted, const struct profile_thread *t)
{
	long number;
	return is_number(wanted, &number) ? number == t->tid : !strcmp(wanted, t->name);
}

static bool wants_process(const char *wanted, const struct profile_process *x)
{
	long number;
	return is_number(wanted, &number) ? number == x->pid
					  : process_name_is(x->name, x->command, wanted);
}

struct err *choose_threads(const struct profile *p, const char *path, const char *thread,
			   const char *process, bool **threads)
{
	size_t count = 0;
	*threads = NULL;
	if (!thread && !process)
		return NULL;
	bool *chosen = calloc(p->thread_count + 1, sizeof *chosen);
	if (!chosen)
		return err_new("out of memory");
	for (size_t i = 0; i < p->thread_count; i++) {
		const struct profile_thread *t = &p->threads[i];
		const struct profile_process *x = &p->processes[t->process];
		chosen[i] = (!thread || wants_thread(thread, t)) &&
			    (!process || wants_process(process, x));
		count += chosen[i];
	}
	if (count) {
		*threads = chosen;
		return NULL;
	}
	free(chosen);
	const char *what = thread ? "thread" : "process";
	return err_new("%s has no such %s: culprit report --by=%s lists them", path, what, what);
}

bool choose_is_missing(const char *path)
{
	return !profile_has_source(path) && access(path, F_OK) && errno == ENOENT;
}

bool choose_is_profile(const char *path)
{
	char start[sizeof FORMAT_MAGIC - 1];
	struct stat st;
	if (profile_has_source(path))
		return true;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	bool is = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
		  read(fd, start, sizeof start) == (ssize_t)sizeof start &&
		  !memcmp(start, FORMAT_MAGIC, sizeof start);
	if (fd >= 0)
		close(fd);
	return is;
}

const char *choose_main_module(const struct profile *p)
{
	size_t *counts = calloc(p->module_count + 1, sizeof *counts), best = 0;
	for (size_t i = 0; counts && i < p->node_count; i++)
		counts[p->nodes[i].module]++;
	for (size_t i = 1; counts && i < p->module_count; i++)
		if (p->modules[i].kind == PROFILE_FILE && counts[i] > counts[best] * !!best)
			best = i;
	free(counts);
	return best ? p->modules[best].path : NULL;
}
