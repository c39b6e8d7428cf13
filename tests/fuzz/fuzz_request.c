/* SPDX-License-Identifier: Apache-2.0 */
/* What any process on the machine can send to the server of `culprit view --serve`. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "view/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_part(const char *part, size_t part_size, const char *bytes, size_t size)
{
	assert(!part ||
	       (part >= bytes && part_size <= size && (size_t)(part - bytes) <= size - part_size));
	assert(!part || !memchr(part, '\r', part_size));
}

/* As it comes in pieces: once it is refused or whole, more bytes change nothing. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	struct request r, first = {0};
	int status, whole = 0;
	for (size_t part = 0; part <= size; part += 1 + part / 8) {
		status = request_parse(bytes, part, &r);
		assert(status == 0 || status == 200 || (status >= 400 && status < 600));
		assert(status != 0 || part < REQUEST_MAX);
		if (whole == 200)
			assert(status == 200 && !memcmp(&r, &first, sizeof r));
		if (status == 200) {
			check_part(r.path, r.path_size, bytes, part);
			check_part(r.host, r.host_size, bytes, part);
			check_part(r.match, r.match_size, bytes, part);
			assert(r.path && r.path[0] == '/' && r.host);
			assert(r.size <= part && r.size <= REQUEST_MAX);
			first = r;
		}
		whole = status;
	}
	return 0;
}
