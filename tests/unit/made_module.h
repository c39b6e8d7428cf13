/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A module whose functions are named in the profile itself, so that no file is needed. */
#include "unit.h"

#include "base/err.h"
#include "profile/profile.h"

/* Returns its index. */
static inline uint32_t add_made_module(struct profile *p, struct profile_name *names, size_t count)
{
	uint32_t index;
	struct err *e = profile_add_module(p,
					   &(struct profile_module){.kind = PROFILE_JIT,
								    .path = "[made]",
								    .build_id = "",
								    .problem = "",
								    .names = names,
								    .name_count = count},
					   &index);
	assert_null(e);
	return index;
}
