/* SPDX-License-Identifier: MIT */
/* access.c - see access.h. */
#include "src/serve/access.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

/* 32 random bytes in hexadecimal. */
static int make_secret(char to[ACCESS_SECRET_BYTES])
{
	unsigned char bytes[(ACCESS_SECRET_BYTES - 1) / 2];

	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return -errno;
	for (size_t i = 0; i < sizeof bytes; i++)
		snprintf(to + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

int access_init(struct access *access, const char *token)
{
	int r;

	*access = (struct access){ .token = token, .lock = PTHREAD_MUTEX_INITIALIZER };
	r = make_secret(access->link);
	return r < 0 ? r : make_secret(access->cookie);
}

/* Compares all bytes, so that its time does not tell how many were right. Lengths are no secret. */
static bool same_secret(const char *given, size_t n, const char *secret)
{
	unsigned char differences = 0;

	if (n != strlen(secret))
		return false;
	for (size_t i = 0; i < n; i++)
		differences |= (unsigned char)(given[i] ^ secret[i]);
	return differences == 0;
}

/* "127.0.0.1:PORT" or "localhost:PORT"; a browser omits the port 80. */
static bool is_our_host(const struct access *access, const char *host)
{
	static const char *const names[] = { "127.0.0.1", "localhost" };
	char ours[32];

	for (unsigned i = 0; i < 2; i++) {
		snprintf(ours, sizeof ours, "%s:%u", names[i], access->port);
		if (strcasecmp(host, ours) == 0 || (access->port == 80 && strcasecmp(host, names[i]) == 0))
			return true;
	}
	return false;
}

static bool is_our_origin(const struct access *access, const char *origin)
{
	return strncasecmp(origin, "http://", 7) == 0 && is_our_host(access, origin + 7);
}

const char *access_same_place(const struct access *access, const struct access_claims *claims)
{
	if (access->port == 0) /* no browser reaches a unix socket by itself */
		return claims->origin ? "requests of web pages are refused on a unix socket" : NULL;
	if (access->is_remote)
		return claims->origin || claims->site ? "requests of web pages are refused" : NULL;
	if (!claims->host || !is_our_host(access, claims->host))
		return "the header Host must be 127.0.0.1 or localhost, with the port";
	if (claims->origin && !is_our_origin(access, claims->origin))
		return "requests of other sites are refused";
	return NULL;
}

/* The value of a cookie in "a=1; b=2"; NULL: there is none. */
static const char *cookie_value(const char *cookies, const char *name, size_t *ret_n)
{
	size_t n_name = strlen(name);

	while (*cookies) {
		size_t n;

		cookies += strspn(cookies, "; ");
		n = strcspn(cookies, ";");
		if (n > n_name && strncmp(cookies, name, n_name) == 0 && cookies[n_name] == '=') {
			*ret_n = n - n_name - 1;
			return cookies + n_name + 1;
		}
		cookies += n;
	}
	return NULL;
}

void access_cookie_name(const struct access *access, char to[32])
{
	snprintf(to, 32, "probing_%u", access->port);
}

/*
 * A browser sends the cookie of its own accord, so the page that asks must be ours: a browser that tells says so in
 * Sec-Fetch-Site ("none": typed by the user), and Origin comes with each POST.
 */
static bool has_cookie(const struct access *access, const struct access_claims *claims)
{
	char name[32];
	const char *value;
	size_t n;

	if (!claims->cookie)
		return false;
	if (claims->site && strcmp(claims->site, "same-origin") != 0 && strcmp(claims->site, "none") != 0)
		return false;
	if (strcmp(claims->method, "GET") != 0 && !claims->origin)
		return false;
	access_cookie_name(access, name);
	value = cookie_value(claims->cookie, name, &n);
	return value && same_secret(value, n, access->cookie);
}

static bool has_bearer(struct access *access, const struct access_claims *claims)
{
	const char *given = claims->authorization;
	bool is_used;
	size_t n;

	if (!given || strncasecmp(given, "Bearer ", 7) != 0)
		return false;
	given += 7;
	n = strlen(given);
	if (access->token && same_secret(given, n, access->token))
		return true;
	if (access->is_remote)
		return false;
	pthread_mutex_lock(&access->lock);
	is_used = access->is_link_used;
	pthread_mutex_unlock(&access->lock);
	return !is_used && same_secret(given, n, access->link);
}

bool access_is_known(struct access *access, const struct access_claims *claims)
{
	if (access->is_remote)
		return has_bearer(access, claims);
	return access->port == 0 || has_bearer(access, claims) || has_cookie(access, claims);
}

bool access_open_link(struct access *access, const char *token)
{
	bool is_first = false;

	if (access->is_remote || !token || !same_secret(token, strlen(token), access->link))
		return false;
	pthread_mutex_lock(&access->lock);
	is_first = !access->is_link_used;
	access->is_link_used = true;
	pthread_mutex_unlock(&access->lock);
	return is_first;
}
