/* SPDX-License-Identifier: MIT */
/*
 * stream.c - the output of a verb as an answer that is sent while the verb runs.
 *
 * What fits into the first buffer is an ordinary answer, so most failures have a status of their own. A later failure can only
 * cut the connection: the client misses the last chunk. The note comes behind the body, as a trailer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/serve/answers.h"
#include "src/serve/command.h"

enum { FIRST_BYTES = 64 << 10, GRACE_S = 2 };

struct stream {
	struct command command;
	sem_t *commands; /* one of which is ours */
	struct MHD_Response *response;
	size_t n_first, n_sent; /* of the first bytes */
	char first[FIRST_BYTES];
};

static void stream_free(void *data)
{
	struct stream *stream = data;
	struct command_result result = { 0 };

	if (!stream)
		return;
	if (stream->command.pid != 0)
		command_close(&stream->command, -ECONNRESET, &result);
	sem_post(stream->commands);
	free(stream);
}

/* Behind the last byte. */
static ssize_t finish(struct stream *stream, ssize_t n)
{
	struct command_result result = { 0 };
	char note[ANSWER_NOTE_BYTES] = "";
	int r = command_close(&stream->command, (int)n, &result);

	if (r < 0 || result.is_late || result.status != 0)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	answer_note(result.error, note);
	if (note[0])
		mhd.add_response_footer(stream->response, "Probing-Note", note);
	return MHD_CONTENT_READER_END_OF_STREAM;
}

static ssize_t read_stream(void *data, uint64_t at, char *to, size_t n_bytes)
{
	struct stream *stream = data;
	size_t n = MIN(n_bytes, stream->n_first - stream->n_sent);
	ssize_t got;

	(void)at;
	if (n > 0) {
		memcpy(to, stream->first + stream->n_sent, n);
		stream->n_sent += n;
		return (ssize_t)n;
	}
	if (stream->command.pid == 0)
		return MHD_CONTENT_READER_END_OF_STREAM;
	got = command_read(&stream->command, to, n_bytes);
	return got > 0 ? got : finish(stream, got);
}

struct MHD_Response *stream_respond(struct stream *stream)
{
	stream->response = mhd.create_response_from_callback(MHD_SIZE_UNKNOWN, FIRST_BYTES, read_stream, stream,
							     stream_free);
	if (!stream->response)
		stream_free(stream);
	return stream->response;
}

/* As much as there is, until the first buffer is full. */
static ssize_t read_first(struct stream *stream)
{
	ssize_t n = 1;

	while (n > 0 && stream->n_first < FIRST_BYTES) {
		n = command_read(&stream->command, stream->first + stream->n_first, FIRST_BYTES - stream->n_first);
		stream->n_first += n > 0 ? (size_t)n : 0;
	}
	return n;
}

/* A verb that has ended before the first buffer was full. */
static bool answer_whole(struct stream *stream, ssize_t n, double seconds, uint64_t start_ns, struct answer *ret)
{
	struct command_result result = { 0 };
	int r = command_close(&stream->command, (int)n, &result);
	bool is_good;

	result.out = malloc(stream->n_first + 1);
	if (!result.out) {
		answer_fail(ret, MHD_HTTP_INTERNAL_SERVER_ERROR, "not enough memory");
		return false;
	}
	memcpy(result.out, stream->first, stream->n_first);
	result.n_out = stream->n_first;
	is_good = answer_command(&result, r, seconds, (double)(monotonic_ns() - start_ns) / 1e9, ret);
	command_result_done(&result);
	return is_good;
}

bool request_stream(const struct request *request, const char *const *words, double seconds, struct answer *ret)
{
	struct stream *stream = calloc(1, sizeof *stream);
	uint64_t start_ns = monotonic_ns();
	bool is_good;
	ssize_t n;
	int r;

	if (!stream) {
		answer_fail(ret, MHD_HTTP_INTERNAL_SERVER_ERROR, "not enough memory");
		return false;
	}
	if (!request_may_run(request, ret)) {
		free(stream);
		return false;
	}
	stream->commands = request->commands;
	r = command_open(words, request->body, request->n_body, seconds + GRACE_S, request->stop,
			 request_client(request), &stream->command);
	if (r < 0) {
		answer_fail(ret, MHD_HTTP_INTERNAL_SERVER_ERROR, "probing cannot be started: %s", strerror(-r));
		stream_free(stream);
		return false;
	}
	n = read_first(stream);
	if (n > 0) {
		*ret = (struct answer){ .status = MHD_HTTP_OK, .stream = stream, .stream_s = seconds };
		return true;
	}
	is_good = answer_whole(stream, n, seconds, start_ns, ret);
	stream_free(stream);
	return is_good;
}
