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

static void decrefp(json_t **value)
{
	json_decref(*value);
}

/* ---- Values ---- */

/* NULL: no text. Borrowed. */
static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* A copy, cut; NULL: no text. -ENOMEM. */
static int copy_text(const json_t *object, const char *key, char **ret)
{
	const char *text = text_of(object, key);
	char *copied = text ? strndup(text, CLUSTER_MAX_TEXT) : NULL;

	if (text && !copied)
		return -ENOMEM;
	free(*ret);
	*ret = copied;
	return 0;
}

/* A number from low to high; else @otherwise. */
static int64_t number_of(const json_t *object, const char *key, int64_t low, int64_t high, int64_t otherwise)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value) || json_integer_value(value) < low || json_integer_value(value) > high)
		return otherwise;
	return json_integer_value(value);
}

/* An array of at most so many items; an absent one is empty. */
static int array_of(const json_t *object, const char *key, size_t max, const json_t **ret)
{
	const json_t *value = json_object_get(object, key);

	if (value && !json_is_null(value) && !json_is_array(value))
		return -EBADMSG;
	if (json_array_size(value) > max)
		return -E2BIG;
	*ret = value;
	return 0;
}

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
	struct cluster_frame frame = { .line = (int)number_of(from, "line", 0, INT_MAX, 0) };
	int r;

	if (!json_is_object(from))
		return -EBADMSG;
	frame.kind = kind_of(text_of(from, "kind"), &frame.is_builtin);
	r = copy_text(from, "function", &function);
	if (r >= 0)
		r = copy_text(from, "file", &file);
	if (r >= 0)
		r = copy_text(from, "module", &module);
	if (r < 0)
		return r;
	frame.function = function ? function : "";
	frame.file = file;
	frame.module = module;
	return cluster_frame_number(cluster, &frame, ret);
}

/* Documents have the innermost frame first. */
static int read_frames(struct cluster *cluster, struct cluster_thread *thread, const json_t *from)
{
	const json_t *frames = NULL;
	size_t n;
	int r = array_of(from, "frames", CLUSTER_MAX_FRAMES, &frames);

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
	const char *call = text_of(wait, "call"), *lock = text_of(wait, "lock"), *target = text_of(first, "target");
	int64_t holder = number_of(wait, "holder", 1, INT_MAX, 0), child = number_of(wait, "child", 1, INT_MAX, 0);

	if (lock && holder > 0)
		return format_text(ret, "%.64s, held by %s %jd", lock,
				   strcmp(lock, "file lock") == 0 ? "process" : "thread", (intmax_t)holder);
	if (lock)
		return format_text(ret, "%.64s", lock);
	if (!call)
		return 0;
	if (first)
		return format_text(ret, "%.64s for descriptor %jd%s%.256s", call,
				   (intmax_t)number_of(first, "descriptor", 0, INT_MAX, 0), target ? ": " : "",
				   target ? target : "");
	if (child > 0)
		return format_text(ret, "%.64s for process %jd", call, (intmax_t)child);
	return format_text(ret, "%.64s", call);
}

static int read_wait(struct cluster_thread *thread, const json_t *from)
{
	const json_t *wait = json_object_get(from, "wait");

	return json_is_object(wait) ? describe_wait(wait, &thread->wait) : copy_text(from, "wait", &thread->wait);
}

static int read_thread(struct cluster *cluster, struct cluster_rank *rank, const json_t *from)
{
	struct cluster_thread *thread;
	const char *state = text_of(from, "state"), *verdict = text_of(from, "verdict");
	int r;

	if (!json_is_object(from))
		return -EBADMSG;
	r = grow(&rank->threads, rank->n_threads, &rank->threads_allocated, sizeof *rank->threads);
	if (r < 0)
		return r;
	thread = &rank->threads[rank->n_threads++];
	*thread = (struct cluster_thread){
		.tid = (pid_t)number_of(from, "tid", 1, INT_MAX, 0),
		.state = state && state[0] >= 'A' && state[0] <= 'z' ? state[0] : '?',
		.holds_gil = json_is_true(json_object_get(from, "holds_gil")),
		.is_approximate = json_is_true(json_object_get(from, "approximate")) ||
				  (verdict && strcmp(verdict, "approximate") == 0),
	};
	r = copy_text(from, "name", &thread->name);
	if (r >= 0)
		r = copy_text(from, "python_name", &thread->python_name);
	if (r >= 0)
		r = read_wait(thread, from);
	return r < 0 ? r : read_frames(cluster, thread, from);
}

