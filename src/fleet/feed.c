/* SPDX-License-Identifier: MIT */
/* feed.c - see feed.h. */
#include "src/fleet/feed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_ENVIRONMENT = 1 << 20 };

static const char run_sql[] = "SELECT host, command, mode, unit, event, stack_source, python, kernel, probing, hz, "
			      "started, ended, cpus FROM main.run ORDER BY run";

/* ---- The run ---- */

char *feed_copy_text(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);

	return strdup(text ? text : "");
}

static void run_done(struct feed_run *run)
{
	char *texts[] = { run->host,   run->command, run->mode,    run->unit,        run->event,
			  run->python, run->kernel,  run->probing, run->stack_source };

	for (size_t i = 0; i < N_ELEMENTS(texts); i++)
		free(texts[i]);
	*run = (struct feed_run){ 0 };
}

static int read_run(sqlite3_stmt *row, struct feed_run *run)
{
	run->host = feed_copy_text(row, 0);
	run->command = feed_copy_text(row, 1);
	run->mode = feed_copy_text(row, 2);
	run->unit = feed_copy_text(row, 3);
	run->event = feed_copy_text(row, 4);
	run->stack_source = feed_copy_text(row, 5);
	run->python = feed_copy_text(row, 6);
	run->kernel = feed_copy_text(row, 7);
	run->probing = feed_copy_text(row, 8);
	run->hz = sqlite3_column_double(row, 9);
	run->started = sqlite3_column_double(row, 10);
	run->ended = sqlite3_column_double(row, 11);
	run->cpus = (unsigned)sqlite3_column_int(row, 12);
	return run->host && run->command && run->mode && run->unit && run->event && run->stack_source && run->python &&
			       run->kernel && run->probing
		       ? 0
		       : -ENOMEM;
}

/* What no two recordings share: host, command, and the beginning to a quarter of a microsecond. */
static void add_identity(struct fleet_bytes *bytes, const struct feed_run *run, int *r)
{
	double started = run->started;

	if (*r == 0)
		*r = fleet_append(bytes, run->host, strlen(run->host) + 1);
	if (*r == 0)
		*r = fleet_append(bytes, run->command, strlen(run->command) + 1);
	if (*r == 0)
		*r = fleet_append(bytes, &started, sizeof started);
}

/* A merged recording has several: the first one describes it, all identify it. */
static int load_run(struct feed *feed)
{
	struct fleet_bytes identity = { 0 };
	struct feed_run run = { 0 }, other = { 0 };
	sqlite3_stmt *rows = NULL;
	int code = sqlite3_prepare_v2(feed->db, run_sql, -1, &rows, NULL), r = 0;
	bool is_first = true;

	while (code == SQLITE_OK && r == 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		r = read_run(rows, is_first ? &run : &other);
		add_identity(&identity, is_first ? &run : &other, &r);
		run_done(&other);
		is_first = false;
		code = SQLITE_OK;
	}
	sqlite3_finalize(rows);
	if (r == 0 && code != SQLITE_DONE)
		r = store_errno(feed->db, code);
	if (r == 0 && is_first)
		r = -EMEDIUMTYPE;
	if (r == 0) {
		run.hash = fleet_hash(identity.at, identity.n);
		run.run = fleet_id(&run.hash);
		run_done(&feed->run);
		feed->run = run;
	} else {
		run_done(&run);
	}
	free(identity.at);
	return r;
}

/* ---- Passes ---- */

/* Before the file is opened: one that is replaced in between is taken for another the next time, too. */
static bool is_other_file(struct feed *feed)
{
	struct stat st;
	bool is_other = stat(feed->path, &st) == 0 && (st.st_dev != feed->device || st.st_ino != feed->inode);

	if (is_other) {
		feed->device = st.st_dev;
		feed->inode = st.st_ino;
	}
	return is_other;
}

int feed_begin(struct feed *feed)
{
	bool is_other = is_other_file(feed);
	int r;

	feed->n_rows = 0;
	r = store_open_reader(feed->path, &feed->db);

	if (r < 0)
		return r;
	if (is_other)
		feed->n_ranks = 0;
	r = load_run(feed);
	if (r == 0)
		r = feed_begin_stacks(feed, is_other);
	/* Fails where older recordings lack the column. */
	sqlite3_prepare_v2(feed->db, "SELECT rank FROM main.process WHERE pid = ?1 AND rank >= 0", -1, &feed->rank,
			   NULL);
	if (r < 0)
		feed_end(feed);
	return r;
}

void feed_end(struct feed *feed)
{
	feed_end_stacks(feed);
	sqlite3_finalize(TAKE(feed->rank));
	sqlite3_close(TAKE(feed->db));
}

int feed_hold(struct feed *feed)
{
	return store_errno(feed->db, sqlite3_exec(feed->db, "BEGIN", NULL, NULL, NULL));
}

