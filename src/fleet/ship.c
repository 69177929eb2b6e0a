/* SPDX-License-Identifier: MIT */
/*
 * ship.c - sends shipments until the server has them, each once.
 *
 *   planned -> functions, stacks -> samples -> totals -> a row in shipments -> done
 *
 * Functions, stacks, threads and runs may arrive twice: their keys make them one row. Samples and totals may not be
 * counted twice meanwhile, so after any doubt (a lost answer, a shipper or a server that died) the shipper waits until no
 * insert of that id runs, counts the rows of that block, and sends it again only if there are none. An insert is one part
 * of a table, so that there are all rows or none. Newer servers also drop an insert whose token they know.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/fleet/ship.h"

enum {
	FIRST_WAIT_MS = 100,
	LONGEST_WAIT_MS = 10000,
	SAY_AFTER_TRIES = 3,   /* one lost connection is no news */
	SETTLE_S = 5,          /* names of new frames come that much later */
	MAX_DAYS = 64,         /* of the samples of one range */
	GRACE_FIRST_MS = 2000, /* for a request of a process that ended */
	GRACE_MS = 200,        /* for one of our own that failed */
	RUNNING_TRIES = 3000,  /* an insert that runs for ever is none of ours */
	DAYS_PER_WEEK = 7,
	MAX_REFUSED = 8, /* shipments in a row: not their samples are why */
};

struct ship {
	const struct fleet_options *options;
	struct fleet_result *result;
	struct fleet_server servers[FLEET_MAX_URLS];
	size_t n_servers;
	struct recording *recordings;
	size_t n_recordings;
	int unread; /* of recordings that cannot be read, the first one's error; 0: there is none */
	const char *unread_path;
	unsigned n_in_row;  /* shipments that a sink has refused since it took one; also those of earlier processes */
	uint32_t sink_rows; /* it takes no more samples at a time; 0: no limit is known */
	struct blocks blocks;
	struct native small; /* threads, runs, rows of shipments */
};

