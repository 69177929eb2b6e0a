/* SPDX-License-Identifier: MIT */
/* Who may ask over HTTP: tokens, cookies, and the headers of browsers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/serve/access.h"

enum { PORT = 4242 };

static int setup(void **state)
{
	static struct access access;

	assert_int_equal(access_init(&access, "0123456789abcdef"), 0);
	access.port = PORT;
	*state = &access;
	return 0;
}

static void only_our_own_host_is_meant(void **state)
{
	static const char *const foreign[] = {
		"evil.example:4242",   "127.0.0.1", "127.0.0.1:4243", "127.0.0.1:42420", "localhost.evil:4242",
		"127.0.0.1:4242@evil", ""
	};
	struct access_claims claims = { .method = "GET", .host = "127.0.0.1:4242" };

	assert_null(access_same_place(*state, &claims));
	claims.host = "LocalHost:4242";
	assert_null(access_same_place(*state, &claims));
	claims.host = NULL;
	assert_non_null(access_same_place(*state, &claims));
	for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
		claims.host = foreign[i];
		assert_non_null(access_same_place(*state, &claims));
	}
}

static void other_sites_are_refused(void **state)
{
	static const char *const foreign[] = { "http://evil.example", "https://127.0.0.1:4242", "null",
					       "http://127.0.0.1:4243", "" };
	struct access_claims claims = { .method = "POST", .host = "127.0.0.1:4242", .origin = "http://127.0.0.1:4242" };

	assert_null(access_same_place(*state, &claims));
	for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
		claims.origin = foreign[i];
		assert_non_null(access_same_place(*state, &claims));
	}
}

static void the_link_opens_once(void **state)
{
	struct access *access = *state;
	char bearer[128], link[ACCESS_SECRET_BYTES];
	const struct access_claims claims = { .method = "GET", .authorization = bearer };

	snprintf(link, sizeof link, "%s", access->link);
	snprintf(bearer, sizeof bearer, "Bearer %s", link);
	assert_true(access_is_known(access, &claims));
	assert_false(access_open_link(access, NULL));
	assert_false(access_open_link(access, ""));
	link[5] = link[5] == 'a' ? 'b' : 'a';
	assert_false(access_open_link(access, link));
	assert_true(access_open_link(access, access->link));
	assert_false(access_open_link(access, access->link));
	assert_false(access_is_known(access, &claims));
}

static void a_bearer_has_the_whole_token(void **state)
{
	static const char *const wrong[] = {
		"Bearer 0123456789abcde", "Bearer 0123456789abcdeg", "Bearer ", "Bearer",
		"Basic 0123456789abcdef", "0123456789abcdef",        "",        "Bearer 0123456789abcdef "
	};
	struct access_claims claims = { .method = "POST", .authorization = "bearer 0123456789abcdef" };

	assert_true(access_is_known(*state, &claims));
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		claims.authorization = wrong[i];
		assert_false(access_is_known(*state, &claims));
	}
}

static void a_cookie_serves_our_own_page_alone(void **state)
{
	struct access *access = *state;
	char cookies[256];
	struct access_claims claims = { .method = "GET", .cookie = cookies };

	snprintf(cookies, sizeof cookies, "a=1; probing_4242=%s; b=2", access->cookie);
	assert_true(access_is_known(access, &claims));
	claims.site = "same-origin";
	assert_true(access_is_known(access, &claims));
	claims.site = "same-site"; /* another port of this machine */
	assert_false(access_is_known(access, &claims));
	claims.site = "cross-site";
	assert_false(access_is_known(access, &claims));
	claims.site = NULL;
	claims.method = "POST"; /* a browser sends Origin with it */
	assert_false(access_is_known(access, &claims));
	claims.origin = "http://127.0.0.1:4242";
	assert_true(access_is_known(access, &claims));
	snprintf(cookies, sizeof cookies, "probing_4243=%s", access->cookie);
	assert_false(access_is_known(access, &claims));
	snprintf(cookies, sizeof cookies, "probing_4242=");
	assert_false(access_is_known(access, &claims));
}

static void secrets_differ(void **state)
{
	struct access *access = *state, other;

	assert_int_equal(access_init(&other, NULL), 0);
	assert_int_equal(strlen(access->link), ACCESS_SECRET_BYTES - 1);
	assert_int_not_equal(strcmp(access->link, access->cookie), 0);
	assert_int_not_equal(strcmp(access->link, other.link), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(only_our_own_host_is_meant, setup),
		cmocka_unit_test_setup(other_sites_are_refused, setup),
		cmocka_unit_test_setup(the_link_opens_once, setup),
		cmocka_unit_test_setup(a_bearer_has_the_whole_token, setup),
		cmocka_unit_test_setup(a_cookie_serves_our_own_page_alone, setup),
		cmocka_unit_test_setup(secrets_differ, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
