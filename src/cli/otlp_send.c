/* SPDX-License-Identifier: MIT */
/*
 * otlp_send.c - see otlp_send.h.
 *
 * The variables of the environment are OpenTelemetry's: OTEL_EXPORTER_OTLP_HEADERS has headers, such as tokens, which do
 * not belong into arguments; OTEL_EXPORTER_OTLP_CERTIFICATE names authorities.
 * Source: OpenTelemetry specification 1.50, OTLP exporter; opentelemetry-proto 1.11, docs/specification.md, OTLP/HTTP.
 */
#include "src/cli/otlp_send.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/view.h"
#include "src/http/http.h"

enum { MAX_HEADERS = 32, MAX_HEADER_BYTES = 4096, HTTP_PORT = 80, HTTPS_PORT = 443, MAX_SHOWN = 200 };

static const char default_path[] = "v1development/profiles";

bool otlp_is_address(const char *out)
{
	return strncmp(out, "http://", strlen("http://")) == 0 || strncmp(out, "https://", strlen("https://")) == 0;
}

/* ---- Headers ---- */

struct headers {
	char *words; /* of the variable */
	char *lines[MAX_HEADERS];
	const char *list[MAX_HEADERS + 1];
	size_t n;
};

static void headers_done(struct headers *headers)
{
	for (size_t i = 0; i < headers->n; i++)
		free(headers->lines[i]);
	free(headers->words);
}

