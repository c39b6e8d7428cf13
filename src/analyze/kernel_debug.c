/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/kernel_debug.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/err.h"
#include "image/debug.h"
#include "image/image.h"
#include "image/places.h"
#include "image/symbols.h"
#include "process/kernel_names.h"
#include "profile/profile.h"

#define PAGE 4096u

/* ---- the file ---- */

static struct image *open_if_its(const char *path, const char *id)
{
	char found[2 * BUILD_ID_MAX + 1];
	struct image *image;
	struct err *e = image_open(path, &image);
	if (e) {
		err_free(e);
		return NULL;
	}
	image_build_id_hex(image, found);
	if (!strcmp(found, id))
		return image;
	image_close(image);
	return NULL;
}

/* Where packages and builds of kernels put it. */
static struct image *find_file(void)
{
	static const struct {
		bool below_root; /* of debug files */
		const char *before, *after;
	} places[] = {
		{true, "/boot/vmlinux-", ""},
		{true, "/lib/modules/", "/vmlinux"},
		{false, "/lib/modules/", "/build/vmlinux"},
		{false, "/boot/vmlinux-", ""},
	};
	char id[41], path[PATH_MAX];
	struct utsname name;
	kernel_names_own_id(id);
	if (strlen(id) < 4 || uname(&name))
		return NULL;
	snprintf(path, sizeof path, "%s/.build-id/%.2s/%s.debug", debug_root(), id, id + 2);
	struct image *image = open_if_its(path, id);
	for (size_t i = 0; !image && i < sizeof places / sizeof *places; i++) {
		snprintf(path, sizeof path, "%s%s%s%s", places[i].below_root ? debug_root() : "",
			 places[i].before, name.release, places[i].after);
		image = open_if_its(path, id);
	}
	return image;
}

/* ---- the shift ---- */

static int by_name(const void *a, const void *b)
{
	const struct profile_name *const *x = a, *const *y = b;
	return strcmp((*x)->name, (*y)->name);
}

static int compare_shifts(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* The most frequent one; there may be several functions of a name, at most one of which is right. False: fewer than half
   of the names agree. */
static bool choose_shift(uint64_t *shifts, size_t count, size_t names, uint64_t *out)
{
	size_t most = 0;
	qsort(shifts, count, sizeof *shifts, compare_shifts);
	for (size_t i = 0, run = 1; i < count; i++, run++) {
		if (i && shifts[i] != shifts[i - 1])
			run = 1;
		if (run > most) {
			most = run;
			*out = shifts[i];
		}
	}
	return most && most >= (names + 1) / 2;
}

/* The kernel is moved by whole pages when it starts. Its functions tell by how much: the recording and the file have both
   their names and addresses. Functions of loaded modules are not in the file. */
static bool find_shift(const struct profile_module *kernel, const struct symbols *symbols,
		       uint64_t *out)
{
	const struct symbol *all;
	size_t count = symbols ? symbols_all(symbols, &all) : 0, found = 0, known = 0;
	const struct profile_name **names = calloc(kernel->name_count + 1, sizeof *names);
	bool *seen = calloc(kernel->name_count + 1, sizeof *seen);
	uint64_t *shifts = calloc(count + 1, sizeof *shifts);
	for (size_t i = 0; names && i < kernel->name_count; i++)
		names[i] = &kernel->names[i];
	if (names)
		qsort(names, kernel->name_count, sizeof *names, by_name);
	for (size_t i = 0; names && seen && shifts && i < count; i++) {
		const struct profile_name key = {.name = all[i].name}, *wanted = &key;
		const struct profile_name **at = bsearch(&wanted, names, kernel->name_count,
							 sizeof *names, by_name);
		if (!at)
			continue;
		known += !seen[at - names];
		seen[at - names] = true;
		if (((*at)->start - all[i].address) % PAGE == 0)
			shifts[found++] = (*at)->start - all[i].address;
	}
	bool good = names && seen && shifts && choose_shift(shifts, found, known, out);
	free(names);
	free(seen);
	free(shifts);
	return good;
}

/* ---- the face ---- */

void kernel_debug_open(const struct profile_module *kernel, struct kernel_debug *out)
{
	char boot[KERNEL_BOOT_SIZE];
	*out = (struct kernel_debug){0};
	kernel_names_boot(boot);
	if (!boot[0] || strcmp(boot, kernel->build_id) != 0)
		return;
	out->image = find_file();
	if (out->image)
		err_free(places_open(out->image, false, &out->places));
	if (out->places && find_shift(kernel, places_symbols(out->places), &out->shift))
		return;
	kernel_debug_close(out);
}

void kernel_debug_close(struct kernel_debug *debug)
{
	places_close(debug->places);
	image_close(debug->image);
	*debug = (struct kernel_debug){0};
}
