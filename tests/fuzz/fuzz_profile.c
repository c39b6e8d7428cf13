/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles. After a first byte that is even the rest is a file. After an odd
 * one it is a list of sections (type, flags, two bytes of length, contents), of
 * which a file with right checksums is made, so that what is inside is reached.
 * What can be read is written, read again and must be the same. Paths that were counted are told, and compared with themselves.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "compare/block_pairs.h"
#include "compare/path_diff.h"
#include "paths/flow_check.h"
#include "paths/result.h"
#include "paths/stored.h"
#include "paths/way_ends.h"
#include "paths/ways.h"
#include "profile/format.h"
#include "profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_section(struct buf *file, uint32_t type, uint32_t flags, const uint8_t *bytes,
			size_t size)
{
	struct format_section s = {type, flags, size, size, format_checksum(bytes, size)};
	uint8_t header[FORMAT_SECTION_SIZE];
	if (flags & FORMAT_ZSTD)
		s.raw *= 8;
	format_put_section(header, &s);
	buf_append(file, header, sizeof header);
	buf_append(file, bytes, size);
}

static void make_file(const uint8_t *data, size_t size, struct buf *file)
{
	uint8_t header[FORMAT_HEADER_SIZE];
	format_put_header(header);
	buf_append(file, header, sizeof header);
	while (size >= 4) {
		size_t length = (size_t)format_get(data + 2, 2);
		if (length > size - 4)
			length = size - 4;
		add_section(file, data[0] & 15, data[1] & 3, data + 4, length);
		data += 4 + length;
		size -= 4 + length;
	}
}

static void check(const struct profile *p)
{
	for (size_t i = 1; i < p->node_count; i++)
		assert(p->nodes[i].parent < i && p->nodes[i].module < p->module_count &&
		       p->nodes[i].kind != PROFILE_ROOT);
	for (size_t i = 0; i < p->thread_count; i++)
		assert(p->threads[i].process < p->process_count);
	for (size_t i = 0; i < p->module_count; i++) {
		const struct profile_module *m = &p->modules[i];
		assert(m->kind != PROFILE_JIT || m->process < p->process_count);
		for (size_t k = 1; k < m->name_count; k++)
			assert(m->names[k - 1].start <= m->names[k].start);
	}
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i];
		assert(v->node < p->node_count && v->thread < p->thread_count &&
		       v->metric < p->metric_count && v->count);
		assert(i == 0 || v[-1].node < v->node ||
		       (v[-1].node == v->node &&
			(v[-1].thread < v->thread ||
			 (v[-1].thread == v->thread && v[-1].metric < v->metric))));
	}
	for (size_t i = 0; i < p->counted_count; i++) {
		const struct profile_counted *f = &p->counted[i];
		assert(f->module < p->module_count && !*f->reason == !!f->graph_size);
		for (size_t k = 0; k < f->path_count; k++)
			assert(f->paths[k].count &&
			       (!k || f->paths[k - 1].number < f->paths[k].number));
	}
	assert(p->span_count <= PROFILE_SPAN_MAX);
	for (size_t i = 0; i < p->span_count; i++) {
		const struct profile_span *s = &p->spans[i];
		assert(s->node < p->node_count && s->thread < p->thread_count &&
		       s->metric < p->metric_count && s->samples);
		assert(i == 0 || s[-1].thread < s->thread ||
		       (s[-1].thread == s->thread &&
			s[-1].start_us + s[-1].duration_us <= s->start_us));
	}
}

/* Equal profiles have equal files. */
static void check_again(const struct profile *p)
{
	struct buf first = {0}, second = {0};
	struct profile *again;
	char *damage;
	assert(!profile_pack(p, &first));
	assert(!profile_parse(first.data, first.size, &again, &damage));
	assert(!damage);
	check(again);
	assert(!profile_pack(again, &second));
	assert(first.size == second.size && !memcmp(first.data, second.data, first.size));
	profile_free(again);
	buf_free(&first);
	buf_free(&second);
}

static void check_merge(const struct profile *p)
{
	struct profile *into;
	assert(!profile_new(&into));
	err_free(profile_merge(into, p)); /* an error where it has too many metrics, twice */
	err_free(profile_merge(into, p));
	check(into);
	for (uint32_t i = 0; i < p->metric_count && i < 4; i++)
		assert(profile_partial(p, i, 3) <= profile_samples(p, i));
	profile_free(into);
}

