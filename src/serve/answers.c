/* SPDX-License-Identifier: MIT */
/* answers.c - see answers.h. */
#include "src/serve/answers.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "src/serve/command.h"
#include "src/serve/page.h"
#include "src/serve/worker.h"

enum { MAX_SENTENCE = 1024, SHORT_SECONDS = 20, GRACE_S = 2 };

/* ---- Answers ---- */

void answer_json(struct answer *ret, struct json *json)
{
	FILE *out = open_memstream(&ret->body, &ret->n_body);
	int r = out ? to_json_finish(json, out) : -ENOMEM;

	if (out && fclose(out) != 0)
		r = -ENOMEM;
	ret->type = "application/json";
	if (ret->status == 0)
		ret->status = MHD_HTTP_OK;
	if (r < 0)
		ret->status = MHD_HTTP_INTERNAL_SERVER_ERROR;
}

void answer_fail(struct answer *ret, unsigned status, const char *format, ...)
{
	CLEANUP(freep) char *sentence = NULL;
	struct json json;
	va_list list;
	int n;

	va_start(list, format);
	n = vasprintf(&sentence, format, list);
	va_end(list);
	free(ret->body);
	*ret = (struct answer){ .status = status };
	to_json_keep(NULL, &json);
	to_json_object(&json);
	to_json_put_string(&json, "error", n < 0 ? "not enough memory" : sentence);
	to_json_object_end(&json);
	answer_json(ret, &json);
	to_json_done(&json);
}

static void answer_fixed(struct answer *ret, const char *type, const char *text)
{
	*ret = (struct answer){ .status = MHD_HTTP_OK, .type = type, .fixed = text };
}

/* ---- Verbs ---- */

/* The first line of what a verb said, without its prefix. */
static const char *first_sentence(char *error)
{
	static const char prefix[] = "probing: ";

	error[strcspn(error, "\n")] = '\0';
	return strncmp(error, prefix, strlen(prefix)) == 0 ? error + strlen(prefix) : error;
}

static unsigned http_status(int exit_status)
{
	switch (exit_status) {
	case 64: /* enum exit_status of src/cli/cli.h */
	case 65:
		return MHD_HTTP_BAD_REQUEST;
	case 66:
		return MHD_HTTP_NOT_FOUND;
	case 77:
		return MHD_HTTP_FORBIDDEN;
	default:
		return MHD_HTTP_INTERNAL_SERVER_ERROR;
	}
}