static int fail(struct ship *ship, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int fail(struct ship *ship, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(ship->result->error, sizeof ship->result->error, format, arguments);
	va_end(arguments);
	return error;
}

static double now_s(void)
{
	return (double)monotonic_ns() / 1e9;
}

/* ---- Waiting ---- */

/* Samples that are sent, and those that wait in recordings that have been looked into. */
static void show(const struct ship *ship)
{
	const struct fleet_options *options = ship->options;
	uint64_t n_waiting = 0;

	if (!options->show)
		return;
	for (size_t i = 0; i < ship->n_recordings; i++)
		n_waiting += ship->recordings[i].n_waiting;
	options->show(options->show_data, ship->result->n_samples, ship->result->n_samples + n_waiting);
}

static bool goes_on(const struct ship *ship)
{
	const struct fleet_access *access = &ship->options->access;

	show(ship);
	return !access->keep_going || access->keep_going(access->keep_going_data);
}

/* A signal ends the sleep; whether it ends the work decides keep_going. */
static int wait_ms(const struct ship *ship, unsigned ms)
{
	struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	if (!goes_on(ship))
		return -ECANCELED;
	nanosleep(&time, NULL);
	return goes_on(ship) ? 0 : -ECANCELED;
}

/* How often something failed, and how long to wait the next time. */
struct patience {
	unsigned n_tries, wait_ms;
};

static void say(struct ship *ship, const char *format, const char *text)
{
	char sentence[FLEET_MAX_SENTENCE + 64];

	if (!ship->options->say)
		return;
	snprintf(sentence, sizeof sentence, format, text);
	ship->options->say(ship->options->say_data, sentence);
}

/* After -EAGAIN. The wait grows, with a random part: hosts that were refused together do not return together. */
static int be_patient(struct ship *ship, struct patience *patience, const char *why)
{
	unsigned ms = patience->wait_ms ? MIN(patience->wait_ms * 2, (unsigned)LONGEST_WAIT_MS) : FIRST_WAIT_MS;

	patience->wait_ms = ms;
	if (++patience->n_tries == SAY_AFTER_TRIES)
		say(ship, "%s; samples wait in the recording, and are sent when it answers", why);
	return wait_ms(ship, ms / 2 + (unsigned)(monotonic_ns() / 1000 % (ms / 2 + 1)));
}

static void end_patience(struct ship *ship, const struct patience *patience)
{
	if (patience->n_tries >= SAY_AFTER_TRIES)
		say(ship, "%s", "the server answers again");
}

/* ---- Requests, as often as it takes ---- */

static int ask_number(struct ship *ship, struct fleet_server *server, const char *sql, uint64_t *ret)
{
	struct patience patience = { 0 };
	int r;

	while ((r = server_ask_number(server, sql, ret)) == -EAGAIN) {
		r = be_patient(ship, &patience, server->error);
		if (r < 0)
			return r;
	}
	end_patience(ship, &patience);
	return r < 0 ? fail(ship, r, "%s", server->error) : 0;
}

/* Rows that may arrive twice. */
static int insert_some(struct ship *ship, struct fleet_server *server, const struct native *native)
{
	struct patience patience = { 0 };
	int r = 0;

	if (native->n_rows == 0)
		return 0;
	while ((r = server_insert(server, native, NULL, NULL)) == -EAGAIN) {
		r = be_patient(ship, &patience, server->error);
		if (r < 0)
			return r;
	}
	end_patience(ship, &patience);
	return r < 0 ? fail(ship, r, "%s", server->error) : 0;
}

/* Where the rows of a block are; the condition selects one partition, and the beginning of the key. */
static int count_rows(struct ship *ship, const struct recording *recording, const struct shipment *shipment,
		      const char *table, const char *time, uint64_t *ret)
{
	char job[1024], sql[2048];
	uint32_t from = shipment->day * SHIP_DAY_S;
	int r = fleet_text(recording->job, job, sizeof job);

	if (r < 0)
		return fail(ship, r, "the name of the job is too long");
	snprintf(sql, sizeof sql,
		 "SELECT count() FROM %s.%s_local WHERE job = %s AND run = %" PRIu64
		 " AND block = %u AND %s >= toDateTime(%u)"
		 " AND %s < toDateTime(%u)",
		 recording->server->database, table, job, recording->feed.run.run, shipment->block, time, from, time,
		 from + SHIP_DAY_S);
	return ask_number(ship, recording->server, sql, ret);
}

/* Until no insert of that id runs. */
static int wait_until_idle(struct ship *ship, struct fleet_server *server, const char *id)
{
	struct patience patience = { 0 };
	bool is_running = true;
	int r = 0;

	for (unsigned i = 0; is_running && i < RUNNING_TRIES; i++) {
		r = server_is_running(server, id, &is_running);
		if (r == -EAGAIN)
			r = be_patient(ship, &patience, server->error);
		else if (r == 0 && is_running)
			r = wait_ms(ship, FIRST_WAIT_MS);
		else if (r < 0)
			return fail(ship, r, "%s", server->error);
		if (r < 0)
			return r;
	}
	end_patience(ship, &patience);
	return is_running ? fail(ship, -EBADE,
				 "an insert with the id %s has been running for minutes: KILL QUERY ends it", id)
			  : 0;
}

struct exact {
	const struct recording *recording;
	const struct shipment *shipment;
	const struct native *native;
	const char *table, *time;
	char id[SHIP_ID_BYTES];
	bool is_part; /* the recording has dropped some of its samples since they were planned */
};

/*
 * 1: all rows are there; 0: none is. A request may still be on its way to the server, in buffers of the network or of a
 * proxy. Newer servers drop it by its token if it comes later than the one that follows. For others it gets time to arrive;
 * behind that the key of the table makes its rows one.
 */
static int look_for(struct ship *ship, const struct exact *exact)
{
	uint64_t n = 0;
	int r = 0;

	if (exact->recording->server->dialect == FLEET_OLD)
		r = wait_ms(ship, exact->recording->is_first ? GRACE_FIRST_MS : GRACE_MS);
	if (r == 0)
		r = wait_until_idle(ship, exact->recording->server, exact->id);
	if (r == 0)
		r = count_rows(ship, exact->recording, exact->shipment, exact->table, exact->time, &n);
	if (r < 0 || n == 0)
		return r;
	if (n == exact->native->n_rows || exact->is_part)
		return 1;
	return fail(ship, -EBADE,
		    "%s: the server has %" PRIu64
		    " rows of shipment %u in %s_local instead of %zu: another recording has the same "
		    "run, or rows were removed there",
		    exact->recording->feed.path, n, exact->shipment->block, exact->table, exact->native->n_rows);
}

/* Rows that must not arrive twice. */
static int insert_once(struct ship *ship, const struct exact *exact, bool is_doubtful)
{
	struct fleet_server *server = exact->recording->server;
	struct patience patience = { 0 };
	uint64_t n_written = 0;
	int r;

	if (exact->native->n_rows == 0)
		return 0;
	for (;;) {
		if (is_doubtful) {
			r = look_for(ship, exact);
			if (r != 0)
				break;
		}
		is_doubtful = true;
		r = server_insert(server, exact->native, exact->id, &n_written);
		if (r == 0 && n_written == exact->native->n_rows)
			break;
		if (r == -EAGAIN)
			r = be_patient(ship, &patience, server->error);
		else if (r < 0)
			return fail(ship, r, "%s", server->error);
		if (r < 0)
			return r;
	}
	end_patience(ship, &patience);
	return r < 0 ? r : 0;
}

/* ---- A shipment ---- */

static uint32_t week_now(void)
{
	return day_of(realtime_ns()) / DAYS_PER_WEEK;
}

static int send_rows(struct ship *ship, struct recording *recording, const struct shipment *shipment, bool is_doubtful,
		     bool is_part)
{
	struct exact samples = { recording, shipment, &ship->blocks.samples, "samples", "time", "", is_part };
	struct exact totals = { recording, shipment, &ship->blocks.totals, "totals", "minute", "", is_part };
	int r;

	snprintf(samples.id, sizeof samples.id, "probing-%016" PRIx64 "-%u-s", recording->feed.run.run,
		 shipment->block);
	snprintf(totals.id, sizeof totals.id, "probing-%016" PRIx64 "-%u-t", recording->feed.run.run, shipment->block);
	r = insert_once(ship, &samples, is_doubtful);
	return r == 0 ? insert_once(ship, &totals, is_doubtful) : r;
}

static int send_run(struct ship *ship, struct recording *recording)
{
	enum fleet_dialect dialect = recording->server->dialect;
	int r;

	if (!recording->is_run_sent || recording->sent_ended != recording->feed.run.ended) {
		run_build(&ship->small, recording, dialect);
		r = insert_some(ship, recording->server, &ship->small);
		if (r < 0)
			return r;
		recording->is_run_sent = true;
		recording->sent_ended = recording->feed.run.ended;
	}
	r = threads_build(&ship->small, recording, dialect);
	if (r < 0)
		return fail(ship, r, "%s: its threads cannot be read: %s", recording->feed.path, strerror(-r));
	return insert_some(ship, recording->server, &ship->small);
}

/* The range of a shipment whose samples are loaded. */
static struct fleet_range range_of(const struct feed *feed, const struct shipment *shipment)
{
	struct fleet_range range = {
		.path = feed->path, .first = shipment->first, .last = shipment->last, .since_ns = UINT64_MAX
	};

	for (size_t i = 0; i < feed->n_rows; i++) {
		range.since_ns = MIN(range.since_ns, feed->rows[i].time_ns);
		range.until_ns = MAX(range.until_ns, feed->rows[i].time_ns);
	}
	return range;
}

/*
 * A receiver takes no body as large as that of this shipment: two halves take its place, and later shipments are as small.
 * Samples that were dropped from the recording since they were planned count as those of the first half.
 */
static int halve(struct ship *ship, const struct recording *recording, const struct shipment *shipment)
{
	const struct feed *feed = &recording->feed;
	uint32_t n_second = (uint32_t)feed->n_rows / 2;

	ship->sink_rows = (uint32_t)feed->n_rows - n_second;
	return plan_split(recording->plan, shipment, feed->last - n_second, shipment->n_samples - n_second);
}

/* The plans of all recordings: a row of refusals is of the receiver. */
static int change_plans(struct ship *ship, int (*change)(struct plan *plan))
{
	int r = 0;

	for (size_t i = 0; i < ship->n_recordings && r == 0; i++)
		if (ship->recordings[i].plan)
			r = change(ship->recordings[i].plan);
	return r;
}

/* The receiver takes shipments. */
static int end_row(struct ship *ship)
{
	if (ship->n_in_row == 0)
		return 0;
	ship->n_in_row = 0;
	return change_plans(ship, plan_end_row);
}

static void say_set_aside(struct ship *ship, const struct feed *feed, const char *how, const char *why)
{
	char text[FLEET_MAX_SENTENCE];

	ship->result->n_refused += feed->n_rows;
	snprintf(text, sizeof text, "%s: %zu samples (%" PRId64 " to %" PRId64 ") are %s: %.700s", feed->path,
		 feed->n_rows, feed->first, feed->last, how, why);
	say(ship, "%s", text);
}

/*
 * It would be refused again, and those behind it would wait for ever. The recording keeps its samples. But if the receiver
 * refuses everything, all of the row wait, and so does the next process after its first refusal.
 */
static int refuse(struct ship *ship, const struct recording *recording, const struct shipment *shipment,
		  const char *why)
{
	int r = plan_refuse(recording->plan, shipment->block);

	if (r == 0 && ++ship->n_in_row >= MAX_REFUSED) {
		r = change_plans(ship, plan_reopen);
		return r < 0 ? r
			     : fail(ship, -EREMOTEIO,
				    "%s; at least %d shipments in a row were refused, so all of them and the others wait",
				    why, MAX_REFUSED);
	}
	if (r == 0)
		say_set_aside(ship, &recording->feed, "set aside", why);
	return r;
}

/* The receiver does not say which part it has refused: to send all of it again would double the other one. */
static int set_part_aside(struct ship *ship, const struct recording *recording, const struct shipment *shipment,
			  const char *why)
{
	int r = plan_set_aside(recording->plan, shipment->block);

	if (r < 0)
		return r;
	ship->result->n_partly += recording->feed.n_rows;
	say_set_aside(ship, &recording->feed, "taken in part, and set aside", why);
	return end_row(ship);
}

/* Samples that were dropped from the recording since they were planned are gone. */
static int send_to_sink(struct ship *ship, struct recording *recording, const struct shipment *shipment)
{
	const struct fleet_sink *sink = ship->options->sink;
	const struct fleet_range range = range_of(&recording->feed, shipment);
	char why[FLEET_MAX_SENTENCE] = "";
	struct patience patience = { 0 };
	uint64_t n_bytes = 0;
	int r = 0;

	while (recording->feed.n_rows > 0 && (r = sink->send(sink->data, &range, &n_bytes, why)) == -EAGAIN) {
		r = be_patient(ship, &patience, why);
		if (r < 0)
			return r;
	}
	if (r == -EMSGSIZE && recording->feed.n_rows > 1)
		return halve(ship, recording, shipment);
	if (r == -EREMOTE)
		return set_part_aside(ship, recording, shipment, why);
	if (r == -EREMOTEIO || r == -EMSGSIZE)
		return refuse(ship, recording, shipment, why);
	if (r < 0)
		return fail(ship, r, "%s", why);
	end_patience(ship, &patience);
	r = plan_finish(recording->plan, shipment->block);
	if (r < 0 || recording->feed.n_rows == 0) /* the receiver has taken nothing: the row goes on */
		return r;
	r = end_row(ship);
	if (r < 0)
		return r;
	ship->result->n_shipments++;
	ship->result->n_samples += recording->feed.n_rows;
	ship->result->n_bytes += n_bytes;
	return 0;
}

static int send_shipment(struct ship *ship, struct recording *recording, const struct shipment *planned)
{
	struct shipment shipment = *planned;
	struct blocks *blocks = &ship->blocks;
	uint32_t week = week_now();
	uint64_t before = recording->server->n_sent;
	int r = blocks_build(blocks, recording, &shipment, week);

	if (r < 0)
		return fail(ship, r, "%s: samples %" PRId64 " to %" PRId64 " cannot be read: %s", recording->feed.path,
			    shipment.first, shipment.last, strerror(-r));
	shipment.n_samples = blocks->n_samples;
	r = send_run(ship, recording);
	if (r == 0)
		r = insert_some(ship, recording->server, &blocks->functions);
	if (r == 0)
		r = insert_some(ship, recording->server, &blocks->stacks);
	if (r == 0)
		blocks_mark(blocks, recording, week);
	if (r == 0)
		r = send_rows(ship, recording, &shipment, recording->is_first,
			      shipment.n_samples != planned->n_samples);
	if (r < 0)
		return r;
	shipment_build(&ship->small, recording, blocks, &shipment, recording->server->dialect);
	r = insert_some(ship, recording->server, &ship->small);
	if (r == 0)
		r = plan_finish(recording->plan, shipment.block);
	if (r < 0)
		return r;
	ship->result->n_shipments++;
	ship->result->n_samples += shipment.n_samples;
	ship->result->n_bytes += recording->server->n_sent - before;
	return 0;
}

/* ---- Plans ---- */

static int fail_plan(struct ship *ship, const struct recording *recording, int error)
{
	if (error == -EBUSY)
		return fail(ship, error, "%s: another probing ship sends this recording", recording->feed.path);
	if (error == -ENOENT)
		return fail(ship, error, "no folder for plans: name one with --state FOLDER, or set HOME");
	return fail(ship, error, "%s: %s: its plan of shipments cannot be written", recording->feed.path,
		    strerror(-error));
}

/* A plan that was lost, or that another host made, is in the table of shipments. */
static int adopt(struct ship *ship, struct recording *recording, const char *lines)
{
	struct shipment *shipments = NULL;
	size_t n = 0, room = 0;
	int r = 0;

	for (const char *line = lines; *line && r == 0; line += strcspn(line, "\n") + (strchr(line, '\n') ? 1 : 0)) {
		r = grow(&shipments, n, &room, sizeof *shipments);
		if (r == 0)
			r = plan_parse(line, &shipments[n]);
		if (r == 0 && shipments[n].block != n + 1)
			r = -EPROTO;
		n += r == 0;
	}
	if (r == 0 && n > 0)
		r = plan_put(recording->plan, shipments, (unsigned)n);
	free(shipments);
	return r < 0 ? fail_plan(ship, recording, r) : (int)MIN(n, (size_t)INT32_MAX);
}

/* Its rows there are found by the job that they were sent with. */
static int adopt_job(struct recording *recording, const char *digits)
{
	size_t n = strspn(digits, "0123456789ABCDEF") / 2;

	recording->job = calloc(1, n + 1);
	if (!recording->job)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		char pair[3] = { digits[2 * i], digits[2 * i + 1], '\0' };

		recording->job[i] = (char)strtoul(pair, NULL, 16);
	}
	return 0;
}

