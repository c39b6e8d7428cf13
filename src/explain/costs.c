/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/costs.h"

#include <math.h>

#include "base/parallel.h"

#define SMALL_LEAST 0.02 /* cycles */
#define SMALL_SAMPLES 5  /* fewer tell nothing */
#define UNLIKELY (-50)   /* a logarithm: as good as impossible */
#define EXACT_COUNTS 16  /* numbers of samples below this are told apart, each */

/* ---- samples ---- */

static double count_of(size_t index)
{
	static const double more[] = {20,  25,  32,  40,  50,  64,  80,  100,
				      125, 150, 180, 210, 250, 300, 350, 400};
	return index < EXACT_COUNTS ? (double)index : more[index - EXACT_COUNTS];
}

/* Beyond the last, cycles vary more than counts do. */
static size_t index_of(double samples)
{
	if (samples < EXACT_COUNTS - 0.5)
		return (size_t)(samples + 0.5);
	size_t i = EXACT_COUNTS;
	while (i + 1 < COST_COUNTS && samples > (count_of(i) + count_of(i + 1)) / 2)
		i++;
	return i;
}

static double center_of(double samples)
{
	return log(samples > 0.5 ? samples : 0.5);
}

/* ---- windows ---- */

static struct cost_window window_of(double samples, unsigned kind)
{
	size_t index = index_of(samples);
	return (struct cost_window){.samples = samples,
				    .center = index < EXACT_COUNTS ? center_of(count_of(index))
								   : log(samples),
				    .kind = (uint8_t)kind,
				    .index = (uint8_t)index};
}

static unsigned before_of(uint8_t kind)
{
	switch (kind) {
	case FREQUENCY_PLAIN:
		return 1;
	case FREQUENCY_LOAD:
		return 2;
	case FREQUENCY_STORE:
		return 3;
	default:
		return 4;
	}
}

static unsigned after_of(uint8_t kind)
{
	switch (kind) {
	case FREQUENCY_PLAIN:
		return 1;
	case FREQUENCY_BRANCH:
	case FREQUENCY_JUMP:
		return 2;
	default:
		return 0;
	}
}

/* Returns how many instructions are in the window. */
static size_t cut_pair(const struct frequency_insn *insns, size_t at, size_t count,
		       struct cost_window *out)
{
	unsigned after = 0;
	if (insns[at].kind == FREQUENCY_PLAIN && at + 1 < count)
		after = after_of(insns[at + 1].kind);
	*out = window_of(insns[at].samples + (after ? insns[at + 1].samples : 0),
			 COST_ALONE + (insns[at].kind * COST_AFTER + after) * 2 + !at);
	return after ? 2 : 1;
}

static unsigned inside_of(uint8_t kind)
{
	switch (kind) {
	case FREQUENCY_PLAIN:
	case FREQUENCY_BRANCH:
	case FREQUENCY_JUMP:
		return 0;
	case FREQUENCY_LOAD:
	case FREQUENCY_STORE:
		return 1;
	default:
		return 2;
	}
}

/* The same. A block ends with its branch, which is one with the instruction before it. */
static size_t cut_group(const struct frequency_insn *insns, size_t at, size_t count,
			struct cost_window *out)
{
	unsigned size = 0, inside = 0;
	double samples = 0;
	size_t i = at;
	for (; i < count && (size < COST_GROUP || insns[i].kind == FREQUENCY_BRANCH); i++) {
		unsigned kind = inside_of(insns[i].kind);
		bool joined = i > at && insns[i].kind == FREQUENCY_BRANCH &&
			      inside_of(insns[i - 1].kind) < 2;
		inside = kind > inside ? kind : inside;
		samples += insns[i].samples;
		size += !joined;
	}
	if (size > COST_GROUP)
		size = COST_GROUP;
	*out = window_of(samples, COST_ALONE + (inside * COST_GROUP + size - 1) * 2 + !at);
	return i - at;
}

size_t cost_cut(const struct frequency_costs *costs, const struct frequency_insn *insns,
		size_t count, struct cost_window *out)
{
	size_t made = 0;
	for (size_t i = 0; i < count; i++) {
		unsigned before = i ? before_of(insns[i - 1].kind) : 0;
		out[made++] = window_of(insns[i].samples, insns[i].kind * COST_BEFORE + before);
	}
	for (size_t i = 0; i < count;)
		i += costs->groups ? cut_group(insns, i, count, &out[made++])
				   : cut_pair(insns, i, count, &out[made++]);
	return made;
}

/* ---- likelihood ---- */

static double cell_value(size_t cell)
{
	return COST_FIRST + COST_STEP * (double)cell;
}

/* Where `likelihood` begins: as far below the center as the dearest cell, and some more. */
#define PLACE_FIRST (-(COST_FIRST + COST_STEP * COST_CELLS) - 3)

/* `log_factorial`: lgamma(count + 1). */
static double poisson(double count, double log_factorial, double log_rate)
{
	return exp(count * log_rate - exp(log_rate) - log_factorial);
}

