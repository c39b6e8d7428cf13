/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "image/image.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/parallel.h"
#include "image/symbols.h"
#include "scratch.h"

static const char program[] =
	"int x = 1;\n"
	"__attribute__((noinline)) int first(int a) { return a * x; }\n"
	"__attribute__((noinline)) int second(int a) { return first(a) + 1; }\n"
	"int main(void) { return second(3); }\n";

/* Small enough to damage byte by byte. */
static const char tiny[] = "int f(int a) { return a * 3; }\n"
			   "int g(int a) { return f(a) + 1; }\n"
			   "void _start(void) { g(1); for (;;) ; }\n";
static const char tiny_flags[] = "-Os -nostdlib -static -Wl,-z,max-page-size=4096 "
				 "-Wl,-z,noseparate-code -Wl,--build-id=sha1";

static struct image *open_good(const char *path)
{
	struct image *image;
	struct err *e = image_open(path, &image);
	if (e)
		fail_msg("%s", err_text(e));
	assert_null(image_damage(image));
	return image;
}

/* ---- what real files say ---- */

static void reads_itself(void **state)
{
	struct image *image = open_good("/proc/self/exe");
	const struct image_section *text = image_section(image, ".text");
	const struct image_segment *segments;
	size_t count = image_segments(image, &segments), size, rest;
	const uint8_t *bytes, *same;
	bool executable = false;
	(void)state;
	assert_non_null(text);
	bytes = image_section_bytes(image, text, &size);
	assert_int_equal(size, text->size);
	same = image_bytes_at(image, text->address, &rest);
	assert_non_null(same);
	assert_true(rest >= size);
	assert_memory_equal(bytes, same, size);
	assert_ptr_equal(image_bytes_at(image, text->address + 8, &rest), same + 8);
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			assert_true(segments[i - 1].address < segments[i].address);
		if (image_entry(image) - segments[i].address < segments[i].size)
			executable = segments[i].executable;
	}
	assert_true(executable);
	assert_string_equal(image_path(image), "/proc/self/exe");
	assert_null(image_section(image, ".no_such_section"));
	assert_null(image_bytes_at(image, UINT64_MAX, &size));
	assert_int_equal(size, 0);
	assert_null(image_damage(image));
	image_close(image);
}

static void the_end_of_a_segment_is_the_end(void **state)
{
	struct image *image = open_good("/proc/self/exe");
	const struct image_segment *segments;
	size_t count = image_segments(image, &segments), size;
	(void)state;
	for (size_t i = 0; i < count; i++) {
		const struct image_segment *s = &segments[i];
		assert_non_null(image_bytes_at(image, s->address, &size));
		assert_int_equal(size, s->file_size);
		assert_non_null(image_bytes_at(image, s->address + s->file_size - 1, &size));
		assert_int_equal(size, 1);
		if (s->file_size < s->size) /* .bss is not in the file */
			assert_null(image_bytes_at(image, s->address + s->file_size, &size));
	}
	image_close(image);
}

static void has_a_build_id(void **state)
{
	char hex[2 * BUILD_ID_MAX + 1];
	struct image *image;
	const uint8_t *id;
	(void)state;
	scratch_compile("id", program, "-Wl,--build-id=0x00123abcde");
	image = open_good(scratch("id"));
	assert_int_equal(image_build_id(image, &id), 5);
	assert_int_equal(id[1], 0x12);
	image_build_id_hex(image, hex);
	assert_string_equal(hex, "00123abcde");
	image_close(image);

	scratch_compile("no-id", program, "-Wl,--build-id=none");
	image = open_good(scratch("no-id"));
	assert_int_equal(image_build_id(image, &id), 0);
	image_build_id_hex(image, hex);
	assert_string_equal(hex, "");
	image_close(image);
}

static void memory_is_like_a_file(void **state)
{
	struct image *a, *b;
	size_t size, x_size, y_size;
	uint8_t *bytes;
	const uint8_t *x, *y;
	(void)state;
	scratch_compile("plain", program, "");
	a = open_good(scratch("plain"));
	bytes = scratch_read("plain", &size);
	assert_null(image_open_memory(bytes, size, "copy", &b));
	memset(bytes, 0, size);
	free(bytes);
	assert_string_equal(image_path(b), "copy");
	assert_int_equal(image_entry(a), image_entry(b));
	x = image_bytes_at(a, image_entry(a), &x_size);
	y = image_bytes_at(b, image_entry(b), &y_size);
	assert_int_equal(x_size, y_size);
	assert_memory_equal(x, y, x_size);
	image_close(a);
	image_close(b);
}

