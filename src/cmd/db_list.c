/* SPDX-License-Identifier: Apache-2.0 */
/* `culprit db list`: the epochs of a database. */
#include "cmd/db.h"

#include "analyze/summary.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

struct options {
	const char *file, *host;
	bool json, no_pager;
};

static double share(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static uint64_t samples_of(const struct read_epoch *x)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < x->total_count; i++)
		sum += x->totals[i].samples;
	return sum;
}

/* Of all CPUs' time. */
static double cost_percent(const struct read_epoch *x)
{
	double capacity = (double)x->busy_ms * 1e6 * x->cpus;
	return capacity > 0 ? 100 * (double)(x->cost.cpu_ns + x->cost.kernel_ns) / capacity : 0;
}

static double kernel_ns(const struct read_epoch *x)
{
	return x->cost.kernel_runs ? (double)x->cost.kernel_ns / (double)x->cost.kernel_runs : 0;
}

/* ---- text ---- */

static void put_events(const struct read_epoch *x, struct buf *out)
{
	char count[SUMMARY_COUNT_MAX], paths[SUMMARY_COUNT_MAX];
	for (size_t i = 0; i < x->total_count; i++) {
		const struct read_total *t = &x->totals[i];
		buf_printf(out, "      %s samples of %s", summary_count(count, t->samples),
			   t->event.name);
		if (i == 0)
			buf_printf(out, " at %llu Hz on %u CPUs", (unsigned long long)x->hz,
				   x->cpus);
		buf_printf(out, ", %s with their call path\n", summary_count(paths, t->walked));
		db_coverage(&t->event, t->coverage, "        ", out);
	}
}

static void put_losses(const struct read_epoch *x, struct buf *out)
{
	char count[SUMMARY_COUNT_MAX];
	uint64_t samples = samples_of(x);
	uint64_t lost = db_losses(x->losses, x->loss_count, STORE_LOST);
	uint64_t unknown = db_losses(x->losses, x->loss_count, STORE_UNKNOWN);
	buf_printf(out, "      %s lost", summary_count(count, lost));
	for (size_t i = 0, n = 0; i < x->loss_count; i++)
		if (x->losses[i].kind == STORE_LOST)
			buf_printf(out, "%s%s %s", n++ ? ", " : " (",
				   summary_count(count, x->losses[i].samples), x->losses[i].reason);
	buf_printf(out, "%s; %s unknown, %.3f%%", lost ? ")" : "", summary_count(count, unknown),
		   share(unknown, samples));
	for (size_t i = 0, n = 0; i < x->loss_count; i++)
		if (x->losses[i].kind == STORE_UNKNOWN)
			buf_printf(out, "%s%s %s", n++ ? ", " : " (",
				   summary_count(count, x->losses[i].samples), x->losses[i].reason);
	buf_puts(out, unknown ? ")\n" : "\n");
}

static void put_cost(const struct read_epoch *x, struct buf *out)
{
	char cpu[TERM_UNIT_MAX], size[TERM_UNIT_MAX];
	buf_printf(
		out,
		"      daemon: %s of CPU time, with the kernel's part %.2f%% of the machine; %s of "
		"memory",
		term_time(cpu, (double)x->cost.cpu_ns / 1e9), cost_percent(x),
		term_size(size, x->cost.memory));
	if (x->cost.kernel_runs)
		buf_printf(out, "; %.0f ns in the kernel per sample", kernel_ns(x));
	buf_puts(out, "\n");
}

static void put_epoch(const struct read_epoch *x, struct buf *out)
{
	char from[DB_TIME_MAX], to[DB_TIME_MAX], length[DB_TIME_MAX];
	buf_printf(out, "epoch %lld  %s to %s (%s)  ", (long long)x->id, db_time(from, x->start_ms),
		   db_time(to, x->end_ms), db_length(length, x->end_ms - x->start_ms));
	db_name(out, x->host);
	buf_puts(out, ", ");
	db_name(out, x->kernel);
	if (x->joined > 1)
		buf_printf(out, ", %llu epochs joined", (unsigned long long)x->joined);
	buf_puts(out, "\n");
	put_events(x, out);
	if (x->spans) {
		buf_printf(out, "      %llu spans of ", (unsigned long long)x->spans);
		if (x->finest_ms != x->coarsest_ms)
			buf_printf(out, "%s to ", db_length(from, x->finest_ms));
		buf_printf(out, "%s\n", db_length(to, x->coarsest_ms));
	} else {
		buf_puts(out, "      nothing yet\n");
	}
	put_losses(x, out);
	put_cost(x, out);
	if (*x->note)
		buf_printf(out, "      %s\n", x->note);
}

