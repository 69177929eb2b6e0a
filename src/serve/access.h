/* SPDX-License-Identifier: MIT */
/* access.h - who may ask: tokens, and the headers by which a browser says on whose behalf it asks.
 *
 * Invariants:
 * 1. The token of the link is good for one opening. It is also accepted as a bearer token until then.
 * 2. The cookie is another secret, which only that opening gets.
 * 3. Of other machines the token of the caller's choice is accepted alone; requests of web pages are refused.
 * 4. A foreign name in Host (DNS rebinding) or a foreign Origin (another site's page) is refused, whatever it knows.
 */
#ifndef PROBING_SERVE_ACCESS_H
#define PROBING_SERVE_ACCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { ACCESS_SECRET_BYTES = 65 }; /* 32 random bytes in hexadecimal, and a NUL */

struct access {
	uint16_t port;                    /* 0: a unix socket, whose mode decides */
	char link[ACCESS_SECRET_BYTES];   /* good once */
	char cookie[ACCESS_SECRET_BYTES]; /* of the browser that opened the link */
	const char *token;                /* of the caller's choice; NULL: none */
	bool is_remote;                   /* for other machines: the caller's token alone counts */
	bool is_link_used;                /* under lock */
	pthread_mutex_t lock;
};

/* What a request says about itself; NULL: it does not. */
struct access_claims {
	const char *method, *host, *origin, *site /* Sec-Fetch-Site */, *authorization, *cookie;
};

/* access_init - new secrets. @token: borrowed; NULL: none. Errors: what getrandom(2) reports. */
int access_init(struct access *access, const char *token);

/*
 * access_same_place - whether a request was meant for us and comes from our page, or from no page.
 * Returns NULL, or a sentence that says why not.
 */
const char *access_same_place(const struct access *access, const struct access_claims *claims);

/* Whether it holds a secret: "Authorization: Bearer TOKEN", or our cookie. Takes the same time for each wrong one. */
bool access_is_known(struct access *access, const struct access_claims *claims);

/* access_open_link - whether this is the link's token, for the first time. NULL is not. */
bool access_open_link(struct access *access, const char *token);

/* The cookie's name, which holds the port: cookies are shared by all ports of a host. */
void access_cookie_name(const struct access *access, char to[32]);

#endif
