/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What instructions usually cost, measured on a Neoverse V1: bench/frequency counted how often the code of some
 * programs ran, and so the samples of each instruction told its cycles. Other CPUs differ, so this is only
 * where learning begins; but that most instructions which wait for nothing cost the same small share of a
 * cycle, or none, holds for every CPU that finishes several at once. What this share is hangs on how many the
 * CPU finishes in a cycle. Learning cannot find it: half the cycles with twice the executions is as likely.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "explain/costs.h"

struct usual {
	float none, small; /* shares of those that cost nothing, and the small share of a cycle */
	float tail,
		wide; /* of those that wait: the middle of their cycles, and the deviation of its logarithm */
};

/* In the numbers below and these, a cycle of a CPU that finishes so many instructions in one is 0.5. */
#define WIDTH 7.7
#define NONE 0.003
#define SMALL 0.072

/* clang-format off */
static const struct usual alone[FREQUENCY_KINDS][COST_BEFORE] = {
	[FREQUENCY_PLAIN] = {{0.02, 0.27, 0.34, 0.79}, {0.41, 0.40, 0.36, 1.04}, {0.34, 0.19, 0.32, 0.98}, {0.06, 0.67, 0.60, 1.05}, {0.36, 0.26, 0.51, 1.36}},
	[FREQUENCY_LOAD] = {{0.00, 0.31, 0.28, 0.80}, {0.00, 0.71, 0.22, 0.78}, {0.01, 0.25, 0.37, 0.86}, {0.01, 0.70, 0.32, 0.83}, {0.25, 0.46, 0.37, 0.90}},
	[FREQUENCY_STORE] = {{0.03, 0.30, 0.46, 0.74}, {0.02, 0.66, 0.79, 1.12}, {0.01, 0.29, 0.45, 1.14}, {0.01, 0.50, 0.35, 1.04}, {0.15, 0.46, 0.49, 1.15}},
	[FREQUENCY_BRANCH] = {{0.03, 0.22, 0.39, 0.83}, {0.87, 0.08, 0.28, 0.85}, {0.26, 0.16, 0.38, 0.79}, {0.55, 0.30, 0.31, 0.82}, {0.77, 0.11, 0.33, 0.85}},
	[FREQUENCY_JUMP] = {{0.10, 0.76, 0.35, 0.95}, {0.44, 0.34, 0.46, 0.85}, {0.18, 0.28, 0.28, 0.75}, {0.21, 0.49, 0.33, 0.83}, {0.31, 0.36, 0.35, 0.87}},
	[FREQUENCY_CALL] = {{0.48, 0.30, 0.42, 0.91}, {0.23, 0.70, 0.41, 1.07}, {0.10, 0.44, 0.49, 1.10}, {0.14, 0.60, 0.36, 1.07}, {0.19, 0.57, 0.41, 1.07}},
	[FREQUENCY_VECTOR] = {{0.26, 0.35, 0.35, 0.95}, {0.52, 0.23, 0.35, 0.95}, {0.52, 0.23, 0.35, 0.95}, {0.46, 0.26, 0.35, 0.95}, {0.52, 0.23, 0.35, 0.95}},
	[FREQUENCY_SLOW] = {{0.26, 0.35, 0.35, 0.95}, {0.28, 0.45, 0.35, 0.95}, {0.39, 0.34, 0.35, 0.95}, {0.31, 0.38, 0.35, 0.95}, {0.31, 0.38, 0.35, 0.95}},
};

