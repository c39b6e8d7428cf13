/* SPDX-License-Identifier: Apache-2.0 */
#include "store/unsent.h"

#include <stdlib.h>
#include <sys/random.h>

#include "base/err.h"
#include "profile/profile.h"
#include "store/reading.h"

/* ---- how far it is ---- */

static struct err *read_state(struct store *s, const char *machine, struct unsent_state *out,
			      bool *found, bool *ours)
{
	sqlite3_stmt *r;
	struct err *e = sql_prepare(s, &r, "SELECT source, sent, given_up, machine = ? FROM fleet",
				    "s", machine);
	*found = *ours = false;
	if (!e)
		e = sql_step(s, r, found);
	if (!e && *found) {
		*out = (struct unsent_state){(uint64_t)sqlite3_column_int64(r, 0),
					     sqlite3_column_int64(r, 1),
					     (uint64_t)sqlite3_column_int64(r, 2)};
		*ours = sqlite3_column_int64(r, 3) != 0;
	}
	sql_done(s, r);
	return e;
}

static struct err *begin(struct store *s, const char *machine, struct unsent_state *out)
{
	bool found, ours;
	struct err *e = read_state(s, machine, out, &found, &ours);
	if (e || ours)
		return e;
	if (getrandom(&out->source, sizeof out->source, 0) != sizeof out->source)
		return err_errno("no random numbers");
	if (found)
		return sql_do(s, "UPDATE fleet SET source = ?, machine = ?", "us", out->source,
			      machine);
	out->given_up = 0;
	e = sql_number(s, &out->sent, 0, "SELECT max(id) FROM segment", "");
	return e ? e
		 : sql_do(s,
			  "INSERT INTO fleet (source, machine, sent, given_up) VALUES (?, ?, ?, 0)",
			  "usd", out->source, machine, out->sent);
}

struct err *unsent_begin(struct store *s, const char *machine, struct unsent_state *out)
{
	struct err *e = sql_begin(s);
	return e ? e : sql_end(s, begin(s, machine, out));
}

struct err *unsent_note(struct store *s, const struct unsent_state *state)
{
	struct err *e = sql_begin(s);
	return e ? e
		 : sql_end(s, sql_do(s, "UPDATE fleet SET source = ?, sent = ?, given_up = ?",
				     "udu", state->source, state->sent, state->given_up));
}

struct err *unsent_end(struct store *s)
{
	int64_t rows;
	struct err *e = sql_number(s, &rows, 0, "SELECT count(*) FROM fleet", "");
	if (!e && rows)
		e = sql_begin(s);
	return e || !rows ? e : sql_end(s, sql_do(s, "DELETE FROM fleet", ""));
}

/* ---- what waits ---- */

struct err *unsent_list(struct store *s, int64_t after, struct unsent_span *out, size_t room,
			size_t *count, uint64_t *bytes)
{
	sqlite3_stmt *r;
	bool row = true;
	*count = 0;
	*bytes = 0;
	struct err *e = sql_prepare(s, &r,
				    "SELECT id, start, length(counts) + length(paths),"
				    " (SELECT sum(samples) FROM total WHERE segment = segment.id)"
				    " FROM segment WHERE level = 0 AND id > ? ORDER BY id",
				    "d", after);
	while (!e) {
		e = sql_step(s, r, &row);
		if (e || !row)
			break;
		struct unsent_span x = {sqlite3_column_int64(r, 0), sqlite3_column_int64(r, 1),
					(uint64_t)sqlite3_column_int64(r, 2),
					(uint64_t)sqlite3_column_int64(r, 3)};
		*bytes += x.bytes;
		if (*count < room)
			out[(*count)++] = x;
	}
	sql_done(s, r);
	return e;
}

/* ---- one span ---- */

struct taker {
	struct store *store;
	struct names names;
	int64_t events[STORE_EVENT_MAX]; /* numbers, in the order of the epoch */
	struct unsent *out;
};

