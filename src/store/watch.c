/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether somebody else has been at the files. SQLite trusts that nobody removes,
 * replaces or writes over them while they are open; who writes for months cannot. After
 * each change of ours it is noted how the files look. Where they look different later,
 * and no other process has changed anything the proper way, everything is checked.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/internal.h"

static struct watched_file look_at(const char *path, const char *suffix)
{
	struct buf name = {0};
	struct stat st;
	buf_printf(&name, "%s%s", path, suffix);
	bool there = !name.failed && !stat(buf_text(&name), &st);
	buf_free(&name);
	if (!there)
		return (struct watched_file){0};
	return (struct watched_file){.there = true,
				     .device = st.st_dev,
				     .inode = st.st_ino,
				     .size = (uint64_t)st.st_size,
				     .written_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 +
						   st.st_mtim.tv_nsec};
}

static bool is_same(const struct watched_file *a, const struct watched_file *b)
{
	return a->there == b->there && a->device == b->device && a->inode == b->inode;
}

static bool is_untouched(const struct watched_file *a, const struct watched_file *b)
{
	return a->size == b->size && a->written_ns == b->written_ns;
}

/* Outside of transactions: how often other processes have changed the file. */
static struct err *read_version(struct store *s, int64_t *out)
{
	return sql_number(s, out, 0, "PRAGMA data_version", "");
}

/* Which file it is stays as it was first: it may have been replaced while we wrote. */
static void note(struct watched_file *noted, struct watched_file now)
{
	if (!noted->there || is_same(noted, &now))
		*noted = now;
}

void watch_note(struct store *s)
{
	struct watched *w = &s->watched;
	enum store_trouble trouble = s->trouble;
	struct err *e = read_version(s, &w->version);
	note(&w->file, look_at(s->path, ""));
	note(&w->log, look_at(s->path, "-wal"));
	w->noted = !e;
	err_free(e);
	s->trouble = trouble;
}

struct err *store_look(struct store *s, bool *same)
{
	const struct watched *w = &s->watched;
	struct watched_file file = look_at(s->path, ""), log = look_at(s->path, "-wal");
	int64_t version;
	*same = true;
	s->trouble = STORE_FINE;
	if (!w->noted)
		return NULL;
	*same = is_same(&file, &w->file) && is_same(&log, &w->log);
	if (!*same || (is_untouched(&file, &w->file) && is_untouched(&log, &w->log)))
		return NULL;
	struct err *e = read_version(s, &version);
	if (!e && version == w->version) {
		sqlite3_db_release_memory(s->db); /* what is in the file counts */
		e = store_check(s);
	}
	if (!e)
		watch_note(s);
	return e;
}

/* Whoever opens the file that is there now would take our log for a part of it. */
void store_leave(struct store *s)
{
	static const char *const beside[] = {"-wal", "-shm"};
	struct watched_file log = look_at(s->path, "-wal");
	bool ours = s->watched.noted && log.there && is_same(&log, &s->watched.log);
	sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	for (size_t i = 0; ours && i < sizeof beside / sizeof *beside; i++) {
		struct buf name = {0};
		buf_printf(&name, "%s%s", s->path, beside[i]);
		if (!name.failed)
			unlink(buf_text(&name));
		buf_free(&name);
	}
	store_abandon(s);
}
