/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Errors of the tool side. A function that can fail returns `struct err *`:
 * NULL means success, anything else says what failed, from the outside in:
 *
 *     stack of process 42: /proc/42/maps: cannot open: No such file or directory
 *
 * Library code returns errors and never prints them; cmd/ prints each once.
 */
struct err;

/* A new error with this text. Never returns NULL, even without memory. */
struct err *err_new(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Like err_new, followed by ": " and the text of errno. */
struct err *err_errno(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Puts "context: " before the text of `e` and returns it; NULL stays NULL. */
struct err *err_context(struct err *e, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The whole text on one line; owned by `e`. */
const char *err_text(const struct err *e);

void err_free(struct err *e);
