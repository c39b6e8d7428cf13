/* SPDX-License-Identifier: Apache-2.0 */
#include "base/screen.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/term.h"

#define ENTER "\033[?1049h\033[?25l\033[?7l" /* another screen, no cursor, long lines are cut */
#define LEAVE "\033[0m\033[?7h\033[?25h\033[?1049l"
#define WRITE_WAIT_MS 1000

bool screen_possible(void)
{
	const char *terminal = getenv("TERM");
	return term_is_tty(STDOUT_FILENO) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

void screen_open(struct screen *s)
{
	*s = (struct screen){.in = STDIN_FILENO, .out = STDOUT_FILENO};
	s->utf8 = !term_wants_ascii();
	if (!term_is_tty(s->in)) {
		s->in = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
		s->own_in = s->in >= 0;
	}
	if (s->in >= 0 && tcgetattr(s->in, &s->before)) {
		if (s->own_in)
			close(s->in);
		s->in = -1;
		s->own_in = false;
	}
}

void screen_close(struct screen *s)
{
	screen_leave(s);
	if (s->own_in)
		close(s->in);
	s->in = -1;
	s->own_in = false;
}

/* A terminal that takes nothing for a while (Ctrl-S, a line that is down) is not waited for. */
static bool put(const struct screen *s, const char *bytes, size_t size)
{
	while (size) {
		struct pollfd ready = {s->out, POLLOUT, 0};
		if (poll(&ready, 1, WRITE_WAIT_MS) == 0)
			return true;
		ssize_t part = write(s->out, bytes, size);
		if (part < 0 && errno != EINTR && errno != EAGAIN)
			return false;
		if (part > 0) {
			bytes += part;
			size -= (size_t)part;
		}
	}
	return true;
}

static void set_mode(const struct screen *s, const struct termios *mode)
{
	while (s->in >= 0 && tcsetattr(s->in, TCSADRAIN, mode) && errno == EINTR)
		;
}

void screen_enter(struct screen *s)
{
	if (!s->on && s->in >= 0) /* somebody may have set it otherwise meanwhile */
		tcgetattr(s->in, &s->before);
	struct termios raw = s->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL | INLCR | IGNCR);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	set_mode(s, &raw);
	s->on = true;
	put(s, ENTER, sizeof ENTER - 1);
}

void screen_leave(struct screen *s)
{
	if (!s->on)
		return;
	s->on = false;
	put(s, LEAVE, sizeof LEAVE - 1);
	set_mode(s, &s->before);
}

void screen_size(const struct screen *s, unsigned *columns, unsigned *rows)
{
	struct winsize size = {0};
	bool known = !ioctl(s->out, TIOCGWINSZ, &size);
	*columns = known && size.ws_col ? size.ws_col : 80;
	*rows = known && size.ws_row ? size.ws_row : 24;
}

/* One write for all of it, so that nobody sees half a picture; nothing after the last line's end,
   which would scroll. */
bool screen_show(struct screen *s, const struct buf *lines)
{
	struct buf out = {0};
	const char *text = buf_text(lines);
	buf_puts(&out, "\033[?2026h\033[H");
	while (*text) {
		size_t length = strcspn(text, "\n");
		buf_append(&out, text, length);
		buf_puts(&out, "\033[K");
		text += length;
		if (*text == '\n' && *++text)
			buf_puts(&out, "\r\n");
	}
	buf_puts(&out, "\033[J\033[?2026l");
	bool good = out.failed || put(s, out.data, out.size);
	buf_free(&out);
	return good;
}

/* ---- keys ---- */

void screen_read(struct screen *s)
{
	ssize_t size;
	if (s->typed_size == sizeof s->typed) /* nobody types as fast */
		s->typed_size = 0;
	do
		size = read(s->in, s->typed + s->typed_size, sizeof s->typed - s->typed_size);
	while (size < 0 && errno == EINTR);
	if (size > 0)
		s->typed_size += (size_t)size;
}

int screen_key(struct screen *s, bool waited)
{
	size_t used;
	int key = key_decode(s->typed, s->typed_size, waited, &used);
	s->typed_size -= used;
	memmove(s->typed, s->typed + used, s->typed_size);
	return key;
}

/* "[5~", "[1;5A", "OA": parameters, then a letter or "~". */
static int decode_sequence(const char *bytes, size_t size, size_t *used)
{
	static const struct {
		char last;
		int key;
	} letters[] = {{'A', KEY_UP},   {'B', KEY_DOWN}, {'C', KEY_RIGHT},
		       {'D', KEY_LEFT}, {'H', KEY_HOME}, {'F', KEY_END}};
	static const int numbered[] = {[1] = KEY_HOME,      [4] = KEY_END,  [5] = KEY_PAGE_UP,
				       [6] = KEY_PAGE_DOWN, [7] = KEY_HOME, [8] = KEY_END};
	size_t at = 2, number = 0;
	while (at < size && (isdigit((unsigned char)bytes[at]) || bytes[at] == ';')) {
		if (number < 100 && bytes[at] != ';')
			number = number * 10 + (size_t)(bytes[at] - '0');
		at++;
	}
	if (at == size)
		return KEY_NONE;
	*used = at + 1;
	for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
		if (letters[i].last == bytes[at])
			return letters[i].key;
	bool known = bytes[at] == '~' && number < sizeof numbered / sizeof *numbered;
	return known && numbered[number] ? numbered[number] : KEY_OTHER;
}

int key_decode(const char *bytes, size_t size, bool waited, size_t *used)
{
	*used = 0;
	if (!size)
		return KEY_NONE;
	if (bytes[0] == KEY_ESCAPE && size > 1 && (bytes[1] == '[' || bytes[1] == 'O')) {
		int key = decode_sequence(bytes, size, used);
		if (key != KEY_NONE || !waited)
			return key;
		*used = size;
		return KEY_OTHER;
	}
	if (bytes[0] == KEY_ESCAPE && size == 1 && !waited)
		return KEY_NONE;
	*used = 1;
	if (bytes[0] == '\n')
		return KEY_ENTER;
	return bytes[0] == '\b' ? KEY_BACKSPACE : (unsigned char)bytes[0];
}
