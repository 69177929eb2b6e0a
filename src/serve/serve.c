/* SPDX-License-Identifier: MIT */
/* serve.c - see serve.h.
 *
 * libmicrohttpd has a thread for each connection, so a slow client delays no other one. What a client can hold:
 * 1. a connection without a request that may be answered, for OPENING_MS;
 * 2. a connection that takes an answer, for SENDING_MS;
 * 3. one of MAX_COMMANDS commands, for their time, with a token only.
 * The main thread closes what is over its time: libmicrohttpd itself knows silence only, not a byte now and then.
 * Where there are many connections, a new one ends the oldest of those that have sent no token yet: whoever opens them in masses
 * ends their own.
 */
#include "src/serve/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "src/serve/access.h"
#include "src/serve/answers.h"
#include "src/serve/mhd.h"
#include "src/serve/rate.h"
#include "src/serve/worker.h"

enum {
	MAX_CONNECTIONS = 1500,
	SPARE_FILES = 100,            /* of commands, and of ours */
	MAX_CLIENT_CONNECTIONS = 120, /* of one address, for other machines */
	MAX_COMMANDS = 8,
	MAX_BODY = 1 << 20,
	HEADER_BYTES = 32 << 10, /* of a request, and of our buffers for it */
	STACK_BYTES = 512 << 10,
	SILENCE_S = 10,
	OPENING_MS = 15000,
	SENDING_MS = 120000,
	LINK_BYTES = 256,
};

/* A connection and the time by which it is closed. */
struct connection {
	int fd; /* -1: free */
	uint64_t deadline_ms, number;
	bool is_known; /* has sent a token */
};

struct serve {
	const struct serve_options *options;
	struct MHD_Daemon *daemon;
	struct access access;
	struct rate rate; /* of is_cluster */
	sem_t commands;
	struct workers *workers;
	int stop, listener;
	char link[LINK_BYTES];
	struct stat socket; /* as we made it; st_ino 0: none */
	pthread_mutex_t lock;
	struct connection connections[MAX_CONNECTIONS];
	size_t max_connections; /* at most MAX_CONNECTIONS */
	uint64_t n_opened;
};

/* A request on its way in. The body of a refused one is read, too: a client that still sends would miss the answer. */
struct pending {
	const struct path *path; /* NULL: refused, or the link */
	struct answer refusal;
	bool is_known; /* else its connection gets no more time */
	bool opens_link, gets_cookie;
	char *body;
	size_t n_body, allocated;
};

/* ---- Deadlines ---- */

static uint64_t now_ms(void)
{
	return monotonic_ns() / 1000000;
}

static void set_deadline(struct serve *serve, struct connection *connection, uint64_t deadline_ms)
{
	pthread_mutex_lock(&serve->lock);
	if (connection)
		connection->deadline_ms = deadline_ms;
	pthread_mutex_unlock(&serve->lock);
}

static void set_known(struct serve *serve, struct connection *connection)
{
	pthread_mutex_lock(&serve->lock);
	if (connection)
		connection->is_known = true;
	pthread_mutex_unlock(&serve->lock);
}

static struct connection *connection_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = mhd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* Locked. */
static void make_room(struct serve *serve)
{
	struct connection *oldest = NULL;
	size_t n = 0;

	for (size_t i = 0; i < MAX_CONNECTIONS; i++) {
		struct connection *connection = &serve->connections[i];

		n += connection->fd >= 0;
		if (connection->fd >= 0 && !connection->is_known && connection->deadline_ms > 0 &&
		    (!oldest || connection->number < oldest->number))
			oldest = connection;
	}
	if (n < serve->max_connections / 5 * 4 || !oldest)
		return;
	shutdown(oldest->fd, SHUT_RDWR);
	oldest->deadline_ms = 0; /* its thread closes it soon */
}

static void note_connection(void *data, struct MHD_Connection *connection, void **context,
			    enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info = mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct connection *slot = *context;
	struct serve *serve = data;

	pthread_mutex_lock(&serve->lock);
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		make_room(serve);
	if (code == MHD_CONNECTION_NOTIFY_CLOSED && slot)
		slot->fd = -1; /* before it is closed: nobody shuts down another one of that number */
	for (size_t i = 0; code == MHD_CONNECTION_NOTIFY_STARTED && info && i < MAX_CONNECTIONS; i++) {
		if (serve->connections[i].fd >= 0)
			continue;
		serve->connections[i] = (struct connection){ .fd = info->connect_fd,
							     .deadline_ms = now_ms() + OPENING_MS,
							     .number = serve->n_opened++ };
		*context = &serve->connections[i];
		break;
	}
	pthread_mutex_unlock(&serve->lock);
}

