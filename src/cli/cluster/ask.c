/* SPDX-License-Identifier: MIT */
/* ask.c - see cluster.h. */
#include "src/cli/cluster/cluster.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/endpoint.h"

enum { MAX_ERROR = 1024, MAX_NOTE = 256 };

int ask_open(struct cluster *cluster)
{
	if (sqlite3_open(":memory:", &cluster->db) == SQLITE_OK)
		return EXIT_OK;
	return cli_fail(EXIT_FAILED, "not enough memory");
}

void ask_close(struct cluster *cluster)
{
	sqlite3 *db = cluster->db;

	cluster_done(cluster);
	sqlite3_close(db);
}

struct asking {
	const struct cluster *cluster;
	const char *sql;
	struct sql_session session;
	char *error, *note;
};

static int put(const void *data, FILE *out)
{
	const struct asking *asking = data;

	return sql_ask(&asking->session, asking->sql, out, asking->error, MAX_ERROR, asking->note, MAX_NOTE);
}

/* The first line is the message; show the position below only on a terminal. */
static int fail(const void *data, int error)
{
	const struct asking *asking = data;

	if (!isatty(STDERR_FILENO))
		asking->error[strcspn(asking->error, "\n")] = '\0';
	return cli_fail_lines(error == -EINVAL || error == -E2BIG ? EXIT_BAD_DATA : EXIT_FAILED, asking->error);
}

int ask(struct cluster *cluster, bool expects_all, const char *sql, const struct sql_rules *rules)
{
	char error[MAX_ERROR] = "", note[MAX_NOTE] = "";
	struct asking asking = { .cluster = cluster,
				 .sql = sql,
				 .session = { .db = cluster->db, .rules = *rules },
				 .error = error,
				 .note = note };
	int r = cluster_add_nodes(cluster, expects_all), status;

	if (r >= 0)
		r = sql_attach(cluster->db);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "the ranks cannot be queried: %s",
				r == -ENOMEM ? "not enough memory" : sqlite3_errmsg(cluster->db));
	sqlite3_set_authorizer(cluster->db, endpoint_forbid_files, NULL);
	if (sqlite3_exec(cluster->db, "PRAGMA query_only = ON", NULL, NULL, NULL) != SQLITE_OK)
		return cli_fail(EXIT_FAILED, "not enough memory");
	asking.session.rules.columns = cli_columns(STDOUT_FILENO);
	status = output_write("-", 0, put, fail, &asking);
	if (status == EXIT_OK && note[0])
		cli_say("%s\n", note);
	return status;
}

void ask_parse_format(struct argp_state *state, const char *name, struct sql_rules *rules)
{
	char names[128];

	if (sql_format_parse(name, &rules->format) >= 0) {
		if (rules->format == SQL_ARROW && isatty(STDOUT_FILENO))
			argp_error(state, "arrow is a binary format: send the output to a file or a program");
		return;
	}
	sql_format_list(names, sizeof names);
	argp_error(state, "the format is %s, not %s", names, name);
}

static int put_document(const void *data, FILE *out)
{
	return cluster_write(data, cli_version, NULL, out);
}

static int fail_document(const void *data, int error)
{
	(void)data;
	return cli_fail(EXIT_FAILED, "the answer cannot be written: %s", strerror(-error));
}

int ask_write_document(const struct cluster *cluster)
{
	return output_write("-", 0, put_document, fail_document, cluster);
}
