/* SPDX-License-Identifier: Apache-2.0 */
#include "harvest/recording.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/err.h"
#include "profile/profile.h"
#include "safe/ticks.h"

#define WAIT_MS 100 /* between two calls of wait_on */

void recording_begin(struct recording *r)
{
	r->start_ns = now_ns();
	r->start_ticks = ticks_now();
}

static void set_clocks(struct recording *r)
{
	recording_begin(r);
	r->boot_ms = (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000) -
		     (int64_t)(clock_ns(CLOCK_BOOTTIME) / 1000000);
	if (getrandom(&r->random, sizeof r->random, GRND_NONBLOCK) != sizeof r->random)
		r->random = r->start_ticks;
	r->random |= 1;
}

struct err *recording_open(struct recording *r, const struct recording_options *options)
{
	*r = (struct recording){.options = *options};
	set_clocks(r);
	r->options.agent = strdup(options->agent ? options->agent : "");
	if (!r->options.agent)
		return err_new("out of memory");
	if (r->options.timers && r->options.event_count > 1)
		r->options.event_count = 1;
	if (!r->options.max_depth)
		r->options.max_depth = RECORDING_DEPTH;
	if (!r->options.event_count || recording_metrics(r) > ARENA_METRICS_MAX)
		return err_new("between 1 and %d events can be recorded at once",
			       ARENA_METRICS_MAX);
	return NULL;
}

void recording_close(struct recording *r)
{
	free(r->notes.refused_why);
	free(r->notes.changed_why);
	free((char *)r->options.agent);
}

uint32_t recording_metrics(const struct recording *r)
{
	return (uint32_t)r->options.event_count + r->options.calls;
}

uint64_t recording_since(const struct recording *r, uint64_t ns)
{
	return ns > r->start_ns ? ns - r->start_ns : 0;
}

uint64_t recording_random(struct recording *r)
{
	r->random ^= r->random << 13;
	r->random ^= r->random >> 7;
	r->random ^= r->random << 17;
	return r->random;
}

void recording_lose(struct recording *r, const char *why, uint64_t samples)
{
	r->lost += samples;
	if (samples)
		err_free(profile_lose(r->harvest.profile, why, samples));
}

bool recording_note_error(struct recording *r, struct err *e)
{
	r->notes.unkept += e != NULL;
	err_free(e);
	return !e;
}

static bool is_any_ready(const struct pollfd *ready, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (ready[i].revents)
			return true;
	return false;
}

bool recording_wait(const struct recording *r, const char *what, struct pollfd *ready, size_t count,
		    void (*meanwhile)(void *context), void *context)
{
	const struct recording_options *o = &r->options;
	for (;;) {
		for (size_t i = 0; i < count; i++)
			ready[i].revents = 0;
		if (poll(ready, count, o->wait_on ? WAIT_MS : -1) < 0 && errno != EINTR)
			return true;
		if (ready[0].revents)
			return true;
		if (o->wait_on && !o->wait_on(o->wait_context, what))
			return false;
		if (is_any_ready(ready + 1, count - 1))
			meanwhile(context);
	}
}
