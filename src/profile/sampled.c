/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/sampled.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/sum.h"
#include "profile/decode.h"
#include "profile/format.h"
#include "profile/own.h"

void sampled_free(struct profile_counted *f)
{
	for (size_t i = 0; i < f->sampled_count; i++)
		free(f->sampled[i].paths);
	free(f->sampled);
	f->sampled = NULL;
	f->sampled_count = 0;
}

/* ---- copies ---- */

static bool copy_one(struct profile *p, const struct profile_sampled *from,
		     struct profile_sampled *to)
{
	*to = *from;
	to->paths = calloc(from->path_count + 1, sizeof *to->paths);
	if (!to->paths || !own_keep(p, &to->metric) || !own_keep(p, &to->unit))
		return false;
	if (from->path_count)
		memcpy(to->paths, from->paths, from->path_count * sizeof *to->paths);
	return true;
}

bool sampled_copy(struct profile *p, const struct profile_counted *from, struct profile_counted *to)
{
	bool good = true;
	to->sampled_count = 0;
	to->sampled = calloc(from->sampled_count + 1, sizeof *to->sampled);
	while (to->sampled && to->sampled_count < from->sampled_count && good) {
		size_t i = to->sampled_count++;
		good = copy_one(p, &from->sampled[i], &to->sampled[i]);
	}
	return to->sampled && good;
}

/* ---- the same function ---- */

static struct profile_sampled *find_metric(const struct profile_counted *f,
					   const struct profile_sampled *like)
{
	for (size_t i = 0; i < f->sampled_count; i++)
		if (!strcmp(f->sampled[i].metric, like->metric) &&
		    !strcmp(f->sampled[i].unit, like->unit))
			return &f->sampled[i];
	return NULL;
}

static size_t count_new(const struct profile_counted *into, const struct profile_counted *from)
{
	size_t count = 0;
	for (size_t i = 0; i < from->sampled_count; i++)
		count += !find_metric(into, &from->sampled[i]);
	return count;
}

bool sampled_may_join(const struct profile_counted *x, const struct profile_counted *y)
{
	return x->sampled_count + count_new(x, y) <= PROFILE_SAMPLED_MAX;
}

/* Both lists as one; without memory, false, and both stay. */
static bool join_paths(struct profile_sampled *into, const struct profile_sampled *from)
{
	size_t most = into->path_count + from->path_count, i = 0, k = 0, count = 0;
	struct profile_sampled_path *joined = calloc(most + 1, sizeof *joined);
	if (!joined)
		return false;
	while (i < into->path_count || k < from->path_count) {
		const struct profile_sampled_path *x = i < into->path_count ? &into->paths[i]
									    : NULL;
		const struct profile_sampled_path *y = k < from->path_count ? &from->paths[k]
									    : NULL;
		bool first = x && (!y || x->number <= y->number);
		bool second = y && (!x || y->number <= x->number);
		joined[count++] = (struct profile_sampled_path){
			first ? x->number : y->number,
			sum_add(first ? x->value : 0, second ? y->value : 0),
			sum_add(first ? x->sure : 0, second ? y->sure : 0)};
		i += first;
		k += second;
	}
	free(into->paths);
	into->paths = joined;
	into->path_count = count;
	return true;
}

static bool join_one(struct profile_sampled *into, const struct profile_sampled *from)
{
	if (!join_paths(into, from))
		return false;
	into->samples = sum_add(into->samples, from->samples);
	into->placed = sum_add(into->placed, from->placed);
	into->sure = sum_add(into->sure, from->sure);
	into->value = sum_add(into->value, from->value);
	return true;
}

bool sampled_join(struct profile_counted *into, struct profile_counted *from)
{
	size_t all = into->sampled_count + count_new(into, from);
	struct profile_sampled *moved = realloc(into->sampled, (all + 1) * sizeof *moved);
	bool good = moved;
	into->sampled = moved ? moved : into->sampled;
	for (size_t i = 0; i < from->sampled_count && good; i++) {
		struct profile_sampled *same = find_metric(into, &from->sampled[i]);
		if (same) {
			good = join_one(same, &from->sampled[i]);
			continue;
		}
		into->sampled[into->sampled_count++] = from->sampled[i];
		from->sampled[i].paths = NULL;
		from->sampled[i].path_count = 0;
	}
	return good;
}

