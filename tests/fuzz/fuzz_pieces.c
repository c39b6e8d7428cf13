/* SPDX-License-Identifier: Apache-2.0 */
/* What a process that read foreign symbols tells of them: whatever it is, what is taken from it holds. */
#undef NDEBUG
#include "library/pieces.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pieces p = {.at = data, .left = size};
	struct pieces_item x;
	uint64_t end = 0;
	while (pieces_next(&p, &x)) {
		assert(x.from >= end && x.from < x.to);
		assert((x.name != NULL) == (x.length != 0) && x.length <= PIECES_NAME_MAX);
		if (x.name) {
			assert((const uint8_t *)x.name > data &&
			       (const uint8_t *)x.name + x.length <= data + size);
			assert(!memchr(x.name, 0, x.length));
			assert(x.start <= x.from && x.start + x.size > x.start);
		}
		end = x.to;
	}
	assert(pieces_are_whole(data, size) == !p.left);
	return 0;
}
