/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader of ELF64 little-endian files that trusts nothing.
 *
 * At open: the ELF header, program headers, section headers, section names and
 * the build-id. Later, when asked for: the contents of a section, or the whole
 * file-backed part of a segment, each read once with pread and kept.
 *
 * What holds after open, whatever the file says:
 *   1. a segment's address + size does not wrap, and its offset + file_size
 *      lies inside the file, file_size <= size;
 *   2. segments are sorted by address and none is empty;
 *   3. a section's name is a terminated string; its other fields are only what
 *      the file says, and are checked where contents are read.
 */
#include "image/image.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/foreign.h"
#include "base/utf8.h"
#include "image/internal.h"

#define HEADERS_MAX (UINT64_C(1) << 17)  /* of sections, of segments */
#define SEGMENTS_MAX 4096                /* that are loaded; the kernel takes 1170 */
#define NAMES_MAX (UINT64_C(8) << 20)    /* bytes of section names */
#define NOTES_MAX (UINT64_C(1) << 20)    /* bytes searched for a build-id */
#define NOTES_TRIED 64                   /* program headers of notes looked into */
#define CONTENTS_MAX (UINT64_C(4) << 30) /* of one section or segment */

#define DAMAGE_MAX 300

/* Sentences quote names from the file: none may break the line, reach the terminal as a control
   character, or fill the screen. */
static void tame_sentence(char *text)
{
	if (strlen(text) > DAMAGE_MAX)
		text[DAMAGE_MAX] = 0;
	utf8_tame(text);
}

void image_note_damage(struct image *image, const char *format, ...)
{
	va_list args;
	if (image->damage)
		return;
	va_start(args, format);
	if (vasprintf(&image->damage, format, args) < 0)
		image->damage = NULL;
	else
		tame_sentence(image->damage);
	va_end(args);
}