static struct err *show_text(const struct options *o, const struct read_epochs *epochs)
{
	struct buf text = {0};
	char size[TERM_UNIT_MAX];
	buf_printf(&text, "%s: %s, %zu epoch%s\n", o->file, term_size(size, epochs->bytes),
		   epochs->count, epochs->count == 1 ? "" : "s");
	for (size_t i = 0; i < epochs->count; i++)
		put_epoch(&epochs->items[i], &text);
	return db_page(&text, o->no_pager);
}

/* ---- JSON ---- */

static void put_event_json(const struct read_total *t, struct json *j)
{
	json_begin_object(j);
	json_put_string(j, "name", t->event.name);
	json_put_string(j, "unit", t->event.unit);
	json_put_u64(j, "period", coverage_period(t->coverage, t->event.period));
	json_put_double(j, "counted", coverage_share(t->coverage));
	json_put_u64(j, "every", t->event.every);
	json_put_u64(j, "samples", t->samples);
	json_put_u64(j, "walked", t->walked);
	json_end_object(j);
}

static void put_epoch_json(const struct read_epoch *x, struct json *j)
{
	json_begin_object(j);
	json_put_u64(j, "epoch", (uint64_t)x->id);
	json_put_double(j, "start", (double)x->start_ms / 1000);
	json_put_double(j, "end", (double)x->end_ms / 1000);
	json_put_string(j, "host", x->host);
	json_put_string(j, "kernel", x->kernel);
	json_put_string(j, "machine", x->machine);
	json_put_string(j, "cpu", x->cpu);
	json_put_u64(j, "cpus", x->cpus);
	json_put_u64(j, "hz", x->hz);
	json_put_string(j, "version", x->version);
	json_put_string(j, "note", x->note);
	json_put_u64(j, "joined", x->joined);
	json_put_u64(j, "spans", x->spans);
	json_put_double(j, "finest", (double)x->finest_ms / 1000);
	json_put_double(j, "coarsest", (double)x->coarsest_ms / 1000);
	json_key(j, "events");
	json_begin_array(j);
	for (size_t i = 0; i < x->total_count; i++)
		put_event_json(&x->totals[i], j);
	json_end_array(j);
	json_put_u64(j, "samples", samples_of(x));
	db_losses_json(x->losses, x->loss_count, j);
	json_put_double(j, "unknown_share",
			share(db_losses(x->losses, x->loss_count, STORE_UNKNOWN), samples_of(x)) /
				100);
	json_key(j, "daemon");
	json_begin_object(j);
	json_put_double(j, "cpu_seconds", (double)x->cost.cpu_ns / 1e9);
	json_put_double(j, "share", cost_percent(x) / 100);
	json_put_u64(j, "memory", x->cost.memory);
	json_put_u64(j, "kernel_ns", x->cost.kernel_ns);
	json_put_u64(j, "kernel_runs", x->cost.kernel_runs);
	json_end_object(j);
	json_end_object(j);
}

static void show_json(const struct options *o, const struct read_epochs *epochs)
{
	struct json j = json_to_file(stdout);
	json_begin_object(&j);
	json_put_u64(&j, "culprit", 1);
	json_put_string(&j, "database", o->file);
	json_put_u64(&j, "bytes", epochs->bytes);
	json_key(&j, "epochs");
	json_begin_array(&j);
	for (size_t i = 0; i < epochs->count; i++)
		put_epoch_json(&epochs->items[i], &j);
	json_end_array(&j);
	json_end_object(&j);
	json_newline(&j);
}

static int run(const struct options *o)
{
	struct read_epochs epochs = {0};
	struct err *e = db_epochs(o->file, o->host, &epochs);
	if (!e && o->json)
		show_json(o, &epochs);
	else if (!e)
		e = show_text(o, &epochs);
	read_epochs_free(&epochs);
	return e ? cmd_fail("db list", e) : cmd_finish("db list", CMD_OK);
}

int db_list(int argc, char **argv)
{
	struct options o = {0};
	const struct arg options[] = {
		DB_FILE_OPTION(o.file),
		{0, "host", "NAME", "only of this host", ARG_STRING, &o.host},
		OPTIONS_OF_OUTPUT(o),
		{0},
	};
	struct args args = {
		.command = "db list",
		.usage = "[options]",
		.summary = "Shows the epochs of the database: when, how many samples and losses, "
			   "what collecting cost.",
		.options = options,
		.examples = "  culprit db list\n",
	};
	int status = cmd_parse(&args, argc, argv);
	if (status >= 0)
		return status;
	if (args.count)
		return cmd_misused("db list", "unexpected argument '%s'", args.operands[0]);
	if (!o.file)
		o.file = store_default_path();
	return run(&o);
}
