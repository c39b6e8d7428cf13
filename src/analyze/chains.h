/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * From a frame to its scopes: the second half of attribution.h, after the
 * functions are known and what is to be looked at closely was looked up.
 */
#include <stdint.h>

struct attribution;
struct attribution_options;
struct err;
struct modules;

/* Fills in spans and steps. functions[i] is the scope of the function of node i, alike[i] an earlier
   node at the same instruction, or i. */
struct err *chains_make(struct attribution *attribution, struct modules *modules,
			const struct attribution_options *options, const uint32_t *functions,
			const uint32_t *alike);