static int hex_of(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* "key=value%20" as "key: value ". False: no "=", or a control character. */
static bool header_line(const char *word, char *to)
{
	const char *equals = strchr(word, '=');
	size_t n = 0;

	if (!equals || equals == word || strlen(word) + 2 > MAX_HEADER_BYTES)
		return false;
	for (const char *at = word; *at; at++) {
		char c = *at;

		if (at == equals) {
			to[n++] = ':';
			c = ' ';
		} else if (c == '%' && isxdigit((unsigned char)at[1]) && isxdigit((unsigned char)at[2])) {
			c = (char)(hex_of(at[1]) << 4 | hex_of(at[2]));
			at += 2;
		}
		if ((unsigned char)c < ' ' || c == '\x7f')
			return false;
		to[n++] = c;
	}
	to[n] = '\0';
	return true;
}

static int add_header(struct headers *headers, const char *line)
{
	if (headers->n == MAX_HEADERS)
		return -E2BIG;
	headers->lines[headers->n] = strdup(line);
	if (!headers->lines[headers->n])
		return -ENOMEM;
	headers->list[headers->n] = headers->lines[headers->n];
	headers->n++;
	return 0;
}

/* -EINVAL: the variable is not a list of KEY=VALUE. */
static int make_headers(struct headers *headers)
{
	const char *variable = getenv("OTEL_EXPORTER_OTLP_HEADERS");
	char *rest, *word, line[MAX_HEADER_BYTES + 1];
	int r;

	r = add_header(headers, "Content-Type: application/x-protobuf");
	if (r == 0)
		r = add_header(headers, "Content-Encoding: gzip");
	if (r < 0 || !variable)
		return r;
	headers->words = rest = strdup(variable);
	if (!rest)
		return -ENOMEM;
	while (r == 0 && (word = strsep(&rest, ","))) {
		word += strspn(word, " \t");
		if (!*word)
			continue;
		r = header_line(word, line) ? add_header(headers, line) : -EINVAL;
	}
	return r;
}

/* ---- Answer ---- */

/* What may be shown of an answer. */
static void printable(const struct http_answer *answer, char *to)
{
	size_t n = 0;

	for (size_t i = 0; i < answer->n_body && n < MAX_SHOWN; i++)
		if (isprint((unsigned char)answer->body[i]))
			to[n++] = answer->body[i];
	to[n] = '\0';
}

static int fail_status(const char *out, const struct http_answer *answer)
{
	char text[MAX_SHOWN + 1];

	printable(answer, text);
	if (answer->status == 404)
		return cli_fail(
			EXIT_NO_OUTPUT,
			"%s receives no profiles (404): a Collector needs --feature-gates=service.profilesSupport and a "
			"pipeline of profiles",
			out);
	if (answer->status == 401 || answer->status == 403)
		return cli_fail(EXIT_NO_OUTPUT,
				"%s refuses the sender (%d): put its token into OTEL_EXPORTER_OTLP_HEADERS, as "
				"Authorization=Bearer%%20TOKEN",
				out, answer->status);
	return cli_fail(EXIT_NO_OUTPUT, "%s answers %d%s%s%s", out, answer->status, text[0] ? ": " : "", text,
			answer->status == 429 || answer->status >= 502 ? "; try again later" : "");
}

/* A part may be refused with a status of 200. */
static int judge(const char *out, const struct http_answer *answer)
{
	CLEANUP(freep) char *message = NULL;
	int64_t rejected = 0;

	if (answer->status < 200 || answer->status > 299)
		return fail_status(out, answer);
	if (export_otlp_answer(answer->body, answer->n_body, &rejected, &message) < 0)
		return cli_fail(EXIT_NO_OUTPUT, "%s is no receiver of OTLP: its answer is none", out);
	if (rejected > 0)
		return cli_fail(EXIT_NO_OUTPUT, "%s refused %" PRId64 " profiles%s%s", out, rejected,
				message ? ": " : "", message ? message : "");
	if (message)
		cli_say("%s: %s\n", out, message);
	return EXIT_OK;
}

/* ---- Request ---- */

static int fail_headers(int error)
{
	if (error == -ENOMEM)
		return cli_fail(EXIT_FAILED, "not enough memory");
	return cli_fail(
		EXIT_USAGE,
		"OTEL_EXPORTER_OTLP_HEADERS (in the environment) is no list of at most 30 headers KEY=VALUE,KEY=VALUE");
}

static int fail_open(int error)
{
	if (error == -EOPNOTSUPP)
		return cli_fail(EXIT_FAILED, "this probing was built without libcurl, which sending needs");
	if (error == -ENOPKG)
		return cli_fail(EXIT_FAILED, "libcurl, which sending needs, cannot be loaded: apt install libcurl4");
	return cli_fail(EXIT_FAILED, "%s", strerror(-error));
}

static int send_bytes(const char *out, const char *bytes, size_t n_bytes)
{
	CLEANUP(headers_done) struct headers headers = { 0 };
	CLEANUP(http_closep) struct http *http = NULL;
	struct http_place place;
	struct http_answer answer;
	char base[512], url[HTTP_MAX_URL];
	int r;

	r = http_place_parse(out, &place);
	if (r == 0 && place.user[0])
		r = -EPERM;
	if (r == 0)
		r = http_place_base(&place, place.is_https ? HTTPS_PORT : HTTP_PORT, base, sizeof base);
	if (r < 0)
		return cli_fail(EXIT_USAGE, "%s",
				r == -EPERM ? "users and passwords do not belong into the address: put them into "
					      "OTEL_EXPORTER_OTLP_HEADERS"
					    : "not an address: write https://HOST:PORT");
	snprintf(url, sizeof url, "%s/%s", base, place.path[0] ? place.path : default_path);
	r = make_headers(&headers);
	if (r < 0)
		return fail_headers(r);
	r = http_open(&(struct http_options){ .ca_file = getenv("OTEL_EXPORTER_OTLP_CERTIFICATE") }, &http);
	if (r < 0)
		return fail_open(r);
	r = http_send(http,
		      &(struct http_request){
			      .method = "POST", .url = url, .headers = headers.list, .body = bytes, .n_body = n_bytes },
		      &answer);
	if (r < 0)
		return cli_fail(EXIT_NO_OUTPUT, "%s: %s", out, http_error(http));
	return judge(out, &answer);
}

int otlp_send(const struct exporting *exporting, bool quiet)
{
	CLEANUP(freep) char *bytes = NULL;
	struct export_options options = *exporting->options;
	size_t n_bytes;
	FILE *body;
	int status, r;

	if (strcmp(exporting->exporter->name, "otlp") != 0)
		return cli_fail(EXIT_USAGE, "only otlp is sent to an address, not %s", exporting->exporter->name);
	body = open_memstream(&bytes, &n_bytes);
	if (!body)
		return cli_fail(EXIT_FAILED, "not enough memory");
	options.compress = true;
	r = exporting->exporter->write(exporting->profile, &options, body);
	if (fclose(body) != 0 && r == 0)
		r = -ENOMEM;
	if (r < 0)
		return view_fail_export(exporting->recording, exporting->exporter, r);
	status = send_bytes(exporting->out, bytes, n_bytes);
	if (status == EXIT_OK && !quiet)
		cli_say("probing: sent %zu bytes to %s (%" PRIu64 " samples)\n", n_bytes, exporting->out,
			cli_count_samples(exporting->profile));
	return status;
}
