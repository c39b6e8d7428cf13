/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "image/symbols.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/image.h"
#include "open_image.h"
#include "scratch.h"

static struct symbols *read_all(struct image *image, struct image *debug)
{
	struct symbols *symbols;
	struct err *e = symbols_read(image, debug, &symbols);
	if (e)
		fail_msg("%s", err_text(e));
	return symbols;
}

static const struct symbol *by_name(const struct symbols *symbols, const char *name)
{
	const struct symbol *all;
	size_t count = symbols_all(symbols, &all);
	for (size_t i = 0; i < count; i++)
		if (strcmp(all[i].name, name) == 0)
			return &all[i];
	return NULL;
}

static const char *name_at(const struct symbols *symbols, uint64_t address)
{
	const struct symbol *s = symbols_find(symbols, address);
	return s ? s->name : "nothing";
}

static const char program[] =
	"static __attribute__((noinline)) int hidden(int a) { return a * 7; }\n"
	"int shown(int a) { return hidden(a) + 1; }\n"
	"int __shown_too(int a) __attribute__((alias(\"shown\")));\n"
	"int data = 5;\n"
	"int main(void) { return shown(data); }\n";

static void functions_and_nothing_else(void **state)
{
	struct image *image;
	struct symbols *symbols;
	const struct symbol *s, *all;
	size_t count;
	(void)state;
	scratch_compile("program", program, "-O1");
	image = open_image(scratch("program"));
	symbols = read_all(image, NULL);
	image_close(image); /* the names must not need it */
	s = by_name(symbols, "shown");
	assert_non_null(s);
	assert_true(s->global && s->size > 0);
	s = by_name(symbols, "hidden");
	assert_non_null(s);
	assert_false(s->global);
	assert_null(by_name(symbols, "__shown_too"));
	assert_null(by_name(symbols, "data"));
	assert_string_equal(name_at(symbols, s->address), "hidden");
	assert_string_equal(name_at(symbols, s->address + s->size - 1), "hidden");
	count = symbols_all(symbols, &all);
	for (size_t i = 0; i < count; i++) {
		assert_true(all[i].name[0] != '$' && all[i].name[0] != 0);
		assert_true(i == 0 || all[i - 1].address < all[i].address);
	}
	symbols_free(symbols);
}

/*
 * 0x00 outer (0x80 bytes)        a label in it: not a function
 * 0x20   inner (0x20)
 * 0x80 loose, no type and no size
 * 0xa0 weak alias and others at one address
 * 0xc0 last, a function without size, to the end of its section (0x20)
 */
static const char assembly[] =
	"__asm__(\".section .code,\\\"ax\\\",%progbits\\n.p2align 8\\n\"\n"
	"\".globl base\\n.type outer,%function\\nouter: .zero 0x10\\nlabel: .zero 0x10\\n\"\n"
	"\".type inner,%function\\ninner: .zero 0x20\\n.size inner,0x20\\n\"\n"
	"\".zero 0x40\\n.size outer,0x80\\n\"\n"
	"\"loose: .zero 0x20\\n\"\n"
	"\".weak _winner\\n.globl __loser\\n\"\n"
	"\".type _winner,%function\\n.type __loser,%function\\n\"\n"
	"\".type local,%function\\n_winner:\\n__loser:\\nlocal:\\nunsized: .zero 0x20\\n\"\n"
	"\".size _winner,0x10\\n.size __loser,0x10\\n.size local,0x10\\n\"\n"
	"\".globl last\\n.type last,%function\\nlast: .zero 0x20\\n.text\\n\");\n"
	"int main(void) { return 0; }\n";

