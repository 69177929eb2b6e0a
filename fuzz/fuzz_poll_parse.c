/* SPDX-License-Identifier: MIT */
/* fuzz_poll_parse.c - the files of /proc that a look reads.
 *
 * Whatever a text says, a name ends, and a list of children is read to an end.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/capture/poll_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void read_children(const char *text)
{
	const char *start = text, *end = text + strlen(text);
	size_t n = 0;

	while (poll_parse_child(&text) != 0)
		if (text > end || n++ > (size_t)(end - start))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	CLEANUP(freep) char *text = strndup((const char *)data, n_bytes);
	struct proc_call call;
	struct poll_stat stat;
	uint64_t ns, n;
	pid_t newest;

	if (!text)
		return 0;
	if (poll_parse_stat(text, &stat) == 0 && strnlen(stat.name, sizeof stat.name) == sizeof stat.name)
		abort();
	if (poll_parse_loadavg(text, &newest) == 0 && newest < 0)
		abort();
	(void)poll_parse_schedstat(text, &ns, &n);
	(void)poll_parse_status(text, &ns, &n);
	if (proc_call_parse(text, &call) == 0 && call.is_running && text[0] != 'r')
		abort();
	read_children(text);
	return 0;
}
