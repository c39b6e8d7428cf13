/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/utf8.h"

#include <string.h>

#include "base/buf.h"

static void characters_of_all_lengths(void **state)
{
	static const struct {
		const char *text;
		uint32_t character;
	} right[] = {{"a", 'a'},
		     {"\xc3\xa4", 0xe4},
		     {"\xe2\x82\xac", 0x20ac},
		     {"\xf0\x9f\x94\xa5", 0x1f525}};
	static const char *const wrong[] = {"\x80",
					    "\xff",
					    "\xc3",
					    "\xc0\xaf",
					    "\xe0\x80\xaf",
					    "\xed\xa0\x80",
					    "\xe2\x82",
					    "\xf4\x90\x80\x80",
					    "\xf5\x80\x80\x80",
					    "\xc3z"};
	uint32_t c;
	(void)state;
	for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
		size_t length = strlen(right[i].text);
		assert_int_equal(utf8_decode(right[i].text, length, &c), length);
		assert_int_equal(c, right[i].character);
		assert_int_equal(utf8_decode(right[i].text, length - 1, &c), 0); /* cut */
	}
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(utf8_decode(wrong[i], strlen(wrong[i]), &c), 0);
}

static void check(const char *text, const char *in_place, const char *put)
{
	char copy[64];
	struct buf b = {0};
	strcpy(copy, text);
	utf8_tame(copy);
	assert_string_equal(copy, in_place);
	buf_put_clean(&b, text, strlen(text));
	assert_string_equal(buf_text(&b), put);
	buf_free(&b);
}

static void nothing_steers_a_terminal(void **state)
{
	(void)state;
	check("plain na\xc3\xafve", "plain na\xc3\xafve", "plain na\xc3\xafve");
	check("a\x1b[31mb", "a?[31mb", "a?[31mb");
	check("a\x9b"
	      "31mb",
	      "a?31mb", "a?31mb"); /* CSI as one byte */
	check("a\xc2\x9b"
	      "31mb",
	      "a??31mb", "a?31mb"); /* and as a character */
	check("a\nb\x7f", "a?b?", "a?b?");
	check("a\xe2\x80\xae"
	      "b",
	      "a???b", "a?b"); /* what follows from right to left */
	check("a\xe2\x82", "a??", "a??");
}

static void drawings_as_ascii(void **state)
{
	char text[] = "├─ na\xc3\xafve\n│  └─ a…\n";
	(void)state;
	size_t size = utf8_draw_ascii(text, sizeof text - 1);
	assert_int_equal(size, strlen("|- na\xc3\xafve\n|  `- a~\n"));
	assert_memory_equal(text, "|- na\xc3\xafve\n|  `- a~\n", size);
	char cut[] = "a\xe2\x94"; /* a mark that is cut short */
	assert_int_equal(utf8_draw_ascii(cut, 3), 3);
	assert_memory_equal(cut, "a\xe2\x94", 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(characters_of_all_lengths),
		cmocka_unit_test(nothing_steers_a_terminal),
		cmocka_unit_test(drawings_as_ascii),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
