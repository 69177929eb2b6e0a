/* SPDX-License-Identifier: MIT */
/* gather.c - see cluster.h.
 *
 * A process that reads a rank can be killed at its deadline, and the thread that it has stopped goes on.
 */
#include "src/cli/cluster/cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/util.h"
#include "src/cli/cli.h"

enum { AT_ONCE = 16, MAX_ARGUMENTS = 12, MAX_SENTENCE = 1024 };

/* ---- This machine ---- */

/* The command that reads one rank. */
struct reading {
	char pid[16];
	const char *argv[MAX_ARGUMENTS + 1];
	size_t rank; /* of the cluster */
};

struct taking {
	struct cluster *cluster;
	gather_take *take;
	bool is_extra; /* a rank that does not answer stays as it was */
	int error;
};

static void prepare(struct reading *reading, const char *const *words, pid_t pid)
{
	size_t n = 0;

	snprintf(reading->pid, sizeof reading->pid, "%d", (int)pid);
	reading->argv[n++] = "/proc/self/exe";
	for (size_t i = 0; words[i] && n < MAX_ARGUMENTS; i++)
		reading->argv[n++] = strcmp(words[i], "%p") == 0 ? reading->pid : words[i];
	reading->argv[n] = NULL;
}

static enum rank_status status_of(const struct command *command)
{
	if (command->error == -ETIMEDOUT)
		return RANK_SLOW;
	if (command->error < 0 || !WIFEXITED(command->wait_status))
		return RANK_FAILED;
	switch (WEXITSTATUS(command->wait_status)) {
	case EXIT_OK:
		return RANK_READ;
	case EXIT_NO_INPUT:
		return RANK_GONE;
	case EXIT_NOT_PERMITTED:
		return RANK_REFUSED;
	default:
		return RANK_FAILED;
	}
}

static int take_rank(const struct taking *taking, const struct command *command)
{
	const struct reading *reading = command->data;
	struct cluster_rank *rank = &taking->cluster->ranks[reading->rank];
	enum rank_status status = status_of(command);
	char why[MAX_SENTENCE];
	int r;

	if (taking->is_extra && status != RANK_READ)
		return 0;
	rank->started_ns = taking->is_extra ? rank->started_ns : realtime_ns();
	if (status == RANK_READ) {
		r = taking->take(taking->cluster, rank, command);
		if (r == -ENOMEM || r >= 0 || taking->is_extra)
			return r == -ENOMEM ? r : 0;
		return cluster_fail_rank(rank, RANK_FAILED,
					 r == -E2BIG ? "its answer is too long" : "its answer makes no sense");
	}
	command_explain(command, why, sizeof why);
	return cluster_fail_rank(rank, status, why);
}

static void rank_ended(void *data, struct command *command)
{
	struct taking *taking = data;

	if (taking->error >= 0)
		taking->error = take_rank(taking, command);
	commands_done(command, 1);
}

static int run_readers(const struct cluster_options *options, const char *const *words, gather_take *take,
		       bool is_extra, struct cluster *cluster)
{
	CLEANUP(freep) struct reading *readings = calloc(cluster->n_ranks + 1, sizeof *readings);
	CLEANUP(freep) struct command *commands = calloc(cluster->n_ranks + 1, sizeof *commands);
	struct taking taking = { cluster, take, is_extra, 0 };
	uint64_t timeout_ns = (uint64_t)(options->timeout_s * 1e9);
	struct commands_options how = { .n_at_once = AT_ONCE,
					.each_ns = timeout_ns,
					.all_ns = 2 * timeout_ns,
					.max_bytes = CLUSTER_MAX_BYTES,
					.ended = rank_ended,
					.data = &taking };
	size_t n = 0;
	int r;

	if (!readings || !commands)
		return -ENOMEM;
	for (size_t i = 0; i < cluster->n_ranks; i++) {
		if (cluster->ranks[i].status != RANK_READ)
			continue;
		readings[n].rank = i;
		prepare(&readings[n], words, cluster->ranks[i].pid);
		commands[n] = (struct command){ .argv = (char **)readings[n].argv, .data = &readings[n] };
		n++;
	}
	r = commands_run(commands, n, &how);
	return r < 0 ? r : taking.error;
}

int gather_find(const struct cluster_options *options, struct cluster *cluster)
{
	CLEANUP(freep) struct local_rank *ranks = NULL;
	struct cluster_rank *rank;
	size_t n = 0;
	int r = cluster_this_host(cluster);

	if (r >= 0)
		r = ranks_find(&options->selection, &ranks, &n, &cluster->hosts[cluster->n_hosts - 1].n_hidden);
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = cluster_add_rank(cluster, cluster->n_hosts - 1, ranks[i].pid, &ranks[i].identity, &rank);
	return r;
}

