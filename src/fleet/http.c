/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/http.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "fleet/curl.h"

#define LOOK_MS 1000 /* the longest wait between two checks of the times */

struct talk {
	const struct http_request *request;
	struct http_answer *answer;
	const struct curl_library *curl;
	CURL *easy;
	CURLM *multi;
	struct curl_slist *headers;
	char why[CURL_ERROR_SIZE];
	struct err *problem; /* why a callback ended it; NULL: none did */
	int64_t until_ms;    /* when all of it must be over */
	int64_t moved_ms;    /* when bytes went or came last */
	uint64_t sent, come; /* bytes */
	uint64_t head;       /* bytes of the answer that are not its body */
	int64_t paced_ms;    /* when the present window of the least pace began; 0: there is none */
	uint64_t paced;      /* bytes that had moved by then */
};

/* ---- what comes ---- */

/* The first lines of a refusal say why; the rest is read and dropped. */
static void take_refusal(struct http_answer *a, const char *bytes, size_t size)
{
	size_t room = HTTP_REFUSAL_MAX - a->body.size;
	buf_append(&a->body, bytes, size < room ? size : room);
}

static size_t take_body(char *bytes, size_t one, size_t count, void *context)
{
	struct talk *t = context;
	struct http_answer *a = t->answer;
	size_t size = one * count;
	long status = 0;
	t->come += size;
	t->curl->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200) {
		take_refusal(a, bytes, size);
		return size;
	}
	if (size > a->body_max - a->body.size) {
		bool large = a->body_max >= 1u << 20;
		t->problem = err_new("the answer is longer than the %zu %s that are read of one",
				     large ? a->body_max >> 20 : a->body_max,
				     large ? "MB" : "bytes");
		return 0; /* ends it */
	}
	buf_append(&a->body, bytes, size);
	if (!a->body.failed)
		return size;
	t->problem = err_new("out of memory");
	return 0;
}

static size_t take_head(char *bytes, size_t one, size_t count, void *context)
{
	struct talk *t = context;
	(void)bytes;
	t->come += one * count;
	t->head += one * count;
	if (t->head <= HTTP_HEAD_MAX)
		return one * count;
	t->problem = err_new("the head of the answer is too long");
	return 0; /* ends it */
}

static int on_progress(void *context, curl_off_t total, curl_off_t come, curl_off_t to_send,
		       curl_off_t sent)
{
	struct talk *t = context;
	(void)total;
	(void)come;
	(void)to_send;
	t->sent = sent > 0 ? (uint64_t)sent : 0;
	return 0;
}

/* ---- how long it takes ---- */

/* How long nothing may move. Before its answer a server may be silent for long, within the answer only for a
   short time. */
static int window_of(const struct talk *t)
{
	int silent = t->request->silent_ms;
	return t->come && silent > HTTP_PACE_MS ? HTTP_PACE_MS : silent;
}

static struct err *check_pace(struct talk *t, uint64_t moved, int64_t now)
{
	bool thinking = !t->come && t->sent >= t->request->body_size;
	if (thinking || !t->paced_ms || moved - t->paced >= HTTP_PACE_BYTES) {
		t->paced_ms = thinking ? 0 : now;
		t->paced = moved;
		return NULL;
	}
	return now - t->paced_ms <= window_of(t)
		       ? NULL
		       : err_new("it is too slow: less than %d KB in %.3g s", HTTP_PACE_BYTES >> 10,
				 window_of(t) / 1e3);
}

static struct err *check_times(struct talk *t, uint64_t *before)
{
	int64_t now = (int64_t)now_ms();
	uint64_t moved = t->sent + t->come;
	if (moved != *before)
		t->moved_ms = now;
	*before = moved;
	if (now >= t->until_ms)
		return err_new("it takes too long");
	if (now - t->moved_ms >= window_of(t))
		return err_new("no answer in %.3g s", window_of(t) / 1e3);
	return moved ? check_pace(t, moved, now) : NULL;
}

/* How long we may wait until a time is over. */
static int wait_of(const struct talk *t)
{
	int64_t now = (int64_t)now_ms(), silent = t->moved_ms + window_of(t) - now;
	int64_t left = t->until_ms - now < silent ? t->until_ms - now : silent;
	return left < 0 ? 0 : left < LOOK_MS ? (int)left : LOOK_MS;
}

/* ---- asking ---- */

static struct err *run(struct talk *t)
{
	int running = 1;
	uint64_t moved = 0;
	while (running) {
		struct curl_waitfd stop = {t->request->stop, CURL_WAIT_POLLIN, 0};
		if (t->curl->multi_perform(t->multi, &running))
			return err_new("libcurl cannot go on");
		if (!running)
			break;
		struct err *e = check_times(t, &moved);
		if (e)
			return e;
		t->curl->multi_poll(t->multi, &stop, t->request->stop >= 0, wait_of(t), NULL);
		if (stop.revents)
			return err_new("told to stop");
	}
	return NULL;
}

