/* SPDX-License-Identifier: MIT */
/* otlp_send.h - profiles sent to a receiver of OTLP over HTTP. */
#ifndef PROBING_CLI_OTLP_SEND_H
#define PROBING_CLI_OTLP_SEND_H

#include <stdbool.h>

#include "src/cli/exporters.h"
#include "src/http/http.h"

/* Whether an output is an address, http://... or https://... */
bool otlp_is_address(const char *out);

/* otlp_send - send a view once. Returns 0, or prints a message and returns an exit status. */
int otlp_send(const struct exporting *exporting, bool quiet);

/* ---- In steps ---- */

enum { OTLP_MAX_WHY = 1024 };

struct otlp_receiver;

/*
 * otlp_receiver_open - prepare to send. Connects to nothing yet.
 * @out: http[s]://HOST[:PORT][/PATH]; borrowed. @options: without an authority, the environment's counts.
 * @ret: ended with otlp_receiver_close(), also after a failure.
 * Returns 0, or prints a message and returns an exit status.
 */
int otlp_receiver_open(const char *out, const struct http_options *options, struct otlp_receiver **ret);
void otlp_receiver_close(struct otlp_receiver *receiver);
const char *otlp_receiver_url(const struct otlp_receiver *receiver);

/*
 * otlp_write - a profile as the body of a request, compressed.
 * @exporter: of OTLP. @ret: owned by the caller. Errors: those of an exporter.
 */
int otlp_write(const struct exporter *exporter, const struct profile *profile, const struct export_options *options,
	       char **ret, size_t *ret_bytes);

/*
 * otlp_post - send a body once.
 * @n_profiles: of the body, export_otlp_count(). @why: a sentence about an error, of OTLP_MAX_WHY bytes.
 * Errors: -EAGAIN what passes: no connection, a lost answer, a status that asks to try again; -EACCES the receiver refuses
 * the sender; -ENOENT it receives no profiles; -EMSGSIZE it takes none as large; -EREMOTEIO it refuses all of this one; -EREMOTE it
 * refuses a part, and does not say which; -ECOMM another status; -EPROTO it is none; others of http_send().
 */
int otlp_post(struct otlp_receiver *receiver, const char *bytes, size_t n_bytes, unsigned n_profiles, char *why);

#endif
