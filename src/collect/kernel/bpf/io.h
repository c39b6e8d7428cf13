/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/*
 * Reads and writes: how many bytes system calls move, for which descriptors, and how long they take. sample.bpf.c uses
 * it.
 *
 * Every call is counted, and every call is walked, by the memo. Most calls come by a path that was walked before. So
 * they are added up here, in the map `transfers`, by thread, path and descriptor. A path is known by the hash of its
 * frames. Only the first call of a path sends it. The memo stays as it is for the others, because the collector has the
 * same one (shared.h). `hashes` has the hash of each frame of a memo with all its callers: of a walk that has met the
 * memo, only new frames are to be hashed.
 *
 * A descriptor is known by its inode. What it stands for, a file, a socket's other side or a pipe, is looked up when it
 * is met first, and sent. Sockets with the same other side, and all pipes, are one: `objects` has the id of that.
 */
#include "collect/kernel/bpf/record.h"

#define NAMES_MAX 64      /* on a path, with changes of file systems */
#define NAME_MAX 255      /* bytes of each */
#define MESSAGES_MAX 1024 /* of recvmmsg and sendmmsg: UIO_MAXIOV */
#define MESSAGE_SIZE 64   /* of struct mmsghdr; its last member is the length */
#define MESSAGE_LENGTH 56
#define KIND_MASK 0170000 /* of an inode's mode */
#define KIND_SOCKET 0140000
#define KIND_PIPE 0010000
#define FAMILY_UNIX 1
#define FAMILY_IPV4 2
#define FAMILY_IPV6 10
#define OBJECT_NONE 1 /* id of what is no descriptor */

struct io { /* of a thread: the call that it is in */
	uint64_t since;
	uint64_t object;
	uint64_t messages; /* address of an array of struct mmsghdr */
	uint64_t own_ns;   /* that it took until now to find the object */
	uint32_t act;      /* enum kernel_io_act; 0: it is in none */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct io);
} ios SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, KERNEL_OBJECTS);
	__type(key, uint64_t);
	__type(value, uint64_t); /* its id */
} objects SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KERNEL_TRANSFERS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct kernel_transfer_key);
	__type(value, struct kernel_transfer);
} transfers SEC(".maps");

struct hashes {
	uint64_t of[KERNEL_FRAMES]; /* as `frames` of the memo with the same number */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, struct hashes);
} hashes SEC(".maps");

INLINE uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

/* ---- paths ---- */

struct hashing {
	struct workspace *ws;
	struct hashes *hashes; /* NULL: nothing is stored */
};

/* The next inner frame. The state of the loop is in the map's memory. */
static long hash_one(uint32_t i, struct hashing *h)
{
	struct workspace *ws = h->ws;
	uint64_t n = ws->walk.fresh - 1 - i, at = ws->hash_at + n;
	if (i >= ws->walk.fresh)
		return 1;
	MASK(n, KERNEL_FRAMES - 1);
	MASK(at, KERNEL_FRAMES - 1);
	ws->hash = mix(ws->hash, ws->keys[n]);
	if (h->hashes)
		h->hashes->of[at] = ws->hash;
	return 0;
}

/* Returns the hash of the path that was walked. Of the memo's frames, `kept` stay. `store`: the new ones are in the
   memo from now on. */
INLINE uint64_t hash_path(struct workspace *ws, struct hashes *memo, uint32_t kept, bool store)
{
	struct hashing h = {ws, store ? memo : NULL};
	uint64_t first = KERNEL_FRAMES - (uint64_t)kept;
	ws->hash = ws->walk.end;
	if (kept && memo) {
		MASK(first, KERNEL_FRAMES - 1);
		ws->hash = memo->of[first];
	}
	ws->hash_at = KERNEL_FRAMES - (uint64_t)kept - ws->walk.fresh;
	bpf_loop(ws->walk.fresh < KERNEL_FRAMES ? ws->walk.fresh : KERNEL_FRAMES, hash_one, &h, 0);
	return ws->hash;
}

/* ---- descriptors ---- */

INLINE struct file *file_of(struct task_struct *task, uint32_t descriptor)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **all = BPF_CORE_READ(table, fd), *file = NULL;
	if (descriptor < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof file, all + descriptor);
	return file;
}

