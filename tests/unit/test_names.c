/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "image/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect(const char *symbol, const char *wanted)
{
	char *name = name_demangle(symbol);
	assert_non_null(name);
	assert_string_equal(name, wanted);
	free(name);
}

static void plain_names_are_copied(void **state)
{
	(void)state;
	expect("main", "main");
	expect("_start", "_start");
	expect("", "");
	expect("foo.cold", "foo.cold");
	expect("runtime.mallocgc", "runtime.mallocgc");
	expect("__solver_MOD_step", "__solver_MOD_step");
}

static void versions_are_cut(void **state)
{
	(void)state;
	expect("memcpy@@GLIBC_2.14", "memcpy");
	expect("memcpy@GLIBC_2.2.5", "memcpy");
	expect("_ZN3fooEv@@V1", "foo()");
	expect("puts@plt", "puts@plt");
	expect("@", "@");
}

static void cxx_names(void **state)
{
	(void)state;
	expect("_Z3fooi", "foo(int)");
	expect("_ZNSt6vectorIiSaIiEE9push_backEOi",
	       "std::vector<int, std::allocator<int> >::push_back(int&&)");
	expect("_ZN3foo3barEv.cold", "foo::bar() [clone .cold]");
	expect("_Z3fooi.constprop.0", "foo(int) [clone .constprop.0]");
	expect("_Z3fooi.isra.0.part.1", "foo(int) [clone .isra.0] [clone .part.1]");
}

static void rust_names(void **state)
{
	(void)state;
	expect("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
	expect("_RNvCs1234_7mycrate3foo", "mycrate::foo");
	expect("_RINvNtC3std3mem8align_ofjE", "std::mem::align_of::<usize>");
}

static void wrong_names_come_back(void **state)
{
	(void)state;
	expect("_Z", "_Z");
	expect("_ZZZZ", "_ZZZZ");
	expect("_R", "_R");
	expect("_ZN3foo", "_ZN3foo");
	expect("_Z99999999999999999999foo", "_Z99999999999999999999foo");
}

/* f(a<a<a<...>>>), `depth` deep. */
static char *nested(size_t depth)
{
	char *name = malloc(16 + 4 * depth), *at = name;
	at = stpcpy(at, "_Z1f");
	for (size_t i = 0; i < depth; i++)
		at = stpcpy(at, "1aI");
	*at++ = 'i';
	for (size_t i = 0; i < depth; i++)
		*at++ = 'E';
	*at = 0;
	return name;
}

static void long_but_real_names_are_demangled(void **state)
{
	char name[4096] = "_Z1f", wanted[4096] = "f(";
	size_t length = 4;
	(void)state;
	/* Parameters of 40 different types: far above the limit of 1024 bytes. */
	for (int i = 0; i < 40; i++) {
		length += (size_t)sprintf(name + length, "35a_rather_long_name_of_a_library_%03d",
					  i);
		sprintf(wanted + strlen(wanted), "%sa_rather_long_name_of_a_library_%03d",
			i ? ", " : "", i);
	}
	strcat(wanted, ")");
	assert_true(length > 1024);
	expect(name, wanted);
}

static void deep_names_do_not_crash(void **state)
{
	(void)state;
	for (size_t depth = 1; depth < 30000; depth = depth * 3 + 1) {
		char *symbol = nested(depth), *name = name_demangle(symbol);
		assert_non_null(name);
		free(name);
		free(symbol);
	}
}

/* f(pair<A, A>, pair<the former, the former>, ...): 2^60 names when written out. */
static void exploding_names_come_back(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char symbol[1024] = "_Z1f4pairI1AS0_E";
	(void)state;
	for (unsigned int i = 1; i < 60; i++) {
		char number[3] = {digits[i % 36], 0, 0};
		if (i >= 36) {
			number[0] = digits[i / 36];
			number[1] = digits[i % 36];
		}
		sprintf(symbol + strlen(symbol), "S_IS%s_S%s_E", number, number);
	}
	expect(symbol, symbol);
}

/* f(X...), where X = A<Y, Y>, Y = A<Z, Z>, ..., each twice: no pack is in it, wherever one looks. */
static void patterns_without_packs_come_back(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	enum { DEPTH = 32 };
	char symbol[1024] = "_Z1fDp", *end = symbol + strlen(symbol);
	(void)state;
	for (int i = 0; i < DEPTH - 1; i++)
		end += sprintf(end, "1AI");
	end += sprintf(end, "1AIiiE");
	for (unsigned int i = DEPTH - 1; i < 2 * DEPTH - 2; i++) {
		if (i < 36)
			end += sprintf(end, "S%c_E", digits[i]);
		else
			end += sprintf(end, "S%c%c_E", digits[i / 36], digits[i % 36]);
	}
	expect(symbol, symbol);
	expect("_Z1fIJidEEvDpT_", "void f<int, double>(int, double)");
	/* As clang writes it, by older rules. */
	expect("_Z1gIbJcEENSt9enable_ifIXsr6__and_ISt7is_voidIT_EE5valueET_E4typeEDpOT0_",
	       "std::enable_if<__and_<std::is_void<bool> >::value, bool>::type g<bool, char>(char&&)");
}

/* Conversions to a template's parameter with arguments, which are read to their end twice. */
static void nested_conversions_come_back(void **state)
{
	char symbol[1024] = "_Z";
	(void)state;
	for (int i = 0; i < 60; i++)
		strcat(symbol, "cvT_I");
	strcat(symbol, "i");
	for (int i = 0; i < 60; i++)
		strcat(symbol, "E");
	strcat(symbol, "v");
	expect(symbol, symbol);
	expect("_ZN1AcvT_IiEEv", "A::operator int<int>()");
}

static void huge_names_are_left_alone(void **state)
{
	char *symbol = malloc(200001);
	(void)state;
	memset(symbol, 'P', 200000);
	memcpy(symbol, "_Z1f", 4);
	symbol[199999] = 'i';
	symbol[200000] = 0;
	expect(symbol, symbol);
	free(symbol);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_names_are_copied),
		cmocka_unit_test(versions_are_cut),
		cmocka_unit_test(cxx_names),
		cmocka_unit_test(rust_names),
		cmocka_unit_test(wrong_names_come_back),
		cmocka_unit_test(long_but_real_names_are_demangled),
		cmocka_unit_test(deep_names_do_not_crash),
		cmocka_unit_test(exploding_names_come_back),
		cmocka_unit_test(patterns_without_packs_come_back),
		cmocka_unit_test(nested_conversions_come_back),
		cmocka_unit_test(huge_names_are_left_alone),
	};
	return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
