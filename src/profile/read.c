/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is read into memory and not mapped: one that shrinks while it is
 * looked at would end us.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/filekind.h"
#include "profile/decode.h"

#define PIECE (1u << 20)

static const char *const table_names[FORMAT_TYPES] = {
	[FORMAT_INFO] = "info",
	[FORMAT_MODULES] = "modules",
	[FORMAT_NAMES] = "names",
	[FORMAT_METRICS] = "metrics",
	[FORMAT_PROCESSES] = "processes",
	[FORMAT_THREADS] = "threads",
	[FORMAT_NODES] = "nodes",
	[FORMAT_VALUES] = "values",
	[FORMAT_LOST] = "lost samples",
	[FORMAT_END] = "end",
	[FORMAT_SPANS] = "parts of the time line",
	[FORMAT_WAKES] = "wakes",
	[FORMAT_EDGES] = "edges",
	[FORMAT_PATHS] = "functions with paths",
	[FORMAT_CONTEXTS] = "calling contexts",
};

/* Whether these can be the first bytes of a profile; one with a damaged header can still be. */
static bool looks_like_one(const uint8_t *bytes, size_t size)
{
	struct format_section ignored;
	return (size >= 8 && !memcmp(bytes, FORMAT_MAGIC, 8)) ||
	       (size >= FORMAT_HEADER_SIZE + FORMAT_SECTION_SIZE &&
		format_get_section(bytes + FORMAT_HEADER_SIZE, &ignored));
}

static struct err *no_profile(const void *bytes, size_t size)
{
	const char *hint = filekind_hint(bytes, size);
	return hint ? err_new("not a profile of culprit, but %s", hint)
		    : err_new("not a profile of culprit");
}

static struct err *check_header(const uint8_t *bytes, size_t size, const char **problem)
{
	if (size == 0)
		return err_new("the file is empty");
	if (!looks_like_one(bytes, size))
		return no_profile(bytes, size);
	if (size < FORMAT_HEADER_SIZE)
		return err_new("cut short: nothing in it can be used");
	if (memcmp(bytes, FORMAT_MAGIC, 8) != 0 ||
	    format_get(bytes + 16, 8) != format_checksum(bytes, 16))
		*problem = "file header: checksum wrong";
	else if (format_get(bytes + 8, 2) > FORMAT_MAJOR)
		return err_new("written by a newer culprit (format %u): update culprit",
			       (unsigned)format_get(bytes + 8, 2));
	return NULL;
}

static void separate(struct buf *out)
{
	if (out->size)
		buf_puts(out, "; ");
}

static void describe_table(const struct decoder *d, unsigned type, size_t stand_ins,
			   struct buf *out)
{
	const struct table_state *t = &d->tables[type];
	const char *problem = t->problem;
	if (!problem && type != FORMAT_END && d->sections.end && t->got != t->total)
		problem = t->got < t->total ? "missing" : "more than there should be";
	if (!problem)
		return;
	separate(out);
	buf_printf(out, "%s: %s", table_names[type], problem);
	if (t->got < t->total && type != FORMAT_INFO)
		buf_printf(out, ": %" PRIu64 " of %" PRIu64 " %s left out", t->total - t->got,
			   t->total, table_names[type]);
	if (type == FORMAT_VALUES && d->dropped)
		buf_printf(out, ", with %" PRIu64 " samples", d->dropped);
	if (stand_ins)
		buf_printf(out, ", %zu shown as (lost)", stand_ins);
}

static void describe_tables(const struct decoder *d, struct buf *out)
{
	const size_t stand_ins[FORMAT_TYPES] = {
		[FORMAT_MODULES] = d->modules.stand_in_count,
		[FORMAT_METRICS] = d->metrics.stand_in_count,
		[FORMAT_PROCESSES] = d->processes.stand_in_count,
		[FORMAT_THREADS] = d->threads.stand_in_count,
	};
	for (unsigned type = 1; type < FORMAT_TYPES; type++)
		describe_table(d, type, stand_ins[type], out);
}

