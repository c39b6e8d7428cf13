/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions of files that may be gone when the names are needed. They are made together with the
   tables, and limited in number and bytes. */
#include "library/internal.h"

#include <sys/stat.h>
#include <unistd.h>

#define NAMES_MAX 512u /* modules: each of them has an open descriptor */
#define NAMES_BYTES_MAX (UINT64_C(96) << 20)
#define MEMORY_BYTES_MAX (UINT64_C(8) << 20) /* used if there is no cache directory */

void names_forget(struct library *l, struct library_module *m)
{
	if (m->names < 0)
		return;
	close(m->names);
	m->names = -1;
	l->names_count--;
	*(m->names_in_memory ? &l->memory_size : &l->names_size) -= m->names_size;
}

/* Drops the names that nobody has asked for for the longest time. Most likely their programs have ended. */
static void make_room(struct library *l)
{
	while (l->names_count > NAMES_MAX || l->names_size > NAMES_BYTES_MAX ||
	       l->memory_size > MEMORY_BYTES_MAX) {
		bool memory = l->memory_size > MEMORY_BYTES_MAX;
		struct library_module *oldest = NULL;
		for (uint32_t i = 0; i < l->module_count; i++) {
			struct library_module *m = l->modules[i];
			if (m && m->names >= 0 && (!memory || m->names_in_memory) &&
			    (!oldest || m->named < oldest->named))
				oldest = m;
		}
		if (!oldest)
			return;
		names_forget(l, oldest);
	}
}

void names_keep(struct library *l, const struct fresh *f)
{
	struct library_module *m = f->module;
	struct stat st;
	if (f->names < 0)
		return;
	if (fstat(f->names, &st) || !st.st_size) {
		close(f->names);
		return;
	}
	m->names = f->names;
	m->names_size = (uint64_t)st.st_size;
	m->names_in_memory = f->names_in_memory;
	m->named = l->asked;
	l->names_count++;
	*(m->names_in_memory ? &l->memory_size : &l->names_size) += m->names_size;
	make_room(l);
}

static struct image *find_image(const struct fresh_list *list, const struct library_module *m)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].module == m)
			return list->items[i].image;
	return NULL;
}

int library_names(struct library *l, uint32_t id, struct image **image)
{
	struct library_module *m = (struct library_module *)library_module(l, id);
	*image = NULL;
	if (!m || !m->fleeting)
		return -1;
	m->named = ++l->asked;
	if (m->names >= 0 || m->state != LIBRARY_PENDING)
		return m->names;
	*image = find_image(&l->pending, m);
	for (size_t i = 0; i < LIBRARY_LANES && !*image; i++)
		*image = find_image(&l->lanes[i].work, m);
	return -1;
}
