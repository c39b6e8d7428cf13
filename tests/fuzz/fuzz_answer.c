/* SPDX-License-Identifier: Apache-2.0 */
/* What a server for many hosts can answer, or whoever stands in its place: the rows in it (libcurl reads HTTP). */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "fleet/fetching.h"
#include "profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct err *look(void *context, int columns, const char *const *names,
			const struct read_cell *cells)
{
	size_t *sum = context;
	assert(columns > 0);
	for (int i = 0; i < columns; i++)
		*sum += strlen(cells ? cells[i].text : names[i]);
	return NULL;
}

static void check_table(const char *bytes, size_t size)
{
	struct buf answer = {0};
	size_t sum = 0;
	buf_append(&answer, bytes, size);
	err_free(fetch_table(&answer, look, &sum));
	assert(sum <= size * 3);
	buf_free(&answer);
}

static void check_rows(const char *bytes, size_t size)
{
	struct buf answer = {0};
	struct profile *strings;
	struct err *e = profile_new(&strings);
	assert(!e);
	buf_append(&answer, bytes, size);
	struct rowbinary rows = rowbinary_read(&answer);
	while (!e && rowbinary_more(&rows)) {
		struct read_epoch epoch;
		struct fetched_key key;
		struct store_loss *losses = NULL;
		size_t count = 0;
		e = fetch_read_epoch(&rows, strings, &epoch, &key);
		assert(epoch.total_count <= STORE_EVENT_MAX);
		for (size_t i = 0; !rows.damaged && i < epoch.total_count; i++)
			assert(epoch.totals[i].event.name && epoch.totals[i].event.unit);
		free(epoch.totals);
		if (!e)
			e = fetch_losses(&rows, strings, &losses, &count);
		assert(count <= size);
		free(losses);
	}
	err_free(e);
	buf_free(&answer);
	profile_free(strings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	check_table(bytes, size);
	check_rows(bytes, size);
	return 0;
}
