/* SPDX-License-Identifier: MIT */
/* verb_ship.c - recordings into ClickHouse, exactly once. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/fleet_secrets.h"
#include "src/cli/progress.h"
#include "src/cli/ship_otlp.h"
#include "src/columns/columns.h"
#include "src/fleet/fleet.h"
#include "src/http/http.h"

enum {
	OPTION_TO = 0x200,
	OPTION_JOB,
	OPTION_RANK,
	OPTION_RAW,
	OPTION_EVERY,
	OPTION_ROWS,
	OPTION_RETRY_REFUSED,
	OPTION_STATE,
	OPTION_PASSWORD_FILE,
	OPTION_CA_FILE,
	OPTION_CERT,
	OPTION_KEY,
	OPTION_INIT,
	OPTION_STATUS,
	OPTION_VERIFY,
	OPTION_DROP_OLD,
	OPTION_CLUSTER,
	OPTION_REPLICATED,
	OPTION_KEEP,
	OPTION_KEEP_TOTALS,
	OPTION_PRINT,
	OPTION_WRITER,
	OPTION_READER,
	MAX_FILES = 1024,
	MAX_KEEP_DAYS = 36500,
	DEFAULT_KEEP_DAYS = 30,
	DEFAULT_KEEP_TOTALS_DAYS = 365,
};

enum action { SHIP, INIT, STATUS, VERIFY, DROP_OLD };

struct options {
	const char *urls[FLEET_MAX_URLS];
	const char *files[MAX_FILES];
	size_t n_files;
	struct fleet_options ship;
	struct fleet_init init;
	enum action action;
	const char *password_file, *writer_file, *reader_file;
	char *password, *writer_password, *reader_password;
	struct fleet_sink sink;
	struct ship_otlp *otlp; /* NULL: ClickHouse */
	bool is_quiet;
};

static const struct argp_option option_list[] = {
	{ "to", OPTION_TO, "URL", 0,
	  "Send to http[s]://USER@HOST[:PORT]/DATABASE; one for each shard (repeatable); or to a receiver of OpenTelemetry's "
	  "profiles, otlp+http[s]://HOST[:PORT][/PATH]",
	  0 },
	{ "job", OPTION_JOB, "NAME", 0,
	  "Name of the job (default: $SLURM_JOB_ID, else the host's name); of OTLP the service.name (default: "
	  "$OTEL_SERVICE_NAME, else the program's)",
	  0 },
	{ "rank", OPTION_RANK, "N", 0, "Rank of processes whose environment names none (default: $RANK, else -1)", 0 },
	{ "raw", OPTION_RAW, "yes|no|TIME", 0,
	  "Send the samples, too, not only totals of each minute; or those younger than TIME (default: yes)", 0 },
	{ "every", OPTION_EVERY, "TIME", 0, "Send samples of a running recording after at most TIME (default: 60s)",
	  0 },
	{ "rows", OPTION_ROWS, "N", 0, "Send at most N samples at a time (default: 65536)", 0 },
	{ "retry-refused", OPTION_RETRY_REFUSED, NULL, 0,
	  "Send samples again that a receiver of OTLP has refused; shipments that it has taken in part arrive twice",
	  0 },
	{ "state", OPTION_STATE, "FOLDER", 0, "Remember what was sent in FOLDER (default: ~/.local/state/probing/ship)",
	  0 },
	{ "quiet", 'q', NULL, 0, "Print errors only", 0 },
	{ NULL, 0, NULL, 0, "Connection:", 1 },
	{ "password-file", OPTION_PASSWORD_FILE, "FILE", 0,
	  "Read the password from the first line of FILE (default: $" FLEET_PASSWORD_FILE_VARIABLE
	  ", else the password in $" FLEET_PASSWORD_VARIABLE ")",
	  1 },
	{ "ca-file", OPTION_CA_FILE, "FILE", 0,
	  "Trust the authorities in FILE (PEM; default: $" FLEET_CA_FILE_VARIABLE ", else the system's)", 1 },
	{ "cert", OPTION_CERT, "FILE", 0, "Present the certificate in FILE (PEM)", 1 },
	{ "key", OPTION_KEY, "FILE", 0, "Use the key in FILE with it (default: the one in the certificate's file)", 1 },
	{ NULL, 0, NULL, 0, "Instead of sending:", 2 },
	{ "init", OPTION_INIT, NULL, 0, "Create or upgrade the tables on each server; shippers may run meanwhile", 2 },
	{ "status", OPTION_STATUS, NULL, 0, "Print how much of each recording was sent", 2 },
	{ "verify", OPTION_VERIFY, NULL, 0, "Compare the numbers of samples here and on the server", 2 },
	{ "drop-old", OPTION_DROP_OLD, NULL, 0,
	  "Remove days older than --keep-days; newer servers do that by themselves", 2 },
	{ NULL, 0, NULL, 0, "Of --init:", 3 },
	{ "keep-days", OPTION_KEEP, "N", 0, "Keep samples for N days; 0: for ever (default: 30)", 3 },
	{ "keep-totals-days", OPTION_KEEP_TOTALS, "N", 0, "Keep totals, stacks and names for N days (default: 365)",
	  3 },
	{ "cluster", OPTION_CLUSTER, "NAME", 0,
	  "Read from all shards of NAME in remote_servers (default: a single server)", 3 },
	{ "replicated", OPTION_REPLICATED, NULL, 0, "Replicate tables by the server's macros {shard} and {replica}",
	  3 },
	{ "writer-password-file", OPTION_WRITER, "FILE", 0,
	  "With --reader-password-file: create DATABASE_writer, who can only insert", 3 },
	{ "reader-password-file", OPTION_READER, "FILE", 0, "and DATABASE_reader, who can only read", 3 },
	{ "print", OPTION_PRINT, NULL, 0, "Print the statements, and change nothing", 3 },
	{ 0 },
};

