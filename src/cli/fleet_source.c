/* SPDX-License-Identifier: MIT */
/* fleet_source.c - see fleet_source.h. */
#include "src/cli/fleet_source.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/fleet_answer.h"
#include "src/cli/fleet_secrets.h"
#include "src/fleet/fleet.h"
#include "src/http/http.h"

enum { MAX_ADDRESS = 2048, DEFAULT_PORT = 8123, DEFAULT_TLS_PORT = 8443 };

static const char plain_scheme[] = "clickhouse://", tls_scheme[] = "clickhouses://";

/* An address, taken apart. Texts of the query point into query. */
struct address {
	struct http_place place;
	char base[512], query[MAX_ADDRESS];
	const char *job, *host, *rank, *since, *until, *where, *password_file, *ca_file;
	bool partial;
};

bool fleet_source_is_one(const char *word)
{
	return strncmp(word, plain_scheme, strlen(plain_scheme)) == 0 ||
	       strncmp(word, tls_scheme, strlen(tls_scheme)) == 0;
}

void fleet_source_name(const char *address, char *to, size_t n_bytes)
{
	snprintf(to, n_bytes, "%.*s", (int)strcspn(address, "?"), address);
}

/* ---- Address ---- */

static int digit_of(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* %XX and + in place. False: a % without digits, or a NUL. */
static bool unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (*text != '%') {
			*to++ = *text == '+' ? ' ' : *text;
			continue;
		}
		if (!isxdigit((unsigned char)text[1]) || !isxdigit((unsigned char)text[2]) ||
		    (text[1] == '0' && text[2] == '0'))
			return false;
		*to++ = (char)(digit_of(text[1]) << 4 | digit_of(text[2]));
		text += 2;
	}
	*to = '\0';
	return true;
}

static bool take_parameter(struct address *address, char *parameter)
{
	const struct {
		const char *name;
		const char **value;
	} known[] = {
		{ "job", &address->job },         { "host", &address->host },
		{ "rank", &address->rank },       { "since", &address->since },
		{ "until", &address->until },     { "where", &address->where },
		{ "ca-file", &address->ca_file }, { "password-file", &address->password_file },
	};
	char *value = strchr(parameter, '=');

	if (!value && strcmp(parameter, "partial") == 0) {
		address->partial = true;
		return true;
	}
	if (!value)
		return false;
	*value++ = '\0';
	for (size_t i = 0; i < N_ELEMENTS(known); i++)
		if (strcmp(parameter, known[i].name) == 0) {
			*known[i].value = value;
			return unescape(value);
		}
	return false;
}

static int fail_address(const char *name, int error)
{
	if (error == -EPERM)
		return cli_fail(
			EXIT_USAGE,
			"the address has a password in it, which other users see in the list of processes: put it "
			"into PROBING_FLEET_PASSWORD, or into a file and add ?password-file=FILE");
	return cli_fail(EXIT_USAGE,
			"%s is not the address of a fleet: write clickhouse://USER@HOST:PORT/DATABASE?job=NAME (or "
			"clickhouses:// for TLS)",
			name);
}

/* Returns 0, or prints a message and returns an exit status. */
static int parse_address(const char *text, struct address *ret)
{
	bool is_tls = strncmp(text, tls_scheme, strlen(tls_scheme)) == 0;
	char name[MAX_ADDRESS], url[MAX_ADDRESS + 8], *rest, *parameter;
	int r;

	*ret = (struct address){ 0 };
	fleet_source_name(text, name, sizeof name);
	snprintf(url, sizeof url, "%s%s", is_tls ? "https://" : "http://", strstr(name, "://") + 3);
	r = http_place_parse(url, &ret->place);
	if (r == 0 && !ret->place.path[0])
		strcpy(ret->place.path, "probing");
	if (r == 0 && !fleet_is_name(ret->place.path))
		r = -EINVAL;
	if (r == 0)
		r = http_place_base(&ret->place, is_tls ? DEFAULT_TLS_PORT : DEFAULT_PORT, ret->base, sizeof ret->base);
	if (r == 0 && strlen(text) >= sizeof ret->query)
		r = -ENAMETOOLONG;
	if (r < 0)
		return fail_address(r == -EPERM ? "this" : name, r);
	text += strcspn(text, "?");
	snprintf(ret->query, sizeof ret->query, "%s", *text ? text + 1 : "");
	for (rest = ret->query; (parameter = strsep(&rest, "&"));)
		if (*parameter && !take_parameter(ret, parameter))
			return cli_fail(
				EXIT_USAGE,
				"'%s' is not a parameter of a fleet's address: these are job, host, rank, since, until, where, "
				"partial, ca-file and password-file, with & between them",
				parameter);
	return EXIT_OK;
}

