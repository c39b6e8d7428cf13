/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that was made at run time belongs to one process and lies where that
 * process had room. Where processes become groups, such code is known by the
 * names of its functions alone: a group has an image of its own, in which each
 * name has an address that was made up for it; what has no name is at 0.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "profile/profile.h"
#include "store/fold.h"

#define TRIES 64 /* addresses for names whose hashes are equal */
#define PLACE_MASK 0xfffffff0u

/* What was found out: from an image, or an image and a name, to a number. */

struct made_slot {
	uint64_t image;
	const char *name; /* NULL: of the image itself */
	uint64_t number;
	bool used;
};

static struct made_slot *slot_of(const struct made *m, uint64_t image, const char *name)
{
	uint64_t hash = hash_number(hash_number(HASH_START, image), (uintptr_t)name);
	size_t at = (size_t)hash & (m->room - 1);
	while (m->slots[at].used && (m->slots[at].image != image || m->slots[at].name != name))
		at = (at + 1) & (m->room - 1);
	return &m->slots[at];
}

static bool grow(struct made *m)
{
	struct made old = *m;
	m->room = old.room ? old.room * 2 : 256;
	m->slots = calloc(m->room, sizeof *m->slots);
	if (!m->slots) {
		*m = old;
		return false;
	}
	for (size_t i = 0; i < old.room; i++)
		if (old.slots[i].used)
			*slot_of(m, old.slots[i].image, old.slots[i].name) = old.slots[i];
	free(old.slots);
	return true;
}

/* Its slot, which is `used` where the number is known; NULL without memory. */
static struct made_slot *find(struct made *m, uint64_t image, const char *name)
{
	if (m->count * 2 >= m->room && !grow(m))
		return NULL;
	struct made_slot *slot = slot_of(m, image, name);
	if (!slot->used) {
		slot->image = image;
		slot->name = name;
		m->count++;
	}
	return slot;
}

static struct err *find_image(struct store *s, const struct read_image *m, int64_t group,
			      int64_t *id)
{
	int64_t used = 0;
	struct err *e = sql_number(s, &used, 0, "SELECT used FROM image WHERE id = ?", "d", m->id);
	if (!e)
		e = sql_do(s,
			   "INSERT INTO image (path, build_id, kind, process, used)"
			   " VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
			   " SET used = max(used, excluded.used)",
			   "ssddd", m->path, m->build_id, (int64_t)PROFILE_JIT, group, used);
	if (!e)
		e = sql_number(s, id, 0,
			       "SELECT id FROM image WHERE path = ? AND build_id = ? AND kind = ?"
			       " AND process = ?",
			       "ssdd", m->path, m->build_id, (int64_t)PROFILE_JIT, group);
	return e;
}

/* Is the name at this address of the image, now if not before? */
static struct err *claim(struct store *s, int64_t image, uint64_t address, const char *name,
			 bool *is)
{
	int64_t same;
	struct err *e = sql_do(s,
			       "INSERT OR IGNORE INTO symbol (image, start, size, name)"
			       " VALUES (?, ?, 1, ?)",
			       "dus", image, address, name);
	if (!e)
		e = sql_number(s, &same, 0,
			       "SELECT name = ? FROM symbol WHERE image = ? AND start = ?", "sdu",
			       name, image, address);
	*is = !e && same;
	return e;
}

static struct err *find_address(struct store *s, int64_t image, const char *name, uint64_t *address)
{
	bool is = false;
	struct err *e = NULL;
	*address = (hash_text(HASH_START, name) & PLACE_MASK) + 16;
	for (int i = 0; !e && !is && i < TRIES; i++) {
		if (i)
			*address += 16;
		e = claim(s, image, *address, name, &is);
	}
	if (!is)
		*address = 0;
	return e;
}

/* The image of the group; the same one where it is not to be changed. */
static struct err *group_image(struct folding *f, uint64_t image, uint64_t *out)
{
	struct made_slot *slot = find(&f->made, image, NULL);
	uint32_t place = 0;
	int64_t group = 0, id = (int64_t)image;
	if (!slot)
		return err_new("out of memory");
	if (!slot->used) {
		struct err *e = names_image(&f->names, image, &place);
		const struct read_image *m = e ? NULL : &f->names.images[place];
		if (!e && m->kind == PROFILE_JIT) {
			e = intern_group(f->store, m->process, &group);
			if (!e && group != m->process)
				e = find_image(f->store, m, group, &id);
		}
		if (e)
			return e;
		slot->number = (uint64_t)id;
		slot->used = true;
	}
	*out = slot->number;
	return NULL;
}

struct err *fold_made(struct folding *f, uint64_t *image, uint64_t *address)
{
	uint64_t made = 0;
	uint32_t place = 0;
	struct err *e = group_image(f, *image, &made);
	if (e || made == *image)
		return e;
	e = names_image(&f->names, *image, &place);
	const struct store_symbol *y = e ? NULL : read_symbol(&f->names.images[place], *address);
	*image = made;
	*address = 0;
	if (!y)
		return e;
	struct made_slot *slot = find(&f->made, made, y->name);
	if (!slot)
		return err_new("out of memory");
	if (!slot->used)
		e = find_address(f->store, (int64_t)made, y->name, &slot->number);
	slot->used = !e;
	*address = slot->number;
	return e;
}

/* ---- call paths through such code ---- */

static struct err *move_node(struct folding *f, uint32_t *to, uint32_t node)
{
	struct calltree *tree = &f->store->tree;
	struct pack_node x = tree->nodes[node];
	uint64_t image = x.image, address = x.address;
	struct err *e = NULL;
	if (x.kind != PROFILE_PARTIAL && x.image)
		e = fold_made(f, &image, &address);
	struct pack_node moved = pack_node(to[x.parent], image, x.kind, address);
	to[node] = node;
	if (!e && (moved.parent != x.parent || moved.image != x.image))
		to[node] = calltree_child(tree, &moved);
	return e || to[node] != UINT32_MAX ? e : err_new("out of memory");
}

struct err *fold_made_paths(struct folding *f, struct segment *x)
{
	const struct calltree *tree = &f->store->tree;
	uint32_t known = tree->count;
	bool *used = calloc(known, sizeof *used);
	uint32_t *to = calloc(known, sizeof *to);
	struct err *e = used && to ? NULL : err_new("out of memory");
	for (size_t i = 0; !e && i < x->path_count; i++)
		if (x->paths[i].node < known)
			used[x->paths[i].node] = true;
	for (uint32_t i = known; !e && i-- > 1;)
		used[tree->nodes[i].parent] |= used[i];
	for (uint32_t i = 1; !e && i < known; i++)
		if (used[i])
			e = move_node(f, to, i);
	for (size_t i = 0; !e && i < x->path_count; i++)
		if (x->paths[i].node < known)
			x->paths[i].node = to[x->paths[i].node];
	free(used);
	free(to);
	if (!e)
		x->path_count = pack_settle_paths(x->paths, x->path_count);
	return e;
}
