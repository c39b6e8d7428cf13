/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What programs read and write, and what their threads wait for, as modules of the profile (PROFILE_OBJECT). Both
   samplers use it. */
#include <stdint.h>

struct buf;
struct err;
struct harvest;

/* What is known of a descriptor. */
struct object_facts {
	uint32_t mode; /* as in struct stat; no kind of file: an eventfd and the like */
	/* Of a socket: ports and the other side's address. Of the two ports, the one that was given by chance is 0. */
	uint16_t family, type, port, other_port;
	uint8_t address[16];
	const char *name; /* a path; of a socket of this machine: where it is bound */
};
/* Appends the name that people read: "file /etc/hosts", "socket TCP 10.0.0.1:6379", "pipe". */
void object_print(const struct object_facts *o, struct buf *out);

/* Finds or adds the child of `parent` that says what was done to an object: "read file /etc/hosts". `number` stands for
   what was done (`act`, which may be ""). If there are too many objects, the rest is one. */
struct err *objects_add_child(struct harvest *h, uint32_t parent, const char *object,
			      uint32_t number, const char *act, uint32_t *node);
void objects_end(struct harvest *h);
