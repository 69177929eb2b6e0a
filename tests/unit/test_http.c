/* SPDX-License-Identifier: MIT */
/* Requests over HTTP against a server of the test, addresses, headers and secrets. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/http/http.h"

/* ---- A server: one answer for each request, by its path ---- */

static struct server {
	int listener;
	unsigned port, n_connections, n_requests;
	pthread_t thread;
	char last[1 << 16]; /* the last request */
} server;

static size_t body_bytes(const char *request)
{
	const char *length = strcasestr(request, "\r\nContent-Length:");

	return length ? strtoul(length + 17, NULL, 10) : 0;
}

/* Reads one request into server.last, whose former contents the test may look at until then. */
static bool read_request(int fd)
{
	static char bytes[sizeof server.last];
	size_t n = 0;

	for (;;) {
		ssize_t got = read(fd, bytes + n, sizeof bytes - 1 - n);
		const char *end;

		if (got <= 0)
			return false;
		n += (size_t)got;
		bytes[n] = '\0';
		end = strstr(bytes, "\r\n\r\n");
		if (!end || n < (size_t)(end + 4 - bytes) + body_bytes(bytes))
			continue;
		memcpy(server.last, bytes, n + 1);
		server.n_requests++;
		return true;
	}
}

static void write_all(int fd, const char *text)
{
	size_t n = strlen(text);

	if (write(fd, text, n) != (ssize_t)n)
		abort();
}

/* false: the connection ends. */
static bool answer(int fd)
{
	if (strstr(server.last, " /lost "))
		return false;
	if (strstr(server.last, " /half ")) {
		write_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
		return false;
	}
	if (strstr(server.last, " /silent ")) {
		usleep(400000);
		return false;
	}
	if (strstr(server.last, " /wrong "))
		write_all(fd, "HTTP/1.1 500 Wrong\r\nX-Code: 241\r\nContent-Length: 6\r\n\r\nno way");
	else if (strstr(server.last, " /elsewhere "))
		write_all(fd, "HTTP/1.1 307 There\r\nLocation: /good\r\nContent-Length: 0\r\n\r\n");
	else
		write_all(fd, "HTTP/1.1 200 OK\r\nX-Code:  7 \r\nContent-Length: 5\r\n\r\nhello");
	return true;
}

static void *serve(void *data)
{
	int fd;

	(void)data;
	while ((fd = accept(server.listener, NULL, NULL)) >= 0) {
		/* Connections are served one after the other, and may stay open. */
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_sec = 1 }, sizeof(struct timeval));
		server.n_connections++;
		while (read_request(fd) && answer(fd))
			;
		close(fd);
	}
	return NULL;
}

static int start_server(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof address;

	(void)state;
	server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(server.listener, (struct sockaddr *)&address, n) != 0 || listen(server.listener, 8) != 0 ||
	    getsockname(server.listener, (struct sockaddr *)&address, &n) != 0)
		return -1;
	server.port = ntohs(address.sin_port);
	return pthread_create(&server.thread, NULL, serve, NULL);
}

static int stop_server(void **state)
{
	(void)state;
	shutdown(server.listener, SHUT_RDWR);
	pthread_join(server.thread, NULL);
	return close(server.listener);
}

static struct http *open_or_skip(const struct http_options *options)
{
	struct http *http = NULL;
	int r = http_open(options, &http);

	if (r == -EOPNOTSUPP || r == -ENOPKG)
		skip();
	assert_int_equal(r, 0);
	return http;
}

static int send_to(struct http *http, const char *method, const char *path, const char *body, struct http_answer *ret)
{
	static const char *const headers[] = { "X-Mine: yes", NULL };
	char url[64];

	snprintf(url, sizeof url, "http://127.0.0.1:%u%s", server.port, path);
	return http_send(http,
			 &(struct http_request){ .method = method,
						 .url = url,
						 .headers = headers,
						 .body = body,
						 .n_body = body ? strlen(body) : 0,
						 .max_answer = 64 },
			 ret);
}

