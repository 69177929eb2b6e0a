/* SPDX-License-Identifier: MIT */
/* fetch.c - probing cluster fetch: for probing itself, a question to other machines over HTTPS.
 *
 * The first host of the list answers for all of them: it asks the others itself, so that a thousand hosts are not a thousand
 * connections from here. Nobody is needed for that: if it cannot be reached, the next one is the first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/cluster/cluster.h"
#include "src/cli/cluster/hosts.h"
#include "src/http/http.h"

enum { OPTION_RAW = 0x200, CONNECT_MS = 5000, MAX_SENTENCE = 512 };

struct options {
	struct cluster_options cluster;
	bool is_raw; /* the answer is a file, of the first host alone */
	int first;   /* index of the question's first word; 0: none */
};

static const struct argp_option option_list[] = {
	CLUSTER_OPTION_ROWS,
	{ "raw", OPTION_RAW, NULL, OPTION_HIDDEN, NULL, 0 },
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case OPTION_RAW:
		options->is_raw = true;
		return 0;
	case ARGP_KEY_ARG:
		options->first = state->next - 1;
		state->next = state->argc;
		return 0;
	default:
		return cluster_options_parse(key, argument, state, &options->cluster);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[-- WORD...]",
	.doc = "For probing cluster: ask machines over HTTPS.",
};

/* ---- The question ---- */

/* A word a line; the hosts behind the first one as "--below". */
static char *make_body(char *const *words, char *const *below, size_t n_below)
{
	char *body = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&body, &n_bytes);

	if (!out)
		return NULL;
	fprintf(out, "%s\n", words[0]);
	for (size_t i = 0; i < n_below; i++)
		fprintf(out, "%s%s", i == 0 ? "--below=" : ",", below[i]);
	if (n_below > 0)
		fputc('\n', out);
	for (size_t i = 1; words[i]; i++)
		fprintf(out, "%s\n", words[i]);
	if (fclose(out) == 0)
		return body;
	free(body);
	return NULL;
}

/* {"error": "..."}, or the status alone. */
static void explain_status(const struct http_answer *answer, char *to, size_t n_bytes)
{
	static const char start[] = "{\"error\":\"";
	const char *at = answer->body && strncmp(answer->body, start, strlen(start)) == 0 ? answer->body + strlen(start)
											  : NULL;

	if (answer->status == 401)
		snprintf(to, n_bytes, "it refuses the token");
	else if (at)
		snprintf(to, n_bytes, "%.*s", (int)MIN(strcspn(at, "\""), (size_t)MAX_SENTENCE - 1), at);
	else
		snprintf(to, n_bytes, "it answers with the status %d of HTTP", answer->status);
}

/* ---- Answers ---- */

static int fail_host(struct cluster *cluster, const char *address, const char *problem)
{
	struct cluster_host *host;
	int r = cluster_add_host(cluster, NULL, address, NULL, &host);

	if (r < 0)
		return r;
	host->problem = strdup(problem);
	return host->problem ? 0 : -ENOMEM;
}

static bool is_asked(const char *address, char *const *hosts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(address, hosts[i]) == 0)
			return true;
	return false;
}

/* A host without an address is the first one. -EBADMSG: one was not asked. */
static int check_hosts(struct cluster *cluster, size_t first, char *const *hosts, size_t n)
{
	for (size_t i = first; i < cluster->n_hosts; i++) {
		struct cluster_host *host = &cluster->hosts[i];

		if (!host->address)
			host->address = strdup(hosts[0]);
		if (!host->address)
			return -ENOMEM;
		if (!is_asked(host->address, hosts, n))
			return -EBADMSG;
	}
	return 0;
}

/*
 * It speaks of itself without an address, and of hosts below it. A document of one that it was not asked for is refused as a
 * whole; missing ones are named.
 */
static int take_document(struct cluster *cluster, const struct http_answer *answer, char *const *hosts, size_t n)
{
	size_t first = cluster->n_hosts, first_rank = cluster->n_ranks;
	CLEANUP(freep) bool *is_there = calloc(n, sizeof *is_there);
	int r = is_there ? cluster_read(cluster, answer->body, answer->n_body, NULL) : -ENOMEM;

	if (r >= 0)
		r = check_hosts(cluster, first, hosts, n);
	if (r < 0)
		cluster_cut(cluster, first, first_rank);
	for (size_t k = 0; r >= 0 && k < n; k++)
		for (size_t i = first; i < cluster->n_hosts; i++)
			is_there[k] |= strcmp(cluster->hosts[i].address, hosts[k]) == 0;
	for (size_t k = 0; r >= 0 && k < n; k++)
		if (!is_there[k])
			r = fail_host(cluster, hosts[k], "the host that asked it did not say anything about it");
	return r;
}

