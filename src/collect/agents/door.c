/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of our own with a socket in it, whose name is secret; a path for LD_PRELOAD; and the
   environment that tells a command both. */
#include "collect/agents/door.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "safe/wire.h"

/* Six letters: mkdtemp chooses them. */
#define LETTERS "XXXXXX"
/* Directory entries that are looked at to find directories of dead collectors. */
#define DEAD_MAX 10000
#define SOCKET_NAME "agent"
#define SECRET_BYTES 16
#define PRELOAD_NAME "libculprit-agent.so"
#define BACKLOG 4096

/* Everybody can enter the directory, but only its owner can list it. So only those who know the secret name of the socket
   can connect. The sticky bit marks directories whose owner holds a lock on them while it lives. */
const struct door_kind door_for_agents = {"culprit-", 01711, 0666, WIRE_SOCKET, NULL};

/* ---- the directory ---- */

static bool is_socket_name(const char *name)
{
	return !strncmp(name, SOCKET_NAME, strlen(SOCKET_NAME));
}

static bool is_ours(const struct door_kind *kind, const char *name)
{
	return is_socket_name(name) || !strcmp(name, PRELOAD_NAME) ||
	       (kind->is_ours && kind->is_ours(name));
}

static void empty_directory(const struct door_kind *kind, int directory)
{
	struct dirent *entry;
	int again = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *there = again < 0 ? NULL : fdopendir(again);
	while (there && (entry = readdir(there)))
		if (is_ours(kind, entry->d_name))
			unlinkat(directory, entry->d_name, 0);
	if (there)
		closedir(there);
	else if (again >= 0)
		close(again);
}

/* Removes the directory of a collector that was killed. A living one has a lock on its directory, from
   before it is open to others. */
static void remove_dead(const struct door_kind *kind, int place, const char *name)
{
	struct stat st;
	int directory = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (directory < 0)
		return;
	if (!fstat(directory, &st) && st.st_uid == geteuid() &&
	    (st.st_mode & 07777) == kind->directory && !flock(directory, LOCK_EX | LOCK_NB)) {
		empty_directory(kind, directory);
		unlinkat(place, name, AT_REMOVEDIR);
	}
	close(directory);
}

static void remove_dead_ones(const struct door_kind *kind, const char *place)
{
	struct dirent *entry;
	size_t length = strlen(kind->prefix);
	DIR *there = opendir(place);
	for (int left = DEAD_MAX; there && left && (entry = readdir(there)); left--)
		if (!strncmp(entry->d_name, kind->prefix, length) &&
		    strlen(entry->d_name) == length + strlen(LETTERS))
			remove_dead(kind, dirfd(there), entry->d_name);
	if (there)
		closedir(there);
}

static bool lock_directory(struct door *door)
{
	door->lock = open(door->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return door->lock >= 0 && !flock(door->lock, LOCK_EX | LOCK_NB) &&
	       !fchmod(door->lock, door->kind->directory);
}

static struct err *name_socket(struct door *door)
{
	uint8_t secret[SECRET_BYTES];
	struct buf path = {0};
	if (getrandom(secret, sizeof secret, 0) != sizeof secret)
		return err_errno("no random numbers");
	buf_printf(&path, "%s/" SOCKET_NAME "-", door->directory);
	for (size_t i = 0; i < sizeof secret; i++)
		buf_printf(&path, "%02x", secret[i]);
	door->socket = buf_take(&path);
	return door->socket ? NULL : err_new("out of memory");
}

static struct err *make_directory(struct door *door)
{
	struct sockaddr_un address;
	const char *place = getenv("TMPDIR");
	size_t rest = strlen(door->kind->prefix) + strlen("/" LETTERS "/" SOCKET_NAME "-") +
		      2 * SECRET_BYTES + 1;
	struct buf path = {0};
	if (!place || place[0] != '/' || strlen(place) + rest > sizeof address.sun_path)
		place = "/tmp";
	remove_dead_ones(door->kind, place);
	buf_printf(&path, "%s/%s" LETTERS, place, door->kind->prefix);
	char *made = buf_take(&path);
	if (!made)
		return err_new("out of memory");
	if (!mkdtemp(made)) {
		struct err *e = err_errno("%s: cannot make a directory there", place);
		free(made);
		return e;
	}
	door->directory = made;
	if (!lock_directory(door))
		return err_errno("%s: cannot set its permissions", made);
	return name_socket(door);
}

/* Everybody can read in /proc/net/unix with which names sockets were made. So ours is made with another
   name, and renamed. */
static struct err *listen_there(struct door *door)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	door->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (door->listener < 0)
		return err_errno("%s: cannot make a socket", door->directory);
	snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/" SOCKET_NAME,
		 door->lock);
	bool good = !bind(door->listener, (struct sockaddr *)&address, sizeof address) &&
		    !fchmodat(door->lock, SOCKET_NAME, door->kind->socket, 0) &&
		    !listen(door->listener, BACKLOG) &&
		    !renameat(door->lock, SOCKET_NAME, door->lock, strrchr(door->socket, '/') + 1);
	return good ? NULL : err_errno("%s: cannot listen", door->socket);
}