static int status_of(int error)
{
	switch (error) {
	case -EINVAL:
		return EXIT_USAGE;
	case -ENODATA:
	case -EBADMSG:
	case -EPROTO:
	case -EPROTONOSUPPORT:
		return EXIT_BAD_DATA;
	default:
		return EXIT_NO_INPUT;
	}
}

static int fail(const struct fleet *fleet, int error)
{
	if (error == -ENOMEM)
		return cli_fail(EXIT_FAILED, "not enough memory");
	if (error == -ECANCELED)
		return cli_fail(EXIT_FAILED, "interrupted");
	return cli_fail(status_of(error), "%s", fleet && fleet_error(fleet)[0] ? fleet_error(fleet) : strerror(-error));
}

/* Connect. @password: ended by the caller after the fleet. */
static int open_fleet(const struct address *address, bool partial, const char *password, struct fleet **ret)
{
	const struct fleet_place_to_read place = { .base = address->base,
						   .user = address->place.user[0] ? address->place.user : NULL,
						   .password = password,
						   .ca_file = fleet_ca_file(address->ca_file),
						   .database = address->place.path,
						   .is_partial = partial };
	int r = fleet_open(&place, ret);

	return r < 0 ? fail(*ret, r) : EXIT_OK;
}

/* ---- Samples ---- */

static int parse_time(const char *name, const char *text, const struct view_time *given, struct view_time *ret)
{
	*ret = *given;
	if (given->type != VIEW_TIME_NONE || !text)
		return EXIT_OK;
	return view_time_parse(text, ret) < 0 ? cli_fail(EXIT_USAGE, "%s=%s is not a time", name, text) : EXIT_OK;
}

/* The condition with that of --gil. */
static int join_where(const char *where, bool gil, char **ret)
{
	if (asprintf(ret, "%s%s%s", gil ? "gil = 1" : "", gil && where ? " AND " : "", where ?: "") < 0) {
		*ret = NULL;
		return cli_fail(EXIT_FAILED, "not enough memory");
	}
	return EXIT_OK;
}

static int copy(struct fleet *fleet, const struct fleet_selection *selection, const char *path)
{
	CLEANUP(store_closep) struct store *store = NULL;
	uint64_t ended_ns;
	int r;

	r = store_create(path, NULL, &store);
	if (r == 0)
		r = fleet_read(fleet, selection, store, cli_version, &ended_ns);
	return r < 0 ? r : store_finish(TAKE(store), ended_ns);
}

/* Find the runs, and resolve the times. */
static int select_part(struct fleet *fleet, const struct address *address, const struct view *view,
		       struct fleet_selection *selection)
{
	struct view_time since, until;
	int status, r;

	status = parse_time("since", address->since, &view->since, &since);
	if (status == EXIT_OK)
		status = parse_time("until", address->until, &view->until, &until);
	if (status != EXIT_OK)
		return status;
	r = fleet_select(fleet, selection);
	if (r < 0)
		return fail(fleet, r);
	selection->has_since = since.type != VIEW_TIME_NONE;
	selection->has_until = until.type != VIEW_TIME_NONE;
	selection->since = view_time_resolve(&since, fleet_started(fleet));
	selection->until = view_time_resolve(&until, fleet_started(fleet));
	return EXIT_OK;
}

static void say_missing(const struct fleet *fleet)
{
	if (fleet_missing(fleet))
		cli_say("probing: %s did not answer: their samples are missing\n", fleet_missing(fleet));
}

static int fetch(struct fleet *fleet, const struct fleet_selection *selection, struct live_recording *ret)
{
	int r = live_folder(ret);

	if (r < 0)
		return cli_fail(EXIT_NO_OUTPUT, "no file for the samples can be created in $TMPDIR or /tmp: %s",
				strerror(-r));
	r = copy(fleet, selection, ret->path);
	if (r < 0)
		return fail(fleet, r);
	say_missing(fleet);
	return EXIT_OK;
}

/* An address and a view, taken together. All zero: empty. */
struct fleet_source {
	struct address address;
	struct glob_list hosts;
	struct fleet_selection selection;
	char *password, *where;
	struct fleet *fleet;
};

