/* SPDX-License-Identifier: MIT */
/* fuzz_descriptor.c - lines of /proc that say what descriptors are.
 *
 * Whatever a line says, a text that is made of it ends, and of a set of descriptors no more is kept than there is room for.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/descriptor.h"
#include "base/util.h"
#include "base/wait_call.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void check(bool is_one, uint64_t inode, const char *text)
{
	if (is_one && (inode == 0 || strnlen(text, DESCRIPTOR_TEXT_BYTES) == DESCRIPTOR_TEXT_BYTES))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	CLEANUP(freep) char *line = strndup((const char *)data, n_bytes);
	char text[DESCRIPTOR_TEXT_BYTES];
	struct wait_call call = { 0 };
	unsigned major_number, minor_number;
	uint64_t inode = 0;
	pid_t pid = 0;
	bool is_one;

	if (!line)
		return 0;
	is_one = descriptor_parse_inet(line, "tcp6", &inode, text);
	check(is_one, inode, text);
	is_one = descriptor_parse_unix(line, &inode, text);
	check(is_one, inode, text);
	if (descriptor_parse_lock(line, &pid, &major_number, &minor_number, &inode) && pid <= 0)
		abort();
	(void)descriptor_socket_inode(line);
	wait_call_parse_epoll(line, &call);
	if (call.n_descriptors > WAIT_MAX_DESCRIPTORS || (call.n_more > 0 && call.n_descriptors < WAIT_MAX_DESCRIPTORS))
		abort();
	return 0;
}
