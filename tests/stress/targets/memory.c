/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that others free: other threads, children, handlers, destructors, and a library that is gone by then. Blocks
   grow, shrink and are aligned; maps are cut into pieces by many threads at once. Every byte must be as it was left. */
#include "stress.h"
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, BOXES = 256, PAGES = 16 };

struct block {
	size_t size;
	unsigned char bytes[];
};
static struct block *_Atomic boxes[BOXES];
static unsigned rounds;

static struct block *make(size_t size, unsigned how)
{
	struct block *b = NULL;
	if (how % 4 == 0)
		b = malloc(sizeof *b + size);
	else if (how % 4 == 1)
		b = calloc(1, sizeof *b + size);
	else if (how % 4 == 2)
		must(!posix_memalign((void **)&b, 64u << how % 5, sizeof *b + size),
		     "posix_memalign");
	else
		b = realloc(malloc(size / 2 + 1), sizeof *b + size);
	must(b && malloc_usable_size(b) >= sizeof *b + size, "memory");
	b->size = size;
	memset(b->bytes, (int)(size & 0xff), size);
	return b;
}

static void drop(struct block *b)
{
	for (size_t i = 0; b && i < b->size; i++)
		if (b->bytes[i] != (b->size & 0xff)) {
			puts("a byte has changed");
			exit(1);
		}
	free(b);
}

/* ---- threads ---- */

/* Nothing is unmapped twice: another thread may have it by then. */
static void cut_map(unsigned seed)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), cut = seed % 6 + 1, grown = 8 + seed % 9;
	char *at = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);
	must(at != MAP_FAILED, "mmap");
	memset(at, 1, PAGES * page);
	must(!munmap(at + cut * page, page), "munmap");
	char *end = mremap(at + 8 * page, 8 * page, grown * page, MREMAP_MAYMOVE);
	must(end != MAP_FAILED && end[8 * page - 1] == 1, "mremap");
	must(at[0] == 1 && at[7 * page] == 1, "memory");
	must(!munmap(at, cut * page) && !munmap(at + (cut + 1) * page, (7 - cut) * page) &&
		     !munmap(end, grown * page),
	     "munmap");
}

static void *exchange(void *number)
{
	unsigned seed = (unsigned)(uintptr_t)number;
	for (unsigned i = 0; i < rounds * 100; i++) {
		struct block *mine = make((size_t)rand_r(&seed) % 600, i);
		if (i % 8 == 0) {
			mine = realloc(mine, sizeof *mine + mine->size * 3);
			must(mine != NULL, "realloc");
			memset(mine->bytes + mine->size, (int)(mine->size * 3 & 0xff),
			       mine->size * 2);
			memset(mine->bytes, (int)(mine->size * 3 & 0xff), mine->size);
			mine->size *= 3;
		}
		drop(atomic_exchange(&boxes[(unsigned)rand_r(&seed) % BOXES], mine));
		if (i % 64 == 0)
			cut_map(i / 64);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t all[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		must(!pthread_create(&all[i], NULL, exchange, (void *)(i + 1)), "thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(all[i], NULL);
}

/* ---- children, handlers, a library, destructors ---- */

static void children(void)
{
	for (unsigned i = 0; i < rounds; i++) {
		pid_t pid = fork();
		if (!pid) {
			for (int k = 0; k < BOXES; k++)
				drop(atomic_exchange(&boxes[k], make((size_t)k, i)));
			_exit(7);
		}
		int status = 0;
		must(waitpid(pid, &status, 0) == pid, "waitpid");
		must(WIFEXITED(status) && WEXITSTATUS(status) == 7, "child");
	}
}

static void on_signal(int signal)
{
	drop(atomic_exchange(&boxes[signal], make(100, 0)));
}

static void library(void)
{
	void *handle = dlopen("libm.so.6", RTLD_NOW);
	for (int i = 0; handle && i < 3; i++) {
		dlclose(handle);
		handle = dlopen("libresolv.so.2", RTLD_NOW);
	}
}

static __attribute__((destructor)) void last(void)
{
	for (int i = 0; i < BOXES; i++)
		drop(boxes[i]);
	drop(make(10, 1));
	if (write(1, "all freed\n", 10) < 0)
		abort();
}

int main(int argc, char **argv)
{
	rounds = (unsigned)scaled(argc, argv, 60);
	signal(SIGUSR1, on_signal);
	for (unsigned i = 0; i < rounds; i++) {
		raise(SIGUSR1);
		library();
	}
	threads();
	children();
	printf("%u rounds\n", rounds);
	return 0;
}
