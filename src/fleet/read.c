/* SPDX-License-Identifier: MIT */
/* read.c - see read.h: the connection, the runs, and the order of the questions. */
#include "src/fleet/read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "src/fleet/read_private.h"

enum {
	MAX_ANSWER = 1 << 30,
	TIMEOUT_MS = 600000,
	MAX_JOBS = 10,
	ALL_CONNECTION_TRIES_FAILED = 279, /* an error's code, of src/Common/ErrorCodes.cpp */
};

int fleet_fail(struct fleet *fleet, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(fleet->error, sizeof fleet->error, format, arguments);
	va_end(arguments);
	return error;
}

const char *fleet_error(const struct fleet *fleet)
{
	return fleet->error;
}

const char *fleet_missing(const struct fleet *fleet)
{
	return fleet->missing;
}

/* ---- Requests ---- */

/* @question: without settings. */
static int send(struct fleet *fleet, struct server_question question, const char *settings, struct http_answer *ret)
{
	struct fleet_server *server = &fleet->server;
	char all[256];
	int r;

	snprintf(all, sizeof all, "%s%s", settings, fleet->place.is_partial ? "&skip_unavailable_shards=1" : "");
	question.settings = all[0] ? all + 1 : NULL;
	question.with_database = true;
	question.timeout_ms = TIMEOUT_MS;
	r = server_send(server, &question, ret);
	if (r < 0 && server->code == ALL_CONNECTION_TRIES_FAILED)
		return fleet_fail(
			fleet, r,
			"a shard does not answer, so the samples would not be complete; --partial shows those "
			"of the others. The server says: %s",
			server->error);
	return r < 0 ? fleet_fail(fleet, r, "%s", server->error) : 0;
}

int fleet_rows(struct fleet *fleet, const char *sql, struct row_cursor *ret)
{
	CLEANUP(freep) char *whole = NULL;
	struct http_answer answer;
	int r;

	if (asprintf(&whole, "%s FORMAT RowBinary", sql) < 0) {
		whole = NULL;
		return -ENOMEM;
	}
	r = send(fleet, (struct server_question){ .sql = whole, .max_answer = MAX_ANSWER }, "", &answer);
	if (r == 0)
		*ret = row_cursor_of(answer.body, answer.n_body);
	return r;
}

int fleet_finish_rows(struct fleet *fleet, const struct row_cursor *cursor)
{
	if (!cursor->is_damaged)
		return 0;
	return fleet_fail(fleet, -EBADMSG, "%s answers with a truncated or foreign row", fleet->place.base);
}

int fleet_begin(struct fleet_statement *statement)
{
	*statement = (struct fleet_statement){ 0 };
	statement->out = open_memstream(&statement->sql, &statement->n);
	return statement->out ? 0 : -ENOMEM;
}

int fleet_send(struct fleet *fleet, struct fleet_statement *statement, struct row_cursor *ret)
{
	CLEANUP(freep) char *sql = NULL;
	bool failed = ferror(statement->out) != 0;

	if (fclose(statement->out) != 0 || failed) {
		free(statement->sql);
		return -ENOMEM;
	}
	sql = statement->sql;
	return fleet_rows(fleet, sql, ret);
}

void fleet_drop(struct fleet_statement *statement)
{
	fclose(statement->out);
	free(statement->sql);
}

struct taking {
	int (*take)(void *data, const void *bytes, size_t n_bytes);
	void *data;
	int r; /* its first error, which is no error of the server */
};

static int take(void *data, const void *bytes, size_t n_bytes)
{
	struct taking *taking = data;

	taking->r = taking->take(taking->data, bytes, n_bytes);
	return taking->r;
}

int fleet_ask(struct fleet *fleet, const char *sql, const char *format,
	      int (*take_answer)(void *data, const void *bytes, size_t n_bytes), void *data)
{
	struct taking taking = { .take = take_answer, .data = data };
	const struct server_question question = { .sql = sql, .is_users = true, .take = take, .take_data = &taking };
	char settings[128];
	struct http_answer answer;
	int r;

	snprintf(settings, sizeof settings, "&default_format=%s%s", format,
		 fleet->may_set_readonly ? "&readonly=1" : "");
	r = send(fleet, question, settings, &answer);
	if (taking.r < 0)
		fleet->error[0] = '\0';
	return taking.r < 0 ? taking.r : r;
}

