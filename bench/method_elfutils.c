/* SPDX-License-Identifier: Apache-2.0 */
/* elfutils, as eu-stack uses it, but reading its own memory: no system calls are in the time. */
#include "methods.h"

#include <elfutils/libdwfl.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "local.h"

static Dwfl *dwfl;
static uint64_t registers[32], start_pc;

static pid_t next_thread(Dwfl *d, void *arg, void **thread)
{
	(void)d;
	(void)arg;
	if (*thread)
		return 0;
	*thread = &registers;
	return getpid();
}

static bool get_thread(Dwfl *d, pid_t tid, void *arg, void **thread)
{
	(void)d;
	(void)tid;
	(void)arg;
	*thread = &registers;
	return true;
}

static bool read_memory(Dwfl *d, Dwarf_Addr address, Dwarf_Word *out, void *arg)
{
	(void)d;
	(void)arg;
	if (address < registers[7] && address < registers[31])
		return false;
	if (address >= stack_top)
		return false;
	memcpy(out, (const void *)(uintptr_t)address, sizeof *out);
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	(void)arg;
#if defined(__aarch64__)
	dwfl_thread_state_register_pc(thread, start_pc);
	return dwfl_thread_state_registers(thread, 0, 32, registers);
#else
	registers[16] = start_pc;
	return dwfl_thread_state_registers(thread, 0, 17, registers);
#endif
}

static bool prepare(void)
{
	static char *no_path;
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.debuginfo_path = &no_path,
	};
	static const Dwfl_Thread_Callbacks threads = {
		.next_thread = next_thread,
		.get_thread = get_thread,
		.memory_read = read_memory,
		.set_initial_registers = set_registers,
	};
	dwfl = dwfl_begin(&callbacks);
	return dwfl && dwfl_linux_proc_report(dwfl, getpid()) == 0 &&
	       dwfl_report_end(dwfl, NULL, NULL) == 0 &&
	       dwfl_attach_state(dwfl, NULL, getpid(), &threads, NULL);
}

struct found {
	uintptr_t *frames;
	size_t count;
};

static int take_frame(Dwfl_Frame *frame, void *arg)
{
	struct found *f = arg;
	Dwarf_Addr pc;
	if (!dwfl_frame_pc(frame, &pc, NULL) || f->count == FRAMES_MAX)
		return DWARF_CB_ABORT;
	f->frames[f->count++] = pc;
	return DWARF_CB_OK;
}

static __attribute__((noinline)) size_t walk(uintptr_t *frames)
{
	struct found f = {frames, 0};
	start_pc = local_registers(registers);
	dwfl_getthread_frames(dwfl, getpid(), take_frame, &f);
	return f.count;
}

const struct method method_elfutils = {"elfutils", "libdwfl, modules opened before", prepare, walk};
