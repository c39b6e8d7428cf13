/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copies make FILE BASE BIAS WORD ATOMICS OUT     writes the object OUT.so and, for counter.c, the plan OUT.plan
 * copies blocks FILE BASE BIAS WORD ATOMICS OUT   tells how often each block ran, by the counters in OUT.counts
 * copies places FILE BASE BIAS WORD ATOMICS OUT   follows a run by what the emulator has written to OUT.steps (-d cpu), and checks what
 *                                                 would be told of its paths (../path_places/check.h)
 *
 * All say what is not counted, and why. Numbers are in hex, but for WORD and ATOMICS.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "copies/module.h"
#include "flow/graph.h"
#include "image/image.h"
#include "paths/choice.h"
#include "paths/numbering.h"

#include "../path_places/check.h"

#define SP 31u

static void must(struct err *e)
{
	if (!e)
		return;
	fprintf(stderr, "copies: %s\n", err_text(e));
	exit(1);
}

static FILE *open_out(const char *name, const char *suffix, const char *mode)
{
	char path[4096];
	snprintf(path, sizeof path, "%s%s", name, suffix);
	FILE *f = fopen(path, mode);
	if (!f)
		must(err_errno("%s", path));
	return f;
}

static void make(const struct path_module *m, uint64_t base, uint64_t bias, const char *out)
{
	FILE *f = open_out(out, ".so", "wb");
	if (fwrite(m->object.data, 1, m->object.size, f) != m->object.size || fclose(f))
		must(err_errno("%s.so", out));
	f = open_out(out, ".plan", "w");
	fprintf(f, "base %" PRIx64 "\nwords %" PRIu64 "\n", base + bias, m->words);
	for (size_t i = 0; i < m->count; i++) {
		const struct path_item *item = &m->items[i];
		if (item->reason)
			continue;
		fprintf(f, "jump %" PRIx64 " ", item->jump_at + bias);
		for (unsigned k = 0; k < item->jump_size; k++)
			fprintf(f, "%02x", item->jump[k]);
		fprintf(f, "\n");
	}
	if (fclose(f))
		must(err_errno("%s.plan", out));
}

static void tell_function(const struct path_item *item, const uint64_t *words)
{
	const struct numbering *n = &item->sums.numbering;
	uint64_t *counts = calloc(item->graph->block_count + 1, sizeof *counts), unknown = 0;
	struct numbering_path path = {0};
	for (uint64_t i = 0; i < item->sums.words; i++) {
		uint64_t count = words[1 + i];
		if (count && i >= n->path_count)
			unknown += count;
		if (!count || i >= n->path_count)
			continue;
		must(numbering_decode(n, i, &path));
		for (size_t k = 0; k < path.count; k++)
			counts[path.blocks[k]] += count;
	}
	numbering_path_free(&path);
	printf("function %" PRIx64 " %" PRIu64 " %" PRIu64 " %s\n", item->entry,
	       path_item_calls(item, words), unknown, item->name);
	for (size_t b = 0; b < item->graph->block_count; b++)
		if (item->graph->blocks[b].reached)
			printf("block %" PRIx64 " %" PRIu64 "\n", item->graph->blocks[b].start,
			       counts[b]);
	free(counts);
}

static void tell(const struct path_module *m, const char *out)
{
	FILE *f = open_out(out, ".counts", "rb");
	uint64_t *words = calloc(m->words + 1, sizeof *words);
	if (!words || fread(words, sizeof *words, m->words, f) != m->words)
		must(err_new("%s.counts: too short", out));
	fclose(f);
	for (size_t i = 0; i < m->count; i++)
		if (!m->items[i].reason)
			tell_function(&m->items[i], words + m->items[i].first_word);
	free(words);
}

/* Registers, up to SP, which comes last. */
static bool read_step(FILE *f, uint64_t *registers, uint64_t *pc)
{
	char word[64];
	while (fscanf(f, "%63s", word) == 1) {
		const char *value = strchr(word, '=');
		uint64_t number = value ? strtoull(value + 1, NULL, 16) : 0;
		unsigned long reg = word[0] == 'X' ? strtoul(word + 1, NULL, 10) : SP + 1;
		if (reg < SP)
			registers[reg] = number;
		else if (!strncmp(word, "PC=", 3))
			*pc = number;
		else if (!strncmp(word, "SP=", 3)) {
			registers[SP] = number;
			return true;
		}
	}
	return false;
}

static void follow(const struct path_module *m, uint64_t bias, const char *out)
{
	struct check check = {.link_register = true};
	uint64_t registers[SP + 1] = {0}, pc = 0;
	struct path_spot spot;
	size_t item;
	FILE *f = open_out(out, ".steps", "r");
	while (read_step(f, registers, &pc))
		if (path_module_spot(m, pc - bias, registers, &item, &spot))
			check_step(&check, &m->items[item], &spot, pc - bias, pc, registers[SP]);
	fclose(f);
	check_end(&check);
}

int main(int argc, char **argv)
{
	const struct path_choice choice = {0};
	struct path_module_input input = {.choice = &choice, .name = "copies"};
	struct path_module module = {0};
	if (argc != 8) {
		fprintf(stderr,
			"usage: copies make|blocks|places FILE BASE BIAS WORD ATOMICS OUT\n");
		return 2;
	}
	must(image_open(argv[2], &input.image));
	input.bias = strtoull(argv[4], NULL, 16);
	input.base = strtoull(argv[3], NULL, 16) - input.bias;
	input.thread_word = strtoull(argv[5], NULL, 10);
	input.atomics = atoi(argv[6]);
	must(path_module_make(&input, &module));
	for (size_t i = 0; i < module.count; i++)
		if (module.items[i].reason)
			printf("left %" PRIx64 " %s: %s\n", module.items[i].entry,
			       module.items[i].name, module.items[i].reason);
	if (!strcmp(argv[1], "make"))
		make(&module, input.base, input.bias, argv[7]);
	else if (!strcmp(argv[1], "places"))
		follow(&module, input.bias, argv[7]);
	else
		tell(&module, argv[7]);
	path_module_free(&module);
	image_close(input.image);
	return 0;
}
