/* SPDX-License-Identifier: MIT */
/* fuzz_seccomp.c - the seccomp filter of another process, run on a system call.
 *
 * Whatever it is, it ends, reads nothing outside of the call, and leaves the answer alone where there is an error.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/inject/seccomp.h"

enum { MAX_CODE = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	CLEANUP(freep) struct sock_filter *code = NULL;
	CLEANUP(freep) struct seccomp_data *data = malloc(sizeof *data); /* so that a sanitizer sees its end */
	uint32_t answer = SECCOMP_RET_LOG;
	size_t n;
	int r;

	if (!data || n_bytes < sizeof *data)
		return 0;
	memcpy(data, bytes, sizeof *data);
	n = MIN((n_bytes - sizeof *data) / sizeof *code, (size_t)MAX_CODE);
	code = malloc(n * sizeof *code + 1);
	if (!code)
		return 0;
	memcpy(code, bytes + sizeof *data, n * sizeof *code);
	r = seccomp_run(code, n, data, &answer);
	if (r != 0 && (r != -EBADMSG || answer != SECCOMP_RET_LOG))
		abort();
	if (r == 0)
		(void)seccomp_ends(seccomp_stricter(answer, SECCOMP_RET_ALLOW));
	return 0;
}
