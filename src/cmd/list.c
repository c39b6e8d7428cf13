/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `culprit list`: asks the machine for each thing that a command may want.
 * What is missing names what provides it.
 */
#include "cmd/cmd.h"

#include "base/args.h"
#include "base/buf.h"
#include "base/cachedir.h"
#include "base/err.h"
#include "base/json.h"
#include "base/term.h"
#include "collect/events.h"
#include "collect/kernel/kernel.h"
#include "explain/calibrate.h"

#include <glob.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/stat.h>
#include <unistd.h>

enum capability { SYS_PTRACE = 19, SYS_ADMIN = 21, PERFMON = 38, BPF = 39 };

struct ability {
	const char *name;
	bool available;
	char state[160];
	char fix[200]; /* "" where nothing is missing */
};

struct machine {
	struct utsname kernel;
	long cpus;
	uint64_t capabilities; /* effective */
	int paranoid; /* kernel.perf_event_paranoid; meaningless where the kernel has none */
	bool has_perf;
	struct ability events[12], abilities[9];
	size_t event_count, ability_count;
	struct calibration calibration;
};

static void set_text(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", text);
}

static void set(struct ability *a, bool available, const char *state, const char *fix)
{
	a->available = available;
	set_text(a->state, sizeof a->state, state);
	set_text(a->fix, sizeof a->fix, fix);
}

static bool read_number(const char *path, int *out)
{
	FILE *file = fopen(path, "re");
	bool read = file && fscanf(file, "%d", out) == 1;
	if (file)
		fclose(file);
	return read;
}

static uint64_t read_capabilities(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	uint64_t set_bits = 0;
	char line[256];
	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "CapEff: %" SCNx64, &set_bits) == 1)
			break;
	if (file)
		fclose(file);
	return set_bits;
}

static bool may(const struct machine *m, enum capability which)
{
	return m->capabilities >> which & 1;
}

/* ---- events ---- */

static void probe_blocked(struct machine *m)
{
	struct ability *a = &m->events[m->event_count++];
	char why[160];
	a->name = "blocked";
	if (kernel_can_see_waits(why, sizeof why))
		set(a, true, "time off the CPU, by the sampler in the kernel", "");
	else if (kernel_can_sample(why, sizeof why))
		set(a, true, "time off the CPU, by the agent",
		    "for the kernel's functions: Linux 6.16 or later, or one that lets root trace "
		    "functions");
	else
		set(a, true, "time off the CPU, by the agent",
		    "for all waits, and the kernel's functions: sudo culprit record -e blocked ...");
}

static void probe_io(struct machine *m)
{
	struct ability *a = &m->events[m->event_count++];
	char why[160];
	a->name = "io";
	if (kernel_can_sample(why, sizeof why))
		set(a, true, "reads and writes, by the sampler in the kernel", "");
	else
		set(a, true, "reads and writes, by the agent",
		    "for those inside of the C library: sudo culprit record -e io ...");
}

/* The agent sees these wherever it can be loaded. */
static void add_call_events(struct machine *m)
{
	static const char *const all[][2] = {{"alloc", "allocations, by the agent"},
					     {"lock", "waits for locks, by the agent"},
					     {"mpi", "calls of MPI, by the agent"}};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		m->events[m->event_count].name = all[i][0];
		set(&m->events[m->event_count++], true, all[i][1], "");
	}
}

static void probe_events(struct machine *m)
{
	static const char *const names[] = {"cycles",     "instructions", "cpu-clock",
					    "task-clock", "page-faults",  "context-switches"};
	struct event_answer said;
	struct recording_event event;
	size_t i;
	for (i = 0; i < sizeof names / sizeof names[0]; i++) {
		event_known(names[i], &event);
		event_ask(&event, &said);
		m->events[m->event_count].name = names[i];
		set(&m->events[m->event_count++], said.available, said.state, said.fix);
	}
	probe_blocked(m);
	probe_io(m);
	add_call_events(m);
	event_ask_tracepoints(&said);
	m->events[m->event_count].name = "tracepoints";
	set(&m->events[m->event_count++], said.available, said.state, said.fix);
}

/* ---- abilities ---- */

static struct ability *ability_new(struct machine *m, const char *name)
{
	struct ability *a = &m->abilities[m->ability_count++];
	a->name = name;
	return a;
}