/* One line of all that is wrong; "" where nothing is. */
static void describe(const struct decoder *d, const char *header, struct buf *out)
{
	const struct sections *s = &d->sections;
	size_t foreign = 0;
	if (header)
		buf_puts(out, header);
	for (size_t i = 0; i < s->count; i++)
		foreign += s->items[i].problem && (s->items[i].header.type == 0 ||
						   s->items[i].header.type >= FORMAT_TYPES);
	if (s->gaps) {
		separate(out);
		buf_printf(out, "%zu damaged section header%s", s->gaps, s->gaps > 1 ? "s" : "");
	}
	describe_tables(d, out);
	if (foreign) {
		separate(out);
		buf_printf(out, "%zu damaged section%s of a newer culprit", foreign,
			   foreign > 1 ? "s" : "");
	}
	if (!s->end) {
		separate(out);
		buf_puts(out, "the file's end is missing");
	}
	if (s->trailing) {
		separate(out);
		buf_printf(out, "%" PRIu64 " bytes after the end", s->trailing);
	}
}

static bool has_anything(const struct decoder *d)
{
	for (unsigned type = 1; type < FORMAT_END; type++)
		if (d->tables[type].got)
			return true;
	return false;
}

/* Ends the decoder's work: an error, or what is wrong. */
static struct err *conclude(struct decoder *d, const char *header, char **damage)
{
	struct buf text = {0};
	struct err *e = NULL;
	describe(d, header, &text);
	if (text.failed)
		e = err_new("out of memory");
	else if (!has_anything(d))
		e = err_new("damaged: nothing in it can be used: %s", buf_text(&text));
	else if (text.size)
		*damage = buf_take(&text);
	buf_free(&text);
	return e;
}

struct err *profile_parse(const void *bytes, size_t size, struct profile **out, char **damage)
{
	struct decoder d = {0};
	const char *header = NULL;
	struct err *e;
	*out = NULL;
	*damage = NULL;
	e = check_header(bytes, size, &header);
	if (!e)
		e = profile_new(&d.p);
	if (e)
		return e;
	if (!sections_find(bytes, size, &d.sections))
		d.error = err_new("out of memory");
	else if (decode_tables(&d) && decode_references(&d))
		d.error = conclude(&d, header, damage);
	if (d.error)
		profile_free(d.p);
	else
		*out = d.p;
	decode_free(&d);
	return d.error;
}

/* To the end of the file, which may be a pipe. */
static struct err *read_all(int fd, struct buf *bytes)
{
	for (;;) {
		ssize_t n;
		if (bytes->size >= FORMAT_FILE_MAX)
			return err_new("larger than a profile can be");
		if (!buf_reserve(bytes, PIECE))
			return err_new("out of memory");
		n = read(fd, bytes->data + bytes->size, PIECE);
		if (n == 0)
			return NULL;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno("cannot read");
		bytes->size += (size_t)n;
		/* Said early: what follows may have no end. */
		if (bytes->size >= 4096 &&
		    !looks_like_one((const uint8_t *)bytes->data, bytes->size))
			return no_profile(bytes->data, bytes->size);
	}
}

static struct err *read_file(const char *path, struct profile **out, char **damage)
{
	struct buf bytes = {0};
	struct err *e = NULL;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	*out = NULL;
	*damage = NULL;
	if (fd < 0)
		return err_errno("%s: cannot open", path);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
	    (uint64_t)st.st_size < FORMAT_FILE_MAX &&
	    !buf_reserve(&bytes, (size_t)st.st_size + PIECE))
		e = err_new("out of memory");
	if (!e)
		e = read_all(fd, &bytes);
	close(fd);
	if (!e)
		e = profile_parse(bytes.data ? bytes.data : "", bytes.size, out, damage);
	buf_free(&bytes);
	return err_context(e, "%s", path);
}

static struct {
	const char *prefix; /* NULL: none */
	profile_reader *read;
} source;

void profile_source(const char *prefix, profile_reader *read)
{
	source.prefix = prefix;
	source.read = read;
}

bool profile_has_source(const char *name)
{
	return source.prefix && !strncmp(name, source.prefix, strlen(source.prefix));
}

struct err *profile_read_without(const char *path, const struct profile_spare *spare,
				 struct profile **out, char **damage)
{
	*damage = NULL;
	return profile_has_source(path) ? source.read(path, spare, out)
					: read_file(path, out, damage);
}

struct err *profile_read(const char *path, struct profile **out, char **damage)
{
	return profile_read_without(path, NULL, out, damage);
}