static void reads_the_vdso(void **state)
{
	const uint8_t *vdso = (const uint8_t *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	uint8_t bytes[8192];
	const struct symbol *all;
	struct symbols *symbols;
	struct image *image;
	Elf64_Ehdr header;
	size_t count;
	(void)state;
	if (!vdso)
		skip();
	memcpy(bytes, vdso, 4096);
	memcpy(&header, bytes, sizeof header);
	/* Its first page, as if the section headers had not been copied. */
	header.e_shoff = 0;
	header.e_shnum = header.e_shstrndx = 0;
	memcpy(bytes, &header, sizeof header);
	assert_null(image_open_memory(bytes, 4096, "[vdso]", &image));
	assert_non_null(image_section(image, ".dynsym"));
	assert_null(symbols_read(image, NULL, &symbols));
	count = symbols_all(symbols, &all);
	assert_true(count >= 3);
	bool clock = false;
	for (size_t i = 0; i < count; i++) {
		assert_true(all[i].name[0] && strlen(all[i].name) < 64);
		clock |= strstr(all[i].name, "clock_gettime") != NULL;
	}
	assert_true(clock);
	symbols_free(symbols);
	image_close(image);
}

/* ---- refusals ---- */

static void expect_refusal(const char *path, const char *reason)
{
	struct image *image = (struct image *)8;
	struct err *e = image_open(path, &image);
	assert_non_null(e);
	assert_null(image);
	if (!strstr(err_text(e), reason) || strncmp(err_text(e), path, strlen(path)) != 0)
		fail_msg("'%s' does not say '%s'", err_text(e), reason);
	err_free(e);
}

static void refuse_patched(const uint8_t *good, size_t size, size_t at, unsigned int byte,
			   const char *reason)
{
	uint8_t *bytes = malloc(size);
	memcpy(bytes, good, size);
	bytes[at] = (uint8_t)byte;
	bytes[at + 1] = at >= 16 ? 0 : bytes[at + 1];
	scratch_write("patched", bytes, size);
	expect_refusal(scratch("patched"), reason);
	free(bytes);
}

static void refuses_with_reasons(void **state)
{
	uint8_t *good;
	size_t size;
	(void)state;
	scratch_compile("tiny", tiny, tiny_flags);
	good = scratch_read("tiny", &size);
	refuse_patched(good, size, EI_CLASS, ELFCLASS32, "32-bit");
	refuse_patched(good, size, EI_DATA, ELFDATA2MSB, "big-endian");
	refuse_patched(good, size, 18, EM_RISCV, "RISC-V (machine 243)");
	refuse_patched(good, size, 18, 77, "machine 77");
	refuse_patched(good, size, 16, ET_CORE, "core file");
	refuse_patched(good, size, 16, ET_NONE, "type 0");
	free(good);
	scratch_write("empty", "", 0);
	expect_refusal(scratch("empty"), "empty");
	scratch_write("text", "hello, world\n", 13);
	expect_refusal(scratch("text"), "not an ELF file");
	scratch_write("script", "#!/bin/sh\n", 10);
	expect_refusal(scratch("script"), "interpreter");
	scratch_write("magic", ELFMAG, 4);
	expect_refusal(scratch("magic"), "damaged");
	scratch_compile("object", program, "-c");
	expect_refusal(scratch("object"), "relocatable object or kernel module");
	expect_refusal(scratch_dir, "directory");
	expect_refusal(scratch("absent"), "No such file");
	assert_int_equal(mkfifo(scratch("fifo"), 0600), 0);
	expect_refusal(scratch("fifo"), "not a regular file");
}

/* ---- compressed sections ---- */

static void compare_info(const char *a, const char *b)
{
	struct image *x = open_good(scratch(a)), *y = open_good(scratch(b));
	const struct image_section *s = image_section(x, ".debug_info");
	const struct image_section *t = image_section(y, ".debug_info");
	size_t s_size, t_size;
	const uint8_t *s_bytes, *t_bytes;
	assert_non_null(s);
	assert_non_null(t);
	s_bytes = image_section_bytes(x, s, &s_size);
	t_bytes = image_section_bytes(y, t, &t_size);
	assert_true(s_size > 100);
	assert_int_equal(s_size, t_size);
	assert_memory_equal(s_bytes, t_bytes, s_size);
	assert_ptr_equal(s_bytes, image_section_bytes(x, s, &s_size));
	image_close(x);
	image_close(y);
}

/* For who must stay small. */
static void expect_bound(const char *name)
{
	struct image *image = open_good(scratch(name));
	const struct image_section *s = image_section(image, ".debug_info");
	size_t size;
	assert_false(image_exceeded(image));
	image_bound(image, 100);
	assert_non_null(s);
	assert_null(image_section_bytes(image, s, &size));
	assert_true(image_exceeded(image));
	image_close(image);
}

static void decompresses(void **state)
{
	static const char *const ways[] = {"zlib-gabi", "zlib-gnu", "zstd"};
	char large[64 * 64] = "";
	(void)state;
	for (int i = 0; i < 60; i++) /* what is too small is not compressed */
		sprintf(large + strlen(large), "int f%d(int a) { return a + %d; }\n", i, i);
	strcat(large, "int main(void) { return 0; }\n");
	scratch_compile("flat", large, "-g");
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		/* An older objcopy does not know them all. */
		if (scratch_run(scratch_format("objcopy --compress-debug-sections=%s flat packed",
					       ways[i]))) {
			compare_info("packed", "flat");
			expect_bound("packed");
		}
	}
}

