/* SPDX-License-Identifier: MIT */
/* metrics.c - process_usage and machine_usage in the text format of Prometheus.
 *
 * Source: prometheus.io, "Exposition formats", text format 0.0.4: all lines of a metric together, below its HELP and TYPE.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/serve/answers.h"

struct metric {
	const char *name, *column, *type, *help;
};

/* Columns of the catalogue, in SQL: numbers only. */
static const struct metric of_process[] = {
	{ "probing_process_resident_bytes", "rss", "gauge", "Resident memory, shared pages included." },
	{ "probing_process_swapped_bytes", "swap", "gauge", "Memory swapped out." },
	{ "probing_process_threads", "threads", "gauge", "Threads." },
	{ "probing_process_user_seconds_total", "user_ns / 1e9", "counter", "CPU time in the program." },
	{ "probing_process_system_seconds_total", "system_ns / 1e9", "counter", "CPU time in the kernel." },
	{ "probing_process_major_faults_total", "major_faults", "counter", "Page faults that waited for storage." },
	{ "probing_process_read_bytes_total", "read_bytes", "counter", "Bytes read from storage." },
	{ "probing_process_written_bytes_total", "written_bytes", "counter", "Bytes written to storage." },
};
static const struct metric of_machine[] = {
	{ "probing_machine_user_seconds_total", "user_ns / 1e9", "counter", "CPU time in programs, of all CPUs." },
	{ "probing_machine_system_seconds_total", "system_ns / 1e9", "counter",
	  "CPU time in the kernel, of all CPUs." },
	{ "probing_machine_idle_seconds_total", "idle_ns / 1e9", "counter", "Idle time of all CPUs." },
	{ "probing_machine_memory_bytes", "memory", "gauge", "Memory of the machine." },
	{ "probing_machine_available_bytes", "available", "gauge", "Memory available without swapping." },
	{ "probing_machine_received_bytes_total", "received_bytes", "counter", "Bytes received, loopback excluded." },
	{ "probing_machine_sent_bytes_total", "sent_bytes", "counter", "Bytes sent, loopback excluded." },
};

enum { MAX_SQL = 1024, MAX_METRICS = 16, METRICS_SECONDS = 10 };

/* One row of numbers: "1,2.5,,7"; "" is NULL. */
struct reading {
	char *row; /* split by read_row() */
	const char *values[MAX_METRICS];
};

static void split(struct reading *reading, size_t n)
{
	char *rest = reading->row;

	rest[strcspn(rest, "\r\n")] = '\0';
	for (size_t i = 0; i < n; i++) {
		const char *value = strsep(&rest, ",");

		reading->values[i] = value ? value : "";
	}
}

/* @ret: values stay NULL if the process cannot be read. False: an error that concerns them all is in @failure. */
static bool read_row(const struct request *request, const struct serve_target *target, const struct metric *metrics,
		     size_t n, const char *table, struct reading *ret, struct answer *failure)
{
	char sql[MAX_SQL] = "SELECT ";
	size_t used = strlen(sql);
	struct request query = *request;
	struct answer answer = { 0 };
	const char *words[] = { "sql", "--format", "csv", "--no-header", "--", target->word, NULL };

	for (size_t i = 0; i < n && used < sizeof sql; i++)
		used += (size_t)snprintf(sql + used, sizeof sql - used, "%s%s", i > 0 ? ", " : "", metrics[i].column);
	if (used < sizeof sql)
		used += (size_t)snprintf(sql + used, sizeof sql - used, " FROM %s LIMIT 1", table);
	if (used >= sizeof sql) {
		answer_fail(failure, MHD_HTTP_INTERNAL_SERVER_ERROR, "too many metrics");
		return false;
	}
	query.body = sql;
	query.n_body = used;
	if (!request_run(&query, words, METRICS_SECONDS, &answer)) {
		bool is_its_own = answer.status == MHD_HTTP_FORBIDDEN || answer.status == MHD_HTTP_NOT_FOUND;

		if (is_its_own) /* ended, or another user's */
			free(answer.body);
		else
			*failure = answer;
		return is_its_own;
	}
	ret->row = answer.body;
	split(ret, n);
	return true;
}

static void put(FILE *out, const struct metric *metric, const char *label, const char *value)
{
	if (value && value[0])
		fprintf(out, "%s%s %s\n", metric->name, label, value);
}

static void put_all(FILE *out, const struct request *request, const struct reading *processes,
		    const struct reading *machine)
{
	for (size_t i = 0; i < N_ELEMENTS(of_process); i++) {
		fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", of_process[i].name, of_process[i].help, of_process[i].name,
			of_process[i].type);
		for (size_t j = 0; j < request->options->n_targets; j++) {
			char label[32];

			snprintf(label, sizeof label, "{pid=\"%d\"}", (int)request->options->targets[j].pid);
			put(out, &of_process[i], label, processes[j].values[i]);
		}
	}
	for (size_t i = 0; i < N_ELEMENTS(of_machine); i++) {
		fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", of_machine[i].name, of_machine[i].help, of_machine[i].name,
			of_machine[i].type);
		put(out, &of_machine[i], "", machine->values[i]);
	}
}

void answer_metrics(const struct request *request, struct answer *ret)
{
	const struct serve_options *options = request->options;
	CLEANUP(freep) struct reading *processes = calloc(options->n_targets, sizeof *processes);
	struct reading machine = { 0 };
	bool is_good = processes != NULL, is_any = false;
	FILE *out = NULL;

	for (size_t i = 0; is_good && i < options->n_targets; i++) {
		const struct serve_target *target = &options->targets[i];

		if (target->pid == 0)
			continue;
		is_any = true;
		if (!target_is_running(target))
			continue;
		is_good = read_row(request, target, of_process, N_ELEMENTS(of_process), "process_usage", &processes[i],
				   ret);
		if (is_good && processes[i].row && !machine.row)
			is_good = read_row(request, target, of_machine, N_ELEMENTS(of_machine), "machine_usage",
					   &machine, ret);
	}
	if (!processes)
		answer_fail(ret, MHD_HTTP_INTERNAL_SERVER_ERROR, "not enough memory");
	else if (is_good && !is_any) {
		answer_fail(ret, MHD_HTTP_NOT_FOUND,
			    "only recordings are served: give the PID of a process for its metrics");
		is_good = false;
	}
	if (is_good)
		out = open_memstream(&ret->body, &ret->n_body);
	if (out) {
		put_all(out, request, processes, &machine);
		ret->status = fclose(out) == 0 ? MHD_HTTP_OK : MHD_HTTP_INTERNAL_SERVER_ERROR;
		ret->type = "text/plain; version=0.0.4; charset=utf-8";
	} else if (is_good)
		answer_fail(ret, MHD_HTTP_INTERNAL_SERVER_ERROR, "not enough memory");
	for (size_t i = 0; processes && i < options->n_targets; i++)
		free(processes[i].row);
	free(machine.row);
}