/* ---- Options ---- */

static void take_action(struct argp_state *state, struct options *options, enum action action)
{
	if (options->action != SHIP)
		argp_error(state, "give one of --init, --status, --verify and --drop-old");
	options->action = action;
}

static double parse_raw(struct argp_state *state, const char *argument)
{
	if (strcmp(argument, "yes") == 0)
		return INFINITY;
	if (strcmp(argument, "no") == 0)
		return -INFINITY;
	return cli_parse_duration(state, argument, "--raw", 1, 1e9);
}

static void take_url(struct argp_state *state, struct options *options, const char *url)
{
	if (options->ship.access.n_urls == FLEET_MAX_URLS)
		argp_error(state, "at most %d servers", FLEET_MAX_URLS);
	options->urls[options->ship.access.n_urls++] = url;
}

static void check(struct argp_state *state, const struct options *options)
{
	bool takes_files = options->action == SHIP || options->action == STATUS || options->action == VERIFY;

	if (options->ship.access.n_urls == 0)
		argp_error(state, "--to is missing: probing ship FILE --to https://USER@HOST/DATABASE");
	for (size_t i = 0; i < options->ship.access.n_urls; i++) {
		if (!ship_otlp_is_one(options->urls[i]))
			continue;
		if (options->ship.access.n_urls > 1)
			argp_error(state, "one --to with otlp+...: each receiver has a ship of its own");
		if (options->action != SHIP && options->action != STATUS)
			argp_error(
				state,
				"a receiver of OTLP has no tables, and cannot be asked what it has: only --status is "
				"for it");
		if (options->ship.raw_s < (double)INFINITY)
			argp_error(state, "--raw is for ClickHouse: OTLP has single samples only");
	}
	if (options->ship.retries_refused && !ship_otlp_is_one(options->urls[0]))
		argp_error(state, "--retry-refused is for OTLP: ClickHouse refuses no single shipments");
	if (!takes_files && options->n_files > 0)
		argp_error(state, "--init and --drop-old take no recording");
	if (!options->writer_file != !options->reader_file)
		argp_error(state, "--writer-password-file and --reader-password-file belong together");
}