static size_t find_header(const uint8_t *bytes, const char *name, Elf64_Shdr *out)
{
	Elf64_Ehdr header;
	Elf64_Shdr names;
	memcpy(&header, bytes, sizeof header);
	memcpy(&names, bytes + header.e_shoff + header.e_shstrndx * sizeof names, sizeof names);
	for (size_t i = 0; i < header.e_shnum; i++) {
		memcpy(out, bytes + header.e_shoff + i * sizeof *out, sizeof *out);
		if (strcmp((const char *)bytes + names.sh_offset + out->sh_name, name) == 0)
			return header.e_shoff + i * sizeof *out;
	}
	fail_msg("no section %s", name);
	return 0;
}

static void a_bomb_does_not_go_off(void **state)
{
	static const uint64_t claims[] = {
		0, 1, 1 << 20, UINT64_C(1) << 31, UINT64_C(1) << 63, UINT64_MAX};
	Elf64_Chdr chdr = {.ch_addralign = 1};
	Elf64_Shdr shdr;
	size_t size, at, got;
	uint8_t *bytes;
	struct image *image;
	(void)state;
	scratch_compile("flat", program, "-g");
	bytes = scratch_read("flat", &size);
	at = find_header(bytes, ".debug_info", &shdr);
	shdr.sh_flags |= SHF_COMPRESSED;
	memcpy(bytes + at, &shdr, sizeof shdr);
	for (size_t i = 0; i < 2 * sizeof claims / sizeof claims[0]; i++) {
		chdr.ch_type = 1 + i % 2;
		chdr.ch_size = claims[i / 2];
		memcpy(bytes + shdr.sh_offset, &chdr, sizeof chdr);
		assert_null(image_open_memory(bytes, size, "bomb", &image));
		image_section_bytes(image, image_section(image, ".debug_info"), &got);
		assert_int_equal(got, 0);
		if (chdr.ch_size)
			assert_non_null(strstr(image_damage(image), ".debug_info"));
		image_close(image);
	}
	free(bytes);
}

/* ---- unusual headers ---- */