/* An answer of lines, as often as it takes. */
static int ask_lines(struct ship *ship, struct fleet_server *server, const char *sql, const char **ret)
{
	struct patience patience = { 0 };
	int r;

	while ((r = server_ask(server, sql, NULL, true, ret)) == -EAGAIN) {
		r = be_patient(ship, &patience, server->error);
		if (r < 0)
			return r;
	}
	end_patience(ship, &patience);
	return r < 0 ? fail(ship, r, "%s", server->error) : 0;
}

/* Rows of shipments that nobody knows: of samples, or of totals, which may be sent without them. */
static int refuse_strays(struct ship *ship, const struct recording *recording, int n_known)
{
	static const struct {
		const char *table, *sum;
	} places[] = { { "samples", "count()" }, { "totals", "sum(samples)" } };
	uint64_t run = recording->feed.run.run, n_stray = 0;
	char sql[512];
	int r = 0;

	for (size_t i = 0; i < N_ELEMENTS(places) && r == 0 && n_stray == 0; i++) {
		snprintf(sql, sizeof sql, "SELECT %s FROM %s.%s_local WHERE run = %" PRIu64 " AND block > %d",
			 places[i].sum, recording->server->database, places[i].table, run, n_known);
		r = ask_number(ship, recording->server, sql, &n_stray);
	}
	if (r < 0 || n_stray == 0)
		return r;
	return fail(
		ship, -EBADE,
		"%s: the server has %" PRIu64
		" samples of a shipment whose plan is lost: put the file %s back, or delete the rows of run %" PRIu64
		" in samples_local, totals_local and shipments_local",
		recording->feed.path, n_stray, plan_path(recording->plan), run);
}

