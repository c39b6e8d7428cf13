/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the parts of `culprit db` have in common. */
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/args.h"
#include "store/read.h"

struct buf;
struct err;
struct json;

int db_list(int argc, char **argv);
int db_show(int argc, char **argv);
int db_query(int argc, char **argv);
int db_export(int argc, char **argv);
int db_epoch(int argc, char **argv);
int db_prune(int argc, char **argv);
int db_check(int argc, char **argv);

/* Which samples: the options that show, query and export share, and the span that their operands
   say. */
struct db_choice {
	const char *file, *host, *image_text, *procedure_text, *process, *container, *user_text;
	uint64_t epoch;
	char *span; /* the operands, joined */
	regex_t image, procedure;
	bool has_image, has_procedure;
	struct read_choice read;
};

/* clang-format off */
#define DB_FILE_OPTION(where) \
	{0, "db", "FILE|URL", "the database; $CULPRIT_DB or /var/lib/culprit/culprit.db by default", ARG_STRING, &(where)}
#define DB_CHOICE_OPTIONS(c) \
	DB_FILE_OPTION((c).file), \
	{0, "host", "NAME", "only of this host", ARG_STRING, &(c).host}, \
	{0, "epoch", "N", "only of this epoch", ARG_U64, &(c).epoch}, \
	{0, "image", "RE", "only code of images whose path matches", ARG_STRING, &(c).image_text}, \
	{0, "procedure", "RE", "only code of procedures whose name matches", ARG_STRING, &(c).procedure_text}, \
	{0, "process", "ID|NAME", "only of processes with this number or name", ARG_STRING, &(c).process}, \
	{0, "user", "ID|NAME", "only of this user's processes", ARG_STRING, &(c).user_text}, \
	{0, "container", "ID", "only of containers whose id begins with this", ARG_STRING, &(c).container}
/* clang-format on */

/* Spans such as -1h are no options: they lose their dash. Before cmd_parse. */
void db_keep_spans(int argc, char **argv);
/* Fills in the rest; -1 to go on. db_choice_free in any case. */
int db_choose(const char *command, struct db_choice *choice, const struct args *args);
void db_choice_free(struct db_choice *choice);

/* Opens what is to be read for a choice: a file, or what a server says to it, with call paths where they are
   wanted. */
struct err *db_open(const char *file, const struct read_choice *choice, bool paths,
		    struct store **out);
struct err *db_epochs(const char *file, const char *host, struct read_epochs *out);
struct err *db_sql(const char *file, const char *sql, read_row *row, void *context);

/* Shows a text, through the pager by default; names in it cannot steer the terminal. Frees it. */
struct err *db_page(struct buf *text, bool no_pager);

/* Appends a name as one line has it: what is no letter becomes a question mark. */
void db_name(struct buf *out, const char *name);

int64_t db_now_ms(void);
/* "2026-11-14 14:00:00" in local time, without seconds where these are 0; returns out. */
#define DB_TIME_MAX 32
const char *db_time(char out[DB_TIME_MAX], int64_t ms);
/* "10 min", "1 h", "2.5 days"; returns out. */
const char *db_length(char out[DB_TIME_MAX], int64_t ms);

/* A line after `indent` where the event was not counted all of the time. */
void db_coverage(const struct store_event *event, struct coverage c, const char *indent,
		 struct buf *out);

/* "lost" and "unknown" as members of an open object, by reason. */
void db_losses_json(const struct store_loss *losses, size_t count, struct json *j);
uint64_t db_losses(const struct store_loss *losses, size_t count, enum store_loss_kind kind);