/* ---- Opening ---- */

/* A user with a read-only profile may not set that again. */
static int read_rights(struct fleet *fleet)
{
	struct row_cursor rows;
	int r;

	r = fleet_rows(fleet, "SELECT toUInt8(value = '1') FROM system.settings WHERE name = 'readonly'", &rows);
	if (r < 0)
		return r;
	fleet->may_set_readonly = row_cursor_number(&rows, 1) == 0;
	return fleet_finish_rows(fleet, &rows);
}

int fleet_open(const struct fleet_place_to_read *place, struct fleet **ret)
{
	const struct fleet_access access = { .password = place->password,
					     .ca_file = place->ca_file,
					     .keep_going = place->keep_going };
	struct fleet *fleet = calloc(1, sizeof *fleet);
	int r;

	if (!fleet)
		return -ENOMEM;
	*ret = fleet;
	fleet->place = *place;
	r = server_open_at(&fleet->server, place->base, place->user, place->database, &access);
	if (r == 0)
		r = server_meet(&fleet->server);
	if (r < 0)
		return fleet_fail(fleet, r, "%s", fleet->server.error[0] ? fleet->server.error : strerror(-r));
	return read_rights(fleet);
}

static void run_done(struct fleet_run *run)
{
	free(run->host);
	free(run->command);
	free(run->mode);
	free(run->unit);
	free(run->event);
	free(run->stack_source);
	free(run->python);
	free(run->kernel);
	free(run->probing);
}

static void forget_runs(struct fleet *fleet)
{
	for (size_t i = 0; i < fleet->n_runs; i++)
		run_done(&fleet->runs[i]);
	fleet->n_runs = 0;
}

void fleet_close(struct fleet *fleet)
{
	if (!fleet)
		return;
	forget_runs(fleet);
	free(fleet->runs);
	free(fleet->job);
	free(fleet->only);
	free(fleet->missing);
	server_close(&fleet->server);
	free(fleet);
}

/* ---- Runs ---- */

/* The only job there is, or a sentence with all. */
static int find_job(struct fleet *fleet, char **ret)
{
	CLEANUP(freep) char *list = NULL;
	CLEANUP(freep) char *first = NULL;
	size_t n_list, n = 0;
	struct row_cursor rows;
	FILE *out;
	int r;

	r = fleet_rows(fleet, "SELECT toString(job) FROM runs GROUP BY job ORDER BY job LIMIT 11", &rows);
	if (r < 0)
		return r;
	out = open_memstream(&list, &n_list);
	if (!out)
		return -ENOMEM;
	while (r == 0 && row_cursor_more(&rows)) {
		CLEANUP(freep) char *job = NULL;

		r = row_cursor_text(&rows, &job);
		if (r < 0)
			break;
		if (n++ < MAX_JOBS)
			fprintf(out, "%s%s", n > 1 ? ", " : "", job);
		if (!first)
			first = TAKE(job);
	}
	if (fclose(out) != 0 && r == 0)
		r = -ENOMEM;
	if (r == 0)
		r = fleet_finish_rows(fleet, &rows);
	if (r < 0)
		return r;
	if (n == 0)
		return fleet_fail(fleet, -ENODATA, "no recording was sent to %s", fleet->place.database);
	if (n > 1)
		return fleet_fail(fleet, -EINVAL, "there are several jobs: choose one with --job: %s%s", list,
				  n > MAX_JOBS ? " ..." : "");
	*ret = TAKE(first);
	return 0;
}

static int take_run(struct row_cursor *rows, struct fleet_run *run)
{
	char **const texts[] = { &run->host,         &run->command, &run->mode,   &run->unit,   &run->event,
				 &run->stack_source, &run->python,  &run->kernel, &run->probing };
	int r = 0;

	run->run = row_cursor_number(rows, sizeof run->run);
	for (size_t i = 0; i < N_ELEMENTS(texts) && r == 0; i++)
		r = row_cursor_text(rows, texts[i]);
	run->hz = row_cursor_real(rows);
	run->cpus = (uint32_t)row_cursor_number(rows, sizeof run->cpus);
	run->started = (uint32_t)row_cursor_number(rows, sizeof run->started);
	run->ended = (uint32_t)row_cursor_number(rows, sizeof run->ended);
	return r;
}