static void works_without_section_headers(void **state)
{
	const struct image_section *s, *t;
	struct image *whole, *bare;
	const uint8_t *x, *y;
	size_t size, x_size, y_size;
	Elf64_Ehdr header;
	uint8_t *bytes;
	(void)state;
	scratch_compile("lib.so", program, "-shared -fPIC -fasynchronous-unwind-tables");
	whole = open_good(scratch("lib.so"));
	bytes = scratch_read("lib.so", &size);
	memcpy(&header, bytes, sizeof header);
	size = header.e_shoff; /* they are the last thing in the file */
	header.e_shoff = 0;
	header.e_shnum = header.e_shstrndx = 0;
	memcpy(bytes, &header, sizeof header);
	assert_null(image_open_memory(bytes, size, "bare", &bare));
	assert_null(image_damage(bare));
	free(bytes);
	static const char *const names[] = {".dynsym", ".dynstr", ".dynamic", ".eh_frame_hdr"};
	for (size_t i = 0; i < 4; i++) {
		s = image_section(whole, names[i]);
		t = image_section(bare, names[i]);
		assert_non_null(t);
		assert_int_equal(s->address, t->address);
		assert_int_equal(s->size, t->size);
		assert_int_equal(s->type, t->type);
		x = image_section_bytes(whole, s, &x_size);
		y = image_section_bytes(bare, t, &y_size);
		assert_memory_equal(x, y, x_size);
	}
	s = image_section(whole, ".eh_frame");
	t = image_section(bare, ".eh_frame");
	assert_int_equal(s->address, t->address);
	assert_true(t->size >= s->size);
	assert_int_equal(image_build_id(whole, &x), image_build_id(bare, &y));
	image_close(whole);
	image_close(bare);
}

#define MANY 70000

/* A file of nothing but headers: MANY sections, of which the last has the names, and MANY
   program headers, of which the last is loaded. */
static uint8_t *make_many(size_t *size)
{
	size_t sections = sizeof(Elf64_Ehdr), programs = sections + MANY * sizeof(Elf64_Shdr);
	Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, 1},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_shoff = sections,
		.e_phoff = programs,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = PN_XNUM,
		.e_shstrndx = SHN_XINDEX,
	};
	Elf64_Shdr zero = {.sh_size = MANY, .sh_link = MANY - 1, .sh_info = MANY};
	Elf64_Phdr load = {.p_type = PT_LOAD, .p_vaddr = 0x1000, .p_memsz = 7, .p_filesz = 7};
	Elf64_Shdr last = {.sh_type = SHT_STRTAB, .sh_name = 1, .sh_size = 7};
	uint8_t *bytes;
	*size = programs + MANY * sizeof(Elf64_Phdr) + 7;
	bytes = calloc(1, *size);
	last.sh_offset = load.p_offset = *size - 7;
	memcpy(bytes, &header, sizeof header);
	memcpy(bytes + sections, &zero, sizeof zero);
	memcpy(bytes + sections + (MANY - 1) * sizeof last, &last, sizeof last);
	memcpy(bytes + programs + (MANY - 1) * sizeof load, &load, sizeof load);
	memcpy(bytes + *size - 7, "\0.names", 7); /* no NUL after it: the file ends */
	return bytes;
}

static void counts_beyond_sixteen_bits(void **state)
{
	const struct image_section *sections;
	const struct image_segment *segments;
	struct image *image;
	size_t size;
	uint8_t *bytes = make_many(&size);
	(void)state;
	assert_null(image_open_memory(bytes, size, "many", &image));
	assert_null(image_damage(image));
	assert_int_equal(image_sections(image, &sections), MANY);
	assert_int_equal(image_segments(image, &segments), 1);
	assert_int_equal(segments[0].address, 0x1000);
	assert_string_equal(sections[MANY - 1].name, ".names");
	assert_memory_equal(image_bytes_at(image, 0x1001, &size), ".names", 6);
	assert_int_equal(size, 6);
	image_close(image);
	free(bytes);
}

/* ---- damage ---- */

static volatile unsigned int sink;

/* Uses everything that an image offers. */
static void exercise(const void *bytes, size_t size)
{
	const struct image_section *sections;
	const struct image_segment *segments;
	struct symbols *symbols;
	struct image *image;
	struct err *e = image_open_memory(bytes, size, "damaged", &image);
	size_t n, count, got;
	const uint8_t *at;
	if (e) {
		assert_true(strlen(err_text(e)) > 10);
		err_free(e);
		return;
	}
	count = image_segments(image, &segments);
	for (size_t i = 0; i < count; i++) {
		assert_true(segments[i].file_size <= segments[i].size);
		assert_true(segments[i].offset + segments[i].file_size <= size ||
			    segments[i].file_size == 0);
		at = image_bytes_at(image, segments[i].address, &got);
		for (n = 0; n < got; n += 64)
			sink += at[n];
	}
	count = image_sections(image, &sections);
	for (size_t i = 0; i < count; i++) {
		sink += (unsigned int)strlen(sections[i].name);
		at = image_section_bytes(image, &sections[i], &got);
		if (got)
			sink += at[got - 1];
	}
	assert_null(symbols_read(image, NULL, &symbols));
	symbols_find(symbols, image_entry(image));
	symbols_free(symbols);
	image_damage(image);
	image_close(image);
}

