/* SPDX-License-Identifier: MIT */
/* http_none.c - http.h in a build without libcurl. */
#include <errno.h>

#include "src/http/http.h"

int http_open(const struct http_options *options, struct http **ret)
{
	(void)options;
	(void)ret;
	return -EOPNOTSUPP;
}

int http_send(struct http *http, const struct http_request *request, struct http_answer *ret)
{
	(void)http;
	(void)request;
	(void)ret;
	return -EOPNOTSUPP;
}

const char *http_error(const struct http *http)
{
	(void)http;
	return "";
}

const char *http_header(struct http *http, const char *name)
{
	(void)http;
	(void)name;
	return NULL;
}

void http_close(struct http *http)
{
	(void)http;
}
