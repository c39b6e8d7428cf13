/* SPDX-License-Identifier: Apache-2.0 */
/* fake_python KIND SECONDS: a program that pretends to be Python 3.11, with lists of calls that make no sense. It works for so
   long, and says how it ended. Nothing of it may harm it, or hold it up.

      circle   frames in a circle
      threads  threads in a circle, none of them this one
      interpreters as threads, and interpreters in a circle, too
      wild     pointers to memory that is not there, may not be read, or ends within an object
      long     names and tables that are longer than memory
      changing another thread changes all of it meanwhile */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096, WORDS = PAGE / 8 };

uint64_t _PyRuntime[64], PyCode_Type[64];
const unsigned long Py_Version = 0x030b02f0;

static uint64_t interpreter[64], thread[64], frames[4][32], code[64];
static uint64_t *edge; /* the last words before memory that may not be read */
static volatile uint64_t work;

static uint64_t at(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static void make(const uint64_t *record)
{
	_PyRuntime[5] = at(interpreter);
	interpreter[2] = at(thread);
	thread[19] = (uint64_t)pthread_self();
	thread[7] = at(record);
	code[1] = at(PyCode_Type);
	for (int i = 0; i < 4; i++) {
		frames[i][4] = at(code);
		frames[i][6] = at(frames[(i + 1) % 4]);
		frames[i][7] = at(code) + 184;
	}
}

static void spoil(const char *kind)
{
	if (!strcmp(kind, "interpreters"))
		interpreter[0] = at(interpreter);
	if (!strcmp(kind, "threads") || !strcmp(kind, "interpreters")) {
		thread[19] = 1;
		thread[1] = at(thread);
	} else if (!strcmp(kind, "wild")) {
		frames[0][4] = at(edge);
		frames[1][4] = 8;
		frames[1][6] = at(edge);
		code[14] = 1ull << 63;
		code[16] = at(edge) - 8;
		code[17] = UINT64_MAX - 4;
	} else if (!strcmp(kind, "long")) {
		code[14] = code[16] = code[17] = at(interpreter) + 64;
		interpreter[10] = UINT64_MAX - 7; /* the length */
		frames[3][8] = 1ull << 32;        /* the frame ends the group */
	}
}

static void *change(void *seed)
{
	uint64_t *all[] = {interpreter, thread, frames[0],   frames[1],
			   frames[2],   code,   edge - WORDS};
	uint64_t x = at(seed) | 1;
	for (;;) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		uint64_t *some = all[(x >> 33) % 7];
		uint64_t values[] = {0, at(code), at(frames[x >> 60 & 3]), at(edge), x, 71, at(&x)};
		some[(x >> 40) % 32] = values[(x >> 50) % 7];
	}
	return NULL;
}

__attribute__((noinline)) static uint64_t run(double seconds, const char *kind)
{
	uint64_t record[4] = {0, at(frames[0]), 0, 0}; /* on the C stack */
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
	pthread_t other;
	make(record);
	spoil(kind);
	if (!strcmp(kind, "changing") && pthread_create(&other, NULL, change, &end))
		return 0;
	while (clock() < end)
		for (int i = 0; i < 100000; i++)
			work += (uint64_t)i;
	return record[1] == at(frames[0]);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	char *pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
	if (pages == MAP_FAILED || mprotect(pages + 2 * PAGE, PAGE, PROT_NONE))
		return 2;
	edge = (uint64_t *)(pages + 2 * PAGE) - 4;
	printf("%s %d\n", argv[1], (int)run(atof(argv[2]), argv[1]));
	return 0;
}