static void cut_anywhere(void **state)
{
	size_t size;
	uint8_t *bytes;
	(void)state;
	scratch_compile("tiny", tiny, tiny_flags);
	bytes = scratch_read("tiny", &size);
	for (size_t cut = 0; cut < size; cut += 1 + size / 4000)
		exercise(bytes, cut);
	free(bytes);
}

static void flipped_anywhere(void **state)
{
	static const uint8_t flips[] = {0xff, 0x80, 0x01, 0x7f};
	size_t size;
	uint8_t *bytes;
	(void)state;
	scratch_compile("tiny", tiny, tiny_flags);
	bytes = scratch_read("tiny", &size);
	for (size_t at = 0; at < size; at += 1 + size / 4000) {
		for (size_t i = 0; i < sizeof flips; i++) {
			bytes[at] ^= flips[i];
			exercise(bytes, size);
			bytes[at] ^= flips[i];
		}
	}
	free(bytes);
}

/* Every eight-byte field of every header takes every extreme value. */
static void extreme_fields(void **state)
{
	static const uint64_t extremes[] = {0,
					    1,
					    UINT32_MAX,
					    UINT64_C(1) << 32,
					    INT64_MAX,
					    UINT64_C(1) << 63,
					    UINT64_MAX - 7,
					    UINT64_MAX};
	size_t size, ranges[3][2];
	Elf64_Ehdr header;
	uint8_t *bytes;
	(void)state;
	scratch_compile("lib.so", tiny, "-shared -nostdlib -fPIC -Wl,-z,max-page-size=4096");
	bytes = scratch_read("lib.so", &size);
	memcpy(&header, bytes, sizeof header);
	ranges[0][0] = 16, ranges[0][1] = sizeof header;
	ranges[1][0] = header.e_phoff, ranges[1][1] = header.e_phnum * sizeof(Elf64_Phdr);
	ranges[2][0] = header.e_shoff, ranges[2][1] = header.e_shnum * sizeof(Elf64_Shdr);
	for (size_t r = 0; r < 3; r++) {
		for (size_t at = 0; at + 8 <= ranges[r][1]; at += 8) {
			uint8_t before[8], *field = bytes + ranges[r][0] + at;
			memcpy(before, field, 8);
			for (size_t i = 0; i < sizeof extremes / sizeof extremes[0]; i++) {
				memcpy(field, &extremes[i], 8);
				exercise(bytes, size);
			}
			memcpy(field, before, 8);
		}
	}
	free(bytes);
}

static void says_what_is_damaged(void **state)
{
	struct image *image;
	size_t size;
	uint8_t *bytes;
	(void)state;
	scratch_compile("plain", program, "");
	bytes = scratch_read("plain", &size);
	assert_null(image_open_memory(bytes, size - 100, "cut", &image));
	assert_non_null(strstr(image_damage(image), "past the end of the file"));
	image_close(image);
	free(bytes);
}

/* Segments that claim the same addresses, or the same bytes again and again. */
static void segments_are_parted(void **state)
{
	enum { COUNT = 5, START = 0x1000 };
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segments[COUNT];
		uint8_t code[START];
	} file = {0};
	const uint64_t starts[COUNT] = {0x9000, 0x1000, 0x1800, 0x1800, 0x20000};
	const struct image_segment *segments;
	struct image *image;
	uint64_t sum = 0;
	size_t count, size;
	(void)state;
	file.header = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof file.header,
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = COUNT,
	};
	for (size_t i = 0; i < COUNT; i++)
		file.segments[i] = (Elf64_Phdr){
			.p_type = PT_LOAD,
			.p_vaddr = starts[i],
			.p_filesz = sizeof file,
			.p_memsz = i == 4 ? sizeof file : 0x100000,
		};
	assert_null(image_open_memory(&file, sizeof file, "overlap", &image));
	count = image_segments(image, &segments);
	assert_int_equal(count, 4);
	for (size_t i = 0; i < count; i++) {
		sum += segments[i].file_size;
		assert_true(segments[i].file_size <= segments[i].size);
		if (i)
			assert_true(segments[i - 1].address + segments[i - 1].size <=
				    segments[i].address);
	}
	assert_int_equal(segments[0].size, 0x800);
	assert_true(sum <= 4 * sizeof file);
	assert_non_null(image_bytes_at(image, 0x1001, &size));
	assert_int_equal(size, 0x7ff);
	assert_non_null(strstr(image_damage(image), "overlap"));
	image_close(image);
}

