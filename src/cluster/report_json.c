/* SPDX-License-Identifier: MIT */
/* report_json.c - the report for programs: docs/distributed.md. Numbers are in the unit of the text; shares are 0 to 1. */
#include <errno.h>
#include <math.h>

#include "base/json.h"
#include "base/util.h"
#include "src/cluster/private.h"
#include "src/cluster/report.h"

enum { MAX_CAUSE = 256 };

static void put_slow(struct json *json, const struct job *job, const struct slow_steps *slow)
{
	if (!slow->is_slow) {
		to_json_put_null(json, "slow");
		return;
	}
	to_json_put_object(json, "slow");
	to_json_put_string(json, "of", history_kind_name(job->history_kind));
	to_json_put_number(json, "change", slow->change);
	to_json_put_integer(json, "first_step", slow->first);
	to_json_put_integer(json, "last_step", slow->last);
	to_json_put_bool(json, "is_whole", slow->is_whole);
	to_json_put_bool(json, "is_over", slow->is_over);
	to_json_put_number(json, "low", slow->low);
	to_json_put_number(json, "high", slow->high);
	to_json_put_number(json, "p", slow->p);
	to_json_object_end(json);
}

static void put_numbers(struct json *json, const struct job *job, size_t i)
{
	to_json_put_array(json, "numbers");
	for (enum measure_kind kind = 0; kind < N_MEASURES; kind++) {
		const struct measure *measure = &report_measures[kind];
		double value = report_value(job_rank(job, i), kind);

		if (value < 0)
			continue;
		to_json_object(json);
		to_json_put_string(json, "name", measure->key);
		to_json_put_string(json, "unit", measure->unit);
		to_json_put_number(json, "value", value * measure->factor);
		to_json_put_number(json, "median", job->spreads[kind].median * measure->factor);
		to_json_put_number(json, "deviations", job->findings[i].distances[kind]);
		to_json_put_bool(json, "differs", job->findings[i].is_far[kind]);
		to_json_object_end(json);
	}
	to_json_array_end(json);
}

static void put_place(struct json *json, const struct job *job, uint32_t place)
{
	uint32_t n_bytes;
	const char *name = report_place(job, place, &n_bytes);

	to_json_key(json, "place");
	to_json_bytes(json, name, n_bytes);
}

static void put_places(struct json *json, const struct job *job, const struct rank_findings *findings)
{
	to_json_put_array(json, "places");
	for (size_t k = 0; k < findings->n_places; k++) {
		to_json_object(json);
		put_place(json, job, findings->places[k].place);
		to_json_put_number(json, "share", findings->places[k].share);
		to_json_put_number(json, "median", findings->places[k].typical);
		to_json_put_number(json, "p", findings->places[k].p);
		to_json_object_end(json);
	}
	to_json_array_end(json);
}

static void put_stacks(struct json *json, const struct rank_findings *findings)
{
	to_json_put_array(json, "stacks");
	for (size_t k = 0; k < findings->n_stacks; k++) {
		to_json_object(json);
		to_json_put_string(json, "stack", findings->stacks[k].title);
		to_json_put_number(json, "share", findings->stacks[k].head);
		to_json_put_number(json, "others", findings->stacks[k].base);
		to_json_put_number(json, "p", findings->stacks[k].p);
		to_json_object_end(json);
	}
	to_json_array_end(json);
}

static void put_rank(struct json *json, struct job *job, size_t i)
{
	const struct cluster_rank *rank = job_rank(job, i);
	const struct rank_findings *findings = &job->findings[i];
	char cause[MAX_CAUSE];

	to_json_object(json);
	to_json_put_known(json, "rank", rank->identity.rank, rank->identity.rank >= 0);
	to_json_put_integer(json, "pid", rank->pid);
	to_json_put_string(json, "host", cluster_host_label(&job->cluster->hosts[rank->host]));
	to_json_put_string(json, "status", rank_status_name(rank->status));
	to_json_put_string(json, "problem", rank->problem);
	to_json_put_integer(json, "samples", job->n_looks[i]);
	to_json_put_bool(json, "differs", findings->is_odd);
	put_slow(json, job, &findings->slow);
	to_json_put_known(json, "alike", (int64_t)findings->n_alike, findings->n_alike > 0);
	put_numbers(json, job, i);
	put_places(json, job, findings);
	to_json_put_string(json, "cause", report_cause(job, i, cause, sizeof cause));
	put_stacks(json, findings);
	to_json_object_end(json);
}

static void put_job(struct json *json, struct job *job)
{
	to_json_object(json);
	to_json_put_text(json, "job", job_rank(job, 0)->identity.job);
	to_json_put_known(json, "first_step", job->first_step, job->n_histories > 0);
	to_json_put_known(json, "last_step", job->last_step, job->n_histories > 0);
	to_json_put_array(json, "ranks");
	for (size_t i = 0; i < job->n; i++)
		put_rank(json, job, i);
	to_json_array_end(json);
	to_json_object_end(json);
}

static void put_hosts(struct json *json, const struct cluster *cluster)
{
	to_json_put_array(json, "hosts");
	for (size_t i = 0; i < cluster->n_hosts; i++) {
		to_json_object(json);
		to_json_put_string(json, "host", cluster_host_label(&cluster->hosts[i]));
		to_json_put_string(json, "problem", cluster->hosts[i].problem);
		to_json_object_end(json);
	}
	to_json_array_end(json);
}

int cluster_report_json(const struct cluster *cluster, unsigned max_paths, FILE *out)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	size_t first = 0;
	int r = to_json_keep("    ", &json);

	if (r < 0)
		return r;
	to_json_object(&json);
	put_hosts(&json, cluster);
	to_json_put_array(&json, "jobs");
	while (r >= 0 && first < cluster->n_ranks) {
		struct job job;

		r = report_find(cluster, first, max_paths, &job);
		if (r >= 0)
			put_job(&json, &job);
		first += job.n;
		report_done(&job);
	}
	to_json_array_end(&json);
	to_json_object_end(&json);
	return r < 0 ? r : to_json_finish(&json, out);
}
