/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/costs.h"

#include <math.h>
#include <string.h>

/* ---- windows ---- */

/* The hardest to foresee of its instructions decides. */
static unsigned worst_of(const struct frequency_insn *insns, size_t count)
{
	unsigned worst = 0;
	for (size_t i = 0; i < count; i++) {
		switch (insns[i].kind) {
		case FREQUENCY_SLOW:
		case FREQUENCY_VECTOR:
		case FREQUENCY_CALL:
			return 2;
		case FREQUENCY_LOAD:
			worst = 1;
			break;
		default:
			break;
		}
	}
	return worst;
}

size_t cost_cut(const struct frequency_insn *insns, size_t count, struct cost_window *out)
{
	size_t pieces = (count + COST_WINDOW - 1) / COST_WINDOW;
	for (size_t i = 0; i < pieces; i++) {
		size_t from = i * count / pieces, to = (i + 1) * count / pieces;
		out[i].samples = 0;
		for (size_t k = from; k < to; k++)
			out[i].samples += insns[k].samples;
		out[i].kind = (uint8_t)(((to - from - 1) * 3 + worst_of(insns + from, to - from)) * 2 +
					(i == 0));
	}
	return pieces;
}

/* ---- likelihood ---- */

static double count_of(size_t index)
{
	static const double more[] = {20, 25, 32, 40, 50, 64, 80, 100};
	return index < 16 ? (double)index : more[index - 16];
}

/* Beyond the last, cycles vary more than counts do. */
static size_t index_of(double samples)
{
	if (samples < 15.5)
		return (size_t)(samples + 0.5);
	size_t i = 16;
	while (i + 1 < COST_COUNTS && samples > (count_of(i) + count_of(i + 1)) / 2)
		i++;
	return i;
}

static double center_of(double samples)
{
	return log(samples > 0.5 ? samples : 0.5);
}

static double cell_value(size_t cell)
{
	return COST_FIRST + COST_STEP * (double)cell;
}

/* Where `likelihood` begins: as far below the center as the dearest cell, and some more. */
#define PLACE_FIRST (-(COST_FIRST + COST_STEP * COST_CELLS) - 3)

static double poisson(double count, double log_rate)
{
	return exp(count * log_rate - exp(log_rate) - lgamma(count + 1));
}

static void prepare_count(struct frequency_costs *c, size_t kind, size_t index)
{
	double rates[COST_PLACES + COST_CELLS], count = count_of(index);
	double lowest = PLACE_FIRST + center_of(count) + COST_FIRST;
	for (size_t i = 0; i < COST_PLACES + COST_CELLS; i++)
		rates[i] = poisson(count, lowest + COST_STEP * (double)i);
	for (size_t place = 0; place < COST_PLACES; place++) {
		double sum = 1e-30;
		for (size_t cell = 0; cell < COST_CELLS; cell++)
			sum += c->share[kind][cell] * rates[place + cell];
		c->likelihood[kind][index][place] = (float)log(sum);
	}
}

void cost_prepare(struct frequency_costs *c)
{
	for (size_t kind = 0; kind < COST_KINDS; kind++)
		for (size_t index = 0; index < COST_COUNTS; index++)
			prepare_count(c, kind, index);
}

double cost_likelihood(const struct frequency_costs *c, const struct cost_window *w,
		       double frequency)
{
	size_t index = index_of(w->samples);
	const float *row = c->likelihood[w->kind][index];
	double center = index < 16 ? center_of(count_of(index)) : log(w->samples);
	double place = (frequency - center - PLACE_FIRST) / COST_STEP;
	if (place < 0)
		return row[0] + place * (row[1] - row[0]);
	if (place >= COST_PLACES - 1)
		return row[COST_PLACES - 1] + (place - (COST_PLACES - 1)) *
						      (row[COST_PLACES - 1] - row[COST_PLACES - 2]);
	size_t at = (size_t)place;
	return row[at] + (place - (double)at) * (row[at + 1] - row[at]);
}

void cost_count(const struct frequency_costs *c, const struct cost_window *w, double frequency,
		double weight, double *sums)
{
	size_t index = index_of(w->samples);
	double count = index < 16 ? w->samples : count_of(index);
	double shift = index < 16 ? 0 : log(count / w->samples);
	double parts[COST_CELLS], total = 1e-300;
	for (size_t cell = 0; cell < COST_CELLS; cell++) {
		parts[cell] = c->share[w->kind][cell] *
			      poisson(count, frequency + shift + cell_value(cell));
		total += parts[cell];
	}
	for (size_t cell = 0; cell < COST_CELLS; cell++)
		sums[cell] += weight * parts[cell] / total;
}

void cost_usual(struct frequency_costs *c)
{
	for (size_t kind = 0; kind < COST_KINDS; kind++) {
		unsigned length = (unsigned)kind / 6 + 1, worst = kind / 2 % 3;
		double center = log(0.3 * length * (worst == 2 ? 2 : worst == 1 ? 1.4 : 1)), sum = 0;
		for (size_t cell = 0; cell < COST_CELLS; cell++) {
			double far = cell_value(cell) - center;
			double wide = far > 0 ? 1.0 : 1.2 - 0.1 * length;
			c->share[kind][cell] = exp(-0.5 * far * far / (wide * wide)) + 0.003;
			sum += c->share[kind][cell];
		}
		for (size_t cell = 0; cell < COST_CELLS; cell++)
			c->share[kind][cell] /= sum;
	}
	cost_prepare(c);
}
