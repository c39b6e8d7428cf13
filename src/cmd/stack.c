/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `culprit stack PID`: everything that takes time is done before the process
 * is stopped (unwind tables) or after it goes on (names).
 */
#include "cmd/cmd.h"

#include "base/args.h"
#include "base/err.h"
#include "base/json.h"
#include "base/path.h"
#include "base/term.h"
#include "image/image.h"
#include "image/places.h"
#include "process/links.h"
#include "process/registers.h"
#include "process/space.h"
#include "process/runtime.h"
#include "process/stacks.h"
#include "process/symbolize.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAMES_MAX (1u << 20)

struct options {
	uint64_t thread, max;
	bool json, raw, no_inline, links, debuginfod, verbose;
	int unwind;
	pid_t pid;
};

struct view {
	const struct options *options;
	struct space space;
	struct stacks stacks;
	struct symbolizer *symbolizer; /* NULL with --raw */
	struct links *links;           /* NULL without --links */
};

/* Whose code it is: a module, what the kernel calls the mapping, or a description. */
static const char *module_of(const struct view *v, uint64_t address)
{
	const struct space_module *m = space_find(&v->space, address);
	const struct map *map = m ? NULL : space_map(&v->space, address);
	if (m)
		return m->path;
	if (!map || !map->executable)
		return NULL;
	return map->path[0] ? map->path : "[anon]";
}

static size_t places_of(const struct view *v, const struct stack_frame *frame,
			const struct place **places)
{
	static const struct place unknown;
	*places = &unknown;
	if (!v->symbolizer || v->options->raw)
		return 1;
	/* Nobody called from a signal trampoline: its own beginning is the "return address". */
	return symbolize(v->symbolizer, frame->address, frame->exact || frame->how == STACK_SIGNAL,
			 places);
}

/* ---- why a walk ended early ---- */

static void print_module_problem(const struct view *v, uint64_t at)
{
	const struct space_module *m = space_find(&v->space, at);
	if (m && m->problem)
		printf("%s", term_text(m->problem));
	else if (v->options->unwind == RECIPES_AUTO)
		printf("neither unwind information nor the code itself tells how to go on from there");
	else
		printf("it is not covered by --unwind=%s: try --unwind=auto",
		       v->options->unwind == RECIPES_CFI ? "cfi" : "analysis");
}

static void print_reason(const struct view *v, const struct stack *s, uint64_t at)
{
	const struct map *map = space_map(&v->space, at);
	const struct space_module *module = space_find(&v->space, at);
	bool made = map && map->executable && !(module && module->image);
	if (made && v->space.runtime->bare) {
		printf("code %s", v->space.runtime->why);
		return;
	}
	switch (s->end) {
	case WALK_NO_MODULE:
		if (made)
			printf("code made at run time, and no frame pointers to follow: have the runtime keep "
			       "them (node --perf-basic-prof, java -XX:+PreserveFramePointer)");
		else
			printf("no code is mapped there: the stack is damaged, or a recipe is wrong");
		break;
	case WALK_NO_RECIPE:
		print_module_problem(v, at);
		break;
	case WALK_COMPLEX:
		printf("its unwind information is an expression that is not understood: try "
		       "--unwind=analysis");
		break;
	case WALK_TOO_DEEP:
		printf("%zu frames are shown: -n shows more", s->count);
		break;
	default:
		printf("the stack is damaged, or a recipe is wrong: %s",
		       v->options->unwind == RECIPES_ANALYSIS ? "try --unwind=auto"
							      : "try --unwind=analysis");
	}
}

static void print_end(const struct view *v, const struct stack *s)
{
	const char *on = term_style(STDOUT_FILENO, TERM_YELLOW),
		   *off = term_style(STDOUT_FILENO, TERM_PLAIN);
	if (s->stuck) {
		printf("     %spartial: it sleeps in the kernel and cannot be interrupted (state D): "
		       "try again later%s\n",
		       on, off);
		return;
	}
	if (s->end == WALK_COMPLETE || !s->count)
		return;
	const struct stack_frame *last = &s->frames[s->count - 1];
	printf("     %spartial: %s at 0x%016" PRIx64 ": ", on, walk_end_name(s->end),
	       last->address);
	print_reason(v, s, last->address - !last->exact);
	printf("%s\n", off);
}