/* How likely a count is, by the logarithm of its rate: from the lowest that is asked for. */
struct rates {
	double likely[COST_PLACES + COST_CELLS];
	size_t first, end; /* others are as good as 0 */
};

static void take_rates(double count, struct rates *out)
{
	double lowest = PLACE_FIRST + center_of(count) + COST_FIRST;
	double log_factorial = lgamma(count + 1);
	out->first = COST_PLACES + COST_CELLS;
	out->end = 0;
	for (size_t i = 0; i < COST_PLACES + COST_CELLS; i++) {
		out->likely[i] = poisson(count, log_factorial, lowest + COST_STEP * (double)i);
		if (out->likely[i] < 1e-8)
			continue;
		if (i < out->first)
			out->first = i;
		out->end = i + 1;
	}
}

static void prepare_row(const double *share, const struct rates *rates, float *row)
{
	double sums[COST_PLACES];
	for (size_t place = 0; place < COST_PLACES; place++)
		sums[place] = 1e-30;
	for (size_t cell = 0; cell < COST_CELLS; cell++) {
		size_t first = rates->first > cell ? rates->first - cell : 0;
		size_t end = rates->end > cell ? rates->end - cell : 0;
		if (share[cell] <= 0)
			continue;
		for (size_t place = first; place < end && place < COST_PLACES; place++)
			sums[place] += share[cell] * rates->likely[place + cell];
	}
	for (size_t place = 0; place < COST_PLACES; place++)
		row[place] = (float)log(sums[place]);
}

/* Loads behind plain instructions show it best: they are never finished along with these, and mostly find
   their data at once. */
static void find_small(struct frequency_costs *c)
{
	const double *share = c->share[FREQUENCY_LOAD * COST_BEFORE + before_of(FREQUENCY_PLAIN)];
	size_t most = 0;
	for (size_t cell = 0; cell < COST_CELLS; cell++)
		if (cell_value(cell) > log(SMALL_LEAST) && (!most || share[cell] > share[most]))
			most = cell;
	c->small = exp(cell_value(most));
}

unsigned cost_size(const struct frequency_costs *c, size_t kind)
{
	return c->groups && kind >= COST_ALONE
		       ? 1 + (unsigned)((kind - COST_ALONE) / 2 % COST_GROUP)
		       : 1;
}

unsigned cost_small(const struct frequency_costs *c, const struct cost_window *w, double frequency)
{
	unsigned size = cost_size(c, w->kind);
	double cycles = w->samples / exp(frequency) / size;
	bool tells = c->groups ? size == COST_GROUP : w->kind < COST_ALONE;
	return tells && w->samples >= SMALL_SAMPLES && cycles > 0.75 * c->small &&
			       cycles < 1.4 * c->small
		       ? size
		       : 0;
}

static void prepare_count(void *costs, size_t index)
{
	struct frequency_costs *c = costs;
	struct rates rates;
	take_rates(count_of(index), &rates);
	for (size_t kind = 0; kind < COST_KINDS; kind++)
		if (!c->groups || kind < COST_ALONE + COST_GROUPS)
			prepare_row(c->share[kind], &rates, c->likelihood[kind][index]);
}

void cost_prepare(struct frequency_costs *c)
{
	if (!c->groups) /* where there are groups, what it is does not show */
		find_small(c);
	parallel_for(COST_COUNTS, prepare_count, c);
}

double cost_weight(const struct frequency_costs *c, const struct cost_window *w)
{
	return c->weights[w->kind >= COST_ALONE];
}

double cost_likelihood(const struct frequency_costs *c, const struct cost_window *w,
		       double frequency)
{
	const float *row = c->likelihood[w->kind][w->index];
	double place = (frequency - w->center - PLACE_FIRST) / COST_STEP;
	if (place < 0)
		return row[0] + place * (row[1] - row[0]);
	if (place >= COST_PLACES - 1)
		return row[COST_PLACES - 1] +
		       (place - (COST_PLACES - 1)) * (row[COST_PLACES - 1] - row[COST_PLACES - 2]);
	size_t at = (size_t)place;
	return row[at] + (place - (double)at) * (row[at + 1] - row[at]);
}

void cost_count(const struct frequency_costs *c, const struct cost_window *w, double frequency,
		double weight, double *sums)
{
	double count = w->index < EXACT_COUNTS ? w->samples : count_of(w->index);
	double shift = w->index < EXACT_COUNTS ? 0 : log(count / w->samples);
	double parts[COST_CELLS], total = 1e-300, log_factorial = lgamma(count + 1);
	double rate = exp(frequency + shift + COST_FIRST), step = exp(COST_STEP);
	for (size_t cell = 0; cell < COST_CELLS; cell++, rate *= step) {
		double log_rate = frequency + shift + cell_value(cell);
		double likely = count * log_rate - rate - log_factorial;
		parts[cell] = likely < UNLIKELY ? 0 : c->share[w->kind][cell] * exp(likely);
		total += parts[cell];
	}
	for (size_t cell = 0; cell < COST_CELLS; cell++)
		sums[cell] += weight * parts[cell] / total;
}
