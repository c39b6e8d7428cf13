/* SPDX-License-Identifier: Apache-2.0 */
/* The process that opens files and reads memory of others (process/reach.h). It has only the capabilities
   for that. It does not look at the bytes that it hands over. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "apart/packet.h"
#include "base/foreign.h"
#include "process/reach_wire.h"

#define COPY_MAX (1ll << 30) /* bytes of a file that are copied at most */
#define PIECE (1u << 20)     /* bytes that are copied at once */

/* ---- whether a file system always answers ---- */

/* File systems on disks and in memory: they may take long, but they answer. To mount one takes root's
   rights, or it is in the memory of this machine. */
static bool is_local(uint32_t file_system)
{
	static const uint32_t local[] = {
		EXT4_SUPER_MAGIC,  XFS_SUPER_MAGIC,      BTRFS_SUPER_MAGIC,
		TMPFS_MAGIC,       RAMFS_MAGIC,          SQUASHFS_MAGIC,
		F2FS_SUPER_MAGIC,  EROFS_SUPER_MAGIC_V1, ISOFS_SUPER_MAGIC,
		MSDOS_SUPER_MAGIC, 0x2fc12fc1 /* ZFS */, 0xca451a4e /* bcachefs */};
	for (size_t i = 0; i < sizeof local / sizeof *local; i++)
		if (local[i] == file_system)
			return true;
	return false;
}

/* The id of the mount that an open file lies in; -1 if that is not known. */
static long mount_of(int fd)
{
	char path[64], line[128];
	long id = -1;
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file))
		if (!strncmp(line, "mnt_id:", 7))
			id = strtol(line + 7, NULL, 10);
	if (file)
		fclose(file);
	return id;
}

/* Whether only somebody with rights in our user namespace can have made the mounts that the process sees. */
static bool has_our_mounts(pid_t pid)
{
	char path[64];
	struct stat ours, owner;
	snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)pid);
	int space = open(path, O_RDONLY | O_CLOEXEC), user = -1;
	if (space >= 0)
		user = ioctl(space, NS_GET_USERNS);
	bool same = user >= 0 && !stat("/proc/self/ns/user", &ours) && !fstat(user, &owner) &&
		    ours.st_ino == owner.st_ino && ours.st_dev == owner.st_dev;
	if (user >= 0)
		close(user);
	if (space >= 0)
		close(space);
	return same;
}

/* Whether the mount is in the process's list of mounts, and that list is trusted (has_our_mounts). A
   process that has left our namespace cannot come back. So the list is opened first, and checked then. */
static bool is_our_mount(pid_t pid, long id)
{
	char path[64], *line = NULL;
	size_t room = 0;
	bool found = false;
	snprintf(path, sizeof path, "/proc/%d/mountinfo", (int)pid);
	FILE *file = fopen(path, "re");
	bool ours = file && has_our_mounts(pid);
	while (ours && !found && getline(&line, &room, file) > 0)
		found = strtol(line, NULL, 10) == id;
	free(line);
	if (file)
		fclose(file);
	return found;
}

/* Anybody may mount a file system made of layers, with layers of any kind. But those of containers are
   mounted by root. */
static bool answers(int fd, const char *path)
{
	struct statfs fs;
	if (fstatfs(fd, &fs))
		return false;
	if ((uint32_t)fs.f_type != OVERLAYFS_SUPER_MAGIC)
		return is_local((uint32_t)fs.f_type);
	long mount = mount_of(fd);
	pid_t whose = reach_whose(path);
	return mount >= 0 && is_our_mount(whose ? whose : getpid(), mount);
}

/* ---- what is asked for ---- */

/* Copies a file to memory; -1 with errno. The size of files in /proc is not known before they are
   read. The copy's mode says that anybody may write to it, so that it is not mistaken for a trusted
   file of ours. */
static int copy(int from)
{
	static char bytes[PIECE];
	int to = memfd_create("culprit-copy", MFD_CLOEXEC);
	int64_t size = 0;
	ssize_t got = to < 0 ? -1 : 1;
	while (got > 0 && size <= COPY_MAX) {
		got = read(from, bytes, sizeof bytes);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got > 0 && (size += got) && write(to, bytes, (size_t)got) != got)
			got = -1;
	}
	if (size > COPY_MAX)
		errno = EFBIG;
	if (to < 0 ||
	    (got == 0 && size <= COPY_MAX && !fchmod(to, 0777) && !lseek(to, 0, SEEK_SET)))
		return to;
	int error = errno;
	close(to);
	errno = error;
	return -1;
}

static int open_for(const struct reach_question *q, struct stat *st)
{
	int fd = foreign_open(q->path, q->flags);
	if (fd < 0 || fstat(fd, st) || !S_ISREG(st->st_mode) || answers(fd, q->path))
		return fd;
	int copied = copy(fd), error = errno;
	close(fd);
	errno = error;
	return copied;
}

static int64_t read_for(const struct reach_question *q, char *paper)
{
	struct iovec to[REACH_PIECES], from[REACH_PIECES];
	uint64_t room = REACH_MAX;
	if (q->count > REACH_PIECES)
		return 0;
	for (uint32_t i = 0; i < q->count; i++) {
		uint64_t size = q->pieces[i].size < room ? q->pieces[i].size : room;
		to[i] = (struct iovec){paper + (REACH_MAX - room), size};
		from[i] = (struct iovec){(void *)(uintptr_t)q->pieces[i].address, size};
		room -= size;
	}
	return process_vm_readv(q->pid, to, q->count, from, q->count, 0);
}

static bool answer(const struct reach_question *q, char *paper)
{
	struct reach_answer a = {0};
	int fd = -1;
	if (q->act == REACH_OPEN)
		a.size = fd = open_for(q, &a.st);
	else if (q->act == REACH_STAT)
		a.size = foreign_stat(q->path, &a.st);
	else
		a.size = read_for(q, paper);
	a.error = a.size < 0 ? errno : 0;
	bool sent = packet_send(REACH_SOCKET, &a, sizeof a, &fd, fd >= 0, 0) > 0;
	if (fd >= 0)
		close(fd);
	return sent;
}

/* The process ends with the one that started it. It ignores signals that a terminal sends to both. */
static bool begin(pid_t parent)
{
	const struct rlimit none = {0};
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	prctl(PR_SET_NAME, "culprit");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	apart_limit_rights(REACH_RIGHTS);
	setrlimit(RLIMIT_CORE, &none);
	syscall(SYS_close_range, APART_FIRST + REACH_HANDED, ~0u, 0);
	return getppid() == parent;
}

int reach_main(int argc, char **argv)
{
	static struct reach_question q;
	int file;
	if (argc != REACH_ARGUMENTS || !begin((pid_t)atoi(argv[1])))
		return EXIT_FAILURE;
	char *paper = mmap(NULL, REACH_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, REACH_SHARED, 0);
	if (paper == MAP_FAILED)
		return EXIT_FAILURE;
	while (packet_receive(REACH_SOCKET, &q, sizeof q, &file, 0) > 0)
		if (!answer(&q, paper))
			break;
	_exit(EXIT_SUCCESS); /* the kernel frees everything */
}
