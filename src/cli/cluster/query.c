/* SPDX-License-Identifier: MIT */
/* query.c - probing cluster query: one statement over the tables of all ranks.
 *
 * A statement that can be split (src/sql/split.c) is answered by each rank in part, and a second one puts the parts together.
 * Else the rows of each rank come into one database, and the statement runs there. Both ways an average is one of all rows.
 * With --each every rank answers by itself, and only the answers come.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/cluster/cluster.h"
#include "src/sql/sql.h"

enum { OPTION_EACH = 0x200, OPTION_LIMIT, OPTION_NO_HEADER, OPTION_EXACT, OPTION_MEMORY, MAX_WORDS = 12 };

#define MIN_MEMORY (UINT64_C(16) << 20)
#define MAX_MEMORY (UINT64_C(1) << 43)

struct options {
	struct cluster_options cluster;
	struct sql_rules rules;
	bool each, is_exact;
	struct sql_split split; /* of a statement that each rank answers in part */
};

static const struct argp_option option_list[] = {
	CLUSTER_OPTION_ROWS,
	{ "each", OPTION_EACH, NULL, 0, "Run the statement on each rank by itself, and transfer the answers alone", 0 },
	{ "exact", OPTION_EXACT, NULL, 0, "Compute exact percentiles: transfer all values (default: within 1 %)", 0 },
	{ "format", 'f', "FORMAT", 0, "Print as table, box, markdown, csv, json, jsonl or rows (default: table)", 0 },
	{ "no-header", OPTION_NO_HEADER, NULL, 0, "Omit column names (table, box, csv)", 0 },
	{ "limit", OPTION_LIMIT, "ROWS", 0, "Print at most ROWS rows of each result", 0 },
	{ "memory", OPTION_MEMORY, "SIZE", 0,
	  "Cancel the statement if it takes more memory, here or at a rank, or a file of four times this size (default: no limit)",
	  0 },
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'f':
		ask_parse_format(state, argument, &options->rules);
		return 0;
	case OPTION_NO_HEADER:
		options->rules.no_header = true;
		return 0;
	case OPTION_LIMIT:
		options->rules.max_rows = (uint64_t)cli_parse_number(state, argument, "--limit", 1, 1e15);
		return 0;
	case OPTION_MEMORY:
		options->rules.max_memory = cli_parse_bytes(state, argument, "--memory", MIN_MEMORY, MAX_MEMORY);
		return 0;
	case OPTION_EXACT:
		options->is_exact = true;
		return 0;
	case OPTION_EACH:
		options->each = true;
		return 0;
	case ARGP_KEY_ARG:
		if (options->cluster.sql)
			argp_error(state, "unexpected argument %s: give one SQL text in quotes", argument);
		options->cluster.sql = argument;
		return 0;
	case ARGP_KEY_END:
		if (!options->cluster.sql)
			argp_error(state, "which SQL? For example: 'SELECT rank, func, lineno FROM python.backtrace'");
		if (options->cluster.is_local)
			cluster_decode(options->cluster.sql);
		return cluster_options_parse(key, argument, state, &options->cluster);
	default:
		return cluster_options_parse(key, argument, state, &options->cluster);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "SQL",
	.doc = "Query the live tables of all ranks in SQL. Each table has the columns host, rank and local_rank in "
	       "front; the table cluster.nodes lists the ranks. If probing can combine the answers, each rank filters, "
	       "counts and sorts its own rows. Otherwise each rank sends all rows of the tables that the statement "
	       "names.\v"
	       "Examples:\n"
	       "  probing cluster query 'SELECT rank, func, lineno FROM python.backtrace WHERE depth = 0'\n"
	       "  probing cluster query 'SELECT rank, rss_mb FROM memory_usage ORDER BY rss_mb DESC LIMIT 3'\n"
	       "  probing cluster query --each 'SELECT count(*) AS frames FROM python.backtrace'\n"
	       "  probing cluster query --hosts node[01-64] 'SELECT count(*) FROM cluster.nodes'\n"
	       "\n"
	       "A rank or a host that does not answer costs a line on stderr, not the answer.",
};

