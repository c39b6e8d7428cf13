/* SPDX-License-Identifier: Apache-2.0 */
/* stack_jit: main -> outer -> code made at run time (with a frame pointer) -> callback, which sleeps.
   The code's name is in the file that such compilers write. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile int sink;

/* Saves the frame pointer, calls its argument, returns. */
#ifdef __x86_64__
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
#else
static const unsigned code[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0};
#endif

__attribute__((noinline)) static void callback(void)
{
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

__attribute__((noinline)) static void outer(void (*made)(void (*)(void)))
{
	made(callback);
	sink = 1;
}

int main(void)
{
	char path[64];
	char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return 1;
	memcpy(memory + 64, code, sizeof code);
	mprotect(memory, 4096, PROT_READ | PROT_EXEC);
	__builtin___clear_cache(memory, memory + 4096);
	snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
	FILE *names = fopen(path, "w");
	if (!names)
		return 1;
	fprintf(names, "%lx %zx made up\n", (unsigned long)memory + 64, sizeof code);
	fclose(names);
	alarm(300);
	outer((void (*)(void (*)(void)))(memory + 64));
	return 0;
}
