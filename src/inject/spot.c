/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/spot.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/path.h"
#include "image/image.h"
#include "image/symbols.h"
#include "inject/borrow.h"
#include "process/registers.h"
#include "process/remote.h"
#include "process/space.h"
#include "process/stacks.h"
#include "process/status.h"

#define FRAMES_MAX 4096u
#define STACK_ROOM (64u << 10) /* what a call may need of a stack */

struct spots {
	pid_t pid;
	struct space space;
	const struct space_module *libc, *loader;
	struct symbols *symbols; /* of libc: its exports */
	struct spot_functions functions;
	uint64_t allocator; /* index + 1 of another module that has malloc; 0: libc has it */
};

/* ---- which library is which ---- */

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static bool is_libc(const char *file)
{
	return begins(file, "libc.so.6") || begins(file, "libc-2.");
}

static bool is_loader(const char *file)
{
	return begins(file, "ld-linux") || begins(file, "ld-2.") || begins(file, "ld.so");
}

static bool asks_for_musl(struct image *image)
{
	char *interpreter = image ? image_interpreter(image) : NULL;
	bool musl = interpreter && strstr(interpreter, "ld-musl");
	free(interpreter);
	return musl;
}

static void find_libraries(struct spots *p, bool *musl)
{
	*musl = false;
	for (size_t i = 0; i < p->space.module_count; i++) {
		const struct space_module *m = &p->space.modules[i];
		const char *file = path_file(m->path);
		*musl |= asks_for_musl(m->image);
		if (is_libc(file) && m->image)
			p->libc = m;
		if (is_loader(file))
			p->loader = m;
	}
}

static bool is_go(struct image *image)
{
	return image_section(image, ".go.buildinfo") || image_section(image, ".note.go.buildid");
}

/* Why no library of ours can be loaded there; NULL: it can. */
static const char *find_obstacle(const struct spots *p, bool musl)
{
	for (size_t i = 0; i < p->space.module_count; i++)
		if (p->space.modules[i].image && is_go(p->space.modules[i].image))
			return "it is a program of Go, whose runtime has all signals for itself";
	if (p->libc && p->loader)
		return NULL;
	return musl ? "its libc is musl, and the agent needs glibc"
		    : "it is a static program, which cannot load a library";
}

static struct err *check_program(struct spots *p, const char *otherwise)
{
	bool musl;
	find_libraries(p, &musl);
	const char *why = find_obstacle(p, musl);
	return why ? err_new("process %d: %s: %s", (int)p->pid, why, otherwise) : NULL;
}

/* ---- functions ---- */

static bool find_export(struct image *image, const char *name, uint64_t *value)
{
	const struct image_section *all, *table = image_section(image, ".dynsym");
	size_t count = image_sections(image, &all), size = 0, names_size = 0;
	if (!table || table->link >= count)
		return false;
	const uint8_t *bytes = image_section_bytes(image, table, &size);
	const char *names = (const char *)image_section_bytes(image, &all[table->link],
							      &names_size);
	for (size_t at = 0; bytes && names && at + sizeof(Elf64_Sym) <= size;
	     at += sizeof(Elf64_Sym)) {
		Elf64_Sym s;
		memcpy(&s, bytes + at, sizeof s);
		if (s.st_shndx == SHN_UNDEF || s.st_name >= names_size ||
		    strnlen(names + s.st_name, names_size - s.st_name) == names_size - s.st_name ||
		    strcmp(names + s.st_name, name))
			continue;
		*value = s.st_value;
		return true;
	}
	return false;
}

static uint64_t address_of(const struct spots *p, const char *name)
{
	uint64_t value;
	if (!find_export(p->libc->image, name, &value))
		return 0;
	return value + p->libc->bias;
}

static bool find_restorer_in(const struct spots *p, uint64_t start, size_t size, uint64_t *out)
{
	struct remote r = {.pid = p->pid, .memory = process_task(p->pid)};
	uint8_t *bytes = malloc(size);
	bool good = bytes && remote_read(&r, start, bytes, size);
	long at = good ? cpu_find_restorer(bytes, size) : -1;
	remote_close(&r);
	free(bytes);
	*out = start + (uint64_t)at;
	return at >= 0;
}

static bool find_restorer(struct spots *p)
{
	for (size_t i = 0; i < p->space.maps.count; i++) {
		const struct map *m = &p->space.maps.items[i];
		bool wanted = cpu_restorer_in_vdso
				      ? !strcmp(m->path, "[vdso]")
				      : m->executable && !strcmp(m->path, p->libc->path);
		if (wanted &&
		    find_restorer_in(p, m->start, m->end - m->start, &p->functions.restorer))
			return true;
	}
	return false;
}

static struct err *find_functions(struct spots *p, const char *otherwise)
{
	struct spot_functions *f = &p->functions;
	f->mmap = address_of(p, "mmap");
	f->pthread_create = address_of(p, "pthread_create");
	f->dlopen = address_of(p, "dlopen");
	f->dlsym = address_of(p, "dlsym");
	f->dlerror = address_of(p, "dlerror");
	if (!f->mmap || !f->pthread_create || !f->dlopen || !f->dlsym || !f->dlerror)
		return err_new("process %d: its glibc is older than 2.34: %s", (int)p->pid,
			       otherwise);
	struct process_status s;
	if (find_restorer(p))
		return NULL;
	if (!process_status(p->pid, &s) || s.state == 'Z')
		return err_new("process %d has ended", (int)p->pid);
	return err_new("process %d: its code has no rt_sigreturn", (int)p->pid);
}

