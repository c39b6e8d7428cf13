/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes JSON piece by piece, into a buffer or a stream; commas come by
 * themselves. The caller pairs begins with ends and puts a key before each
 * value of an object:
 *
 *     struct json j = json_to_file(stdout);
 *     json_begin_object(&j);
 *     json_key(&j, "tid");
 *     json_u64(&j, 42);
 *     json_end_object(&j);
 *     json_newline(&j);
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct buf;

struct json {
	struct buf *buf; /* one of these two is the destination */
	FILE *file;
	bool comma; /* the next piece needs a comma before it */
};

struct json json_to_buf(struct buf *buf);
struct json json_to_file(FILE *file);

void json_begin_object(struct json *j);
void json_end_object(struct json *j);
void json_begin_array(struct json *j);
void json_end_array(struct json *j);
void json_key(struct json *j, const char *key);

/* Text, NULL as null. Bytes that are not UTF-8 become U+FFFD. */
void json_string(struct json *j, const char *text);
void json_u64(struct json *j, uint64_t value);
void json_i64(struct json *j, int64_t value);
/* As a string, "0x1f". */
void json_address(struct json *j, uint64_t value);
/* The shortest of 15 or 17 digits that reads back equal; null where it is not finite. */
void json_double(struct json *j, double value);
void json_bool(struct json *j, bool value);
void json_null(struct json *j);

/* A key and its value. */
void json_put_string(struct json *j, const char *key, const char *text);
void json_put_u64(struct json *j, const char *key, uint64_t value);
void json_put_double(struct json *j, const char *key, double value);
void json_put_bool(struct json *j, const char *key, bool value);

/* Ends a document: a line end, and the next document starts without a comma. */
void json_newline(struct json *j);