/* Says what went wrong, and what to do about it if that is not clear. */
static struct err *explain(const struct talk *t, CURLcode code)
{
	const char *why = *t->why ? t->why : t->curl->easy_strerror(code);
	long number = 0;
	switch (code) {
	case CURLE_PEER_FAILED_VERIFICATION:
		return err_new(
			"the server cannot prove who it is: %s. $CULPRIT_DB_CA, or the setting "
			"fleet-ca, names a file with the certificate of whoever signed "
			"the server's",
			why);
	case CURLE_SSL_CACERT_BADFILE:
		return err_new("the file with certificates cannot be used: %s", why);
	case CURLE_COULDNT_CONNECT:
		t->curl->easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &number);
		errno = (int)number;
		return number ? err_errno("cannot connect") : err_new("cannot connect: %s", why);
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		return err_new("cannot find its address: %s", why);
	case CURLE_GOT_NOTHING:
		return err_new("the server ended the connection without an answer");
	case CURLE_PARTIAL_FILE:
		return err_new("the answer is cut short");
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY:
		return err_new("what answers is no HTTP server: %s", why);
	default:
		return err_new("%s", why);
	}
}

static struct err *result_of(struct talk *t)
{
	int left;
	long status = 0;
	const CURLMsg *message = t->curl->multi_info_read(t->multi, &left);
	if (t->problem)
		return t->problem;
	t->curl->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	t->answer->status = (int)status;
	CURLcode code = message ? message->data.result : CURLE_RECV_ERROR;
	/* A server that refuses need not read all, and its answer says more than a broken pipe. */
	if (!code || (code == CURLE_SEND_ERROR && status >= 400))
		return t->answer->body.failed ? err_new("out of memory") : NULL;
	return explain(t, code);
}

#define SET(option, value) good = good && !t->curl->easy_setopt(t->easy, option, value)

static bool set_options(struct talk *t)
{
	const struct http_request *r = t->request;
	bool good = true;
	SET(CURLOPT_URL, r->url);
#if LIBCURL_VERSION_NUM >= 0x075500
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
#else
	SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_FRESH_CONNECT, 1L);
	SET(CURLOPT_FORBID_REUSE, 1L);
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)r->connect_ms);
	SET(CURLOPT_ERRORBUFFER, t->why);
	SET(CURLOPT_HTTPHEADER, t->headers);
	SET(CURLOPT_WRITEFUNCTION, take_body);
	SET(CURLOPT_WRITEDATA, t);
	SET(CURLOPT_HEADERFUNCTION, take_head);
	SET(CURLOPT_HEADERDATA, t);
	SET(CURLOPT_XFERINFOFUNCTION, on_progress);
	SET(CURLOPT_XFERINFODATA, t);
	SET(CURLOPT_NOPROGRESS, 0L);
	if (r->ca)
		SET(CURLOPT_CAINFO, r->ca);
	if (r->body) {
		SET(CURLOPT_POSTFIELDS, r->body);
		SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_size);
	}
	return good;
}

/* No "Expect" header: with it we would wait for the server before we send the body. "Connection: close": there is
   one question for each connection. */
static bool make_headers(struct talk *t)
{
	struct curl_slist *first = t->curl->slist_append(NULL, "Expect:");
	t->headers = first ? t->curl->slist_append(first, "Connection: close") : NULL;
	if (!t->headers)
		t->curl->slist_free_all(first);
	for (size_t i = 0; t->headers && i < HTTP_HEADERS_MAX && t->request->headers[i]; i++) {
		struct curl_slist *more = t->curl->slist_append(t->headers, t->request->headers[i]);
		if (!more)
			return false;
	}
	return t->headers;
}

/* One of them may contain the password. */
static void forget_headers(struct talk *t)
{
	for (struct curl_slist *at = t->headers; at; at = at->next)
		explicit_bzero(at->data, strlen(at->data));
	t->curl->slist_free_all(t->headers);
}

static struct err *talk(struct talk *t)
{
	t->easy = t->curl->easy_init();
	t->multi = t->curl->multi_init();
	if (!t->easy || !t->multi || !make_headers(t) || !set_options(t) ||
	    t->curl->multi_add_handle(t->multi, t->easy))
		return err_new("libcurl refuses to ask");
	t->moved_ms = (int64_t)now_ms();
	t->until_ms = t->moved_ms + t->request->total_ms;
	struct err *e = run(t);
	if (e)
		err_free(t->problem);
	else
		e = result_of(t);
	t->curl->multi_remove_handle(t->multi, t->easy);
	return e;
}

struct err *http_ask(const struct http_request *request, struct http_answer *answer)
{
	struct talk t = {.request = request, .answer = answer};
	struct err *e = curl_load(&t.curl);
	if (e)
		return e;
	e = talk(&t);
	if (t.easy)
		t.curl->easy_cleanup(t.easy);
	if (t.multi)
		t.curl->multi_cleanup(t.multi);
	forget_headers(&t);
	return e;
}

void http_escape(struct buf *out, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~";
	for (; *text; text++) {
		if (strchr(plain, *text))
			buf_append(out, text, 1);
		else
			buf_printf(out, "%%%02X", (unsigned char)*text);
	}
}
