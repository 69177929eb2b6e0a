/* input.h - a whole file in memory, or what comes on stdin. */
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
 * input_read - all of it. @path: "-" is stdin. @ret: ended with input_done(), also after an error.
 * Errors: -EISDIR; -ENODEV: a device, which may have no end; -ENOMEM; what open(2) and read(2) report.
 */
int input_read(const char *path, struct input *ret);
void input_done(struct input *input);

#endif
