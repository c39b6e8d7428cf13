/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ordinary user's program that would like who profiles the machine to do something for it.
 *
 * attacker fifo|link|folder|large|markup SECRET
 *	runs code that is made at run time, and names it in /tmp/perf-PID.map, which is a pipe, a link to
 *	the file SECRET, a folder, very large, or full of what steers terminals and pages
 * attacker swap SECRET DIRECTORY
 *	runs code of DIRECTORY/library.so, and has a link to SECRET, a pipe, and the library in its place, in turn, all the time;
 *	DIRECTORY, too, is a link now and then
 *
 * Says "ready", and computes until it is killed. Its threads and itself have such names as well.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096
#define CODE_BYTES 256
#define NAME "\x1b[31m\x9b<b>&\xe2\x80\xae"

static volatile unsigned long sink;

/* Copied to where it runs: it needs nothing but what it is given. */
__attribute__((noinline, noclone, aligned(64))) static void turn(volatile unsigned long *at)
{
	for (unsigned long i = 0; i < 100000000; i++)
		*at += i;
}

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

static void write_map(const char *path, const char *kind, const char *secret, uintptr_t code)
{
	if (!strcmp(kind, "fifo") && mkfifo(path, 0666))
		fail(path);
	if (!strcmp(kind, "link") && symlink(secret, path))
		fail(path);
	if (!strcmp(kind, "folder") && mkdir(path, 0777))
		fail(path);
	if (strcmp(kind, "large") != 0 && strcmp(kind, "markup") != 0)
		return;
	FILE *file = fopen(path, "w");
	if (!file)
		fail(path);
	fprintf(file, "%lx %x " NAME "<script>alert(1)</script>\n", (unsigned long)code, PAGE);
	if (!strcmp(kind, "large")) { /* a hole, and more behind it */
		fseek(file, 200 << 20, SEEK_SET);
		fprintf(file, "\n%lx %x far\n", (unsigned long)code, PAGE);
	}
	fclose(file);
}

static void run_made(const char *kind, const char *secret)
{
	char path[64];
	char *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		fail("mmap");
	memcpy(code, (const char *)(uintptr_t)turn, CODE_BYTES);
	__builtin___clear_cache(code, code + CODE_BYTES);
	if (mprotect(code, PAGE, PROT_READ | PROT_EXEC))
		fail("mprotect");
	snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
	write_map(path, kind, secret, (uintptr_t)code);
	puts("ready");
	fflush(stdout);
	void (*run)(volatile unsigned long *);
	memcpy(&run, &code, sizeof run);
	for (;;)
		run(&sink);
}

struct places {
	const char *secret;
	char directory[3000], library[3100], kept[3100], other[3100], fresh[3100];
};

__attribute__((noreturn)) static void *swap(void *context)
{
	struct places *p = context;
	prctl(PR_SET_NAME, NAME);
	for (unsigned i = 0;; i++) {
		unlink(p->fresh);
		if (i % 3 == 0 && symlink(p->secret, p->fresh))
			fail(p->fresh);
		if (i % 3 == 1 && mkfifo(p->fresh, 0666))
			fail(p->fresh);
		if (i % 3 == 2 && link(p->kept, p->fresh))
			fail(p->fresh);
		rename(p->fresh, p->library);
		if (i % 16)
			continue;
		rename(p->directory, p->other);
		if (symlink("/etc", p->directory))
			fail(p->directory);
		unlink(p->directory);
		rename(p->other, p->directory);
	}
}

static void run_library(const char *secret, const char *directory)
{
	static struct places p;
	pthread_t thread;
	p.secret = secret;
	snprintf(p.directory, sizeof p.directory, "%s", directory);
	snprintf(p.library, sizeof p.library, "%s/library.so", directory);
	snprintf(p.kept, sizeof p.kept, "%s-kept.so", directory);
	snprintf(p.other, sizeof p.other, "%s-other", directory);
	snprintf(p.fresh, sizeof p.fresh, "%s/fresh", directory);
	void *library = dlopen(p.library, RTLD_NOW);
	void (*run)(void) = NULL;
	if (library)
		*(void **)&run = dlsym(library, "work");
	if (!run || pthread_create(&thread, NULL, swap, &p))
		fail("library");
	puts("ready");
	fflush(stdout);
	for (;;)
		run();
}

int main(int argc, char **argv)
{
	prctl(PR_SET_NAME, NAME);
	if (argc == 4 && !strcmp(argv[1], "swap"))
		run_library(argv[2], argv[3]);
	if (argc == 3)
		run_made(argv[1], argv[2]);
	return 2;
}