static void requests_share_a_connection(void **state)
{
	CLEANUP(http_closep) struct http *http = open_or_skip(&(struct http_options){ .user = "me", .password = "x" });
	unsigned before = server.n_connections;
	struct http_answer got = { 0 };

	(void)state;
	assert_int_equal(send_to(http, "POST", "/good", "text", &got), 0);
	assert_int_equal(got.status, 200);
	assert_string_equal(got.body, "hello");
	assert_string_equal(http_header(http, "x-code"), "7");
	assert_null(http_header(http, "x-other"));
	assert_non_null(strstr(server.last, "Content-Length: 4\r\n"));
	assert_non_null(strstr(server.last, "Authorization: Basic bWU6eA==\r\n"));
	assert_non_null(strstr(server.last, "X-Mine: yes\r\n"));
	assert_null(strstr(server.last, "Expect:"));
	assert_null(strcasestr(server.last, "Transfer-Encoding"));
	assert_string_equal(strstr(server.last, "\r\n\r\n"), "\r\n\r\ntext");
	assert_int_equal(send_to(http, "POST", "/good", NULL, &got), 0);
	assert_non_null(strstr(server.last, "Content-Length: 0\r\n"));
	assert_int_equal(send_to(http, "GET", "/wrong", NULL, &got), 0);
	assert_int_equal(got.status, 500);
	assert_string_equal(got.body, "no way");
	assert_string_equal(http_header(http, "X-Code"), "241");
	assert_int_equal(server.n_connections, before + 1);
}

static void a_redirection_is_an_answer(void **state)
{
	CLEANUP(http_closep) struct http *http = open_or_skip(&(struct http_options){ 0 });
	struct http_answer got = { 0 };

	(void)state;
	assert_int_equal(send_to(http, "GET", "/elsewhere", NULL, &got), 0);
	assert_int_equal(got.status, 307);
}

/* libcurl repeats a request whose connection was used before and ended without an answer. */
static void a_request_that_is_once_is_sent_once(void **state)
{
	CLEANUP(http_closep) struct http *http = open_or_skip(&(struct http_options){ 0 });
	struct http_answer got = { 0 };
	unsigned before;
	char url[64];

	(void)state;
	snprintf(url, sizeof url, "http://127.0.0.1:%u/lost", server.port);
	assert_int_equal(send_to(http, "GET", "/wrong", NULL, &got), 0);
	before = server.n_requests;
	assert_int_equal(send_to(http, "POST", "/lost", "b", &got), -ECONNRESET);
	assert_int_equal(server.n_requests, before + 2);
	http_close(TAKE(http));
	http = open_or_skip(&(struct http_options){ 0 });
	assert_int_equal(send_to(http, "GET", "/wrong", NULL, &got), 0);
	before = server.n_requests;
	assert_int_equal(http_send(http,
				   &(struct http_request){
					   .method = "POST", .url = url, .body = "b", .n_body = 1, .is_once = true },
				   &got),
			 -ECONNRESET);
	assert_int_equal(server.n_requests, before + 1);
}

static bool never(void *data)
{
	(void)data;
	return false;
}

static void each_fault_has_its_error(void **state)
{
	CLEANUP(http_closep) struct http *http = open_or_skip(&(struct http_options){ 0 });
	CLEANUP(http_closep) struct http *hasty = open_or_skip(&(struct http_options){ .timeout_ms = 200 });
	CLEANUP(http_closep) struct http *stopped = open_or_skip(&(struct http_options){ .keep_going = never });
	struct http_answer got = { 0 };
	char url[64];

	(void)state;
	assert_int_equal(send_to(http, "POST", "/lost", "b", &got), -ECONNRESET);
	assert_true(http_error(http)[0] != '\0');
	assert_int_equal(send_to(http, "GET", "/half", NULL, &got), -ECONNRESET);
	assert_int_equal(send_to(hasty, "GET", "/silent", NULL, &got), -ETIMEDOUT);
	assert_int_equal(http_send(http, &(struct http_request){ .method = "GET", .url = "file:///etc/passwd" }, &got),
			 -EINVAL);
	snprintf(url, sizeof url, "http://127.0.0.1:%u/good", server.port);
	assert_int_equal(http_send(http, &(struct http_request){ .method = "GET", .url = url, .max_answer = 4 }, &got),
			 -EMSGSIZE);
	assert_int_equal(http_send(http, &(struct http_request){ .method = "GET", .url = "http://127.0.0.1:1/" }, &got),
			 -ECONNREFUSED);
	assert_int_equal(send_to(stopped, "GET", "/silent", NULL, &got), -ECANCELED);
	assert_int_equal(send_to(http, "GET", "/good", NULL, &got), 0); /* it is as good as new */
	assert_int_equal(got.status, 200);
}

static int keep(void *data, const void *bytes, size_t n)
{
	strncat(data, bytes, n);
	return strlen(data) > 5 ? -EIO : 0;
}

