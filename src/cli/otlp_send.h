/* SPDX-License-Identifier: MIT */
/* otlp_send.h - profiles sent to a receiver of OTLP over HTTP, where a verb writes a file. */
#ifndef PROBING_CLI_OTLP_SEND_H
#define PROBING_CLI_OTLP_SEND_H

#include <stdbool.h>

#include "src/cli/exporters.h"

/* Whether an output is an address, http://... or https://... */
bool otlp_is_address(const char *out);

/* otlp_send - send a view once. Returns 0, or prints a message and returns an exit status. */
int otlp_send(const struct exporting *exporting, bool quiet);

#endif
