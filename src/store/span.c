/* SPDX-License-Identifier: Apache-2.0 */
#include "store/span.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"

#define TEXT_MAX 128
#define MINUTE_MS INT64_C(60000)
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)
#define ALL_MS (INT64_MAX / 4)

/* One side: a day, a time of day, both; or a moment before now. */
struct side {
	bool empty, has_day, has_clock, has_moment;
	struct tm day;
	int second; /* of the day */
	int64_t moment_ms;
};

struct reader {
	const char *at;
	int64_t now_ms;
};

static void skip_spaces(struct reader *r)
{
	while (isspace((unsigned char)*r->at))
		r->at++;
}

static bool word(struct reader *r, const char *wanted)
{
	size_t length = strlen(wanted);
	if (strncasecmp(r->at, wanted, length) != 0 || isalnum((unsigned char)r->at[length]))
		return false;
	r->at += length;
	return true;
}

/* Between `least` and `most` digits. */
static bool number(struct reader *r, int least, int most, int64_t *out)
{
	int digits = 0;
	*out = 0;
	while (digits < most && isdigit((unsigned char)r->at[digits]))
		*out = *out * 10 + (r->at[digits++] - '0');
	if (digits < least)
		return false;
	r->at += digits;
	return true;
}

static struct tm day_of(int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm day;
	localtime_r(&seconds, &day);
	day.tm_hour = day.tm_min = day.tm_sec = 0;
	return day;
}

/* Days have 23 to 25 hours: mktime knows. */
static int64_t moment(const struct tm *day, int days, int second)
{
	struct tm t = *day;
	t.tm_mday += days;
	t.tm_hour = second / 3600;
	t.tm_min = second / 60 % 60;
	t.tm_sec = second % 60;
	t.tm_isdst = -1;
	return (int64_t)mktime(&t) * 1000;
}

static bool read_date(struct reader *r, struct side *out)
{
	struct reader saved = *r;
	int64_t year, month, day;
	if (number(r, 4, 4, &year) && *r->at == '-' && (r->at++, number(r, 1, 2, &month)) &&
	    *r->at == '-' && (r->at++, number(r, 1, 2, &day)) && month >= 1 && month <= 12 &&
	    day >= 1 && day <= 31) {
		out->day = (struct tm){
			.tm_year = (int)year - 1900, .tm_mon = (int)month - 1, .tm_mday = (int)day};
		struct tm normal = out->day;
		normal.tm_isdst = -1;
		mktime(&normal);
		out->has_day = normal.tm_mday == (int)day; /* no 31st of February */
		return out->has_day;
	}
	*r = saved;
	return false;
}

static bool read_clock(struct reader *r, struct side *out)
{
	struct reader saved = *r;
	int64_t hour, minute, second = 0;
	if (number(r, 1, 2, &hour) && *r->at == ':' && (r->at++, number(r, 2, 2, &minute)) &&
	    (*r->at != ':' || (r->at++, number(r, 2, 2, &second))) && hour <= 24 && minute < 60 &&
	    second < 60 && (hour < 24 || (!minute && !second))) {
		out->has_clock = true;
		out->second = (int)(hour * 3600 + minute * 60 + second);
		return true;
	}
	*r = saved;
	return false;
}

static int64_t unit_ms(char letter)
{
	switch (letter) {
	case 's':
		return 1000;
	case 'm':
		return MINUTE_MS;
	case 'h':
		return HOUR_MS;
	case 'd':
		return DAY_MS;
	case 'w':
		return 7 * DAY_MS;
	default:
		return 0;
	}
}

/* "-7d" is a day where a time of day follows, else a moment. */
static bool read_ago(struct reader *r, struct side *out)
{
	struct reader saved = *r;
	int64_t count, unit;
	r->at += *r->at == '-';
	if (number(r, 1, 6, &count) && (unit = unit_ms(*r->at)) &&
	    !isalnum((unsigned char)r->at[1])) {
		r->at++;
		skip_spaces(r);
		if (unit % DAY_MS == 0 && isdigit((unsigned char)*r->at)) {
			struct tm today = day_of(r->now_ms);
			out->day = day_of(moment(&today, -(int)(count * (unit / DAY_MS)), 43200));
			out->has_day = true;
		} else {
			out->has_moment = true;
			out->moment_ms = r->now_ms - count * unit;
		}
		return true;
	}
	*r = saved;
	return false;
}

