/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes jumps into the code of a process. Its only thread waits in the counter, for our answer: nobody runs that code. The
 * kernel may end the process at any time, and its number may become that of another one. So the memory is opened first,
 * and belongs to the process that is at the other end of the connection if that is still open afterwards.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "collect/paths/work.h"
#include "safe/banks.h"

static bool is_there(int memory, const struct counting_patch *p, const uint8_t *bytes)
{
	uint8_t now[COUNTING_PATCH];
	return pread(memory, now, p->length, (off_t)p->at) == p->length &&
	       !memcmp(now, bytes, p->length);
}

static bool change(int memory, const struct counting_patch *p)
{
	if (!p->length || p->length > COUNTING_PATCH || !is_there(memory, p, p->expected))
		return false;
	if (pwrite(memory, p->bytes, p->length, (off_t)p->at) == p->length &&
	    is_there(memory, p, p->bytes))
		return true;
	if (pwrite(memory, p->expected, p->length, (off_t)p->at) < 0)
		return false; /* nor was anything written before */
	return false;
}

static bool change_all(struct counting_work *work, struct program *p, int memory)
{
	size_t changed = 0, asked = 0;
	if (!program_expect_unchanged(p))
		return false;
	for (size_t i = 0; i < p->plan.patch_count; i++) {
		const struct counting_patch *patch = &p->plan.patches[i];
		if (!program_has_loaded(p, patch->object))
			continue;
		asked++;
		if (change(memory, patch))
			changed++;
		else
			program_unchanged(p, i, "its code is not as in its file");
	}
	program_note_unchanged(work, p, asked);
	return changed;
}

bool change_code(struct counting_work *work, struct client *client)
{
	struct program *p = client->program;
	char path[64];
	uint32_t stage = BANKS_WAITING;
	snprintf(path, sizeof path, "/proc/%d/mem", (int)client->pid);
	int memory = open(path, O_RDWR | O_CLOEXEC);
	if (memory < 0) {
		struct err *e = err_errno("its memory cannot be changed");
		program_note(work, p, "%s", err_text(e));
		err_free(e);
		return false;
	}
	bool changed = client_waits(client) &&
		       atomic_compare_exchange_strong(&p->header->stage, &stage, BANKS_CHANGING) &&
		       change_all(work, p, memory);
	close(memory);
	return changed;
}
