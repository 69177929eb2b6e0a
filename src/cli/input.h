/* SPDX-License-Identifier: MIT */
/* input.h - a whole file, or stdin, in memory, up to a limit. */
#ifndef PROBING_CLI_INPUT_H
#define PROBING_CLI_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input {
	uint8_t *bytes;
	size_t n_bytes, allocated;
	uint64_t modified_ns; /* CLOCK_REALTIME */
};

/*
 * input_read - read all bytes. @path: "-" is stdin. @ret: ended with input_done(), also after an error.
 * Errors: -EISDIR; -ENODEV: a device, which may be endless; -E2BIG more than input_most(); -ENOMEM; what open(2) and
 * read(2) report.
 */
int input_read(const char *path, struct input *ret);
/*
 * input_most - the limit in bytes: 8 GiB, half of this machine's memory, a quarter of ulimit -v. Converting
 * them takes memory, too.
 */
uint64_t input_most(void);
void input_done(struct input *input);

#endif
