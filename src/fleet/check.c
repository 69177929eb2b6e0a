/* SPDX-License-Identifier: MIT */
/* check.c - what was sent, whether the server has it, and the removal of old days. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/fleet/ship.h"

/* ---- Status ---- */

/* A recording, its server and its plan. */
struct checked {
	struct feed feed;
	struct fleet_server server;
	struct plan *plan;
	char *job;
};

static void checked_done(struct checked *checked)
{
	feed_done(&checked->feed);
	server_close(&checked->server);
	plan_close(checked->plan);
	free(checked->job);
}

static int fail(char *error, int r, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int fail(char *error, int r, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error, FLEET_MAX_SENTENCE, format, arguments);
	va_end(arguments);
	return r;
}

/* The plan of the server that has one. */
static int open_plan(struct checked *checked, const char *url, const struct fleet_options *options, char *error)
{
	char target[512];
	int r = options->sink ? 0 : server_open(&checked->server, url, &options->access);

	if (r < 0)
		return fail(error, r, "%s", checked->server.error); /* without the address: a password may be in it */
	if (options->sink)
		snprintf(target, sizeof target, "%s", options->sink->target);
	else
		server_target(&checked->server, target, sizeof target);
	r = plan_open(options->state, checked->feed.run.run, target, &checked->plan);
	if (r == 0)
		r = plan_job(checked->plan, NULL, &checked->job); /* who looks does not name the job */
	if (r == -EBUSY)
		return fail(error, r, "%s is being sent: try again when its probing ship has ended",
			    checked->feed.path);
	return r < 0 ? fail(error, r, "%s: its plan of shipments cannot be opened: %s", checked->feed.path,
			    strerror(-r))
		     : 0;
}

static int open_checked(struct checked *checked, const char *path, const struct fleet_options *options,
			struct fleet_status *ret, char *error)
{
	struct plan_counts counts = { 0 };
	uint32_t block = 0;
	int r;

	checked->feed.path = path;
	r = feed_begin(&checked->feed);
	if (r == 0)
		r = feed_newest(&checked->feed, &ret->n_recorded);
	if (r < 0) {
		store_explain(r, path, error, FLEET_MAX_SENTENCE);
		return r;
	}
	ret->run = checked->feed.run.run;
	for (size_t i = 0; i < options->access.n_urls && r == 0 && block == 0; i++) {
		server_close(&checked->server);
		plan_close(TAKE(checked->plan));
		free(TAKE(checked->job));
		r = open_plan(checked, options->access.urls[i], options, error);
		if (r == 0)
			r = plan_last(checked->plan, &block, &ret->n_planned);
	}
	if (r == 0)
		r = plan_count(checked->plan, &counts);
	ret->n_done = counts.n_done;
	ret->n_samples = counts.n_samples;
	ret->n_open = counts.n_open;
	ret->n_dropped = counts.n_dropped;
	ret->n_refused = counts.n_refused;
	return r;
}

int fleet_status(const char *path, const struct fleet_options *options, struct fleet_status *ret, char *error)
{
	struct checked checked = { 0 };
	int r;

	*ret = (struct fleet_status){ 0 };
	error[0] = '\0';
	r = open_checked(&checked, path, options, ret, error);
	checked_done(&checked);
	if (r < 0 && !error[0])
		fail(error, r, "%s: %s", path, strerror(-r));
	return r;
}

/* ---- Counts by block ---- */

struct verifying {
	struct checked *checked;
	struct fleet_status *status;
	void (*wrong)(void *data, uint32_t block, uint64_t there, uint64_t here);
	void *data;
	char *error;
};

/* Samples of the block by its totals, and, if it has them, by its samples: the one that differs. */
static int count_there(struct verifying *verifying, const struct shipment *shipment, uint64_t *ret)
{
	struct fleet_server *server = &verifying->checked->server;
	uint32_t from = shipment->day * SHIP_DAY_S;
	char job[1024], where[1536], sql[2048];
	uint64_t n_totals = 0, n_samples = shipment->n_samples;
	int r = fleet_text(verifying->checked->job, job, sizeof job);

	if (r < 0)
		return r;
	snprintf(where, sizeof where, "WHERE job = %s AND run = %" PRIu64 " AND block = %u", job,
		 verifying->status->run, shipment->block);
	snprintf(sql, sizeof sql,
		 "SELECT sum(samples) FROM %s.totals_local %s AND minute >= toDateTime(%u) AND minute < toDateTime(%u)",
		 server->database, where, from, from + SHIP_DAY_S);
	r = server_ask_number(server, sql, &n_totals);
	if (r == 0 && shipment->is_raw) {
		snprintf(sql, sizeof sql,
			 "SELECT count() FROM %s.samples_local %s AND time >= toDateTime(%u) AND time < toDateTime(%u)",
			 server->database, where, from, from + SHIP_DAY_S);
		r = server_ask_number(server, sql, &n_samples);
	}
	if (r < 0)
		return fail(verifying->error, r, "%s", server->error);
	*ret = n_samples != shipment->n_samples ? n_samples : n_totals;
	return 0;
}