static void probe_paranoid(struct machine *m)
{
	static const char *const meanings[] = {
		"-1: everything", "0: everything but raw tracepoints",
		"1: own processes, with the kernel", "2: own processes, user code only"};
	struct ability *a = ability_new(m, "perf events");
	char state[160];
	if (!m->has_perf) {
		set(a, false, "this kernel has no perf events",
		    "a kernel with CONFIG_PERF_EVENTS=y");
		return;
	}
	if (m->paranoid > 2)
		snprintf(state, sizeof state, "perf_event_paranoid %d: none", m->paranoid);
	else
		snprintf(state, sizeof state, "perf_event_paranoid %s",
			 meanings[m->paranoid < -1 ? 0 : m->paranoid + 1]);
	if (may(m, PERFMON) || may(m, SYS_ADMIN)) {
		snprintf(state + strlen(state), sizeof state - strlen(state),
			 " (this user: everything)");
		set(a, true, state, "");
	} else {
		set(a, m->paranoid <= 2, state,
		    m->paranoid > 2 ? "sudo sysctl kernel.perf_event_paranoid=2"
		    : m->paranoid > 0
			    ? "for all processes: sudo sysctl kernel.perf_event_paranoid=0"
			    : "");
	}
}

static void probe_ptrace(struct machine *m)
{
	struct ability *a = ability_new(m, "ptrace");
	int scope = 0;
	read_number("/proc/sys/kernel/yama/ptrace_scope", &scope);
	if (scope >= 3)
		set(a, false, "yama ptrace_scope 3: no process at all",
		    "boot without kernel.yama.ptrace_scope=3 (it cannot be lowered while running)");
	else if (may(m, SYS_PTRACE))
		set(a, true, "any process", "");
	else if (scope == 0)
		set(a, true, "own processes", "for those of other users: run culprit with sudo");
	else
		set(a, false,
		    scope == 1 ? "yama ptrace_scope 1: only processes started by culprit"
			       : "yama ptrace_scope 2: only with CAP_SYS_PTRACE",
		    "sudo sysctl kernel.yama.ptrace_scope=0, or run culprit with sudo");
}

static void probe_capability(struct machine *m, const char *name, enum capability which,
			     const char *gives)
{
	struct ability *a = ability_new(m, name);
	bool has = may(m, which) || (which != SYS_PTRACE && may(m, SYS_ADMIN));
	char fix[200];
	snprintf(fix, sizeof fix,
		 "sudo culprit ..., or sudo setcap %s+ep \"$(command -v culprit)\"", name);
	set(a, has, gives, has ? "" : fix);
}

static void probe_btf(struct machine *m)
{
	struct ability *a = ability_new(m, "BTF");
	if (!access("/sys/kernel/btf/vmlinux", R_OK))
		set(a, true, "the kernel describes its types", "");
	else
		set(a, false, "the kernel does not describe its types",
		    "a kernel with CONFIG_DEBUG_INFO_BTF=y");
}

/* Asks the kernel itself: capabilities and BTF are not all that it takes. */
static void probe_sampler(struct machine *m)
{
	struct ability *a = ability_new(m, "kernel sampling");
	char why[160];
	if (kernel_can_sample(why, sizeof why))
		set(a, true, "record needs no library in the program", "");
	else
		set(a, false, why, "sudo culprit record ..., outside of containers");
}

static void probe_debuginfod(struct machine *m)
{
	struct ability *a = ability_new(m, "debuginfod");
	const char *urls = getenv("DEBUGINFOD_URLS");
	glob_t found = {0};
	bool system_wide;
	if (urls && *urls) {
		set(a, true, urls, "");
		return;
	}
	system_wide = !glob("/etc/debuginfod/*.urls", 0, NULL, &found);
	globfree(&found);
	set(a, false, "DEBUGINFOD_URLS is not set",
	    system_wide ? "export DEBUGINFOD_URLS=\"$(cat /etc/debuginfod/*.urls)\""
			: "export DEBUGINFOD_URLS=https://debuginfod.elfutils.org");
}

static void probe_cache(struct machine *m)
{
	struct ability *a = ability_new(m, "cache");
	struct buf path = {0};
	struct err *e = cachedir_path(&path);
	struct stat st;
	int directory = -1;
	if (!e && !lstat(buf_text(&path), &st)) /* else it will be made */
		e = cachedir_open("tables", &directory);
	if (directory >= 0)
		close(directory);
	if (e)
		set(a, false, err_text(e), "export XDG_CACHE_HOME=DIRECTORY");
	else
		set(a, true, buf_text(&path), "");
	err_free(e);
	buf_free(&path);
}

