/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The few functions of statistics that comparing needs.
 */
#include <stdbool.h>
#include <stddef.h>

/* The chance that a standard normal number is above z. */
double normal_above(double z);

/* The same of Student's distribution with `df` degrees of freedom; INFINITY: the normal one. */
double student_above(double t, double df);
/* The t that is exceeded with this chance, 0 < chance < 1. */
double student_quantile(double chance, double df);

/* The chance that the sum of `df` squared standard normal numbers is above x. */
double chi_square_above(double x, size_t df);

/* Holm's correction: adjusted[i] is the smallest chance of any wrong decision at which p[i] would
   be called significant among all `count`. Entries with p < 0 take no part and stay as they are.
   False without memory. */
bool holm(const double *p, double *adjusted, size_t count);

struct moments {
	double sum, mean;
	double deviation; /* of the sample (n - 1); 0 where there is only one */
	double min, max;
};
void moments_of(const double *values, size_t count, struct moments *out);
