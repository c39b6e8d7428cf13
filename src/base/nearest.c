/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"

#include <string.h>

#define NAME_MAX_COMPARED 24
#define WRONG_MAX 2
#define START_LEAST 3 /* letters of a name whose end was left out */

/* How many letters must be changed, added or left out to get from a to b. */
static size_t distance(const char *a, size_t length, const char *b, size_t width)
{
	size_t row[NAME_MAX_COMPARED + 1];
	for (size_t j = 0; j <= width; j++)
		row[j] = j;
	for (size_t i = 0; i < length; i++) {
		size_t diagonal = row[0];
		row[0] = i + 1;
		for (size_t j = 1; j <= width; j++) {
			size_t change = diagonal + (a[i] != b[j - 1]);
			diagonal = row[j];
			if (row[j - 1] < row[j])
				row[j] = row[j - 1];
			row[j]++;
			if (change < row[j])
				row[j] = change;
		}
	}
	return row[width];
}

void nearest_try(struct nearest *n, const char *text, size_t length, const char *name)
{
	size_t width = strlen(name);
	if (length > NAME_MAX_COMPARED || width > NAME_MAX_COMPARED)
		return;
	size_t wrong = distance(text, length, name, width);
	if (wrong > WRONG_MAX && length >= START_LEAST && !strncmp(text, name, length))
		wrong = WRONG_MAX; /* all that is there is right */
	if (wrong > WRONG_MAX || wrong >= width || wrong >= length ||
	    (n->name && wrong >= n->wrong))
		return;
	n->name = name;
	n->wrong = wrong;
}
