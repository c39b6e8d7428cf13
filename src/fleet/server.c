/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/server.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "fleet/http.h"

#define SCHEME "http://"
#define SCHEME_TLS "https://"
#define DEFAULT_PORT "8123"
#define DEFAULT_PORT_TLS "8443"
#define DEFAULT_DATABASE "culprit"
#define CONNECT_MS 10000
#define SILENT_MS 300000
#define PATIENT_TIMES 10     /* as long may all of an answer take */
#define SAID_MAX 300         /* bytes of what a server says that people are shown */
#define CREDENTIALS_MAX 4096 /* bytes of the file */
#define READING_MAX 4000     /* bytes of a statement that stands in the target of a request */
#define WORD_MAX 256         /* of a user's name or password */

struct server {
	bool tls;
	char host[256], port[8], database[128];
	char user[WORD_MAX], password[WORD_MAX];
	char *ca;            /* a file with the certificates to trust; NULL: those of the system */
	char *site;          /* "https://host:port", as a URL begins */
	char *name, *quoted; /* site and database, for people; the database for SQL */
	int stop, silent_ms;
};

bool server_is_address(const char *text)
{
	return !strncasecmp(text, SCHEME, strlen(SCHEME)) ||
	       !strncasecmp(text, SCHEME_TLS, strlen(SCHEME_TLS));
}

const char *server_name(const struct server *s)
{
	return s->name;
}

const char *server_database(const struct server *s)
{
	return s->quoted;
}

void server_set_patience(struct server *s, int stop, int silent_ms)
{
	s->stop = stop;
	s->silent_ms = silent_ms;
}

/* ---- the address ---- */

static struct err *bad_address(const char *what)
{
	return err_new("%s: it is http://HOST:PORT/DATABASE, or https", what);
}

static bool plain(const char *text, const char *also)
{
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr(also, *text))
			return false;
	return true;
}

/* "host:port" or "[::1]:port". */
static struct err *take_host(struct server *s, const char *from, size_t size)
{
	char text[sizeof s->host + sizeof s->port];
	if (size >= sizeof text)
		return bad_address("the server's name is too long");
	memcpy(text, from, size);
	text[size] = 0;
	char *host = text, *end = text[0] == '[' ? strchr(text, ']') : NULL, *port;
	if (end) {
		host++;
		*end++ = 0;
		port = *end == ':' ? end : NULL;
		if (*end && !port)
			return bad_address("this is no address of a server");
	} else {
		port = strchr(text, ':');
	}
	if (port)
		*port++ = 0;
	if (!*host || strlen(host) >= sizeof s->host || !plain(host, end ? ":.%" : ".-_"))
		return bad_address("this is no address of a server");
	char *rest;
	unsigned long number = port ? strtoul(port, &rest, 10) : 1;
	if (port && (!isdigit((unsigned char)*port) || *rest || !number || number > 65535))
		return bad_address("the port is no number from 1 to 65535");
	strcpy(s->host, host);
	snprintf(s->port, sizeof s->port, "%s",
		 port     ? port
		 : s->tls ? DEFAULT_PORT_TLS
			  : DEFAULT_PORT);
	return NULL;
}

static struct err *take_address(struct server *s, const char *address)
{
	s->tls = !strncasecmp(address, SCHEME_TLS, strlen(SCHEME_TLS));
	if (!server_is_address(address))
		return bad_address("this is no address of a server");
	address += strlen(s->tls ? SCHEME_TLS : SCHEME);
	if (strchr(address, '@')) /* what is before it is not shown */
		return err_new("user and password do not belong into an address, where others see "
			       "them: $CULPRIT_DB_USER and $CULPRIT_DB_PASSWORD, or a file that "
			       "$CULPRIT_DB_CREDENTIALS names");
	size_t size = strcspn(address, "/");
	const char *database = address[size] && address[size + 1] ? address + size + 1
								  : DEFAULT_DATABASE;
	if (strlen(database) >= sizeof s->database || !plain(database, "_"))
		return bad_address("the name of a database has letters, digits and '_' only");
	strcpy(s->database, database);
	return take_host(s, address, size);
}

/* ---- who we are ---- */

