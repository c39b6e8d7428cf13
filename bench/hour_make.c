/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hour_make DATABASE PROFILE [EPOCHS [NODES]]: a fresh hour of a very busy machine, as a daemon leaves it: one full
 * epoch after the other, none of them merged yet. Its paths are made of those in a recording: from a function it goes on by
 * chance as any path of the recording does that comes there, so they are many and different, and as deep as
 * recursion makes them. Its processes are new in each interval.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analyze/modules.h"
#include "base/err.h"
#include "profile/profile.h"
#include "store/store.h"

#define INTERVALS 3 /* of an epoch */
#define PATHS 24000 /* of an interval, at most */
#define PROCESSES 270
#define DEEPEST 900
#define EVERY 5

static struct profile *p;
static uint64_t *sums;  /* samples in each node and below */
static uint32_t *frame; /* by node: the first node with the same frame */
static uint32_t *alike; /* by node: the next one with the same frame, in a circle */
static uint32_t *first; /* by node: where its children begin in `children`; one more than nodes */
static uint32_t *children;
static struct store_symbol *functions; /* by node of the profile */
static uint64_t seed = 1;

static struct store_image *images;
static struct store_symbol *symbols;
static struct store_process processes[PROCESSES];
static struct store_node *nodes; /* of the epoch */
static struct store_path paths[PATHS];
static struct store_count counts[PATHS];
static uint32_t *slots; /* nodes of the epoch by hash */
static uint32_t node_count, node_max, slot_room;

static void check(struct err *e)
{
	if (!e)
		return;
	fprintf(stderr, "hour_make: %s\n", err_text(e));
	exit(1);
}

static void *need(size_t count, size_t size)
{
	void *memory = calloc(count + 1, size);
	if (!memory)
		check(err_new("out of memory"));
	return memory;
}

static uint64_t random_below(uint64_t limit)
{
	uint64_t x = (seed += 0x9e3779b97f4a7c15u);
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return limit ? (x ^ x >> 31) % limit : 0;
}

/* ---- what is known of the recording ---- */

static int compare_frames(const void *a, const void *b)
{
	const struct profile_node *x = &p->nodes[*(const uint32_t *)a];
	const struct profile_node *y = &p->nodes[*(const uint32_t *)b];
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->kind - y->kind;
}

static void find_alike(void)
{
	uint32_t *order = need(p->node_count, sizeof *order);
	frame = need(p->node_count, sizeof *frame);
	alike = need(p->node_count, sizeof *alike);
	for (uint32_t i = 0; i < p->node_count; i++)
		order[i] = i;
	qsort(order, p->node_count, sizeof *order, compare_frames);
	for (size_t i = 0, end; i < p->node_count; i = end) {
		for (end = i + 1; end < p->node_count && !compare_frames(&order[i], &order[end]);)
			end++;
		for (size_t k = i; k < end; k++) {
			frame[order[k]] = order[i];
			alike[order[k]] = order[k + 1 < end ? k + 1 : i];
		}
	}
	free(order);
}

static void find_children(void)
{
	sums = need(p->node_count, sizeof *sums);
	first = need(p->node_count + 1, sizeof *first);
	children = need(p->node_count, sizeof *children);
	for (size_t i = 0; i < p->value_count; i++)
		if (!p->values[i].metric)
			sums[p->values[i].node] += p->values[i].count;
	for (uint32_t i = (uint32_t)p->node_count; i-- > 1;)
		sums[p->nodes[i].parent] += sums[i];
	for (size_t i = 1; i < p->node_count; i++)
		first[p->nodes[i].parent + 1]++;
	for (size_t i = 0; i < p->node_count; i++)
		first[i + 1] += first[i];
	uint32_t *at = need(p->node_count, sizeof *at);
	memcpy(at, first, p->node_count * sizeof *at);
	for (uint32_t i = 1; i < p->node_count; i++)
		children[at[p->nodes[i].parent]++] = i;
	free(at);
}

static void find_functions(void)
{
	struct modules *ms;
	functions = need(p->node_count, sizeof *functions);
	check(modules_open(p, false, &ms));
	for (uint32_t i = 1; i < p->node_count; i++) {
		const struct profile_node *n = &p->nodes[i];
		struct modules_function f = {0};
		if (frame[i] != i) {
			functions[i] = functions[frame[i]];
			continue;
		}
		if (n->kind != PROFILE_PARTIAL && n->module)
			modules_function(ms, n->module, n->address, n->kind == PROFILE_EXACT, &f);
		if (f.name)
			functions[i] = (struct store_symbol){n->module, f.start, 0,
							     profile_string(p, f.name)};
	}
	modules_close(ms);
}

/* ---- an interval ---- */

static uint32_t find_node(uint32_t parent, uint32_t of)
{
	const struct profile_node *n = &p->nodes[of];
	struct store_node x = {parent, n->module, n->kind, n->address};
	uint64_t hash = (n->address * 31 + parent) * 0x9e3779b97f4a7c15u;
	size_t at = (size_t)(hash >> 32) & (slot_room - 1);
	for (; slots[at]; at = (at + 1) & (slot_room - 1)) {
		const struct store_node *y = &nodes[slots[at] - 1];
		if (y->parent == parent && y->image == x.image && y->kind == x.kind &&
		    y->address == x.address)
			return slots[at];
	}
	nodes[node_count] = x;
	return slots[at] = ++node_count;
}