static int take_runs(struct fleet *fleet, struct row_cursor *rows, const struct glob_list *hosts)
{
	int r = 0;

	while (r == 0 && row_cursor_more(rows)) {
		struct fleet_run run = { 0 };

		r = take_run(rows, &run);
		if (r == 0 && hosts && hosts->n > 0 && !glob_list_match(hosts, run.host)) {
			fleet->is_some = true;
			run_done(&run);
			continue;
		}
		if (r == 0)
			r = grow(&fleet->runs, fleet->n_runs, &fleet->runs_allocated, sizeof *fleet->runs);
		if (r == 0)
			fleet->runs[fleet->n_runs++] = run;
		else
			run_done(&run);
	}
	return r < 0 ? r : fleet_finish_rows(fleet, rows);
}

static int check_runs(struct fleet *fleet, const char *job)
{
	if (fleet->n_runs == 0)
		return fleet_fail(fleet, -ENODATA, "no recording of the job %s was sent%s", job,
				  fleet->is_some ? " by these hosts" : "");
	for (size_t i = 1; i < fleet->n_runs; i++)
		if (strcmp(fleet->runs[i].unit, fleet->runs[0].unit) != 0)
			return fleet_fail(
				fleet, -EINVAL,
				"recordings of the job %s measure different things (%s on %s, %s on %s): choose "
				"with --host",
				job, fleet->runs[0].unit, fleet->runs[0].host, fleet->runs[i].unit,
				fleet->runs[i].host);
	return 0;
}

int fleet_select(struct fleet *fleet, const struct fleet_selection *selection)
{
	static const char columns[] = "SELECT run, argMax(host, version), argMax(command, version),"
				      " argMax(mode, version), argMax(unit, version), argMax(event, version),"
				      " argMax(stack_source, version), argMax(python, version), argMax(kernel, version),"
				      " argMax(probing, version), argMax(hz, version), argMax(cpus, version),"
				      " toUInt32(argMax(started, version)) AS began, toUInt32(argMax(ended, version))"
				      " FROM runs WHERE job = ";
	struct fleet_statement statement;
	struct row_cursor rows;
	const char *job = selection->job;
	size_t n_bytes;
	int r = 0;

	if (!job) {
		r = fleet->only ? 0 : find_job(fleet, &fleet->only);
		job = fleet->only;
	}
	if (r < 0)
		return r;
	n_bytes = 2 * strlen(job) + sizeof "unhex('')";
	free(fleet->job);
	fleet->job = malloc(n_bytes);
	r = fleet->job ? fleet_text(job, fleet->job, n_bytes) : -ENOMEM;
	if (r == 0)
		r = fleet_begin(&statement);
	if (r < 0)
		return r;
	fprintf(statement.out, "%s%s GROUP BY run ORDER BY began, run", columns, fleet->job);
	r = fleet_send(fleet, &statement, &rows);
	if (r < 0)
		return r;
	forget_runs(fleet);
	r = take_runs(fleet, &rows, selection->hosts);
	return r < 0 ? r : check_runs(fleet, job);
}

double fleet_started(const struct fleet *fleet)
{
	return fleet->runs[0].started;
}

int fleet_read(struct fleet *fleet, const struct fleet_selection *selection, struct store *store, const char *version,
	       uint64_t *ret_ended_ns)
{
	CLEANUP(fleet_answers_done) struct fleet_answers answers = { 0 };
	uint32_t ended = 0;
	int r;

	r = fleet_fetch_sums(fleet, selection, &answers);
	if (r == 0 && !selection->merge_processes)
		r = fleet_fetch_threads(fleet, &answers);
	if (r == 0)
		r = fleet_fetch_stacks(fleet, &answers);
	if (r == 0 && fleet->place.is_partial)
		r = fleet_note_missing(fleet);
	if (r == 0)
		r = fleet_write(fleet, &answers, selection->merge_processes, store, version);
	for (size_t i = 0; i < fleet->n_runs; i++)
		ended = MAX(ended, MAX(fleet->runs[i].ended, fleet->runs[i].started));
	*ret_ended_ns = ended * UINT64_C(1000000000);
	return r;
}
