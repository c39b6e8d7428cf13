/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kernel/object.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/err.h"
#include "collect/kernel/bpf/kernel_object.h" /* made by the build */
#include "collect/kernel/state.h"
#include "process/registers.h"
#include "unwind/cpu.h"

__attribute__((format(printf, 2, 0))) static int keep_quiet(enum libbpf_print_level level,
							    const char *format, va_list arguments)
{
	if (getenv("CULPRIT_BPF_LOG"))
		return vfprintf(stderr, format, arguments);
	(void)level;
	return 0;
}

static bool set(struct bpf_object *object, const struct kernel_settings *settings)
{
	size_t size = 0;
	struct bpf_map *map = bpf_object__find_map_by_name(object, ".rodata.settings");
	void *bytes = map ? (void *)bpf_map__initial_value(map, &size) : NULL;
	if (!bytes || size < sizeof *settings)
		return false;
	memcpy(bytes, settings, sizeof *settings);
	return true;
}

static bool set_size(struct bpf_object *object, const char *name, uint32_t entries)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);
	return map && !bpf_map__set_max_entries(map, entries);
}

struct err *object_load(struct kernel *k)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "culprit");
	libbpf_set_print(keep_quiet);
	k->object = bpf_object__open_mem(kernel_object, sizeof kernel_object, &opts);
	if (!k->object)
		return err_errno("cannot open the sampler for the kernel");
	struct kernel_settings settings = {
		.cpu = *unwind_cpu_for(native_machine),
		.max_depth = k->max_depth,
		.memo_bits = k->paths.memo_bits,
		.whole = k->whole,
		.every = k->every,
	};
	if (!set(k->object, &settings) || !set_size(k->object, "workspaces", k->cpus) ||
	    !set_size(k->object, "memos", 1u << k->paths.memo_bits) ||
	    !set_size(k->object, "places", k->cpus * KERNEL_PLACES) ||
	    !set_size(k->object, "turns", k->cpus) || !set_size(k->object, "rules", KERNEL_RULES) ||
	    (k->every > 1 && !set_size(k->object, "counters", k->cpus * 2 * KERNEL_COUNTERS)))
		return err_new("the sampler for the kernel is not as it should be");
	if (bpf_object__load(k->object))
		return err_errno(
			"the kernel does not take the sampler (CULPRIT_BPF_LOG=1 shows why)");
	k->processes = bpf_object__find_map_fd_by_name(k->object, "processes");
	k->tables.shards = bpf_object__find_map_fd_by_name(k->object, "shards");
	return NULL;
}

struct err *object_keep(struct kernel *k, struct bpf_link *link, const char *what)
{
	if (!link)
		return err_errno("cannot attach the sampler to %s", what);
	struct bpf_link **more = reallocarray(k->links, k->link_count + 1, sizeof *more);
	if (!more) {
		bpf_link__destroy(link);
		return err_new("out of memory");
	}
	k->links = more;
	k->links[k->link_count++] = link;
	return NULL;
}

struct err *object_attach(struct kernel *k)
{
	static const char *const names[] = {"forked", "executed", "exited", "mapped"};
	struct err *e = NULL;
	for (size_t i = 0; !e && i < sizeof names / sizeof *names; i++) {
		struct bpf_program *program = bpf_object__find_program_by_name(k->object, names[i]);
		e = object_keep(k, program ? bpf_program__attach(program) : NULL, names[i]);
	}
	return e;
}

void object_drop(struct kernel *k, struct bpf_link *link)
{
	for (size_t i = 0; link && i < k->link_count; i++)
		if (k->links[i] == link)
			k->links[i--] = k->links[--k->link_count];
	bpf_link__destroy(link);
}

void object_detach(struct kernel *k)
{
	for (size_t i = 0; i < k->link_count; i++)
		bpf_link__destroy(k->links[i]);
	free(k->links);
	k->links = NULL;
	k->link_count = 0;
}

void *object_map(struct kernel *k, const char *name, size_t size)
{
	int fd = bpf_object__find_map_fd_by_name(k->object, name);
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return at == MAP_FAILED ? NULL : at;
}

bool object_read_counts(const struct kernel *k, struct kernel_counts *out)
{
	struct bpf_map *map = bpf_object__find_map_by_name(k->object, ".data.counts");
	uint32_t zero = 0;
	return map && bpf_map__value_size(map) == sizeof *out &&
	       !bpf_map_lookup_elem(bpf_map__fd(map), &zero, out);
}