/* A run that was sent from elsewhere, or whose plan is lost. */
static int recover_plan(struct ship *ship, struct recording *recording)
{
	struct fleet_server *server = recording->server;
	const char *lines = "";
	char sql[512];
	int n, r;

	snprintf(
		sql, sizeof sql,
		"SELECT block, any(first), any(last), any(toUInt16(day)), any(samples), any(raw) FROM %s.shipments_local"
		" WHERE run = %" PRIu64 " GROUP BY block ORDER BY block",
		server->database, recording->feed.run.run);
	r = ask_lines(ship, server, sql, &lines);
	if (r < 0)
		return r;
	n = adopt(ship, recording, lines);
	if (n > 0) {
		snprintf(sql, sizeof sql, "SELECT hex(any(job)) FROM %s.shipments_local WHERE run = %" PRIu64,
			 server->database, recording->feed.run.run);
		r = ask_lines(ship, server, sql, &lines);
		if (r == 0)
			r = adopt_job(recording, lines);
	}
	if (n < 0 || r < 0)
		return n < 0 ? n : r;
	return refuse_strays(ship, recording, n);
}

/* A range as shipments, one for each day of its samples: mostly one. */
static unsigned split_by_day(const struct feed *feed, const struct shipment *range, struct shipment *ret)
{
	unsigned n = 0, last = 0;

	for (size_t i = 0; i < feed->n_rows; i++) {
		uint32_t day = day_of(feed->rows[i].time_ns);

		if (n == 0 || ret[last].day != day)
			for (last = 0; last < n && ret[last].day != day; last++)
				;
		if (last == MAX_DAYS)
			return 0;
		if (last == n) {
			ret[n] = *range;
			ret[n].block = range->block + n;
			ret[n++].day = day;
		}
		ret[last].n_samples++;
	}
	return n;
}