static void nesting_labels_and_aliases(void **state)
{
	struct image *image;
	struct symbols *symbols;
	uint64_t base;
	(void)state;
	scratch_compile("assembly", assembly, "");
	image = open_image(scratch("assembly"));
	symbols = read_all(image, NULL);
	assert_non_null(by_name(symbols, "outer"));
	base = by_name(symbols, "outer")->address;
	assert_null(by_name(symbols, "label"));
	assert_string_equal(name_at(symbols, base + 0x18), "outer");
	assert_string_equal(name_at(symbols, base + 0x20), "inner");
	assert_string_equal(name_at(symbols, base + 0x3f), "inner");
	assert_string_equal(name_at(symbols, base + 0x40), "outer");
	assert_string_equal(name_at(symbols, base + 0x7f), "outer");
	assert_string_equal(name_at(symbols, base + 0x80), "loose");
	assert_string_equal(name_at(symbols, base + 0x9f), "loose");
	assert_string_equal(name_at(symbols, base + 0xa0), "_winner");
	assert_string_equal(name_at(symbols, base + 0xb0), "nothing");
	assert_string_equal(name_at(symbols, base + 0xc0), "last");
	assert_string_equal(name_at(symbols, base + 0xdf), "last");
	assert_string_not_equal(name_at(symbols, base + 0xe0), "last");
	assert_string_equal(name_at(symbols, 0), "nothing");
	assert_string_equal(name_at(symbols, UINT64_MAX), "nothing");
	symbols_free(symbols);
	image_close(image);
}

static void stripped_and_found_again(void **state)
{
	struct image *image, *debug;
	struct symbols *symbols;
	(void)state;
	scratch_compile("library", program, "-O1 -shared -fPIC");
	assert_true(scratch_run("objcopy --only-keep-debug library library.debug"));
	assert_true(scratch_run("strip library"));
	image = open_image(scratch("library"));
	debug = open_image(scratch("library.debug"));
	assert_null(symbols_read_dynamic(image, &symbols));
	assert_non_null(by_name(symbols, "shown"));
	assert_null(by_name(symbols, "hidden"));
	symbols_free(symbols);
	symbols = read_all(image, NULL);
	assert_null(by_name(symbols, "hidden"));
	symbols_free(symbols);
	symbols = read_all(image, debug);
	assert_non_null(by_name(symbols, "hidden"));
	assert_string_equal(name_at(symbols, by_name(symbols, "hidden")->address), "hidden");
	symbols_free(symbols);
	image_close(image);
	image_close(debug);
}

static void mini_debug_information(void **state)
{
	struct image *image;
	struct symbols *symbols;
	(void)state;
	scratch_compile("mini", program, "-O1");
	if (!scratch_run("objcopy --only-keep-debug mini mini.debug && "
			 "objcopy -g mini.debug mini.symbols && xz -f mini.symbols && "
			 "strip mini && objcopy --add-section .gnu_debugdata=mini.symbols.xz mini"))
		skip();
	image = open_image(scratch("mini"));
	symbols = read_all(image, NULL);
	assert_non_null(by_name(symbols, "hidden"));
	assert_null(image_damage(image));
	symbols_free(symbols);
	image_close(image);

	/* Something else in its place is damage, not failure. */
	assert_true(scratch_run("objcopy --update-section .gnu_debugdata=mini.c mini"));
	image = open_image(scratch("mini"));
	symbols = read_all(image, NULL);
	assert_null(by_name(symbols, "hidden"));
	assert_non_null(strstr(image_damage(image), ".gnu_debugdata"));
	symbols_free(symbols);
	image_close(image);
}

/* Who must stay small reads it only where it is; the rest is there all the same. */
static void mini_debug_information_is_bounded(void **state)
{
	static const uint64_t bounds[] = {UINT64_MAX, 3 << 20, 1 << 20};
	(void)state;
	scratch_compile("mini", program, "-O1");
	if (!scratch_run(
		    "objcopy --only-keep-debug mini mini.debug && "
		    "objcopy -g mini.debug mini.symbols && "
		    "{ cat mini.symbols; head -c 2000000 /dev/zero; head -c 20000 /dev/urandom; } "
		    ">mini.long && xz -f mini.long && strip mini && "
		    "objcopy --add-section .gnu_debugdata=mini.long.xz mini"))
		skip();
	for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
		struct image *image = open_image(scratch("mini"));
		bool whole = bounds[i] > 2 << 20;
		image_bound(image, bounds[i]);
		struct symbols *symbols = read_all(image, NULL);
		assert_int_equal(by_name(symbols, "hidden") != NULL, whole);
		assert_int_equal(image_exceeded(image), !whole);
		symbols_free(symbols);
		image_close(image);
	}
}