/* ---- for people ---- */

/* Where there is no name, the module's own address is what other tools take. */
static void print_nameless(const struct view *v, uint64_t address, const char *module)
{
	const struct space_module *m = space_find(&v->space, address);
	if (m)
		printf(" %s+0x%" PRIx64, term_text(path_file(module)), address - m->bias);
	else
		printf(" ??");
}

static bool is_nameless(const struct view *v, const struct stack_frame *frame)
{
	const struct place *places;
	return places_of(v, frame, &places) == 1 && !places[0].function;
}

/* One line about all modules whose functions could not be named. */
static void print_missing_names(const struct view *v)
{
	const struct space_module *said[16];
	size_t count = 0;
	for (size_t i = 0; i < v->stacks.count; i++) {
		const struct stack *s = &v->stacks.threads[i];
		for (size_t k = 0; k < s->count && count < 16; k++) {
			const struct space_module *m = space_find(
				&v->space, s->frames[k].address - !s->frames[k].exact);
			size_t seen = 0;
			while (seen < count && said[seen] != m)
				seen++;
			if (m && seen == count && is_nameless(v, &s->frames[k])) {
				printf("%s%s", count ? ", " : "\nno symbols in ",
				       term_text(path_file(m->path)));
				said[count++] = m;
			}
		}
	}
	if (count)
		printf(": their debug packages name these functions, or --debuginfod with "
		       "DEBUGINFOD_URLS set\n");
}

static void print_place(const struct view *v, const struct stack_frame *frame,
			const struct place *place)
{
	const char *module = module_of(v, frame->address - !frame->exact);
	if (place->function) {
		printf(" %s%s%s", term_style(STDOUT_FILENO, TERM_BOLD), term_text(place->function),
		       term_style(STDOUT_FILENO, TERM_PLAIN));
		if (!place->inlined)
			printf("+0x%" PRIx64, place->offset);
	} else if (!v->options->raw) {
		print_nameless(v, frame->address, module);
	}
	if (place->file) {
		printf("  %s", term_text(path_file(place->file)));
		if (place->line)
			printf(":%d", place->line);
	}
	printf("  (%s)", module ? term_text(path_file(module)) : "no module");
	if (place->inlined)
		printf(" (inlined)");
}

/* Calls of interpreted functions that this frame runs: they stand below it. */
static void print_calls(const struct stack *s, size_t index, size_t *next, unsigned *number)
{
	for (; *next < s->call_count && s->calls[*next].frame == index; ++*next) {
		const struct stack_call *call = &s->calls[*next];
		printf("#%-3u 0x%016" PRIx64 " %s%s%s  %s", (*number)++, call->address,
		       term_style(STDOUT_FILENO, TERM_BOLD), term_text(call->name),
		       term_style(STDOUT_FILENO, TERM_PLAIN), term_text(path_file(call->file)));
		if (call->line)
			printf(":%u", call->line);
		printf("  (Python)\n");
	}
}

static void print_frame(const struct view *v, const struct stack *s, size_t index, unsigned *number)
{
	const struct stack_frame *frame = &s->frames[index];
	const struct place *places;
	size_t count = places_of(v, frame, &places);
	for (size_t i = 0; i < count; i++) {
		printf("#%-3u 0x%016" PRIx64, (*number)++, frame->address);
		print_place(v, frame, &places[i]);
		if (i + 1 == count && frame->how == STACK_SIGNAL)
			printf(" <signal>");
		if (i + 1 == count &&
		    (v->options->verbose || frame->how == STACK_FP || frame->how == STACK_CALL) &&
		    frame->how != STACK_SIGNAL && frame->how)
			printf(" <by %s>", stack_how_name(frame->how));
		if (i + 1 == count && v->links && index + 1 < s->count)
			printf(" [%s]", link_name(links_classify(v->links, s, index)));
		putchar('\n');
	}
}

