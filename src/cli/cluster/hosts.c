/* SPDX-License-Identifier: MIT */
/* hosts.c - see hosts.h.
 *
 * ssh joins its words with spaces, and the remote shell takes them apart; `ip netns exec` and `kubectl exec` pass them on.
 * So no word of a question has a character that a shell would change.
 */
#include "src/cli/cluster/hosts.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/http/http.h"

enum {
	MAX_HOSTS_FILE = 4 << 20,
	MAX_WORDS = 64,
	HOST_EXTRA_S = 10,
	MAX_HOST_BYTES = 256,
	MAX_FAN_OUT = 1024,
	CONNECT_MS = 5000
};
/* Of the time of a host: the first one of a group waits for the others, and the next one may have to be asked. */
#define FIRST_TIMES 2.0
#define GROUP_TIMES 4.5

void cluster_options_init(struct cluster_options *options)
{
	*options = (struct cluster_options){
		.ssh = CLUSTER_DEFAULT_SSH, .remote_probing = "probing", .fan_out = 64, .timeout_s = 10
	};
}

void cluster_options_done(struct cluster_options *options)
{
	free(options->selection.pids);
	glob_list_done(&options->hosts);
}

/* ---- Names of hosts ---- */

bool cluster_is_url(const char *host)
{
	return strncmp(host, "https://", 8) == 0 || strncmp(host, "http://", 7) == 0;
}

/* A name that ssh would take for an option is none. */
static bool is_host(const char *name)
{
	if (!name[0] || name[0] == '-' || strlen(name) >= MAX_HOST_BYTES)
		return false;
	for (size_t i = 0; name[i]; i++)
		if (!isgraph((unsigned char)name[i]))
			return false;
	return true;
}

/* The token would go in the clear. A tunnel's end is on this machine. */
static bool is_open(const char *host)
{
	struct http_place place;

	return cluster_is_url(host) &&
	       (http_place_parse(host, &place) < 0 || (!place.is_https && !http_place_is_local(&place)));
}

static void add_host(struct argp_state *state, struct cluster_options *options, const char *name)
{
	if (!is_host(name))
		argp_error(state, "%s is not a host name", name);
	if (is_open(name))
		argp_error(state,
			   "%s is not an https:// address: without TLS others on the network could read the token",
			   name);
	if (options->hosts.n >= CLUSTER_MAX_HOSTS)
		argp_error(state, "more than %d hosts", CLUSTER_MAX_HOSTS);
	for (size_t i = 0; i < options->hosts.n; i++)
		if (strcmp(options->hosts.words[i], name) == 0)
			return;
	if (glob_list_add(&options->hosts, name) < 0)
		argp_failure(state, EXIT_FAILED, 0, "not enough memory");
}

/* One range of a list in brackets, "07-16" or "3". */
static bool add_range(struct argp_state *state, struct cluster_options *options, const char *before, const char *range,
		      const char *after)
{
	size_t n_digits = strspn(range, "0123456789");
	long first, last;
	char *end;

	if (n_digits == 0 || n_digits > 9)
		return false;
	first = last = strtol(range, &end, 10);
	if (*end == '-') {
		size_t n_last = strspn(end + 1, "0123456789");

		if (n_last == 0 || n_last > 9)
			return false;
		last = strtol(end + 1, &end, 10);
	}
	if (*end != '\0' || last < first || last - first >= CLUSTER_MAX_HOSTS)
		return false;
	for (long i = first; i <= last; i++) {
		char name[MAX_HOST_BYTES + 1];

		snprintf(name, sizeof name, "%s%0*ld%s", before, (int)n_digits, i, after);
		add_host(state, options, name);
	}
	return true;
}

/* "node[01-03,7]", as Slurm has it: one list in brackets. With a colon they hold an IPv6 address, "https://[::1]:7070". */
static void add_hosts(struct argp_state *state, struct cluster_options *options, char *item)
{
	char *open = strchr(item, '['), *close = open ? strchr(open, ']') : NULL, *range;

	if (!open || !close || memchr(open, ':', (size_t)(close - open))) {
		add_host(state, options, item);
		return;
	}
	*open++ = '\0';
	*close++ = '\0';
	while ((range = strsep(&open, ",")))
		if (!add_range(state, options, item, range, close))
			argp_error(state, "%s[%s]%s: the brackets need numbers and ranges, as in node[01-16,20]", item,
				   range, close);
}