/* The innermost symbol by the definition, without any index. */
static const struct symbol *find_slowly(const struct symbol *all, size_t count, uint64_t address)
{
	for (size_t i = count; i-- > 0;) {
		if (all[i].address > address)
			continue;
		if (all[i].size ? address - all[i].address < all[i].size : true)
			return &all[i];
	}
	return NULL;
}

/* What is said to hold around an address holds at both ends, and is no wider than up to the next symbol. */
static void holds_around(const struct symbols *symbols, const struct symbol *all, size_t count,
			 uint64_t address)
{
	uint64_t start, end;
	const struct symbol *s = symbols_around(symbols, address, &start, &end);
	assert_true(start <= address && address < end);
	assert_ptr_equal(symbols_find(symbols, start), s);
	assert_ptr_equal(symbols_find(symbols, end - 1), s);
	for (size_t i = 0; i < count; i += 17)
		assert_false(all[i].address > start && all[i].address < end);
}

static void finds_what_a_slow_search_finds(void **state)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[PATH_MAX], path[PATH_MAX] = "";
	const struct symbol *all, *wanted;
	struct symbols *symbols;
	struct image *image;
	size_t count, compared = 0;
	(void)state;
	while (fgets(line, sizeof line, maps))
		if (strstr(line, "/libc.so.6"))
			sscanf(strchr(line, '/'), "%s", path);
	fclose(maps);
	if (!path[0])
		skip();
	image = open_image(path);
	symbols = read_all(image, NULL);
	count = symbols_all(symbols, &all);
	assert_true(count > 1000);
	for (size_t i = 1; i < count; i++)
		assert_true(all[i - 1].address < all[i].address);
	for (size_t i = 0; i < count; i += 3) {
		uint64_t address = all[i].address + (i * 37) % 300;
		wanted = find_slowly(all, count, address);
		if (wanted && wanted->size == 0)
			continue; /* where it ends is the section's business */
		assert_ptr_equal(symbols_find(symbols, address), wanted);
		compared++;
		holds_around(symbols, all, count, address);
	}
	assert_true(compared > 300);
	symbols_free(symbols);
	image_close(image);
}

/* ---- large and wrong tables ---- */

struct made {
	uint8_t *bytes;
	size_t size;
	Elf64_Sym *entries;
	char *names;
};

/* An image with code at 0x10000 (of `code` bytes) and room for `count` symbols. */
static struct made make_image(size_t count, size_t names_size, uint64_t code)
{
	struct file {
		Elf64_Ehdr header;
		Elf64_Shdr sections[5];
		char section_names[32];
	} file = {
		.header =
			{
				.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					    ELFDATA2LSB, 1},
				.e_type = ET_EXEC,
				.e_machine = EM_AARCH64,
				.e_shoff = sizeof(Elf64_Ehdr),
				.e_shentsize = sizeof(Elf64_Shdr),
				.e_shnum = 5,
				.e_shstrndx = 4,
			},
		.sections =
			{
				{0},
				{.sh_name = 1,
				 .sh_type = SHT_NOBITS,
				 .sh_addr = 0x10000,
				 .sh_size = code,
				 .sh_flags = SHF_ALLOC | SHF_EXECINSTR},
				{.sh_name = 7,
				 .sh_type = SHT_SYMTAB,
				 .sh_link = 3,
				 .sh_offset = sizeof file,
				 .sh_size = count * sizeof(Elf64_Sym)},
				{.sh_name = 15,
				 .sh_type = SHT_STRTAB,
				 .sh_size = names_size,
				 .sh_offset = sizeof file + count * sizeof(Elf64_Sym)},
				{.sh_type = SHT_STRTAB,
				 .sh_size = 32,
				 .sh_offset = offsetof(struct file, section_names)},
			},
		.section_names = "\0.text\0.symtab\0.strtab",
	};
	struct made made = {.size = sizeof file + count * sizeof(Elf64_Sym) + names_size};
	made.bytes = calloc(1, made.size);
	memcpy(made.bytes, &file, sizeof file);
	made.entries = (Elf64_Sym *)(made.bytes + sizeof file);
	made.names = (char *)(made.entries + count);
	return made;
}

