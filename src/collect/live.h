/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shows a recording while it goes on. The recorder listens on a socket whose name follows from where its
 * file is or will be. A reader asks there for a snapshot, and gets it as a file in memory. While nobody
 * asks, it costs nothing. A recorder that is killed leaves nothing behind, since the name is an abstract
 * one. Both sides make sure that the other one belongs to the same user. recorder.c has one side, live/ the
 * other.
 *
 *    recorder                               reader
 *    live_open("culprit.prof")              follow_open("culprit.prof")
 *                        <---- "ask" -----  follow_ask()
 *    live_wanted() -> true
 *    live_send(snapshot) ---- memfd ----->  follow_take() -> a profile
 *    live_close()        ---- hang up --->  follow_take() -> FOLLOW_ENDED
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct follow;
struct live;
struct profile;

/* ---- the recorder's side ---- */

struct err *live_open(const char *path, struct live **out);
/* Hangs up. Call it when the file is in its place. NULL is allowed. */
void live_close(struct live *live);
/* Returns a descriptor that is readable when there is something to do; -1 for NULL. */
int live_fd(const struct live *live);
/* Reads what readers say. Returns whether a snapshot is to be made now. Readers wait while the last
   snapshot is still being sent, and so long that all snapshots together take a small part of one CPU. */
bool live_wanted(struct live *live);
/* Packs and sends the snapshot, in a thread of its own. Takes over the profile; NULL: there is none.
   `cpu_ns`: the CPU time that making it took. */
void live_send(struct live *live, struct profile *profile, uint64_t cpu_ns);

/* ---- the reader's side ---- */

enum follow_news { FOLLOW_NOTHING, FOLLOW_PROFILE, FOLLOW_ENDED };

/* Sets *out to NULL if nobody records to this file. Returns an error if another user does. */
struct err *follow_open(const char *path, struct follow **out);
void follow_close(struct follow *follow); /* NULL is allowed */
/* Returns a descriptor that is readable when follow_take has news. */
int follow_fd(const struct follow *follow);
/* Asks for a snapshot, unless one is on its way. */
void follow_ask(struct follow *follow);
/* Whether one is on its way. */
bool follow_asked(const struct follow *follow);
/* Returns at once. The caller owns *profile. */
enum follow_news follow_take(struct follow *follow, struct profile **profile);
