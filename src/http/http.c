/* SPDX-License-Identifier: MIT */
/* http.c - requests by libcurl's easy interface: see http.h for the invariants. */
#include "src/http/http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "src/http/curl.h"

enum {
	CONNECT_MS = 10000,
	REQUEST_MS = 60000,
	MAX_ANSWER = 1 << 20,
	MAX_HEADERS = 64 << 10,
	MAX_VALUE = 8192,
};

struct bytes {
	char *at;
	size_t n, room;
};

struct http {
	struct http_options options;
	CURL *easy;
	const struct http_request *request; /* while it is sent */
	struct bytes headers, body;
	int failed; /* negative errno of a callback */
	char error[CURL_ERROR_SIZE + 128];
	char value[MAX_VALUE];
};

int http_open(const struct http_options *options, struct http **ret)
{
	CLEANUP(http_closep) struct http *http = NULL;
	int r = curl_load();

	if (r < 0)
		return r;
	http = calloc(1, sizeof *http);
	if (!http)
		return -ENOMEM;
	http->options = *options;
	http->easy = curl.easy_init();
	if (!http->easy)
		return -ENOMEM;
	*ret = TAKE(http);
	return 0;
}

void http_close(struct http *http)
{
	if (!http)
		return;
	if (http->easy)
		curl.easy_cleanup(http->easy);
	free(http->headers.at);
	free(http->body.at);
	free(http);
}

/* ---- What arrives ---- */

/* Keeps a NUL behind the bytes. */
static int append(struct bytes *bytes, const void *more, size_t n)
{
	if (bytes->n + n + 1 > bytes->room) {
		size_t room = MAX((bytes->n + n + 1) * 2, (size_t)4096);
		char *at = realloc(bytes->at, room);

		if (!at)
			return -ENOMEM;
		bytes->at = at;
		bytes->room = room;
	}
	memcpy(bytes->at + bytes->n, more, n);
	bytes->n += n;
	bytes->at[bytes->n] = '\0';
	return 0;
}

/* A header line. A status line begins a new answer: that of "100 Continue" is none. */
static size_t take_header(char *line, size_t size, size_t n, void *data)
{
	struct http *http = data;

	n *= size;
	if (n > 5 && strncasecmp(line, "HTTP/", 5) == 0)
		http->headers.n = 0;
	if (http->headers.n + n > MAX_HEADERS)
		http->failed = -EMSGSIZE;
	else
		http->failed = append(&http->headers, line, n);
	return http->failed < 0 ? 0 : n;
}

static size_t take_body(char *bytes, size_t size, size_t n, void *data)
{
	struct http *http = data;
	size_t max = http->request->max_answer ? http->request->max_answer : MAX_ANSWER;
	long status = 0;

	n *= size;
	curl.easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &status);
	if (http->request->take && status < 300)
		http->failed = http->request->take(http->request->take_data, bytes, n);
	else if (http->body.n + n > max)
		http->failed = -EMSGSIZE;
	else
		http->failed = append(&http->body, bytes, n);
	return http->failed < 0 ? 0 : n;
}

static int ask_to_go_on(void *data, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
	struct http *http = data;

	(void)down_all, (void)down, (void)up_all, (void)up;
	if (http->options.keep_going(http->options.keep_going_data))
		return 0;
	http->failed = -ECANCELED;
	return 1;
}

/* ---- Sending ---- */

