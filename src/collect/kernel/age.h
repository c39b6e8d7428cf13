/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* Whether the kernel has what the sampler needs, for whoever may load programs; where not, `why` (size bytes). */
bool age_suffices(char *why, size_t size);
