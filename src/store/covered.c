/* SPDX-License-Identifier: Apache-2.0 */
#include "store/covered.h"

#include "base/err.h"

static struct covered_event *find(const struct covered *sum, int64_t event)
{
	for (size_t i = 0; i < sum->count; i++)
		if (sum->items[i].event == event)
			return (struct covered_event *)&sum->items[i];
	return NULL;
}

static void add(struct covered *sum, int64_t event, uint64_t samples, struct coverage c)
{
	struct covered_event *x = find(sum, event);
	if (!x && sum->count == STORE_EVENT_MAX)
		return;
	if (!x) {
		x = &sum->items[sum->count++];
		*x = (struct covered_event){.event = event};
	}
	coverage_add(&x->coverage, x->samples, c, samples);
	x->samples += samples;
}

struct err *covered_add(struct store *s, int64_t segment, struct covered *sum)
{
	sqlite3_stmt *r;
	bool row = true;
	struct err *e = sql_prepare(
		s, &r, "SELECT event, samples, enabled, running FROM total WHERE segment = ?", "d",
		segment);
	while (!e) {
		e = sql_step(s, r, &row);
		if (e || !row)
			break;
		add(sum, sqlite3_column_int64(r, 0), (uint64_t)sqlite3_column_int64(r, 1),
		    (struct coverage){(uint64_t)sqlite3_column_int64(r, 2),
				      (uint64_t)sqlite3_column_int64(r, 3)});
	}
	sql_done(s, r);
	return e;
}

/* One that was never counted has no samples, and so no total yet. */
struct err *covered_write(struct store *s, int64_t segment, const struct covered *sum)
{
	struct err *e = NULL;
	for (size_t i = 0; !e && i < sum->count; i++) {
		const struct covered_event *x = &sum->items[i];
		if (coverage_share(x->coverage) < 1)
			e = sql_do(s,
				   "INSERT INTO total (segment, event, samples, walked, enabled,"
				   " running) VALUES (?, ?, 0, 0, ?, ?) ON CONFLICT DO UPDATE"
				   " SET enabled = excluded.enabled, running = excluded.running",
				   "dduu", segment, x->event, x->coverage.enabled_ns,
				   x->coverage.running_ns);
	}
	return e;
}

struct coverage covered_find(const struct covered *sum, uint64_t event)
{
	const struct covered_event *x = find(sum, (int64_t)event);
	return x ? x->coverage : (struct coverage){0, 0};
}

struct err *covered_any(struct store *s, bool *any)
{
	int64_t found;
	struct err *e = sql_number(
		s, &found, 0, "SELECT EXISTS (SELECT 1 FROM total WHERE enabled IS NOT NULL)", "");
	*any = !e && found;
	return e;
}
