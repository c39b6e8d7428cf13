/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * All code of a process, ready for walks: every mapped module is opened and has its unwind table
 * (recipes/cache.h). `culprit stack` uses it. If the path is not (or no longer) the mapped file, the module
 * is opened through /proc/PID/root or map_files: that is so for deleted and replaced files, and in
 * containers. The vDSO is read from memory.
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
	const char *path;    /* as in the memory map; "[vdso]" */
	struct image *image; /* NULL: it could not be read, see `problem` */
	const char *problem;
	struct module_table table;
	uint64_t bias;
	uint64_t device, inode; /* of the file */
};

struct space {
	struct space_module *modules;
	size_t module_count;
	struct walk_space walk;        /* all executable mappings of these modules */
	uint32_t *module_of;           /* for each entry of walk.modules: its index in `modules` */
	uint16_t machine;              /* ELF machine of the process */
	struct maps maps;              /* as last read */
	const struct runtime *runtime; /* which compiler makes code there */
};

/* Opens every executable module of the process, and builds or loads its table. The process is not stopped
   for that. If a module cannot be read, it is kept with its problem. */
struct err *space_open(pid_t pid, enum recipes_mode mode, struct space *out);
/* Reads the maps again and adds new modules; *added is their number. Modules that are gone are removed
   from `walk`. They stay in `modules`, so that indices remain valid. */
struct err *space_refresh(pid_t pid, enum recipes_mode mode, struct space *space, size_t *added);
void space_close(struct space *space);

/* The module at a run-time address, or NULL. */
const struct space_module *space_find(const struct space *space, uint64_t address);

/* Building blocks of the above, for others that manage modules themselves (library/). Whether a mapping is
   code of a file, or the vDSO. */
bool space_is_module(const struct map *map);
/* Computes *bias: address in the process = address in the module + *bias. False if the mapping shows no
   executable part of the file. */
bool space_bias(const struct image_segment *segments, size_t count, const struct map *map,
		uint64_t *bias);
/* Some programs copy their code to large pages, which are anonymous memory. Whether the mapping lies
   within the code of a module that is loaded with this bias. */
bool space_holds(const struct image_segment *segments, size_t count, uint64_t bias,
		 const struct map *map);

/* The mapping that contains this address, of a module or not; NULL if none does. From the maps as
   last read. */
const struct map *space_map(const struct space *space, uint64_t address);
