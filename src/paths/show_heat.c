/* SPDX-License-Identifier: Apache-2.0 */
/*
 *     hot: at least 1% of cpu-clock     paths  instructions  cpu-clock     functions  paths each  cpu-clock
 *     dense                                 3           31%        62%             2        24.0        71%
 *     sparse                                4           40%        21%             1         8.0        20%
 *     cold                                812           29%        17%            95         9.1         9%
 *
 * As the tables 4 and 5 of "Exploiting hardware performance counters with flow and context sensitive profiling" (1997).
 */
#include <stdio.h>

#include "analyze/summary.h"
#include "base/buf.h"
#include "base/term.h"
#include "paths/ranking.h"
#include "paths/show_parts.h"

#include <string.h>

#define KINDS (PATH_DENSE + 1)

struct kind {
	uint64_t paths, path_instructions, path_value;
	uint64_t functions, function_paths, function_value;
};

void show_put_value(struct buf *out, const struct path_metric *metric, uint64_t value, int width)
{
	char number[SUMMARY_COUNT_MAX], time[TERM_UNIT_MAX];
	bool is_time = !strcmp(metric->unit, "ns");
	buf_printf(out, " %*s", width,
		   !value    ? "0"
		   : is_time ? term_time(time, (double)value / 1e9)
			     : summary_count(number, value));
}

void show_metric_summary(const struct ranking *r, const char *name, struct buf *out)
{
	const struct path_metered *m = &r->metered;
	char text[SUMMARY_COUNT_MAX];
	if (!r->metric)
		return;
	buf_printf(out, "%*s%s: %s sample%s in these functions", (int)strlen(name), "",
		   r->metric->name, summary_count(text, m->samples), m->samples == 1 ? "" : "s");
	if (!m->samples) {
		buf_puts(out, "\n");
		return;
	}
	buf_puts(out, ",");
	show_put_share(out, m->sure, m->samples, 0);
	buf_puts(out, " on a path that is sure,");
	show_put_share(out, m->placed - m->sure, m->samples, 0);
	buf_puts(out, " shared out by counts");
	if (m->placed < m->samples) {
		buf_puts(out, ",");
		show_put_share(out, m->samples - m->placed, m->samples, 0);
		buf_puts(out, " on paths without a count");
	}
	buf_puts(out, "\n");
}

static void add_function(const struct ranking *r, const struct ranked_function *f,
			 struct kind kinds[KINDS])
{
	struct kind *of = &kinds[ranking_heat(r, f->metered.value, f->instructions)];
	of->functions++;
	of->function_paths += f->path_count;
	of->function_value += f->metered.value;
	for (size_t i = 0; i < f->path_count; i++) {
		const struct ranked_path *p = &f->paths[i];
		struct kind *k = &kinds[ranking_heat(r, p->sampled.value, ranked_path_cost(p))];
		k->paths++;
		k->path_instructions += ranked_path_cost(p);
		k->path_value += p->sampled.value;
	}
}

static void put_kind(const struct ranking *r, enum path_heat heat, const struct kind *k, int width,
		     struct buf *out)
{
	char text[SUMMARY_COUNT_MAX];
	buf_printf(out, " %-6s", path_heat_name(heat));
	buf_printf(out, " %9s", summary_count(text, k->paths));
	show_put_share(out, k->path_instructions, r->instructions, 13);
	show_put_share(out, k->path_value, r->metered.value, width);
	buf_printf(out, " %11s", summary_count(text, k->functions));
	buf_printf(out, " %11.1f",
		   k->functions ? (double)k->function_paths / (double)k->functions : 0);
	show_put_share(out, k->function_value, r->metered.value, width);
	buf_puts(out, "\n");
}

void show_heat(const struct ranking *r, struct buf *out)
{
	struct kind kinds[KINDS] = {0};
	if (!r->metric || !r->metered.value)
		return;
	int width = (int)strlen(r->metric->name) + 2;
	for (size_t i = 0; i < r->count; i++)
		if (r->functions[i].path_count)
			add_function(r, &r->functions[i], kinds);
	buf_printf(out, "\n hot: paths, and functions, with at least 1%% of %s\n", r->metric->name);
	buf_printf(out, " %-6s %9s %13s %*s %11s %11s %*s\n", "", "paths", "instructions", width,
		   r->metric->name, "functions", "paths each", width, r->metric->name);
	for (int heat = PATH_DENSE; heat >= PATH_COLD; heat--)
		put_kind(r, (enum path_heat)heat, &kinds[heat], width, out);
}
