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
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/view.h"

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

static int explain(char *why, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int explain(char *why, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, OTLP_MAX_WHY, format, arguments);
	va_end(arguments);
	return error;
}

/*
 * Source: opentelemetry-proto 1.11, docs/specification.md, OTLP/HTTP Response: retryable are 429, 502, 503 and 504; 400 is for
 * data that cannot be decoded. 413 and 422: RFC 9110, 15.5.14 and 15.5.21.
 */
static int error_of_status(int status)
{
	switch (status) {
	case 429:
	case 502:
	case 503:
	case 504:
		return -EAGAIN;
	case 413:
		return -EMSGSIZE;
	case 400:
	case 422:
		return -EREMOTEIO;
	default:
		return -ECOMM;
	}
}

static int judge_status(const char *out, const struct http_answer *answer, char *why)
{
	int error = error_of_status(answer->status);
	char text[MAX_SHOWN + 1];

	printable(answer, text);
	if (answer->status == 404)
		return explain(
			why, -ENOENT,
			"%s receives no profiles (404): a Collector needs --feature-gates=service.profilesSupport and a "
			"pipeline of profiles",
			out);
	if (answer->status == 401 || answer->status == 403)
		return explain(why, -EACCES,
			       "%s refuses the sender (%d): put its token into OTEL_EXPORTER_OTLP_HEADERS, as "
			       "Authorization=Bearer%%20TOKEN",
			       out, answer->status);
	return explain(why, error, "%s answers %d%s%s%s", out, answer->status, text[0] ? ": " : "", text,
		       error == -EAGAIN ? "; try again later" : "");
}

/*
 * Profiles may be refused with a status of 200. The answer says how many, but not which.
 * Source: opentelemetry-proto 1.11, profiles_service.proto, ExportProfilesPartialSuccess.
 */
static int judge(const char *out, const struct http_answer *answer, unsigned n_profiles, char *why)
{
	CLEANUP(freep) char *message = NULL;
	int64_t rejected = 0;

	if (answer->status < 200 || answer->status > 299)
		return judge_status(out, answer, why);
	if (export_otlp_answer(answer->body, answer->n_body, &rejected, &message) < 0)
		return explain(why, -EPROTO, "%s is not a receiver of OTLP: its answer has another format", out);
	if (rejected > 0)
		return explain(why, rejected < n_profiles ? -EREMOTE : -EREMOTEIO,
			       "%s refused %" PRId64 " of %u profiles%s%s", out, rejected, n_profiles,
			       message ? ": " : "", message ? message : "");
	if (message)
		cli_say("%s: %s\n", out, message);
	return 0;
}

/* ---- Receiver ---- */

struct otlp_receiver {
	const char *out; /* borrowed */
	char url[HTTP_MAX_URL];
	struct headers headers;
	struct http *http;
};

void otlp_receiver_close(struct otlp_receiver *receiver)
{
	if (!receiver)
		return;
	http_close(receiver->http);
	headers_done(&receiver->headers);
	free(receiver);
}

static int fail_headers(int error)
{
	if (error == -ENOMEM)
		return cli_fail(EXIT_FAILED, "not enough memory");
	return cli_fail(
		EXIT_USAGE,
		"OTEL_EXPORTER_OTLP_HEADERS (in the environment) is not a list of at most 30 headers KEY=VALUE,KEY=VALUE");
}

static int fail_open(int error)
{
	if (error == -EOPNOTSUPP)
		return cli_fail(EXIT_FAILED, "this probing was built without libcurl, which sending needs");
	if (error == -ENOPKG)
		return cli_fail(EXIT_FAILED, "libcurl, which sending needs, cannot be loaded: apt install libcurl4");
	return cli_fail(EXIT_FAILED, "%s", strerror(-error));
}