static const struct options *of(const struct cluster_options *cluster)
{
	return (const struct options *)cluster; /* its first member */
}

/* Put the rows into the database, or keep the answer as it is for another machine. */
static int take_rows(struct cluster *cluster, struct cluster_rank *rank, const struct command *command)
{
	const char *text = command->output ? command->output : "";
	int r;

	r = cluster_add_thread(rank, rank->pid, '?');
	if (r >= 0 && command->complaint && command->complaint[0]) {
		char why[1024];

		command_explain(command, why, sizeof why);
		rank->note = strdup(why);
		r = rank->note ? 0 : -ENOMEM;
	}
	if (r < 0 || cluster->db)
		return r < 0 ? r : cluster_read_rows(cluster, rank, text, command->output_bytes);
	rank->data = strndup(text, strcspn(text, "\n"));
	return rank->data ? 0 : -ENOMEM;
}

static int read_here(const struct cluster_options *options, struct cluster *cluster)
{
	const char *words[MAX_WORDS] = { "cluster", "rows", "--pid", "%p" };
	size_t n = 4;

	if (of(options)->each)
		words[n++] = "--each";
	words[n++] = "--";
	words[n++] = options->sql;
	return gather_ranks(options, words, take_rows, cluster);
}

static int read_hosts(const struct cluster_options *options, struct cluster *cluster)
{
	const char *words[] = { "query", NULL, NULL, NULL };
	char memory[40];
	size_t n = 1;

	if (of(options)->each)
		words[n++] = "--each";
	snprintf(memory, sizeof memory, "--memory=%llu", (unsigned long long)of(options)->rules.max_memory);
	if (of(options)->rules.max_memory > 0)
		words[n++] = memory;
	return gather_hosts(options, words, cluster);
}

/* Let ranks answer in part, if their answers can be put together. */
static int split_statement(struct cluster_options *cluster)
{
	struct options *options = (struct options *)cluster; /* its first member */
	int r;

	if (options->each || cluster->is_local)
		return EXIT_OK;
	r = sql_split(cluster->sql, options->is_exact, &options->split);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "not enough memory");
	if (!options->split.part)
		return EXIT_OK;
	cluster->sql = options->split.part;
	options->each = true;
	return EXIT_OK;
}

/* The readers of ranks inherit the limits of the process. */
static int limit_and_split(struct cluster_options *options)
{
	uint64_t bytes = of(options)->rules.max_memory;
	int r = bytes > 0 ? sql_limit_memory(bytes) : 0;

	return r < 0 ? cli_fail(EXIT_FAILED, "memory cannot be limited: %s", strerror(-r)) : split_statement(options);
}

/* ---- What is missing, on stderr ---- */

/* A sentence on a rank; NULL: all is well. */
static const char *trouble_of(const struct cluster_rank *rank)
{
	return rank->status == RANK_READ ? rank->note : rank->problem;
}

/* Whether two sentences differ at most in numbers, such as PIDs. */
static bool is_alike(const char *a, const char *b)
{
	while (*a && *b) {
		size_t n_a = strspn(a, "0123456789"), n_b = strspn(b, "0123456789");

		if ((n_a > 0) != (n_b > 0) || (n_a == 0 && *a != *b))
			return false;
		a += n_a > 0 ? n_a : 1;
		b += n_b > 0 ? n_b : 1;
	}
	return *a == *b;
}

/* Ranks with the same trouble share a line, in the words of the first. */
static int say_trouble(const struct cluster *cluster, size_t first, bool *is_said)
{
	const char *trouble = trouble_of(&cluster->ranks[first]);
	CLEANUP(freep) uint32_t *alike = calloc(cluster->n_ranks + 1, sizeof *alike);
	CLEANUP(freep) char *ranks = NULL;
	size_t n = 0;

	if (!alike)
		return -ENOMEM;
	for (size_t i = first; i < cluster->n_ranks; i++) {
		const char *other = trouble_of(&cluster->ranks[i]);

		if (!other || !is_alike(other, trouble))
			continue;
		is_said[i] = true;
		alike[n++] = (uint32_t)i;
	}
	ranks = cluster_ranks_text(cluster, alike, n);
	if (!ranks)
		return -ENOMEM;
	cli_say("probing: %s: %s\n", ranks, trouble);
	return 0;
}

