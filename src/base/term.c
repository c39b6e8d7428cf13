/* SPDX-License-Identifier: Apache-2.0 */
#include "base/term.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"

#define PROGRESS_AFTER_NS 500000000u
#define PROGRESS_EVERY_NS 100000000u

bool term_is_tty(int fd)
{
	return isatty(fd) == 1;
}

static bool env_set(const char *name)
{
	const char *value = getenv(name);
	return value && *value;
}

bool term_colour(int fd)
{
	const char *force = getenv("CLICOLOR_FORCE"), *terminal = getenv("TERM");
	if (env_set("NO_COLOR"))
		return false;
	if (force && *force && strcmp(force, "0"))
		return true;
	return term_is_tty(fd) && terminal && strcmp(terminal, "dumb");
}

bool term_wants_ascii(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (env_set(names[i])) {
			const char *value = getenv(names[i]);
			return !strcasestr(value, "utf-8") && !strcasestr(value, "utf8");
		}
	return false;
}

const char *term_style(int fd, enum term_style style)
{
	static const char *const sequences[] = {
		[TERM_PLAIN] = "\033[0m", [TERM_BOLD] = "\033[1m",   [TERM_DIM] = "\033[2m",
		[TERM_RED] = "\033[31m",  [TERM_GREEN] = "\033[32m", [TERM_YELLOW] = "\033[33m",
		[TERM_CYAN] = "\033[36m",
	};
	return term_colour(fd) ? sequences[style] : "";
}

const char *term_text(const char *text)
{
	static struct buf clean[8];
	static unsigned next;
	struct buf *b = &clean[next++ % 8];
	b->size = 0;
	buf_put_clean(b, text, strlen(text));
	return buf_text(b);
}

unsigned term_width(int fd)
{
	struct winsize size;
	if (!ioctl(fd, TIOCGWINSZ, &size) && size.ws_col)
		return size.ws_col;
	return 80;
}

/* Three digits that matter: "820", "41.3", "1.40". */
static const char *with_unit(char out[TERM_UNIT_MAX], double value, const char *unit)
{
	int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
	snprintf(out, TERM_UNIT_MAX, "%.*f %s", decimals, value, unit);
	return out;
}

const char *term_size(char out[TERM_UNIT_MAX], uint64_t bytes)
{
	static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
	double value = (double)bytes / 1000;
	unsigned i = 0;
	if (bytes < 1000) {
		snprintf(out, TERM_UNIT_MAX, "%" PRIu64 " B", bytes);
		return out;
	}
	for (; value >= 999.5 && i < 5; i++)
		value /= 1000;
	return with_unit(out, value, units[i]);
}

const char *term_time(char out[TERM_UNIT_MAX], double seconds)
{
	if (!(seconds > 0) || !isfinite(seconds)) {
		snprintf(out, TERM_UNIT_MAX, "0 s");
	} else if (seconds >= 1e9) {
		snprintf(out, TERM_UNIT_MAX, "%.2e s", seconds);
	} else if (seconds >= 3600) {
		snprintf(out, TERM_UNIT_MAX, "%u h %02u min", (unsigned)seconds / 3600,
			 (unsigned)seconds / 60 % 60);
	} else if (seconds >= 99.95) {
		snprintf(out, TERM_UNIT_MAX, "%u min %02u s", (unsigned)seconds / 60,
			 (unsigned)seconds % 60);
	} else if (seconds >= 0.9995) {
		return with_unit(out, seconds, "s");
	} else if (seconds >= 0.9995e-3) {
		return with_unit(out, seconds * 1e3, "ms");
	} else if (seconds >= 0.9995e-6) {
		return with_unit(out, seconds * 1e6, "us");
	} else {
		return with_unit(out, seconds * 1e9, "ns");
	}
	return out;
}

static bool progress_forbidden;

void term_progress_forbid(void)
{
	progress_forbidden = true;
}

void term_progress_start(struct term_progress *p, const char *what)
{
	*p = (struct term_progress){.what = what, .start_ns = now_ns()};
	p->enabled = !progress_forbidden && term_is_tty(STDERR_FILENO);
}

void term_progress_update(struct term_progress *p, uint64_t done, uint64_t total)
{
	uint64_t now;
	if (!p->enabled)
		return;
	now = now_ns();
	if (now - p->start_ns < PROGRESS_AFTER_NS || now - p->shown_ns < PROGRESS_EVERY_NS)
		return;
	p->shown_ns = now;
	if (total)
		fprintf(stderr, "\r\033[K%s: %" PRIu64 " of %" PRIu64, p->what, done, total);
	else
		fprintf(stderr, "\r\033[K%s: %" PRIu64, p->what, done);
	fflush(stderr);
}

void term_progress_end(struct term_progress *p)
{
	if (p->shown_ns)
		fputs("\r\033[K", stderr);
	p->enabled = false;
}
