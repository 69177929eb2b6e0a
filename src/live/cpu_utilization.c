/* SPDX-License-Identifier: MIT */
/* cpu_utilization.c - cpu.utilization: time of the machine's CPUs by kind since boot. */
#include "base/util.h"
#include "src/live/parse.h"
#include "src/live/rows.h"
#include "src/live/tables.h"

#include <string.h>

enum { MAX_STAT = 8 << 20 };

static void put_cpu(struct live_rows *rows, const struct cpu_line *cpu)
{
	uint64_t busy = cpu->user + cpu->nice + cpu->system + cpu->irq + cpu->softirq + cpu->steal;
	uint64_t idle = cpu->idle + cpu->iowait;

	live_integer(rows, cpu->cpu);
	live_real(rows, busy + idle > 0 ? (double)busy / (double)(busy + idle) : 0);
	live_real(rows, live_seconds(cpu->user));
	live_real(rows, live_seconds(cpu->nice));
	live_real(rows, live_seconds(cpu->system));
	live_real(rows, live_seconds(cpu->idle));
	live_real(rows, live_seconds(cpu->iowait));
	live_real(rows, live_seconds(cpu->irq));
	live_real(rows, live_seconds(cpu->softirq));
	live_real(rows, live_seconds(cpu->steal));
}

static int read_cpus(struct live *live, struct live_rows *rows)
{
	CLEANUP(freep) char *text = NULL;
	struct cpu_line cpu;
	char *rest, *line;
	int r;

	(void)live;
	r = read_file("/proc/stat", MAX_STAT, &text, NULL);
	if (r < 0)
		return r;
	rest = text;
	while ((line = strsep(&rest, "\n")) != NULL)
		if (parse_cpu(line, &cpu))
			put_cpu(rows, &cpu);
	return 0;
}

const struct live_table live_cpu_utilization = {
	.schema = "cpu",
	.name = "utilization",
	.read = read_cpus,
};