/* What goes into a header may not end it. */
static struct err *take_word(char to[WORD_MAX], const char *what, const char *value)
{
	if (strlen(value) >= WORD_MAX)
		return err_new("the %s is too long", what);
	for (const char *c = value; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return err_new("the %s has a control character in it", what);
	strcpy(to, value);
	return NULL;
}

static struct err *take_line(struct server *s, char *line)
{
	char *name = line + strspn(line, " \t"), *value = strchr(name, '=');
	if (!*name || *name == '#')
		return NULL;
	if (!value)
		return err_new("a line is not of the form name = value");
	size_t length = (size_t)(value - name);
	value += 1 + strspn(value + 1, " \t");
	while (length && strchr(" \t", name[length - 1]))
		length--;
	if (length == 4 && !strncmp(name, "user", 4))
		return take_word(s->user, "user", value);
	if (length == 8 && !strncmp(name, "password", 8))
		return take_word(s->password, "password", value);
	return err_new("a line is neither 'user = …' nor 'password = …'");
}

/* Like ssh with a key: what others can read is no secret. */
static struct err *check_file(int fd)
{
	struct stat st;
	if (fstat(fd, &st))
		return err_errno("cannot look at it");
	if (!S_ISREG(st.st_mode))
		return err_new("not a regular file");
	if (st.st_uid != geteuid() && st.st_uid)
		return err_new("it belongs to another user");
	if (st.st_mode & 077)
		return err_new("others may read or write it: chmod 600");
	return NULL;
}

static struct err *read_credentials(struct server *s, const char *path)
{
	char text[CREDENTIALS_MAX + 1], *rest = text, *line;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return err_errno("%s: cannot open", path);
	struct err *e = check_file(fd);
	ssize_t size = e ? 0 : read(fd, text, sizeof text);
	if (size < 0)
		e = err_errno("cannot read");
	else if (size == sizeof text)
		e = err_new("it is too long");
	close(fd);
	text[e ? 0 : size] = 0;
	while (!e && (line = strsep(&rest, "\n")) != NULL) {
		line[strcspn(line, "\r")] = 0;
		e = take_line(s, line);
	}
	explicit_bzero(text, sizeof text);
	return err_context(e, "%s", path);
}

/* What the environment says holds instead of the file. */
static struct err *find_credentials(struct server *s, const char *path)
{
	const char *user = getenv("CULPRIT_DB_USER"), *password = getenv("CULPRIT_DB_PASSWORD");
	struct err *e = NULL;
	if (!path)
		path = getenv("CULPRIT_DB_CREDENTIALS");
	if (path && *path)
		e = read_credentials(s, path);
	if (!e && user)
		e = take_word(s->user, "user in $CULPRIT_DB_USER", user);
	if (!e && password)
		e = take_word(s->password, "password in $CULPRIT_DB_PASSWORD", password);
	return e;
}

/* "https://host:port"; numbers of IPv6 stand in brackets, and the interface behind them after "%25" in URLs. */
static char *make_site(const struct server *s, const char *percent)
{
	struct buf out = {0};
	bool numbers = strchr(s->host, ':');
	buf_printf(&out, "%s%s", s->tls ? SCHEME_TLS : SCHEME, numbers ? "[" : "");
	for (const char *c = s->host; *c; c++)
		buf_printf(&out, "%s%.1s", *c == '%' ? percent : "", *c == '%' ? "" : c);
	buf_printf(&out, "%s:%s", numbers ? "]" : "", s->port);
	return buf_take(&out);
}

/* Who signed certificates that the system does not know. */
static struct err *find_ca(struct server *s, const char *path)
{
	if (!path)
		path = getenv("CULPRIT_DB_CA");
	if (!path || !*path)
		return NULL;
	s->ca = strdup(path);
	return s->ca ? NULL : err_new("out of memory");
}

struct err *server_open(const char *address, const struct server_trust *trust, struct server **out)
{
	struct buf name = {0}, quoted = {0};
	struct server *s = calloc(1, sizeof *s);
	*out = NULL;
	if (!s)
		return err_new("out of memory");
	server_set_patience(s, -1, SILENT_MS);
	struct err *e = take_address(s, address);
	if (!e)
		e = find_credentials(s, trust ? trust->credentials : NULL);
	if (!e)
		e = find_ca(s, trust ? trust->ca : NULL);
	char *shown = make_site(s, "%");
	buf_printf(&name, "%s/%s", shown ? shown : "", s->database);
	free(shown);
	buf_printf(&quoted, "`%s`", s->database);
	s->site = make_site(s, "%25");
	s->name = buf_take(&name);
	s->quoted = buf_take(&quoted);
	if (!e && (!s->site || !s->name || !s->quoted))
		e = err_new("out of memory");
	if (e)
		server_close(s);
	else
		*out = s;
	return e;
}

void server_close(struct server *s)
{
	if (!s)
		return;
	explicit_bzero(s->password, sizeof s->password);
	free(s->ca);
	free(s->site);
	free(s->name);
	free(s->quoted);
	free(s);
}

/* ---- asking ---- */

void server_quote(struct buf *out, const char *text)
{
	buf_puts(out, "'");
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			buf_puts(out, "\\");
		buf_append(out, text, 1);
	}
	buf_puts(out, "'");
}