/* As much as a person would look at. */
#define TOLD 50u

static void tell_paths(const struct path_function *f, struct buf *out)
{
	struct ways ways;
	struct way_ends ends;
	struct numbering_path path = {0};
	assert(!ways_open(&f->graph, NULL, WAY_OWN, &ways));
	assert(!way_ends_open(&f->numbering, &ways, &ways, &ends));
	for (uint64_t i = 0, told = 0; i < f->numbering.path_count && told < TOLD; i++) {
		if (!f->counts[i])
			continue;
		told++;
		assert(!numbering_decode(&f->numbering, i, &path));
		assert(path.count && path.count <= f->graph.block_count);
		way_ends_print_start(&ends, &path, out);
		ways_print(&ways, &path, out);
		way_ends_print_end(&ends, &path, out);
	}
	numbering_path_free(&path);
	way_ends_close(&ends);
	ways_close(&ways);
}

#define COMPARED 300u /* blocks */

/* Any two functions can be compared. */
static void compare_blocks(const struct ranked_function *x, const struct ranked_function *y)
{
	const struct graph *g = &x->function->graph, *h = &y->function->graph;
	struct block_pairs pairs;
	if (g->block_count > COMPARED || h->block_count > COMPARED)
		return;
	assert(!block_pairs_find(&(struct block_side){g, x->lengths, NULL},
				 &(struct block_side){h, y->lengths, NULL}, &pairs));
	for (uint32_t i = 0; i < g->block_count; i++)
		assert(pairs.to_new[i] == BLOCK_ALONE ||
		       (pairs.to_new[i] < h->block_count && pairs.to_old[pairs.to_new[i]] == i));
	block_pairs_free(&pairs);
}

/* Each path is in one row, on both sides. */
static void compare_all(const struct path_result *r)
{
	const struct path_diff_options options = {.fail_above = -1};
	struct ranking ranking;
	struct path_diff diff;
	uint64_t rows = 0, paths = 0;
	for (size_t i = 0; i < r->count; i++) /* no file of this machine is meant */
		r->functions[i].module[0] = r->functions[i].build_id[0] = 0;
	assert(!ranking_make(r, &ranking));
	assert(!path_diff_make(&ranking, &ranking, &options, &diff));
	for (size_t i = 0; i < diff.count; i++)
		for (size_t k = 0; k < diff.functions[i].count; k++)
			rows += diff.functions[i].rows[k].old.paths +
				diff.functions[i].rows[k].new.paths;
	for (size_t i = 0; i < ranking.count - ranking.refused; i++)
		paths += ranking.functions[i].path_count;
	assert(rows == 2 * paths);
	for (size_t i = 1; i < ranking.count - ranking.refused; i++)
		compare_blocks(&ranking.functions[i - 1], &ranking.functions[i]);
	path_diff_free(&diff);
	ranking_free(&ranking);
}

static void check_paths(const struct profile *p)
{
	struct path_result r;
	struct buf out = {0};
	size_t left_out;
	assert(!path_result_restore(p, &r, &left_out));
	assert(left_out + r.count <= p->counted_count);
	for (size_t i = 0; i < r.count; i++) {
		struct flow_counts counts;
		if (r.functions[i].state != PATH_EXACT)
			continue;
		assert(!flow_check(&r.functions[i], r.forks, &counts));
		for (size_t k = 0; k < counts.problem_count; k++)
			flow_problem_print(&r.functions[i], &counts.problems[k], &out);
		flow_counts_free(&counts);
		tell_paths(&r.functions[i], &out);
	}
	compare_all(&r);
	path_result_free(&r);
	buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf file = {0};
	struct profile *p;
	struct err *e;
	char *damage;
	if (size < 1)
		return 0;
	if (data[0] & 1)
		make_file(data + 1, size - 1, &file);
	else
		buf_append(&file, data + 1, size - 1);
	e = profile_parse(file.data, file.size, &p, &damage);
	assert(e ? !p && !damage : !!p);
	if (!e) {
		check(p);
		check_again(p);
		check_merge(p);
		check_paths(p);
	}
	err_free(e);
	free(damage);
	profile_free(p);
	buf_free(&file);
	return 0;
}
