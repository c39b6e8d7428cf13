/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "collect/agents/rooms.h"
#include "process/maps.h"

#include <string.h>

#define MB (1ull << 20)
#define REACH_X86_64 ((2048ull << 20) - 4096)
#define REACH_AARCH64 ((128ull << 20) - 4096)
#define MAPPED_LATER (400 * MB) /* by the agent, before the islands come */

#define PIE                                                        \
	"562fb0b78000-562fb0b79000 r--p 00000000 fe:00 7 /bin/a\n" \
	"562fb0b79000-562fb0b7a000 r-xp 00001000 fe:00 7 /bin/a\n" \
	"562fb0b7a000-562fb0b7d000 rw-p 00002000 fe:00 7 /bin/a\n" \
	"562fd3900000-562fd3921000 rw-p 00000000 00:00 0 [heap]\n"
/* Libraries with no room between them. */
#define LIBRARIES(at)                                                              \
	at "0000000-" at "0026000 r--p 00000000 fe:00 1 /lib/c\n" at "0026000-" at \
	   "017c000 r-xp 00026000 fe:00 1 /lib/c\n" at "017c000-" at               \
	   "0200000 rw-p 0017c000 fe:00 1 /lib/c\n" at "0200000-" at               \
	   "0210000 r-xp 00000000 fe:00 2 /lib/m\n" at "0210000-" at               \
	   "0220000 r-xp 00000000 fe:00 3 /lib/n\n" at "0230000-" at               \
	   "0260000 r-xp 00000000 fe:00 4 /lib/ld\n" at "0260000-" at              \
	   "0270000 rw-p 00030000 fe:00 4 /lib/ld\n"
#define VSYSCALL "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n"

struct memory {
	struct maps maps;
	struct rooms rooms;
};

static void begin(struct memory *m, const char *text, uint64_t reach)
{
	*m = (struct memory){0};
	assert_null(maps_parse(text, strlen(text), &m->maps));
	m->rooms = (struct rooms){.maps = &m->maps, .reach = reach};
}

static void end(struct memory *m)
{
	rooms_free(&m->rooms);
	maps_free(&m->maps);
}

static const struct map *code_of(const struct memory *m, const char *path)
{
	for (size_t i = 0; i < m->maps.count; i++)
		if (m->maps.items[i].executable && !strcmp(m->maps.items[i].path, path))
			return &m->maps.items[i];
	fail();
	return NULL;
}

static uint64_t lowest(const struct memory *m, const char *first)
{
	for (size_t i = 0; i < m->maps.count; i++)
		if (!strcmp(m->maps.items[i].path, first))
			return m->maps.items[i].start;
	return 0;
}

/* Takes room for the code. It must be within reach, and apart from all that is there. Returns where it is. */
static uint64_t take(struct memory *m, const char *path, uint64_t size)
{
	const struct map *code = code_of(m, path);
	size_t before = m->rooms.count;
	uint64_t at = rooms_take(&m->rooms, code, size);
	assert_true(at != 0);
	assert_int_equal(at % 4096, 0);
	assert_true(at < code->start ? code->end - at < m->rooms.reach
				     : at + size - code->start < m->rooms.reach);
	for (size_t i = 0; i < m->maps.count; i++)
		assert_true(at + size <= m->maps.items[i].start || at >= m->maps.items[i].end);
	for (size_t i = 0; i < before; i++)
		assert_true(at + size <= m->rooms.taken[i].start || at >= m->rooms.taken[i].end);
	return at;
}

/* Takes room for the program and all libraries. None is where the kernel puts what is mapped next: below the libraries. */
static void take_all(const char *text, uint64_t reach)
{
	static const char *const files[] = {"/bin/a", "/lib/c", "/lib/m", "/lib/n", "/lib/ld"};
	struct memory m;
	begin(&m, text, reach);
	uint64_t libraries = lowest(&m, "/lib/c");
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		uint64_t at = take(&m, files[i], i == 1 ? 4096 : 3 * 65536);
		assert_true(at < libraries - MAPPED_LATER || at > libraries);
	}
	end(&m);
}

static void test_x86_64(void **state)
{
	(void)state;
	take_all(PIE LIBRARIES("7f43e") "7ffdfacf2000-7ffdfad13000 rw-p 00000000 00:00 0 "
					"[stack]\n" VSYSCALL,
		 REACH_X86_64);
	/* Little below the stack: there is no random place. */
	take_all(PIE LIBRARIES("7ffff") "7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0 "
					"[stack]\n" VSYSCALL,
		 REACH_X86_64);
}

/* If the stack has no limit, libraries are below the program. */
static void test_no_limit(void **state)
{
	(void)state;
	take_all(LIBRARIES("15073") PIE
		 "7ffc9d002000-7ffc9d023000 rw-p 00000000 00:00 0 [stack]\n" VSYSCALL,
		 REACH_X86_64);
}

static void test_aarch64(void **state)
{
	(void)state;
	take_all(PIE LIBRARIES("7f43e") "7ffdfacf2000-7ffdfad13000 rw-p 00000000 00:00 0 [stack]\n",
		 REACH_AARCH64);
}

/* A program at a low address, with little room below it. */
static void test_fixed(void **state)
{
	(void)state;
	take_all("00400000-00401000 r-xp 00000000 fe:00 7 /bin/a\n"
		 "01c00000-01c21000 rw-p 00000000 00:00 0 [heap]\n" LIBRARIES("7f43e") VSYSCALL,
		 REACH_X86_64);
}

static void test_none(void **state)
{
	static const char *const text =
		"00010000-7f0000000000 r-xp 00000000 fe:00 1 /bin/a\n"
		"7f0000001000-7ffffffff000 rw-p 00000000 00:00 0\n" VSYSCALL;
	struct memory m;
	(void)state;
	begin(&m, text, REACH_X86_64);
	assert_int_equal(rooms_take(&m.rooms, &m.maps.items[0], 4096), 0);
	end(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86_64),  cmocka_unit_test(test_no_limit),
		cmocka_unit_test(test_aarch64), cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