static void find_allocator(struct spots *p)
{
	uint64_t unused;
	for (size_t i = 0; i < p->space.module_count; i++) {
		const struct space_module *m = &p->space.modules[i];
		if (m != p->libc && m != p->loader && m->image &&
		    find_export(m->image, "malloc", &unused))
			p->allocator = i + 1;
	}
}

struct err *spots_open(pid_t pid, const char *otherwise, struct spots **out)
{
	struct spots *p = calloc(1, sizeof *p);
	*out = NULL;
	if (!p)
		return err_new("out of memory");
	p->pid = pid;
	struct err *e = space_open(pid, RECIPES_AUTO, &p->space);
	if (!e && p->space.machine != native_machine)
		e = err_new("process %d runs a program for another CPU", (int)pid);
	if (!e)
		e = check_program(p, otherwise);
	if (!e)
		e = find_functions(p, otherwise);
	if (!e)
		e = symbols_read_dynamic(p->libc->image, &p->symbols);
	if (!e)
		find_allocator(p);
	if (e)
		spots_close(p);
	else
		*out = p;
	return e;
}

void spots_close(struct spots *p)
{
	if (!p)
		return;
	symbols_free(p->symbols);
	space_close(&p->space);
	free(p);
}

const struct spot_functions *spots_functions(const struct spots *p)
{
	return &p->functions;
}

/* ---- paths ---- */

/* Functions of libc that a good path does not have. */
static bool is_refused(const char *name)
{
	static const char *const names[] = {
		"malloc",
		"calloc",
		"realloc",
		"reallocarray",
		"free",
		"cfree",
		"memalign",
		"valloc",
		"pvalloc",
		"posix_memalign",
		"aligned_alloc",
		"malloc_trim",
		"mallopt",
		"mallinfo",
		"mallinfo2",
		"malloc_info",
		"malloc_stats",
		"__libc_freeres",
		"fork",
		"_Fork",
		"vfork",
		"clone",
		"posix_spawn",
		"posix_spawnp",
		"system",
		"popen",
		"exit",
		"_exit",
		"quick_exit",
		"abort",
		"setuid",
		"setgid",
		"seteuid",
		"setegid",
		"setreuid",
		"setregid",
		"setresuid",
		"setresgid",
		"setgroups",
		"sigprocmask",
		"longjmp",
		"__tls_get_addr",
		"__libc_alloca_cutoff",
		"__cxa_finalize",
		"__lll_lock_wait",
		"__lll_lock_wait_private",
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i]))
			return true;
	return begins(name, "dl") || begins(name, "_dl_") || begins(name, "__libc_dl") ||
	       begins(name, "pthread_create") || begins(name, "pthread_mutex") ||
	       begins(name, "pthread_rwlock") || begins(name, "pthread_spin") ||
	       begins(name, "pthread_exit") || begins(name, "pthread_cancel") ||
	       begins(name, "pthread_attr") || begins(name, "pthread_getattr") ||
	       begins(name, "pthread_set") || begins(name, "pthread_key") ||
	       begins(name, "pthread_atfork") || begins(name, "__register_atfork") ||
	       begins(name, "exec") || begins(name, "thrd_create") || begins(name, "mtx_");
}

/* The exported function at an address of libc; NULL: it is none of those. */
static const char *name_in_libc(const struct spots *p, uint64_t address)
{
	const struct symbol *s = symbols_find(p->symbols, address - p->libc->bias);
	return s && address - p->libc->bias - s->address < s->size ? s->name : NULL;
}

static const char *judge_frame(const struct spots *p, const struct stack_frame *f, bool innermost,
			       bool waits)
{
	uint64_t address = f->address - !f->exact;
	const struct space_module *m = space_find(&p->space, address);
	if (f->how == STACK_SIGNAL)
		return "it runs a signal handler";
	if (!m || f->how == STACK_FP || f->how == STACK_CALL)
		return strcmp(m ? m->path : "", "[vdso]") ? "it runs code that belongs to no file"
							  : NULL;
	if (m == p->loader)
		return "it is in the loader";
	if (p->allocator && m == &p->space.modules[p->allocator - 1] && !waits)
		return "it is in the library that has malloc";
	if (m != p->libc)
		return NULL;
	const char *name = name_in_libc(p, address);
	if (name && is_refused(name))
		return "it allocates memory, waits for a lock, or begins or ends something";
	if (innermost && !waits)
		return "it is inside of libc";
	return NULL;
}

static const char *judge_path(const struct spots *p, const struct stack *s, bool waits)
{
	if (s->end != WALK_COMPLETE)
		return "its call path is not complete";
	for (size_t i = 0; i < s->count; i++) {
		const char *why = judge_frame(p, &s->frames[i], i == 0, waits);
		if (why)
			return why;
	}
	return NULL;
}

/* Whether a call has room below SP. The first thread's stack grows. */
static bool has_stack(const struct spots *p, uint64_t sp)
{
	const struct map *m = space_map(&p->space, sp);
	return !m || !strcmp(m->path, "[stack]") || sp - m->start >= STACK_ROOM;
}

bool spot_is_good(struct spots *p, const struct borrow *held, const char **why)
{
	struct remote memory = {.pid = held->pid, .memory = held->tid};
	struct remote_thread thread = {.tid = held->tid};
	struct stack stack = {.tid = held->tid};
	*why = "its registers cannot be read";
	if (registers_read(&thread)) {
		*why = "out of memory";
		if (stacks_walk(&memory, &thread, &p->space, FRAMES_MAX, false, &stack))
			*why = judge_path(p, &stack, held->call.number >= 0);
		if (!*why && !has_stack(p, cpu_sp(&held->state)))
			*why = "its stack is too small";
	}
	free(stack.frames);
	remote_close(&memory);
	return !*why;
}
