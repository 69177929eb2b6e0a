/* SPDX-License-Identifier: MIT */
/* curl.c - see curl.h. */
#include "src/http/curl.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/util.h"

struct curl curl;
static int loaded = -ENOPKG;

static bool take_functions(void *library)
{
	bool is_whole = true;

	/* POSIX guarantees that a function's address survives in a void *. */
#define X(name)                                                                                                        \
	*(void **)&curl.name = dlsym(library, "curl_" #name);                                                          \
	is_whole &= curl.name != NULL;
	CURL_FUNCTIONS(X)
#undef X
	return is_whole;
}

/* All of them have the same functions; distributions differ in the TLS library. */
static void load(void)
{
	static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };
	void *library = NULL;

	for (size_t i = 0; i < N_ELEMENTS(names) && !library; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (library && take_functions(library) && curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		loaded = 0;
}

int curl_load(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
	return loaded;
}
