/* SPDX-License-Identifier: MIT */
/* fuzz_cluster.c - what another machine sends as the stacks of its ranks, and what an environment says about a rank.
 *
 * A document that is taken can be merged, printed, written and read again, and is the same then.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cluster/cluster.h"
#include "src/profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void expect(bool holds)
{
	if (!holds)
		abort();
}

static void show(const struct cluster *cluster, bool all)
{
	struct tree_options options = { .all_threads = all, .whole = all, .no_native = !all };
	FILE *out = fopen("/dev/null", "w");
	struct profile *profile;
	struct cluster_tree tree;
	uint64_t n = 0;

	expect(out && cluster_print(cluster, &options, !all, true, out) == 0);
	if (all) {
		int r = cluster_report_picture(cluster, -1, false, out);

		expect(cluster_report_json(cluster, 3, out) == 0);
		expect(r == 0 || r == -ENOENT);
	} else {
		expect(cluster_report(cluster, 3, out) == 0);
	}
	fclose(out);
	expect(cluster_merge(cluster, &options, &tree) == 0);
	for (size_t i = 0; i < tree.n_classes; i++)
		n += tree.classes[i].n_stacks;
	expect(n == tree.n_stacks && tree.nodes[0].n_stacks == tree.n_stacks);
	for (size_t i = 1; i < tree.n_nodes; i++)
		expect(tree.nodes[i].parent < i && tree.nodes[i].n_stacks > 0 && tree.nodes[i].least > 0);
	expect(cluster_profile(&tree, &profile) == 0);
	expect(profile->n_totals == tree.n_stacks);
	profile_free(profile);
	cluster_tree_done(&tree);
}

/* Rows in a database: their tables are sound whatever was refused. */
static void read_rows(const char *text, size_t n_bytes)
{
	struct cluster cluster = { 0 };
	sqlite3_stmt *statement;
	int r;

	expect(sqlite3_open(":memory:", &cluster.db) == SQLITE_OK);
	r = cluster_read(&cluster, text, n_bytes, "h");
	if (r >= 0) {
		cluster_sort(&cluster);
		expect(cluster_add_nodes(&cluster, cluster.n_ranks < 1000) == 0);
		expect(sqlite3_prepare_v2(cluster.db, "SELECT count(*) FROM cluster.nodes", -1, &statement, NULL) == 0);
		expect(sqlite3_step(statement) == SQLITE_ROW &&
		       sqlite3_column_int64(statement, 0) >= (int64_t)cluster.n_ranks);
		sqlite3_finalize(statement);
	}
	if (cluster.n_ranks > 0)
		(void)cluster_read_rows(&cluster, &cluster.ranks[0], text, n_bytes);
	sqlite3_close(cluster.db);
	cluster_done(&cluster);
}

static void read_again(const struct cluster *cluster)
{
	struct cluster again = { 0 };
	char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	expect(out && cluster_write(cluster, "0", NULL, out) == 0 && fclose(out) == 0);
	expect(cluster_read(&again, text, n_bytes, NULL) == 0);
	expect(again.n_ranks == cluster->n_ranks && again.n_hosts == cluster->n_hosts);
	cluster_done(&again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	CLEANUP(freep) char *text = malloc(n_bytes + 1);
	struct cluster cluster = { 0 };
	struct rank_identity identity;
	int64_t time_ns = -1;

	expect(text);
	if (n_bytes > 0)
		memcpy(text, data, n_bytes);
	text[n_bytes] = '\0';
	if (clock_parse(text, &time_ns) == 0)
		expect(time_ns >= 0);
	if (rank_identify(text, n_bytes, &identity))
		expect(identity.rank >= 0 && identity.source != RANK_UNKNOWN);
	if (cluster_read(&cluster, text, n_bytes, NULL) == 0) {
		cluster_sort(&cluster);
		show(&cluster, false);
		show(&cluster, true);
		read_again(&cluster);
	}
	read_rows(text, n_bytes);
	if (cluster.n_ranks > 0) {
		(void)cluster_read_backtrace(&cluster, &cluster.ranks[0], text, n_bytes);
		(void)cluster_read_steps(&cluster.ranks[0], text, n_bytes);
	}
	cluster_done(&cluster);
	return 0;
}
