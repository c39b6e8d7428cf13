/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_copies FILE...: of how many functions of a file the paths can be counted, and why not of the others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/clock.h"
#include "flow/graph.h"
#include "image/image.h"
#include "paths/choice.h"
#include "copies/module.h"
#include "copies/write.h"

#define REASONS 64u

struct reason {
	const char *text;
	size_t functions, blocks;
};

static void add(struct reason *all, const char *text, size_t blocks)
{
	unsigned i = 0;
	while (i < REASONS - 1 && all[i].text && strcmp(all[i].text, text))
		i++;
	all[i].text = all[i].text ? all[i].text : text;
	all[i].functions++;
	all[i].blocks += blocks;
}

static void tell(const char *path, const struct path_module *m, double seconds)
{
	struct reason all[REASONS] = {{"counted", 0, 0}};
	uint64_t paths = 0, code = 0, original = 0;
	uint64_t varies = 0, saves = 0, pressed = 0, blocks = 0;
	for (size_t i = 0; i < m->count; i++) {
		const struct path_item *item = &m->items[i];
		add(all, item->reason ? item->reason : "counted",
		    item->graph ? item->graph->block_count : 0);
		if (item->reason)
			continue;
		paths += item->sums.numbering.path_count;
		code += item->copy.size;
		for (size_t k = 0; k < item->copy.part_count; k++)
			original += item->parts[k].end - item->parts[k].start;
		for (size_t b = 0; b < item->graph->block_count; b++) {
			blocks++;
			varies += item->sums.blocks[b].varies;
			saves += item->sums.blocks[b].varies &&
				 item->sums.blocks[b].save != SUMS_NO_CALL;
		}
		pressed += item->sums.pressed;
	}
	printf("%s: %zu functions, %.2f s, %llu paths, code %.2f times, object %zu kB, %llu words; "
	       "blocks %llu, sums vary in %llu, kept at calls in %llu, no register in %llu\n",
	       path, m->count, seconds, (unsigned long long)paths,
	       original ? (double)code / (double)original : 0, m->object.size / 1024,
	       (unsigned long long)m->words, (unsigned long long)blocks, (unsigned long long)varies,
	       (unsigned long long)saves, (unsigned long long)pressed);
	for (unsigned i = 0; i < REASONS && all[i].text; i++)
		printf("  %6zu functions %8zu blocks  %s\n", all[i].functions, all[i].blocks,
		       all[i].text);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct image *image = NULL;
		struct path_module module = {0};
		const struct path_choice choice = {0};
		const struct path_module_input input = {
			.choice = &choice, .name = "copies", .thread_word = 16};
		uint64_t start = now_ns();
		struct err *e = image_open(argv[i], &image);
		struct path_module_input with = input;
		with.image = image;
		if (!e) { /* far behind the code, but in reach */
			with.base = write_reach(image_machine(image)) / 2 & ~UINT64_C(4095);
			e = path_module_make(&with, &module);
		}
		if (e)
			fprintf(stderr, "%s: %s\n", argv[i], err_text(e));
		else
			tell(argv[i], &module, (double)(now_ns() - start) / 1e9);
		err_free(e);
		path_module_free(&module);
		image_close(image);
	}
	return 0;
}