size_t image_read(struct image *image, uint64_t offset, void *out, size_t size)
{
	size_t done = 0;
	if (offset >= image->size)
		return 0;
	if (size > image->size - offset)
		size = image->size - offset;
	if (image->memory) {
		memcpy(out, image->memory + offset, size);
		return size;
	}
	while (done < size) {
		ssize_t n = pread(image->fd, (char *)out + done, size - done,
				  (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

uint8_t *image_read_copy(struct image *image, uint64_t offset, uint64_t size, size_t *got)
{
	uint8_t *bytes, *smaller;
	*got = 0;
	if (offset >= image->size || size == 0)
		return NULL;
	if (size > image->size - offset)
		size = image->size - offset;
	if (size > CONTENTS_MAX)
		size = CONTENTS_MAX;
	bytes = malloc(size + 1);
	if (!bytes)
		return NULL;
	*got = image_read(image, offset, bytes, size);
	if (*got == 0) {
		free(bytes);
		return NULL;
	}
	if (*got < size) { /* the file shrank: keep no empty gigabytes */
		smaller = realloc(bytes, *got + 1);
		bytes = smaller ? smaller : bytes;
	}
	bytes[*got] = 0;
	return bytes;
}

/* ---- the ELF header ---- */

static const char *machine_name(uint16_t machine)
{
	static const struct {
		uint16_t number;
		const char *name;
	} names[] = {
		{EM_386, "32-bit x86"}, {EM_ARM, "32-bit ARM"},  {EM_MIPS, "MIPS"},
		{EM_PPC, "PowerPC"},    {EM_PPC64, "PowerPC64"}, {EM_S390, "s390x"},
		{EM_SPARCV9, "SPARC"},  {EM_IA_64, "Itanium"},   {EM_RISCV, "RISC-V"},
		{EM_BPF, "eBPF"},       {EM_ALPHA, "Alpha"},     {EM_PARISC, "PA-RISC"},
		{258, "LoongArch"},     {EM_CUDA, "CUDA"},       {EM_AMDGPU, "an AMD GPU"},
	};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (names[i].number == machine)
			return names[i].name;
	return "an unknown machine";
}

static struct err *refuse_type(uint16_t type)
{
	switch (type) {
	case ET_EXEC:
	case ET_DYN:
		return NULL;
	case ET_REL:
		return err_new("a relocatable object or kernel module: "
			       "give a linked executable or library");
	case ET_CORE:
		return err_new("a core file: give the executable that it was made by");
	default:
		return err_new("an ELF file of type %u: give an executable or shared library",
			       (unsigned int)type);
	}
}

static struct err *refuse_foreign(const unsigned char *start, size_t size)
{
	if (size >= 2 && start[0] == '#' && start[1] == '!')
		return err_new("a script, not an ELF file: give its interpreter's executable");
	return err_new("not an ELF file: give an executable or shared library");
}

static struct err *read_header(struct image *image)
{
	Elf64_Ehdr *header = &image->header;
	size_t size = image_read(image, 0, header, sizeof *header);
	if (size == 0)
		return err_new("the file is empty");
	if (size < SELFMAG || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
		return refuse_foreign(header->e_ident, size);
	if (size < EI_NIDENT || header->e_ident[EI_CLASS] == ELFCLASSNONE)
		return err_new("a damaged ELF file: its header ends after %zu bytes", size);
	if (header->e_ident[EI_CLASS] != ELFCLASS64)
		return err_new("a 32-bit ELF file: only 64-bit programs (x86-64 and aarch64) "
			       "are supported; build or install the 64-bit version");
	if (header->e_ident[EI_DATA] != ELFDATA2LSB)
		return err_new("a big-endian ELF file: only little-endian x86-64 and aarch64 "
			       "are supported");
	if (size < sizeof *header)
		return err_new("a damaged ELF file: its header ends after %zu bytes", size);
	if (header->e_machine != EM_X86_64 && header->e_machine != EM_AARCH64)
		return err_new("built for %s (machine %u): only x86-64 and aarch64 are supported",
			       machine_name(header->e_machine), (unsigned int)header->e_machine);
	if (header->e_type == ET_REL && image->relocatable_allowed)
		return NULL;
	return refuse_type(header->e_type);
}

/* ---- section headers ---- */

/* Section 0 holds the counts that do not fit into the ELF header; zeros where it is absent. */
static Elf64_Shdr read_section_zero(struct image *image)
{
	Elf64_Shdr zero;
	if (image->header.e_shoff == 0 || image->header.e_shentsize != sizeof zero ||
	    image_read(image, image->header.e_shoff, &zero, sizeof zero) != sizeof zero)
		memset(&zero, 0, sizeof zero);
	return zero;
}

/* How many headers of `entry` bytes at `offset` are really there, of `count` announced. */
static size_t clip_count(struct image *image, uint64_t offset, uint64_t count, size_t entry,
			 const char *what)
{
	uint64_t room = offset < image->size ? (image->size - offset) / entry : 0;
	if (room > HEADERS_MAX)
		room = HEADERS_MAX;
	if (count <= room)
		return count;
	image_note_damage(image,
			  "%s headers lie past the end of the file: %llu announced, "
			  "%llu there",
			  what, (unsigned long long)count, (unsigned long long)room);
	return room;
}

static void fill_section(struct image_section *out, const Elf64_Shdr *in)
{
	*out = (struct image_section){
		.name = "",
		.address = in->sh_addr,
		.offset = in->sh_offset,
		.size = in->sh_size,
		.entry_size = in->sh_entsize,
		.flags = in->sh_flags,
		.type = in->sh_type,
		.link = in->sh_link,
	};
}

static void name_sections(struct image *image, const Elf64_Shdr *headers, uint64_t index)
{
	const Elf64_Shdr *names = index < image->section_count ? &headers[index] : NULL;
	size_t size = 0;
	if (index == SHN_UNDEF)
		return;
	if (names && names->sh_type != SHT_NOBITS && names->sh_size <= NAMES_MAX)
		image->section_names = (char *)image_read_copy(image, names->sh_offset,
							       names->sh_size, &size);
	if (!names || size < names->sh_size)
		image_note_damage(image, "the names of its sections cannot be read");
	for (size_t i = 0; i < image->section_count; i++)
		if (headers[i].sh_name < size)
			image->sections[i].name = image->section_names + headers[i].sh_name;
}

static struct err *read_sections(struct image *image, const Elf64_Shdr *zero)
{
	const Elf64_Ehdr *header = &image->header;
	uint64_t announced = header->e_shnum ? header->e_shnum : zero->sh_size;
	size_t count, got;
	Elf64_Shdr *headers;
	if (header->e_shoff == 0 || announced == 0)
		return NULL;
	if (header->e_shentsize != sizeof(Elf64_Shdr)) {
		image_note_damage(image, "section headers of %u bytes instead of %zu",
				  (unsigned int)header->e_shentsize, sizeof(Elf64_Shdr));
		return NULL;
	}
	count = clip_count(image, header->e_shoff, announced, sizeof(Elf64_Shdr), "section");
	if (count == 0)
		return NULL;
	headers = (Elf64_Shdr *)image_read_copy(image, header->e_shoff, count * sizeof *headers,
						&got);
	image->sections = calloc(count, sizeof *image->sections);
	image->section_contents = calloc(count, sizeof *image->section_contents);
	if (!headers || !image->sections || !image->section_contents) {
		free(headers);
		return err_new("cannot read its %zu section headers", count);
	}
	image->section_count = got / sizeof *headers;
	for (size_t i = 0; i < image->section_count; i++)
		fill_section(&image->sections[i], &headers[i]);
	name_sections(image, headers,
		      header->e_shstrndx == SHN_XINDEX ? zero->sh_link : header->e_shstrndx);
	free(headers);
	return NULL;
}

/* ---- program headers ---- */

static int compare_segments(const void *a, const void *b)
{
	const struct image_segment *x = a, *y = b;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* A debug file has the section headers of its program but not the contents, and its program
   headers point to whatever lies there instead. */
static bool is_debug_file(const struct image *image)
{
	for (size_t i = 0; i < image->section_count; i++)
		if (image->sections[i].type == SHT_NOBITS &&
		    (image->sections[i].flags & SHF_EXECINSTR))
			return true;
	return false;
}

static void add_segment(struct image *image, const Elf64_Phdr *header, bool debug_file)
{
	struct image_segment s = {
		.address = header->p_vaddr,
		.size = header->p_memsz,
		.offset = header->p_offset,
		.file_size = debug_file ? 0 : header->p_filesz,
		.executable = header->p_flags & PF_X,
		.writable = header->p_flags & PF_W,
	};
	uint64_t room;
	if (header->p_type != PT_LOAD || s.size == 0)
		return;
	if (image->segment_count == SEGMENTS_MAX) {
		image_note_damage(image, "more than %d segments", SEGMENTS_MAX);
		return;
	}
	if (s.size > UINT64_MAX - s.address) {
		image_note_damage(image, "the segment at %#llx wraps around the address space",
				  (unsigned long long)s.address);
		s.size = UINT64_MAX - s.address;
	}
	room = s.offset < image->size ? image->size - s.offset : 0;
	if (s.file_size > room || s.file_size > s.size) {
		image_note_damage(image, "the segment at %#llx lies past the end of the file",
				  (unsigned long long)s.address);
		s.file_size = room < s.size ? room : s.size;
	}
	if (s.size > 0)
		image->segments[image->segment_count++] = s;
}

static struct err *read_program_headers(struct image *image, const Elf64_Shdr *zero)
{
	const Elf64_Ehdr *header = &image->header;
	uint64_t announced = header->e_phnum == PN_XNUM ? zero->sh_info : header->e_phnum;
	size_t count, got;
	if (header->e_phoff == 0 || announced == 0)
		return NULL;
	if (header->e_phentsize != sizeof(Elf64_Phdr)) {
		image_note_damage(image, "program headers of %u bytes instead of %zu",
				  (unsigned int)header->e_phentsize, sizeof(Elf64_Phdr));
		return NULL;
	}
	count = clip_count(image, header->e_phoff, announced, sizeof(Elf64_Phdr), "program");
	if (count == 0)
		return NULL;
	image->program_headers = (Elf64_Phdr *)image_read_copy(image, header->e_phoff,
							       count * sizeof(Elf64_Phdr), &got);
	image->segments = calloc(count, sizeof *image->segments);
	image->segment_contents = calloc(count, sizeof *image->segment_contents);
	if (!image->program_headers || !image->segments || !image->segment_contents)
		return err_new("cannot read its %zu program headers", count);
	image->program_header_count = got / sizeof(Elf64_Phdr);
	return NULL;
}

/* Sorted segments end where the next begins, and together take no more of the file than a few
   times its size: else a small file could fill the memory with copies of itself. */
static void part_segments(struct image *image)
{
	uint64_t left = image->size < UINT64_MAX / 4 ? image->size * 4 : UINT64_MAX;
	size_t kept = 0;
	for (size_t i = 0; i < image->segment_count; i++) {
		struct image_segment s = image->segments[i];
		bool last = i + 1 == image->segment_count;
		if (!last && s.size > image->segments[i + 1].address - s.address) {
			image_note_damage(image, "the segments at %#llx and %#llx overlap",
					  (unsigned long long)s.address,
					  (unsigned long long)image->segments[i + 1].address);
			s.size = image->segments[i + 1].address - s.address;
		}
		if (s.file_size > s.size)
			s.file_size = s.size;
		if (s.file_size > left) {
			image_note_damage(image, "its segments take the same bytes many times");
			s.file_size = left;
		}
		left -= s.file_size;
		if (s.size > 0)
			image->segments[kept++] = s;
	}
	image->segment_count = kept;
}

static void make_segments(struct image *image)
{
	bool debug_file = is_debug_file(image);
	for (size_t i = 0; i < image->program_header_count; i++)
		add_segment(image, &image->program_headers[i], debug_file);
	if (!image->segment_count)
		return;
	qsort(image->segments, image->segment_count, sizeof *image->segments, compare_segments);
	part_segments(image);
}

/* ---- build-id ---- */

static uint64_t round_up(uint64_t n, uint64_t align)
{
	return (n + align - 1) & ~(align - 1);
}

/* Takes the build-id from a run of notes; true where one was found. */
static bool take_build_id(struct image *image, const uint8_t *notes, size_t size, uint64_t align)
{
	Elf64_Nhdr note;
	align = align == 8 ? 8 : 4;
	while (size >= sizeof note) {
		uint64_t description, next;
		memcpy(&note, notes, sizeof note);
		description = round_up(sizeof note + (uint64_t)note.n_namesz, align);
		next = round_up(description + note.n_descsz, align);
		if (description + note.n_descsz > size)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
		    memcmp(notes + sizeof note, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0 &&
		    note.n_descsz > 0 && note.n_descsz <= BUILD_ID_MAX) {
			memcpy(image->build_id, notes + description, note.n_descsz);
			image->build_id_size = note.n_descsz;
			return true;
		}
		if (next >= size)
			return false;
		notes += next;
		size -= next;
	}
	return false;
}

static bool build_id_in(struct image *image, uint64_t offset, uint64_t size, uint64_t align)
{
	size_t got;
	uint8_t *notes = image_read_copy(image, offset, size < NOTES_MAX ? size : NOTES_MAX, &got);
	bool found = notes && take_build_id(image, notes, got, align);
	free(notes);
	return found;
}

/* Sections first: in a debug file the program headers point to the wrong bytes. */
static void read_build_id(struct image *image)
{
	const struct image_section *s = image_section(image, ".note.gnu.build-id");
	if (s && s->type == SHT_NOTE && build_id_in(image, s->offset, s->size, 4))
		return;
	for (size_t i = 0, tried = 0; i < image->program_header_count && tried < NOTES_TRIED; i++) {
		const Elf64_Phdr *p = &image->program_headers[i];
		if (p->p_type != PT_NOTE)
			continue;
		if (build_id_in(image, p->p_offset, p->p_filesz, p->p_align))
			return;
		tried++;
	}
}

/* ---- open and close ---- */

static struct err *read_all_headers(struct image *image)
{
	struct err *e = read_header(image);
	Elf64_Shdr zero;
	if (e)
		return e;
	zero = read_section_zero(image);
	e = read_program_headers(image, &zero);
	if (!e)
		e = read_sections(image, &zero);
	if (e)
		return e;
	make_segments(image);
	if (image->section_count == 0 && !image_synthesize_sections(image))
		return err_new("out of memory");
	read_build_id(image);
	return NULL;
}

/* Takes over `memory`; `fd` is duplicated. */
static struct err *open_common(int fd, uint8_t *memory, uint64_t size, const char *name,
			       bool relocatable_allowed, struct image **out)
{
	struct image *image = calloc(1, sizeof *image);
	struct err *e;
	*out = NULL;
	if (!image) {
		free(memory);
		return err_new("%s: out of memory", name);
	}
	pthread_mutex_init(&image->lock, NULL);
	image->memory = image->memory_owned = memory;
	image->size = size;
	image->relocatable_allowed = relocatable_allowed;
	image->most = UINT64_MAX;
	image->path = strdup(name);
	image->fd = memory ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (!image->path)
		e = err_new("out of memory");
	else if (!memory && image->fd < 0)
		e = err_errno("cannot keep it open");
	else
		e = read_all_headers(image);
	if (e) {
		image_close(image);
		return err_context(e, "%s", name);
	}
	*out = image;
	return NULL;
}

static struct err *open_file(int fd, const char *name, bool relocatable_allowed, struct image **out)
{
	struct stat status;
	*out = NULL;
	if (fstat(fd, &status) != 0)
		return err_errno("%s: cannot read", name);
	if (S_ISDIR(status.st_mode))
		return err_new("%s: a directory: give an executable or library in it", name);
	if (!S_ISREG(status.st_mode))
		return err_new("%s: not a regular file: give an executable or library", name);
	return open_common(fd, NULL, (uint64_t)status.st_size, name, relocatable_allowed, out);
}

static struct err *open_path(const char *path, bool relocatable_allowed, struct image **out)
{
	int fd = foreign_open(path, 0);
	struct err *e;
	*out = NULL;
	if (fd < 0)
		return err_errno("%s: cannot open", path);
	e = open_file(fd, path, relocatable_allowed, out);
	close(fd);
	return e;
}

struct err *image_open(const char *path, struct image **out)
{
	return open_path(path, false, out);
}

struct err *image_open_shared_debug(const char *path, struct image **out)
{
	return open_path(path, true, out);
}

struct err *image_open_fd(int fd, const char *name, struct image **out)
{
	return open_file(fd, name, false, out);
}

struct err *image_open_owned(uint8_t *bytes, size_t size, const char *name, struct image **out)
{
	return open_common(-1, bytes, size, name, false, out);
}

struct err *image_open_memory(const void *bytes, size_t size, const char *name, struct image **out)
{
	uint8_t *copy = malloc(size + 1);
	*out = NULL;
	if (!copy)
		return err_new("%s: out of memory", name);
	if (size)
		memcpy(copy, bytes, size);
	copy[size] = 0;
	return image_open_owned(copy, size, name, out);
}

void image_bound(struct image *image, uint64_t most)
{
	image->most = most;
}

bool image_exceeded(const struct image *image)
{
	return atomic_load(&image->exceeded);
}

static void free_contents(struct contents *contents, size_t count)
{
	for (size_t i = 0; contents && i < count; i++)
		free(contents[i].owned);
	free(contents);
}

void image_close(struct image *image)
{
	if (!image)
		return;
	if (image->fd >= 0)
		close(image->fd);
	free_contents(image->segment_contents, image->segment_count);
	free_contents(image->section_contents, image->section_count);
	free(image->segments);
	free(image->sections);
	free(image->section_names);
	free(image->program_headers);
	free(image->memory_owned);
	free(image->damage);
	free(image->path);
	pthread_mutex_destroy(&image->lock);
	free(image);
}

/* ---- what it says ---- */

const char *image_path(const struct image *image)
{
	return image->path;
}

int image_descriptor(const struct image *image)
{
	return image->fd;
}

/* Of what is in memory, which nobody else has. */
static int new_file(const struct image *image)
{
	int fd = memfd_create("culprit-image", MFD_CLOEXEC);
	uint64_t done = 0;
	while (fd >= 0 && done < image->size) {
		ssize_t n = write(fd, image->memory + done, (size_t)(image->size - done));
		if (n > 0) {
			done += (uint64_t)n;
		} else if (n == 0 || errno != EINTR) {
			close(fd);
			return -1;
		}
	}
	return fd;
}

int image_hand_over(const struct image *image)
{
	return image->fd >= 0 ? fcntl(image->fd, F_DUPFD_CLOEXEC, 0) : new_file(image);
}

uint16_t image_machine(const struct image *image)
{
	return image->header.e_machine;
}

uint16_t image_type(const struct image *image)
{
	return image->header.e_type;
}

uint64_t image_entry(const struct image *image)
{
	return image->header.e_entry;
}

char *image_interpreter(struct image *image)
{
	for (size_t i = 0; i < image->program_header_count; i++) {
		const Elf64_Phdr *p = &image->program_headers[i];
		size_t got;
		if (p->p_type == PT_INTERP)
			return (char *)image_read_copy(
				image, p->p_offset, p->p_filesz < PATH_MAX ? p->p_filesz : PATH_MAX,
				&got);
	}
	return NULL;
}

size_t image_build_id(const struct image *image, const uint8_t **bytes)
{
	*bytes = image->build_id;
	return image->build_id_size;
}

void image_build_id_hex(const struct image *image, char *out)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < image->build_id_size; i++) {
		*out++ = digits[image->build_id[i] >> 4];
		*out++ = digits[image->build_id[i] & 15];
	}
	*out = 0;
}

bool image_is_same(const struct image *image, const char *path, const char *build_id,
		   uint64_t until)
{
	char id[2 * BUILD_ID_MAX + 1];
	struct stat st;
	image_build_id_hex(image, id);
	if (strcmp(id, build_id) != 0)
		return false;
	return *id || !until || stat(path, &st) || (uint64_t)st.st_mtime <= until + 1;
}

size_t image_segments(const struct image *image, const struct image_segment **out)
{
	*out = image->segments;
	return image->segment_count;
}

bool image_is_code(const struct image *image, uint64_t address)
{
	const struct image_segment *segments;
	size_t count = image_segments(image, &segments);
	for (size_t i = 0; i < count; i++)
		if (segments[i].executable && address >= segments[i].address &&
		    address - segments[i].address < segments[i].file_size)
			return true;
	return false;
}

size_t image_sections(const struct image *image, const struct image_section **out)
{
	*out = image->sections;
	return image->section_count;
}

static const struct image_section *section_named(const struct image *image, const char *name)
{
	const struct image_section *empty = NULL;
	for (size_t i = 0; i < image->section_count; i++) {
		const struct image_section *s = &image->sections[i];
		if (s->type == SHT_NULL || strcmp(s->name, name) != 0)
			continue;
		if (s->type != SHT_NOBITS)
			return s;
		if (!empty)
			empty = s;
	}
	return empty;
}

const struct image_section *image_section(const struct image *image, const char *name)
{
	const struct image_section *s = section_named(image, name);
	char old_name[64];
	/* The old way of compressing: .debug_info is called .zdebug_info. */
	if (!s && strncmp(name, ".debug_", 7) == 0 &&
	    snprintf(old_name, sizeof old_name, ".z%s", name + 1) < (int)sizeof old_name)
		s = section_named(image, old_name);
	return s;
}

const char *image_damage(const struct image *image)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&image->lock;
	const char *damage;
	pthread_mutex_lock(lock);
	damage = image->damage;
	pthread_mutex_unlock(lock);
	return damage;
}
