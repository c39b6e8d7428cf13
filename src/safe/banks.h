/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a counted program (counter/) and the collector (collect/paths/) share: memory with counters, and a conversation.
 *
 * A program, from its exec on, and all processes that are forked from it have one memory, a memfd:
 *
 *    struct banks_header, struct banks_slot[slots]
 *    slots_at:  slot 0:   a page that is never written | counters of bank 0
 *    + stride:  slot 1:   a page that is never written | counters of bank 1 | …
 *
 * The collector sees to its size, which cannot change. The counter maps all of it at once, so it needs no descriptor later.
 * Most of it is never written, and takes no room. What has no owner cannot be accessed, so mlockall does not fill it. A thread
 * owns one slot. Over the page before its bank, its process maps memory of its own. When the thread is gone, another one may own the slot, of this process or of another, and counts on: a bank is never
 * cleared.
 *
 * The conversation is a connection to the SOCK_SEQPACKET unix socket at $CULPRIT_PATHS, before any other code of the program
 * runs. Each packet of the counter has one answer:
 *
 *    HELLO                    PLAN, with the memory; or GO
 *    NEXT, LOADED, FAILED     OBJECT, which is loaded where it must be; or END of the objects: now the memory is mapped,
 *                             where that is no longer in their way, and the first thread has a bank
 *    READY, UNABLE            GO
 *
 * Before the answer GO, the collector changes the code of the program. So the counter must not go on before, unless it has said so:
 * it sets the stage from WAITING to LEFT. The collector sets it from WAITING to CHANGING.
 *
 * In a process that runs already (`paths -p`), a thread of the counter's own has the conversation (counter/late.c). The first
 * object is HOOKS: where functions of libc go on that lead to the counter's. READY comes with banks for all threads that there are.
 * The answer is MORE if these were too few.
 *
 * What the collector changes is listed in the memory, before it does so. If it is killed, the next one finds that there.
 */
#include <stdatomic.h>
#include <stdint.h>

#define BANKS_MAGIC 0x326b6263u           /* "cbk2" */
#define BANKS_FILE "/memfd:culprit-paths" /* in the list of mappings */
#define BANKS_SOCKET "CULPRIT_PATHS"
#define BANKS_PAGE 4096u
#define BANKS_TEXT 400u
#define BANKS_PATH 256u

/* ---- the memory ---- */

/* The first page of a slot, its room: the counter's own data, and then the thread's, which code of copies uses. */
#define BANKS_ROOM 256u      /* bytes of the first part */
#define BANKS_ROOM_BANK 0u   /* there: the address of the bank; if it is not, this is no room */
#define BANKS_ROOM_THREAD 8u /* whose it is, as that has begun there by itself … */
#define BANKS_ROOM_GIVEN 12u /* … or as the collector knows the thread that it was given to */

enum banks_stage { BANKS_WAITING, BANKS_CHANGING, BANKS_LEFT };

/* The lowest bits of a slot's state. Above them is a number that rises with each new owner. */
enum banks_state { BANKS_FREE, BANKS_TAKEN, BANKS_OWNED };
#define BANKS_STATES 3u
#define BANKS_OWNER 4u

struct banks_slot {
	_Atomic uint32_t state;
	/* Processes of one space know each other by the same numbers (PID namespaces). */
	_Atomic uint32_t space;
	_Atomic int32_t process, thread; /* the owner; 0: the thread has not begun */
};

struct banks_header {
	_Atomic uint32_t stage;
	_Atomic uint32_t used;     /* slots from here on had no owner yet */
	_Atomic uint32_t cursor;   /* where slots of dead owners are looked for next */
	_Atomic uint32_t spaces;   /* how many there are besides the first */
	_Atomic uint32_t left_out; /* threads and processes for which there was no slot */
	_Atomic uint32_t
		forks; /* processes that were forked, with paths that their parents had begun */
	/* The collector; and whether it has restored the code, or a later one has. */
	_Atomic int32_t owner;
	_Atomic uint32_t over;
	uint64_t owner_start; /* as in /proc/PID/stat */
	/* What was, or will be, changed in the code of all its processes. */
	uint32_t patch_count, magic;
	uint64_t patches_at; /* before slots_at */
	struct banks_slot slots[];
};

#define BANKS_PATCH 16u

struct banks_patch {
	uint64_t at;
	uint32_t length, reserved;
	uint8_t original[BANKS_PATCH], jump[BANKS_PATCH];
};

/* ---- the conversation ---- */

enum banks_kind {
	BANKS_HELLO = 1,
	BANKS_NEXT,
	BANKS_LOADED,
	BANKS_FAILED,
	BANKS_READY,
	BANKS_UNABLE
};

/* Functions of libc that a running process enters by the counter. */
enum banks_hook { BANKS_HOOK_THREAD, BANKS_HOOK_FORK, BANKS_HOOKED };

struct banks_function {
	uint64_t at, size; /* 0: there is none */
	uint64_t ours;     /* what is to be entered instead */
};

struct banks_request {
	uint32_t magic, kind;
	/* Of HELLO, what code needs to know on aarch64 (copies/write.h): where a thread's word is, from its thread pointer
	   on; and whether the CPU adds to memory by one instruction. */
	uint32_t atomics;
	uint32_t contexts; /* whether calling contexts can be told apart there */
	uint64_t thread_word;
	/* Of HELLO, in a process that ran already: */
	uint32_t late, late_reserved;
	uint64_t
		first_word; /* counters before it belong to copies of an earlier collector, which may still run */
	struct banks_function hooks[BANKS_HOOKED];
	/* Of READY, there: the banks for its threads (addresses), how many, and the memory. */
	uint64_t banks, bank_count, memory, size;
	/* Of HELLO: why nothing can be counted, or "". Of FAILED and UNABLE: why. */
	char trouble[BANKS_TEXT];
};

enum banks_answer { BANKS_PLAN = 1, BANKS_OBJECT, BANKS_END, BANKS_GO, BANKS_HOOKS, BANKS_MORE };

struct banks_reply {
	uint32_t magic, kind;
	uint32_t changed; /* of GO: whether the code was changed. If not, nothing is counted */
	/* of PLAN: how many slots there are, and where; of all, in bytes */
	uint32_t slots;
	uint64_t slots_at, stride, size;
	uint64_t
		arena; /* of PLAN: bytes from a bank to its arena of contexts (safe/contexts.h); 0: there is none */
	uint64_t base; /* of OBJECT and HOOKS: where its first byte must be */
	uint64_t bodies
		[BANKS_HOOKED]; /* of HOOKS: what goes on as the functions; 0: they are not entered by us */
	uint64_t count;         /* of MORE: how many banks */
	char path[BANKS_PATH];
};
