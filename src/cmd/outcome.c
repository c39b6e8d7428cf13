/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/outcome.h"

#include <string.h>

#include "analyze/summary.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "profile/output.h"
#include "profile/profile.h"

void outcome_json(const struct outcome *o, FILE *out)
{
	struct json j = json_to_file(out);
	struct summary summary;
	summary_make(o->profile, 0, &summary);
	json_begin_object(&j);
	json_put_u64(&j, "culprit", 1);
	json_put_string(&j, "file", o->output ? o->path : NULL);
	json_put_u64(&j, "bytes", o->output ? output_size(o->output) : 0);
	json_key(&j, "summary");
	json_begin_object(&j);
	summary_json(&summary, o->profile, o->notes, &j);
	json_end_object(&j);
	summary_json_metrics(o->profile, &j);
	json_end_object(&j);
	json_newline(&j);
}

void outcome_put_notes(const char *notes, const char *name, struct buf *out)
{
	while (*notes) {
		size_t length = strcspn(notes, "\n");
		buf_printf(out, "%*s%.*s\n", (int)strlen(name), "", (int)length, notes);
		notes += length + (notes[length] == '\n');
	}
}

void outcome_put_paths_file(const char *name, const char *path, const struct output *output,
			    struct buf *out)
{
	char size[TERM_UNIT_MAX];
	buf_printf(out, "%*s%s (%s)   next: culprit report --by=path %s\n", (int)strlen(name), "",
		   path, term_size(size, output_size(output)), path);
}

int outcome_check(const char *command, bool json, bool quiet)
{
	return json && quiet ? cmd_misused(command, "either --json or -q, not both") : -1;
}
