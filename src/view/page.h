/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The viewer as one HTML file: the page (view/web), and the data (view/pack.h)
 * compressed and in base64, which no text of a recording can break out of.
 */
struct buf;
struct err;
struct pack_input;

/* Appends the file. */
struct err *page_make(const struct pack_input *input, struct buf *out);
