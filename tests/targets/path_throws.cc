// SPDX-License-Identifier: Apache-2.0
// Functions that throw, catch and clean up in many ways, to be run as they are and as copies from an object. Each notes
// what it does, and each throw notes the whole stack: copies must leave the same notes. It says how far it is from the
// addresses in its file, and where an object can be, and loads that whose path it is told then, unless it has one as
// its argument.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <exception>
#include <link.h>
#include <stdexcept>
#include <sys/mman.h>
#include <unwind.h>

#define APART __attribute__((noipa, visibility("hidden")))

struct own {
	int value;
};

static uint64_t notes;
static unsigned note_count, copied_frames;
static uintptr_t base; // of the stack, where a run begins
static void *object;   // NULL: functions run as they are

static void note(uint64_t value)
{
	notes = (notes ^ value) * 0x100000001b3;
	note_count++;
}

extern "C" APART void path_stop()
{
	asm volatile("");
}

static _Unwind_Reason_Code each_frame(_Unwind_Context *context, void *)
{
	uintptr_t frame = _Unwind_GetCFA(context);
	Dl_info info;
	if (frame >= base)
		return _URC_END_OF_STACK;
	note(base - frame);
	if (object && dladdr((void *)(_Unwind_GetIP(context) - 1), &info) && info.dli_sname &&
	    std::strstr(info.dli_sname, ".paths"))
		copied_frames++;
	return _URC_NO_REASON;
}

extern "C" APART void path_walk()
{
	path_stop();
	_Unwind_Backtrace(each_frame, nullptr);
}

struct guard {
	int n;
	explicit guard(int n_) : n(n_)
	{
	}
	~guard()
	{
		note((uint64_t)n + 1000);
		path_walk();
	}
};

extern "C" {
int path_pass(int n); // path_cleans.c

APART void path_cleaned(const int *n)
{
	note((uint64_t)*n + 500);
	path_walk();
}

APART int path_throw(int n)
{
	path_walk();
	switch (n % 7) {
	case 0:
		return n + 1;
	case 1:
		throw n;
	case 2:
		throw std::runtime_error("two");
	case 3:
		throw own{n};
	case 4:
		throw std::logic_error("four");
	case 5:
		throw "five";
	default:
		return n * 2;
	}
}

APART int path_clean(int n)
{
	guard first(n);
	int sum = 0;
	for (int i = 0; i < n % 5; i++) {
		guard second(i);
		sum += path_throw(n + i);
	}
	return sum;
}

APART int path_catch(int n)
{
	try {
		return path_clean(n) + 1;
	} catch (int value) {
		note((uint64_t)value);
		path_walk();
		return -value;
	} catch (const std::runtime_error &e) {
		note(std::strlen(e.what()));
		return -2;
	} catch (const own &o) {
		note((uint64_t)o.value + 7);
		return -3;
	} catch (...) {
		path_walk();
		return -4;
	}
}

APART int path_rethrow(int n)
{
	guard here(n);
	try {
		return path_clean(n + 1);
	} catch (const std::exception &) {
		note(50);
		throw;
	} catch (const char *) {
		guard inner(3);
		throw n;
	}
}

APART int path_nested(int n)
{
	int result = 0;
	try {
		try {
			result = path_rethrow(n);
		} catch (int value) {
			path_walk();
			result = path_throw(value + 1);
		}
	} catch (const std::exception &e) {
		note(std::strlen(e.what()));
		try {
			result += path_rethrow(n + 3);
		} catch (...) {
			result += 5;
		}
	} catch (...) {
		result -= 9;
	}
	return result;
}

// A frame of no fixed size, and one on another alignment: its CFA is an expression.
APART int path_room(int n)
{
	volatile char *room = (volatile char *)__builtin_alloca((size_t)n * 24 + 16);
	alignas(64) volatile int wide[32];
	guard here(n);
	room[n] = (char)n;
	wide[n % 32] = n;
	return path_rethrow(n) + room[n] + wide[n % 32];
}

// Many registers are saved, and the frame has several ways out.
APART int path_many(int n, int a, int b, int c, int d, int e, int f, int g)
{
	if (n % 11 == 3)
		return a;
	int x = path_room(n) + a, y = b * n, z = c + x;
	if (x == 77)
		return y;
	for (int i = 0; i < n % 3; i++) {
		try {
			z += path_throw(i + n) * d;
		} catch (const own &) {
			y += e;
			continue;
		}
		x += f ^ z;
	}
	return x + y + z + g;
}

#if __cplusplus < 201703L
APART int path_specified(int n) throw(int, std::bad_exception)
{
	guard here(n);
	return path_throw(n) + 2;
}
#else
APART int path_specified(int n)
{
	return path_throw(n) + 2;
}
#endif

__attribute__((cold, noipa, visibility("hidden"))) int path_cold(int n)
{
	guard here(n + 1);
	return path_throw(n) * 3;
}

APART int path_parted(int n)
{
	guard here(n);
	if (__builtin_expect(n % 4 == 1, 0)) {
		guard there(n + 2);
		return path_cold(n) + path_cold(n + 1);
	}
	try {
		return path_specified(n);
	} catch (const own &) {
		return path_cold(n + 2);
	}
}

APART int path_top(int n)
{
	int result = 0;
	try {
		result = path_many(n, 1, 2, 3, 4, 5, 6, 7);
	} catch (const std::logic_error &) {
		result = 4;
	} catch (...) {
		note(17);
	}
	try {
		result += path_parted(n);
	} catch (...) {
		result++;
	}
	try {
		result += path_pass(n);
	} catch (...) {
		result += 2;
	}
	return result + path_nested(n) + path_catch(n);
}
}