static void a_body_is_taken_piece_by_piece(void **state)
{
	CLEANUP(http_closep) struct http *http = open_or_skip(&(struct http_options){ 0 });
	struct http_answer got = { 0 };
	char url[64], text[64] = "";
	struct http_request request = { .method = "GET", .url = url, .take = keep, .take_data = text };

	(void)state;
	snprintf(url, sizeof url, "http://127.0.0.1:%u/good", server.port);
	assert_int_equal(http_send(http, &request, &got), 0);
	assert_string_equal(text, "hello");
	assert_int_equal(got.n_body, 0);
	assert_int_equal(http_send(http, &request, &got), -EIO);
	snprintf(url, sizeof url, "http://127.0.0.1:%u/wrong", server.port);
	text[0] = '\0';
	assert_int_equal(http_send(http, &request, &got), 0);
	assert_string_equal(got.body, "no way"); /* an error's text is no result */
	assert_string_equal(text, "");
}

/* ---- Without a server ---- */

static void addresses_are_taken_apart(void **state)
{
	struct http_place place;
	char text[128];

	(void)state;
	assert_int_equal(http_place_parse("https://a%20b@ch.example:8443/prod", &place), 0);
	assert_true(place.is_https);
	assert_string_equal(place.user, "a b");
	assert_string_equal(place.host, "ch.example");
	assert_int_equal(place.port, 8443);
	assert_string_equal(place.path, "prod");
	assert_int_equal(http_place_base(&place, 1, text, sizeof text), 0);
	assert_string_equal(text, "https://ch.example:8443");
	assert_false(http_place_is_local(&place));
	assert_int_equal(http_place_parse("http://[::1]", &place), 0);
	assert_int_equal(http_place_base(&place, 8123, text, sizeof text), 0);
	assert_string_equal(text, "http://[::1]:8123");
	assert_true(http_place_is_local(&place));
	assert_int_equal(http_place_base(&place, 8123, text, 8), -ENAMETOOLONG);
	assert_int_equal(http_escape("a b/\"", text, sizeof text), 0);
	assert_string_equal(text, "a%20b%2F%22");
	assert_int_equal(http_escape("a b", text, 5), -ENAMETOOLONG);
}

static void other_addresses_are_refused(void **state)
{
	static const char *const wrong[] = { "",
					     "ch.example",
					     "ftp://a",
					     "http://",
					     "http://a:0",
					     "http://a:99999",
					     "http://a:b",
					     "http://a?b",
					     "http://a#b",
					     "http://a b",
					     "http://[::1",
					     "http://[x]",
					     "http://[::1]x",
					     "http://a%0d",
					     "http://a%zz",
					     "http://a%2fb" };
	struct http_place place;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(wrong); i++)
		assert_int_equal(http_place_parse(wrong[i], &place), -EINVAL);
	assert_int_equal(http_place_parse("https://user:secret@host/", &place), -EPERM);
}

static void headers_are_found(void **state)
{
	static const char lines[] = "HTTP/1.1 200 OK\r\nA:1\r\nAB: 2 \r\na: 3\r\nEmpty:";
	char value[4];

	(void)state;
	assert_true(http_find_header(lines, sizeof lines - 1, "A", value, sizeof value));
	assert_string_equal(value, "3");
	assert_true(http_find_header(lines, sizeof lines - 1, "ab", value, sizeof value));
	assert_string_equal(value, "2");
	assert_true(http_find_header(lines, sizeof lines - 1, "Empty", value, sizeof value));
	assert_string_equal(value, "");
	assert_false(http_find_header(lines, sizeof lines - 1, "B", value, sizeof value));
	assert_true(http_find_header("L: 12345678", 11, "L", value, sizeof value));
	assert_string_equal(value, "123");
}

static void a_secret_is_a_files_first_line(void **state)
{
	char path[] = "/tmp/test_http.XXXXXX", *secret = NULL;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(http_read_secret(path, &secret), -ENODATA);
	assert_int_equal(write(fd, "pass word\r\nrest\n", 16), 16);
	assert_int_equal(http_read_secret(path, &secret), 0);
	assert_string_equal(secret, "pass word");
	http_forget(secret);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(http_read_secret(path, &secret), -EMSGSIZE);
	close(fd);
	unlink(path);
	assert_int_equal(http_read_secret(path, &secret), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_share_a_connection),         cmocka_unit_test(a_redirection_is_an_answer),
		cmocka_unit_test(a_request_that_is_once_is_sent_once), cmocka_unit_test(each_fault_has_its_error),
		cmocka_unit_test(a_body_is_taken_piece_by_piece),      cmocka_unit_test(addresses_are_taken_apart),
		cmocka_unit_test(other_addresses_are_refused),         cmocka_unit_test(headers_are_found),
		cmocka_unit_test(a_secret_is_a_files_first_line),
	};

	return cmocka_run_group_tests_name("http", tests, start_server, stop_server);
}