static struct err *take_epoch(struct taker *t, int64_t epoch)
{
	sqlite3_stmt *r;
	bool row = false;
	struct read_epoch *x = &t->out->epoch;
	struct profile *strings = t->names.strings;
	struct err *e = sql_prepare(t->store, &r,
				    "SELECT start, host, kernel, machine, cpu, version, note, cpus,"
				    " hz FROM epoch WHERE id = ?",
				    "d", epoch);
	if (!e)
		e = sql_step(t->store, r, &row);
	if (!e && !row)
		e = err_new("%s: epoch %lld is gone", t->store->path, (long long)epoch);
	if (!e)
		*x = (struct read_epoch){
			.id = epoch,
			.start_ms = sqlite3_column_int64(r, 0),
			.host = profile_string(strings, sql_text(r, 1)),
			.kernel = profile_string(strings, sql_text(r, 2)),
			.machine = profile_string(strings, sql_text(r, 3)),
			.cpu = profile_string(strings, sql_text(r, 4)),
			.version = profile_string(strings, sql_text(r, 5)),
			.note = profile_string(strings, sql_text(r, 6)),
			.cpus = (uint32_t)sqlite3_column_int64(r, 7),
			.hz = (uint64_t)sqlite3_column_int64(r, 8),
		};
	sql_done(t->store, r);
	return e;
}

static struct err *take_totals(struct taker *t)
{
	sqlite3_stmt *r;
	bool row = true;
	struct read_epoch *x = &t->out->epoch;
	x->totals = calloc(STORE_EVENT_MAX, sizeof *x->totals);
	if (!x->totals)
		return err_new("out of memory");
	struct err *e = sql_prepare(
		t->store, &r,
		"SELECT v.id, v.name, v.unit, v.period, v.every, v.user_only, t.samples, t.walked,"
		" t.enabled, t.running"
		" FROM epoch_event p JOIN event v ON v.id = p.event"
		" LEFT JOIN total t ON t.segment = ?1 AND t.event = v.id"
		" WHERE p.epoch = ?2 ORDER BY p.position",
		"dd", t->out->id, x->id);
	while (!e && x->total_count < STORE_EVENT_MAX) {
		e = sql_step(t->store, r, &row);
		if (e || !row)
			break;
		t->events[x->total_count] = sqlite3_column_int64(r, 0);
		x->totals[x->total_count++] = (struct read_total){
			{profile_string(t->names.strings, sql_text(r, 1)),
			 profile_string(t->names.strings, sql_text(r, 2)),
			 (uint64_t)sqlite3_column_int64(r, 3), (uint64_t)sqlite3_column_int64(r, 4),
			 sqlite3_column_int64(r, 5) != 0},
			(uint64_t)sqlite3_column_int64(r, 6),
			(uint64_t)sqlite3_column_int64(r, 7),
			{(uint64_t)sqlite3_column_int64(r, 8),
			 (uint64_t)sqlite3_column_int64(r, 9)}};
	}
	sql_done(t->store, r);
	return e;
}

static struct err *take_losses(struct taker *t)
{
	sqlite3_stmt *r;
	struct read_samples *n = &t->out->names;
	struct err *e = sql_prepare(t->store, &r,
				    "SELECT kind, reason, samples FROM loss WHERE segment = ?"
				    " ORDER BY 1, 2",
				    "d", t->out->id);
	if (!e)
		e = losses_read(t->store, t->names.strings, r, &n->losses, &n->loss_count);
	sql_done(t->store, r);
	return e;
}

static struct err *find_event(const struct taker *t, uint64_t id, uint32_t *place)
{
	for (*place = 0; *place < t->out->epoch.total_count; ++*place)
		if ((uint64_t)t->events[*place] == id)
			return NULL;
	return err_new("%s: span %lld has samples of an event that its epoch has not",
		       t->store->path, (long long)t->out->id);
}

static struct err *take_counts(struct taker *t, const struct segment *x)
{
	struct read_samples *n = &t->out->names;
	struct err *e = NULL;
	n->counts = calloc(x->count_count + 1, sizeof *n->counts);
	if (!n->counts)
		return err_new("out of memory");
	for (size_t i = 0; !e && i < x->count_count; i++) {
		const struct pack_count *from = &x->counts[i];
		struct read_count *to = &n->counts[i];
		to->address = from->address;
		to->count = from->count;
		e = names_process(&t->names, from->process, &to->process);
		if (!e)
			e = names_image(&t->names, from->image, &to->image);
		if (!e)
			e = find_event(t, from->event, &to->event);
	}
	n->count_count = x->count_count;
	return e;
}