static void set_tls(struct http *http)
{
	const struct http_options *options = &http->options;

	curl.easy_setopt(http->easy, CURLOPT_SSL_VERIFYPEER, 1L);
	curl.easy_setopt(http->easy, CURLOPT_SSL_VERIFYHOST, 2L);
	curl.easy_setopt(http->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (options->ca_file)
		curl.easy_setopt(http->easy, CURLOPT_CAINFO, options->ca_file);
	if (options->cert_file) {
		curl.easy_setopt(http->easy, CURLOPT_SSLCERT, options->cert_file);
		curl.easy_setopt(http->easy, CURLOPT_SSLKEY,
				 options->key_file ? options->key_file : options->cert_file);
	}
}

static void set_times(struct http *http, const struct http_request *request)
{
	const struct http_options *options = &http->options;
	unsigned all = request->timeout_ms ? request->timeout_ms : options->timeout_ms;

	curl.easy_setopt(http->easy, CURLOPT_NOSIGNAL, 1L);
	curl.easy_setopt(http->easy, CURLOPT_CONNECTTIMEOUT_MS,
			 (long)(options->connect_timeout_ms ? options->connect_timeout_ms : CONNECT_MS));
	curl.easy_setopt(http->easy, CURLOPT_TIMEOUT_MS, (long)(all ? all : REQUEST_MS));
	if (!options->keep_going)
		return;
	curl.easy_setopt(http->easy, CURLOPT_NOPROGRESS, 0L);
	curl.easy_setopt(http->easy, CURLOPT_XFERINFOFUNCTION, ask_to_go_on);
	curl.easy_setopt(http->easy, CURLOPT_XFERINFODATA, http);
}

static void set_user(struct http *http)
{
	if (!http->options.user)
		return;
	curl.easy_setopt(http->easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
	curl.easy_setopt(http->easy, CURLOPT_USERNAME, http->options.user);
	curl.easy_setopt(http->easy, CURLOPT_PASSWORD, http->options.password ? http->options.password : "");
}

static void set_body(struct http *http, const struct http_request *request)
{
	bool posts = request->body || strcmp(request->method, "POST") == 0 || strcmp(request->method, "PUT") == 0;

	if (posts) {
		curl.easy_setopt(http->easy, CURLOPT_POST, 1L);
		curl.easy_setopt(http->easy, CURLOPT_POSTFIELDSIZE_LARGE,
				 (curl_off_t)(request->body ? request->n_body : 0));
		curl.easy_setopt(http->easy, CURLOPT_POSTFIELDS, request->body ? request->body : "");
	} else if (strcmp(request->method, "HEAD") == 0) {
		curl.easy_setopt(http->easy, CURLOPT_NOBODY, 1L);
	}
	curl.easy_setopt(http->easy, CURLOPT_CUSTOMREQUEST, request->method);
}

static int add_header(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl.slist_append(*list, line);

	if (!longer)
		return -ENOMEM;
	*list = longer;
	return 0;
}

/* libcurl would add a type for forms, and wait for "100 Continue". */
static int make_headers(const struct http_request *request, struct curl_slist **ret)
{
	bool has_type = false;
	int r = add_header(ret, "Expect:");

	for (const char *const *line = request->headers; r == 0 && line && *line; line++) {
		has_type |= strncasecmp(*line, "Content-Type:", 13) == 0;
		r = add_header(ret, *line);
	}
	if (r == 0 && !has_type)
		r = add_header(ret, request->body ? "Content-Type: application/octet-stream" : "Content-Type:");
	return r;
}

static int errno_of(CURLcode code)
{
	switch (code) {
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_URL_MALFORMAT:
	case CURLE_BAD_FUNCTION_ARGUMENT:
		return -EINVAL;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		return -EHOSTUNREACH;
	case CURLE_COULDNT_CONNECT:
		return -ECONNREFUSED;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_ISSUER_ERROR:
		return -EKEYREJECTED;
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CRL_BADFILE:
		return -ENOKEY;
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CIPHER:
	case CURLE_WEIRD_SERVER_REPLY:
		return -EPROTO;
	default:
		return -ECONNRESET;
	}
}

/* Whether the URL has a scheme that we speak: the library knows a dozen others. */
static bool is_ours(const char *url)
{
	return url && (strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0);
}

static int explain(struct http *http, int error, CURLcode code)
{
	const char *text = http->error[0] ? http->error : curl.easy_strerror(code);

	if (error == -EMSGSIZE)
		text = "the answer is longer than expected";
	else if (error == -ECANCELED)
		text = "stopped";
	else if (error == -EINVAL)
		text = "not an address of HTTP: it begins with http:// or https://";
	if (text != http->error)
		snprintf(http->error, sizeof http->error, "%s", text);
	return error;
}

static void prepare(struct http *http, const struct http_request *request)
{
	curl.easy_reset(http->easy); /* open connections stay */
	http->request = request;
	http->headers.n = http->body.n = 0;
	http->failed = 0;
	http->error[0] = '\0';
	curl.easy_setopt(http->easy, CURLOPT_ERRORBUFFER, http->error);
	curl.easy_setopt(http->easy, CURLOPT_URL, request->url);
	curl.easy_setopt(http->easy, CURLOPT_FRESH_CONNECT, (long)request->is_once);
	curl.easy_setopt(http->easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl.easy_setopt(http->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl.easy_setopt(http->easy, CURLOPT_USERAGENT, "probing");
	curl.easy_setopt(http->easy, CURLOPT_HEADERFUNCTION, take_header);
	curl.easy_setopt(http->easy, CURLOPT_HEADERDATA, http);
	curl.easy_setopt(http->easy, CURLOPT_WRITEFUNCTION, take_body);
	curl.easy_setopt(http->easy, CURLOPT_WRITEDATA, http);
	set_tls(http);
	set_times(http, request);
	set_user(http);
	set_body(http, request);
}

int http_send(struct http *http, const struct http_request *request, struct http_answer *ret)
{
	struct curl_slist *headers = NULL;
	CURLcode code = CURLE_OUT_OF_MEMORY;
	long status = 0;

	http->error[0] = '\0';
	if (!is_ours(request->url))
		return explain(http, -EINVAL, CURLE_OK);
	prepare(http, request);
	if (make_headers(request, &headers) == 0 && append(&http->body, "", 0) == 0) {
		curl.easy_setopt(http->easy, CURLOPT_HTTPHEADER, headers);
		code = curl.easy_perform(http->easy);
	}
	curl.slist_free_all(headers);
	http->request = NULL;
	if (http->failed < 0)
		return explain(http, http->failed, code);
	if (code != CURLE_OK)
		return explain(http, errno_of(code), code);
	curl.easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &status);
	*ret = (struct http_answer){ (int)status, http->body.at, http->body.n };
	return 0;
}

const char *http_error(const struct http *http)
{
	return http->error;
}

const char *http_header(struct http *http, const char *name)
{
	return http_find_header(http->headers.at, http->headers.n, name, http->value, sizeof http->value) ? http->value
													  : NULL;
}