static const struct usual pairs[FREQUENCY_KINDS][COST_AFTER][2] = {
	[FREQUENCY_PLAIN] = {{{0.37, 0.50, 0.35, 0.92}, {0.01, 0.38, 0.33, 0.78}}, {{0.02, 0.41, 0.39, 1.18}, {0.00, 0.17, 0.37, 0.84}}, {{0.01, 0.36, 0.31, 1.07}, {0.00, 0.34, 0.33, 0.74}}},
	[FREQUENCY_LOAD] = {{{0.02, 0.49, 0.32, 0.87}, {0.00, 0.31, 0.28, 0.80}}, {{0.00, 0.51, 0.33, 0.88}, {0.00, 0.33, 0.28, 0.82}}, {{0.00, 0.51, 0.33, 0.88}, {0.00, 0.33, 0.28, 0.82}}},
	[FREQUENCY_STORE] = {{{0.02, 0.53, 0.52, 1.18}, {0.03, 0.30, 0.46, 0.74}}, {{0.00, 0.55, 0.49, 1.15}, {0.00, 0.40, 0.43, 0.81}}, {{0.00, 0.55, 0.49, 1.15}, {0.00, 0.40, 0.43, 0.81}}},
	[FREQUENCY_BRANCH] = {{{0.60, 0.19, 0.38, 0.77}, {0.03, 0.22, 0.39, 0.83}}, {{0.00, 0.88, 0.33, 0.85}, {0.00, 0.35, 0.38, 0.86}}, {{0.00, 0.88, 0.33, 0.85}, {0.00, 0.35, 0.38, 0.86}}},
	[FREQUENCY_JUMP] = {{{0.18, 0.43, 0.31, 0.78}, {0.10, 0.76, 0.35, 0.95}}, {{0.00, 0.67, 0.35, 0.87}, {0.00, 0.76, 0.35, 0.95}}, {{0.00, 0.67, 0.35, 0.87}, {0.00, 0.76, 0.35, 0.95}}},
	[FREQUENCY_CALL] = {{{0.17, 0.62, 0.44, 1.12}, {0.48, 0.30, 0.42, 0.91}}, {{0.00, 0.76, 0.41, 1.07}, {0.00, 0.73, 0.39, 0.93}}, {{0.00, 0.76, 0.41, 1.07}, {0.00, 0.73, 0.39, 0.93}}},
	[FREQUENCY_VECTOR] = {{{0.61, 0.19, 0.35, 0.95}, {0.26, 0.35, 0.35, 0.95}}, {{0.00, 0.72, 0.35, 0.95}, {0.00, 0.62, 0.35, 0.95}}, {{0.00, 0.72, 0.35, 0.95}, {0.00, 0.62, 0.35, 0.95}}},
	[FREQUENCY_SLOW] = {{{0.35, 0.41, 0.35, 0.95}, {0.26, 0.35, 0.35, 0.95}}, {{0.00, 0.69, 0.35, 0.95}, {0.00, 0.62, 0.35, 0.95}}, {{0.00, 0.69, 0.35, 0.95}, {0.00, 0.62, 0.35, 0.95}}},
};
/* clang-format on */

/* Adds a part of a distribution: how much of all, around where, and how wide to each side. */
static void add_part(double *cells, double share, double center, double below, double above)
{
	double parts[COST_CELLS], sum = 0;
	for (size_t i = 0; i < COST_CELLS; i++) {
		double far = COST_FIRST + COST_STEP * (double)i - log(center);
		far /= far < 0 ? below : above;
		sum += parts[i] = exp(-0.5 * far * far);
	}
	for (size_t i = 0; i < COST_CELLS; i++)
		cells[i] += share * parts[i] / sum;
}

/* `unit`: cycles that 1 stands for. */
static void spread(double *cells, const struct usual *u, double unit)
{
	double waits = 1 - u->none - u->small;
	if (waits < 0.02)
		waits = 0.02;
	add_part(cells, u->none, unit * NONE, 2.5, 0.8);
	add_part(cells, u->small, unit * SMALL, 0.10, 0.16);
	add_part(cells, waits * 0.95, unit * u->tail, 0.75 * u->wide, 1.15 * u->wide);
	add_part(cells, waits * 0.05, unit * 0.6, 2, 2.5);
}

void cost_usual(struct frequency_costs *costs, double width)
{
	double unit = 2 * WIDTH / (width > 0 ? width : WIDTH);
	memset(costs->share, 0, sizeof costs->share);
	for (size_t kind = 0; kind < COST_KINDS; kind++) {
		size_t pair = kind - COST_ALONE;
		spread(costs->share[kind],
		       kind < COST_ALONE
			       ? &alone[kind / COST_BEFORE][kind % COST_BEFORE]
			       : &pairs[pair / (COST_AFTER * 2)][pair / 2 % COST_AFTER][pair % 2],
		       unit);
	}
	cost_prepare(costs);
}