static void probe_machine(struct machine *m)
{
	uname(&m->kernel);
	m->cpus = sysconf(_SC_NPROCESSORS_ONLN);
	m->capabilities = read_capabilities();
	m->has_perf = read_number("/proc/sys/kernel/perf_event_paranoid", &m->paranoid);
	probe_events(m);
	probe_paranoid(m);
	probe_ptrace(m);
	probe_capability(m, "cap_sys_ptrace", SYS_PTRACE, "stacks of other users' processes");
	probe_capability(m, "cap_perfmon", PERFMON, "events of all processes and of the kernel");
	probe_capability(m, "cap_bpf", BPF, "walking stacks in the kernel");
	probe_btf(m);
	probe_sampler(m);
	probe_debuginfod(m);
	probe_cache(m);
	calibrate(&m->calibration, true);
}

/* ---- printing ---- */

static void print_text(const char *title, const struct ability *a, size_t count)
{
	const char *plain = term_style(STDOUT_FILENO, TERM_PLAIN);
	printf("\n%s%s%s\n", term_style(STDOUT_FILENO, TERM_BOLD), title, plain);
	for (; count; count--, a++) {
		printf("  %s%-3s%s  %-17s %s\n",
		       term_style(STDOUT_FILENO, a->available ? TERM_GREEN : TERM_YELLOW),
		       a->available ? "yes" : "no", plain, a->name, a->state);
		if (*a->fix)
			printf("       %17s %s%s%s\n", a->available ? "more by:" : "get it by:",
			       term_style(STDOUT_FILENO, TERM_CYAN), a->fix, plain);
	}
}

/* What explain goes by. */
static void print_calibration(const struct calibration *c)
{
	struct buf out = {0};
	calibrate_show(c, &out);
	printf("\n%smeasured%s\n", term_style(STDOUT_FILENO, TERM_BOLD),
	       term_style(STDOUT_FILENO, TERM_PLAIN));
	for (const char *at = buf_text(&out); *at; at += strcspn(at, "\n"), at += *at == '\n')
		printf("  %.*s\n", (int)strcspn(at, "\n"), at);
	buf_free(&out);
}

static void print_json(struct json *j, const char *key, const struct ability *a, size_t count)
{
	json_key(j, key);
	json_begin_array(j);
	for (; count; count--, a++) {
		json_begin_object(j);
		json_key(j, "name");
		json_string(j, a->name);
		json_key(j, "available");
		json_bool(j, a->available);
		json_key(j, "state");
		json_string(j, a->state);
		json_key(j, "fix");
		json_string(j, *a->fix ? a->fix : NULL);
		json_end_object(j);
	}
	json_end_array(j);
}

static void print_machine_json(const struct machine *m)
{
	struct json j = json_to_file(stdout);
	json_begin_object(&j);
	json_put_u64(&j, "culprit", 1);
	json_key(&j, "machine");
	json_string(&j, m->kernel.machine);
	json_key(&j, "cpus");
	json_i64(&j, m->cpus);
	json_key(&j, "kernel");
	json_string(&j, m->kernel.release);
	print_json(&j, "events", m->events, m->event_count);
	print_json(&j, "abilities", m->abilities, m->ability_count);
	json_key(&j, "calibration");
	json_begin_object(&j);
	calibrate_json(&m->calibration, &j);
	json_end_object(&j);
	json_end_object(&j);
	json_newline(&j);
}

int cmd_list(int argc, char **argv)
{
	bool json = false;
	const struct arg options[] = {
		{0, "json", NULL, "print JSON", ARG_FLAG, &json},
		{0},
	};
	struct args args = {
		.command = "list",
		.usage = "[--json]",
		.summary =
			"Shows the events and abilities of this machine, and what would enable the "
			"rest.",
		.options = options,
		.examples = "  culprit list\n"
			    "  culprit list --json | jq '.events[] | select(.available) | .name'\n",
	};
	int status = cmd_parse(&args, argc, argv);
	struct machine m = {0};
	if (status >= 0)
		return status;
	if (args.count)
		return cmd_misused("list", "unexpected argument '%.64s'", args.operands[0]);
	probe_machine(&m);
	if (json) {
		print_machine_json(&m);
	} else {
		printf("%s, %ld CPUs, Linux %s\n", m.kernel.machine, m.cpus, m.kernel.release);
		print_text("events", m.events, m.event_count);
		print_text("abilities", m.abilities, m.ability_count);
		print_calibration(&m.calibration);
	}
	return cmd_finish("list", CMD_OK);
}
