/* SPDX-License-Identifier: MIT */
/* serve_none.c - serve.h in a build without libmicrohttpd. */
#include <errno.h>

#include "src/serve/serve.h"

int serve_open(const struct serve_options *options, struct serve **ret)
{
	(void)options;
	(void)ret;
	return -EOPNOTSUPP;
}

const char *serve_link(const struct serve *serve)
{
	(void)serve;
	return "";
}

int serve_run(struct serve *serve, const sigset_t *ends)
{
	(void)serve;
	(void)ends;
	return -EOPNOTSUPP;
}

void serve_close(struct serve *serve)
{
	(void)serve;
}

void serve_closep(struct serve **serve)
{
	serve_close(*serve);
}
