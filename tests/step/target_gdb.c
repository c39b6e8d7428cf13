/* SPDX-License-Identifier: Apache-2.0 */
#include "step/target.h"
#include "base/err.h"
static struct err *gdb_start(struct target *t, char **argv) { (void)t;(void)argv; return err_new("not yet"); }
const struct target_ops target_gdb = {.start = gdb_start};