/* Nothing was written, so this cannot fail. */
void feed_release(struct feed *feed)
{
	(void)sqlite3_exec(feed->db, "COMMIT", NULL, NULL, NULL);
}

void feed_done(struct feed *feed)
{
	feed_end(feed);
	run_done(&feed->run);
	feed_stacks_done(feed);
	free(feed->ranks);
	free(feed->rows);
	*feed = (struct feed){ 0 };
}

/* ---- Samples ---- */

int feed_newest(struct feed *feed, int64_t *ret)
{
	sqlite3_stmt *row = NULL;
	int code = sqlite3_prepare_v2(feed->db,
				      "SELECT first + samples - 1 FROM main.sample_block ORDER BY first DESC LIMIT 1",
				      -1, &row, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_step(row);
	if (code == SQLITE_ROW || code == SQLITE_DONE)
		*ret = code == SQLITE_ROW ? sqlite3_column_int64(row, 0) : 0;
	sqlite3_finalize(row);
	return code == SQLITE_ROW || code == SQLITE_DONE ? 0
	       : code == SQLITE_ERROR                    ? -EMEDIUMTYPE
							 : store_errno(feed->db, code);
}

struct loading {
	struct feed *feed;
	uint64_t horizon_ns;
	size_t max;
};

static int take_row(void *data, int64_t number, const struct sample_row *row)
{
	struct loading *loading = data;
	struct feed *feed = loading->feed;
	int r;

	if (row->time_ns > loading->horizon_ns || feed->n_rows == loading->max)
		return 1;
	r = grow(&feed->rows, feed->n_rows, &feed->rows_room, sizeof *feed->rows);
	if (r < 0)
		return r;
	feed->rows[feed->n_rows++] = *row;
	feed->first = feed->n_rows == 1 ? number : feed->first;
	feed->last = number;
	return 0;
}

int feed_load(struct feed *feed, int64_t first, int64_t last, uint64_t horizon_ns, size_t max)
{
	struct loading loading = { feed, horizon_ns, max };
	int r;

	if (feed->n_rows > 0 && first == feed->from && last == feed->last && feed->n_rows <= max &&
	    horizon_ns == UINT64_MAX)
		return 0; /* a range that has just been planned */
	feed->n_rows = 0;
	feed->first = feed->last = 0;
	feed->from = first;
	r = store_each_sample(feed->db, first, last, take_row, &loading);
	return r < 0 ? r : 0;
}

/* ---- Ranks ---- */

/* A number that one of the launchers' variables has; -1: none. */
static int32_t rank_of(const char *environment, size_t n)
{
	static const char *const names[] = { "RANK=", "OMPI_COMM_WORLD_RANK=", "PMI_RANK=", "SLURM_PROCID=" };
	const char *end = environment + n;

	for (size_t i = 0; i < N_ELEMENTS(names); i++)
		for (const char *at = environment; at < end; at += strlen(at) + 1) {
			char *rest;
			long rank;

			if (strncmp(at, names[i], strlen(names[i])) != 0)
				continue;
			rank = strtol(at + strlen(names[i]), &rest, 10);
			if (*rest == '\0' && rank >= 0 && rank <= INT32_MAX)
				return (int32_t)rank;
		}
	return -1;
}

static int32_t ask_process(const struct feed *feed, uint32_t pid)
{
	CLEANUP(freep) char *environment = NULL;
	char path[64];
	size_t n;

	if (!feed->is_live) /* its number may be another's by now */
		return -1;
	snprintf(path, sizeof path, "/proc/%u/environ", pid);
	return read_file(path, MAX_ENVIRONMENT, &environment, &n) < 0 ? -1 : rank_of(environment, n);
}

/* What the recorder found; -1: nothing. */
static int32_t read_rank(struct feed *feed, uint32_t pid)
{
	int64_t rank = -1;

	if (!feed->rank)
		return -1;
	sqlite3_bind_int64(feed->rank, 1, pid);
	if (sqlite3_step(feed->rank) == SQLITE_ROW)
		rank = sqlite3_column_int64(feed->rank, 0);
	sqlite3_reset(feed->rank);
	return rank <= INT32_MAX ? (int32_t)rank : -1;
}

int feed_find_rank(struct feed *feed, uint32_t pid, int32_t *ret)
{
	int32_t rank;
	int r;

	for (size_t i = 0; i < feed->n_ranks; i++)
		if (feed->ranks[i].pid == pid) {
			*ret = feed->ranks[i].rank;
			return 0;
		}
	r = grow(&feed->ranks, feed->n_ranks, &feed->ranks_room, sizeof *feed->ranks);
	if (r < 0)
		return r;
	rank = read_rank(feed, pid);
	if (rank < 0)
		rank = ask_process(feed, pid);
	*ret = rank >= 0 ? rank : feed->default_rank;
	feed->ranks[feed->n_ranks++] = (struct feed_rank){ pid, *ret };
	return 0;
}
