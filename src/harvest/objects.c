/* SPDX-License-Identifier: Apache-2.0 */
#include "harvest/objects.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "harvest/recording.h"
#include "profile/profile.h"

#define NAMED_MAX 20000u /* things that have a name of their own in the profile */

/* ---- names ---- */

static void print_inet(const struct object_facts *o, struct buf *out)
{
	static const uint8_t none[16], mapped[12] = {[10] = 0xff, [11] = 0xff};
	char address[INET6_ADDRSTRLEN] = "";
	bool ipv4 = o->family == AF_INET || !memcmp(o->address, mapped, sizeof mapped);
	const uint8_t *at = o->family == AF_INET6 && ipv4 ? o->address + sizeof mapped : o->address;
	inet_ntop(ipv4 ? AF_INET : AF_INET6, at, address, sizeof address);
	buf_puts(out, o->type == SOCK_STREAM ? "TCP " : o->type == SOCK_DGRAM ? "UDP " : "IP ");
	if (!memcmp(at, none, ipv4 ? 4 : 16))
		buf_printf(out, "port %u", o->port);
	else if (o->other_port)
		buf_printf(out, ipv4 ? "%s:%u" : "[%s]:%u", address, o->other_port);
	else
		buf_printf(out, "port %u, %s", o->port, address);
}

static void print_socket(const struct object_facts *o, struct buf *out)
{
	buf_puts(out, "socket ");
	if (o->family == AF_INET || o->family == AF_INET6)
		print_inet(o, out);
	else if (o->family == AF_UNIX)
		buf_printf(out, "unix%s%s", *o->name ? " " : "", o->name);
	else if (o->family == AF_NETLINK)
		buf_puts(out, "netlink");
	else
		buf_printf(out, "of family %u", o->family);
}

/* Anonymous inodes have names like "[eventfd]". */
static void print_anonymous(const char *name, struct buf *out)
{
	size_t length = strlen(name);
	bool bracketed = length > 2 && name[0] == '[';
	buf_printf(out, "event %.*s", (int)(bracketed ? length - 2 : length), name + bracketed);
}

static const char *kind_of(const struct object_facts *o)
{
	bool terminal = !strncmp(o->name, "/dev/pts/", 9) || !strncmp(o->name, "/dev/tty", 8);
	switch (o->mode & S_IFMT) {
	case S_IFCHR:
		return terminal ? "terminal" : "device";
	case S_IFBLK:
		return "device";
	case S_IFDIR:
		return "directory";
	case S_IFIFO:
		return "pipe";
	default:
		return "file";
	}
}

void object_print(const struct object_facts *o, struct buf *out)
{
	if (S_ISSOCK(o->mode))
		print_socket(o, out);
	else if (!(o->mode & S_IFMT))
		print_anonymous(o->name, out);
	else
		buf_printf(out, "%s%s%s", kind_of(o), *o->name ? " " : "", o->name);
}

/* ---- modules ---- */

/* The modules of a profile that are objects, by hash of their names. */
struct objects {
	uint32_t *modules; /* 0: free */
	size_t room, count;
};

static size_t hash_of(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return (size_t)(hash ^ hash >> 29);
}

/* The place of an object, or the free one that is for it. There is always a free one. */
static uint32_t *place_of(const struct objects *all, const struct profile *p, const char *name)
{
	size_t at = hash_of(name) % all->room;
	while (all->modules[at] && strcmp(p->modules[all->modules[at]].path, name))
		at = (at + 1) % all->room;
	return &all->modules[at];
}

static struct err *grow(struct objects *all, const struct profile *p)
{
	struct objects more = {.room = all->room ? all->room * 2 : 256, .count = all->count};
	more.modules = calloc(more.room, sizeof *more.modules);
	if (!more.modules)
		return err_new("out of memory");
	for (size_t i = 0; i < all->room; i++)
		if (all->modules[i])
			*place_of(&more, p, p->modules[all->modules[i]].path) = all->modules[i];
	free(all->modules);
	*all = more;
	return NULL;
}

static struct err *insert(struct objects *all, const struct profile *p, uint32_t module)
{
	struct err *e = (all->count + 1) * 2 > all->room ? grow(all, p) : NULL;
	if (e)
		return e;
	*place_of(all, p, p->modules[module].path) = module;
	all->count++;
	return NULL;
}

/* A copy of a profile has some already. */
static struct err *begin(struct harvest *h)
{
	struct err *e = NULL;
	h->objects = calloc(1, sizeof *h->objects);
	if (!h->objects)
		return err_new("out of memory");
	for (uint32_t i = 1; !e && i < h->profile->module_count; i++)
		if (h->profile->modules[i].kind == PROFILE_OBJECT)
			e = insert(h->objects, h->profile, i);
	return e;
}

static struct err *find_module(struct harvest *h, const char *object, uint32_t *module)
{
	struct err *e = h->objects ? NULL : begin(h);
	const struct objects *all = h->objects;
	if (e)
		return e;
	*module = all->room ? *place_of(all, h->profile, object) : 0;
	if (*module)
		return NULL;
	if (all->count > NAMED_MAX)
		object = "(others)";
	*module = all->room ? *place_of(all, h->profile, object) : 0;
	if (*module)
		return NULL;
	e = profile_add_module(
		h->profile,
		&(struct profile_module){
			.kind = PROFILE_OBJECT, .path = object, .build_id = "", .problem = ""},
		module);
	return e ? e : insert(h->objects, h->profile, *module);
}

struct err *objects_add_child(struct harvest *h, uint32_t parent, const char *object,
			      uint32_t number, const char *act, uint32_t *node)
{
	uint32_t module;
	struct err *e = find_module(h, object, &module);
	struct buf text = {0};
	if (e)
		return e;
	buf_printf(&text, "%s%s%s", act, *act ? " " : "", h->profile->modules[module].path);
	e = profile_name_function(h->profile, module, number, 1, buf_text(&text));
	buf_free(&text);
	return e ? e : profile_child(h->profile, parent, PROFILE_EXACT, module, number, node);
}

void objects_end(struct harvest *h)
{
	if (h->objects)
		free(h->objects->modules);
	free(h->objects);
	h->objects = NULL;
}