static struct image *open_made(const struct made *made)
{
	struct image *image;
	assert_null(image_open_memory(made->bytes, made->size, "made", &image));
	free(made->bytes);
	return image;
}

static struct symbols *read_made(const struct made *made)
{
	struct image *image = open_made(made);
	struct symbols *symbols = read_all(image, NULL);
	image_close(image);
	return symbols;
}

#define MANY 1000000

static void a_million_in_any_order(void **state)
{
	struct made made = make_image(MANY, 64, MANY * 16);
	struct symbols *symbols;
	const struct symbol *all;
	(void)state;
	memcpy(made.names, "\0same", 5);
	for (size_t i = 0; i < MANY; i++)
		made.entries[i] = (Elf64_Sym){
			.st_name = 1,
			.st_shndx = 1,
			.st_size = 8,
			.st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
			.st_value = 0x10000 + (i * 7919 % MANY) * 16,
		};
	symbols = read_made(&made);
	assert_int_equal(symbols_all(symbols, &all), MANY);
	for (uint64_t i = 0; i < MANY; i += 1001) {
		assert_ptr_equal(symbols_find(symbols, 0x10000 + i * 16 + 7), &all[i]);
		assert_null(symbols_find(symbols, 0x10000 + i * 16 + 8));
	}
	symbols_free(symbols);
}

/* Every symbol has the same address and a name of megabytes: choosing must not take hours. */
static void many_aliases_with_long_names(void **state)
{
	struct made made = make_image(MANY, 4 << 20, 0x1000);
	struct symbols *symbols;
	const struct symbol *all;
	(void)state;
	memset(made.names, 'a', 4 << 20); /* not even terminated */
	for (size_t i = 0; i < MANY; i++)
		made.entries[i] = (Elf64_Sym){
			.st_name = (Elf64_Word)i % 1000,
			.st_shndx = 1,
			.st_size = 8,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_value = 0x10000,
		};
	symbols = read_made(&made);
	assert_int_equal(symbols_all(symbols, &all), 1);
	symbols_free(symbols);
}

static void lying_entries(void **state)
{
	static const Elf64_Sym lies[] = {
		{.st_name = 1,
		 .st_shndx = 1,
		 .st_info = STT_FUNC,
		 .st_value = 0x10010,
		 .st_size = UINT64_MAX},
		{.st_name = 3,
		 .st_shndx = 1,
		 .st_info = STT_FUNC,
		 .st_value = 0x10020,
		 .st_size = 0x20},
		{.st_name = 999, .st_shndx = 1, .st_info = STT_FUNC, .st_value = 0x10030},
		{.st_name = 1, .st_shndx = 1, .st_info = STT_FUNC, .st_value = UINT64_MAX},
		{.st_name = 1, .st_shndx = 0, .st_info = STT_FUNC, .st_value = 0x10060},
		{.st_name = 1, .st_shndx = 1, .st_info = STT_OBJECT, .st_value = 0x10070},
		{.st_name = 1, .st_shndx = 1, .st_info = STT_SECTION, .st_value = 0x10080},
		{.st_name = 1, .st_shndx = SHN_ABS, .st_info = STT_NOTYPE, .st_value = 0x10090},
		{.st_name = 5, .st_shndx = 1, .st_info = STT_NOTYPE, .st_value = 0x100a0},
	};
	struct made made = make_image(sizeof lies / sizeof lies[0], 16, 0x100);
	struct symbols *symbols;
	const struct symbol *all;
	(void)state;
	memcpy(made.names, "\0a\0b\0$x.7", 10);
	memcpy(made.entries, lies, sizeof lies);
	symbols = read_made(&made);
	assert_int_equal(symbols_all(symbols, &all), 2);
	assert_int_equal(all[0].size, 0); /* its size leads out of the code: not known */
	assert_string_equal(name_at(symbols, 0x1001f), "a");
	assert_string_equal(name_at(symbols, 0x10020), "b");
	assert_string_equal(name_at(symbols, 0x10040), "nothing");
	symbols_free(symbols);
}

/* ---- some addresses alone ---- */

static uint32_t random_state = 1;

static uint32_t below(uint32_t limit)
{
	random_state = random_state * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)random_state * limit >> 32);
}