static error_t parse_connection(int key, char *argument, struct options *options)
{
	switch (key) {
	case OPTION_PASSWORD_FILE:
		options->password_file = argument;
		return 0;
	case OPTION_CA_FILE:
		options->ship.access.ca_file = argument;
		return 0;
	case OPTION_CERT:
		options->ship.access.cert_file = argument;
		return 0;
	case OPTION_KEY:
		options->ship.access.key_file = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_action(int key, struct argp_state *state, struct options *options)
{
	switch (key) {
	case OPTION_INIT:
		take_action(state, options, INIT);
		return 0;
	case OPTION_STATUS:
		take_action(state, options, STATUS);
		return 0;
	case OPTION_VERIFY:
		take_action(state, options, VERIFY);
		return 0;
	case OPTION_DROP_OLD:
		take_action(state, options, DROP_OLD);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_init(int key, char *argument, struct argp_state *state, struct options *options)
{
	switch (key) {
	case OPTION_CLUSTER:
		if (!fleet_is_name(argument))
			argp_error(state, "--cluster: %s may contain only letters, digits and _", argument);
		options->init.cluster = argument;
		return 0;
	case OPTION_REPLICATED:
		options->init.is_replicated = true;
		return 0;
	case OPTION_KEEP:
		options->init.keep_days = (unsigned)cli_parse_number(state, argument, "--keep-days", 0, MAX_KEEP_DAYS);
		return 0;
	case OPTION_KEEP_TOTALS:
		options->init.keep_totals_days = (unsigned)cli_parse_number(state, argument, "--keep-totals-days", 0,
									    MAX_KEEP_DAYS);
		return 0;
	case OPTION_WRITER:
		options->writer_file = argument;
		return 0;
	case OPTION_READER:
		options->reader_file = argument;
		return 0;
	case OPTION_PRINT:
		options->init.is_dry = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_ship(int key, char *argument, struct argp_state *state, struct options *options)
{
	switch (key) {
	case OPTION_TO:
		take_url(state, options, argument);
		return 0;
	case OPTION_JOB:
		options->ship.job = argument;
		return 0;
	case OPTION_RANK:
		options->ship.rank = (int)cli_parse_number(state, argument, "--rank", 0, INT32_MAX);
		return 0;
	case OPTION_RAW:
		options->ship.raw_s = parse_raw(state, argument);
		return 0;
	case OPTION_EVERY:
		options->ship.every_s = cli_parse_duration(state, argument, "--every", 0.1, 86400);
		return 0;
	case OPTION_ROWS:
		options->ship.max_rows = (unsigned)cli_parse_number(state, argument, "--rows", 1, FLEET_MAX_ROWS);
		return 0;
	case OPTION_RETRY_REFUSED:
		options->ship.retries_refused = true;
		return 0;
	case OPTION_STATE:
		options->ship.state = argument;
		return 0;
	case 'q':
		options->is_quiet = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (options->n_files == MAX_FILES)
			argp_error(state, "at most %d recordings", MAX_FILES);
		options->files[options->n_files++] = argument;
		return 0;
	case ARGP_KEY_END:
		check(state, options);
		return 0;
	default:
		if (parse_ship(key, argument, state, options) == 0 || parse_connection(key, argument, options) == 0 ||
		    parse_action(key, state, options) == 0)
			return 0;
		return parse_init(key, argument, state, options);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[FILE...]",
	.doc = "Send recordings (default: probing.db) to ClickHouse, each sample exactly once. ship follows recordings "
	       "that are still written to their end. When the server is away or overloaded, samples wait in the "
	       "recording; after a kill the next ship continues. A receiver of OTLP (Collector, Pyroscope, Elastic) "
	       "gets each sample at least once, because ship cannot ask it for the samples that it has.\vExamples:\n"
	       "  probing ship --init --to https://admin@ch.example/prod --keep-days 30\n"
	       "  probing ship *.db --to https://prod_writer@ch.example/prod --job llm-7 --password-file ~/.ch\n"
	       "  probing ship train.db --to http://127.0.0.1/prod --verify\n"
	       "  probing ship train.db --to otlp+https://collector.example:4318 --job llm-7\n\n"
	       "Passwords come from a file or from $" FLEET_PASSWORD_VARIABLE
	       ", never from the command line. docs/fleet.md has the "
	       "tables, sizes, and what is sent. Exit status: 65 the server's rows differ, or FILE is damaged; 66 no such file, or "
	       "no tables; 73 a receiver of OTLP refused samples; 74 a plan cannot be written; 77 user or password refused.",
};

/* ---- Passwords, names ---- */

static int read_passwords(struct options *options)
{
	int status = fleet_read_password(options->password_file, &options->password);

	options->ship.access.ca_file = fleet_ca_file(options->ship.access.ca_file);
	if (status == EXIT_OK && options->writer_file)
		status = fleet_read_password(options->writer_file, &options->writer_password);
	if (status == EXIT_OK && options->reader_file)
		status = fleet_read_password(options->reader_file, &options->reader_password);
	options->ship.access.password = options->password;
	options->init.writer_password = options->writer_password;
	options->init.reader_password = options->reader_password;
	return status;
}

/* A password over plain HTTP is a user's decision, but not one to be taken unaware. */
static void warn_of_plain_http(const struct options *options)
{
	for (size_t i = 0; i < options->ship.access.n_urls; i++) {
		struct http_place place;

		if (options->password && http_place_parse(options->urls[i], &place) == 0 && !place.is_https &&
		    !http_place_is_local(&place))
			cli_say("probing: %s gets the password and all samples unencrypted: use https://\n",
				place.host);
	}
}

static const char *default_job(char *host, size_t n)
{
	const char *job = getenv("SLURM_JOB_ID");

	if (job && job[0])
		return job;
	if (gethostname(host, n) < 0)
		return "";
	host[n - 1] = '\0';
	return host;
}

static int default_rank(void)
{
	const char *text = getenv("RANK");
	char *end;
	long rank = text ? strtol(text, &end, 10) : -1;

	return text && text[0] && *end == '\0' && rank >= 0 && rank <= INT32_MAX ? (int)rank : -1;
}

/* ---- Actions ---- */

static volatile sig_atomic_t is_ended;

static void end(int signal)
{
	(void)signal;
	is_ended = 1;
}

static struct {
	struct progress progress; /* without signals: those above are the verb's */
	uint64_t n_sent, n_all;
} shown;

static void show(void *data, uint64_t n_sent, uint64_t n_all)
{
	(void)data;
	shown.n_sent = n_sent;
	shown.n_all = n_all;
	progress_show(&shown.progress, "samples", n_sent, n_all);
}

/* A request may last: the line stays up to date meanwhile. */
static bool keep_going(void *data)
{
	if (shown.n_all > 0)
		show(data, shown.n_sent, shown.n_all);
	return !is_ended;
}

/* Without SA_RESTART: a wait ends at once. A second signal kills. */
static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = end, .sa_flags = (int)SA_RESETHAND };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void tell(void *data, const char *sentence)
{
	const struct options *options = data;

	progress_clear(&shown.progress);
	if (!options->is_quiet)
		cli_say("probing: %s\n", sentence);
}

static int status_of(int error)
{
	switch (error) {
	case -EBADE:
	case -EPROTO:
		return EXIT_BAD_DATA;
	case -EKEYREJECTED:
		return EXIT_NOT_PERMITTED;
	case -EREMOTEIO:
	case -ECOMM:
		return EXIT_NO_OUTPUT;
	case -EINVAL:
	case -ENAMETOOLONG:
		return EXIT_USAGE;
	default:
		return cli_status(error);
	}
}

static int ship(struct options *options)
{
	static const char partly[] = "; the receiver has taken a part of some and does not say which, so that part "
				     "arrives twice then";
	struct fleet_result result;
	int r;

	catch_signals();
	progress_begin_shown(&shown.progress, options->is_quiet);
	options->ship.show = shown.progress.on ? show : NULL;
	r = fleet_ship(options->files, options->n_files, &options->ship, &result);
	progress_clear(&shown.progress);
	if (!options->is_quiet && (r == 0 || r == -ECANCELED))
		cli_say("probing: %" PRIu64 " samples sent in %" PRIu64 " shipments, %" PRIu64 " bytes%s\n",
			result.n_samples, result.n_shipments, result.n_bytes,
			r == 0 ? "" : "; stopped: the next ship continues from there");
	if (r == -ECANCELED)
		return 128 + SIGTERM;
	if (r == 0 && result.n_refused > 0)
		return cli_fail(EXIT_NO_OUTPUT,
				"%" PRIu64
				" samples were refused, and are still in the recording: when the receiver takes "
				"them, send them with --retry-refused%s",
				result.n_refused, result.n_partly > 0 ? partly : "");
	return r < 0 ? cli_fail(status_of(r), "%s", result.error) : EXIT_OK;
}

static void print_statement(void *data, const char *statement)
{
	(void)data;
	printf("%s;\n", statement);
}

static int init(struct options *options)
{
	char error[FLEET_MAX_SENTENCE];
	int r;

	options->init.access = options->ship.access;
	options->init.print = print_statement;
	if (!options->init.is_dry && options->is_quiet)
		options->init.print = NULL;
	r = fleet_init(&options->init, error);
	if (fflush(stdout) != 0)
		return cli_fail_write("-", -errno);
	return r < 0 ? cli_fail(status_of(r), "%s", error) : EXIT_OK;
}

static int print_status(const struct options *options)
{
	static const struct column list[] = {
		{ "run", 16, 0, true },       { "recorded", 12, 2, false }, { "sent", 12, 2, false },
		{ "shipments", 9, 2, false }, { "waiting", 7, 2, false },   { "dropped", 9, 2, false },
		{ "refused", 9, 2, false },   { "recording", 0, 2, true },
	};
	struct columns columns = { .list = list, .n = N_ELEMENTS(list), .out = stdout };
	char error[FLEET_MAX_SENTENCE];

	columns_put_head(&columns);
	for (size_t i = 0; i < options->n_files; i++) {
		struct fleet_status status;
		int r = fleet_status(options->files[i], &options->ship, &status, error);

		if (r < 0)
			return cli_fail(status_of(r), "%s", error);
		columns_printf(&columns, "%016" PRIx64, status.run);
		columns_printf(&columns, "%" PRId64, status.n_recorded);
		columns_printf(&columns, "%" PRIu64, status.n_samples);
		columns_printf(&columns, "%" PRIu64, status.n_done);
		columns_printf(&columns, "%" PRIu64, status.n_open);
		columns_printf(&columns, "%" PRIu64, status.n_dropped);
		columns_printf(&columns, "%" PRIu64, status.n_refused);
		columns_put(&columns, options->files[i]);
		columns_end(&columns);
	}
	return fflush(stdout) == 0 ? EXIT_OK : cli_fail_write("-", -errno);
}

static void print_wrong(void *data, uint32_t block, uint64_t there, uint64_t here)
{
	printf("%s: shipment %u: %" PRIu64 " samples there, %" PRIu64 " here\n", (const char *)data, block, there,
	       here);
}

static int verify(const struct options *options)
{
	char error[FLEET_MAX_SENTENCE];
	int status = EXIT_OK;

	for (size_t i = 0; i < options->n_files; i++) {
		struct fleet_status found;
		int r = fleet_verify(options->files[i], &options->ship, print_wrong, (void *)options->files[i], &found,
				     error);

		if (r < 0)
			return cli_fail(status_of(r), "%s", error);
		printf("%s: %" PRIu64 " shipments, %" PRIu64 " samples: %" PRIu64 " lost, %" PRIu64 " doubled; %" PRId64
		       " not sent yet\n",
		       options->files[i], found.n_done, found.n_samples, found.n_lost, found.n_doubled,
		       found.n_recorded - found.n_planned);
		if (found.n_wrong > 0)
			status = EXIT_BAD_DATA;
	}
	return fflush(stdout) == 0 ? status : cli_fail_write("-", -errno);
}

static int drop_old(const struct options *options)
{
	char error[FLEET_MAX_SENTENCE];
	int r = fleet_drop_before(&options->ship.access, options->init.keep_days, options->init.keep_totals_days,
				  error);

	return r < 0 ? cli_fail(status_of(r), "%s", error) : EXIT_OK;
}

static int act(struct options *options)
{
	switch (options->action) {
	case INIT:
		return init(options);
	case STATUS:
		return print_status(options);
	case VERIFY:
		return verify(options);
	case DROP_OLD:
		return drop_old(options);
	default:
		return ship(options);
	}
}

static int run_ship(int argc, char **argv)
{
	struct options options = {
		.ship = { .raw_s = INFINITY, .every_s = 60, .rank = default_rank() },
		.init = { .keep_days = DEFAULT_KEEP_DAYS, .keep_totals_days = DEFAULT_KEEP_TOTALS_DAYS },
	};
	const char *service;
	char host[256];
	int status;

	cli_parse(&argp, argc, argv, 0, &options);
	options.is_quiet |= cli_is_quiet();
	service = options.ship.job ?: getenv("OTEL_SERVICE_NAME");
	if (!options.ship.job)
		options.ship.job = default_job(host, sizeof host);
	if (options.n_files == 0)
		options.files[options.n_files++] = cli_default_recording();
	options.ship.access.urls = options.urls;
	options.ship.access.keep_going = keep_going;
	options.ship.say = tell;
	options.ship.say_data = &options;
	if (ship_otlp_is_one(options.urls[0])) {
		status = ship_otlp_open(options.urls[0], &options.ship.access, service && *service ? service : NULL,
					&options.sink, &options.otlp);
		options.ship.sink = &options.sink;
	} else {
		status = read_passwords(&options);
		if (status == EXIT_OK)
			warn_of_plain_http(&options);
	}
	if (status == EXIT_OK)
		status = act(&options);
	ship_otlp_close(options.otlp);
	http_forget(options.password);
	http_forget(options.writer_password);
	http_forget(options.reader_password);
	return status;
}

const struct verb verb_ship = {
	.name = "ship",
	.summary = "send recordings of many hosts to ClickHouse, or as OTLP",
	.argp = &argp,
	.run = run_ship,
};
