/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <string.h>

size_t utf8_decode(const char *text, size_t size, uint32_t *character)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *s = (const unsigned char *)text;
	size_t length = !size         ? 0
			: s[0] < 0x80 ? 1
			: s[0] < 0xc2 ? 0
			: s[0] < 0xe0 ? 2
			: s[0] < 0xf0 ? 3
			: s[0] < 0xf5 ? 4
				      : 0;
	if (!length || length > size)
		return 0;
	*character = length == 1 ? s[0] : s[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*character = *character << 6 | (s[i] & 0x3fu);
	}
	return *character < least[length] || *character > 0x10ffff ||
			       (*character >= 0xd800 && *character < 0xe000)
		       ? 0
		       : length;
}

size_t utf8_encode(uint32_t c, char *to)
{
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = 0xfffd;
	size_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
	static const uint8_t first[] = {0, 0xc0, 0xe0, 0xf0};
	for (size_t i = more; i; i--, c >>= 6)
		to[i] = (char)(0x80 | (c & 0x3f));
	to[0] = (char)(first[more] | c);
	return more + 1;
}

bool utf8_is_harmful(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200e && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

void utf8_tame(char *text)
{
	size_t size = strlen(text);
	while (size) {
		uint32_t character;
		size_t length = utf8_decode(text, size, &character);
		size_t step = length ? length : 1;
		if (!length || utf8_is_harmful(character))
			memset(text, '?', step);
		text += step;
		size -= step;
	}
}

size_t utf8_count(const char *text)
{
	size_t count = 0;
	for (; *text; text++)
		count += utf8_begins(*text);
	return count;
}

size_t utf8_at(const char *text, size_t index)
{
	size_t at = 0;
	for (; text[at]; at++)
		if (utf8_begins(text[at]) && !index--)
			break;
	return at;
}

size_t utf8_draw_ascii(char *text, size_t size)
{
	/* All have three bytes. */
	static const char marks[][4] = {"│", "├", "└", "─", "╭", "↳", "→", "…"};
	static const char ascii[] = "||`-+>>~";
	size_t used = 0;
	for (size_t at = 0; at < size; used++) {
		size_t i = size - at < 3 ? sizeof marks / sizeof *marks : 0;
		while (i < sizeof marks / sizeof *marks && memcmp(text + at, marks[i], 3) != 0)
			i++;
		bool found = i < sizeof marks / sizeof *marks;
		text[used] = found ? ascii[i] : text[at];
		at += found ? 3 : 1;
	}
	return used;
}
