/* SPDX-License-Identifier: MIT */
/* server.h - a ClickHouse server over HTTP: questions, statements, and blocks. Private.
 *
 * Errors of two kinds. What passes (an overloaded server, a lost connection) is -EAGAIN: the caller waits and tries again.
 * Anything else ends the work, with a sentence that says what to do (server_error()).
 */
#ifndef PROBING_FLEET_SERVER_H
#define PROBING_FLEET_SERVER_H

#include "src/fleet/fleet.h"
#include "src/fleet/native.h"
#include "src/http/http.h"

enum { SERVER_DEFAULT_PORT = 8123, SERVER_DEFAULT_TLS_PORT = 8443, SERVER_MAX_SENTENCE = 1024 };

struct fleet_server {
	struct http *http;
	char *base, *database, *user, *password;
	enum fleet_dialect dialect; /* after server_meet() */
	char version[32];
	int code; /* of the server's last error; 0: it was none of the server */
	char error[SERVER_MAX_SENTENCE];
	uint64_t n_sent; /* bytes of blocks */
	ZSTD_CCtx *zstd; /* with the memory of the block before, as is its body */
	struct fleet_bytes body;
};

/*
 * server_open - prepare to talk to http[s]://USER@HOST[:PORT]/DATABASE. Connects to nothing yet.
 * Errors: -EINVAL no such address, or no name of a database, or it has a password in it; those of http_open(). server->error has a sentence.
 */
int server_open(struct fleet_server *server, const char *url, const struct fleet_access *access);
/* The same of an address that was taken apart. @base: "http[s]://HOST:PORT"; @user: NULL: "default". */
int server_open_at(struct fleet_server *server, const char *base, const char *user, const char *database,
		   const struct fleet_access *access);
void server_close(struct fleet_server *server);

/* "HOST:PORT/DATABASE", which names the server in plans. */
void server_target(const struct fleet_server *server, char *to, size_t n_bytes);

/* server_meet - ask for the version. */
int server_meet(struct fleet_server *server);

/* A statement, and what becomes of its answer. */
struct server_question {
	const char *sql;
	const char *settings; /* for the URL, "a=1&b=2"; NULL: none */
	bool with_database;   /* false where it may not exist yet */
	bool is_users;        /* not of ours: an error of the server is its text alone, -EREMOTEIO */
	size_t max_answer;    /* bytes; 0: 16 MiB */
	unsigned timeout_ms;  /* 0: a minute */
	int (*take)(void *data, const void *bytes, size_t n_bytes); /* as http_request.take */
	void *take_data;
};

/* server_send - run a statement. @ret: borrowed until the next request. */
int server_send(struct fleet_server *server, const struct server_question *question, struct http_answer *ret);

/*
 * server_ask - run a statement, and get its answer.
 * @settings: for the URL, "a=1&b=2"; NULL: none.
 * @with_database: false where it may not exist yet.
 * @ret: the answer, borrowed until the next request; may be NULL.
 */
int server_ask(struct fleet_server *server, const char *sql, const char *settings, bool with_database,
	       const char **ret);

/* server_ask_number - the same of a question with one number. */
int server_ask_number(struct fleet_server *server, const char *sql, uint64_t *ret);

/*
 * server_insert - send one block.
 * @id: the query's id, and the token by which the server drops a repeated insert; NULL: none.
 * @ret_rows: that the server says it wrote; UINT64_MAX: it does not say. May be NULL.
 * After -EAGAIN the rows may have arrived.
 */
int server_insert(struct fleet_server *server, const struct native *native, const char *id, uint64_t *ret_rows);

/* server_is_running - whether the server still runs a query of that id. Where it may not say so: false. */
int server_is_running(struct fleet_server *server, const char *id, bool *ret);

#endif
