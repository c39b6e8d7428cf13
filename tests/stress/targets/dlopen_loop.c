/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries that come and go while threads run in them; namespaces of their own. */
#include "stress.h"
#include <dlfcn.h>
#include <libgen.h>
#include <pthread.h>
#include <unistd.h>

static char folder[4096];
static int rounds;

static unsigned long use(int which, bool apart)
{
	char path[4200];
	unsigned long result;
	snprintf(path, sizeof path, "%s/stress_library%d.so", folder, which);
	void *library = apart ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW) : dlopen(path, RTLD_NOW);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(99);
	}
	unsigned long (*work)(unsigned) = (unsigned long (*)(unsigned))dlsym(library,
									     "library_work");

	result = work(3);
	must(!dlclose(library), "dlclose");
	return result;
}

static void *loop(void *which)
{
	uintptr_t sum = 0;
	for (int i = 0; i < rounds; i++)
		sum += use(1 + (int)((uintptr_t)which + (unsigned)i) % 3, false);
	return (void *)sum;
}

int main(int argc, char **argv)
{
	pthread_t threads[4];
	unsigned long sum = 0;
	folder[readlink("/proc/self/exe", folder, sizeof folder - 1)] = '\0';
	dirname(folder);
	rounds = scaled(argc, argv, 300);
	for (uintptr_t i = 0; i < 4; i++)
		must(!pthread_create(&threads[i], NULL, loop, (void *)i), "pthread_create");
	for (int i = 0; i < rounds / 10 + 1; i++)
		sum += use(1 + i % 3, true);
	for (int i = 0; i < 4; i++) {
		void *result;
		pthread_join(threads[i], &result);
		sum += (uintptr_t)result;
	}
	printf("sum %lu\n", sum);
	return 0;
}
