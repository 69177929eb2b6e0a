/* SPDX-License-Identifier: MIT */
/* server.c - see server.h. */
#include "src/fleet/server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ANSWER = 16 << 20, CODE_IN_TEXT = 6 /* of "Code: " */ };

/* Codes of ClickHouse's errors (src/Common/ErrorCodes.cpp). */
enum {
	NO_SUCH_COLUMN = 16,
	UNKNOWN_IDENTIFIER = 47,
	TYPE_MISMATCH = 53,
	UNKNOWN_TABLE = 60,
	SYNTAX_ERROR = 62,
	UNKNOWN_DATABASE = 81,
	UNKNOWN_SETTING = 115,
	INCOMPATIBLE_COLUMNS = 122,
	READONLY = 164,
	UNKNOWN_USER = 192,
	WRONG_PASSWORD = 193,
	REQUIRED_PASSWORD = 194,
	IP_NOT_ALLOWED = 195,
	SUSPICIOUS_TYPE = 455,
	ACCESS_DENIED = 497,
	AUTHENTICATION_FAILED = 516,
};

static int fail(struct fleet_server *server, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int fail(struct fleet_server *server, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(server->error, sizeof server->error, format, arguments);
	va_end(arguments);
	return error;
}

/* ---- Opening ---- */

static int fail_address(struct fleet_server *server, int error)
{
	if (error == -EPERM)
		return fail(
			server, -EINVAL,
			"the address has a password in it, which other users see in the list of processes: put it into a "
			"file and use --password-file, or into the variable PROBING_FLEET_PASSWORD");
	return fail(
		server, error,
		"--to has no address of a database: write https://USER@HOST:PORT/DATABASE, where DATABASE consists of "
		"letters, digits and _");
}

static int take_address(struct fleet_server *server, const char *url)
{
	struct http_place place;
	char base[512];
	int r = http_place_parse(url, &place);

	if (r == 0 && !fleet_is_name(place.path))
		r = -EINVAL;
	if (r == 0)
		r = http_place_base(&place, place.is_https ? SERVER_DEFAULT_TLS_PORT : SERVER_DEFAULT_PORT, base,
				    sizeof base);
	if (r < 0)
		return fail_address(server, r);
	server->base = strdup(base);
	server->database = strdup(place.path);
	server->user = strdup(place.user[0] ? place.user : "default");
	return server->base && server->database && server->user ? 0 : -ENOMEM;
}

static int fail_open(struct fleet_server *server, int error)
{
	if (error == -EOPNOTSUPP)
		return fail(server, error, "this probing was built without libcurl, which it needs for servers");
	if (error == -ENOPKG)
		return fail(server, error,
			    "libcurl, which probing needs for servers, cannot be loaded: apt install libcurl4");
	return fail(server, error, "%s", strerror(-error));
}

/* The address is known. */
static int prepare(struct fleet_server *server, const struct fleet_access *access)
{
	int r;

	server->password = strdup(access->password ? access->password : "");
	if (!server->password)
		return -ENOMEM;
	r = http_open(&(struct http_options){ .user = server->user,
					      .password = server->password,
					      .ca_file = access->ca_file,
					      .cert_file = access->cert_file,
					      .key_file = access->key_file,
					      .keep_going = access->keep_going,
					      .keep_going_data = access->keep_going_data },
		      &server->http);
	return r < 0 ? fail_open(server, r) : 0;
}

int server_open(struct fleet_server *server, const char *url, const struct fleet_access *access)
{
	int r;

	*server = (struct fleet_server){ 0 };
	r = take_address(server, url);
	return r < 0 ? r : prepare(server, access);
}

int server_open_at(struct fleet_server *server, const char *base, const char *user, const char *database,
		   const struct fleet_access *access)
{
	*server = (struct fleet_server){ 0 };
	if (!fleet_is_name(database))
		return fail(server, -EINVAL, "a database is named by letters, digits and _");
	server->base = strdup(base);
	server->database = strdup(database);
	server->user = strdup(user ? user : "default");
	return server->base && server->database && server->user ? prepare(server, access) : -ENOMEM;
}

void server_close(struct fleet_server *server)
{
	http_close(server->http);
	http_forget(server->password);
	ZSTD_freeCCtx(server->zstd);
	free(server->body.at);
	free(server->base);
	free(server->database);
	free(server->user);
	*server = (struct fleet_server){ 0 };
}

void server_target(const struct fleet_server *server, char *to, size_t n_bytes)
{
	snprintf(to, n_bytes, "%s/%s", strstr(server->base, "://") + 3, server->database);
}

/* ---- Errors ---- */

/* Of the header, which 18.16 lacks, or of the text. 0: the answer is not ClickHouse's. */
static int code_of(struct fleet_server *server, const struct http_answer *answer)
{
	const char *header = http_header(server->http, "X-ClickHouse-Exception-Code");
	const char *text = strstr(answer->body, "Code: ");

	return header ? atoi(header) : text ? atoi(text + CODE_IN_TEXT) : 0;
}

/* The first line of the server's text, for a sentence. */
static const char *first_line(const char *text, char *to, size_t n_bytes)
{
	size_t n = MIN(strcspn(text, "\r\n"), n_bytes - 1);

	memcpy(to, text, n);
	to[n] = '\0';
	return to;
}

/*
 * Errors that time does not heal. All others pass: 252 too many parts, 241 memory, 202 queries, 159 and 319 times of
 * replicas, 216 the same query still runs, 32, 33, 271 and others a body that was cut on its way.
 */
static int fail_for_good(struct fleet_server *server, const char *text)
{
	const char *base = server->base, *database = server->database, *user = server->user;

	switch (server->code) {
	case UNKNOWN_USER:
	case WRONG_PASSWORD:
	case REQUIRED_PASSWORD:
	case AUTHENTICATION_FAILED:
		return fail(
			server, -EACCES,
			"%s refuses the user %s or the password (code %d): name the user in the address, and put the "
			"password into a file for --password-file (?password-file= in clickhouse://) or PROBING_FLEET_PASSWORD",
			base, user, server->code);
	case IP_NOT_ALLOWED:
		return fail(server, -EACCES, "%s does not admit the user %s from this host (code %d)", base, user,
			    server->code);
	case ACCESS_DENIED:
	case READONLY:
		return fail(server, -EACCES, "%s does not permit that to the user %s (code %d): %s", base, user,
			    server->code, text);
	case UNKNOWN_TABLE:
	case UNKNOWN_DATABASE:
		return fail(server, -ENOENT,
			    "%s has no tables of probing in %s (code %d): create them with ship --init; %s", base,
			    database, server->code, text);
	case NO_SUCH_COLUMN:
	case TYPE_MISMATCH:
	case UNKNOWN_IDENTIFIER:
	case INCOMPATIBLE_COLUMNS:
		return fail(server, -EPROTO,
			    "the tables of %s at %s are of another version (code %d): ship --init adds new columns; %s",
			    database, base, server->code, text);
	case SYNTAX_ERROR:
	case UNKNOWN_SETTING:
	case SUSPICIOUS_TYPE:
		return fail(server, -EPROTO, "%s does not understand a statement (code %d): %s", base, server->code,
			    text);
	default:
		return 0;
	}
}

/* Of a proxy, or a server that is no ClickHouse: it says no more than a status. */
static int fail_status(struct fleet_server *server, int status, const char *text)
{
	if (status == 429 || status >= 500)
		return fail(server, -EAGAIN, "%s answers %d: %s", server->base, status, text);
	if (status == 401 || status == 403)
		return fail(server, -EACCES, "%s refuses the user %s (status %d)", server->base, server->user, status);
	return fail(server, -EPROTO, "%s is not ClickHouse: it answers %d: %s", server->base, status, text);
}

static int judge(struct fleet_server *server, const struct http_answer *answer, bool is_users)
{
	char text[512];
	int r;

	server->code = 0;
	if (answer->status == 200)
		return 0;
	server->code = code_of(server, answer);
	first_line(answer->body, text, sizeof text);
	if (server->code == 0)
		return fail_status(server, answer->status, text);
	r = fail_for_good(server, text);
	if (is_users && r != -EACCES)
		return fail(server, -EREMOTEIO, "%s: %s", server->base, text);
	return r < 0 ? r : fail(server, -EAGAIN, "%s: %s", server->base, text);
}

/* A certificate, an address or the length of an answer does not change by waiting. */
static int judge_network(struct fleet_server *server, int error)
{
	bool lasts = error == -EKEYREJECTED || error == -ENOKEY || error == -EINVAL || error == -ENOMEM ||
		     error == -EMSGSIZE || error == -ECANCELED;

	server->code = 0;
	if (error == -EKEYREJECTED)
		return fail(server, error, "%s: %s: name its authority with --ca-file", server->base,
			    http_error(server->http));
	return fail(server, lasts ? error : -EAGAIN, "%s: %s", server->base, http_error(server->http));
}

/* ---- Requests ---- */

int server_send(struct fleet_server *server, const struct server_question *question, struct http_answer *ret)
{
	const char *settings = question->settings;
	char url[HTTP_MAX_URL];
	struct http_request request = { .method = "POST",
					.url = url,
					.body = question->sql,
					.n_body = strlen(question->sql),
					.max_answer = question->max_answer ? question->max_answer : MAX_ANSWER,
					.timeout_ms = question->timeout_ms,
					.take = question->take,
					.take_data = question->take_data };
	int n, r;

	/* The whole answer before its status: otherwise an error may follow a status of 200. */
	n = snprintf(url, sizeof url, "%s/?wait_end_of_query=1%s%s%s%s", server->base,
		     question->with_database ? "&database=" : "", question->with_database ? server->database : "",
		     settings ? "&" : "", settings ? settings : "");
	if (n < 0 || (size_t)n >= sizeof url)
		return fail(server, -ENAMETOOLONG, "%s: the address is too long", server->base);
	r = http_send(server->http, &request, ret);
	return r < 0 ? judge_network(server, r) : judge(server, ret, question->is_users);
}

int server_ask(struct fleet_server *server, const char *sql, const char *settings, bool with_database, const char **ret)
{
	const struct server_question question = { .sql = sql, .settings = settings, .with_database = with_database };
	struct http_answer answer;
	int r = server_send(server, &question, &answer);

	if (r == 0 && ret)
		*ret = answer.body;
	return r;
}

int server_ask_number(struct fleet_server *server, const char *sql, uint64_t *ret)
{
	const char *answer;
	char *end;
	uint64_t number;
	int r = server_ask(server, sql, NULL, true, &answer);

	if (r < 0)
		return r;
	number = strtoull(answer, &end, 10);
	if (end == answer)
		return fail(server, -EPROTO, "%s is not ClickHouse: it answers no number", server->base);
	*ret = number;
	return 0;
}

int server_meet(struct fleet_server *server)
{
	const char *answer;
	int r = server_ask(server, "SELECT version()", NULL, false, &answer);

	if (r < 0)
		return r;
	first_line(answer, server->version, sizeof server->version);
	r = fleet_parse_version(server->version, &server->dialect);
	if (r == -EINVAL)
		return fail(server, -EPROTO, "%s is not ClickHouse: it does not say its version", server->base);
	return r < 0 ? fail(server, r, "%s is ClickHouse %s: probing needs 18.16, or 20.8 and newer", server->base,
			    server->version)
		     : 0;
}

static int insert_url(const struct fleet_server *server, const struct native *native, const char *id, char *to,
		      size_t n_bytes)
{
	char sql[512], columns[384], escaped[1024];
	bool is_new = server->dialect == FLEET_NEW;
	int n, r = native_columns(native, columns, sizeof columns);

	if (r < 0)
		return r;
	snprintf(sql, sizeof sql, "INSERT INTO %s.%s_local %s FORMAT Native", server->database, native->table->name,
		 columns);
	r = http_escape(sql, escaped, sizeof escaped);
	if (r < 0)
		return r;
	n = snprintf(to, n_bytes,
		     "%s/?wait_end_of_query=1&decompress=1&http_native_compression_disable_checksumming_on_decompress=1"
		     "%s%s%s%s%s&query=%s",
		     server->base, is_new ? "&async_insert=0" : "", id ? "&query_id=" : "", id ? id : "",
		     id && is_new ? "&insert_deduplicate=1&insert_deduplication_token=" : "", id && is_new ? id : "",
		     escaped);
	return n < 0 || (size_t)n >= n_bytes ? -ENAMETOOLONG : 0;
}

/* "written_rows":"123" of the summary; only newer servers send one. */
static uint64_t written_rows(struct fleet_server *server)
{
	const char *summary = http_header(server->http, "X-ClickHouse-Summary");
	const char *rows = summary ? strstr(summary, "\"written_rows\":\"") : NULL;

	return rows ? strtoull(rows + 16, NULL, 10) : UINT64_MAX;
}

/* @is_once: rows that must not arrive twice. */
static int post(struct fleet_server *server, const char *url, const struct fleet_bytes *body, bool is_once)
{
	const struct http_request request = { .method = "POST",
					      .url = url,
					      .body = body->at,
					      .n_body = body->n,
					      .is_once = is_once,
					      .max_answer = MAX_ANSWER };
	struct http_answer answer;
	int r = http_send(server->http, &request, &answer);

	return r < 0 ? judge_network(server, r) : judge(server, &answer, false);
}

int server_insert(struct fleet_server *server, const struct native *native, const char *id, uint64_t *ret_rows)
{
	struct fleet_bytes *body = &server->body;
	char url[HTTP_MAX_URL];
	int r = -ENOMEM;

	body->n = 0;
	if (!server->zstd)
		server->zstd = ZSTD_createCCtx();
	if (server->zstd)
		r = native_finish(native, server->zstd, body);
	if (r == 0)
		r = insert_url(server, native, id, url, sizeof url);
	if (r < 0)
		fail(server, r, "a block for %s cannot be made: %s", native->table->name, strerror(-r));
	else
		r = post(server, url, body, id != NULL);
	if (r == 0) {
		server->n_sent += body->n;
		if (ret_rows)
			*ret_rows = written_rows(server);
	}
	return r;
}

int server_is_running(struct fleet_server *server, const char *id, bool *ret)
{
	char sql[160];
	uint64_t n = 0;
	int r;

	snprintf(sql, sizeof sql, "SELECT count() FROM system.processes WHERE query_id = '%s'", id);
	r = server_ask_number(server, sql, &n);
	if (r == -EACCES && server->code == ACCESS_DENIED)
		r = 0;
	if (r == 0)
		*ret = n > 0;
	return r;
}
