/* SPDX-License-Identifier: MIT */
/* disk_usage.c - disk_usage: I/O of each block device. */
#include <stdio.h>
#include <string.h>

#include "src/metrics/sources.h"

enum { SECTOR_BYTES = 512 }; /* of this file, whatever the device has. Source: iostats.rst, Linux 6.12 */

bool disk_parse(const char *line, struct disk_row *ret)
{
	unsigned long long reads, read_sectors, read_ms, writes, written_sectors, write_ms, in_flight, busy_ms;

	if (sscanf(line, " %*u %*u %63s %20llu %*u %20llu %20llu %20llu %*u %20llu %20llu %20llu %20llu", ret->device,
		   &reads, &read_sectors, &read_ms, &writes, &written_sectors, &write_ms, &in_flight, &busy_ms) != 9)
		return false;
	ret->reads = metric_scaled(reads, 1);
	ret->read_bytes = metric_scaled(read_sectors, SECTOR_BYTES);
	ret->read_ns = metric_scaled(read_ms, 1000000);
	ret->writes = metric_scaled(writes, 1);
	ret->written_bytes = metric_scaled(written_sectors, SECTOR_BYTES);
	ret->write_ns = metric_scaled(write_ms, 1000000);
	ret->in_flight = metric_scaled(in_flight, 1);
	ret->busy_ns = metric_scaled(busy_ms, 1000000);
	return true;
}

static int put(struct metrics *metrics, const struct metrics_moment *moment, const struct metric_sink *sink)
{
	const char *text = metric_machine_file(metrics, FILE_DISKSTATS);
	int r = 0;

	for (const char *line = text; line && *line && r >= 0;
	     line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		struct disk_row disk;

		if (!disk_parse(line, &disk) || (disk.reads == 0 && disk.writes == 0))
			continue; /* an unused loop device */
		const struct metric_value row[] = {
			metric_real(moment->seconds),       metric_text(disk.device),
			metric_integer(disk.reads),         metric_integer(disk.read_bytes),
			metric_integer(disk.read_ns),       metric_integer(disk.writes),
			metric_integer(disk.written_bytes), metric_integer(disk.write_ns),
			metric_integer(disk.in_flight),     metric_integer(disk.busy_ns),
			metric_text(metrics->host),
		};

		r = sink->put(sink->data, "disk_usage", row, N_ELEMENTS(row));
	}
	return r;
}

const struct metric_source metric_disk_usage = { "disk_usage", put };
