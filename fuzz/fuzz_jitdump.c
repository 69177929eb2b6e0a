/* SPDX-License-Identifier: MIT */
/* fuzz_jitdump.c - a file as of jit-PID.dump, read while it grows.
 *
 * Whatever it holds: reading ends, an address that is found lies in the range
 * it was found in, lines are numbers above 0, and a file that did not grow has
 * nothing new.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "symbolize/jitdump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { HEADER_BYTES = 40, MAX_CHECKED = 200 };

static void expect(bool holds)
{
	if (!holds)
		abort();
}

static void append(int fd, const uint8_t *bytes, size_t n_bytes)
{
	expect(write(fd, bytes, n_bytes) == (ssize_t)n_bytes);
}

static void check_address(struct jitdump *dump, uint64_t address, uint64_t time_ns)
{
	const struct code_range *range;
	const char *file;
	int line;

	expect(code_ranges_find(&dump->ranges, address, time_ns, &range) == 0);
	if (!range)
		return;
	expect(range->start <= address && address < range->end && range->user < dump->n_functions);
	expect(strlen(code_range_name(&dump->ranges, range)) <= JITDUMP_MAX_NAME);
	jitdump_find_line(dump, range, address, &file, &line);
	expect(line >= 0 && (line > 0 || !file));
}

static void check(struct jitdump *dump)
{
	for (size_t i = 0; i < dump->ranges.n && i < MAX_CHECKED; i++) {
		const struct code_range range = dump->ranges.ranges[i];

		check_address(dump, range.start, range.since_ns);
		check_address(dump, range.end - 1, UINT64_MAX);
		check_address(dump, range.end, 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	size_t n_first = n_bytes > HEADER_BYTES ? HEADER_BYTES + data[n_bytes - 1] % (n_bytes - HEADER_BYTES) : n_bytes;
	CLEANUP(closep) int fd = memfd_create("jitdump", MFD_CLOEXEC);
	struct jitdump dump;

	expect(fd >= 0);
	append(fd, data, n_first);
	if (jitdump_open(fd, &dump) < 0)
		return 0;
	TAKE_FD(fd);
	expect(jitdump_read(&dump) >= 0);
	check(&dump);
	append(dump.fd, data + n_first, n_bytes - n_first);
	expect(jitdump_read(&dump) >= 0);
	expect(jitdump_read(&dump) == 0);
	check(&dump);
	jitdump_done(&dump);
	return 0;
}