/* Commas within brackets do not part hosts. */
static void add_list(struct argp_state *state, struct cluster_options *options, const char *list)
{
	CLEANUP(freep) char *text = strdup(list);
	char *item = text;
	bool is_inside = false;

	if (!text)
		argp_failure(state, EXIT_FAILED, 0, "not enough memory");
	for (char *at = text; at; at++) {
		bool is_end = *at == '\0';

		is_inside = *at == '[' || (is_inside && *at != ']');
		if (!is_end && (*at != ',' || is_inside))
			continue;
		*at = '\0';
		if (*item)
			add_hosts(state, options, item);
		if (is_end)
			break;
		item = at + 1;
	}
	if (options->hosts.n == 0)
		argp_error(state, "--hosts needs the name of a host");
}

static void add_file(struct argp_state *state, struct cluster_options *options, const char *path)
{
	CLEANUP(freep) char *text = NULL;
	char *rest, *line;
	int r = read_file(path, MAX_HOSTS_FILE, &text, NULL);

	if (r < 0)
		argp_failure(state, cli_status(r), 0, "%s cannot be read: %s", path, strerror(-r));
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		line += strspn(line, " \t\r");
		line[strcspn(line, " \t\r#")] = '\0';
		if (line[0])
			add_hosts(state, options, line);
	}
	if (options->hosts.n == 0)
		argp_failure(state, EXIT_NO_INPUT, 0, "%s has no hosts", path);
}

/* ---- Options ---- */

static void add_pids(struct argp_state *state, struct rank_selection *selection, const char *list)
{
	CLEANUP(glob_list_done) struct glob_list words = { 0 };

	cli_parse_list(state, list, "--pid needs the id of a process", &words);
	for (size_t i = 0; i < words.n; i++) {
		pid_t pid = cli_parse_id(state, words.words[i], "process");

		if (grow(&selection->pids, selection->n_pids, &selection->pids_allocated, sizeof *selection->pids) < 0)
			argp_failure(state, EXIT_FAILED, 0, "not enough memory");
		selection->pids[selection->n_pids++] = pid;
	}
}

static void check(struct argp_state *state, const struct cluster_options *options)
{
	const struct rank_selection *selection = &options->selection;

	if (options->hosts.n > 0 && (selection->n_pids > 0 || selection->launcher > 0))
		argp_error(state, "--pid and --launcher are of this machine: with --hosts use a PATTERN or --job");
	if ((selection->n_pids > 0) + (selection->launcher > 0) + (selection->pattern != NULL) > 1)
		argp_error(state, "a PATTERN, --pid, or --launcher?");
	if (options->ssh[strspn(options->ssh, " ")] == '\0')
		argp_error(state, "--ssh needs a command");
}

