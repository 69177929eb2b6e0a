/* SPDX-License-Identifier: MIT */
/* pressure.c - pressure: how long tasks of the machine, and of cgroups, waited for a CPU, memory or I/O (PSI). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/metrics/sources.h"

bool pressure_parse(const char *text, const char *kind, struct pressure_row *ret)
{
	size_t n = strlen(kind);
	unsigned long long total_us;

	for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		double avg10, avg60, avg300;

		if (strncmp(line, kind, n) != 0 ||
		    sscanf(line + n, " avg10=%20lf avg60=%20lf avg300=%20lf total=%20llu", &avg10, &avg60, &avg300,
			   &total_us) != 4)
			continue;
		*ret = (struct pressure_row){ metric_scaled(total_us, 1000), avg10, avg60, avg300 };
		return true;
	}
	*ret = (struct pressure_row){ METRIC_UNKNOWN, NAN, NAN, NAN };
	return false;
}

static struct metric_value real(double value)
{
	return isfinite(value) ? metric_real(value) : (struct metric_value){ .type = METRIC_NULL };
}

static int put_row(const struct metrics *metrics, const struct metrics_moment *moment, const char *cgroup,
		   const char *resource, const char *text, const struct metric_sink *sink)
{
	struct pressure_row some, full;

	if (!text || !pressure_parse(text, "some", &some))
		return 0;
	(void)pressure_parse(text, "full", &full); /* a CPU has none before Linux 5.13 */
	const struct metric_value row[] = {
		metric_real(moment->seconds),
		metric_text(cgroup),
		metric_text(resource),
		metric_integer(some.ns),
		real(some.avg10),
		real(some.avg60),
		real(some.avg300),
		metric_integer(full.ns),
		real(full.avg10),
		real(full.avg60),
		real(full.avg300),
		metric_text(metrics->host),
	};

	return sink->put(sink->data, "pressure", row, N_ELEMENTS(row));
}

static int put(struct metrics *metrics, const struct metrics_moment *moment, const struct metric_sink *sink)
{
	static const struct {
		const char *resource, *file;
		enum machine_file machine;
	} resources[] = {
		{ "cpu", "cpu.pressure", FILE_PRESSURE_CPU },
		{ "memory", "memory.pressure", FILE_PRESSURE_MEMORY },
		{ "io", "io.pressure", FILE_PRESSURE_IO },
	};
	int r;

	r = cgroup_find(metrics, moment);
	for (size_t i = 0; i < N_ELEMENTS(resources) && r >= 0; i++) {
		const char *name = resources[i].resource;

		r = put_row(metrics, moment, "", name, metric_machine_file(metrics, resources[i].machine), sink);
		for (size_t k = 0; k < metrics->n_cgroups && r >= 0; k++) {
			struct kept_cgroup *cgroup = &metrics->cgroups[k];

			if (cgroup->controllers & CGROUP_V2)
				r = put_row(metrics, moment, cgroup->path, name,
					    cgroup_file(metrics, cgroup, CGROUP_V2, (unsigned)i, resources[i].file),
					    sink);
		}
	}
	return r;
}

const struct metric_source metric_pressure = { "pressure", put };
