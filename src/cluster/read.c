/* SPDX-License-Identifier: MIT */
/* read.c - documents of other machines, and answers of `probing backtrace --json`.
 *
 * Both are data, never trusted: numbers are checked for their range, texts cut at a length, lists at a number of items.
 * Unknown keys are skipped, so that a later version may add some without another format.
 */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cluster/private.h"
#include "src/cluster/values.h"

/* ---- Frames and threads ---- */

static enum frame_kind kind_of(const char *name, bool *ret_is_builtin)
{
	*ret_is_builtin = name && strcmp(name, "builtin") == 0;
	if (name && strcmp(name, frame_kind_name(FRAME_PYTHON)) == 0)
		return FRAME_PYTHON;
	if (name && strcmp(name, frame_kind_name(FRAME_KERNEL)) == 0)
		return FRAME_KERNEL;
	return FRAME_NATIVE;
}

static int read_frame(struct cluster *cluster, const json_t *from, uint32_t *ret)
{
	CLEANUP(freep) char *function = NULL, *file = NULL, *module = NULL;
	struct cluster_frame frame = { .line = (int)value_number(from, "line", 0, INT_MAX, 0) };
	int r;

	if (!json_is_object(from))
		return -EBADMSG;
	frame.kind = kind_of(value_text(from, "kind"), &frame.is_builtin);
	r = value_copy_text(from, "function", &function);
	if (r >= 0)
		r = value_copy_text(from, "file", &file);
	if (r >= 0)
		r = value_copy_text(from, "module", &module);
	if (r < 0)
		return r;
	frame.function = function ? function : "";
	frame.file = file;
	frame.module = module;
	return cluster_add_frame(cluster, &frame, ret);
}

/* Documents have the innermost frame first. */
static int read_frames(struct cluster *cluster, struct cluster_thread *thread, const json_t *from)
{
	const json_t *frames = NULL;
	size_t n;
	int r = value_array(from, "frames", CLUSTER_MAX_FRAMES, &frames);

	if (r < 0)
		return r;
	n = json_array_size(frames);
	thread->frames = calloc(n + 1, sizeof *thread->frames);
	if (!thread->frames)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		r = read_frame(cluster, json_array_get(frames, n - 1 - i), &thread->frames[i]);
		if (r < 0)
			return r;
		thread->n_frames++;
	}
	return 0;
}