error_t cluster_options_parse(int key, char *argument, struct argp_state *state, struct cluster_options *options)
{
	switch (key) {
	case 'p':
		add_pids(state, &options->selection, argument);
		return 0;
	case CLUSTER_OPTION_LAUNCHER:
		options->selection.launcher = cli_parse_id(state, argument, "process");
		return 0;
	case CLUSTER_OPTION_JOB:
		options->selection.job = argument;
		return 0;
	case CLUSTER_OPTION_HOSTS:
		add_list(state, options, argument);
		return 0;
	case CLUSTER_OPTION_HOSTS_FILE:
		add_file(state, options, argument);
		return 0;
	case CLUSTER_OPTION_SSH:
		options->ssh = argument;
		return 0;
	case CLUSTER_OPTION_PROBING:
		options->remote_probing = argument;
		return 0;
	case CLUSTER_OPTION_FAN_OUT:
		options->fan_out = (unsigned)cli_parse_number(state, argument, "--fan-out", 1, MAX_FAN_OUT);
		return 0;
	case CLUSTER_OPTION_TIMEOUT:
		options->timeout_s = cli_parse_duration(state, argument, "--timeout", 0.1, 3600);
		return 0;
	case CLUSTER_OPTION_HOST_TIMEOUT:
		options->host_timeout_s = cli_parse_duration(state, argument, "--host-timeout", 0.1, 7200);
		return 0;
	case CLUSTER_OPTION_MATCHING:
		options->selection.pattern = argument;
		return 0;
	case CLUSTER_OPTION_TOKEN_FILE:
		options->token_file = argument;
		return 0;
	case CLUSTER_OPTION_CA_FILE:
		options->ca_file = argument;
		return 0;
	case CLUSTER_OPTION_LOCAL:
		options->is_local = true;
		return 0;
	case ARGP_KEY_ARG:
		if (options->selection.pattern)
			argp_error(state, "unexpected argument %s: give one PATTERN", argument);
		options->selection.pattern = argument;
		return 0;
	case ARGP_KEY_END:
		if (options->is_local) {
			cluster_decode(options->selection.pattern);
			cluster_decode(options->selection.job);
		}
		check(state, options);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- Questions ---- */

/* The words of a command for one host; the pointers own what stands behind them. */
struct words {
	char *items[MAX_WORDS + 1]; /* ends with NULL */
	size_t n;
	int error;
};

static void words_done(struct words *words)
{
	for (size_t i = 0; i < words->n; i++)
		free(words->items[i]);
}

static void add_word(struct words *words, char *word)
{
	if (!word)
		words->error = -ENOMEM;
	else if (words->n >= MAX_WORDS) {
		words->error = -E2BIG;
		free(word);
	} else
		words->items[words->n++] = word;
}

/*
 * A word that every shell leaves as it is, and that needs none: other bytes are written as "%41". The other side has
 * --local, and decodes.
 */
static char *encode(const char *word)
{
	static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:,@+-";
	char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	if (!out)
		return NULL;
	for (; *word; word++) {
		if (strchr(harmless, *word))
			fputc(*word, out);
		else
			fprintf(out, "%%%02x", (unsigned char)*word);
	}
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

void cluster_decode(char *word)
{
	char *to = word;

	for (; word && *word; word++) {
		if (word[0] == '%' && isxdigit((unsigned char)word[1]) && isxdigit((unsigned char)word[2])) {
			char digits[3] = { word[1], word[2], '\0' };

			*to++ = (char)strtoul(digits, NULL, 16);
			word += 2;
		} else {
			*to++ = *word;
		}
	}
	if (to)
		*to = '\0';
}

/* "%h" within a word is the host. */
static char *with_host(const char *word, size_t n, const char *host, bool *has_host)
{
	char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	if (!out)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		if (word[i] == '%' && i + 1 < n && word[i + 1] == 'h') {
			fputs(host, out);
			*has_host = true;
			i++;
		} else {
			fputc(word[i], out);
		}
	}
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static void add_ssh(struct words *words, const char *ssh, const char *host)
{
	bool has_host = false;

	for (const char *at = ssh + strspn(ssh, " "); *at; at += strspn(at, " ")) {
		size_t n = strcspn(at, " ");

		add_word(words, with_host(at, n, host, &has_host));
		at += n;
	}
	if (!has_host)
		add_word(words, strdup(host));
}

static char *encoded_option(const char *name, const char *value)
{
	CLEANUP(freep) char *encoded = encode(value);
	char *word;

	return encoded && asprintf(&word, "%s=%s", name, encoded) >= 0 ? word : NULL;
}

static void add_words(struct words *words, const char *const *list)
{
	for (size_t i = 0; list && list[i]; i++)
		add_word(words, strdup(list[i]));
}

/* The words behind the verb. */
static void add_question(struct words *words, const struct cluster_options *options, const char *const *more,
			 size_t host)
{
	char timeout[32];

	add_words(words, more);
	snprintf(timeout, sizeof timeout, "--timeout=%.0fms", options->timeout_s * 1000);
	add_word(words, strdup(timeout));
	if (options->selection.job)
		add_word(words, encoded_option("--job", options->selection.job));
	if (options->selection.pattern)
		add_word(words, encoded_option("--matching", options->selection.pattern));
	if (options->config)
		add_word(words, encoded_option("--config", options->config));
	if (options->own)
		add_word(words, strdup(options->own[host]));
	if (options->more || options->sql)
		add_word(words, strdup("--"));
	for (size_t i = 0; options->more && options->more[i]; i++)
		add_word(words, encode(options->more[i]));
	if (options->sql)
		add_word(words, encode(options->sql));
}

/* ---- Hosts that are asked by one command ---- */

struct asking {
	const struct cluster_options *options;
	const struct command *commands;
	const struct cluster_asked *asked; /* by command */
	cluster_take *take;
	void *data;
	int error;
};

static void add_secrets(struct words *words, const struct cluster_options *options)
{
	if (options->token_file) {
		add_word(words, strdup("--token-file"));
		add_word(words, strdup(options->token_file));
	}
	if (options->ca_file) {
		add_word(words, strdup("--ca-file"));
		add_word(words, strdup(options->ca_file));
	}
}

/* "--hosts=https://a:7070,https://b:7070" */
static char *list_hosts(const struct cluster_asked *asked)
{
	char *list = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&list, &n_bytes);

	if (!out)
		return NULL;
	for (size_t i = 0; i < asked->n; i++)
		fprintf(out, "%s%s", i > 0 ? "," : "--hosts=", asked->hosts[i]);
	if (fclose(out) == 0)
		return list;
	free(list);
	return NULL;
}

/* "probing cluster fetch --hosts=... -- QUESTION": a process for each, so that all wait at once. */
static void add_fetch(struct words *words, const struct cluster_options *options, const char *const *question,
		      const struct cluster_asked *asked, size_t host, double seconds)
{
	static const char *const fetch[] = { "/proc/self/exe", "cluster", "fetch", NULL };
	char timeout[48];

	add_words(words, options->before ? options->before : fetch);
	add_word(words, list_hosts(asked));
	add_secrets(words, options);
	snprintf(timeout, sizeof timeout, "--host-timeout=%.0fms", seconds * (asked->n > 1 ? FIRST_TIMES : 1) * 1000);
	add_word(words, strdup(timeout));
	if (options->is_file && !options->before)
		add_word(words, strdup("--raw"));
	add_word(words, strdup("--"));
	add_word(words, strdup(question[0]));
	add_question(words, options, question + 1, host);
}

static void add_command(struct words *words, const struct cluster_options *options, const char *const *question,
			const struct cluster_asked *asked, size_t host, double seconds)
{
	if (asked->is_url) {
		add_fetch(words, options, question, asked, host, seconds);
		return;
	}
	if (!asked->is_here) {
		add_words(words, options->before);
		if (options->before)
			add_word(words, strdup("--"));
		add_ssh(words, options->ssh, asked->hosts[0]);
	}
	add_word(words, strdup(asked->is_here ? "/proc/self/exe" : options->remote_probing));
	add_word(words, strdup("cluster"));
	add_word(words, strdup(question[0]));
	add_word(words, strdup("--local"));
	add_question(words, options, question + 1, host);
}

/*
 * Hosts that are asked over HTTPS are split into at most fan_out groups, whose first one asks the others, and does the
 * same. Hosts of ssh, and those that send a file, are asked one by one. Returns the number of groups.
 */
static size_t group(const struct cluster_options *options, struct cluster_asked *asked)
{
	char **hosts = options->hosts.words;
	size_t n_urls = 0, n_groups = 0, each;

	for (size_t i = 0; i < options->hosts.n; i++)
		n_urls += cluster_is_url(hosts[i]);
	each = options->is_file ? 1 : (n_urls + options->fan_out - 1) / options->fan_out;
	for (size_t i = 0; i < options->hosts.n; i += asked[n_groups++].n) {
		bool is_url = cluster_is_url(hosts[i]);
		size_t n = 1;

		while (is_url && n < each && i + n < options->hosts.n && cluster_is_url(hosts[i + n]))
			n++;
		asked[n_groups] = (struct cluster_asked){
			.hosts = hosts + i, .n = n, .is_url = is_url, .is_here = strcmp(hosts[i], ".") == 0
		};
	}
	return n_groups;
}

/* Its memory is freed at once: a thousand answers need not be kept. */
static void take_answer(void *data, struct command *command)
{
	struct asking *asking = data;

	if (asking->error >= 0)
		asking->error = asking->take(asking->data, &asking->asked[command - asking->commands], command);
	commands_done(command, 1);
}

int cluster_ask(const struct cluster_options *options, const char *const *question, size_t max_bytes,
		cluster_take *take, void *data)
{
	size_t n_hosts = options->hosts.n, n = 0;
	struct words *words = calloc(n_hosts + 1, sizeof *words);
	CLEANUP(freep) struct command *commands = calloc(n_hosts + 1, sizeof *commands);
	CLEANUP(freep) struct cluster_asked *asked = calloc(n_hosts + 1, sizeof *asked);
	struct asking asking = { options, commands, asked, take, data, 0 };
	double seconds = options->host_timeout_s > 0 ? options->host_timeout_s : 2 * options->timeout_s + HOST_EXTRA_S;
	struct commands_options how = { .n_at_once = options->fan_out,
					.each_ns = (uint64_t)(seconds * 1e9),
					.max_bytes = max_bytes,
					.max_all_bytes = options->max_all_bytes > 0 ? options->max_all_bytes
										    : CLUSTER_MAX_ALL_BYTES,
					.ended = take_answer,
					.data = &asking };
	int r = words && commands && asked ? 0 : -ENOMEM;

	if (r >= 0)
		n = group(options, asked);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		add_command(&words[i], options, question, &asked[i], (size_t)(asked[i].hosts - options->hosts.words),
			    seconds);
		commands[i].argv = words[i].items;
		r = words[i].error;
		if (asked[i].n > 1)
			how.each_ns = (uint64_t)(GROUP_TIMES * seconds * 1e9);
	}
	if (r >= 0)
		r = commands_run(commands, n, &how);
	for (size_t i = 0; words && i < n; i++)
		words_done(&words[i]);
	free(words);
	return r < 0 ? r : asking.error;
}

/* ---- HTTP ---- */

int cluster_open_http(const struct cluster_options *options, unsigned timeout_ms, struct http **ret, char **ret_bearer)
{
	const struct http_options how = { .ca_file = options->ca_file,
					  .connect_timeout_ms = MIN(timeout_ms, (unsigned)CONNECT_MS),
					  .timeout_ms = timeout_ms };
	CLEANUP(http_forgetp) char *token = NULL;
	const char *given = getenv("PROBING_AUTH_TOKEN");
	int r;

	if (options->token_file) {
		r = http_read_secret(options->token_file, &token);
		if (r < 0)
			return cli_fail(cli_status(r), "no token can be read from %s: %s", options->token_file,
					strerror(-r));
		given = token;
	}
	if (!given || !given[0])
		return cli_fail(EXIT_USAGE, "hosts with https:// need --token-file FILE, or PROBING_AUTH_TOKEN");
	if (asprintf(ret_bearer, "Authorization: Bearer %s", given) < 0) {
		*ret_bearer = NULL;
		return cli_fail(EXIT_FAILED, "not enough memory");
	}
	r = http_open(&how, ret);
	if (r == -EOPNOTSUPP)
		return cli_fail(EXIT_FAILED, "this probing was built without libcurl, which https:// needs");
	if (r == -ENOPKG)
		return cli_fail(EXIT_FAILED, "libcurl, which https:// needs, cannot be loaded: apt install libcurl4");
	return r < 0 ? cli_fail(EXIT_FAILED, "not enough memory") : EXIT_OK;
}

int cluster_this_host(struct cluster *cluster)
{
	struct cluster_host *host;
	char name[MAX_HOST_BYTES] = "";

	if (gethostname(name, sizeof name - 1) < 0)
		snprintf(name, sizeof name, "localhost");
	return cluster_add_host(cluster, name, NULL, cli_version, &host);
}

int cluster_fail_empty(const struct cluster_options *options)
{
	const struct rank_selection *selection = &options->selection;

	if (selection->job)
		return cli_fail(EXIT_NO_INPUT, "no rank of the job %s runs here", selection->job);
	if (selection->pattern)
		return cli_fail(EXIT_NO_INPUT, "no Python process here has %s in its command line", selection->pattern);
	if (selection->launcher > 0)
		return cli_fail(EXIT_NO_INPUT, "process %d has no Python process below it, or has ended",
				(int)selection->launcher);
	return cli_fail(EXIT_NO_INPUT,
			"no Python process here has a rank (RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK) in its "
			"environment that you may read: name processes by a part of their command line, or with --pid");
}
