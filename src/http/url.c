/* SPDX-License-Identifier: MIT */
/* url.c - addresses as users write them. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "src/http/http.h"

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Copies a part without its %XX. Control characters are in no address. */
static int unescape(const char *from, size_t n, char *to, size_t n_bytes)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		int c = (unsigned char)from[i];

		if (c == '%') {
			if (i + 2 >= n || digit_of(from[i + 1]) < 0 || digit_of(from[i + 2]) < 0)
				return -EINVAL;
			c = digit_of(from[i + 1]) * 16 + digit_of(from[i + 2]);
			i += 2;
		}
		if (c < 0x20 || c == 0x7f)
			return -EINVAL;
		if (at + 1 >= n_bytes)
			return -ENAMETOOLONG;
		to[at++] = (char)c;
	}
	to[at] = '\0';
	return 0;
}

static int parse_port(const char *from, size_t n, unsigned *ret)
{
	unsigned port = 0;

	if (n == 0 || n > 5)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (from[i] < '0' || from[i] > '9')
			return -EINVAL;
		port = port * 10 + (unsigned)(from[i] - '0');
	}
	if (port == 0 || port > 65535)
		return -EINVAL;
	*ret = port;
	return 0;
}

/* Letters of a name or an address: nothing that would end it in a URL. */
static bool is_host(const char *host)
{
	return host[0] &&
	       host[strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:")] == '\0';
}

/* HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT. */
static int parse_host(const char *from, size_t n, struct http_place *place)
{
	const char *end, *rest;
	struct in6_addr address;
	int r;

	if (n > 0 && from[0] == '[') {
		end = memchr(from, ']', n);
		if (!end)
			return -EINVAL;
		r = unescape(from + 1, (size_t)(end - from - 1), place->host, sizeof place->host);
		if (r == 0 && inet_pton(AF_INET6, place->host, &address) != 1)
			return -EINVAL;
		rest = end + 1;
	} else {
		end = memchr(from, ':', n);
		rest = end ? end : from + n;
		r = unescape(from, (size_t)(rest - from), place->host, sizeof place->host);
		if (r == 0 && (!is_host(place->host) || strchr(place->host, ':')))
			return -EINVAL;
	}
	if (r < 0 || rest == from + n)
		return r;
	return *rest == ':' ? parse_port(rest + 1, (size_t)(from + n - rest - 1), &place->port) : -EINVAL;
}

/* USER in front of the "@". */
static int parse_user(const char *from, size_t n, struct http_place *place)
{
	return memchr(from, ':', n) ? -EPERM : unescape(from, n, place->user, sizeof place->user);
}

int http_place_parse(const char *text, struct http_place *ret)
{
	struct http_place place = { .is_https = strncasecmp(text, "https://", 8) == 0 };
	const char *from, *end, *at;
	int r = 0;

	if (!place.is_https && strncasecmp(text, "http://", 7) != 0)
		return -EINVAL;
	from = text + (place.is_https ? 8 : 7);
	if (strlen(text) >= HTTP_MAX_URL)
		return -ENAMETOOLONG;
	if (strpbrk(from, "?#\\"))
		return -EINVAL;
	end = from + strcspn(from, "/");
	at = memrchr(from, '@', (size_t)(end - from));
	if (at)
		r = parse_user(from, (size_t)(at - from), &place);
	if (r == 0) {
		from = at ? at + 1 : from;
		r = parse_host(from, (size_t)(end - from), &place);
	}
	if (r == 0 && *end)
		r = unescape(end + 1, strlen(end + 1), place.path, sizeof place.path);
	if (r == 0)
		*ret = place;
	return r;
}

int http_place_base(const struct http_place *place, unsigned port, char *to, size_t n_bytes)
{
	bool is_address = strchr(place->host, ':') != NULL;
	int n = snprintf(to, n_bytes, "http%s://%s%s%s:%u", place->is_https ? "s" : "", is_address ? "[" : "",
			 place->host, is_address ? "]" : "", place->port ? place->port : port);

	return n < 0 || (size_t)n >= n_bytes ? -ENAMETOOLONG : 0;
}

bool http_place_is_local(const struct http_place *place)
{
	struct in_addr v4;
	struct in6_addr v6;

	if (inet_pton(AF_INET, place->host, &v4) == 1)
		return (ntohl(v4.s_addr) >> 24) == 127;
	if (inet_pton(AF_INET6, place->host, &v6) == 1)
		return IN6_IS_ADDR_LOOPBACK(&v6);
	return strcasecmp(place->host, "localhost") == 0;
}

int http_escape(const char *text, char *to, size_t n_bytes)
{
	size_t at = 0;

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		bool is_plain = (c < 0x80 && isalnum(c)) || strchr("-._~", c);

		if (at + (is_plain ? 1 : 3) >= n_bytes)
			return -ENAMETOOLONG;
		at += (size_t)snprintf(to + at, n_bytes - at, is_plain ? "%c" : "%%%02X", c);
	}
	if (at >= n_bytes)
		return -ENAMETOOLONG;
	to[at] = '\0';
	return 0;
}