#define CODE_SIZE 0x4000u

/* Functions beside and within each other, some without a size, labels, what maps code, and lies. */
static struct made make_random(size_t count)
{
	static const uint8_t kinds[] = {STT_FUNC,   STT_FUNC,   STT_FUNC,  STT_FUNC,
					STT_NOTYPE, STT_NOTYPE, STT_OBJECT};
	static const char names[] = "\0$x\0f\0_g\0__h\0_ZN1kE\0";
	struct made made = make_image(count, 1024, CODE_SIZE);
	memcpy(made.names, names, sizeof names);
	memset(made.names + 64, 'n', 900); /* names that are long, each the end of the one before */
	for (size_t i = 0; i < count; i++)
		made.entries[i] = (Elf64_Sym){
			.st_name = below(4) ? below(sizeof names) : below(1100),
			.st_shndx = below(20)  ? 1
				    : below(2) ? SHN_UNDEF
					       : SHN_ABS,
			.st_info = ELF64_ST_INFO(below(3), kinds[below(sizeof kinds)]),
			.st_value = 0x10000 + below(CODE_SIZE / 4 + 20) * 4,
			.st_size = below(3)    ? below(40) * 4
				   : below(50) ? 0
					       : below(CODE_SIZE),
		};
	/* a function has a name, or its table is broken */
	for (size_t i = 0; i < count; i++)
		if (made.entries[i].st_name < 1024 && !made.names[made.entries[i].st_name])
			made.entries[i].st_name = 0;
	return made;
}

static int compare_numbers(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static void assert_same_around(const struct symbols *few, const struct symbols *all,
			       uint64_t address)
{
	uint64_t start, end, wanted_start, wanted_end;
	const struct symbol *s = symbols_around(few, address, &start, &end);
	const struct symbol *wanted = symbols_around(all, address, &wanted_start, &wanted_end);
	assert_int_equal(start, wanted_start);
	assert_int_equal(end, wanted_end);
	assert_int_equal(s != NULL, wanted != NULL);
	if (!s)
		return;
	assert_string_equal(s->name, wanted->name);
	assert_int_equal(s->address, wanted->address);
	assert_int_equal(s->size, wanted->size);
}

static size_t compare_near(struct image *image, uint64_t low, uint32_t size, size_t count)
{
	struct symbols *all = read_all(image, NULL), *few;
	uint64_t *addresses = calloc(count + 1, sizeof *addresses);
	const struct symbol *kept;
	assert_non_null(addresses);
	for (size_t i = 0; i < count; i++)
		addresses[i] = low + below(size);
	qsort(addresses, count, sizeof *addresses, compare_numbers);
	assert_null(symbols_read_near(image, NULL, addresses, count, &few));
	for (size_t i = 0; i < count; i++)
		assert_same_around(few, all, addresses[i]);
	count = symbols_all(few, &kept);
	symbols_free(all);
	symbols_free(few);
	free(addresses);
	return count;
}

static void near_some_addresses_as_among_all(void **state)
{
	struct image *image;
	size_t kept = 0;
	(void)state;
	for (int i = 0; i < 2000; i++) {
		struct made made = make_random(below(300));
		image = open_made(&made);
		kept += compare_near(image, 0xfff0, CODE_SIZE + 32, below(30));
		image_close(image);
	}
	assert_true(kept > 2000);
	image = open_image("/proc/self/exe");
	const struct image_section *text = image_section(image, ".text");
	kept = compare_near(image, text->address, (uint32_t)text->size, 5);
	assert_in_range(kept, 1, 100);
	image_close(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_and_nothing_else),
		cmocka_unit_test(nesting_labels_and_aliases),
		cmocka_unit_test(stripped_and_found_again),
		cmocka_unit_test(mini_debug_information),
		cmocka_unit_test(mini_debug_information_is_bounded),
		cmocka_unit_test(finds_what_a_slow_search_finds),
		cmocka_unit_test(a_million_in_any_order),
		cmocka_unit_test(many_aliases_with_long_names),
		cmocka_unit_test(lying_entries),
		cmocka_unit_test(near_some_addresses_as_among_all),
	};
	return cmocka_run_group_tests_name("symbols", tests, NULL, NULL);
}
