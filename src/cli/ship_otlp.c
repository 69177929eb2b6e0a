/* SPDX-License-Identifier: MIT */
/* ship_otlp.c - see ship_otlp.h. A shipment is a profile of its samples, with the times of each. */
#include "src/cli/ship_otlp.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/otlp_send.h"
#include "src/profile/profile.h"
#include "src/store/store.h"

static const char scheme[] = "otlp+";

struct ship_otlp {
	const struct exporter *exporter;
	struct otlp_receiver *receiver;
	struct export_options options;
};

bool ship_otlp_is_one(const char *url)
{
	return strncmp(url, scheme, strlen(scheme)) == 0;
}

/* Times select the blocks to read, numbers the samples. */
static int load(const struct fleet_range *range, struct profile **ret)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	char where[96];
	const struct profile_filter filter = { .has_since = true,
					       .has_until = true,
					       .since = (double)range->since_ns / 1e9 - 1e-3,
					       .until = (double)range->until_ns / 1e9 + 1e-3,
					       .where = where,
					       .with_samples = true };
	int r = store_open_reader(range->path, &db);

	if (r < 0)
		return r;
	snprintf(where, sizeof where, "rowid BETWEEN %" PRId64 " AND %" PRId64, range->first, range->last);
	r = profile_load_view(db, &filter, ret);
	if (r < 0)
		return r;
	(*ret)->run.started_ns = range->since_ns;
	(*ret)->run.ended_ns = range->until_ns;
	return 0;
}

static int send_range(void *data, const struct fleet_range *range, uint64_t *ret_bytes, char *why)
{
	CLEANUP(profile_freep) struct profile *profile = NULL;
	CLEANUP(freep) char *bytes = NULL;
	struct ship_otlp *ship = data;
	size_t n_bytes = 0;
	int r = load(range, &profile);

	if (r < 0) {
		store_explain(r, range->path, why, FLEET_MAX_SENTENCE);
		return r;
	}
	r = otlp_write(ship->exporter, profile, &ship->options, &bytes, &n_bytes);
	if (r < 0) {
		snprintf(why, FLEET_MAX_SENTENCE, "%s: samples %" PRId64 " to %" PRId64 " are no OTLP profile: %s",
			 range->path, range->first, range->last, strerror(-r));
		return r;
	}
	*ret_bytes = n_bytes;
	_Static_assert((int)FLEET_MAX_SENTENCE >= (int)OTLP_MAX_WHY, "the receiver's sentences fit");
	return otlp_post(ship->receiver, bytes, n_bytes, export_otlp_count(profile), why);
}

int ship_otlp_open(const char *url, const struct fleet_access *access, const char *service, struct fleet_sink *sink,
		   struct ship_otlp **ret)
{
	const struct http_options options = { .ca_file = access->ca_file,
					      .cert_file = access->cert_file,
					      .key_file = access->key_file,
					      .keep_going = access->keep_going,
					      .keep_going_data = access->keep_going_data };
	struct ship_otlp *ship = calloc(1, sizeof *ship);
	int status;

	*ret = ship;
	if (!ship)
		return cli_fail(EXIT_FAILED, "not enough memory");
	ship->options.service = service;
	ship->exporter = exporter_by_name("otlp");
	if (!ship->exporter)
		return cli_fail(EXIT_FAILED, "this probing was built without OTLP");
	status = exporters_check(ship->exporter);
	if (status == EXIT_OK)
		status = otlp_receiver_open(url + strlen(scheme), &options, &ship->receiver);
	if (status == EXIT_OK)
		*sink = (struct fleet_sink){ .target = otlp_receiver_url(ship->receiver),
					     .send = send_range,
					     .data = ship };
	return status;
}

void ship_otlp_close(struct ship_otlp *ship)
{
	if (ship)
		otlp_receiver_close(ship->receiver);
	free(ship);
}
