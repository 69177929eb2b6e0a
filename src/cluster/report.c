/* SPDX-License-Identifier: MIT */
/* report.c - which rank differs from the others, by how much, and in what.
 *
 * Two questions, two tests. A number of each rank (CPU, time in a queue, length of a step) is compared with the median of
 * all: its distance in units of the median absolute deviation, scaled to a normal distribution. That stands however far
 * the odd ones are. A place in the code is compared by looks: this rank's share there is far from the
 * median of the ranks' shares, and Fisher's exact test of its looks and those of all others, corrected for the number of
 * tests (Bonferroni), excludes chance. The median alone would not know how many looks there were; the test alone would also
 * blame ranks that the odd one makes look odd.
 * Source: Iglewicz and Hoaglin, How to Detect and Handle Outliers (1993), for the limit of 3.5.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"
#include "src/cluster/private.h"
#include "src/columns/columns.h"

#define TOO_FAR 3.5 /* deviations */
#define NORMAL 0.6745
#define MIN_SHARE 0.10 /* of the median: smaller differences are named by nobody */
#define MIN_RANKS 3
#define SURE 0.01
#define MIN_CHANGE 0.2 /* of the looks */

/*
 * Samples of hours follow each other, and are alike: as evidence they are no more than MAX_LOOKS looks, in the same shares.
 */
enum { MAX_PLACES = 3, MAX_LOOKS = 10000 };

enum { N_MEASURES = 5 };

struct spread {
	double median, deviation;
	size_t n;
};

/* How many looks of a rank met a place. */
struct place_count {
	uint32_t place;
	unsigned n;
};

/* The ranks of one job. */
struct job {
	const struct cluster *cluster;
	size_t first, n;
	double *sorted; /* scratch, n */
	struct spread spreads[N_MEASURES];
	struct place_count *counts; /* each place of a rank once; those of rank i begin at starts[i] */
	size_t n_counts, counts_allocated;
	size_t *starts;     /* n + 1 */
	unsigned *n_looks;  /* by rank */
	uint64_t n_samples; /* of all ranks, as they came */
	unsigned n_all;     /* looks of all ranks */
	uint32_t n_places;
	struct interner names;
	unsigned *all;   /* by place: looks of all ranks */
	double *typical; /* by place: the median of the ranks' shares */
	unsigned *here;  /* scratch, by place */
};

/* A number that ranks are compared by. */
struct measure {
	const char *name;
	double (*of)(const struct rank_usage *usage); /* negative: unknown */
	const char *unit;
	double factor; /* to that unit */
	double floor;  /* a deviation is at least so much: what chance and clock ticks make */
};

static double cpu_of(const struct rank_usage *usage)
{
	return usage->cpu_s < 0 ? -1 : usage->cpu_s / usage->seconds;
}

static double queued_of(const struct rank_usage *usage)
{
	return usage->queued_s < 0 ? -1 : usage->queued_s / usage->seconds;
}

static double throttled_of(const struct rank_usage *usage)
{
	return usage->throttled_s < 0 ? -1 : usage->throttled_s / usage->seconds;
}

static double stolen_of(const struct rank_usage *usage)
{
	return usage->stolen_s < 0 ? -1 : usage->stolen_s / usage->seconds;
}

static double step_of(const struct rank_usage *usage)
{
	return usage->step_ms;
}

static const struct measure measures[N_MEASURES] = {
	{ "CPU", cpu_of, "CPUs", 1, 0.02 },
	{ "waits for a processor", queued_of, "%", 100, 0.02 },
	{ "throttled by its control group", throttled_of, "%", 100, 0.01 },
	{ "machine's processors taken by the hypervisor", stolen_of, "CPUs", 1, 0.02 },
	{ "step", step_of, "ms", 1, 0.05 },
};

static const struct cluster_rank *rank_of(const struct job *job, size_t i)
{
	return &job->cluster->ranks[job->first + i];
}

