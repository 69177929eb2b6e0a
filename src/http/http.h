/* SPDX-License-Identifier: MIT */
/* http.h - requests over HTTP and HTTPS, one after the other over a connection that stays open.
 *
 * libcurl does the work; it is loaded by the first http_open(), so that other runs of probing do not pay for its start.
 *
 * Invariants:
 * 1. Only http:// and https:// are spoken, and no redirection is followed: a password goes where the caller said.
 * 2. HTTPS verifies the certificate and its name, from TLS 1.2 on. Nothing switches that off; a CA file names further authorities.
 * 3. A body is sent with Content-Length, in one piece, never chunked, and without waiting for "100 Continue".
 * 4. No password is in a URL, in an error's text, or in argv. ~/.netrc is not read.
 * 5. A request that is_once is sent once: after an error the caller does not know whether it arrived. Others libcurl sends again,
 *    over a new connection, where a used one ended before the first byte of the answer.
 */
#ifndef PROBING_HTTP_H
#define PROBING_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

struct http; /* one thread at a time uses it */

/* Strings are borrowed until http_close(). Zeroed: no user, the system's authorities, default times. */
struct http_options {
	const char *user, *password;    /* basic authentication; NULL: none */
	const char *ca_file;            /* PEM; NULL: the system's authorities */
	const char *cert_file;          /* a client's certificate, PEM; NULL: none */
	const char *key_file;           /* and its key; NULL: in cert_file */
	unsigned connect_timeout_ms;    /* 0: 10 s */
	unsigned timeout_ms;            /* of a whole request; 0: 60 s */
	bool (*keep_going)(void *data); /* called about once a second meanwhile; false ends the request; may be NULL */
	void *keep_going_data;
};

struct http_request {
	const char *method;         /* "GET", "POST", "PUT", ... */
	const char *url;            /* http:// or https://, escaped by the caller (http_escape()) */
	const char *const *headers; /* "Name: value", NULL ends them; may be NULL */
	const void *body;           /* NULL: none; then POST and PUT send Content-Length: 0 */
	size_t n_body;
	size_t max_answer;   /* bytes of the answer's body; 0: 1 MiB */
	unsigned timeout_ms; /* 0: that of the options */
	bool is_once;        /* not to be repeated: it gets a connection of its own */
	/*
	 * take - gets the body of an answer with a status below 300 piece by piece, instead of http_answer.body. A
	 * negative result ends the request and is http_send()'s. May be NULL. max_answer does not limit it.
	 */
	int (*take)(void *data, const void *bytes, size_t n_bytes);
	void *take_data;
};

/* An answer, borrowed until the next http_send() of that http or its end. */
struct http_answer {
	int status;       /* 200, 404, ... */
	const char *body; /* NUL-terminated; may hold other NULs */
	size_t n_body;
};

/*
 * http_open - prepare to send requests. Connects to nothing yet.
 * @ret: ended with http_close().
 * Errors: -EOPNOTSUPP built without libcurl; -ENOPKG libcurl is not installed, or too old; -ENOMEM.
 */
int http_open(const struct http_options *options, struct http **ret);

/*
 * http_send - send a request and wait for its answer. Connections are used again.
 * @ret: set if there was an answer, whatever its status.
 * Errors, after which http_error() has a sentence:
 *   -EINVAL        no URL, or neither http:// nor https://
 *   -EHOSTUNREACH  the name does not resolve
 *   -ECONNREFUSED  no connection; nothing was sent
 *   -EKEYREJECTED  the server's certificate is not valid for its name, its authority unknown, or ours was refused
 *   -ENOKEY        the CA file, or our certificate or key, cannot be read
 *   -EPROTO        TLS failed otherwise, or the answer is not HTTP
 *   -ETIMEDOUT     the time is over
 *   -ECONNRESET    the connection ended before the whole answer
 *   -EMSGSIZE      the answer is longer than max_answer
 *   -ECANCELED     keep_going() said so
 *   -ENOMEM
 * After -EPROTO, -ETIMEDOUT, -ECONNRESET, -EMSGSIZE and -ECANCELED the server may have carried out the request.
 */
int http_send(struct http *http, const struct http_request *request, struct http_answer *ret);

/* The sentence about the last error of http_send(), without a trailing stop. Borrowed until the next request. */
const char *http_error(const struct http *http);

/* The value of a header of the last answer, the last one of that name. NULL: it has none. Borrowed until the next call. */
const char *http_header(struct http *http, const char *name);

void http_close(struct http *http);
DEFINE_CLEANUP(struct http *, http_close)

/* ---- Addresses (url.c) ---- */

enum { HTTP_MAX_URL = 2048 };

/* https://USER@HOST:PORT/PATH, taken apart. Texts are unescaped. */
struct http_place {
	bool is_https;
	char user[256];  /* "": none */
	char host[256];  /* an IPv6 address without its brackets */
	unsigned port;   /* 0: not given */
	char path[1024]; /* behind the "/", without it; "": none */
};

/*
 * http_place_parse - take an address apart.
 * Errors: -EINVAL it is none, or has a query or a fragment; -EPERM it has a password, which belongs into a file or the environment;
 *         -ENAMETOOLONG.
 */
int http_place_parse(const char *text, struct http_place *ret);

/* http_place_base - "https://HOST:PORT", without user and path. @port: where the place has none. -ENAMETOOLONG. */
int http_place_base(const struct http_place *place, unsigned port, char *to, size_t n_bytes);

/* Whether the host is this machine: 127.0.0.0/8, ::1 or localhost. */
bool http_place_is_local(const struct http_place *place);

/* http_escape - text as a part of a URL: all but letters, digits and "-._~" as %XX. -ENAMETOOLONG. */
int http_escape(const char *text, char *to, size_t n_bytes);

/* ---- Secrets (secret.c) ---- */

/*
 * http_read_secret - the first line of a file, such as a password.
 * @ret: owned by the caller; free it with http_forget().
 * Errors: what open(2) reports; -ENODATA an empty line; -EMSGSIZE longer than 1024 bytes.
 */
int http_read_secret(const char *path, char **ret);

/* Overwrite a secret and free it. NULL is fine. */
void http_forget(char *secret);
DEFINE_CLEANUP(char *, http_forget)

/* ---- Headers of an answer (headers.c) ---- */

/*
 * http_find_header - a header's value among lines "Name: value\r\n", the last one of that name.
 * @lines: any bytes.
 * @to:    the value without blanks around it, cut to n_bytes - 1.
 * Returns whether there is one.
 */
bool http_find_header(const char *lines, size_t n_lines, const char *name, char *to, size_t n_bytes);

#endif