int gather_run(const struct cluster_options *options, const char *const *words, gather_take *take,
	       struct cluster *cluster)
{
	return run_readers(options, words, take, false, cluster);
}

int gather_extra(const struct cluster_options *options, const char *const *words, gather_take *take,
		 struct cluster *cluster)
{
	return run_readers(options, words, take, true, cluster);
}

static int take_collectives(struct cluster *cluster, struct cluster_rank *rank, const struct command *command)
{
	(void)cluster;
	return cluster_read_collectives(rank, command->output ? command->output : "", command->output_bytes);
}

int gather_collectives(const struct cluster_options *options, struct cluster *cluster)
{
	const char *const words[] = { "cluster", "rows", "--pid", "%p", "--each", "--", cluster_collectives_sql, NULL };

	return gather_extra(options, words, take_collectives, cluster);
}

int gather_ranks(const struct cluster_options *options, const char *const *words, gather_take *take,
		 struct cluster *cluster)
{
	int r = gather_find(options, cluster);

	return r < 0 ? r : gather_run(options, words, take, cluster);
}

/* ---- Other machines ---- */

static int fail_host(struct cluster *cluster, const char *address, const char *version, const char *problem)
{
	struct cluster_host *host;
	int r = cluster_add_host(cluster, NULL, address, version, &host);

	if (r < 0)
		return r;
	host->problem = strdup(problem);
	return host->problem ? 0 : -ENOMEM;
}

/* What a host said instead of a document. */
static const char *explain_document(int error)
{
	if (error == -EPROTONOSUPPORT)
		return "it has another version of probing, with another format: install this version there";
	return error == -E2BIG ? "its answer is too long" : "its answer is not a document of probing cluster";
}

static int fail_asked(struct cluster *cluster, const struct cluster_asked *asked, const char *problem)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < asked->n; i++)
		r = fail_host(cluster, asked->hosts[i], NULL, problem);
	return r;
}

/* Over HTTPS, `probing cluster fetch` has checked that it speaks of these hosts. */
static int take_host(void *data, const struct cluster_asked *asked, const struct command *command)
{
	const char *address = asked->is_url || asked->is_here ? NULL : asked->hosts[0];
	struct cluster *cluster = data;
	char why[MAX_SENTENCE];
	int r;

	if (command->error < 0 || !WIFEXITED(command->wait_status) || WEXITSTATUS(command->wait_status) != 0) {
		command_explain(command, why, sizeof why);
		return fail_asked(cluster, asked, why);
	}
	r = cluster_read(cluster, command->output ? command->output : "", command->output_bytes, address);
	if (r == -ENOMEM || r >= 0)
		return r;
	return fail_asked(cluster, asked, explain_document(r));
}

int gather_hosts(const struct cluster_options *options, const char *const *words, struct cluster *cluster)
{
	return cluster_ask(options, words, CLUSTER_MAX_BYTES, take_host, cluster);
}

/* ---- Results ---- */

void gather_say_hidden(const struct cluster *cluster)
{
	for (size_t i = 0; i < cluster->n_hosts; i++)
		if (cluster->hosts[i].n_hidden > 0)
			cli_say("probing: host %s: %zu Python process%s may not be read, and may be ranks: run probing there as "
				"root\n",
				cluster_host_label(&cluster->hosts[i]), cluster->hosts[i].n_hidden,
				cluster->hosts[i].n_hidden > 1 ? "es" : "");
}

/* Other versions of probing are named, even if they were understood. */
void gather_say_versions(const struct cluster *cluster)
{
	for (size_t i = 0; i < cluster->n_hosts; i++) {
		const struct cluster_host *host = &cluster->hosts[i];

		if (host->version && strcmp(host->version, cli_version) != 0)
			cli_say("host %s has probing %s, this is %s\n", cluster_host_label(host), host->version,
				cli_version);
	}
}

int gather_status(const struct cluster *cluster)
{
	for (size_t i = 0; i < cluster->n_ranks; i++)
		if (cluster->ranks[i].status == RANK_READ)
			return EXIT_OK;
	if (cluster->n_ranks > 0 && cluster->ranks[0].status == RANK_REFUSED)
		return EXIT_NOT_PERMITTED;
	return cluster->n_ranks > 0 && cluster->ranks[0].status == RANK_GONE ? EXIT_NO_INPUT : EXIT_FAILED;
}