static void source_done(struct fleet_source *source)
{
	fleet_close(source->fleet);
	http_forget(source->password);
	glob_list_done(&source->hosts);
	free(source->where);
}

/* Connect, and find the runs. */
static int open_source(const char *text, const struct view *view, struct fleet_source *source)
{
	const struct address *address = &source->address;
	int status = parse_address(text, &source->address);

	if (status == EXIT_OK)
		status = fleet_read_password(address->password_file, &source->password);
	if (status == EXIT_OK)
		status = join_where(view->where ?: address->where, view->gil, &source->where);
	if (status != EXIT_OK)
		return status;
	if (address->host && glob_list_add_list(&source->hosts, address->host) < 0)
		return cli_fail(EXIT_USAGE, "host=%s is not a list of hosts", address->host);
	source->selection = (struct fleet_selection){ .job = view->job ?: address->job,
						      .hosts = view->hosts.n > 0 ? &view->hosts : &source->hosts,
						      .ranks = view->ranks ?: address->rank,
						      .where = *source->where ? source->where : NULL };
	status = open_fleet(address, view->partial || address->partial, source->password, &source->fleet);
	return status == EXIT_OK ? select_part(source->fleet, address, view, &source->selection) : status;
}

int fleet_source_open(const char *text, const struct view *view, struct fleet_source **ret)
{
	struct fleet_source *source = calloc(1, sizeof *source);

	*ret = source;
	return source ? open_source(text, view, source) : cli_fail(EXIT_FAILED, "not enough memory");
}

void fleet_source_close(struct fleet_source *source)
{
	if (source)
		source_done(source);
	free(source);
}

struct fleet *fleet_source_fleet(struct fleet_source *source)
{
	return source->fleet;
}

const struct fleet_selection *fleet_source_selection(const struct fleet_source *source)
{
	return &source->selection;
}

int fleet_source_fail(const struct fleet_source *source, int error)
{
	return fail(source->fleet, error);
}

int fleet_source_read(const char *text, const struct view *view, struct live_recording *ret)
{
	CLEANUP(source_done) struct fleet_source source = { 0 };
	int status;

	if (view->label)
		return cli_fail(EXIT_USAGE, "a fleet's samples have no %s: omit --by", view->by ? view->by : "labels");
	status = open_source(text, view, &source);
	source.selection.merge_processes = view->merge_processes && view->pids.n == 0 && view->processes.n == 0 &&
					   view->threads.n == 0 && !view->by_thread;
	source.selection.with_lines = view->lines || view->with_lines;
	if (status == EXIT_OK)
		status = fetch(source.fleet, &source.selection, ret);
	if (status != EXIT_OK)
		live_recording_done(ret);
	return status;
}

int fleet_source_ranks(const char *text, const struct view *view, const struct fleet_rank_visitor *visitor)
{
	CLEANUP(source_done) struct fleet_source source = { 0 };
	int status = open_source(text, view, &source), r;

	if (status != EXIT_OK)
		return status;
	r = fleet_read_ranks(source.fleet, &source.selection, visitor);
	if (r < 0)
		return fail(source.fleet, r);
	say_missing(source.fleet);
	return EXIT_OK;
}

/* ---- SQL ---- */

int fleet_source_ask(const char *text, const char *sql, const struct sql_rules *rules)
{
	CLEANUP(http_forgetp) char *password = NULL;
	CLEANUP(fleet_closep) struct fleet *fleet = NULL;
	CLEANUP(fleet_answer_done) struct fleet_answer answer = { 0 };
	struct address address;
	int status, r;

	status = parse_address(text, &address);
	if (status == EXIT_OK)
		status = fleet_read_password(address.password_file, &password);
	if (status == EXIT_OK)
		status = open_fleet(&address, address.partial, password, &fleet);
	if (status != EXIT_OK)
		return status;
	r = fleet_answer_init(&answer);
	if (r == 0)
		r = fleet_ask(fleet, sql, FLEET_ANSWER_FORMAT, fleet_answer_take, &answer);
	if (r == 0)
		r = fleet_answer_finish(&answer);
	if (r == -EBADMSG)
		return cli_fail(
			EXIT_BAD_DATA,
			"the answer is not in the format that probing asks for: omit FORMAT from the statement");
	return r < 0 ? fail(fleet, r) : fleet_answer_print(&answer, rules);
}