static int read_threads(struct cluster *cluster, struct cluster_rank *rank, const json_t *from)
{
	const json_t *threads = NULL;
	int r = array_of(from, "threads", CLUSTER_MAX_THREADS, &threads);

	for (size_t i = 0; r >= 0 && i < json_array_size(threads); i++)
		r = read_thread(cluster, rank, json_array_get(threads, i));
	return r;
}

static int load(const char *text, size_t n_bytes, json_t **ret)
{
	json_error_t error;

	if (n_bytes > CLUSTER_MAX_BYTES)
		return -E2BIG;
	*ret = json_loadb(text, n_bytes, 0, &error);
	if (*ret)
		return 0;
	return json_error_code(&error) == json_error_out_of_memory ? -ENOMEM : -EBADMSG;
}

int cluster_read_backtrace(struct cluster *cluster, struct cluster_rank *rank, const char *text, size_t n_bytes)
{
	CLEANUP(decrefp) json_t *answer = NULL;
	int r = load(text, n_bytes, &answer);

	if (r >= 0 && !json_is_object(answer))
		r = -EBADMSG;
	if (r >= 0)
		r = copy_text(answer, "python", &rank->python);
	if (r >= 0)
		r = copy_text(answer, "command", &rank->command);
	return r < 0 ? r : read_threads(cluster, rank, answer);
}

/* ---- Ranks and hosts ---- */

static enum rank_status status_of(const json_t *rank)
{
	const char *name = text_of(rank, "status");

	for (enum rank_status status = RANK_READ; name && status <= RANK_FAILED; status++)
		if (strcmp(rank_status_name(status), name) == 0)
			return status;
	return RANK_FAILED;
}

static int read_rank(struct cluster *cluster, size_t host, const json_t *from)
{
	const char *job = text_of(from, "job"), *role = text_of(from, "role");
	struct rank_identity identity = {
		.rank = number_of(from, "rank", 0, INT_MAX, -1),
		.local_rank = number_of(from, "local_rank", 0, INT_MAX, -1),
		.world_size = number_of(from, "world_size", 0, CLUSTER_MAX_RANKS, -1),
	};
	struct cluster_rank *rank;
	int r;

	if (!json_is_object(from))
		return -EBADMSG;
	snprintf(identity.job, sizeof identity.job, "%s", job ? job : "");
	snprintf(identity.role, sizeof identity.role, "%s", role ? role : "");
	r = cluster_add_rank(cluster, host, (pid_t)number_of(from, "pid", 1, INT_MAX, 0), &identity, &rank);
	if (r < 0)
		return r;
	rank->status = status_of(from);
	rank->started_ns = (uint64_t)number_of(from, "time_ns", 0, INT64_MAX, 0);
	r = copy_text(from, "problem", &rank->problem);
	if (r >= 0)
		r = copy_text(from, "command", &rank->command);
	if (r >= 0)
		r = copy_text(from, "python", &rank->python);
	return r < 0 ? r : read_threads(cluster, rank, from);
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
	r = copy_text(from, "host", &name);
	if (r >= 0)
		r = copy_text(from, "address", &own_address);
	if (r >= 0)
		r = copy_text(from, "version", &own_version);
	if (r >= 0)
		r = cluster_add_host(cluster, name, address ? address : own_address,
				     own_version ? own_version : version, &host);
	if (r >= 0)
		r = copy_text(from, "problem", &host->problem);
	if (r >= 0)
		r = array_of(from, "ranks", CLUSTER_MAX_RANKS, &ranks);
	for (size_t i = 0; r >= 0 && i < json_array_size(ranks); i++)
		r = read_rank(cluster, index, json_array_get(ranks, i));
	return r;
}

int cluster_read(struct cluster *cluster, const char *text, size_t n_bytes, const char *address)
{
	CLEANUP(decrefp) json_t *document = NULL;
	const json_t *hosts = NULL;
	int64_t format;
	int r = load(text, n_bytes, &document);

	if (r < 0)
		return r;
	format = number_of(document, "probing_cluster", 1, INT_MAX, 0);
	if (format != CLUSTER_FORMAT)
		return format == 0 ? -EBADMSG : -EPROTONOSUPPORT;
	r = array_of(document, "hosts", CLUSTER_MAX_HOSTS, &hosts);
	for (size_t i = 0; r >= 0 && i < json_array_size(hosts); i++)
		r = read_host(cluster, json_array_get(hosts, i), json_array_size(hosts) == 1 ? address : NULL,
			      text_of(document, "version"));
	return r;
}