/* LD_PRELOAD has no quoting. So a path with a blank or colon gets a symbolic link without one. */
static struct err *make_preload(struct door *door, const char *library)
{
	struct buf path = {0};
	if (!strpbrk(library, " :")) {
		door->preload = strdup(library);
		return door->preload ? NULL : err_new("out of memory");
	}
	buf_printf(&path, "%s/" PRELOAD_NAME, door->directory);
	door->preload = buf_take(&path);
	if (!door->preload)
		return err_new("out of memory");
	return symlink(library, door->preload) ? err_errno("%s: cannot make a link", door->preload)
					       : NULL;
}

struct err *door_open(struct door *door, const struct door_kind *kind, const char *library)
{
	*door = (struct door){.kind = kind, .lock = -1, .listener = -1};
	struct err *e = make_directory(door);
	if (!e)
		e = listen_there(door);
	return e ? e : make_preload(door, library);
}

static void remove_directory(struct door *door)
{
	if (door->lock >= 0)
		empty_directory(door->kind, door->lock);
	if (door->directory)
		rmdir(door->directory);
	if (door->lock >= 0)
		close(door->lock);
	door->lock = -1;
	free(door->socket);
	free(door->directory);
	door->socket = door->directory = NULL;
}

void door_close(struct door *door)
{
	if (door->listener >= 0)
		close(door->listener);
	door->listener = -1;
	remove_directory(door);
	free(door->preload);
	door->preload = NULL;
}

/* ---- the environment ---- */

static bool is_variable(const char *text, const char *name)
{
	size_t length = strlen(name);
	return !strncmp(text, name, length) && text[length] == '=';
}

/* One block of memory: first the pointers, then the two new strings. */
char **door_environment(const struct door *door, char **environment)
{
	const char *preload = NULL;
	size_t count = 0, used = 0;
	struct buf texts = {0};
	for (; environment[count]; count++)
		if (is_variable(environment[count], "LD_PRELOAD"))
			preload = environment[count] + strlen("LD_PRELOAD=");
	buf_printf(&texts, "LD_PRELOAD=%s%s%s", door->preload, preload && *preload ? ":" : "",
		   preload ? preload : "");
	size_t second = texts.size + 1;
	buf_append(&texts, "", 1);
	buf_printf(&texts, "%s=%s", door->kind->variable, door->socket);
	char **out = texts.failed ? NULL : malloc((count + 3) * sizeof *out + texts.size + 1);
	if (out) {
		char *text = (char *)(out + count + 3);
		memcpy(text, texts.data, texts.size + 1);
		for (size_t i = 0; i < count; i++)
			if (!is_variable(environment[i], "LD_PRELOAD") &&
			    !is_variable(environment[i], door->kind->variable))
				out[used++] = environment[i];
		out[used++] = text;
		out[used++] = text + second;
		out[used] = NULL;
	}
	buf_free(&texts);
	return out;
}
