/* SPDX-License-Identifier: Apache-2.0 */
#include "recipes/check.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "image/debug.h"
#include "image/image.h"
#include "image/symbols.h"
#include "recipes/build.h"

/* ---- finding out ---- */

static bool has_frames(const struct image *image)
{
	return image_section(image, ".eh_frame") || image_section(image, ".debug_frame") ||
	       image_section(image, ".sframe");
}

static bool has_names(const struct image *image)
{
	return image && (image_section(image, ".symtab") || image_section(image, ".gnu_debugdata"));
}

static struct err *open_all(struct check *c, const struct check_options *o)
{
	struct err *e = image_open(c->path, &c->image);
	if (e)
		return e;
	if (!has_frames(c->image) || !has_names(c->image))
		e = debug_find(c->image, false, &c->debug);
	if (!e)
		e = symbols_read(c->image, c->debug, &c->names);
	if (!e)
		e = o->stripped ? symbols_read_dynamic(c->image, &c->given)
				: symbols_read(c->image, NULL, &c->given);
	return e;
}

static bool has_symbol_at(const struct symbols *symbols, uint64_t address)
{
	const struct symbol *symbol = symbols_find(symbols, address);
	return symbol && symbol->address == address;
}

/* Procedures by symbols, and those that only the analysis knows of. */
static struct err *count_procedures(struct check *c)
{
	struct procedures named;
	struct err *e = procedures_from_symbols(c->image, c->given, &named);
	const uint64_t *starts;
	size_t count = trace_starts(c->analysis.trace, &starts);
	if (e)
		return e;
	c->by_symbol = named.count;
	procedures_free(&named);
	for (size_t i = 0; i < count; i++)
		c->inferred += !has_symbol_at(c->given, starts[i]) &&
			       !procedures_is_stub(c->image, starts[i]);
	return NULL;
}

static struct err *match_bounds(struct check *c)
{
	const uint64_t *starts;
	size_t count = trace_starts(c->analysis.trace, &starts);
	struct err *e;
	c->has_bounds = true;
	c->bounds_by_cfi = !has_names(c->image) && !has_names(c->debug);
	if (c->bounds_by_cfi)
		e = procedures_from_cfi(c->image, c->debug, &c->cfi, &c->truth);
	else
		e = procedures_from_symbols(c->image, c->names, &c->truth);
	if (!e)
		procedures_compare(c->image, &c->truth, c->names, starts, count, &c->match);
	return e;
}

struct err *check_look(const char *path, const struct check_options *o, struct check *c)
{
	*c = (struct check){.path = path};
	rows_init(&c->cfi);
	struct err *e = open_all(c, o);

	if (!e)
		e = cfi_read(c->image, has_frames(c->image) ? NULL : c->debug, &c->cfi,
			     &c->cfi_stats);
	if (e)
		return e;
	rows_finish(&c->cfi);
	if (c->cfi.failed)
		return err_new("%s: out of memory", c->path);
	e = analysis_run(c->image, c->given, &c->analysis);
	if (!e)
		e = compare_sources(&c->analysis, &c->cfi, o->list, &c->compare);
	if (!e)
		e = count_procedures(c);
	if (!e && (o->bounds || o->stripped))
		e = match_bounds(c);
	return e;
}

void check_free(struct check *c)
{
	procedures_free(&c->truth);
	compare_free(&c->compare);
	analysis_free(&c->analysis);
	rows_free(&c->cfi);
	symbols_free(c->given);
	symbols_free(c->names);
	image_close(c->debug);
	image_close(c->image);
}

/* ---- the debug file ---- */

static struct err *save(const char *path, const struct buf *bytes)
{
	FILE *file = fopen(path, "we");
	struct stat st;
	struct err *e = NULL;
	bool is_file, good;
	if (!file)
		return err_errno("%s: cannot write", path);
	is_file = fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode);
	good = fwrite(bytes->data, 1, bytes->size, file) == bytes->size;
	if (fclose(file) != 0 || !good)
		e = err_errno("%s: cannot write", path);
	if (e && is_file) /* half a file is worse than none; a device stays */
		unlink(path);
	return e;
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;
	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

struct err *check_emit(struct check *c, const struct check_options *o)
{
	struct emit_input input = {.image = c->image, .symbols = c->names};
	struct buf bytes = {0};
	struct rows rows;
	struct err *e;
	if (same_file(c->path, o->emit))
		return err_new("%s: is the binary itself: choose another name for the debug file",
			       o->emit);
	rows_init(&rows);
	e = recipes_rows(c->image, has_frames(c->image) ? NULL : c->debug,
			 o->unwind ? RECIPES_ANALYSIS : RECIPES_AUTO, &rows);
	input.rows = &rows;
	input.start_count = trace_starts(c->analysis.trace, &input.starts);
	if (!e)
		e = emit_debug_file(&input, &bytes, &c->emitted);
	if (!e)
		e = save(o->emit, &bytes);
	buf_free(&bytes);
	rows_free(&rows);
	return e;
}