static void print_thread(const struct view *v, const struct stack *s)
{
	unsigned number = 0;
	size_t next = 0;
	printf("%sthread %d \"%s\"%s\n", term_style(STDOUT_FILENO, TERM_CYAN), (int)s->tid,
	       term_text(s->name), term_style(STDOUT_FILENO, TERM_PLAIN));
	for (size_t i = 0; i < s->count; i++) {
		print_calls(s, i, &next, &number);
		print_frame(v, s, i, &number);
	}
	print_end(v, s);
}

static void print_text(const struct view *v)
{
	for (size_t i = 0; i < v->stacks.count; i++) {
		if (i)
			putchar('\n');
		print_thread(v, &v->stacks.threads[i]);
	}
	if (!v->options->raw)
		print_missing_names(v);
}

/* ---- for programs ---- */

static void json_place(const struct view *v, struct json *j, const struct stack_frame *frame,
		       const struct place *place)
{
	json_key(j, "address");
	json_address(j, frame->address);
	json_put_string(j, "module", module_of(v, frame->address - !frame->exact));
	json_put_string(j, "function", place->function);
	json_key(j, "offset");
	if (place->function && !place->inlined)
		json_u64(j, place->offset);
	else
		json_null(j);
	json_put_string(j, "file", place->file);
	json_key(j, "line");
	if (place->line)
		json_i64(j, place->line);
	else
		json_null(j);
	json_key(j, "inline");
	json_bool(j, place->inlined);
}

static void json_frame(const struct view *v, struct json *j, const struct stack *s, size_t index)
{
	const struct stack_frame *frame = &s->frames[index];
	const struct place *places;
	size_t count = places_of(v, frame, &places);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(j);
		json_place(v, j, frame, &places[i]);
		if (i + 1 == count && frame->how)
			json_put_string(j, "recipe", stack_how_name(frame->how));
		if (i + 1 == count && v->links && index + 1 < s->count)
			json_put_string(j, "link", link_name(links_classify(v->links, s, index)));
		json_end_object(j);
	}
}

static void json_calls(struct json *j, const struct stack *s, size_t index, size_t *next)
{
	for (; *next < s->call_count && s->calls[*next].frame == index; ++*next) {
		const struct stack_call *call = &s->calls[*next];
		json_begin_object(j);
		json_key(j, "address");
		json_address(j, call->address);
		json_put_string(j, "module", call->file);
		json_put_string(j, "function", call->name);
		json_key(j, "offset");
		json_null(j);
		json_put_string(j, "file", call->file);
		json_key(j, "line");
		if (call->line)
			json_u64(j, call->line);
		else
			json_null(j);
		json_key(j, "inline");
		json_bool(j, false);
		json_put_string(j, "language", "Python");
		json_end_object(j);
	}
}