static size_t max_rows(const struct ship *ship)
{
	size_t most = ship->options->max_rows ? ship->options->max_rows : FLEET_MAX_ROWS;

	return ship->sink_rows ? MIN(most, (size_t)ship->sink_rows) : most;
}

static bool is_raw(const struct ship *ship, const struct feed *feed)
{
	double youngest = (double)feed->rows[feed->n_rows - 1].time_ns / 1e9;

	return (double)realtime_ns() / 1e9 - youngest <= ship->options->raw_s;
}

/* The range counts them: --status, and first, last and samples of its row in shipments. */
static void say_dropped(struct ship *ship, const struct feed *feed, int64_t first)
{
	char text[FLEET_MAX_SENTENCE];

	if (feed->first <= first)
		return;
	snprintf(text, sizeof text, "%s: %" PRId64 " samples were dropped from the recording before they were sent",
		 feed->path, feed->first - first);
	say(ship, "%s (--max-size, --retention)", text);
}

/*
 * Plan the next range, if its samples have waited long enough, fill a block, or are the last ones.
 * Returns 1: planned; 0: there is nothing to send by now.
 */
static int plan_range(struct ship *ship, struct recording *recording)
{
	struct feed *feed = &recording->feed;
	uint64_t horizon_ns = recording->is_live ? realtime_ns() - SETTLE_S * 1000000000ull : UINT64_MAX;
	struct shipment range = { 0 }, shipments[MAX_DAYS];
	int64_t newest = 0;
	unsigned n;
	int r = plan_last(recording->plan, &range.block, &range.last);

	if (r == 0)
		r = feed_newest(feed, &newest);
	if (r < 0)
		return fail_plan(ship, recording, r);
	if (newest <= range.last ||
	    (recording->is_live && newest - range.last < (int64_t)max_rows(ship) && now_s() < recording->next_s))
		return 0;
	range.block++;
	range.first = range.last + 1;
	r = feed_load(feed, range.first, newest, horizon_ns, max_rows(ship));
	if (r < 0)
		return fail(ship, r, "%s: samples from %" PRId64 " on cannot be read: %s", feed->path, range.first,
			    strerror(-r));
	if (feed->n_rows == 0)
		return 0;
	say_dropped(ship, feed, range.first);
	range.last = feed->last;
	range.is_raw = is_raw(ship, feed);
	if (ship->options->sink) {
		range.day = day_of(feed->rows[0].time_ns);
		range.n_samples = (uint32_t)feed->n_rows;
		shipments[0] = range;
		n = 1;
	} else {
		n = split_by_day(feed, &range, shipments);
	}
	if (n == 0)
		return fail(ship, -EBADMSG, "%s: its samples are of more than %d days", feed->path, MAX_DAYS);
	r = plan_put(recording->plan, shipments, n);
	return r < 0 ? fail_plan(ship, recording, r) : 1;
}