/* Ask the first host for all of them. 1: it cannot be reached, and is in the cluster as such. */
static int ask_first(struct http *http, const struct options *options, const char *bearer, char *const *words,
		     char *const *hosts, size_t n, struct cluster *cluster)
{
	const char *const headers[] = { bearer, "Content-Type: text/plain", NULL };
	char url[HTTP_MAX_URL], why[MAX_SENTENCE];
	CLEANUP(freep) char *body = make_body(words, hosts + 1, n - 1);
	struct http_request request = { .method = "POST",
					.url = url,
					.headers = headers,
					.body = body,
					.n_body = body ? strlen(body) : 0,
					.max_answer = CLUSTER_MAX_BYTES };
	struct http_answer answer;
	int r;

	if (!body)
		return -ENOMEM;
	if (snprintf(url, sizeof url, "%s/cluster", hosts[0]) >= (int)sizeof url)
		return -ENAMETOOLONG;
	r = http_send(http, &request, &answer);
	if (r == -ENOMEM)
		return r;
	if (r >= 0 && answer.status == 200 && options->is_raw)
		return fwrite(answer.body, 1, answer.n_body, stdout) == answer.n_body ? 0 : -EIO;
	if (r >= 0 && answer.status == 200) {
		r = take_document(cluster, &answer, hosts, n);
		snprintf(why, sizeof why, "%s",
			 r == -EPROTONOSUPPORT ? "it has another version of probing, with another format"
					       : "its answer is not a document of probing cluster");
	} else if (r >= 0) {
		explain_status(&answer, why, sizeof why);
		r = -EIO;
	} else {
		snprintf(why, sizeof why, "%s", http_error(http));
	}
	if (r >= 0 || r == -ENOMEM)
		return r;
	if (options->is_raw) {
		cli_say("probing: %s\n", why);
		return r;
	}
	r = fail_host(cluster, hosts[0], why);
	return r < 0 ? r : 1;
}

static int ask_all(struct http *http, const struct options *options, const char *bearer, char *const *words,
		   struct cluster *cluster)
{
	char *const *hosts = options->cluster.hosts.words;
	size_t n = options->is_raw ? MIN(options->cluster.hosts.n, (size_t)1) : options->cluster.hosts.n;
	int r = 1;

	for (size_t i = 0; i < n && r == 1; i++)
		r = ask_first(http, options, bearer, words, hosts + i, n - i, cluster);
	return r == 1 ? 0 : r;
}

static int write_document(const void *data, FILE *out)
{
	return cluster_write(data, cli_version, NULL, out);
}

static int fail_document(const void *data, int error)
{
	(void)data;
	return cli_fail(EXIT_FAILED, "the answer cannot be written: %s", strerror(-error));
}

static int fetch(const struct options *options, char *const *words)
{
	CLEANUP(http_closep) struct http *http = NULL;
	CLEANUP(http_forgetp) char *bearer = NULL;
	double seconds = options->cluster.host_timeout_s > 0 ? options->cluster.host_timeout_s : 30;
	struct cluster cluster = { 0 };
	int r, status;

	status = cluster_open_http(&options->cluster, (unsigned)(seconds * 1000), &http, &bearer);
	if (status != EXIT_OK)
		return status;
	r = ask_all(http, options, bearer, words, &cluster);
	if (r < 0 && options->is_raw)
		status = EXIT_FAILED;
	else if (r < 0)
		status = cli_fail(EXIT_FAILED, "the hosts cannot be asked: %s", strerror(-r));
	else if (!options->is_raw)
		status = output_write("-", 0, write_document, fail_document, &cluster);
	cluster_done(&cluster);
	return status;
}

static int run_cluster_fetch(int argc, char **argv)
{
	struct options options = { 0 };
	int status;

	cluster_options_init(&options.cluster);
	cli_parse(&argp, argc, argv, ARGP_IN_ORDER, &options);
	if (options.first > 0 && options.cluster.hosts.n > 0)
		status = fetch(&options, argv + options.first);
	else
		status = cli_fail(EXIT_USAGE, "give --hosts and the words of the question");
	cluster_options_done(&options.cluster);
	return status;
}

const struct verb cluster_verb_fetch = {
	.name = "fetch",
	.summary = NULL, /* for probing itself */
	.argp = &argp,
	.run = run_cluster_fetch,
};
