/* SPDX-License-Identifier: MIT */
/* report_text.c - the report for people: in what each odd rank differs, then a line for each rank. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/util.h"
#include "src/cluster/report.h"
#include "src/columns/columns.h"

enum { MAX_CAUSE = 256 };

static void put_p(double p, FILE *out)
{
	fprintf(out, "(p %s%.4f)", p < 0.0001 ? "< " : "= ", MAX(p, 0.0001));
}

static void put_place_name(const struct job *job, uint32_t place, FILE *out)
{
	uint32_t n_bytes;
	const char *name = report_place(job, place, &n_bytes);

	text_put_spelled(out, name, n_bytes);
}

static void put_name(const struct cluster_rank *rank, FILE *out)
{
	if (rank->identity.rank >= 0)
		fprintf(out, "rank %jd", (intmax_t)rank->identity.rank);
	else
		fprintf(out, "pid %d", (int)rank->pid);
}

/* ---- One odd rank ---- */

static void put_slow(const struct job *job, const struct slow_steps *slow, FILE *out)
{
	static const char *const of[N_HISTORY_KINDS] = {
		[HISTORY_STEP] = "its steps",
		[HISTORY_OUTSIDE] = "its steps without communication",
		[HISTORY_PASSES] = "its forward and backward passes and waits for data",
	};

	if (!slow->is_slow)
		return;
	fprintf(out, "  %sslower by %.0f %% ", slow->is_over ? "was " : "", 100 * slow->change);
	if (slow->is_whole)
		fprintf(out, "during all steps that are kept, %jd to %jd", (intmax_t)slow->first, (intmax_t)slow->last);
	else if (slow->is_over)
		fprintf(out, "from step %jd to %jd", (intmax_t)slow->first, (intmax_t)slow->last);
	else
		fprintf(out, "since step %jd (kept are %jd to %jd)", (intmax_t)slow->first, (intmax_t)job->first_step,
			(intmax_t)job->last_step);
	fprintf(out, ", in %s ", of[job->history_kind]);
	put_p(slow->p, out);
	fputc('\n', out);
}

static void put_number(const struct job *job, size_t i, enum measure_kind kind, FILE *out)
{
	const struct measure *measure = &report_measures[kind];
	double value = report_value(job_rank(job, i), kind);

	fprintf(out, "  %s: %.2f %s; the median of all is %.2f (%+.1f deviations)\n", measure->name,
		value * measure->factor, measure->unit, job->spreads[kind].median * measure->factor,
		job->findings[i].distances[kind]);
}

static void put_stacks(const struct rank_findings *findings, FILE *out)
{
	if (findings->n_stacks > 0)
		fputs("  its stacks against those of the others, in points of the share of samples:\n", out);
	for (size_t k = 0; k < findings->n_stacks; k++) {
		const struct stack_difference *stack = &findings->stacks[k];

		fprintf(out, "    %+4.0f  ", 100 * (stack->head - stack->base));
		cell_put_all(out, stack->title);
		fprintf(out, ": %.0f %% instead of %.0f %% ", 100 * stack->head, 100 * stack->base);
		put_p(stack->p, out);
		fputc('\n', out);
	}
}

static void put_odd(const struct job *job, size_t i, FILE *out)
{
	const struct cluster_rank *rank = job_rank(job, i);
	const struct rank_findings *findings = &job->findings[i];
	char text[MAX_CAUSE];
	const char *cause = report_cause(job, i, text, sizeof text);

	put_name(rank, out);
	fprintf(out, " (pid %d on ", (int)rank->pid);
	cell_put_all(out, cluster_host_label(&job->cluster->hosts[rank->host]));
	fputs(") differs:\n", out);
	put_slow(job, &findings->slow, out);
	for (enum measure_kind kind = 0; kind < N_MEASURES; kind++)
		if (findings->is_far[kind])
			put_number(job, i, kind, out);
	for (size_t k = 0; k < findings->n_places; k++) {
		fprintf(out, "  %.0f %% of samples in ", 100 * findings->places[k].share);
		put_place_name(job, findings->places[k].place, out);
		fprintf(out, "; the median of all is %.0f %% ", 100 * findings->places[k].typical);
		put_p(findings->places[k].p, out);
		fputc('\n', out);
	}
	if (cause)
		fprintf(out, "  likely cause: %s\n", cause);
	put_stacks(findings, out);
}

/* ---- All ranks ---- */

struct table {
	struct column list[N_MEASURES + 2];
	enum measure_kind kinds[N_MEASURES];
	size_t n; /* numbers */
	struct columns columns;
};

