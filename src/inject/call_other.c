/* SPDX-License-Identifier: MIT */
/* call_other.c - machines without support for signal frames: see call.h and call_x86_64.c. */
#include "src/inject/call.h"

#if !defined(__x86_64__)

#include <errno.h>

const char *call_refusal(void)
{
	return "the agent can be loaded into a running process on x86-64 only";
}

int call_find(const uint8_t *code, size_t n_bytes, uint64_t address, struct call *call)
{
	(void)code;
	(void)n_bytes;
	(void)address;
	(void)call;
	return -EOPNOTSUPP;
}

int call_look(struct call *call)
{
	(void)call;
	return -EOPNOTSUPP;
}

int call_begin(struct call *call)
{
	(void)call;
	return -EOPNOTSUPP;
}

int call_system(struct call *call, long number, const uint64_t arguments[6], int64_t *ret)
{
	(void)call;
	(void)number;
	(void)arguments;
	(void)ret;
	return -EOPNOTSUPP;
}

int call_function(struct call *call, uint64_t function, uint64_t argument)
{
	(void)call;
	(void)function;
	(void)argument;
	return -EOPNOTSUPP;
}

#endif