static int verify_shipment(void *data, const struct shipment *shipment)
{
	struct verifying *verifying = data;
	struct fleet_status *status = verifying->status;
	uint64_t here = shipment->n_samples, there;
	int r;

	if (!shipment->is_done)
		return 0;
	r = count_there(verifying, shipment, &there);
	if (r < 0 || there == here)
		return r;
	status->n_wrong++;
	status->n_lost += there < here ? here - there : 0;
	status->n_doubled += there > here ? there - here : 0;
	if (verifying->wrong)
		verifying->wrong(verifying->data, shipment->block, there, here);
	return 0;
}

int fleet_verify(const char *path, const struct fleet_options *options,
		 void (*wrong)(void *data, uint32_t block, uint64_t there, uint64_t here), void *data,
		 struct fleet_status *ret, char *error)
{
	struct checked checked = { 0 };
	struct verifying verifying = { &checked, ret, wrong, data, error };
	int r;

	*ret = (struct fleet_status){ 0 };
	error[0] = '\0';
	r = open_checked(&checked, path, options, ret, error);
	if (r == 0)
		r = server_meet(&checked.server);
	if (r < 0 && !error[0])
		fail(error, r, "%s", checked.server.error[0] ? checked.server.error : strerror(-r));
	if (r == 0)
		r = plan_each(checked.plan, verify_shipment, &verifying);
	checked_done(&checked);
	if (r < 0 && !error[0])
		fail(error, r, "%s: %s", path, strerror(-r));
	return r;
}

/* ---- Old days ---- */

/* A partition's name is a date, by which it is dropped: '2026-11-26' or 20261126 by version. */
static int drop_partitions(struct fleet_server *server, const char *table, const char *names)
{
	int r = 0;

	for (const char *line = names; *line && r == 0;) {
		size_t n = strcspn(line, "\n");
		char sql[256], name[32];

		if (n >= sizeof name || strspn(line, "0123456789-'") < n)
			return -EPROTO;
		memcpy(name, line, n);
		name[n] = '\0';
		snprintf(sql, sizeof sql, "ALTER TABLE %s.%s_local DROP PARTITION '%s'", server->database, table, name);
		r = server_ask(server, sql, NULL, true, NULL);
		line += n + (line[n] == '\n');
	}
	return r;
}

static int drop_of_table(struct fleet_server *server, const char *table, unsigned days)
{
	CLEANUP(freep) char *names = NULL;
	const char *answer;
	char sql[512];
	int r;

	if (days == 0)
		return 0;
	snprintf(sql, sizeof sql,
		 "SELECT DISTINCT partition FROM system.parts WHERE active AND database = '%s' AND table = '%s_local'"
		 " AND max_date != toDate(0) AND max_date < today() - %u ORDER BY partition",
		 server->database, table, days);
	r = server_ask(server, sql, NULL, true, &answer);
	if (r < 0)
		return r;
	names = strdup(answer);
	return names ? drop_partitions(server, table, names) : -ENOMEM;
}

int fleet_drop_before(const struct fleet_access *access, unsigned days, unsigned totals_days, char *error)
{
	int r = 0;

	for (size_t i = 0; i < access->n_urls && r == 0; i++) {
		struct fleet_server server;

		r = server_open(&server, access->urls[i], access);
		if (r == 0)
			r = server_meet(&server);
		if (r == 0)
			r = drop_of_table(&server, "samples", days);
		if (r == 0)
			r = drop_of_table(&server, "totals", totals_days);
		if (r < 0)
			fail(error, r, "%s", server.error[0] ? server.error : strerror(-r));
		server_close(&server);
	}
	return r;
}
