/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the kernel's functions, while modules come and go. */
#include "scratch.h"

#include "base/err.h"
#include "process/kernel_names.h"

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static const char *name_at(const struct kernel_names *k, uint64_t address)
{
	uint64_t start, size;
	const char *name = kernel_names_find(k, address, &start, &size);
	return name ? name : "";
}

static void modules_that_come_later_are_named(void **state)
{
	const char *list = scratch("kallsyms"), *modules = scratch("modules");
	struct kernel_names *k = NULL;
	uint64_t stamp = 0;
	(void)state;
	put(list, "ffff800080000000 T one\nffff800080000100 T two\n");
	put(modules, "");
	kernel_names_renew(&k, &stamp, list, modules); /* nothing is known: it stays so */
	assert_null(k);
	assert_null(kernel_names_open(list, &k));
	kernel_names_renew(&k, &stamp, list, modules);
	assert_string_equal(name_at(k, 0xffff800080000104), "two");

	put(list, "ffff800080000000 T one\nffff800080000100 T two\n"
		  "ffff800080010000 t late\t[module]\n");
	kernel_names_renew(&k, &stamp, list, modules); /* no module came */
	assert_string_equal(name_at(k, 0xffff800080010004), "two");
	put(modules, "module 16384 0 - Live 0xffff800080010000\n");
	kernel_names_renew(&k, &stamp, list, modules);
	assert_string_equal(name_at(k, 0xffff800080010004), "late");

	/* Who uses it is of no interest, where it is is. */
	put(list, "ffff800080000000 T one\n");
	put(modules, "module 16384 7 a,b, Live 0xffff800080010000 (O)\n");
	kernel_names_renew(&k, &stamp, list, modules);
	assert_string_equal(name_at(k, 0xffff800080010004), "late");
	put(list, "ffff800080000000 T one\nffff800080020000 t later\t[module]\n");
	put(modules, "module 16384 7 a,b, Live 0xffff800080020000 (O)\n");
	kernel_names_renew(&k, &stamp, list, modules);
	assert_string_equal(name_at(k, 0xffff800080020004), "later");

	/* What cannot be read changes nothing. */
	put(list, "0000000000000000 T one\n");
	put(modules, "");
	kernel_names_renew(&k, &stamp, list, modules);
	assert_string_equal(name_at(k, 0xffff800080020004), "later");
	unlink(modules);
	kernel_names_renew(&k, &stamp, list, modules);
	assert_string_equal(name_at(k, 0xffff800080020004), "later");
	kernel_names_close(k);
}

static void hidden_addresses_are_seen(void **state)
{
	const char *list = scratch("kallsyms");
	(void)state;
	put(list, "0000000000000000 T one\n0000000000000000 T two\n");
	assert_false(kernel_names_shown(list));
	put(list, "0000000000000000 A fixed\nffff800080000100 T two\n");
	assert_true(kernel_names_shown(list));
	put(list, "");
	assert_false(kernel_names_shown(list));
	unlink(list);
	assert_false(kernel_names_shown(list));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modules_that_come_later_are_named),
		cmocka_unit_test(hidden_addresses_are_seen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