static int make_url(const char *out, char *to, size_t n_bytes)
{
	struct http_place place;
	char base[512];
	int r;

	r = http_place_parse(out, &place);
	if (r == 0 && place.user[0])
		r = -EPERM;
	if (r == 0)
		r = http_place_base(&place, place.is_https ? HTTPS_PORT : HTTP_PORT, base, sizeof base);
	if (r == -EPERM)
		return cli_fail(EXIT_USAGE, "users and passwords do not belong into the address: put them into "
					    "OTEL_EXPORTER_OTLP_HEADERS");
	if (r < 0)
		return cli_fail(EXIT_USAGE, "not an address: write https://HOST:PORT");
	snprintf(to, n_bytes, "%s/%s", base, place.path[0] ? place.path : default_path);
	return EXIT_OK;
}

int otlp_receiver_open(const char *out, const struct http_options *options, struct otlp_receiver **ret)
{
	struct http_options http = *options;
	struct otlp_receiver *receiver = calloc(1, sizeof *receiver);
	int status, r;

	*ret = receiver;
	if (!receiver)
		return cli_fail(EXIT_FAILED, "not enough memory");
	receiver->out = out;
	status = make_url(out, receiver->url, sizeof receiver->url);
	if (status != EXIT_OK)
		return status;
	r = make_headers(&receiver->headers);
	if (r < 0)
		return fail_headers(r);
	if (!http.ca_file)
		http.ca_file = getenv("OTEL_EXPORTER_OTLP_CERTIFICATE");
	r = http_open(&http, &receiver->http);
	return r < 0 ? fail_open(r) : EXIT_OK;
}

const char *otlp_receiver_url(const struct otlp_receiver *receiver)
{
	return receiver->url;
}

int otlp_post(struct otlp_receiver *receiver, const char *bytes, size_t n_bytes, unsigned n_profiles, char *why)
{
	struct http_answer answer;
	int r = http_send(receiver->http,
			  &(struct http_request){ .method = "POST",
						  .url = receiver->url,
						  .headers = receiver->headers.list,
						  .body = bytes,
						  .n_body = n_bytes,
						  .is_once = true },
			  &answer);

	if (r == 0)
		return judge(receiver->out, &answer, n_profiles, why);
	explain(why, r, "%s: %s", receiver->out, http_error(receiver->http));
	return r == -EHOSTUNREACH || r == -ECONNREFUSED || r == -ETIMEDOUT || r == -ECONNRESET ? -EAGAIN : r;
}

int otlp_write(const struct exporter *exporter, const struct profile *profile, const struct export_options *options,
	       char **ret, size_t *ret_bytes)
{
	struct export_options compressed = *options;
	char *bytes = NULL;
	FILE *body = open_memstream(&bytes, ret_bytes);
	int r;

	if (!body)
		return -ENOMEM;
	compressed.compress = true;
	r = exporter->write(profile, &compressed, body);
	if (fclose(body) != 0 && r == 0)
		r = -ENOMEM;
	if (r < 0)
		free(bytes);
	else
		*ret = bytes;
	return r;
}

DEFINE_CLEANUP(struct otlp_receiver *, otlp_receiver_close)

int otlp_send(const struct exporting *exporting, bool quiet)
{
	CLEANUP(otlp_receiver_closep) struct otlp_receiver *receiver = NULL;
	CLEANUP(freep) char *bytes = NULL;
	char why[OTLP_MAX_WHY];
	size_t n_bytes;
	int status, r;

	if (strcmp(exporting->exporter->name, "otlp") != 0)
		return cli_fail(EXIT_USAGE, "only otlp is sent to an address, not %s", exporting->exporter->name);
	r = otlp_write(exporting->exporter, exporting->profile, exporting->options, &bytes, &n_bytes);
	if (r < 0)
		return view_fail_export(exporting->recording, exporting->exporter, r);
	status = otlp_receiver_open(exporting->out, &(struct http_options){ 0 }, &receiver);
	if (status != EXIT_OK)
		return status;
	r = otlp_post(receiver, bytes, n_bytes, export_otlp_count(exporting->profile), why);
	if (r < 0)
		return cli_fail(EXIT_NO_OUTPUT, "%s", why);
	if (!quiet)
		cli_say("probing: sent %zu bytes to %s (%" PRIu64 " samples)\n", n_bytes, exporting->out,
			cli_count_samples(exporting->profile));
	return EXIT_OK;
}
