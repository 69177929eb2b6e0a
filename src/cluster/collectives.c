/* SPDX-License-Identifier: MIT */
/*
 * collectives.c - the last collective that each rank has called in each process group, by the rows of comm_started.
 *
 * All ranks of a group call its collectives in the same order, and rows number them. So where some ranks are in a
 * collective that other ranks have not called, the group waits for these others.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "src/cluster/private.h"
#include "src/cluster/values.h"
#include "src/columns/columns.h"

const char cluster_collectives_sql[] =
	"SELECT \"group\", op, max(seq), call NOT IN (SELECT call FROM comm_metrics) FROM comm_started"
	" WHERE op NOT IN ('send', 'recv') GROUP BY \"group\" ORDER BY 3 DESC";

void cluster_collectives_done(struct cluster_rank *rank)
{
	for (size_t i = 0; i < rank->n_collectives; i++) {
		free(rank->collectives[i].group);
		free(rank->collectives[i].op);
	}
	free(rank->collectives);
	rank->collectives = NULL;
	rank->n_collectives = rank->collectives_allocated = 0;
}

/* @group, @op: borrowed. */
static int add(struct cluster_rank *rank, const char *group, const char *op, int64_t seq, bool is_open)
{
	struct cluster_collective one = { .seq = seq, .is_open = is_open };
	int r;

	if (!group || !op || seq < 1 || rank->n_collectives == CLUSTER_MAX_GROUPS)
		return 0;
	r = grow(&rank->collectives, rank->n_collectives, &rank->collectives_allocated, sizeof one);
	if (r < 0)
		return r;
	one.group = strndup(group, CLUSTER_MAX_TEXT);
	one.op = strndup(op, CLUSTER_MAX_TEXT);
	if (!one.group || !one.op) {
		free(one.group);
		free(one.op);
		return -ENOMEM;
	}
	rank->collectives[rank->n_collectives++] = one;
	return 0;
}

int cluster_read_collectives(struct cluster_rank *rank, const char *text, size_t n_bytes)
{
	CLEANUP(value_decrefp) json_t *answer = NULL;
	const json_t *rows;
	int r = value_load(text, n_bytes, &answer);

	rows = json_object_get(json_array_get(json_object_get(answer, "tables"), 0), "rows");
	for (size_t i = 0; r >= 0 && i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);

		r = add(rank, json_string_value(json_array_get(row, 0)), json_string_value(json_array_get(row, 1)),
			json_integer_value(json_array_get(row, 2)), json_integer_value(json_array_get(row, 3)) != 0);
	}
	return r;
}

/* ---- Documents ---- */

int cluster_collectives_read(struct cluster_rank *rank, const json_t *from)
{
	const json_t *collectives = NULL;
	int r = value_array(from, "collectives", CLUSTER_MAX_GROUPS, &collectives);

	for (size_t i = 0; r >= 0 && i < json_array_size(collectives); i++) {
		const json_t *one = json_array_get(collectives, i);

		r = add(rank, value_text(one, "group"), value_text(one, "op"),
			value_number(one, "seq", 1, INT64_MAX, 0), json_is_true(json_object_get(one, "open")));
	}
	return r;
}

void cluster_collectives_write(struct json *json, const struct cluster_rank *rank)
{
	if (rank->n_collectives == 0)
		return;
	to_json_put_array(json, "collectives");
	for (size_t i = 0; i < rank->n_collectives; i++) {
		to_json_object(json);
		to_json_put_string(json, "group", rank->collectives[i].group);
		to_json_put_string(json, "op", rank->collectives[i].op);
		to_json_put_integer(json, "seq", rank->collectives[i].seq);
		to_json_put_bool(json, "open", rank->collectives[i].is_open);
		to_json_object_end(json);
	}
	to_json_array_end(json);
}

/* ---- Output ---- */

/* The last collective of a rank in a group. */
struct last {
	const struct cluster_collective *collective;
	uint32_t rank; /* index */
};

/* By group; in it the ranks that are behind first. */
static int compare(const void *a, const void *b)
{
	const struct last *left = a, *right = b;
	int by_group = strcmp(left->collective->group, right->collective->group);

	if (by_group != 0)
		return by_group;
	if (left->collective->seq != right->collective->seq)
		return left->collective->seq < right->collective->seq ? -1 : 1;
	if (left->collective->is_open != right->collective->is_open)
		return left->collective->is_open ? 1 : -1;
	return (left->rank > right->rank) - (left->rank < right->rank);
}

static bool is_alike(const struct cluster_collective *one, const struct cluster_collective *other)
{
	return one->seq == other->seq && one->is_open == other->is_open && strcmp(one->op, other->op) == 0;
}

static int put_alike(const struct cluster *cluster, const struct last *lasts, size_t n, FILE *out)
{
	CLEANUP(freep) uint32_t *indices = calloc(n, sizeof *indices);
	CLEANUP(freep) char *ranks = NULL;

	if (!indices)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		indices[i] = lasts[i].rank;
	ranks = cluster_ranks_text(cluster, indices, n);
	if (!ranks)
		return -ENOMEM;
	fputs("  ", out);
	fputs(ranks, out);
	fprintf(out, ": %s number %jd, ", lasts->collective->is_open ? "in" : "after",
		(intmax_t)lasts->collective->seq);
	cell_put_all(out, lasts->collective->op);
	fputs("\n", out);
	return 0;
}

/* Only of a group in which a rank waits in a collective that another rank has not called. */
static int put_group(const struct cluster *cluster, const struct last *lasts, size_t n, FILE *out)
{
	bool waits = false;
	size_t end;
	int r = 0;

	for (size_t i = 0; i < n; i++)
		waits |= lasts[i].collective->is_open && lasts[i].collective->seq > lasts->collective->seq;
	if (!waits)
		return 0;
	fputs("group ", out);
	cell_put_all(out, lasts->collective->group);
	fprintf(out, ": not all ranks have come to collective number %jd\n", (intmax_t)lasts->collective->seq + 1);
	for (size_t i = 0; i < n && r >= 0; i = end) {
		for (end = i + 1; end < n && is_alike(lasts[i].collective, lasts[end].collective);)
			end++;
		r = put_alike(cluster, &lasts[i], end - i, out);
	}
	return r;
}

int cluster_put_collectives(const struct cluster *cluster, const char *job, FILE *out)
{
	CLEANUP(freep) struct last *lasts = NULL;
	size_t n = 0, allocated = 0, end;
	int r = 0;

	for (size_t i = 0; i < cluster->n_ranks; i++) {
		const struct cluster_rank *rank = &cluster->ranks[i];

		if (job && strcmp(rank->identity.job, job) != 0)
			continue;
		for (size_t j = 0; j < rank->n_collectives && r >= 0; j++) {
			r = grow(&lasts, n, &allocated, sizeof *lasts);
			if (r >= 0)
				lasts[n++] = (struct last){ &rank->collectives[j], (uint32_t)i };
		}
	}
	if (n > 0)
		qsort(lasts, n, sizeof *lasts, compare);
	for (size_t i = 0; i < n && r >= 0; i = end) {
		for (end = i + 1; end < n && strcmp(lasts[i].collective->group, lasts[end].collective->group) == 0;)
			end++;
		r = put_group(cluster, &lasts[i], end - i, out);
	}
	return r;
}