static void damage_is_one_line(void **state)
{
	struct image *image;
	Elf64_Shdr header;
	size_t size, at, names, got;
	uint8_t *bytes;
	(void)state;
	scratch_compile("line", program, "");
	bytes = scratch_read("line", &size);
	at = find_header(bytes, ".text", &header);
	names = find_header(bytes, ".shstrtab", &header);
	assert_true(at && names);
	memcpy(&header, bytes + names, sizeof header);
	names = header.sh_offset;
	memcpy(&header, bytes + at, sizeof header);
	memcpy(bytes + names + header.sh_name, ".\n\033[1", 5);
	header.sh_size = size;
	memcpy(bytes + at, &header, sizeof header);
	assert_null(image_open_memory(bytes, size, "line", &image));
	assert_non_null(image_section(image, ".\n\033[1"));
	image_section_bytes(image, image_section(image, ".\n\033[1"), &got);
	assert_string_equal(image_damage(image), "section .??[1 lies past the end of the file");
	image_close(image);
	free(bytes);
}

static void survives_a_file_that_shrinks(void **state)
{
	const struct image_section *text;
	struct image *image;
	size_t size;
	(void)state;
	scratch_compile("shrinks", program, "");
	image = open_good(scratch("shrinks"));
	text = image_section(image, ".text");
	assert_int_equal(truncate(scratch("shrinks"), (off_t)text->offset + 4), 0);
	image_section_bytes(image, text, &size);
	assert_int_equal(size, 4);
	assert_non_null(image_damage(image));
	assert_non_null(image_bytes_at(image, text->address, &size));
	assert_int_equal(size, 4);
	assert_null(image_bytes_at(image, text->address + 4, &size));
	image_close(image);
}

/* ---- threads ---- */

#define WORKERS 64

struct shared {
	struct image *image;
	const uint8_t *text[WORKERS], *section[WORKERS];
};

static void touch(void *context, size_t index)
{
	struct shared *shared = context;
	const struct image_section *text = image_section(shared->image, ".text");
	size_t size;
	shared->text[index] = image_bytes_at(shared->image, text->address, &size);
	shared->section[index] = image_section_bytes(shared->image, text, &size);
}

static void threads_share_contents(void **state)
{
	struct shared shared = {.image = open_good("/proc/self/exe")};
	(void)state;
	setenv("CULPRIT_THREADS", "8", 1);
	parallel_for(WORKERS, touch, &shared);
	for (size_t i = 0; i < WORKERS; i++) {
		assert_non_null(shared.text[i]);
		assert_ptr_equal(shared.text[i], shared.text[0]);
		assert_ptr_equal(shared.section[i], shared.section[0]);
	}
	image_close(shared.image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_itself),
		cmocka_unit_test(the_end_of_a_segment_is_the_end),
		cmocka_unit_test(has_a_build_id),
		cmocka_unit_test(memory_is_like_a_file),
		cmocka_unit_test(reads_the_vdso),
		cmocka_unit_test(refuses_with_reasons),
		cmocka_unit_test(decompresses),
		cmocka_unit_test(a_bomb_does_not_go_off),
		cmocka_unit_test(works_without_section_headers),
		cmocka_unit_test(counts_beyond_sixteen_bits),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(flipped_anywhere),
		cmocka_unit_test(extreme_fields),
		cmocka_unit_test(says_what_is_damaged),
		cmocka_unit_test(segments_are_parted),
		cmocka_unit_test(damage_is_one_line),
		cmocka_unit_test(survives_a_file_that_shrinks),
		cmocka_unit_test(threads_share_contents),
	};
	return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
