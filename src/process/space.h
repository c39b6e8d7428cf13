/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * All code of a process, ready for walking: every mapped module opened, with
 * its unwind table (recipes/cache.h), as a walk_space. Modules are opened
 * through /proc/PID/root or map_files where the path is not (or no longer) the
 * file that is mapped: deleted and replaced files, containers. The vDSO is read from memory.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/maps.h"
#include "recipes/cache.h"
#include "unwind/walk.h"

struct err;
struct image;
struct image_segment;
struct runtime;

struct space_module {
	const char *path;    /* as mapped; "[vdso]" */
	struct image *image; /* NULL: it could not be read; `problem` says why */
	const char *problem;
	struct module_table table;
	uint64_t bias;
	uint64_t device, inode; /* of the file */
};

struct space {
	struct space_module *modules;
	size_t module_count;
	struct walk_space walk;        /* over all executable mappings of these modules */
	uint32_t *module_of;           /* for each entry of walk.modules, its index in `modules` */
	uint16_t machine;              /* ELF machine of the process */
	struct maps maps;              /* as last read */
	const struct runtime *runtime; /* who makes code there */
};

/* Opens every executable module of the process and builds or loads its table, before anything
   is stopped. A module that cannot be read is kept with its problem. */
struct err *space_open(pid_t pid, enum recipes_mode mode, struct space *out);
/* Looks at the maps again and adds what is new. *added says how many modules. Modules that are
   gone stay in `modules`, so indices keep their meaning, but leave `walk`. */
struct err *space_refresh(pid_t pid, enum recipes_mode mode, struct space *space, size_t *added);
void space_close(struct space *space);

/* The module at a run-time address, or NULL. */
const struct space_module *space_find(const struct space *space, uint64_t address);

/* What the above is made of, for others with modules of their own. Whether a mapping is code of a
   file, or the vDSO. */
bool space_is_module(const struct map *map);
/* The module's own address + *bias = the address in the process. False where the mapping shows no
   executable part of the file. */
bool space_bias(const struct image_segment *segments, size_t count, const struct map *map,
		uint64_t *bias);
/* Text that was copied to large pages is anonymous: whether the mapping lies in the code of a
   module that was loaded with this bias. */
bool space_holds(const struct image_segment *segments, size_t count, uint64_t bias,
		 const struct map *map);

/* The mapping with this address as last read, of a module or not, or NULL. */
const struct map *space_map(const struct space *space, uint64_t address);