/* Who we are, as lines of a head. */
struct headers {
	char user[WORD_MAX + 32], password[WORD_MAX + 32];
};

static void put_headers(const struct server *s, struct headers *to, struct http_request *r)
{
	size_t count = 0;
	if (*s->user) {
		snprintf(to->user, sizeof to->user, "X-ClickHouse-User: %s", s->user);
		r->headers[count++] = to->user;
	}
	if (*s->password) {
		snprintf(to->password, sizeof to->password, "X-ClickHouse-Key: %s", s->password);
		r->headers[count++] = to->password;
	}
}

/* The first line of what a server says against it, as one that people can read. */
static struct err *refusal(const struct http_answer *a)
{
	char said[SAID_MAX + 1];
	size_t size = 0;
	const char *text = buf_text(&a->body), *words = strstr(text, "DB::Exception: ");
	if (words)
		text = words + strlen("DB::Exception: ");
	for (; size < SAID_MAX && text[size] && text[size] != '\n'; size++)
		said[size] = text[size];
	said[size] = 0;
	char *tail = strstr(said, ", e.what()");
	if (tail)
		*tail = 0;
	if (a->status == 401 || a->status == 403 || strstr(buf_text(&a->body), "Code: 192,") ||
	    strstr(buf_text(&a->body), "Code: 193,") || strstr(buf_text(&a->body), "Code: 516"))
		return err_new("the server does not let us in (%s): $CULPRIT_DB_USER and "
			       "$CULPRIT_DB_PASSWORD, or a file with both, say who we are",
			       *said ? said : "no reason given");
	return err_new("the server refuses with status %d: %s", a->status,
		       *said ? said : "no reason given");
}

/* `target`: what follows the site in the URL. `bytes`: NULL where nothing is sent (GET). */
static struct err *ask(struct server *s, const char *target, const void *bytes, size_t size,
		       size_t most, struct buf *answer)
{
	struct buf url = {0};
	struct headers headers;
	struct http_answer a = {.body_max = most};
	buf_printf(&url, "%s%s", s->site, target);
	struct http_request r = {.url = buf_text(&url),
				 .body = bytes,
				 .body_size = size,
				 .ca = s->ca,
				 .connect_ms = s->silent_ms < CONNECT_MS ? s->silent_ms
									 : CONNECT_MS,
				 .silent_ms = s->silent_ms,
				 .total_ms = (int64_t)s->silent_ms * PATIENT_TIMES,
				 .stop = s->stop};
	put_headers(s, &headers, &r);
	struct err *e = url.failed ? err_new("out of memory") : http_ask(&r, &a);
	if (!e && a.status != 200)
		e = refusal(&a);
	if (!e && answer) {
		buf_free(answer);
		*answer = a.body;
		a.body = (struct buf){0};
	}
	explicit_bzero(&headers, sizeof headers);
	buf_free(&url);
	buf_free(&a.body);
	return err_context(e, "%s", s->name);
}

/* Whole answers only: what goes wrong on the way becomes a status, not words among the rows. */
#define WHOLE "/?wait_end_of_query=1"

struct err *server_ask(struct server *s, const char *sql, struct buf *answer)
{
	return ask(s, WHOLE, sql, strlen(sql), SERVER_ANSWER_MAX, answer);
}

struct err *server_ask_rows(struct server *s, const char *sql, struct buf *answer)
{
	return ask(s, WHOLE, sql, strlen(sql), SERVER_ROWS_MAX, answer);
}

static struct err *ask_with(struct server *s, const char *target, const char *sql,
			    const void *bytes, size_t size, size_t most, struct buf *answer)
{
	struct buf whole = {0};
	buf_puts(&whole, target);
	http_escape(&whole, sql);
	struct err *e = whole.failed ? err_new("out of memory")
				     : ask(s, buf_text(&whole), bytes, size, most, answer);
	buf_free(&whole);
	return e;
}

/* With GET a server never does more than read, whoever asks. */
struct err *server_ask_reading(struct server *s, const char *sql, struct buf *answer)
{
	struct buf target = {0};
	if (strlen(sql) > READING_MAX)
		return err_new("the statement is longer than %d bytes", READING_MAX);
	buf_printf(&target, WHOLE "&database=%s&query=", s->database);
	struct err *e = ask_with(s, buf_text(&target), sql, NULL, 0, SERVER_ROWS_MAX, answer);
	buf_free(&target);
	return e;
}

struct err *server_insert(struct server *s, const char *sql, const void *bytes, size_t size)
{
	return ask_with(s, "/?query=", sql, bytes ? bytes : "", size, SERVER_ANSWER_MAX, NULL);
}