static bool read_side(const char *text, int64_t now_ms, struct side *out)
{
	struct reader r = {text, now_ms};
	*out = (struct side){0};
	skip_spaces(&r);
	if (!*r.at) {
		out->empty = true;
		return true;
	}
	if (word(&r, "now")) {
		out->has_moment = true;
		out->moment_ms = now_ms;
	} else if (word(&r, "today")) {
		out->has_day = true;
		out->day = day_of(now_ms);
	} else if (word(&r, "yesterday")) {
		struct tm today = day_of(now_ms);
		out->has_day = true;
		out->day = day_of(moment(&today, -1, 43200));
	} else if (!read_date(&r, out)) {
		read_ago(&r, out);
	}
	if (*r.at == 'T' && out->has_day)
		r.at++;
	skip_spaces(&r);
	if (!out->has_moment)
		read_clock(&r, out);
	skip_spaces(&r);
	return !*r.at && (out->has_day || out->has_clock || out->has_moment);
}

/* Splits at "..", else at the dash between two times of day. */
static char *split(char *text)
{
	struct side side;
	char *dots = strstr(text, ".."), *dash = strrchr(text, '-');
	if (dots) {
		*dots = 0;
		return dots + 2;
	}
	if (!dash || dash == text || !memchr(text, ':', (size_t)(dash - text)))
		return NULL;
	struct reader r = {dash + 1, 0};
	skip_spaces(&r);
	if (!read_clock(&r, &side))
		return NULL;
	*dash = 0;
	return dash + 1;
}

static int64_t start_of(const struct side *side, const struct tm *today)
{
	if (side->empty)
		return 0;
	if (side->has_moment)
		return side->moment_ms;
	return moment(side->has_day ? &side->day : today, 0, side->second);
}

static int64_t end_of(const struct side *side, const struct side *start, const struct tm *today,
		      int64_t from_ms, int64_t now_ms)
{
	if (side->empty)
		return now_ms;
	if (side->has_moment)
		return side->moment_ms;
	if (side->has_day)
		return moment(&side->day, side->has_clock ? 0 : 1, side->second);
	int64_t end = moment(start->has_day ? &start->day : today, 0, side->second);
	if (end <= from_ms && start->has_clock)
		end = moment(start->has_day ? &start->day : today, 1, side->second);
	return end;
}

struct err *span_parse(const char *text, int64_t now_ms, int64_t *from_ms, int64_t *to_ms)
{
	char copy[TEXT_MAX];
	struct side start, end;
	struct tm today = day_of(now_ms);
	size_t length = strlen(text);
	if (!strcasecmp(text, "all") || !length) {
		*from_ms = 0;
		*to_ms = ALL_MS;
		return NULL;
	}
	if (length >= sizeof copy)
		return err_new("that is no span of time");
	memcpy(copy, text, length + 1);
	char *rest = split(copy);
	if (!read_side(copy, now_ms, &start) || !read_side(rest ? rest : "", now_ms, &end) ||
	    (start.empty && end.empty))
		return err_new("'%s' is no span of time: try yesterday 14:00-15:00, "
			       "2026-11-14 14:00..15:00, today, -1h or all",
			       text);
	if (!rest && start.has_clock)
		return err_new("'%s' has no end: try %s..15:00", text, text);
	*from_ms = start_of(&start, &today);
	*to_ms = !rest && start.has_day ? moment(&start.day, 1, 0)
					: end_of(&end, &start, &today, *from_ms, now_ms);
	return *to_ms > *from_ms ? NULL : err_new("'%s' ends before it begins", text);
}