struct naming {
	struct kernel_object *object;
	struct dentry *entry;
	struct mount *mount;
};

INLINE struct mount *mount_of(struct vfsmount *mount)
{
	return (void *)((uint64_t)mount - __builtin_preserve_field_info(((struct mount *)0)->mnt,
									BPF_FIELD_BYTE_OFFSET));
}

/* Adds the name of one directory on the path, from the inside out. Where a file system begins, the path goes on where
   it is mounted. */
static long name_one(uint32_t i, struct naming *n)
{
	struct dentry *entry = n->entry;
	struct mount *mount = n->mount;
	struct dentry *up = BPF_CORE_READ(entry, d_parent);
	if (entry == BPF_CORE_READ(mount, mnt.mnt_root)) {
		struct mount *parent = BPF_CORE_READ(mount, mnt_parent);
		n->object->rooted = parent == mount;
		if (n->object->rooted || !parent)
			return 1;
		n->entry = BPF_CORE_READ(mount, mnt_mountpoint);
		n->mount = parent;
		return 0;
	}
	uint64_t at = n->object->size;
	if (at >= KERNEL_OBJECT_NAME - NAME_MAX - 1)
		return 1;
	MASK(at, KERNEL_OBJECT_NAME - 1);
	if (at >= KERNEL_OBJECT_NAME - NAME_MAX - 1)
		return 1;
	long got = bpf_probe_read_kernel_str(n->object->name + at, NAME_MAX + 1,
					     BPF_CORE_READ(entry, d_name.name));
	if (got > 0)
		n->object->size += (uint32_t)got;
	if (up == entry || !up)
		return 1;
	n->entry = up;
	return 0;
}

INLINE void name_file(struct kernel_object *out, struct file *file)
{
	struct naming n = {out, BPF_CORE_READ(file, f_path.dentry),
			   mount_of(BPF_CORE_READ(file, f_path.mnt))};
	bpf_loop(NAMES_MAX, name_one, &n, 0);
}

/* The name of a socket of this machine, if it is bound to one. */
INLINE bool name_unix(struct kernel_object *out, struct sock *socket)
{
	struct unix_address *address = socket ? BPF_CORE_READ((struct unix_sock *)socket, addr)
					      : NULL;
	if (!address)
		return false;
	const char *from = (const char *)address +
			   bpf_core_field_offset(struct unix_address, name) +
			   bpf_core_field_offset(struct sockaddr_un, sun_path);
	char first = 0;
	bpf_probe_read_kernel(&first, 1, from);
	long got = bpf_probe_read_kernel_str(out->name, 109, first ? from : from + 1);
	out->size = got > 1 ? (uint32_t)got : 0;
	return out->size;
}

INLINE void describe_socket(struct kernel_object *out, struct file *file)
{
	struct socket *of = BPF_CORE_READ(file, private_data);
	struct sock *socket = of ? BPF_CORE_READ(of, sk) : NULL;
	if (!socket)
		return;
	out->family = BPF_CORE_READ(socket, __sk_common.skc_family);
	out->type = BPF_CORE_READ(socket, sk_type);
	if (out->family == FAMILY_UNIX) {
		if (!name_unix(out, BPF_CORE_READ((struct unix_sock *)socket, peer)))
			name_unix(out, socket);
		return;
	}
	if (out->family != FAMILY_IPV4 && out->family != FAMILY_IPV6)
		return;
	out->port = BPF_CORE_READ(socket, __sk_common.skc_num);
	out->other_port = __builtin_bswap16(BPF_CORE_READ(socket, __sk_common.skc_dport));
	if (out->family == FAMILY_IPV4)
		bpf_core_read(out->address, 4, &socket->__sk_common.skc_daddr);
	else if (bpf_core_field_exists(socket->__sk_common.skc_v6_daddr))
		bpf_core_read(out->address, 16, &socket->__sk_common.skc_v6_daddr);
	/* Of the two ports, the smaller one says which service it is. The other one was given by chance. */
	if (out->port < out->other_port)
		out->other_port = 0;
	else if (out->other_port)
		out->port = 0;
}

