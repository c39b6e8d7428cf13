/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text.h"

#include <stdint.h>
#include <string.h>

#include "analyze/strings.h"
#include "base/buf.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* The bytes of the character at s and its number; 0 where it is none (RFC 3629). The NUL at the end
   is no continuation, so that nothing behind it is read. */
static size_t decode(const unsigned char *s, uint32_t *character)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = s[0] < 0x80   ? 1
			: s[0] < 0xc2 ? 0
			: s[0] < 0xe0 ? 2
			: s[0] < 0xf0 ? 3
			: s[0] < 0xf5 ? 4
				      : 0;
	*character = length == 1 ? s[0] : s[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*character = *character << 6 | (s[i] & 0x3fu);
	}
	if (length > 1 && (*character < least[length] || *character > 0x10ffff ||
			   (*character >= 0xd800 && *character <= 0xdfff)))
		return 0;
	return length;
}

/* C0 and C1 controls, and what ends a line elsewhere. */
static int is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029;
}

void text_clean(const char *text, const char *avoid, char instead, struct buf *out)
{
	const unsigned char *s = (const unsigned char *)text, *plain = s;
	while (*s) {
		uint32_t c;
		size_t length = decode(s, &c);
		int avoided = length == 1 && strchr(avoid, *s);
		if (length && !avoided && !is_control(c)) {
			s += length;
			continue;
		}
		buf_append(out, plain, (size_t)(s - plain));
		if (!length)
			buf_puts(out, REPLACEMENT);
		else
			buf_append(out, avoided ? &instead : "?", 1);
		s += length ? length : 1;
		plain = s;
	}
	buf_append(out, plain, (size_t)(s - plain));
}

uint32_t text_number(struct strings *strings, const char *text)
{
	struct buf clean = {0};
	text_clean(text ? text : "", "", 0, &clean);
	uint32_t number = strings_add(strings, buf_text(&clean));
	strings->failed |= clean.failed;
	buf_free(&clean);
	return number;
}