/* ---- A recording ---- */

/* The server that already has the run, else the shard that its number selects. */
static int choose_server(struct ship *ship, struct recording *recording)
{
	uint64_t run = recording->feed.run.run;
	size_t chosen = run % ship->n_servers;

	for (size_t i = 0; i < ship->n_servers; i++) {
		CLEANUP(plan_closep) struct plan *plan = NULL;
		char target[512];
		uint32_t block = 0;
		int64_t last;
		int r;

		server_target(&ship->servers[i], target, sizeof target);
		r = plan_open(ship->options->state, run, target, &plan);
		if (r == 0)
			r = plan_last(plan, &block, &last);
		if (r < 0)
			return fail_plan(ship, recording, r);
		if (block > 0)
			chosen = i;
	}
	recording->server = &ship->servers[chosen];
	return 0;
}

static int meet(struct ship *ship, struct fleet_server *server)
{
	struct patience patience = { 0 };
	int r = 0;

	while (!server->version[0] && (r = server_meet(server)) == -EAGAIN) {
		r = be_patient(ship, &patience, server->error);
		if (r < 0)
			return r;
	}
	end_patience(ship, &patience);
	return r < 0 ? fail(ship, r, "%s", server->error) : 0;
}

/* The row of refusals of an earlier process goes on, unless the sink has taken a shipment since. */
static int continue_row(struct ship *ship, struct recording *recording)
{
	struct plan_counts counts;
	int r;

	if (ship->options->retries_refused)
		return plan_retry(recording->plan);
	if (ship->result->n_shipments > 0 || ship->result->n_partly > 0)
		return plan_end_row(recording->plan);
	r = plan_count(recording->plan, &counts);
	if (r == 0)
		ship->n_in_row += (unsigned)MIN(counts.n_in_row, (uint64_t)MAX_REFUSED);
	return r;
}