static void close_late_ones(struct serve *serve)
{
	uint64_t now = now_ms();

	pthread_mutex_lock(&serve->lock);
	for (size_t i = 0; i < MAX_CONNECTIONS; i++)
		if (serve->connections[i].fd >= 0 && serve->connections[i].deadline_ms < now)
			shutdown(serve->connections[i].fd, SHUT_RDWR);
	pthread_mutex_unlock(&serve->lock);
}

/* ---- Responses ---- */

/* Our page loads only itself. A picture has scripts inside, and no rights: another origin, and no requests. */
static const char page_policy[] = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
				  "frame-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
				  "frame-ancestors 'none'";
static const char picture_policy[] = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; "
				     "style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; "
				     "form-action 'none'; frame-ancestors 'self'";

static enum MHD_Result send_response(struct MHD_Connection *connection, unsigned status, struct MHD_Response *response)
{
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	result = mhd.queue_response(connection, status, response);
	mhd.destroy_response(response);
	return result;
}

static void add_headers(struct MHD_Response *response, const char *type, bool is_picture)
{
	mhd.add_response_header(response, "Content-Type", type ? type : "application/json");
	mhd.add_response_header(response, "Content-Security-Policy", is_picture ? picture_policy : page_policy);
	mhd.add_response_header(response, "X-Content-Type-Options", "nosniff");
	mhd.add_response_header(response, "X-Frame-Options", is_picture ? "SAMEORIGIN" : "DENY");
	mhd.add_response_header(response, "Referrer-Policy", "no-referrer");
	mhd.add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
	mhd.add_response_header(response, "Cross-Origin-Opener-Policy", "same-origin");
	mhd.add_response_header(response, "Cache-Control", "no-store");
}

static enum MHD_Result send_answer(struct MHD_Connection *connection, struct answer *answer)
{
	struct MHD_Response *response;

	if (answer->stream)
		response = stream_respond(answer->stream);
	else if (answer->fixed)
		response = mhd.create_response_from_buffer(strlen(answer->fixed), (void *)answer->fixed,
							   MHD_RESPMEM_PERSISTENT);
	else
		response = mhd.create_response_from_buffer(answer->n_body, answer->body, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(answer->body);
		return MHD_NO;
	}
	add_headers(response, answer->type, answer->is_picture);
	if (answer->note[0])
		mhd.add_response_header(response, "Probing-Note", answer->note);
	if (answer->status == MHD_HTTP_UNAUTHORIZED)
		mhd.add_response_header(response, "WWW-Authenticate", "Bearer");
	return send_response(connection, answer->status, response);
}

/* The browser gets its cookie, and goes on to a URL without the token. */
static enum MHD_Result open_link(struct serve *serve, struct MHD_Connection *connection, bool is_new)
{
	struct MHD_Response *response = mhd.create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
	char name[32], cookie[32 + ACCESS_SECRET_BYTES + 64];

	if (!response)
		return MHD_NO;
	add_headers(response, "text/plain", false);
	mhd.add_response_header(response, "Location", "/");
	access_cookie_name(&serve->access, name);
	snprintf(cookie, sizeof cookie, "%s=%s; HttpOnly; SameSite=Strict; Path=/", name, serve->access.cookie);
	if (is_new)
		mhd.add_response_header(response, "Set-Cookie", cookie);
	return send_response(connection, MHD_HTTP_SEE_OTHER, response);
}

/* ---- Requests ---- */

static const char *header(struct MHD_Connection *connection, const char *name)
{
	return mhd.lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* 0, or the status that refuses a body before it is read. libmicrohttpd has checked the number's form. */
static unsigned judge_body(struct MHD_Connection *connection)
{
	const char *length = header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);

	if (header(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING))
		return MHD_HTTP_LENGTH_REQUIRED;
	return length && strtoull(length, NULL, 10) > MAX_BODY ? HTTP_TOO_LARGE : 0;
}