static int format_text(char **ret, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int format_text(char **ret, const char *format, ...)
{
	va_list arguments;
	int r;

	va_start(arguments, format);
	r = vasprintf(ret, format, arguments);
	va_end(arguments);
	if (r < 0)
		*ret = NULL;
	return r < 0 ? -ENOMEM : 0;
}

/* What backtrace knows about a wait, in a few words. */
static int describe_wait(const json_t *wait, char **ret)
{
	const json_t *first = json_array_get(json_object_get(wait, "descriptors"), 0);
	const char *call = value_text(wait, "call"), *lock = value_text(wait, "lock"),
		   *target = value_text(first, "target");
	int64_t holder = value_number(wait, "holder", 1, INT_MAX, 0),
		child = value_number(wait, "child", 1, INT_MAX, 0);

	if (lock && holder > 0)
		return format_text(ret, "%.64s, held by %s %jd", lock,
				   strcmp(lock, "file lock") == 0 ? "process" : "thread", (intmax_t)holder);
	if (lock)
		return format_text(ret, "%.64s", lock);
	if (!call)
		return 0;
	if (first)
		return format_text(ret, "%.64s for descriptor %jd%s%.256s", call,
				   (intmax_t)value_number(first, "descriptor", 0, INT_MAX, 0), target ? ": " : "",
				   target ? target : "");
	if (child > 0)
		return format_text(ret, "%.64s for process %jd", call, (intmax_t)child);
	return format_text(ret, "%.64s", call);
}

static int read_wait(struct cluster_thread *thread, const json_t *from)
{
	const json_t *wait = json_object_get(from, "wait");

	return json_is_object(wait) ? describe_wait(wait, &thread->wait) : value_copy_text(from, "wait", &thread->wait);
}

static int read_thread(struct cluster *cluster, struct cluster_rank *rank, const json_t *from)
{
	struct cluster_thread *thread;
	const char *state = value_text(from, "state"), *verdict = value_text(from, "verdict");
	int r;

	if (!json_is_object(from))
		return -EBADMSG;
	r = grow(&rank->threads, rank->n_threads, &rank->threads_allocated, sizeof *rank->threads);
	if (r < 0)
		return r;
	thread = &rank->threads[rank->n_threads++];
	*thread = (struct cluster_thread){
		.tid = (pid_t)value_number(from, "tid", 1, INT_MAX, 0),
		.state = state && state[0] >= 'A' && state[0] <= 'z' ? state[0] : '?',
		.holds_gil = json_is_true(json_object_get(from, "holds_gil")),
		.is_approximate = json_is_true(json_object_get(from, "approximate")) ||
				  (verdict && strcmp(verdict, "approximate") == 0),
	};
	r = value_copy_text(from, "name", &thread->name);
	if (r >= 0)
		r = value_copy_text(from, "python_name", &thread->python_name);
	if (r >= 0)
		r = read_wait(thread, from);
	return r < 0 ? r : read_frames(cluster, thread, from);
}

static int read_threads(struct cluster *cluster, struct cluster_rank *rank, const json_t *from)
{
	const json_t *threads = NULL;
	int r = value_array(from, "threads", CLUSTER_MAX_THREADS, &threads);

	for (size_t i = 0; r >= 0 && i < json_array_size(threads); i++)
		r = read_thread(cluster, rank, json_array_get(threads, i));
	return r;
}

int cluster_read_backtrace(struct cluster *cluster, struct cluster_rank *rank, const char *text, size_t n_bytes)
{
	CLEANUP(value_decrefp) json_t *answer = NULL;
	int r = value_load(text, n_bytes, &answer);

	if (r >= 0 && !json_is_object(answer))
		r = -EBADMSG;
	if (r >= 0)
		r = value_copy_text(answer, "python", &rank->python);
	if (r >= 0)
		r = value_copy_text(answer, "command", &rank->command);
	return r < 0 ? r : read_threads(cluster, rank, answer);
}

/* ---- Ranks and hosts ---- */

static enum rank_status status_of(const json_t *rank)
{
	const char *name = value_text(rank, "status");

	for (enum rank_status status = RANK_READ; name && status <= RANK_FAILED; status++)
		if (strcmp(rank_status_name(status), name) == 0)
			return status;
	return RANK_FAILED;
}

/* A number from 0 on; else unknown. */
static double usage_of(const json_t *usage, const char *key)
{
	const json_t *value = json_object_get(usage, key);
	double number = json_number_value(value);

	return json_is_number(value) && number >= 0 && number < 1e12 ? number : -1;
}

static struct rank_usage read_usage(const json_t *from)
{
	const double least_s = 1e-3; /* what is divided by a shorter time may become infinite */
	double seconds = usage_of(from, "seconds");

	return (struct rank_usage){
		.seconds = seconds >= least_s ? seconds : 0,
		.cpu_s = usage_of(from, "cpu_s"),
		.queued_s = usage_of(from, "queued_s"),
		.throttled_s = usage_of(from, "throttled_s"),
		.stolen_s = usage_of(from, "stolen_s"),
		.limit_cpus = usage_of(from, "limit_cpus"),
		.memory_mb = usage_of(from, "memory_mb"),
		.comm_s = usage_of(from, "comm_s"),
		.step_ms = usage_of(from, "step_ms"),
		.forward_ms = usage_of(from, "forward_ms"),
		.backward_ms = usage_of(from, "backward_ms"),
		.comm_ms = usage_of(from, "comm_ms"),
		.data_ms = usage_of(from, "data_ms"),
	};
}

static int read_rank(struct cluster *cluster, size_t host, const json_t *from)
{
	const char *job = value_text(from, "job"), *role = value_text(from, "role");
	struct rank_identity identity = {
		.rank = value_number(from, "rank", 0, RANK_MAX_NUMBER, -1),
		.local_rank = value_number(from, "local_rank", 0, RANK_MAX_NUMBER, -1),
		.world_size = value_number(from, "world_size", 0, CLUSTER_MAX_RANKS, -1),
	};
	struct cluster_rank *rank;
	int r;

	if (!json_is_object(from))
		return -EBADMSG;
	snprintf(identity.job, sizeof identity.job, "%s", job ? job : "");
	snprintf(identity.role, sizeof identity.role, "%s", role ? role : "");
	r = cluster_add_rank(cluster, host, (pid_t)value_number(from, "pid", 1, INT_MAX, 0), &identity, &rank);
	if (r < 0)
		return r;
	rank->status = status_of(from);
	rank->usage = read_usage(json_object_get(from, "usage"));
	rank->started_ns = (uint64_t)value_number(from, "time_ns", 0, INT64_MAX, 0);
	r = value_copy_text(from, "problem", &rank->problem);
	if (r >= 0)
		r = value_copy_text(from, "command", &rank->command);
	if (r >= 0)
		r = value_copy_text(from, "python", &rank->python);
	if (r >= 0)
		r = value_copy_text(from, "note", &rank->note);
	if (r >= 0)
		r = read_threads(cluster, rank, from);
	if (r >= 0)
		r = cluster_collectives_read(rank, from);
	if (r >= 0)
		r = cluster_history_read(rank, from);
	return r < 0 ? r : cluster_rows_read(cluster, rank, json_object_get(from, "data"));
}

static int read_host(struct cluster *cluster, const json_t *from, const char *address, const char *version)
{
	CLEANUP(freep) char *name = NULL, *own_address = NULL, *own_version = NULL;
	const json_t *ranks = NULL;
	struct cluster_host *host;
	size_t index = cluster->n_hosts;
	int r;

	if (!json_is_object(from))
		return -EBADMSG;
	r = value_copy_text(from, "host", &name);
	if (r >= 0)
		r = value_copy_text(from, "address", &own_address);
	if (r >= 0)
		r = value_copy_text(from, "version", &own_version);
	if (r >= 0)
		r = cluster_add_host(cluster, name, address ? address : own_address,
				     own_version ? own_version : version, &host);
	if (r >= 0)
		r = value_copy_text(from, "problem", &host->problem);
	if (r >= 0)
		host->n_hidden = (size_t)value_number(from, "hidden", 0, CLUSTER_MAX_RANKS, 0);
	if (r >= 0)
		r = value_array(from, "ranks", CLUSTER_MAX_RANKS, &ranks);
	for (size_t i = 0; r >= 0 && i < json_array_size(ranks); i++)
		r = read_rank(cluster, index, json_array_get(ranks, i));
	return r;
}

static int read_hosts(struct cluster *cluster, const json_t *document, const char *address)
{
	const json_t *hosts = NULL;
	int r = value_array(document, "hosts", CLUSTER_MAX_HOSTS, &hosts);

	/* A host that is asked speaks of itself alone: it passes for no other one, and does not vanish. */
	if (r >= 0 && address && json_array_size(hosts) != 1)
		return -EBADMSG;
	for (size_t i = 0; r >= 0 && i < json_array_size(hosts); i++)
		r = read_host(cluster, json_array_get(hosts, i), address, value_text(document, "version"));
	return r;
}

int cluster_read(struct cluster *cluster, const char *text, size_t n_bytes, const char *address)
{
	CLEANUP(value_decrefp) json_t *document = NULL;
	size_t n_hosts = cluster->n_hosts, n_ranks = cluster->n_ranks;
	int64_t format;
	int r = value_load(text, n_bytes, &document), ended;

	if (r < 0)
		return r;
	format = value_number(document, "probing_cluster", 1, INT_MAX, 0);
	if (format != CLUSTER_FORMAT)
		return format == 0 ? -EBADMSG : -EPROTONOSUPPORT;
	r = cluster_rows_begin(cluster);
	if (r < 0)
		return r;
	r = read_hosts(cluster, document, address);
	ended = cluster_rows_end(cluster, r < 0);
	r = r < 0 ? r : ended;
	if (r < 0)
		cluster_cut(cluster, n_hosts, n_ranks);
	return r;
}
