/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a sample to a path of the tree. Its frames come from two places: the
 * call chain, in which marks tell code of the kernel from the program's, and
 * the copy of registers and stack, which is walked. The kernel's frames stand
 * below those of the program that called it; without names for them they are
 * one node.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/err.h"
#include "cct/cct.h"
#include "harvest/stack.h"
#include "import/binaries.h"
#include "import/internal.h"
#include "process/kernel_names.h"
#include "import/perf_format.h"
#include "import/perf_sample.h"
#include "import/registers.h"
#include "import/perf_tasks.h"
#include "process/jit.h"
#include "profile/profile.h"

#define USUAL_MAX_STACK 127u

struct frames {
	const uint64_t *user, *kernel; /* addresses, innermost first */
	uint32_t user_count, kernel_count;
};

/* ---- the chain ---- */

static void split(struct import *i, const struct perf_record *r, const struct perf_sample *s,
		  struct frames *out)
{
	uint32_t mode = r->misc & PERF_MISC_MODE;
	*out = (struct frames){.user = i->user, .kernel = i->kernel_chain};
	for (uint64_t at = 0; at < s->chain_count; at++) {
		uint64_t address = perf_sample_word(s->chain, at);
		if (address >= PERF_CHAIN_MARKS) {
			mode = address == PERF_CHAIN_USER     ? PERF_MODE_USER
			       : address == PERF_CHAIN_KERNEL ? PERF_MODE_KERNEL
							      : 0;
			continue;
		}
		if (mode == PERF_MODE_USER && out->user_count < IMPORT_FRAMES - 1)
			i->user[out->user_count++] = address;
		else if (mode == PERF_MODE_KERNEL && out->kernel_count < IMPORT_FRAMES)
			i->kernel_chain[out->kernel_count++] = address;
	}
	/* A chain may be without the place itself, where the kernel was told to leave a part out. */
	mode = r->misc & PERF_MISC_MODE;
	if (mode == PERF_MODE_KERNEL && !out->kernel_count)
		i->kernel_chain[out->kernel_count++] = s->ip;
	else if (mode != PERF_MODE_KERNEL && !out->user_count)
		i->user[out->user_count++] = s->ip;
}

static uint64_t key_of(const struct walk_space *space, uint64_t address, bool exact)
{
	const struct walk_module *m = walk_find_module(space, address - !exact);
	return m && m->id ? cct_key(!exact, m->id, address - m->bias) : cct_key(!exact, 0, address);
}

static const struct recipe *recipe_of(const struct walk_space *space, uint64_t address, bool exact)
{
	const struct walk_module *m = walk_find_module(space, address - !exact);
	return m ? table_find(&m->table, address - !exact - m->bias) : NULL;
}

/* The kernel follows frame pointers, and so leaves out the caller of a function that has made no
   frame. Where that one is in the link register, and the link register was recorded, it is known. */
static bool find_leaf_caller(const struct import *i, const struct perf_record *r,
			     const struct perf_sample *s, const struct walk_space *space,
			     uint64_t address, uint64_t *caller)
{
	const struct unwind_cpu *cpu = unwind_cpu_for(i->cpu->elf_machine);
	const struct recipe *recipe = recipe_of(space, address, true);
	if (cpu->link == CPU_NO_REGISTER || s->registers_abi != PERF_REGISTERS_64 || !recipe ||
	    recipe->cfa != RECIPE_REG || recipe->ra != RECIPE_SAME ||
	    !registers_one(i->cpu, r->event->registers, s->registers, cpu->link, caller))
		return false;
	*caller &= cpu->address_bits;
	return *caller && walk_find_module(space, *caller - 1);
}

static enum walk_end judge(const struct perf_event *event, const struct walk_space *space,
			   const uint64_t *user, uint32_t count, uint32_t chain_count)
{
	uint32_t max = event->max_stack ? event->max_stack : USUAL_MAX_STACK;
	const struct recipe *last = recipe_of(space, user[count - 1], count == 1);
	if (last && last->cfa == RECIPE_ROOT)
		return WALK_COMPLETE;
	if (!(event->sample_type & PERF_HAS_CALLCHAIN))
		return WALK_NO_RECIPE;
	if (chain_count >= max)
		return WALK_TOO_DEEP;
	return last ? WALK_BAD_FRAME : WALK_NO_MODULE;
}

static enum walk_end take_chain(struct import *i, const struct perf_record *r,
				const struct perf_sample *s, const struct walk_space *space,
				const struct frames *f, uint32_t *count)
{
	uint64_t caller;
	*count = 0;
	if (!f->user_count) /* a thread of the kernel, or one that begins or ends */
		return r->event->sample_type & PERF_HAS_CALLCHAIN ? WALK_COMPLETE : WALK_NO_RECIPE;
	for (uint32_t at = 0; at < f->user_count; at++) {
		i->keys[(*count)++] = key_of(space, f->user[at], !at);
		if (!at && find_leaf_caller(i, r, s, space, f->user[0], &caller) &&
		    (f->user_count == 1 || f->user[1] != caller)) {
			i->keys[(*count)++] = key_of(space, caller, false);
			if (f->user_count == 1)
				return judge(r->event, space, (uint64_t[]){f->user[0], caller}, 2,
					     1);
		}
	}
	return judge(r->event, space, f->user, f->user_count, f->user_count + f->kernel_count);
}

