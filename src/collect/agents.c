/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agents as samplers: door.c lets them in, talk.c speaks with them, sampling.c gives each of their threads its events, inside.c
 * takes what comes while the kernel works for them, arenas.c what they count.
 */
#include "base/err.h"
#include "collect/internal.h"
#include "collect/sampler.h"

static struct err *open_agents(struct session *s)
{
	struct err *e = door_open(s);
	if (!e)
		e = session_watch(s, s->listener, &s->socket_watch);
	if (!e)
		e = inside_start(s);
	return e || !s->inside_rings ? e : session_watch(s, inside_fd(s), &s->inside_watch);
}

static void tally(struct session *s, struct tally *tallies, bool anew)
{
	(void)anew; /* they have no drains */
	sampling_tally(s, tallies);
}

static struct err *refuse(struct session *s, pid_t pid)
{
	(void)s;
	return err_new("process %d runs already: the kernel alone can sample it", (int)pid);
}

static void nothing_to_do(struct session *s)
{
	(void)s;
}

static void nothing_to_add(const struct session *s, struct session_state *out)
{
	(void)s;
	(void)out;
}

const struct sampler sampler_agents = {
	.open = open_agents,
	.join = nothing_to_do, /* the environment does it */
	.attach = refuse,
	.tick = sampling_tick,
	.status = nothing_to_add,
	.tally = tally,
	.name = nothing_to_do,
	.stop = nothing_to_do,
	.close = nothing_to_do, /* their memory is the session's */
	.delivery = sampling_delivery,
	.in_ticks = true,
	.merges = true,
};
