/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "store/internal.h"

#define BUSY_MS 5000
#define DEFAULT_PATH "/var/lib/culprit/culprit.db"

const char *store_default_path(void)
{
	const char *path = getenv("CULPRIT_DB");
	return path && *path ? path : DEFAULT_PATH;
}

enum store_trouble store_trouble(const struct store *s)
{
	return s->trouble;
}

static struct err *belongs_to_another(const char *path, uid_t user)
{
	const struct passwd *known = getpwuid(user);
	return known ? err_new("%s: it belongs to the user %s: run as that one (sudo -u %s ...)",
			       path, known->pw_name, known->pw_name)
		     : err_new("%s: it belongs to the user %u: run as that one", path,
			       (unsigned)user);
}

/* Others must not read what ran on a machine; and who reads as root must not write into somebody
   else's file. SQLite gives the files beside it the same permissions. */
static struct err *check_owner(const char *path, int fd)
{
	struct stat st;
	if (fstat(fd, &st))
		return err_errno("%s", path);
	if (!S_ISREG(st.st_mode))
		return err_new("%s: not a regular file", path);
	if (st.st_uid != geteuid())
		return belongs_to_another(path, st.st_uid);
	if (st.st_mode & 077 && fchmod(fd, 0600))
		return err_errno("%s: cannot keep others from reading it", path);
	return NULL;
}

static struct err *prepare_file(const char *path, enum store_mode mode)
{
	struct stat st;
	if (mode == STORE_READ) {
		if (stat(path, &st))
			return errno == ENOENT
				       ? err_new("there is no %s: culprit daemon makes it", path)
				       : err_errno("%s", path);
		if (!S_ISREG(st.st_mode))
			return err_new("%s: not a regular file", path);
		return access(path, R_OK) ? err_errno("%s: only its owner may read it: run as that "
						      "one",
						      path)
					  : NULL;
	}
	int create = mode == STORE_CREATE ? O_CREAT : 0;
	int fd = open(path, O_RDWR | create | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
	if (fd < 0 && errno == ENOENT && !create)
		return err_new("there is no %s: culprit daemon makes it", path);
	if (fd < 0)
		return err_errno("%s: cannot open", path);
	struct err *e = check_owner(path, fd);
	close(fd);
	return e;
}

/* Nothing that a file says is to be run, and no page of it believed. */
static void distrust(sqlite3 *db)
{
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 1, NULL);
	sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_busy_timeout(db, BUSY_MS);
}

/* A log that is moved into the file in small portions; room that comes back in small portions. The
   log is not forced to the disk with each transaction: a power failure may take the last ones, as
   a crash of ours may not, and neither damages the file. */
static struct err *configure(struct store *s)
{
	struct err *e = sql_run(s, "PRAGMA cell_size_check = ON");
	if (!e && s->writes)
		e = sql_run(s, "PRAGMA auto_vacuum = INCREMENTAL;"
			       "PRAGMA journal_mode = WAL;"
			       "PRAGMA synchronous = NORMAL;"
			       "PRAGMA wal_autocheckpoint = 256;"
			       "PRAGMA journal_size_limit = 2097152;"
			       "PRAGMA cache_size = -2048");
	return e;
}

static struct err *open_database(struct store *s, const char *file)
{
	int flags = s->writes ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
	if (sqlite3_open_v2(file, &s->db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
			    NULL) != SQLITE_OK)
		return s->db ? sql_error(s, "open") : err_new("out of memory");
	distrust(s->db);
	struct err *e = configure(s);
	if (!e)
		e = schema_make(s, schema_steps, STORE_VERSION);
	if (!e && s->writes)
		watch_note(s);
	return e;
}

static struct err *open_store(const char *path, const char *file, enum store_mode mode,
			      struct store **out)
{
	struct store *s = calloc(1, sizeof *s);
	*out = NULL;
	if (!s)
		return err_new("out of memory");
	s->writes = mode != STORE_READ;
	s->rows_max = STORE_INTERVAL_ROWS_MAX;
	s->nodes_max = STORE_EPOCH_NODES_MAX;
	s->path = strdup(path);
	struct err *e = s->path ? NULL : err_new("out of memory");
	if (!e && file == path)
		e = prepare_file(path, mode);
	if (!e)
		e = open_database(s, file);
	if (e) {
		store_close(s);
		return e;
	}
	*out = s;
	return NULL;
}

struct err *store_open(const char *path, enum store_mode mode, struct store **out)
{
	return open_store(path, path, mode, out);
}

/* What comes together there may be more than a daemon would put into one epoch. */
struct err *store_open_memory(const char *name, struct store **out)
{
	struct err *e = open_store(name, ":memory:", STORE_CREATE, out);
	if (!e) {
		(*out)->rows_max = STORE_MEMORY_ROWS_MAX;
		(*out)->nodes_max = TREE_NODES_MAX - 1;
	}
	return e;
}

void store_abandon(struct store *s)
{
	if (s)
		sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	store_close(s);
}

void store_close(struct store *s)
{
	if (!s)
		return;
	intern_forget(s);
	calltree_free(&s->tree);
	sql_forget(s);
	sqlite3_close(s->db);
	free(s->path);
	free(s);
}
