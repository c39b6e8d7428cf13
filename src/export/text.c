/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text.h"

#include <stdint.h>
#include <string.h>

#include "analyze/strings.h"
#include "base/buf.h"
#include "base/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

void text_clean(const char *text, const char *avoid, char instead, struct buf *out)
{
	const char *s = text, *plain = s, *end = s + strlen(s);
	while (*s) {
		uint32_t c;
		size_t length = utf8_decode(s, (size_t)(end - s), &c);
		int avoided = length == 1 && strchr(avoid, *s);
		if (length && !avoided && !utf8_is_harmful(c)) {
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
