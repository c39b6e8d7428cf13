/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The viewer as one HTML file: the page (view/web), and the data (view/pack.h)
 * compressed and in base64, which no text of a recording can break out of.
 */
struct buf;
struct err;
struct pack_input;

#include <stdint.h>

/* Appends the file. */
struct err *page_make(const struct pack_input *input, struct buf *out);

/* The same in two steps, for a page that is served (view/serve.h): its data, compressed; and the page
   around it, which asks for newer data than this version at "data" beside it. Version 0: it does not. */
struct err *page_data(const struct pack_input *input, struct buf *out);
struct err *page_wrap(const struct buf *data, uint64_t version, struct buf *out);