/* A column for each number that a rank has; those of every report always. */
static void begin_table(const struct job *job, FILE *out, struct table *table)
{
	table->n = 0;
	table->list[0] = (struct column){ "RANK", 8, 0, false };
	for (enum measure_kind kind = 0; kind < N_MEASURES; kind++) {
		const struct measure *measure = &report_measures[kind];

		if (job->spreads[kind].n == 0 && kind != MEASURE_CPU && kind != MEASURE_QUEUED && kind != MEASURE_STEP)
			continue;
		table->kinds[table->n] = kind;
		table->list[1 + table->n++] = (struct column){ measure->head, measure->width, 2, false };
	}
	table->list[1 + table->n] = (struct column){ "MOST OFTEN IN", 0, 2, true };
	table->columns = (struct columns){ .list = table->list, .n = table->n + 2, .out = out };
}

static void put_row(struct job *job, size_t i, struct table *table)
{
	const struct cluster_rank *rank = job_rank(job, i);
	struct columns *columns = &table->columns;
	FILE *out = columns->out;
	uint32_t most;
	double share;

	fputs(job->findings[i].is_odd ? "* " : "  ", out);
	columns_printf(columns, "%jd", (intmax_t)(rank->identity.rank >= 0 ? rank->identity.rank : rank->pid));
	if (rank->status != RANK_READ || rank->usage.seconds <= 0) {
		fprintf(out, "  %s: ", rank_status_name(rank->status));
		cell_put_all(out, rank->problem ? rank->problem : "nothing was measured");
		columns_end(columns);
		return;
	}
	for (size_t k = 0; k < table->n; k++) {
		const struct measure *measure = &report_measures[table->kinds[k]];
		double value = report_value(rank, table->kinds[k]);

		if (value >= 0)
			columns_printf(columns, "%.2f%s", value * measure->factor, measure->cell_unit);
		else
			columns_put(columns, "-");
	}
	most = report_most(job, i, &share);
	if (most < job->n_places) {
		columns_start_last(columns);
		fprintf(out, "%3.0f %% ", 100 * share);
		put_place_name(job, most, out);
	}
	columns_end(columns);
}

static void put_wandering(const struct job *job, FILE *out)
{
	size_t n = 0, most = 0;

	for (size_t i = 0; i < job->n; i++)
		if (job->findings[i].wanders) {
			n++;
			most = MAX(most, job->findings[i].n_alike);
		}
	if (n > 0)
		fprintf(out,
			"The speed of %zu rank%s wanders (up to %zu steps are alike): slow stretches there are within chance, so "
			"no step is named.\n",
			n, n == 1 ? "" : "s", most);
}

static int put_job(struct job *job, FILE *out)
{
	const char *name = job_rank(job, 0)->identity.job;
	struct table table;
	size_t n_odd = 0;
	int r;

	fputs(job->first > 0 ? "\nJob" : "Job", out);
	fputs(name[0] ? " " : "", out);
	cell_put_all(out, name);
	fprintf(out, ": %zu %s, %" PRIu64 " samples\n\n", job->n, job->n == 1 ? "rank" : "ranks", job->n_samples);
	r = cluster_put_collectives(job->cluster, name, out);
	if (r < 0)
		return r;
	for (size_t i = 0; i < job->n; i++) {
		n_odd += job->findings[i].is_odd;
		if (job->findings[i].is_odd)
			put_odd(job, i, out);
	}
	if (n_odd == 0)
		fputs("No rank differs from the others by more than chance.\n", out);
	put_wandering(job, out);
	begin_table(job, out, &table);
	fputs("\n  ", out);
	columns_put_head(&table.columns);
	for (size_t i = 0; i < job->n; i++)
		put_row(job, i, &table);
	return 0;
}

int cluster_report(const struct cluster *cluster, unsigned max_paths, FILE *out)
{
	size_t first = 0;
	int r = 0;

	for (size_t i = 0; i < cluster->n_hosts; i++)
		if (cluster->hosts[i].problem) {
			fputs("host ", out);
			cell_put_all(out, cluster_host_label(&cluster->hosts[i]));
			fputs(": ", out);
			cell_put_all(out, cluster->hosts[i].problem);
			fputc('\n', out);
		}
	while (r >= 0 && first < cluster->n_ranks) {
		struct job job;

		r = report_find(cluster, first, max_paths, &job);
		if (r >= 0)
			r = put_job(&job, out);
		first += job.n;
		report_done(&job);
	}
	return r < 0 ? r : ferror(out) ? -EIO : 0;
}