static bool is_good(const struct profile_counted *f, const struct profile_sampled *s)
{
	size_t k = 0;
	bool good = s->placed <= s->samples && s->sure <= s->placed &&
		    s->path_count <= f->path_count;
	for (size_t i = 0; i < s->path_count && good; i++) {
		while (k < f->path_count && f->paths[k].number < s->paths[i].number)
			k++;
		good = k < f->path_count && f->paths[k].number == s->paths[i].number &&
		       s->paths[i].sure <= s->paths[i].value &&
		       (!i || s->paths[i - 1].number < s->paths[i].number);
	}
	return good;
}

bool sampled_is_good(const struct profile_counted *f)
{
	bool good = f->sampled_count <= PROFILE_SAMPLED_MAX;
	for (size_t i = 0; i < f->sampled_count && good; i++)
		good = is_good(f, &f->sampled[i]);
	return good;
}

/* ---- the file ---- */

static void put_paths(struct buf *raw, const struct profile_counted *f,
		      const struct profile_sampled *s)
{
	size_t k = 0, last = 0;
	format_put_number(raw, s->path_count);
	for (size_t i = 0; i < s->path_count; i++) {
		while (f->paths[k].number < s->paths[i].number)
			k++;
		format_put_number(raw, k - last);
		last = k;
	}
	for (size_t i = 0; i < s->path_count; i++)
		format_put_number(raw, s->paths[i].value);
	for (size_t i = 0; i < s->path_count; i++)
		format_put_number(raw, s->paths[i].sure);
}

size_t sampled_put(struct buf *raw, const struct profile_counted *f, size_t index, size_t *last)
{
	for (size_t i = 0; i < f->sampled_count; i++) {
		const struct profile_sampled *s = &f->sampled[i];
		format_put_number(raw, index - *last);
		*last = index;
		format_put_text(raw, s->metric);
		format_put_text(raw, s->unit);
		format_put_number(raw, s->samples);
		format_put_number(raw, s->placed);
		format_put_number(raw, s->sure);
		format_put_number(raw, s->value);
		put_paths(raw, f, s);
	}
	return f->sampled_count;
}

static void take_paths(struct decoder *d, struct cursor *c, const struct profile_counted *f,
		       struct profile_sampled *s)
{
	uint64_t at = 0;
	s->path_count = cursor_rows(c, 3);
	c->bad |= s->path_count > f->path_count;
	s->paths = c->bad ? NULL : calloc(s->path_count + 1, sizeof *s->paths);
	if (!s->paths) {
		if (!c->bad && !d->error)
			d->error = err_new("out of memory");
		return;
	}
	for (size_t i = 0; i < s->path_count && !c->bad; i++) {
		uint64_t more = cursor_number(c);
		c->bad |= (i && !more) || __builtin_add_overflow(at, more, &at) ||
			  at >= f->path_count;
		s->paths[i].number = c->bad ? 0 : f->paths[at].number;
	}
	for (size_t i = 0; i < s->path_count; i++)
		s->paths[i].value = cursor_number(c);
	for (size_t i = 0; i < s->path_count; i++) {
		s->paths[i].sure = cursor_number(c);
		c->bad |= s->paths[i].sure > s->paths[i].value;
	}
}

static void read_one(struct decoder *d, struct cursor *c, struct profile_counted *f)
{
	struct profile_sampled s = {.metric = decode_text(d, c)};
	s.unit = decode_text(d, c);
	s.samples = cursor_number(c);
	s.placed = cursor_number(c);
	s.sure = cursor_number(c);
	s.value = cursor_number(c);
	c->bad |= s.placed > s.samples || s.sure > s.placed ||
		  f->sampled_count >= PROFILE_SAMPLED_MAX || (!c->bad && find_metric(f, &s));
	if (!c->bad && !d->error)
		take_paths(d, c, f, &s);
	struct profile_sampled *moved = c->bad || d->error
						? NULL
						: realloc(f->sampled,
							  (f->sampled_count + 1) * sizeof *moved);
	if (!moved) {
		if (!c->bad && !d->error)
			d->error = err_new("out of memory");
		free(s.paths);
		return;
	}
	f->sampled = moved;
	f->sampled[f->sampled_count++] = s;
}

void sampled_read(struct decoder *d, struct cursor *c, size_t first)
{
	size_t count = cursor_rows(c, 8), at = first;
	for (size_t i = 0; i < count && !c->bad && !d->error; i++) {
		uint64_t more = cursor_number(c);
		c->bad |= more >= d->p->counted_count - at;
		at += c->bad ? 0 : more;
		if (!c->bad)
			read_one(d, c, &d->p->counted[at]);
	}
}
