/* SPDX-License-Identifier: MIT */
/* curl.h - libcurl, loaded when it is needed. Private.
 *
 * It brings some twenty libraries with it, whose start and end every run of probing would otherwise pay for.
 */
#ifndef PROBING_HTTP_CURL_H
#define PROBING_HTTP_CURL_H

#define CURL_DISABLE_TYPECHECK /* whose macros know the functions by name */
#include <curl/curl.h>

/* Its functions, without their prefix. */
#define CURL_FUNCTIONS(X)                                                                                              \
	X(easy_cleanup)                                                                                                \
	X(easy_getinfo)                                                                                                \
	X(easy_init)                                                                                                   \
	X(easy_perform)                                                                                                \
	X(easy_reset)                                                                                                  \
	X(easy_setopt)                                                                                                 \
	X(easy_strerror)                                                                                               \
	X(global_init)                                                                                                 \
	X(slist_append)                                                                                                \
	X(slist_free_all)

struct curl {
#define X(name) __typeof__(&curl_##name) name;
	CURL_FUNCTIONS(X)
#undef X
};
extern struct curl curl; /* after curl_load() */

/* curl_load - load it once; any thread. -ENOPKG: the library is not installed, or lacks a function. */
int curl_load(void);

#endif
