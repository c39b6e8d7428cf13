/* SPDX-License-Identifier: Apache-2.0 */
#include "process/kernel_names.h"

#include <ctype.h>
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"

#define LIST_MAX ((size_t)256 << 20) /* in bytes */
#define FUNCTION_MAX (1u << 20)      /* in bytes: farther from a symbol is not its code */

struct symbol {
	uint64_t address;
	uint32_t name : 31, module : 1; /* name: offset in `text` */
};

struct kernel_names {
	char *text;             /* names, one after the other */
	struct symbol *symbols; /* sorted by address */
	size_t count;
	uint64_t shift;
};

static int compare(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

/* A line is "ffff800080010000 T _text", with "\t[module]" after it for code of a module. */
static bool take_line(char *line, struct symbol *out, char **name)
{
	char *end;
	out->address = strtoull(line, &end, 16);
	if (end == line || *end != ' ' || !end[1] || end[2] != ' ' || !strchr("tTwW", end[1]))
		return false;
	char *tab = end + 3 + strcspn(end + 3, " \t");
	out->module = *tab != 0;
	*tab = 0;
	*name = end + 3;
	return out->address && **name && **name != '$';
}

/* Keeps only the names of the list. They are moved to the beginning of the text. */
static void take_list(struct kernel_names *k, size_t lines)
{
	char *rest = k->text, *to = k->text, *name;
	for (char *line; k->count < lines && (line = strsep(&rest, "\n"));)
		if (take_line(line, &k->symbols[k->count], &name)) {
			size_t size = strlen(name) + 1;
			k->symbols[k->count++].name = (uint32_t)(to - k->text) & INT32_MAX;
			memmove(to, name, size);
			to += size;
		}
	char *text = realloc(k->text, (size_t)(to - k->text) + 1);
	struct symbol *symbols = reallocarray(k->symbols, k->count + 1, sizeof *symbols);
	k->text = text ? text : k->text;
	k->symbols = symbols ? symbols : k->symbols;
}

struct err *kernel_names_parse(const char *text, size_t size, struct kernel_names **out)
{
	struct kernel_names *k = calloc(1, sizeof *k);
	size_t lines = 1;
	*out = NULL;
	for (size_t i = 0; i < size; i++)
		lines += text[i] == '\n';
	if (k)
		k->text = strndup(text, size);
	if (k)
		k->symbols = reallocarray(NULL, lines, sizeof *k->symbols);
	if (!k || !k->text || !k->symbols) {
		kernel_names_close(k);
		return err_new("out of memory");
	}
	take_list(k, lines);
	if (!k->count) {
		kernel_names_close(k);
		return err_new("it has no addresses of functions");
	}
	qsort(k->symbols, k->count, sizeof *k->symbols, compare);
	*out = k;
	return NULL;
}

static bool read_all(const char *path, size_t max, struct buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t done = -1;
	while (fd >= 0 && out->size < max && buf_reserve(out, 1 << 16)) {
		done = read(fd, out->data + out->size, 1 << 16);
		if (done <= 0)
			break;
		out->size += (size_t)done;
	}
	if (fd >= 0)
		close(fd);
	return !done && out->size;
}

struct err *kernel_names_open(const char *path, struct kernel_names **out)
{
	struct buf text = {0};
	*out = NULL;
	struct err *e = read_all(path, LIST_MAX, &text)
				? kernel_names_parse(text.data, text.size, out)
				: err_new("cannot read");
	buf_free(&text);
	return err_context(e, "%s", path);
}

bool kernel_names_shown(const char *path)
{
	char line[256];
	bool shown = false;
	FILE *file = fopen(path, "re");
	for (int i = 0; file && !shown && i < 100 && fgets(line, sizeof line, file); i++)
		shown = strtoull(line, NULL, 16);
	if (file)
		fclose(file);
	return shown;
}

void kernel_names_close(struct kernel_names *k)
{
	if (!k)
		return;
	free(k->symbols);
	free(k->text);
	free(k);
}

void kernel_names_move(struct kernel_names *k, const char *name, uint64_t address)
{
	for (size_t i = 0; i < k->count; i++)
		if (!k->symbols[i].module && !strcmp(k->text + k->symbols[i].name, name)) {
			k->shift = address - k->symbols[i].address;
			return;
		}
}

uint64_t kernel_names_address(const struct kernel_names *k, const char *name)
{
	for (size_t i = 0; i < k->count; i++)
		if (!strcmp(k->text + k->symbols[i].name, name))
			return k->symbols[i].address + (k->symbols[i].module ? 0 : k->shift);
	return 0;
}

const char *kernel_names_find(const struct kernel_names *k, uint64_t address, uint64_t *start,
			      uint64_t *size)
{
	uint64_t at = address - k->shift;
	size_t after = FIRST_NOT(i, k->count, k->symbols[i].address <= at);
	if (!after)
		return NULL;
	/* If several symbols have the same address, take the first of the list. */
	uint64_t begin = k->symbols[after - 1].address;
	uint64_t end = after < k->count ? k->symbols[after].address : begin + FUNCTION_MAX;
	while (after > 1 && k->symbols[after - 2].address == begin)
		after--;
	const struct symbol *s = &k->symbols[after - 1];
	if ((s->module && k->shift) || at - begin >= FUNCTION_MAX)
		return NULL;
	*start = begin + k->shift;
	*size = end - begin;
	return k->text + s->name;
}

/* A hash of which kernel modules there are, and where. Lines are "NAME SIZE USERS …, STATE ADDRESS". Only
   name and address are used, since the fields between them change all the time. */
static uint64_t stamp_of(const char *modules)
{
	struct buf text = {0};
	uint64_t hash = HASH_START;
	if (!read_all(modules, LIST_MAX, &text))
		buf_clear(&text);
	buf_append(&text, "", 1);
	char *rest = text.failed ? NULL : text.data;
	for (char *line; (line = strsep(&rest, "\n"));) {
		const char *address = strstr(line, " 0x");
		size_t length = strcspn(line, " ");
		hash = hash_bytes(hash, line, length);
		hash = hash_bytes(hash, address, address ? strcspn(address + 1, " ") + 1 : 0);
	}
	buf_free(&text);
	return hash ? hash : 1;
}

void kernel_names_renew(struct kernel_names **names, uint64_t *stamp, const char *path,
			const char *modules)
{
	struct kernel_names *fresh;
	uint64_t now = stamp_of(modules), before = *stamp;
	*stamp = now;
	if (!*names || !before || before == now)
		return;
	struct err *e = kernel_names_open(path, &fresh);
	if (!e) {
		kernel_names_close(*names);
		*names = fresh;
	}
	err_free(e);
}

void kernel_names_own_id(char out[41])
{
	struct buf notes = {0};
	out[0] = 0;
	read_all("/sys/kernel/notes", 1 << 20, &notes);
	Elf64_Nhdr head;
	for (size_t at = 0; notes.size - at >= sizeof head;) {
		memcpy(&head, notes.data + at, sizeof head);
		uint64_t name = at + sizeof head,
			 id = name + (((uint64_t)head.n_namesz + 3) & ~3ull);
		uint64_t next = id + (((uint64_t)head.n_descsz + 3) & ~3ull);
		if (next > notes.size)
			break;
		at = (size_t)next;
		if (head.n_type != NT_GNU_BUILD_ID || head.n_descsz > 20 || head.n_namesz != 4 ||
		    memcmp(notes.data + name, "GNU", 4) != 0)
			continue;
		for (uint32_t i = 0; i < head.n_descsz; i++)
			snprintf(out + (size_t)2 * i, 3, "%02x", (uint8_t)notes.data[id + i]);
		break;
	}
	buf_free(&notes);
}

void kernel_names_boot(char out[KERNEL_BOOT_SIZE])
{
	char text[KERNEL_BOOT_SIZE] = "";
	size_t used = 0;
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (file && fgets(text, sizeof text, file))
		for (const char *at = text; *at; at++)
			if (isxdigit((unsigned char)*at))
				out[used++] = *at;
	out[used] = 0;
	if (file)
		fclose(file);
}