static int say_troubles(const struct cluster *cluster)
{
	CLEANUP(freep) bool *is_said = calloc(cluster->n_ranks + 1, sizeof *is_said);
	int r = is_said ? 0 : -ENOMEM;

	for (size_t i = 0; i < cluster->n_hosts; i++)
		if (cluster->hosts[i].problem)
			cli_say("probing: host %s: %s\n", cluster_host_label(&cluster->hosts[i]),
				cluster->hosts[i].problem);
	for (size_t i = 0; r >= 0 && i < cluster->n_ranks; i++)
		if (!is_said[i] && trouble_of(&cluster->ranks[i]))
			r = say_trouble(cluster, i, is_said);
	return r;
}

/* Rows of several jobs look alike: their ranks have the same numbers. */
static int say_jobs(const struct cluster *cluster)
{
	CLEANUP(freep) const char *const *jobs = NULL;
	size_t n = 0;
	int r = cluster_jobs(cluster, &jobs, &n);

	if (r < 0 || n < 2)
		return r;
	cli_say("probing: rows of %zu jobs: ", n);
	for (size_t i = 0; i < n; i++)
		cli_say("%s%s", i > 0 ? ", " : "", jobs[i][0] ? jobs[i] : "one without a name");
	cli_say("; --job NAME selects one\n");
	return 0;
}

/* Whether any rank has answered its part: else there is a table without columns of its own. */
static bool has_answer(const struct cluster *cluster)
{
	sqlite3_stmt *statement = NULL;
	bool has = sqlite3_prepare_v2(cluster->db, "SELECT count(*) > 3 FROM pragma_table_info('answer')", -1,
				      &statement, NULL) == SQLITE_OK &&
		   sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_int(statement, 0) != 0;

	sqlite3_finalize(statement);
	return has;
}

/* Behind the answer: who wants one sentence about a failure takes the first. */
static void say_how(const struct options *options)
{
	const struct sql_split *split = &options->split;

	if (split->part && split->is_approximate)
		cli_say("probing: percentiles are within 1 %%; --exact computes them from all values\n");
	if (!split->part && split->reason && split->reason[0])
		cli_say("probing: all rows of its tables are transferred, since the statement cannot be split: %s\n",
			split->reason);
}

static int show(const struct cluster_options *options, struct cluster *cluster)
{
	const char *whole = of(options)->split.whole;
	int status;

	gather_say_hidden(cluster);
	if (say_jobs(cluster) < 0 || say_troubles(cluster) < 0)
		return cli_fail(EXIT_FAILED, "not enough memory");
	status = gather_status(cluster);
	if (status != EXIT_OK)
		return cli_fail(status, "no rank has answered, for the reasons above");
	if (whole && !has_answer(cluster))
		return cli_fail(EXIT_BAD_DATA, "no rank can answer the statement, for the reasons above");
	status = ask(cluster, options->selection.n_pids == 0,
		     whole               ? whole
		     : of(options)->each ? "SELECT * FROM answer"
					 : options->sql,
		     &of(options)->rules);
	if (status == EXIT_OK)
		say_how(of(options));
	return status;
}

static const struct cluster_question question = {
	.argp = &argp, .has_tables = true, .check = limit_and_split, .here = read_here, .hosts = read_hosts, .show = show
};

static int run_cluster_query(int argc, char **argv)
{
	struct options options = { 0 };
	int status;

	cluster_options_init(&options.cluster);
	status = cluster_run(&question, &options.cluster, argc, argv);
	sql_split_done(&options.split);
	return status;
}

const struct verb cluster_verb_query = {
	.name = "query",
	.aliases = "sql q",
	.summary = "query the live tables of all ranks in SQL",
	.argp = &argp,
	.pages = true,
	.run = run_cluster_query,
};
