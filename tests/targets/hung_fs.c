/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of user 65534 whose code lies in a file system of its own (FUSE) that stops answering. Whoever looks at what
 * it must not look at by itself waits for as long as this program lives.
 *
 * Usage: hung_fs DIRECTORY memory|files|arguments   (as root, who mounts it in a namespace of this program)
 *	memory		the file's first page does not come, which is read by who wants to know what the file is;
 *			others may not open it, as with file systems that users mount
 *	files		others may open it, and get no answer
 *	arguments	as memory, and the page is where the program's arguments are
 *
 * Says "ready", and computes until it is killed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define USER 65534
#define PAGE ((uint64_t)4096)
#define PAGES 3 /* the first does not come, the second is code */
#define CODE_BYTES 256
#define FILE_ID 2
#define NAME "code"

static int device;
static atomic_bool silent;
static char page[PAGE];

/* Copied to the file: it needs nothing but what it is given. */
__attribute__((noinline, noclone, aligned(64))) static void turn(volatile unsigned long *sink)
{
	for (unsigned long i = 0; i < 100000000; i++)
		*sink += i;
}

static void reply(const struct fuse_in_header *in, int error, const void *bytes, size_t size)
{
	char out[sizeof(struct fuse_out_header) + PAGES * PAGE];
	struct fuse_out_header head = {(uint32_t)(sizeof head + size), error, in->unique};
	memcpy(out, &head, sizeof head);
	if (size)
		memcpy(out + sizeof head, bytes, size);
	if (write(device, out, sizeof head + size) < 0)
		return; /* nobody waits for it any more */
}

static struct fuse_attr attributes(uint64_t id)
{
	bool file = id == FILE_ID;
	return (struct fuse_attr){.ino = id,
				  .size = file ? PAGES * PAGE : 0,
				  .mode = file ? S_IFREG | 0755 : S_IFDIR | 0755,
				  .nlink = 1,
				  .uid = USER,
				  .gid = USER,
				  .blksize = (uint32_t)PAGE};
}

static void answer(const struct fuse_in_header *in, const char *body)
{
	const struct fuse_read_in *read = (const void *)body;
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096};
	struct fuse_entry_out entry = {.nodeid = FILE_ID, .attr = attributes(FILE_ID)};
	struct fuse_attr_out attr = {.attr = attributes(in->nodeid)};
	struct fuse_open_out open = {.fh = 1};
	struct fuse_statfs_out statfs = {.st = {.bsize = 4096, .namelen = 255}};
	switch (in->opcode) {
	case FUSE_INIT:
		reply(in, 0, &init, sizeof init);
		break;
	case FUSE_LOOKUP:
		if (strcmp(body, NAME) != 0)
			reply(in, -2, NULL, 0);
		else
			reply(in, 0, &entry, sizeof entry);
		break;
	case FUSE_GETATTR:
		reply(in, 0, &attr, sizeof attr);
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		reply(in, 0, &open, sizeof open);
		break;
	case FUSE_STATFS:
		reply(in, 0, &statfs, sizeof statfs);
		break;
	case FUSE_READ:
		if (read->offset >= PAGE)
			reply(in, 0, page, sizeof page);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	case FUSE_RELEASE:
	case FUSE_FLUSH:
		reply(in, 0, NULL, 0);
		break;
	default:
		reply(in, -38, NULL, 0);
	}
}

static void *serve(void *context)
{
	static char request[1 << 17];
	(void)context;
	for (;;) {
		ssize_t got = read(device, request, sizeof request);
		if (got <= 0)
			return NULL;
		if (!atomic_load(&silent))
			answer((const void *)request, request + sizeof(struct fuse_in_header));
	}
}

static int problem(const char *what)
{
	perror(what);
	return 2;
}

static int mount_it(const char *directory, bool for_all)
{
	char options[128];
	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (device < 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return problem("a file system of its own");
	snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%d,group_id=%d%s", device,
		 USER, USER, for_all ? ",allow_other" : "");
	if (mount("hung", directory, "fuse", MS_NOSUID | MS_NODEV, options))
		return problem("mount");
	return setgid(USER) || setuid(USER) ? problem("setuid") : 0;
}

static volatile unsigned long sink;
static char *arguments;

/* On a stack of its own: what was the first one's last page is gone. */
static void *work(void *context)
{
	int file = *(int *)context;
	char *first = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	char *code = first + PAGE;
	if (first == MAP_FAILED)
		exit(problem("mmap"));
	madvise(first, PAGES * PAGE, MADV_RANDOM);
	void (*run)(volatile unsigned long *);
	memcpy(&run, &code, sizeof run);
	if (*(volatile char *)code == 1) /* it is there from now on */
		sink++;
	if (arguments && mmap(arguments, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
			      file, 0) == MAP_FAILED)
		exit(problem("arguments"));
	close(file); /* which waits for an answer, also at the end of a program */
	atomic_store(&silent, true);
	if (write(1, "ready\n", 6) != 6)
		exit(1);
	for (;;)
		run(&sink);
}

int main(int argc, char **argv)
{
	char path[4096];
	pthread_t server, worker;
	if (argc != 3)
		return 2;
	bool files = !strcmp(argv[2], "files");
	int failed = mount_it(argv[1], files);
	if (failed)
		return failed;
	memcpy(page, (const char *)(uintptr_t)turn, CODE_BYTES);
	if (!strcmp(argv[2], "arguments"))
		arguments = (char *)((uintptr_t)argv[0] / PAGE * PAGE);
	snprintf(path, sizeof path, "%s/" NAME, argv[1]);
	if (pthread_create(&server, NULL, serve, NULL))
		return problem("thread");
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return problem(path);
	posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
	if (pthread_create(&worker, NULL, work, &file))
		return problem("thread");
	pthread_join(worker, NULL);
	return 1;
}
