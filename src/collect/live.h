/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A look at a recording that goes on. The recorder listens on a socket whose
 * name follows from where its file is or will be; who wants to look asks there
 * for a snapshot and gets it as a file in memory. While nobody asks it costs
 * nothing, and a recorder that is killed leaves nothing behind (the name is an
 * abstract one). Both sides make sure that the other is of the same user.
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
/* Hangs up. To be called when the file is in its place. NULL is fine */
void live_close(struct live *live);
/* Readable when there is something to do; -1 for NULL. */
int live_fd(const struct live *live);
/* Hears what readers say; whether a snapshot is to be made now. They wait while the one before is
   still being sent, and so long that all snapshots together take a small part of one CPU. */
bool live_wanted(struct live *live);
/* Packs and sends the snapshot, in a thread of its own. The profile becomes its own; NULL: there is
   none. `cpu_ns`: what making it took. */
void live_send(struct live *live, struct profile *profile, uint64_t cpu_ns);

/* ---- the reader's side ---- */

enum follow_news { FOLLOW_NOTHING, FOLLOW_PROFILE, FOLLOW_ENDED };

/* *out is NULL where no recording to this file goes on. An error where it is another user's. */
struct err *follow_open(const char *path, struct follow **out);
void follow_close(struct follow *follow);      /* NULL is fine */
pid_t follow_pid(const struct follow *follow); /* of the recorder */
/* Readable when follow_take has news. */
int follow_fd(const struct follow *follow);
/* Asks for a snapshot, if none is on its way. */
void follow_ask(struct follow *follow);
bool follow_asked(const struct follow *follow);
/* Returns at once. *profile is the caller's. */
enum follow_news follow_take(struct follow *follow, struct profile **profile);
