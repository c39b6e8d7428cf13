/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The sources of hot files, as far as there is room for them: files with the
 * most samples first, of large ones what is near to lines with samples.
 */
struct err;
struct json;
struct lines;
struct sources;
struct strings;

/* An array of {"file": number of its text, "lines": how many it has, "parts": [[first line, text]…]}. */
struct err *texts_json(const struct lines *lines, const struct strings *strings,
		       struct sources *sources, struct json *out);