/* Sockets with the same other side are one, and so are pipes. */
INLINE uint64_t identify(const struct kernel_object *o, uint64_t key)
{
	uint64_t hash = mix(o->mode & KIND_MASK, (uint64_t)o->family << 48 |
							 (uint64_t)o->type << 32 |
							 (uint64_t)o->port << 16 | o->other_port);
	uint32_t kind = o->mode & KIND_MASK;
	if (kind != KIND_SOCKET && kind != KIND_PIPE)
		return mix(hash, key);
	const uint64_t *address = (const uint64_t *)o->address;
	hash = mix(mix(hash, address[0]), address[1]);
	const uint64_t *name = (const uint64_t *)o->name;
	for (int i = 0; i < 14; i++) /* what a socket's name may have; the rest was cleared */
		hash = mix(hash, name[i]);
	return hash;
}

/* Finds what a descriptor stands for. Sends it if it was not met before. `space`: a workspace that nobody uses. */
INLINE uint64_t find_object(struct task_struct *task, uint32_t descriptor, uint32_t space)
{
	struct file *file = file_of(task, descriptor);
	struct inode *inode = file ? BPF_CORE_READ(file, f_inode) : NULL;
	if (!inode)
		return OBJECT_NONE;
	uint64_t key = mix(mix((uint64_t)inode, BPF_CORE_READ(inode, i_ino)),
			   (uint64_t)BPF_CORE_READ(file, f_op) ^
				   BPF_CORE_READ(inode, i_generation));
	uint64_t *known = bpf_map_lookup_elem(&objects, &key);
	if (known)
		return *known;
	struct workspace *ws = bpf_map_lookup_elem(&workspaces, &space);
	if (!ws)
		return OBJECT_NONE;
	struct kernel_object *o = &ws->object;
	__builtin_memset(o, 0, __builtin_offsetof(struct kernel_object, name) + 112);
	fill_head(&o->head, KERNEL_OBJECT, KERNEL_EVENT_IO, bpf_ktime_get_ns());
	o->mode = BPF_CORE_READ(inode, i_mode);
	if ((o->mode & KIND_MASK) == KIND_SOCKET)
		describe_socket(o, file);
	else
		name_file(o, file);
	uint64_t id = o->id = identify(o, key);
	if (!bpf_ringbuf_output(&ring, o, sizeof *o, wake(0)))
		bpf_map_update_elem(&objects, &key, &id, BPF_ANY);
	return id;
}

/* ---- calls ---- */

struct counting_messages {
	uint64_t at, bytes;
	long count;
};

static long count_message(uint32_t i, struct counting_messages *c)
{
	uint32_t length = 0;
	if (i >= c->count)
		return 1;
	bpf_probe_read_user(&length, sizeof length,
			    (void *)(c->at + (uint64_t)i * MESSAGE_SIZE + MESSAGE_LENGTH));
	c->bytes += length;
	return 0;
}

/* Returns how many bytes a call has moved that returned this. */
INLINE uint64_t bytes_of(const struct io *io, long returned)
{
	if (returned <= 0 || io->act == KERNEL_IO_SYNC)
		return 0;
	if (io->act != KERNEL_IO_READ_MANY && io->act != KERNEL_IO_WRITE_MANY)
		return (uint64_t)returned;
	struct counting_messages c = {.at = io->messages, .count = returned};
	bpf_loop(MESSAGES_MAX, count_message, &c, 0);
	return c.bytes;
}

/* Adds a call to the sum of those with its key. Returns the sum; NULL: there is no room. */
INLINE struct kernel_transfer *add_transfer(const struct kernel_io *io)
{
	struct kernel_transfer *sum = bpf_map_lookup_elem(&transfers, &io->key);
	if (!sum) {
		struct kernel_transfer none = {0};
		bpf_map_update_elem(&transfers, &io->key, &none, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&transfers, &io->key);
	}
	if (sum) { /* of one thread, which is here */
		sum->calls += io->sum.calls;
		sum->bytes += io->sum.bytes;
		sum->ns += io->sum.ns;
		sum->own_ns += io->sum.own_ns + bpf_ktime_get_ns() - io->head.time;
	}
	return sum;
}

/* Sends what was read or written, before its path or copy. Returns whether there was room. */
INLINE bool send_io(struct kernel_io *io)
{
	return !bpf_ringbuf_output(&ring, io, sizeof *io, wake(0));
}