static const struct sockaddr *client_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

	return info ? info->client_addr : NULL;
}

/* Judge a request by its headers. */
static void admit(struct serve *serve, struct MHD_Connection *connection, const char *name, const char *method,
		  struct pending *ret)
{
	const struct access_claims claims = {
		.method = method,
		.host = header(connection, MHD_HTTP_HEADER_HOST),
		.origin = header(connection, MHD_HTTP_HEADER_ORIGIN),
		.site = header(connection, "Sec-Fetch-Site"),
		.authorization = header(connection, MHD_HTTP_HEADER_AUTHORIZATION),
		.cookie = header(connection, MHD_HTTP_HEADER_COOKIE),
	};
	const char *wrong = access_same_place(&serve->access, &claims);
	const char *token = mhd.lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token");
	bool is_other, is_known = !wrong && access_is_known(&serve->access, &claims);
	const struct path *path = path_find(method, name, &is_other);
	uint64_t wait_ms = 0;

	ret->is_known = is_known;
	if (serve->options->is_cluster && !rate_take(&serve->rate, client_of(connection), is_known, now_ms(), &wait_ms))
		answer_fail(&ret->refusal, HTTP_TOO_MANY, "too many requests: the next one is taken in %ju s",
			    (uintmax_t)(wait_ms + 999) / 1000);
	else if (wrong)
		answer_fail(&ret->refusal, MHD_HTTP_FORBIDDEN, "%s", wrong);
	else if (path && token && strcmp(name, "/") == 0) {
		ret->opens_link = is_known || access_open_link(&serve->access, token);
		ret->gets_cookie = !is_known;
		if (!ret->opens_link)
			answer_fail(
				&ret->refusal, MHD_HTTP_FORBIDDEN,
				"this link is wrong, or was opened before: start probing serve again for another one");
	} else if (!is_known && !(path && path->is_for_all))
		answer_fail(&ret->refusal, MHD_HTTP_UNAUTHORIZED,
			    "open the link that probing serve has printed, or send Authorization: Bearer TOKEN");
	else if (!path)
		answer_fail(&ret->refusal, is_other ? MHD_HTTP_METHOD_NOT_ALLOWED : MHD_HTTP_NOT_FOUND, "%s",
			    is_other ? "this path needs another method" : "there is no such path");
	else
		ret->path = path;
}

/* A body that would not be read to its end is refused at once, whoever sends it. */
static enum MHD_Result begin(struct serve *serve, struct MHD_Connection *connection, const char *name,
			     const char *method, void **state)
{
	unsigned status = judge_body(connection);
	struct answer answer = { 0 };
	struct pending *pending;

	if (status != 0) {
		answer_fail(&answer, status, "%s",
			    status == MHD_HTTP_LENGTH_REQUIRED ? "send the body with its Content-Length"
							       : "a body may have 1 MiB");
		return send_answer(connection, &answer);
	}
	pending = calloc(1, sizeof *pending);
	if (!pending)
		return MHD_NO;
	admit(serve, connection, name, method, pending);
	if (pending->is_known)
		set_known(serve, connection_of(connection));
	*state = pending;
	return MHD_YES;
}

static enum MHD_Result take_body(struct pending *pending, const char *bytes, size_t *n)
{
	if (!pending->path) {
		*n = 0;
		return MHD_YES;
	}
	if (pending->n_body + *n > MAX_BODY || grow(&pending->body, pending->n_body + *n, &pending->allocated, 1) < 0)
		return MHD_NO;
	memcpy(pending->body + pending->n_body, bytes, *n);
	pending->n_body += *n;
	*n = 0;
	return MHD_YES;
}