/* ---- the copy of the stack ---- */

struct copy {
	uint64_t address;
	const struct perf_sample *sample;
	bool missed; /* it was asked for what lies behind its end */
};

static bool read_word(void *context, uint64_t address, uint64_t *out)
{
	struct copy *c = context;
	uint64_t offset = address - c->address, size = c->sample->stack_size;
	if (offset > size || size - offset < sizeof *out) {
		c->missed |= address >= c->address;
		return false;
	}
	memcpy(out, c->sample->stack + offset, sizeof *out);
	return true;
}

static enum walk_end walk_copy(struct import *i, const struct perf_record *r,
			       const struct perf_sample *s, const struct walk_space *space,
			       uint32_t *count)
{
	const struct unwind_cpu *cpu = unwind_cpu_for(i->cpu->elf_machine);
	uint64_t registers[CPU_REGISTERS], pc;
	struct copy copy = {.sample = s};
	struct walk_reader reader = {read_word, &copy};
	const struct stack_code code = {*space, .fresh = true}; /* every mapping is in the file */
	*count = 0;
	if (!registers_convert(i->cpu, r->event->registers, s->registers, registers, &pc))
		return WALK_NO_RECIPE;
	copy.address = registers[cpu->sp];
	enum walk_end end = stack_walk(&code, i->cpu->elf_machine, registers, pc, &reader, i->keys,
				       IMPORT_FRAMES, count);
	if (end == WALK_BAD_MEMORY && copy.missed && s->stack_size == s->stack_wanted) {
		i->short_stacks++;
		i->stack_wanted = s->stack_wanted;
	}
	return end;
}

/* ---- the tree ---- */

static struct err *add_module(struct import *i, const struct profile_module *m, uint32_t *number)
{
	uint32_t index;
	struct err *e = *number ? NULL : profile_add_module(i->profile, m, &index);
	if (!e && !*number)
		*number = index + 1;
	return e;
}

static struct err *module_of(struct import *i, struct task_process *p, uint64_t key,
			     const struct walk_space *space, uint32_t *module)
{
	struct binary *b = binaries_get(i->binaries, cct_key_module(key));
	uint64_t address = key & CCT_ADDRESS;
	struct err *e;
	*module = 0;
	if (b) {
		e = add_module(
			i,
			&(struct profile_module){.kind = b->is_vdso ? PROFILE_VDSO : PROFILE_FILE,
						 .path = b->found ? b->found : b->path,
						 .build_id = b->build_id,
						 .problem = b->problem ? b->problem : ""},
			&b->profile);
		*module = e ? 0 : b->profile - 1;
		return e;
	}
	if (!walk_find_module(space, address - !!(key & CCT_CALL)))
		return NULL;
	e = add_module(i,
		       &(struct profile_module){.kind = PROFILE_JIT,
						.path = "[code made at run time]",
						.build_id = "",
						.problem = "",
						.process = p->profile - 1},
		       &p->made_code);
	*module = e ? 0 : p->made_code - 1;
	return e;
}

static struct err *add_user(struct import *i, struct task_process *p,
			    const struct walk_space *space, enum walk_end end, uint32_t count,
			    uint32_t *node)
{
	uint32_t module;
	*node = 0;
	struct err *e = end == WALK_COMPLETE ? NULL
					     : profile_child(i->profile, 0, PROFILE_PARTIAL, 0,
							     (uint64_t)end, node);
	for (uint32_t at = count; !e && at--;) {
		uint64_t key = i->keys[at];
		e = module_of(i, p, key, space, &module);
		if (!e)
			e = profile_child(i->profile, *node,
					  key & CCT_CALL ? PROFILE_CALL : PROFILE_EXACT, module,
					  key & CCT_ADDRESS, node);
	}
	return e;
}

/* ---- the kernel ---- */

/* Our own list serves where the same kernel was recorded, or one of the same build. */
static bool is_our_kernel(const struct import *i)
{
	const char *id = perf_info_build_id(i->info, "[kernel.kallsyms]");
	struct utsname name;
	char own[41];
	kernel_names_own_id(own);
	if (id && own[0])
		return !strcmp(id, own);
	return i->info->release && !uname(&name) && !strcmp(name.release, i->info->release) &&
	       i->info->host && !strcmp(name.nodename, i->info->host);
}

static void ask_kernel(struct import *i)
{
	const char *path = i->options->kallsyms ? i->options->kallsyms : "/proc/kallsyms";
	i->kernel_asked = true;
	if (!i->options->kallsyms && (!i->kernel_symbol[0] || !is_our_kernel(i)))
		return;
	err_free(kernel_names_open(path, &i->kernel));
	if (i->kernel && i->kernel_symbol[0])
		kernel_names_move(i->kernel, i->kernel_symbol, i->kernel_address);
}

