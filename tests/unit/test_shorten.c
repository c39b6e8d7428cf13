/* SPDX-License-Identifier: Apache-2.0 */
/* Names as people read them. */
#include "unit.h"

#include "analyze/shorten.h"
#include "base/buf.h"

static void check(const char *name, const char *wanted)
{
	struct buf out = {0};
	name_shorten(name, &out);
	assert_string_equal(buf_text(&out), wanted);
	buf_free(&out);
}

static void test_names(void **state)
{
	(void)state;
	check("main", "main");
	check("std::enable_if<std::__and_<A, B>::value, void>::type std::swap<unsigned int>(unsigned "
	      "int&, unsigned int&)",
	      "std::swap<unsigned int>");
	check("place_queen.constprop.0", "place_queen.constprop.0");
	check("a::b(int, char const*) const", "a::b");
	check("void std::sort<It<A*, std::vector<A> >, bool (*)(A const&)>(It<A*>, It<A*>)",
	      "std::sort<…>");
	check("std::vector<int>::push_back(int&&)", "std::vector<int>::push_back");
	check("(anonymous namespace)::f(unsigned int) [clone .constprop.0]",
	      "(anonymous namespace)::f [clone .constprop.0]");
	check("bool std::operator< <char, std::char_traits<char>, std::allocator<char> >(S const&)",
	      "std::operator<<…>");
	check("std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > "
	      "std::operator+<char, std::char_traits<char>, std::allocator<char> >(char const*, "
	      "std::__cxx11::basic_string<char> const&)",
	      "std::operator+<…>");
	check("bool a::operator><int>(b<int>)", "a::operator><int>");
	check("bool a::operator<= <std::vector<int>, std::vector<int> >(X)", "a::operator<=<…>");
	check("A& a::operator+=<int>(int)", "a::operator+=<int>");
	check("std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)",
	      "std::operator<<<…>");
	check("std::function<void (int)>::operator bool() const",
	      "std::function<void (int)>::operator bool");
	check("a::b::operator std::vector<int, std::allocator<int> >() const [clone .cold]",
	      "a::b::operator std::vector<int, std::allocator<int> > [clone .cold]");
	check("operator new(unsigned long)", "operator new");
	check("operator delete[](void*, unsigned long)", "operator delete[]");
	check("x::operator_like(int)", "x::operator_like");
	check("x::cooperator<int>(int)", "x::cooperator<int>");
	check("a::operator()(int) const", "a::operator()");
	check("a::operator->() const", "a::operator->");
	check("std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#1}> > "
	      ">::_M_run()",
	      "std::thread::_State_impl<…>::_M_run");
	check("main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()");
	check("f::(anonymous)::operator()", "f::(anonymous)::operator()");
	check("<alloc::vec::Vec<T> as core::ops::Drop>::drop",
	      "<alloc::vec::Vec<T> as core::ops::Drop>::drop");
	check("JS:*fib /a b/jit.js:1:13", "JS:*fib /a b/jit.js:1:13");
}

static void test_broken(void **state)
{
	(void)state;
	check("", "");
	check("a<b", "a<b");
	check("f(((", "f");
	check(">>>", ">>>");
	check("operator<", "operator<");
	check("(", "(");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_broken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