static struct err *take_paths(struct taker *t, const struct segment *x)
{
	struct unsent *out = t->out;
	struct err *e = NULL;
	out->paths = calloc(x->path_count + 1, sizeof *out->paths);
	if (!out->paths)
		return err_new("out of memory");
	for (size_t i = 0; !e && i < x->path_count; i++) {
		const struct pack_path *from = &x->paths[i];
		struct unsent_path *to = &out->paths[i];
		if (from->node >= out->node_count)
			return err_new("%s: call paths are damaged", t->store->path);
		to->node = (uint32_t)from->node;
		to->count = from->count;
		e = names_process(&t->names, from->process, &to->process);
		if (!e)
			e = find_event(t, from->event, &to->event);
	}
	out->path_count = x->path_count;
	return e;
}

/* The tree of the epoch is kept from one span to the next, as long as nobody has changed the file. */
static struct err *load_tree(struct store *s, int64_t epoch)
{
	struct err *e = intern_refresh(s);
	return e || s->tree_epoch == epoch ? e : trees_load(s, epoch);
}

/* Images that only callers are in must have their names, too: so those of the nodes that paths
   lead to. */
static struct err *take_nodes(struct taker *t, const struct segment *x)
{
	const struct calltree *tree = &t->store->tree;
	struct unsent *out = t->out;
	struct err *e = load_tree(t->store, out->epoch.id);
	bool *used = e ? NULL : calloc(tree->count, sizeof *used);
	out->nodes = e ? NULL : calloc(tree->count, sizeof *out->nodes);
	if (!e && (!used || !out->nodes))
		e = err_new("out of memory");
	for (size_t i = 0; !e && i < x->path_count; i++)
		if (x->paths[i].node < tree->count)
			used[x->paths[i].node] = true;
	for (uint32_t i = e ? 0 : tree->count; !e && i-- > 1;) {
		const struct pack_node *from = &tree->nodes[i];
		out->nodes[i] = (struct unsent_node){from->parent, 0, from->address, from->kind};
		if (!used[i])
			continue;
		used[from->parent] = true;
		e = names_image(&t->names, from->image, &out->nodes[i].image);
	}
	out->node_count = e ? 0 : tree->count;
	free(used);
	return e;
}

static struct err *take(struct taker *t, struct segment *x)
{
	struct unsent *out = t->out;
	struct err *e = segment_read(t->store, out->id, SEGMENT_ALL, x);
	if (e)
		return e;
	out->start_ms = x->start_ms;
	out->end_ms = x->end_ms;
	out->intervals = x->intervals;
	out->cost = x->cost;
	e = take_epoch(t, x->epoch);
	if (!e)
		e = take_totals(t);
	if (!e)
		e = take_losses(t);
	if (!e)
		e = take_counts(t, x);
	if (!e)
		e = take_nodes(t, x);
	if (!e)
		e = take_paths(t, x);
	for (size_t i = 0; !e && i < t->names.image_count;
	     i++) { /* whose code made at run time is */
		uint32_t place;
		e = names_process(&t->names, (uint64_t)t->names.images[i].process, &place);
	}
	return e;
}

struct err *unsent_read(struct store *s, int64_t id, struct unsent *out)
{
	struct taker t = {.store = s, .out = out};
	struct segment x = {0};
	*out = (struct unsent){.id = id};
	struct err *e = sql_run(s, "BEGIN"); /* all of it as it was at one moment */
	if (!e)
		e = names_open(&t.names, s);
	if (!e)
		e = take(&t, &x);
	sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	segment_free(&x);
	names_hand_over(&t.names, &out->names);
	if (e)
		unsent_free(out);
	return e;
}

void unsent_free(struct unsent *x)
{
	free(x->epoch.totals);
	free(x->paths);
	free(x->nodes);
	read_samples_free(&x->names);
	*x = (struct unsent){0};
}

void unsent_forget(struct store *s)
{
	intern_forget(s);
	calltree_free(&s->tree);
}
