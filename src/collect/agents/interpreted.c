/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agents/interpreted.h"

#include <string.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/err.h"
#include "cct/cct.h"
#include "collect/agents/descriptors.h"
#include "collect/agents/state.h"
#include "harvest/harvest.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "harvest/scripts.h"
#include "library/library.h"

void interpreted_tell(struct agents *agents, struct process *p)
{
	struct arena *a = p->agent->arena;
	struct python found;
	if (a->has_python || !p->list ||
	    !scripts_find(agents->recording->library, p->list, p->pid, &found))
		return;
	a->python = a->header->python = found;
	a->has_python = true;
	atomic_store_explicit(&a->header->has_python, 1, memory_order_release);
}

/* ---- copies ---- */

/* The arena is memory of the target: everything is checked. */
static bool find_copy(const struct arena *a, uint64_t reference, uint64_t *code,
		      struct python_pieces *out)
{
	struct arena_script head;
	uint64_t at = reference * 8;
	if (at > a->size || a->size - at < sizeof head)
		return false;
	memcpy(&head, (const char *)a->header + at, sizeof head);
	if (head.size < sizeof head || head.size > a->size - at)
		return false;
	*code = head.code;
	*out = (struct python_pieces){(const char *)a->header + at + sizeof head,
				      head.size - sizeof head};
	return true;
}

struct err *interpreted_add_child(struct recording *r, struct harvest *h, struct process *p,
				  const struct arena *a, uint32_t parent, uint64_t key,
				  uint32_t *node)
{
	struct python_pieces copy;
	struct python_call call = {0};
	uint64_t reference = (key & CCT_ADDRESS) >> CCT_SCRIPT_BITS;
	if (cct_key_module(key) == CCT_OBJECT) {
		struct buf name = {0};
		descriptors_name(a, key, &name);
		struct err *e = descriptors_add_child(h, parent, key, buf_text(&name), node);
		buf_free(&name);
		return e;
	}
	if (cct_key_module(key) != CCT_SCRIPT)
		return harvest_add_child(r, h, p, parent, key, node);
	*node = parent;
	if (!p->scripts && a->has_python)
		p->scripts = scripts_open(&a->python);
	if (!p->scripts || !find_copy(a, reference, &call.code, &copy))
		return NULL;
	const struct python_memory memory = {python_read_pieces, &copy};
	call.identity = reference; /* each copy is another function, or the same one again */
	call.instruction = call.code + a->python.code_start + PYTHON_UNIT * (key & CCT_SCRIPT_UNIT);
	return scripts_add_call(p->scripts, &memory, h->profile, &call, node);
}
