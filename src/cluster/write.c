/* SPDX-License-Identifier: MIT */
/* write.c - hosts and ranks as a document; see read.c and docs/distributed.md. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "src/cluster/private.h"

static void put_frame(struct json *json, const struct cluster_frame *frame)
{
	to_json_object(json);
	to_json_put_string(json, "kind", frame->is_builtin ? "builtin" : frame_kind_name(frame->kind));
	to_json_put_string(json, "function", frame->function);
	to_json_put_string(json, "file", frame->file);
	to_json_put_known(json, "line", frame->line, frame->line > 0);
	to_json_put_string(json, "module", frame->module);
	to_json_object_end(json);
}

static void put_thread(struct json *json, const struct cluster *cluster, const struct cluster_thread *thread)
{
	const char state[2] = { thread->state, '\0' };

	to_json_object(json);
	to_json_put_integer(json, "tid", thread->tid);
	to_json_put_string(json, "name", thread->name);
	to_json_put_string(json, "python_name", thread->python_name);
	to_json_put_string(json, "state", thread->state == '?' ? NULL : state);
	to_json_put_string(json, "wait", thread->wait);
	to_json_put_bool(json, "holds_gil", thread->holds_gil);
	to_json_put_bool(json, "approximate", thread->is_approximate);
	to_json_put_array(json, "frames");
	for (size_t i = thread->n_frames; i-- > 0;)
		put_frame(json, &cluster->frames[thread->frames[i]]);
	to_json_array_end(json);
	to_json_object_end(json);
}

static void put_known(struct json *json, const char *name, double value)
{
	to_json_put_number(json, name, value < 0 ? NAN : value);
}

void cluster_usage_write(struct json *json, const struct rank_usage *usage)
{
	if (usage->seconds <= 0)
		return;
	to_json_put_object(json, "usage");
	to_json_put_number(json, "seconds", usage->seconds);
	put_known(json, "cpu_s", usage->cpu_s);
	put_known(json, "queued_s", usage->queued_s);
	put_known(json, "throttled_s", usage->throttled_s);
	put_known(json, "stolen_s", usage->stolen_s);
	put_known(json, "limit_cpus", usage->limit_cpus);
	put_known(json, "memory_mb", usage->memory_mb);
	put_known(json, "comm_s", usage->comm_s);
	put_known(json, "step_ms", usage->step_ms);
	put_known(json, "forward_ms", usage->forward_ms);
	put_known(json, "backward_ms", usage->backward_ms);
	put_known(json, "comm_ms", usage->comm_ms);
	put_known(json, "data_ms", usage->data_ms);
	to_json_object_end(json);
}

static void put_rank(struct json *json, const struct cluster *cluster, const struct cluster_rank *rank)
{
	const struct rank_identity *identity = &rank->identity;

	to_json_object(json);
	to_json_put_known(json, "rank", identity->rank, identity->rank >= 0);
	to_json_put_known(json, "local_rank", identity->local_rank, identity->local_rank >= 0);
	to_json_put_known(json, "world_size", identity->world_size, identity->world_size >= 0);
	to_json_put_text(json, "job", identity->job);
	to_json_put_text(json, "role", identity->role);
	to_json_put_integer(json, "pid", rank->pid);
	to_json_put_string(json, "status", rank_status_name(rank->status));
	to_json_put_string(json, "problem", rank->problem);
	to_json_put_known(json, "time_ns", (int64_t)rank->started_ns, rank->started_ns != 0);
	to_json_put_string(json, "python", rank->python);
	to_json_put_string(json, "command", rank->command);
	to_json_put_array(json, "threads");
	for (size_t i = 0; i < rank->n_threads; i++)
		put_thread(json, cluster, &rank->threads[i]);
	to_json_array_end(json);
	cluster_usage_write(json, &rank->usage);
	cluster_history_write(json, rank);
	cluster_collectives_write(json, rank);
	to_json_put_string(json, "note", rank->note);
	if (rank->data) {
		to_json_key(json, "data");
		to_json_raw(json, rank->data, strlen(rank->data));
	}
	to_json_object_end(json);
}

/* @of: for each host the first of its ranks, @next: of each rank the next one of its host; SIZE_MAX: none. */
static void put_host(struct json *json, const struct cluster *cluster, size_t index, const size_t *of,
		     const size_t *next)
{
	const struct cluster_host *host = &cluster->hosts[index];

	to_json_object(json);
	to_json_put_string(json, "host", host->name);
	to_json_put_string(json, "address", host->address);
	to_json_put_string(json, "version", host->version);
	to_json_put_string(json, "problem", host->problem);
	to_json_put_integer(json, "hidden", (int64_t)host->n_hidden);
	to_json_put_array(json, "ranks");
	for (size_t i = of[index]; i != SIZE_MAX; i = next[i])
		put_rank(json, cluster, &cluster->ranks[i]);
	to_json_array_end(json);
	to_json_object_end(json);
}

static int put_hosts(struct json *json, const struct cluster *cluster)
{
	CLEANUP(freep) size_t *of = calloc(cluster->n_hosts + 1, sizeof *of);
	CLEANUP(freep) size_t *next = calloc(cluster->n_ranks + 1, sizeof *next);

	if (!of || !next)
		return -ENOMEM;
	for (size_t i = 0; i < cluster->n_hosts; i++)
		of[i] = SIZE_MAX;
	for (size_t i = cluster->n_ranks; i-- > 0;) {
		next[i] = of[cluster->ranks[i].host];
		of[cluster->ranks[i].host] = i;
	}
	to_json_put_array(json, "hosts");
	for (size_t i = 0; i < cluster->n_hosts; i++)
		put_host(json, cluster, i, of, next);
	to_json_array_end(json);
	return 0;
}

static int put_class(struct json *json, const struct cluster_tree *tree, uint32_t index)
{
	const struct tree_class *class = &tree->classes[index];
	const struct tree_stack *first = &tree->stacks[class->first];
	CLEANUP(freep) char *ranks = tree_class_ranks(tree, index);
	struct stack_place place;

	if (!ranks)
		return -ENOMEM;
	tree_place(tree, first, &place);
	to_json_object(json);
	to_json_put_string(json, "ranks", ranks);
	to_json_put_integer(json, "stacks", class->n_stacks);
	to_json_key(json, "own");
	if (place.own)
		put_frame(json, place.own);
	else
		to_json_null(json);
	to_json_key(json, "innermost");
	if (place.innermost)
		put_frame(json, place.innermost);
	else
		to_json_null(json);
	to_json_object_end(json);
	return 0;
}

static int put_classes(struct json *json, const struct cluster_tree *tree)
{
	int r = 0;

	to_json_put_array(json, "classes");
	for (uint32_t i = 0; r >= 0 && i < tree->n_classes; i++)
		r = put_class(json, tree, i);
	to_json_array_end(json);
	return r;
}

int cluster_write(const struct cluster *cluster, const char *version, const struct cluster_tree *tree, FILE *out)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	int r = to_json_keep(NULL, &json);

	if (r < 0)
		return r;
	to_json_object(&json);
	to_json_put_integer(&json, "probing_cluster", CLUSTER_FORMAT);
	to_json_put_string(&json, "version", version);
	if (tree)
		r = put_classes(&json, tree);
	if (r >= 0)
		r = put_hosts(&json, cluster);
	to_json_object_end(&json);
	return r < 0 ? r : to_json_finish(&json, out);
}
