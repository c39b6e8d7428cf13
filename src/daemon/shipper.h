/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sends what the database gets on to a server for many hosts, in a thread of its
 * own: sampling and writing never wait for the network. Spans wait in the
 * database file, so neither a crash nor a server that is away loses any; where
 * more wait than may, the oldest are given up, and it is said.
 */
#include <stdbool.h>
#include <stdint.h>

#include "daemon/config.h"

struct err;
struct shipper;
struct writer;

typedef void shipper_say(void *context, enum config_log level, const char *text);

/* Where the settings name no server, *out is NULL, and nothing waits to be sent. */
struct err *shipper_open(const struct config *config, struct writer *writer, struct shipper **out);
/* The following are fine with NULL. */

/* Every now and then, by who writes the database: notes there how far it is, and says what is new. */
void shipper_tick(struct shipper *shipper, shipper_say *say, void *context);
/* Sends what there is, for a few seconds; what is left is sent the next time. */
void shipper_finish(struct shipper *shipper, shipper_say *say, void *context);
void shipper_close(struct shipper *shipper);