static int compare_numbers(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* Of sorted ones, at least one. */
static double middle(const double *sorted, size_t n)
{
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* ---- Numbers ---- */

static struct spread spread_of(const struct job *job, const struct measure *measure)
{
	struct spread spread = { 0 };

	for (size_t i = 0; i < job->n; i++) {
		const struct rank_usage *usage = &rank_of(job, i)->usage;
		double value = usage->seconds > 0 ? measure->of(usage) : -1;

		if (value >= 0)
			job->sorted[spread.n++] = value;
	}
	if (spread.n == 0)
		return spread;
	qsort(job->sorted, spread.n, sizeof *job->sorted, compare_numbers);
	spread.median = middle(job->sorted, spread.n);
	for (size_t i = 0; i < spread.n; i++)
		job->sorted[i] = fabs(job->sorted[i] - spread.median);
	qsort(job->sorted, spread.n, sizeof *job->sorted, compare_numbers);
	spread.deviation = MAX(middle(job->sorted, spread.n) / NORMAL, measure->floor);
	return spread;
}

/* Returns whether the rank is far from the others. @k: the measure. */
static bool put_number(const struct job *job, const struct cluster_rank *rank, size_t k, FILE *out)
{
	const struct measure *measure = &measures[k];
	const struct spread *spread = &job->spreads[k];
	double value = rank->usage.seconds > 0 ? measure->of(&rank->usage) : -1, distance;

	if (value < 0 || spread->n < MIN_RANKS)
		return false;
	distance = (value - spread->median) / spread->deviation;
	if (fabs(distance) < TOO_FAR || fabs(value - spread->median) < MIN_SHARE * spread->median)
		return false;
	if (out)
		fprintf(out, "  %s: %.2f %s; the median of all is %.2f (%+.1f deviations)\n", measure->name,
			value * measure->factor, measure->unit, spread->median * measure->factor, distance);
	return true;
}

/* ---- Places ---- */

static double log_choose(unsigned n, unsigned k)
{
	return lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0);
}

double report_fisher(unsigned k, unsigned n, unsigned l, unsigned m)
{
	unsigned met = k + l, low = met > m ? met - m : 0, high = MIN(met, n);
	double whole = log_choose(n + m, met), given = log_choose(n, k) + log_choose(m, l) - whole, sum = 0;

	for (unsigned i = low; i <= high; i++) {
		double one = log_choose(n, i) + log_choose(m, met - i) - whole;

		if (one <= given + 1e-7)
			sum += exp(one);
	}
	return MIN(sum, 1.0);
}

/* A function without its line: a thread that runs is rarely at the same one twice. */
static void put_function(const struct cluster_frame *frame, FILE *out)
{
	struct cluster_frame function = *frame;

	function.line = 0;
	frame_put(out, &function);
}

/* "forward  (train.py), in all_reduce"; owned by the caller, NULL: no memory. */
static char *name_place(const struct job *job, const uint32_t *frames, size_t n_frames)
{
	const struct cluster_frame *call;
	struct stack_place place;
	char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	if (!out)
		return NULL;
	frames_place(job->cluster, frames, n_frames, &place);
	call = place.collective ? place.collective : place.python != place.own ? place.python : NULL;
	if (place.own)
		put_function(place.own, out);
	if (call && !place.own)
		put_function(call, out);
	else if (call)
		fprintf(out, ", in %s", call->function);
	if (!place.python)
		fputs(place.innermost ? "native code" : "no frames", out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static void count_here(struct job *job, size_t i)
{
	memset(job->here, 0, job->n_places * sizeof *job->here);
	for (size_t k = job->starts[i]; k < job->starts[i + 1]; k++)
		job->here[job->counts[k].place] = job->counts[k].n;
}

/* The share of a rank's looks at a place. */
struct share {
	uint32_t place;
	double share;
};

static int compare_shares(const void *a, const void *b)
{
	const struct share *left = a, *right = b;

	if (left->place != right->place)
		return left->place < right->place ? -1 : 1;
	return (left->share > right->share) - (left->share < right->share);
}

/* A rank that was never at a place has the share 0 there, and none in the list: n_ranks - n of them come first. */
static double middle_share(const struct share *shares, size_t n, size_t n_ranks)
{
	size_t n_none = n_ranks - n, low = (n_ranks - 1) / 2, high = n_ranks / 2;

	return ((low < n_none ? 0 : shares[low - n_none].share) + (high < n_none ? 0 : shares[high - n_none].share)) /
	       2;
}

/* The median share of each place, of the ranks that were read. */
static int find_typical(struct job *job)
{
	CLEANUP(freep) struct share *shares = calloc(job->starts[job->n] + 1, sizeof *shares);
	size_t n = 0, n_ranks = 0, last;

	if (!shares)
		return -ENOMEM;
	for (size_t i = 0; i < job->n; i++) {
		n_ranks += job->n_looks[i] > 0;
		for (size_t k = job->starts[i]; k < job->starts[i + 1]; k++)
			shares[n++] = (struct share){ job->counts[k].place,
						      (double)job->counts[k].n / (double)job->n_looks[i] };
	}
	qsort(shares, n, sizeof *shares, compare_shares);
	for (size_t i = 0; i < n; i = last) {
		last = i + 1;
		while (last < n && shares[last].place == shares[i].place)
			last++;
		job->typical[shares[i].place] = middle_share(shares + i, last - i, n_ranks);
	}
	return 0;
}

static int add_place(struct job *job, const uint32_t *frames, size_t n_frames, uint32_t *ret)
{
	CLEANUP(freep) char *name = name_place(job, frames, n_frames);
	int r = name ? interner_add(&job->names, name, strlen(name), ret) : -ENOMEM;

	return MIN(r, 0);
}

static size_t count_threads(const struct job *job)
{
	size_t n = 0;

	for (size_t i = 0; i < job->n; i++)
		n += rank_of(job, i)->n_threads;
	return n;
}

/* Name the place of each stack, and of each thread of the job, rank by rank. */
static int name_places(struct job *job, uint32_t *of_stacks, uint32_t *of_threads)
{
	const struct cluster *cluster = job->cluster;
	int r = 0;

	for (size_t i = 0; r == 0 && i < cluster->n_stacks; i++)
		r = add_place(job, cluster->stacks[i].frames, cluster->stacks[i].n_frames, &of_stacks[i]);
	for (size_t i = 0; r == 0 && i < job->n; i++)
		for (size_t k = 0; r == 0 && k < rank_of(job, i)->n_threads; k++) {
			const struct cluster_thread *thread = &rank_of(job, i)->threads[k];

			r = add_place(job, thread->frames, thread->n_frames, of_threads++);
		}
	job->n_places = (uint32_t)job->names.n;
	return r;
}

/* A place of the rank as looks, if it was not put yet. @sums: of its samples by place. */
static int put_count(struct job *job, size_t i, uint32_t place, uint64_t *sums, uint64_t n_samples)
{
	double share = n_samples > MAX_LOOKS ? (double)MAX_LOOKS / (double)n_samples : 1;
	unsigned n = (unsigned)MAX(lround((double)sums[place] * share), 1);
	int r;

	if (sums[place] == 0)
		return 0;
	sums[place] = 0;
	r = grow(&job->counts, job->n_counts, &job->counts_allocated, sizeof *job->counts);
	if (r < 0)
		return r;
	job->counts[job->n_counts++] = (struct place_count){ place, n };
	job->n_looks[i] += n;
	job->all[place] += n;
	job->n_all += n;
	return 0;
}

/* @sums: by place, all 0 before and afterwards. @of_threads: of this rank. */
static int count_rank(struct job *job, size_t i, const uint32_t *of_stacks, const uint32_t *of_threads, uint64_t *sums)
{
	const struct cluster_rank *rank = rank_of(job, i);
	uint64_t n_samples = rank->n_threads;
	int r = 0;

	for (size_t k = 0; k < rank->n_threads; k++)
		sums[of_threads[k]]++;
	for (size_t k = 0; k < rank->n_looks; k++) {
		sums[of_stacks[rank->looks[k].stack]] += rank->looks[k].n;
		n_samples += rank->looks[k].n;
	}
	job->n_samples += n_samples;
	for (size_t k = 0; r == 0 && k < rank->n_threads; k++)
		r = put_count(job, i, of_threads[k], sums, n_samples);
	for (size_t k = 0; r == 0 && k < rank->n_looks; k++)
		r = put_count(job, i, of_stacks[rank->looks[k].stack], sums, n_samples);
	return r;
}

static int count_places(struct job *job, const uint32_t *of_stacks, const uint32_t *of_threads)
{
	CLEANUP(freep) uint64_t *sums = calloc(job->n_places + 1, sizeof *sums);
	int r = 0;

	if (!sums)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < job->n; i++) {
		job->starts[i] = job->n_counts;
		r = count_rank(job, i, of_stacks, of_threads, sums);
		of_threads += rank_of(job, i)->n_threads;
	}
	job->starts[job->n] = job->n_counts;
	return r;
}

static int find_places(struct job *job)
{
	CLEANUP(freep) uint32_t *of_stacks = calloc(job->cluster->n_stacks + 1, sizeof *of_stacks);
	CLEANUP(freep) uint32_t *of_threads = calloc(count_threads(job) + 1, sizeof *of_threads);
	int r = of_stacks && of_threads ? name_places(job, of_stacks, of_threads) : -ENOMEM;

	if (r < 0)
		return r;
	job->here = calloc(job->n_places + 1, sizeof *job->here);
	job->all = calloc(job->n_places + 1, sizeof *job->all);
	job->typical = calloc(job->n_places + 1, sizeof *job->typical);
	if (!job->here || !job->all || !job->typical)
		return -ENOMEM;
	r = count_places(job, of_stacks, of_threads);
	return r < 0 ? r : find_typical(job);
}

static void put_place_name(const struct job *job, uint32_t place, FILE *out)
{
	uint32_t n_bytes;
	const char *name = interner_get(&job->names, place, &n_bytes);

	text_put_spelled(out, name, n_bytes);
}

/* Whether the rank is at places where the others are not, or not where they are; the most different first. */
static bool put_places(struct job *job, size_t i, FILE *out)
{
	unsigned n = job->n_looks[i], m = job->n_all - n;
	double n_tests = (double)job->n * job->n_places;
	unsigned n_put = 0;

	if (n == 0 || m == 0 || job->n < 2)
		return false;
	count_here(job, i);
	while (n_put < MAX_PLACES) {
		double largest = 0, p = 1;
		uint32_t best = 0;

		for (uint32_t place = 0; place < job->n_places; place++) {
			unsigned k = job->here[place];
			double change = fabs((double)k / n - job->typical[place]);

			if (k != UINT32_MAX && change > largest) {
				largest = change;
				best = place;
			}
		}
		if (largest < MIN_CHANGE)
			break;
		p = report_fisher(job->here[best], n, job->all[best] - job->here[best], m) * n_tests;
		if (p > SURE)
			break;
		if (out) {
			fprintf(out, "  %.0f %% of samples in ", 100.0 * job->here[best] / n);
			put_place_name(job, best, out);
			fprintf(out, "; the median of all is %.0f %% (p %s%.4f)\n", 100 * job->typical[best],
				p < 0.0001 ? "< " : "= ", MAX(p, 0.0001));
		}
		n_put++;
		job->here[best] = UINT32_MAX;
	}
	return n_put > 0;
}

/* ---- Output ---- */

static const struct column rank_columns[] = {
	{ "RANK", 8, 0, false },  { "CPUS", 6, 2, false },         { "IN QUEUE", 9, 2, false },
	{ "STEP", 11, 2, false }, { "MOST OFTEN IN", 0, 2, true },
};

static void put_value(struct columns *columns, double value, double factor, const char *unit)
{
	if (value >= 0)
		columns_printf(columns, "%.2f%s", value * factor, unit);
	else
		columns_put(columns, "-");
}

static void put_name(const struct cluster_rank *rank, FILE *out)
{
	if (rank->identity.rank >= 0)
		fprintf(out, "rank %jd", (intmax_t)rank->identity.rank);
	else
		fprintf(out, "pid %d", (int)rank->pid);
}

static void put_row(struct job *job, size_t i, bool is_odd, struct columns *columns)
{
	const struct cluster_rank *rank = rank_of(job, i);
	const struct rank_usage *usage = &rank->usage;
	FILE *out = columns->out;
	uint32_t most = 0;

	fputs(is_odd ? "* " : "  ", out);
	columns_printf(columns, "%jd", (intmax_t)(rank->identity.rank >= 0 ? rank->identity.rank : rank->pid));
	if (rank->status != RANK_READ || usage->seconds <= 0) {
		fprintf(out, "  %s: ", rank_status_name(rank->status));
		cell_put_all(out, rank->problem ? rank->problem : "nothing was measured");
		columns_end(columns);
		return;
	}
	put_value(columns, cpu_of(usage), 1, "");
	put_value(columns, queued_of(usage), 100, " %");
	put_value(columns, step_of(usage), 1, " ms");
	count_here(job, i);
	for (uint32_t place = 1; place < job->n_places; place++)
		if (job->here[place] > job->here[most])
			most = place;
	if (job->n_looks[i] > 0) {
		columns_start_last(columns);
		fprintf(out, "%3.0f %% ", 100.0 * job->here[most] / job->n_looks[i]);
		put_place_name(job, most, out);
	}
	columns_end(columns);
}

static int put_job(struct job *job, FILE *out)
{
	struct columns columns = { .list = rank_columns, .n = N_ELEMENTS(rank_columns), .out = out };
	bool *is_odd = calloc(job->n + 1, sizeof *is_odd);
	size_t n_odd = 0;

	if (!is_odd)
		return -ENOMEM;
	for (size_t k = 0; k < N_MEASURES; k++)
		job->spreads[k] = spread_of(job, &measures[k]);
	for (size_t i = 0; i < job->n; i++) {
		for (size_t k = 0; k < N_MEASURES; k++)
			is_odd[i] |= put_number(job, rank_of(job, i), k, NULL);
		is_odd[i] |= put_places(job, i, NULL);
		n_odd += is_odd[i];
	}
	for (size_t i = 0; i < job->n; i++) {
		if (!is_odd[i])
			continue;
		put_name(rank_of(job, i), out);
		fprintf(out, " (pid %d on ", (int)rank_of(job, i)->pid);
		cell_put_all(out, cluster_host_label(&job->cluster->hosts[rank_of(job, i)->host]));
		fputs(") differs:\n", out);
		for (size_t k = 0; k < N_MEASURES; k++)
			(void)put_number(job, rank_of(job, i), k, out);
		(void)put_places(job, i, out);
	}
	if (n_odd == 0)
		fputs("No rank differs from the others by more than chance.\n", out);
	fputs("\n  ", out);
	columns_put_head(&columns);
	for (size_t i = 0; i < job->n; i++)
		put_row(job, i, is_odd[i], &columns);
	free(is_odd);
	return 0;
}

static int report_job(const struct cluster *cluster, size_t first, size_t n, FILE *out)
{
	CLEANUP(freep) double *sorted = calloc(n + 1, sizeof *sorted);
	CLEANUP(freep) size_t *starts = calloc(n + 1, sizeof *starts);
	CLEANUP(freep) unsigned *n_looks = calloc(n + 1, sizeof *n_looks);
	struct job job = {
		.cluster = cluster, .first = first, .n = n, .sorted = sorted, .starts = starts, .n_looks = n_looks
	};
	const char *name = cluster->ranks[first].identity.job;
	int r = sorted && starts && n_looks ? find_places(&job) : -ENOMEM;

	if (r >= 0) {
		fputs(first > 0 ? "\nJob" : "Job", out);
		fputs(name[0] ? " " : "", out);
		cell_put_all(out, name);
		fprintf(out, ": %zu %s, %" PRIu64 " samples\n\n", n, n == 1 ? "rank" : "ranks", job.n_samples);
		r = cluster_put_collectives(cluster, name, out);
		if (r >= 0)
			r = put_job(&job, out);
	}
	free(job.counts);
	free(job.here);
	free(job.all);
	free(job.typical);
	interner_done(&job.names);
	return r;
}

int cluster_report(const struct cluster *cluster, FILE *out)
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
		size_t n = 1;

		while (first + n < cluster->n_ranks &&
		       strcmp(cluster->ranks[first + n].identity.job, cluster->ranks[first].identity.job) == 0)
			n++;
		r = report_job(cluster, first, n, out);
		first += n;
	}
	return r < 0 ? r : ferror(out) ? -EIO : 0;
}