/* One kernel from another, and from where it is after another boot. */
static void tell_kernel(const struct import *i, char *out, size_t size)
{
	const char *id = perf_info_build_id(i->info, "[kernel.kallsyms]");
	snprintf(out, size, "%.40s%llx", id ? id : "", (unsigned long long)i->kernel_address);
}

static struct err *add_kernel(struct import *i, const struct frames *f, uint32_t *node)
{
	char where[64] = "";
	if (!f->kernel_count)
		return NULL;
	if (!i->kernel_asked)
		ask_kernel(i);
	if (i->kernel && !i->kernel_module)
		tell_kernel(i, where, sizeof where);
	const struct profile_module kernel = {
		.kind = PROFILE_KERNEL, .path = "[kernel]", .build_id = where, .problem = ""};
	struct err *e = add_module(i, &kernel, &i->kernel_module);
	if (e)
		return e;
	if (!i->kernel)
		return profile_child(i->profile, *node, PROFILE_EXACT, i->kernel_module - 1, 0,
				     node);
	for (uint32_t at = f->kernel_count; !e && at--;)
		e = profile_child(i->profile, *node, at ? PROFILE_CALL : PROFILE_EXACT,
				  i->kernel_module - 1, f->kernel[at], node);
	return e;
}

/* ---- a sample ---- */

/* Of the first metric alone, as with `record`. */
static void keep_time(struct import *i, const struct perf_record *r, uint32_t node, uint32_t thread,
		      uint32_t metric)
{
	struct err *e = NULL;
	if (!i->options->timeline || metric)
		return;
	if (r->time)
		e = profile_time(i->profile, node, thread, metric, r->time - i->first_time, 1);
	if (e || !r->time)
		i->profile->untimed++;
	err_free(e);
}

struct err *import_sample(struct import *i, const struct perf_record *r)
{
	struct perf_sample s;
	struct frames f;
	uint32_t thread, node, count;
	uint32_t metric = i->metrics[perf_info_event_number(i->info, r->event)];
	if (!metric || !perf_sample_parse(r->event, r->body, r->size, &s)) {
		i->damaged++;
		return NULL;
	}
	struct task_thread *t = perf_tasks_thread(i->tasks, (int32_t)s.process, (int32_t)s.thread);
	struct err *e = t ? perf_tasks_keep(t, i->profile, i->first_time, &thread)
			  : err_new("out of memory");
	if (e)
		return e;
	split(i, r, &s, &f);
	struct walk_space space = perf_tasks_walk(i->tasks, t->process);
	enum walk_end end;
	bool copied = r->event->sample_type & PERF_HAS_STACK_USER && s.registers_abi;
	if (copied && s.registers_abi == PERF_REGISTERS_64) {
		end = walk_copy(i, r, &s, &space, &count);
	} else {
		end = take_chain(i, r, &s, &space, &f, &count);
		if (copied) { /* 32-bit code */
			end = WALK_NO_RECIPE;
			i->narrow++;
		}
	}
	i->flat += !(r->event->sample_type & (PERF_HAS_CALLCHAIN | PERF_HAS_STACK_USER));
	e = add_user(i, t->process, &space, end, count, &node);
	if (!e)
		e = add_kernel(i, &f, &node);
	if (!e)
		e = profile_count(i->profile, node, thread, metric - 1, 1);
	if (e) { /* the tree is full */
		err_free(e);
		return profile_lose(i->profile, "no room", 1);
	}
	keep_time(i, r, node, thread, metric - 1);
	i->periods[metric - 1] += s.period;
	i->profile->threads[thread].handled++;
	return NULL;
}

/* ---- names ---- */

static const char *kernel_name(const void *context, uint64_t address, uint64_t *start,
			       uint64_t *size)
{
	return kernel_names_find(context, address, start, size);
}

static const char *made_name(const void *context, uint64_t address, uint64_t *start, uint64_t *size)
{
	const struct jit_code *code = jit_find(context, address);
	if (!code)
		return NULL;
	*start = code->start;
	*size = code->size;
	return code->name;
}

/* Code made at run time has its names in a file that the program wrote while it was recorded. */
static void name_made_code(void *context, struct task_process *process)
{
	struct import *i = context;
	uint64_t seconds = (i->last_time - i->first_time) / 1000000000;
	struct jit *jit = NULL;
	struct stat st;
	char path[64];
	snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)process->pid);
	if (!process->made_code || stat(path, &st) ||
	    (uint64_t)st.st_mtime + seconds + 2 < i->recorded ||
	    (uint64_t)st.st_mtime > i->recorded + 2)
		return;
	err_free(jit_open_file(path, geteuid(), &jit));
	if (jit)
		profile_name_module(i->profile, process->made_code - 1, made_name, jit);
	jit_close(jit);
}

void import_names(struct import *i)
{
	struct utsname name;
	if (i->kernel && i->kernel_module)
		profile_name_module(i->profile, i->kernel_module - 1, kernel_name, i->kernel);
	if (i->recorded && i->info->host && !uname(&name) && !strcmp(name.nodename, i->info->host))
		perf_tasks_each(i->tasks, name_made_code, i);
}
