/* SPDX-License-Identifier: MIT */
/* process_ranks.c - see processes.h. */
#include "src/store/processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/store/store.h"

struct process_ranks {
	struct id_map by_pid; /* PID + 1: index */
	struct process_rank *items;
	size_t n, allocated;
	char **hosts; /* each once */
	size_t n_hosts, hosts_allocated;
};

void process_ranks_free(struct process_ranks *ranks)
{
	if (!ranks)
		return;
	for (size_t i = 0; i < ranks->n_hosts; i++)
		free(ranks->hosts[i]);
	id_map_done(&ranks->by_pid);
	free(ranks->hosts);
	free(ranks->items);
	free(ranks);
}

DEFINE_CLEANUP(struct process_ranks *, process_ranks_free)

/* Processes of one host follow each other, so that only the last one is compared. */
static int add_host(struct process_ranks *ranks, const char *host, const char **ret)
{
	int r;

	*ret = NULL;
	if (!host)
		return 0;
	if (ranks->n_hosts == 0 || strcmp(ranks->hosts[ranks->n_hosts - 1], host) != 0) {
		r = grow(&ranks->hosts, ranks->n_hosts, &ranks->hosts_allocated, sizeof *ranks->hosts);
		if (r < 0)
			return r;
		ranks->hosts[ranks->n_hosts] = strdup(host);
		if (!ranks->hosts[ranks->n_hosts])
			return -ENOMEM;
		ranks->n_hosts++;
	}
	*ret = ranks->hosts[ranks->n_hosts - 1];
	return 0;
}

static int64_t number_at(sqlite3_stmt *row, int column)
{
	return sqlite3_column_type(row, column) == SQLITE_INTEGER ? sqlite3_column_int64(row, column) : -1;
}

static int add(struct process_ranks *ranks, sqlite3_stmt *row)
{
	int64_t pid = sqlite3_column_int64(row, 0);
	struct process_rank *item;
	int r;

	if (pid < 0)
		return 0;
	r = grow(&ranks->items, ranks->n, &ranks->allocated, sizeof *ranks->items);
	if (r < 0)
		return r;
	item = &ranks->items[ranks->n];
	r = add_host(ranks, (const char *)sqlite3_column_text(row, 1), &item->host);
	if (r < 0)
		return r;
	item->rank = number_at(row, 2);
	item->local_rank = number_at(row, 3);
	return id_map_add(&ranks->by_pid, (uint64_t)pid + 1, (uint32_t)ranks->n++);
}

int process_ranks_load(sqlite3 *db, struct process_ranks **ret)
{
	static const char now_sql[] = "SELECT pid, host, rank, local_rank FROM main.process ORDER BY host, pid";
	static const char old_sql[] = "SELECT pid, (SELECT host FROM main.run LIMIT 1), NULL, NULL FROM main.process";
	CLEANUP(process_ranks_freep) struct process_ranks *ranks = calloc(1, sizeof *ranks);
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *rows = NULL;
	int code, r = 0;

	if (!ranks)
		return -ENOMEM;
	code = sqlite3_prepare_v2(db, store_has_ranks(db) ? now_sql : old_sql, -1, &rows, NULL);
	if (code != SQLITE_OK)
		return store_errno(db, code);
	while (r >= 0 && (code = sqlite3_step(rows)) == SQLITE_ROW)
		r = add(ranks, rows);
	if (r >= 0)
		r = store_errno(db, code);
	if (r >= 0)
		*ret = TAKE(ranks);
	return r;
}

const struct process_rank *process_ranks_find(const struct process_ranks *ranks, int64_t pid)
{
	const struct id_slot *slot = id_map_find(&ranks->by_pid, (uint64_t)pid + 1);

	return slot ? &ranks->items[slot->id] : NULL;
}