static enum MHD_Result take_request(void *data, struct MHD_Connection *connection, const char *name, const char *method,
				    const char *version, const char *bytes, size_t *n_bytes, void **state)
{
	struct connection *slot = connection_of(connection);
	struct pending *pending = *state;
	struct serve *serve = data;
	struct answer answer = { 0 };

	(void)version;
	if (!pending)
		return begin(serve, connection, name, method, state);
	if (*n_bytes > 0)
		return take_body(pending, bytes, n_bytes);
	if (pending->opens_link)
		return open_link(serve, connection, pending->gets_cookie);
	if (!pending->path) {
		answer = pending->refusal;
		pending->refusal = (struct answer){ 0 };
		return send_answer(connection, &answer);
	}
	if (pending->is_known)
		set_deadline(serve, slot, UINT64_MAX); /* the answer has a deadline of its own */
	mhd.set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0U);
	pending->path->answer(&(struct request){ serve->options, connection, name, pending->body ? pending->body : "",
						 pending->n_body, &serve->commands, serve->stop, serve->workers },
			      &answer);
	if (pending->is_known)
		set_deadline(serve, slot, now_ms() + SENDING_MS + (uint64_t)(answer.stream_s * 1000));
	if (!answer.stream) /* whose verb may be silent for longer */
		mhd.set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)SILENCE_S);
	return send_answer(connection, &answer);
}

static void end_request(void *data, struct MHD_Connection *connection, void **state,
			enum MHD_RequestTerminationCode how)
{
	struct pending *pending = *state;
	struct serve *serve = data;

	(void)how;
	if (pending && pending->is_known)
		set_deadline(serve, connection_of(connection), now_ms() + OPENING_MS);
	if (pending && pending->path)
		mhd.set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)SILENCE_S);
	if (pending) {
		free(pending->refusal.body);
		free(pending->body);
	}
	free(pending);
	*state = NULL;
}

/* ---- Sockets ---- */

/* The port's place in an address of either family. */
static in_port_t *port_of(struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)address)->sin6_port
					      : &((struct sockaddr_in *)address)->sin_port;
}

static const void *host_of(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6 ? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
					      : (const void *)&((const struct sockaddr_in *)address)->sin_addr;
}