static void unexpected()
{
	note(99);
	throw;
}

static int (*function_named(const char *name, int (*function)(int)))(int)
{
	char copied[64];
	if (!object)
		return function;
	std::snprintf(copied, sizeof copied, "%s.paths", name);
	return (int (*)(int))dlsym(object, copied);
}

__attribute__((noipa)) static uint64_t run_all(int (*top)(int))
{
	base = (uintptr_t)__builtin_frame_address(0);
	notes = note_count = copied_frames = 0;
	for (int n = 0; n < 60; n++)
		note((uint64_t)top(n));
	return notes;
}

// What is wrong with the copies in an object; NULL: nothing.
static const char *run_copies(void *copies)
{
#if __cplusplus < 201703L
	std::set_unexpected(unexpected);
#else
	(void)unexpected;
#endif
	object = nullptr;
	uint64_t wanted = run_all(path_top);
	unsigned wanted_count = note_count;
	object = copies;
	int (*top)(int) = function_named("path_top", path_top);
	if (!top)
		return "no copy of path_top";
	uint64_t got = run_all(top);
	if (note_count != wanted_count || got != wanted)
		return "copies do not do the same";
	return copied_frames < note_count / 4 ? "copies were not seen on the stack" : nullptr;
}

static int each_object(struct dl_phdr_info *info, size_t, void *bias)
{
	*(uintptr_t *)bias = info->dlpi_addr;
	return 1; // the first is the program
}

// Tells where there is room behind the program.
static void tell_places()
{
	const uintptr_t room = 1 << 20;
	uintptr_t bias = 0, at = ((uintptr_t)&base | (room - 1)) + 1;
	dl_iterate_phdr(each_object, &bias);
	for (;; at += room) {
		void *got = mmap((void *)at, room, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (got == MAP_FAILED)
			continue;
		munmap(got, room);
		break;
	}
	std::printf("%lx %lx\n", (unsigned long)bias, (unsigned long)at);
	std::fflush(stdout);
}

int main(int argc, char **argv)
{
	char told[4096] = "";
	struct link_map *map;
	if (argc < 2) {
		tell_places();
		if (std::scanf("%4095s", told) != 1)
			return 2;
	}
	void *copies = dlopen(argc > 1 ? argv[1] : told, RTLD_NOW | RTLD_LOCAL);
	if (!copies) {
		std::puts(dlerror());
		return 2;
	}
	dlinfo(copies, RTLD_DI_LINKMAP, &map);
	const char *problem = map->l_addr ? "the object was moved" : run_copies(copies);
	std::puts(problem ? problem : "good");
	return problem != nullptr;
}
