/* SPDX-License-Identifier: Apache-2.0 */
#include "copies/copy.h"

#include <stdlib.h>

void copy_free(struct copy *c)
{
	free(c->code);
	free(c->steps);
	free(c->landings);
	free(c->calls);
	free(c->places);
	c->code = NULL;
	c->steps = NULL;
	c->landings = NULL;
	c->calls = NULL;
	c->places = NULL;
	c->size = c->step_count = c->landing_count = c->call_count = c->place_count = 0;
}