static void print_json(const struct view *v)
{
	struct json j = json_to_file(stdout);
	json_begin_object(&j);
	json_put_u64(&j, "culprit", 1);
	json_key(&j, "pid");
	json_i64(&j, v->options->pid);
	json_key(&j, "stopped_ns");
	json_u64(&j, v->stacks.stopped_ns);
	json_key(&j, "threads");
	json_begin_array(&j);
	for (size_t i = 0; i < v->stacks.count; i++) {
		const struct stack *s = &v->stacks.threads[i];
		json_begin_object(&j);
		json_key(&j, "tid");
		json_i64(&j, s->tid);
		json_put_string(&j, "name", s->name);
		json_put_string(&j, "end", s->stuck ? "not stopped" : walk_end_name(s->end));
		json_key(&j, "frames");
		json_begin_array(&j);
		for (size_t k = 0, next = 0; k < s->count; k++) {
			json_calls(&j, s, k, &next);
			json_frame(v, &j, s, k);
		}
		json_end_array(&j);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	json_newline(&j);
}

static void print_verbose(const struct view *v)
{
	char text[TERM_UNIT_MAX];
	size_t complete = 0;
	for (size_t i = 0; i < v->stacks.count; i++)
		complete += v->stacks.threads[i].end == WALK_COMPLETE;
	fflush(stdout);
	fprintf(stderr,
		"culprit stack: process %d was stopped for %s (%u time%s); %zu threads, %zu complete\n",
		(int)v->options->pid, term_time(text, (double)v->stacks.stopped_ns / 1e9),
		v->stacks.stops, v->stacks.stops == 1 ? "" : "s", v->stacks.count, complete);
	for (size_t i = 0; i < v->space.module_count; i++)
		if (v->space.modules[i].problem)
			fprintf(stderr, "culprit stack: %s\n",
				term_text(v->space.modules[i].problem));
}

/* ---- the work ---- */

static struct err *take(struct view *v)
{
	const struct options *o = v->options;
	if (v->space.machine != native_machine)
		return err_new("process %d runs a program for another CPU", (int)o->pid);
	struct err *e = stacks_take(o->pid, (pid_t)o->thread, (size_t)o->max,
				    (enum recipes_mode)o->unwind, &v->space, &v->stacks);
	struct symbolize_options names = {.download = o->debuginfod, .no_inline = o->no_inline};
	if (!e && (!o->raw || o->links))
		e = symbolizer_open(o->pid, &v->space, &names, &v->symbolizer);
	if (!e && o->links)
		e = links_open(&v->space, v->symbolizer, &v->links);
	return e;
}

static int show(const struct options *o)
{
	struct view v = {.options = o};
	struct term_progress progress;
	term_progress_start(&progress, "reading the code of the process");
	term_progress_update(&progress, 0, 0);
	struct err *e = space_open(o->pid, (enum recipes_mode)o->unwind, &v.space);
	term_progress_end(&progress);
	if (!e)
		e = take(&v);
	if (!e && o->json)
		print_json(&v);
	else if (!e)
		print_text(&v);
	if (!e && o->verbose)
		print_verbose(&v);
	links_close(v.links);
	symbolizer_close(v.symbolizer);
	stacks_free(&v.stacks);
	space_close(&v.space);
	return e ? cmd_fail("stack", e) : cmd_finish("stack", CMD_OK);
}

/* A process or thread number; 0 where it is none. */
static pid_t read_pid(const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);
	return *text && !*end && value > 0 && value <= INT_MAX ? (pid_t)value : 0;
}

int cmd_stack(int argc, char **argv)
{
	struct options o = {.max = 4096};
	const struct arg options[] = {
		{'t', "thread", "TID", "this thread alone", ARG_U64, &o.thread},
		{0, "unwind", "auto|cfi|analysis", "where the recipes for walking come from",
		 ARG_CHOICE, &o.unwind},
		{'n', "max", "FRAMES", "at most this many frames of each thread (4096)", ARG_U64,
		 &o.max},
		{0, "raw", NULL, "addresses only, no names", ARG_FLAG, &o.raw},
		{0, "no-inline", NULL, "leave out inlined functions", ARG_FLAG, &o.no_inline},
		{0, "links", NULL, "say how well the code confirms each step", ARG_FLAG, &o.links},
		{0, "debuginfod", NULL, "download missing debug information ($DEBUGINFOD_URLS)",
		 ARG_FLAG, &o.debuginfod},
		{0, "json", NULL, "print JSON", ARG_FLAG, &o.json},
		{'v', "verbose", NULL,
		 "how each step was made, and how long the process was stopped", ARG_FLAG,
		 &o.verbose},
		{0},
	};
	struct args args = {
		.command = "stack",
		.usage = "[options] PID",
		.summary = "Shows the call stacks of a running process, innermost frame first.",
		.options = options,
		.examples = "  culprit stack 4242\n  culprit stack 4242 -t 4250 --json\n",
	};
	int status = cmd_parse(&args, argc, argv);
	if (status >= 0)
		return status;
	if (args.count != 1)
		return cmd_misused("stack",
				   args.count ? "one process at a time" : "which process?");
	o.pid = read_pid(args.operands[0]);
	if (!o.pid)
		return cmd_misused("stack", "'%s' is no process number", args.operands[0]);
	if (o.thread > INT_MAX)
		return cmd_misused("stack", "'%" PRIu64 "' is no thread number", o.thread);
	if (!o.max || o.max > FRAMES_MAX)
		return cmd_misused("stack", "--max must be 1 to %u", FRAMES_MAX);
	return show(&o);
}