/* The next frame below one, as often as the recording has it; 0: it ends here. */
static uint32_t next_frame(uint32_t at)
{
	for (uint64_t skip = random_below(8); skip--;)
		at = alike[at];
	uint64_t wanted = random_below(sums[at]);
	for (uint32_t i = first[at]; i < first[at + 1]; i++) {
		if (wanted < sums[children[i]])
			return children[i];
		wanted -= sums[children[i]];
	}
	return 0;
}

static void make_path(struct store_interval *x)
{
	uint32_t at = 0, node = 0, last = 0;
	for (int depth = 0; depth < DEEPEST; depth++) {
		at = next_frame(at);
		if (!at)
			break;
		node = find_node(node, at);
		last = at;
	}
	const struct profile_node *n = &p->nodes[last];
	uint32_t process = 1 + (uint32_t)random_below(PROCESSES);
	paths[x->path_count++] = (struct store_path){node, process, 0, 1};
	counts[x->count_count++] = (struct store_count){process, n->module, 0, n->address, EVERY};
}

static void make_interval(struct store_interval *x, uint64_t number)
{
	static const char *const names[] = {"cc1", "sh", "python3", "ld", "as", "make", "ninja"};
	x->number = number;
	x->path_count = x->count_count = 0;
	for (size_t i = 0; i < PROCESSES; i++)
		processes[i] = (struct store_process){(int32_t)(1000 + random_below(4000000)),
						      x->start_ms,
						      names[i % 7],
						      names[i % 7],
						      0,
						      ""};
	while (x->path_count < PATHS && node_count + DEEPEST < node_max)
		make_path(x);
	x->nodes = nodes;
	x->node_count = node_count;
	x->paths = paths;
	x->counts = counts;
	x->processes = processes;
	x->process_count = PROCESSES;
	x->images = images;
	x->image_count = p->module_count - 1;
	x->symbols = symbols;
}

static int compare_symbols(const void *a, const void *b)
{
	const struct store_symbol *x = a, *y = b;
	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static size_t list_symbols(void)
{
	size_t count = 0, kept = 0;
	symbols = need(p->node_count, sizeof *symbols);
	for (uint32_t i = 1; i < p->node_count; i++)
		if (functions[i].name && frame[i] == i)
			symbols[count++] = functions[i];
	qsort(symbols, count, sizeof *symbols, compare_symbols);
	for (size_t i = 0; i < count; i++)
		if (!kept || compare_symbols(&symbols[kept - 1], &symbols[i]))
			symbols[kept++] = symbols[i];
	for (size_t i = 0; i < kept; i++) { /* each until the next */
		bool more = i + 1 < kept && symbols[i + 1].image == symbols[i].image;
		symbols[i].size = more ? symbols[i + 1].start - symbols[i].start : 4096;
	}
	return kept;
}

static void make_epoch(struct store *s, uint64_t number, int64_t start_ms, int64_t length_ms,
		       size_t symbol_count)
{
	struct store_event event = {"cpu-clock", "ns", 200000, EVERY, false};
	struct store_epoch epoch = {"here", p->kernel, p->machine, "cpu",  p->version, "",
				    2,      5000,      start_ms,   &event, 1,          number > 0};
	int64_t id;
	check(store_begin_epoch(s, &epoch, &id));
	node_count = 0;
	memset(slots, 0, slot_room * sizeof *slots);
	for (int i = 0; i < INTERVALS; i++) {
		struct store_interval x = {.start_ms = start_ms + i * length_ms,
					   .end_ms = start_ms + (i + 1) * length_ms,
					   .symbol_count = symbol_count};
		bool added;
		make_interval(&x, (uint64_t)i + 1);
		if (x.path_count)
			check(store_add(s, id, &x, &added));
	}
}

int main(int argc, char **argv)
{
	uint64_t epochs = argc > 3 ? strtoull(argv[3], NULL, 10) : 100;
	struct store *s;
	char *damage;
	node_max = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 250000;
	if (argc < 3 || node_max > STORE_EPOCH_NODES_MAX || !epochs)
		check(err_new("DATABASE PROFILE [EPOCHS [NODES]]"));
	check(profile_read(argv[2], &p, &damage));
	free(damage);
	find_alike();
	find_children();
	find_functions();
	size_t symbol_count = list_symbols();
	images = need(p->module_count, sizeof *images);
	for (size_t i = 1; i < p->module_count; i++)
		images[i - 1] = (struct store_image){
			p->modules[i].kind == PROFILE_KERNEL ? PROFILE_KERNEL : PROFILE_FILE,
			p->modules[i].path, p->modules[i].build_id, 0};
	slot_room = 1u << 20;
	slots = need(slot_room, sizeof *slots);
	nodes = need(node_max + DEEPEST, sizeof *nodes);
	check(store_open(argv[1], STORE_CREATE, &s));
	int64_t length_ms = 3600000 / (int64_t)(epochs * INTERVALS);
	int64_t start_ms = ((int64_t)time(NULL) - 3600) * 1000;
	for (uint64_t i = 0; i < epochs; i++)
		make_epoch(s, i, start_ms + (int64_t)i * INTERVALS * length_ms, length_ms,
			   symbol_count);
	store_close(s);
	return 0;
}
