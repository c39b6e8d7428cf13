/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/tally.h"

#include <unistd.h>

bool tally_read(int fd, struct tally_reading *out)
{
	struct tally_reading r;
	if (fd < 0 || read(fd, &r, sizeof r) != (ssize_t)sizeof r)
		return false;
	*out = r;
	return true;
}

static uint64_t since(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

/* Coverage is weighted by the counts, so the sum is right even if CPUs differ in both. */
void tally_add(struct tally *t, const struct tally_reading *before, const struct tally_reading *now)
{
	uint64_t count = since(before->count, now->count);
	struct coverage c = {since(before->enabled_ns, now->enabled_ns),
			     since(before->running_ns, now->running_ns)};
	if (c.running_ns > c.enabled_ns)
		c.running_ns = c.enabled_ns;
	if (!c.enabled_ns)
		return;
	coverage_add(&t->coverage, t->count, c, count);
	t->count += count;
}