static int introduce_to_sink(struct ship *ship, struct recording *recording)
{
	int r = plan_open(ship->options->state, recording->feed.run.run, ship->options->sink->target, &recording->plan);

	recording->run = recording->feed.run.run;
	if (r == 0)
		r = continue_row(ship, recording);
	return r < 0 ? fail_plan(ship, recording, r) : 0;
}

/* The first pass of a recording, which is open. */
static int introduce(struct ship *ship, struct recording *recording)
{
	char target[512];
	uint32_t block = 0;
	int64_t last;
	int r;

	if (ship->options->sink)
		return introduce_to_sink(ship, recording);
	r = choose_server(ship, recording);
	if (r < 0)
		return r;
	server_target(recording->server, target, sizeof target);
	r = plan_open(ship->options->state, recording->feed.run.run, target, &recording->plan);
	if (r == 0)
		r = plan_last(recording->plan, &block, &last);
	if (r < 0)
		return fail_plan(ship, recording, r);
	r = meet(ship, recording->server);
	if (r == 0 && block == 0)
		r = recover_plan(ship, recording);
	if (r < 0)
		return r;
	r = plan_job(recording->plan, recording->job ? recording->job : ship->options->job, &recording->job);
	if (r < 0)
		return fail_plan(ship, recording, r);
	recording->run = recording->feed.run.run;
	recording->is_first = true;
	return r;
}

/* Another recording has the path now: what is left of the one before it is gone. */
static void begin_anew(struct ship *ship, struct recording *recording)
{
	say(ship, "%s is another recording now: what was not sent of the one before it is lost", recording->feed.path);
	plan_close(TAKE(recording->plan));
	free(TAKE(recording->job));
	interner_done(&recording->threads);
	recording->is_run_sent = false;
}

/* Numbers of samples increase by one, so that those behind a shipment wait. */
static void count_waiting(struct recording *recording, int64_t last)
{
	int64_t newest = 0;

	if (feed_newest(&recording->feed, &newest) == 0)
		recording->n_waiting = (uint64_t)MAX(newest - last, 0);
}

/* Before the first shipment: recordings that have not had their turn yet count with all their samples. */
static void measure(struct ship *ship)
{
	for (size_t i = 0; ship->options->show && i < ship->n_recordings; i++) {
		struct recording *recording = &ship->recordings[i];

		if (feed_begin(&recording->feed) == 0)
			count_waiting(recording, 0);
		feed_end(&recording->feed);
	}
	show(ship);
}

/* All that can be sent by now. */
static int send_all(struct ship *ship, struct recording *recording)
{
	struct shipment shipment;
	int r;

	for (;;) {
		r = plan_next(recording->plan, &shipment);
		if (r < 0)
			return fail_plan(ship, recording, r);
		if (r == 0) {
			recording->is_first = false;
			r = plan_range(ship, recording);
			if (r <= 0)
				return r;
			continue;
		}
		r = feed_load(&recording->feed, shipment.first, shipment.last, UINT64_MAX, FLEET_MAX_ROWS);
		if (r < 0)
			return fail(ship, r, "%s: samples %" PRId64 " to %" PRId64 " cannot be read: %s",
				    recording->feed.path, shipment.first, shipment.last, strerror(-r));
		count_waiting(recording, shipment.first - 1);
		r = ship->options->sink ? send_to_sink(ship, recording, &shipment)
					: send_shipment(ship, recording, &shipment);
		count_waiting(recording, shipment.last);
		if (r < 0)
			return ship->result->error[0] || r == -ECANCELED ? r : fail_plan(ship, recording, r);
		recording->next_s = now_s() + ship->options->every_s;
		if (!goes_on(ship))
			return -ECANCELED;
	}
}

static int fail_source(struct ship *ship, const struct recording *recording, int error)
{
	char sentence[FLEET_MAX_SENTENCE];

	if (error == -EMEDIUMTYPE)
		return fail(ship, error, "%s has no samples in blocks: probing compact rewrites older recordings",
			    recording->feed.path);
	store_explain(error, recording->feed.path, sentence, sizeof sentence);
	return fail(ship, error, "%s", sentence);
}

