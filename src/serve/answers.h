/* SPDX-License-Identifier: MIT */
/* answers.h - what each path answers, from the output of other verbs. A new one is a row in answers.c. */
#ifndef PROBING_SERVE_ANSWERS_H
#define PROBING_SERVE_ANSWERS_H

#include "src/serve/mhd.h"
#include <semaphore.h>

#include "src/serve/serve.h"

enum {
	ANSWER_NOTE_BYTES = 256,
	HTTP_TOO_MANY = 429,  /* RFC 6585 */
	HTTP_TOO_LARGE = 413, /* its name in libmicrohttpd depends on the version */
};

struct workers;
struct stream;

struct request {
	const struct serve_options *options;
	struct MHD_Connection *connection;
	const char *path; /* without parameters */
	const char *body; /* n_body bytes */
	size_t n_body;
	sem_t *commands; /* how many more may run at a time */
	int stop;        /* readable: end */
	struct workers *workers;
};

struct answer {
	unsigned status;
	const char *type;  /* of the content */
	const char *fixed; /* an embedded text, or NULL */
	char *body;        /* else n_body bytes, for free(3) */
	size_t n_body;
	char note[ANSWER_NOTE_BYTES]; /* a sentence for a header, ASCII; "": none */
	bool is_picture;              /* a page with scripts of its own, which get no rights */
	struct stream *stream;        /* instead of a body; stream_respond() takes it */
	double stream_s;              /* the time that it may take */
};

struct path {
	const char *method, *path;
	bool is_for_all; /* without a token */
	void (*answer)(const struct request *request, struct answer *ret);
};

/* path_find - NULL: there is none of that name. @method: a known path without it has @ret_other set. */
const struct path *path_find(const char *method, const char *name, bool *ret_other);

/* A sentence as JSON: {"error": "..."}. */
void answer_fail(struct answer *ret, unsigned status, const char *format, ...) __attribute__((format(printf, 3, 4)));

struct command_result;
/* A command that failed, or wrote too much: its first sentence, with a status of HTTP for its exit status. */
void answer_failure(struct command_result *result, struct answer *ret);

/* A document that is complete as the answer; its status is 200 unless @ret has one. */
struct json;
void answer_json(struct answer *ret, struct json *json);

/* A parameter of the URL; NULL: not given. */
const char *request_parameter(const struct request *request, const char *name);

/* The target that a parameter names, without it the first one; NULL: answered with an error. */
const struct serve_target *request_target(const struct request *request, const char *parameter, struct answer *ret);

/* A parameter: a whole number from low to high; -1: answered with an error. */
long request_number(const struct request *request, const char *name, long low, long high, long otherwise,
		    struct answer *ret);

/*
 * request_command - run a verb with the body as its input, whatever its exit status.
 * @result: set also on failure; ended with command_result_done().
 * Returns whether it ran; else @ret has the message.
 */
struct command_result;
bool request_command(const struct request *request, const char *const *words, double seconds,
		     struct command_result *result, struct answer *ret);

/*
 * request_run - answer with the output of a verb.
 * @words:   of the verb; ends with NULL.
 * @seconds: the time it may take.
 * Returns whether it succeeded; else @ret has its message.
 */
bool request_run(const struct request *request, const char *const *words, double seconds, struct answer *ret);

/* The parts of request_run(): whether a command may run now, else it is answered; the client's socket, -1: unknown. */
bool request_may_run(const struct request *request, struct answer *ret);
int request_client(const struct request *request);

/* Answer with what a command left. @r: of running it. @took: seconds. Returns whether it succeeded. */
bool answer_command(struct command_result *result, int r, double seconds, double took, struct answer *ret);

/* The first line of what a verb said, as a header may have it. @to: ANSWER_NOTE_BYTES. */
void answer_note(char *error, char *to);

/* request_stream - as request_run(), but the answer begins once 64 KiB of output are there, and may have any length (stream.c). */
bool request_stream(const struct request *request, const char *const *words, double seconds, struct answer *ret);

/* The response of such an answer; takes the stream also on failure (NULL: not enough memory). */
struct MHD_Response *stream_respond(struct stream *stream);

/* request_ask - answer with that of a target's worker (worker.h), whose verb has these words. The rest as request_run(). */
bool request_ask(const struct request *request, const struct serve_target *target, const char *const *words,
		 const char *line, double seconds, struct answer *ret);

/* Whether a process has not ended. */
bool target_is_running(const struct serve_target *target);

/* cluster_answers.c */
void answer_cluster(const struct request *request, struct answer *ret);
void answer_clock(const struct request *request, struct answer *ret);

/* ranks.c */
void answer_nodes(const struct request *request, struct answer *ret);
void answer_backtrace(const struct request *request, struct answer *ret);
void answer_ranks_query(const struct request *request, struct answer *ret);

/* metrics.c */
void answer_metrics(const struct request *request, struct answer *ret);
/* timeline.c */
void answer_timeline(const struct request *request, struct answer *ret);

/* eval.c */
void answer_eval(const struct request *request, struct answer *ret);

/* profiles.c */
void answer_flamegraph(const struct request *request, struct answer *ret);
void answer_compare(const struct request *request, struct answer *ret);

#endif
