/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Parts of the text and the JSON of show.h. */
#include <stdint.h>

struct buf;
struct err;
struct json;
struct numbering_path;
struct path_function;
struct path_metric;
struct path_result;
struct ranked_function;
struct ranking;

/* Each appends a piece; numbers with a space before them. */
void show_put_name(const char *name, struct buf *out); /* shortened */
void show_put_count(struct buf *out, uint64_t count, int width);
void show_put_share(struct buf *out, uint64_t part, uint64_t whole, int width);

/* "41.3 ms", "1 234" */
void show_put_value(struct buf *out, const struct path_metric *metric, uint64_t value, int width);

/* Appends how sure it is on which paths the samples were; nothing if there is no metric. As many spaces as `name` is long come first. */
void show_metric_summary(const struct ranking *ranking, const char *name, struct buf *out);
/* Appends how much of the metric is on few paths, and in few functions. */
void show_heat(const struct ranking *ranking, struct buf *out);

/* Appends the paths of a function that was called, at most `limit` (0: all): how often each was taken, and how it goes. */
struct err *show_paths(const struct ranking *ranking, const struct ranked_function *function,
		       uint64_t limit, struct buf *out);

/* Appends in which calling contexts a function was called, at most `limit` (0: all); nothing if they were not told apart. */
struct err *show_contexts(const struct ranking *ranking, const struct path_result *result,
			  const struct ranked_function *function, uint64_t limit, struct buf *out);
/* Appends how many there are. As many spaces as `name` is long come first. */
void show_contexts_summary(const struct ranking *ranking, const struct path_result *result,
			   const char *name, struct buf *out);
/* Puts "contexts" into the object that is open: all of them; the numbers of those of a function; and of a path, numbers and
   counts. */
void show_contexts_json(const struct path_result *result, struct json *json);
void show_function_contexts_json(const struct path_result *result,
				 const struct path_function *function, struct json *json);
void show_path_contexts_json(const struct path_result *result, const struct path_function *function,
			     uint64_t path, struct json *json);

/* Puts how a path goes, as "blocks", "next" and "lines", into the object that is open. */
void show_way_json(const struct ranked_function *function, const struct numbering_path *path,
		   struct json *json);
