/* SPDX-License-Identifier: MIT */
/* nodes.c - cluster.nodes: a row for each rank, for each that is missing, and for each host that did not answer. */
#include <errno.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/cluster/private.h"

static const char make[] =
	"CREATE TABLE cluster.nodes(host TEXT, addr TEXT, rank INTEGER, local_rank INTEGER, world_size "
	"INTEGER, role_name TEXT, job TEXT, pid INTEGER, status TEXT NOT NULL, problem TEXT, "
	"timestamp REAL)";

/* A row of the table; NULL and negative numbers are unknown. */
struct node {
	const char *host, *addr, *role, *job, *status, *problem;
	int64_t rank, local_rank, world_size, pid;
	double seconds;
};

static void bind_number(sqlite3_stmt *statement, int at, int64_t value)
{
	if (value >= 0)
		sqlite3_bind_int64(statement, at, value);
}

static int add(sqlite3_stmt *statement, const struct node *node)
{
	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement);
	sqlite3_bind_text(statement, 1, node->host, -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(statement, 2, node->addr, -1, SQLITE_TRANSIENT);
	bind_number(statement, 3, node->rank);
	bind_number(statement, 4, node->local_rank);
	bind_number(statement, 5, node->world_size);
	sqlite3_bind_text(statement, 6, node->role && node->role[0] ? node->role : NULL, -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(statement, 7, node->job && node->job[0] ? node->job : NULL, -1, SQLITE_TRANSIENT);
	bind_number(statement, 8, node->pid > 0 ? node->pid : -1);
	sqlite3_bind_text(statement, 9, node->status, -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(statement, 10, node->problem, -1, SQLITE_TRANSIENT);
	if (node->seconds > 0)
		sqlite3_bind_double(statement, 11, node->seconds);
	return sqlite3_step(statement) == SQLITE_DONE ? 0 : -ENOMEM;
}

static const char *status_of(const struct cluster_rank *rank)
{
	char state = rank->n_threads > 0 ? rank->threads[0].state : '?';

	if (rank->status != RANK_READ)
		return rank_status_name(rank->status);
	return state == 'T' ? "stopped" : state == 't' ? "traced" : state == 'Z' || state == 'X' ? "ended" : "running";
}

static int add_rank(const struct cluster *cluster, const struct cluster_rank *rank, sqlite3_stmt *statement)
{
	const struct cluster_host *host = &cluster->hosts[rank->host];
	struct node node = { .host = host->name ? host->name : host->address,
			     .addr = host->address,
			     .role = rank->identity.role,
			     .job = rank->identity.job,
			     .status = status_of(rank),
			     .problem = rank->problem,
			     .rank = rank->identity.rank,
			     .local_rank = rank->identity.local_rank,
			     .world_size = rank->identity.world_size,
			     .pid = rank->pid,
			     .seconds = (double)rank->started_ns / 1e9 };

	return add(statement, &node);
}

struct missing {
	sqlite3_stmt *statement;
	size_t n;
};

static int add_missing(void *data, const char *job, int64_t rank, int64_t world_size)
{
	struct node node = {
		.job = job, .status = "missing", .rank = rank, .local_rank = -1, .world_size = world_size, .pid = -1
	};
	struct missing *missing = data;

	return missing->n++ < CLUSTER_MAX_RANKS ? add(missing->statement, &node) : 0;
}

/* Each job may promise CLUSTER_MAX_RANKS; a document that made up as many jobs would fill the memory. */
static int add_all_missing(const struct cluster *cluster, sqlite3_stmt *statement)
{
	CLEANUP(freep) const char *const *jobs = NULL;
	struct missing missing = { statement, 0 };
	size_t n = 0;
	int r = cluster_jobs(cluster, &jobs, &n);

	for (size_t i = 0; r >= 0 && i < n && missing.n < CLUSTER_MAX_RANKS; i++)
		r = cluster_each_missing(cluster, jobs[i], add_missing, &missing);
	return r;
}

static int add_silent_hosts(const struct cluster *cluster, sqlite3_stmt *statement)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < cluster->n_hosts; i++) {
		const struct cluster_host *host = &cluster->hosts[i];
		struct node node = { .host = cluster_host_label(host),
				     .addr = host->address,
				     .status = "unreachable",
				     .problem = host->problem,
				     .rank = -1,
				     .local_rank = -1,
				     .world_size = -1,
				     .pid = -1 };

		if (host->problem)
			r = add(statement, &node);
	}
	return r;
}

int cluster_add_nodes(const struct cluster *cluster, bool expects_all)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	sqlite3 *db = cluster->db;
	int r = 0;

	if (!sqlite3_db_filename(db, "cluster") &&
	    sqlite3_exec(db, "ATTACH ':memory:' AS cluster", NULL, NULL, NULL) != SQLITE_OK)
		return -EINVAL;
	if (sqlite3_exec(db, make, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(db, "INSERT INTO cluster.nodes VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", -1, &statement,
			       NULL) != SQLITE_OK)
		return -EINVAL;
	for (size_t i = 0; r >= 0 && i < cluster->n_ranks; i++)
		r = add_rank(cluster, &cluster->ranks[i], statement);
	if (r >= 0 && expects_all)
		r = add_all_missing(cluster, statement);
	return r < 0 ? r : add_silent_hosts(cluster, statement);
}