/*
 * A recording that cannot be read: the others do not wait behind it. While a recorder writes it, it is tried again: it may just
 * begin.
 */
static int pass_over(struct ship *ship, struct recording *recording, int error)
{
	int r = fail_source(ship, recording, error);

	if (error == -ENOMEM || ship->n_recordings == 1)
		return r;
	if (!recording->is_live) {
		say(ship, "%s", ship->result->error);
		recording->is_finished = true;
		if (!ship->unread) {
			ship->unread = r;
			ship->unread_path = recording->feed.path;
		}
	}
	ship->result->error[0] = '\0';
	return 0;
}

/* A recorder that ended before the file was opened has written all of it. */
static int pass(struct ship *ship, struct recording *recording)
{
	int r;

	recording->is_live = recording->feed.is_live = store_is_written(recording->feed.path);
	r = feed_begin(&recording->feed);
	if (r < 0)
		return pass_over(ship, recording, r);
	if (recording->plan && recording->run != recording->feed.run.run)
		begin_anew(ship, recording);
	if (!recording->plan)
		r = introduce(ship, recording);
	if (r == 0)
		r = send_all(ship, recording);
	if (r == 0 && !recording->is_live && !ship->options->sink)
		r = send_run(ship, recording);
	feed_end(&recording->feed);
	if (r == 0)
		recording->is_finished = !recording->is_live;
	return r;
}

/* ---- All recordings ---- */

static int pass_all(struct ship *ship, bool *ret_finished)
{
	bool is_finished = true;
	int r = 0;

	for (size_t i = 0; i < ship->n_recordings && r == 0; i++) {
		if (!ship->recordings[i].is_finished)
			r = pass(ship, &ship->recordings[i]);
		is_finished &= ship->recordings[i].is_finished;
	}
	*ret_finished = is_finished;
	return r;
}

static int open_all(struct ship *ship, const char *const *paths, size_t n)
{
	const struct fleet_options *options = ship->options;
	int r = 0;

	ship->recordings = calloc(n, sizeof *ship->recordings);
	if (!ship->recordings)
		return -ENOMEM;
	ship->n_recordings = n;
	for (size_t i = 0; i < n; i++) {
		ship->recordings[i].feed.path = paths[i];
		ship->recordings[i].feed.default_rank = options->rank;
		ship->recordings[i].next_s = now_s() + options->every_s;
	}
	for (size_t i = 0; i < options->access.n_urls && !options->sink && r == 0; i++) {
		r = server_open(&ship->servers[i], options->access.urls[i], &options->access);
		ship->n_servers++;
		if (r < 0)
			fail(ship, r, "%s", ship->servers[i].error); /* without the address: a password may be in it */
	}
	return r;
}

static void ship_done(struct ship *ship)
{
	for (size_t i = 0; i < ship->n_recordings; i++) {
		feed_done(&ship->recordings[i].feed);
		plan_close(ship->recordings[i].plan);
		interner_done(&ship->recordings[i].threads);
		free(ship->recordings[i].job);
	}
	for (size_t i = 0; i < ship->n_servers; i++)
		server_close(&ship->servers[i]);
	free(ship->recordings);
	blocks_done(&ship->blocks);
	native_done(&ship->small);
}

/* Often enough for --every, seldom enough to cost nothing. */
static unsigned pause_ms(const struct fleet_options *options)
{
	double ms = options->every_s * 1000 / 4;

	return (unsigned)(ms < 100 ? 100 : ms > 5000 ? 5000 : ms);
}

int fleet_ship(const char *const *paths, size_t n_paths, const struct fleet_options *options, struct fleet_result *ret)
{
	struct ship ship = { .options = options, .result = ret };
	bool is_finished = false;
	int r;

	*ret = (struct fleet_result){ 0 };
	r = open_all(&ship, paths, n_paths);
	if (r == 0)
		measure(&ship);
	while (r == 0 && !is_finished) {
		r = pass_all(&ship, &is_finished);
		if (r == 0 && !is_finished)
			r = wait_ms(&ship, pause_ms(options));
	}
	if (r == 0 && ship.unread)
		r = fail(&ship, ship.unread, "%s cannot be read; all recordings that can are sent", ship.unread_path);
	if (r < 0 && !ret->error[0])
		fail(&ship, r, "%s", r == -ECANCELED ? "stopped; the next ship goes on from there" : strerror(-r));
	ship_done(&ship);
	return r;
}
