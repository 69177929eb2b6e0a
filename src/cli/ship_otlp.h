/* SPDX-License-Identifier: MIT */
/* ship_otlp.h - probing ship to a receiver of OTLP profiles: otlp+https://HOST:PORT. */
#ifndef PROBING_CLI_SHIP_OTLP_H
#define PROBING_CLI_SHIP_OTLP_H

#include "src/fleet/fleet.h"

struct ship_otlp;

/* Whether an address is of such a receiver. */
bool ship_otlp_is_one(const char *url);

/*
 * ship_otlp_open - prepare to send.
 * @url: otlp+http[s]://HOST[:PORT][/PATH]. @access: certificates, and keep_going. @service: service.name of all
 * recordings; NULL: of each its program. All borrowed.
 * @sink: set. @ret: ended with ship_otlp_close(), also after a failure.
 * Returns 0, or prints a message and returns an exit status.
 */
int ship_otlp_open(const char *url, const struct fleet_access *access, const char *service, struct fleet_sink *sink,
		   struct ship_otlp **ret);
void ship_otlp_close(struct ship_otlp *ship);

#endif
