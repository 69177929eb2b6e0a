/* SPDX-License-Identifier: MIT */
/* fuzz_serve_access.c - the headers by which a request of HTTP says who asks.
 *
 * Whatever they hold, without a secret nobody is known, and a foreign Host or Origin is refused.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/serve/access.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { N_HEADERS = 5 };

static void split(char *text, const char *values[N_HEADERS])
{
	for (unsigned i = 0; i < N_HEADERS; i++) {
		const char *value = strsep(&text, "\n");

		values[i] = value && value[0] ? value : NULL;
	}
}

static void check_place(const struct access *access, const struct access_claims *claims)
{
	if (access_same_place(access, claims))
		return;
	if (!claims->host ||
	    (!strcasestr(claims->host, "127.0.0.1:4242") && !strcasestr(claims->host, "localhost:4242")))
		abort();
	if (claims->origin && strncasecmp(claims->origin, "http://", 7) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct access access = { .port = 4242, .token = "a secret of the test", .lock = PTHREAD_MUTEX_INITIALIZER };
	struct access_claims claims;
	const char *values[N_HEADERS];
	char *text = malloc(n_bytes + 1);

	if (!text)
		abort();
	memcpy(text, data, n_bytes);
	text[n_bytes] = '\0';
	memset(access.link, 'l', sizeof access.link - 1);
	memset(access.cookie, 'c', sizeof access.cookie - 1);
	split(text, values);
	claims = (struct access_claims){ "GET", values[0], values[1], values[2], values[3], values[4] };
	check_place(&access, &claims);
	if (access_is_known(&access, &claims) &&
	    !(claims.authorization &&
	      (strstr(claims.authorization, access.token) || strstr(claims.authorization, access.link))) &&
	    !(claims.cookie && strstr(claims.cookie, access.cookie)))
		abort();
	free(text);
	return 0;
}