/* @where: gets the port that was chosen. [::] takes IPv4, too. */
static int listen_tcp(struct sockaddr_storage *where, uint16_t *ret_port)
{
	CLEANUP(closep) int fd = socket(where->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = where->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	int on = 1, off = 0;

	if (fd < 0)
		return -errno;
	if (where->ss_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 || bind(fd, (struct sockaddr *)where, n) < 0 ||
	    listen(fd, SOMAXCONN) < 0 || getsockname(fd, (struct sockaddr *)where, &n) < 0)
		return -errno;
	*ret_port = ntohs(*port_of(where));
	return TAKE_FD(fd);
}

/* For the user alone from its first moment on. */
static int listen_unix(const char *path, struct stat *ret)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	CLEANUP(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	mode_t mask;
	int r;

	if (fd < 0)
		return -errno;
	if (strlen(path) >= sizeof address.sun_path)
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	mask = umask(0177);
	r = bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ? -errno : 0;
	umask(mask);
	if (r < 0)
		return r;
	if (lstat(path, ret) < 0 || listen(fd, SOMAXCONN) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int listen_as_asked(struct serve *serve)
{
	const struct serve_options *options = serve->options;
	struct sockaddr_storage where = { 0 };
	char name[INET6_ADDRSTRLEN] = "";
	bool is_v6;
	int r;

	*(struct sockaddr_in *)&where = (struct sockaddr_in){ .sin_family = AF_INET,
							      .sin_port = htons(options->port),
							      .sin_addr = { htonl(INADDR_LOOPBACK) } };
	if (options->is_cluster)
		where = options->address;
	is_v6 = where.ss_family == AF_INET6;
	serve->access.is_remote = options->is_cluster;
	serve->listener = options->socket ? listen_unix(options->socket, &serve->socket)
					  : listen_tcp(&where, &serve->access.port);
	if (serve->listener < 0)
		return serve->listener;
	if (options->socket)
		r = snprintf(serve->link, sizeof serve->link, "%s", options->socket);
	else if (options->is_cluster)
		r = snprintf(serve->link, sizeof serve->link, "%s://%s%s%s:%u", options->certificate ? "https" : "http",
			     is_v6 ? "[" : "",
			     inet_ntop(where.ss_family, host_of(&where), name, sizeof name) ? name : "",
			     is_v6 ? "]" : "", serve->access.port);
	else
		r = snprintf(serve->link, sizeof serve->link, "http://127.0.0.1:%u/?token=%s", serve->access.port,
			     serve->access.link);
	return r < (int)sizeof serve->link ? 0 : -ENAMETOOLONG;
}

/* ---- From start to end ---- */

/* Shells give 1024 descriptors, of which a connection takes one. Returns how many connections there may be. */
static size_t raise_files(void)
{
	const rlim_t wanted = MAX_CONNECTIONS + SPARE_FILES;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return SPARE_FILES;
	if (limit.rlim_cur < wanted) {
		limit.rlim_cur = MIN(limit.rlim_max, wanted);
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	return MIN((size_t)MAX_CONNECTIONS, (size_t)MAX(limit.rlim_cur, (rlim_t)2 * SPARE_FILES) - SPARE_FILES);
}

int serve_open(const struct serve_options *options, struct serve **ret)
{
	static const char tls_versions[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
	CLEANUP(serve_closep) struct serve *serve = calloc(1, sizeof *serve);
	struct MHD_OptionItem tls[4] = { { MHD_OPTION_END, 0, NULL },
					 { MHD_OPTION_END, 0, NULL },
					 { MHD_OPTION_END, 0, NULL },
					 { MHD_OPTION_END, 0, NULL } };
	unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC;
	int r;

	if (!serve)
		return -ENOMEM;
	serve->max_connections = raise_files();
	serve->options = options;
	serve->listener = -1;
	pthread_mutex_init(&serve->lock, NULL);
	rate_init(&serve->rate);
	sem_init(&serve->commands, 0, MAX_COMMANDS);
	for (size_t i = 0; i < MAX_CONNECTIONS; i++)
		serve->connections[i].fd = -1;
	serve->stop = eventfd(0, EFD_CLOEXEC);
	if (serve->stop < 0)
		return -errno;
	r = workers_new(options->n_targets, &serve->workers);
	if (r >= 0)
		r = access_init(&serve->access, options->token);
	if (r >= 0 && mhd_load() < 0)
		r = -ENOPKG;
	if (r >= 0)
		r = listen_as_asked(serve);
	if (r < 0)
		return r;
	if (options->certificate && mhd.is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
		return -EPROTONOSUPPORT;
	if (options->certificate) {
		flags |= MHD_USE_TLS;
		tls[0] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)options->certificate };
		tls[1] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)options->key };
		tls[2] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)tls_versions };
	}
	errno = 0;
	serve->daemon = mhd.start_daemon(
		flags, 0, NULL, NULL, take_request, serve, MHD_OPTION_LISTEN_SOCKET, serve->listener,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)serve->max_connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
		options->is_cluster ? (unsigned)MAX_CLIENT_CONNECTIONS : 0U, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)SILENCE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES,
		MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES, MHD_OPTION_NOTIFY_CONNECTION, note_connection, serve,
		MHD_OPTION_NOTIFY_COMPLETED, end_request, serve, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
	if (!serve->daemon && options->certificate)
		return -EKEYREJECTED;
	if (!serve->daemon)
		return errno ? -errno : -ENOMEM;
	serve->listener = -1; /* the daemon closes it */
	*ret = TAKE(serve);
	return 0;
}

const char *serve_link(const struct serve *serve)
{
	return serve->link;
}

int serve_run(struct serve *serve, const sigset_t *ends)
{
	const struct timespec second = { .tv_sec = 1 };

	while (sigtimedwait(ends, NULL, &second) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		close_late_ones(serve);
		workers_end_idle(serve->workers);
	}
	return 0;
}

void serve_close(struct serve *serve)
{
	struct stat now;

	if (!serve)
		return;
	if (serve->stop >= 0)
		eventfd_write(serve->stop, 1);
	if (serve->daemon)
		mhd.stop_daemon(serve->daemon);
	workers_free(serve->workers);
	if (serve->listener >= 0)
		close(serve->listener);
	if (serve->socket.st_ino != 0 && lstat(serve->options->socket, &now) == 0 &&
	    now.st_ino == serve->socket.st_ino && now.st_dev == serve->socket.st_dev)
		unlink(serve->options->socket);
	if (serve->stop >= 0)
		close(serve->stop);
	sem_destroy(&serve->commands);
	pthread_mutex_destroy(&serve->rate.lock);
	pthread_mutex_destroy(&serve->lock);
	free(serve);
}

void serve_closep(struct serve **serve)
{
	serve_close(*serve);
}