void answer_note(char *error, char *to)
{
	snprintf(to, ANSWER_NOTE_BYTES, "%.*s", ANSWER_NOTE_BYTES - 1, first_sentence(error));
	for (char *c = to; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

void answer_failure(struct command_result *result, struct answer *ret)
{
	const char *sentence = first_sentence(result->error);

	if (result->is_too_long)
		answer_fail(ret, HTTP_TOO_LARGE, "the answer is longer than %d MiB: ask for less",
			    COMMAND_MAX_OUTPUT >> 20);
	else
		answer_fail(ret, http_status(result->status), "%s", sentence[0] ? sentence : "probing failed");
}

/* A verb that ends itself at its limit is as late as one that is stopped. */
static bool judge(struct command_result *result, double seconds, double took, struct answer *ret)
{
	if (result->is_late || (result->status == 1 && took >= seconds))
		answer_fail(ret, MHD_HTTP_GATEWAY_TIMEOUT, "it took longer than %g s, and was stopped", seconds);
	else if (result->is_too_long || result->status != 0)
		answer_failure(result, ret);
	else {
		*ret = (struct answer){ .status = MHD_HTTP_OK, .body = TAKE(result->out), .n_body = result->n_out };
		answer_note(result->error, ret->note);
		return true;
	}
	return false;
}

int request_client(const struct request *request)
{
	const union MHD_ConnectionInfo *info = mhd.get_connection_info(request->connection,
								       MHD_CONNECTION_INFO_CONNECTION_FD);

	return info ? info->connect_fd : -1;
}

bool request_may_run(const struct request *request, struct answer *ret)
{
	if (sem_trywait(request->commands) == 0)
		return true;
	answer_fail(ret, MHD_HTTP_SERVICE_UNAVAILABLE, "too many requests are being answered: ask again");
	return false;
}

/* Whether a command ran. @r: of running it. */
static bool has_run(int r, struct answer *ret)
{
	if (r == -ECANCELED)
		answer_fail(ret, MHD_HTTP_SERVICE_UNAVAILABLE, "probing serve is ending");
	else if (r < 0)
		answer_fail(ret, MHD_HTTP_INTERNAL_SERVER_ERROR, "probing cannot be started: %s", strerror(-r));
	return r >= 0;
}

bool answer_command(struct command_result *result, int r, double seconds, double took, struct answer *ret)
{
	return has_run(r, ret) && judge(result, seconds, took, ret);
}

bool request_command(const struct request *request, const char *const *words, double seconds,
		     struct command_result *result, struct answer *ret)
{
	int r;

	*result = (struct command_result){ 0 };
	if (!request_may_run(request, ret))
		return false;
	r = command_run(words, request->body, request->n_body, seconds + GRACE_S, request->stop,
			request_client(request), result);
	sem_post(request->commands);
	return has_run(r, ret);
}

bool request_run(const struct request *request, const char *const *words, double seconds, struct answer *ret)
{
	struct command_result result;
	uint64_t start_ns = monotonic_ns();
	bool is_good = request_command(request, words, seconds, &result, ret) &&
		       judge(&result, seconds, (double)(monotonic_ns() - start_ns) / 1e9, ret);

	command_result_done(&result);
	return is_good;
}

bool request_ask(const struct request *request, const struct serve_target *target, const char *const *words,
		 const char *line, double seconds, struct answer *ret)
{
	struct command_result result;
	bool is_good;
	int r;

	if (!request_may_run(request, ret))
		return false;
	r = worker_ask(request->workers, (size_t)(target - request->options->targets), words, line, seconds,
		       request->stop, request_client(request), &result);
	sem_post(request->commands);
	is_good = answer_command(&result, r, seconds, 0, ret);
	command_result_done(&result);
	return is_good;
}

/* ---- Parameters ---- */

const char *request_parameter(const struct request *request, const char *name)
{
	return mhd.lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

static bool accepts(const struct request *request, const char *type)
{
	const char *accept = mhd.lookup_connection_value(request->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);

	return accept && strcasestr(accept, type) != NULL;
}

bool target_is_running(const struct serve_target *target)
{
	struct pollfd ended = { .fd = target->pidfd, .events = POLLIN };

	return poll(&ended, 1, 0) == 0;
}

const struct serve_target *request_target(const struct request *request, const char *parameter, struct answer *ret)
{
	const struct serve_options *options = request->options;
	const char *name = request_parameter(request, parameter);

	for (size_t i = 0; i < options->n_targets; i++) {
		const struct serve_target *target = &options->targets[i];

		if (name && strcmp(name, target->name) != 0)
			continue;
		if (target->pid == 0 || target_is_running(target))
			return target;
		answer_fail(ret, MHD_HTTP_GONE, "process %s has ended", target->name);
		return NULL;
	}
	answer_fail(ret, MHD_HTTP_NOT_FOUND, "%s is not served here: /apis/overview lists the targets",
		    name ? name : "a recording or a process");
	return NULL;
}

long request_number(const struct request *request, const char *name, long low, long high, long otherwise,
		    struct answer *ret)
{
	const char *text = request_parameter(request, name);
	char *end;
	long value;

	if (!text)
		return otherwise;
	value = strtol(text, &end, 10);
	if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && value >= low && value <= high)
		return value;
	answer_fail(ret, MHD_HTTP_BAD_REQUEST, "%s needs a number from %ld to %ld", name, low, high);
	return -1;
}

/* ---- Paths ---- */

/* What a client accepts, and the format that gives it. */
struct form {
	const char *accepted, *format, *type;
};

/* JSON unless another one is asked for. */
static const struct form *form_of(const struct request *request)
{
	static const struct form forms[] = {
		{ "text/csv", "csv", "text/csv; charset=utf-8" },
		{ "application/vnd.apache.arrow.stream", "arrow", "application/vnd.apache.arrow.stream" },
		{ "", "json", "application/json" },
	};
	const struct form *form = forms;

	while (form->accepted[0] && !accepts(request, form->accepted))
		form++;
	return form;
}

static void answer_query(const struct request *request, struct answer *ret)
{
	const struct serve_target *target = request_target(request, "target", ret);
	const struct serve_options *options = request->options;
	const char *sent = mhd.lookup_connection_value(request->connection, MHD_HEADER_KIND,
						       MHD_HTTP_HEADER_CONTENT_TYPE);
	const struct form *form = form_of(request);
	const char *stream = request_parameter(request, "stream");
	char rows[32], seconds[32], memory[32];
	const char *words[] = { "sql",      "--no-attach", "--format",  form->format,
				"--limit",  rows,          "--timeout", seconds,
				"--memory", memory,        "--",        target ? target->word : NULL,
				NULL };

	if (!target)
		return;
	if (sent && strncasecmp(sent, "application/json", strlen("application/json")) == 0) {
		answer_fail(ret, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "send the SQL text itself, as text/plain");
		return;
	}
	if (request->n_body == 0) {
		answer_fail(ret, MHD_HTTP_BAD_REQUEST, "the body must be SQL text");
		return;
	}
	snprintf(rows, sizeof rows, "%llu", (unsigned long long)options->max_rows);
	snprintf(seconds, sizeof seconds, "%.3f", options->timeout_s);
	snprintf(memory, sizeof memory, "%llu", (unsigned long long)options->max_memory);
	if (stream && strcmp(stream, "1") != 0)
		answer_fail(ret, MHD_HTTP_BAD_REQUEST, "stream is 1, or absent");
	else if ((stream ? request_stream : request_run)(request, words, options->timeout_s, ret))
		ret->type = form->type;
}

static void answer_callstack(const struct request *request, struct answer *ret)
{
	const struct serve_target *target = request_target(request, "target", ret);
	bool is_json = accepts(request, "application/json");
	char thread[24] = "", line[32];
	const char *words[] = { "backtrace", "--", NULL, NULL, NULL };
	long tid;

	if (!target)
		return;
	if (target->pid == 0) {
		answer_fail(ret, MHD_HTTP_BAD_REQUEST, "%s is a %s: only processes have current stacks", target->name,
			    target->is_fleet ? "fleet" : "recording");
		return;
	}
	tid = request_number(request, "tid", 1, 1 << 22, 0, ret);
	if (tid < 0)
		return;
	if (tid > 0)
		snprintf(thread, sizeof thread, "%ld", tid);
	if (is_json) { /* a page asks again and again */
		snprintf(line, sizeof line, "%s\n", thread);
		if (request_ask(request, target,
				(const char *const[]){ "backtrace", "--requests", "--", target->word, NULL }, line,
				SHORT_SECONDS, ret))
			ret->type = "application/json";
		return;
	}
	words[2] = target->word;
	words[3] = tid > 0 ? thread : NULL;
	if (request_run(request, words, SHORT_SECONDS, ret))
		ret->type = "text/plain; charset=utf-8";
}

static void put_process(const struct serve_target *target, struct json *json)
{
	to_json_put_string(json, "kind", "process");
	to_json_put_integer(json, "pid", target->pid);
	to_json_put_text(json, "command", target->command);
	to_json_put_text(json, "python", target->python);
	to_json_put_bool(json, "running", target_is_running(target));
}

/* "probing info --json" writes an array of one object. */
static void put_recording(const struct request *request, const struct serve_target *target, struct json *json)
{
	const char *words[] = { "info", "--json", "--", target->word, NULL };
	struct answer answer = { 0 };
	bool is_good = request_run(request, words, SHORT_SECONDS, &answer);
	const char *begin = is_good ? memchr(answer.body, '{', answer.n_body) : NULL;
	const char *end = begin ? memrchr(answer.body, '}', answer.n_body) : NULL;

	to_json_put_string(json, "kind", "recording");
	if (is_good && end) {
		to_json_key(json, "info");
		to_json_raw(json, begin, (size_t)(end - begin) + 1);
	} else if (!is_good && answer.body) {
		to_json_key(json, "failure");
		to_json_raw(json, answer.body, strcspn(answer.body, "\n"));
	}
	free(answer.body);
}

static void answer_overview(const struct request *request, struct answer *ret)
{
	const struct serve_options *options = request->options;
	struct json json;

	to_json_keep(NULL, &json);
	to_json_object(&json);
	to_json_put_array(&json, "targets");
	for (size_t i = 0; i < options->n_targets; i++) {
		const struct serve_target *target = &options->targets[i];

		to_json_object(&json);
		to_json_put_string(&json, "target", target->name);
		if (target->pid != 0)
			put_process(target, &json);
		else if (target->is_fleet)
			to_json_put_string(&json, "kind", "fleet");
		else
			put_recording(request, target, &json);
		to_json_object_end(&json);
	}
	to_json_array_end(&json);
	to_json_put_bool(&json, "html", options->has_html);
	to_json_put_bool(&json, "eval", options->allows_eval);
	to_json_put_text(&json, "hosts", options->hosts ? options->hosts : "");
	to_json_object_end(&json);
	ret->status = MHD_HTTP_OK;
	answer_json(ret, &json);
	to_json_done(&json);
}

static void answer_health(const struct request *request, struct answer *ret)
{
	(void)request;
	answer_fixed(ret, "application/json", "{\"status\": \"ok\"}\n");
}

/* ---- The page ---- */

static const struct page_file *page_find(const char *path)
{
	for (const struct page_file *file = page_files; file->path; file++)
		if (strcmp(file->path, strcmp(path, "/") == 0 ? "/serve/page/index.html" : path) == 0)
			return file;
	return NULL;
}

/* For paths that page_find() knows. */
static void answer_page(const struct request *request, struct answer *ret)
{
	const struct page_file *file = page_find(request->path);

	answer_fixed(ret, file->type, file->text);
}

static void answer_openapi(const struct request *request, struct answer *ret)
{
	(void)request;
	answer_fixed(ret, "application/json", page_find("/serve/openapi.json")->text);
}

static const struct path page_path = { "GET", NULL, false, answer_page };

static const struct path paths[] = {
	{ "GET", "/openapi.json", false, answer_openapi },
	{ "GET", "/health", true, answer_health },
	{ "GET", "/metrics", false, answer_metrics },
	{ "POST", "/query", false, answer_query },
	{ "GET", "/apis/overview", false, answer_overview },
	{ "GET", "/apis/nodes", false, answer_nodes },
	{ "GET", "/apis/backtrace", false, answer_backtrace },
	{ "POST", "/apis/ranks/query", false, answer_ranks_query },
	{ "GET", "/apis/flamegraph", false, answer_flamegraph },
	{ "GET", "/apis/timeline", false, answer_timeline },
	{ "GET", "/apis/compare", false, answer_compare },
	{ "GET", "/apis/pythonext/callstack", false, answer_callstack },
	{ "POST", "/apis/pythonext/eval", false, answer_eval },
	{ "POST", "/cluster", false, answer_cluster },
	{ "GET", "/clock", false, answer_clock },
};

const struct path *path_find(const char *method, const char *name, bool *ret_other)
{
	*ret_other = false;
	for (size_t i = 0; i < N_ELEMENTS(paths); i++) {
		if (strcmp(paths[i].path, name) != 0)
			continue;
		if (strcmp(paths[i].method, method) == 0)
			return &paths[i];
		*ret_other = true;
	}
	if (page_find(name)) {
		*ret_other = strcmp(method, "GET") != 0;
		return *ret_other ? NULL : &page_path;
	}
	return NULL;
}
