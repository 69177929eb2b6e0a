/* SPDX-License-Identifier: MIT */
/* report.c - which rank differs from the others, by how much, and in what.
 *
 * Two questions, two tests. A number of each rank (CPU, time in a queue, length of a step) is compared with the median of
 * all: its distance in units of the median absolute deviation, scaled to a normal distribution. That stands however far
 * the odd ones are. A place in the code is compared by looks: this rank's share there is far from the
 * median of the ranks' shares, and Fisher's exact test of its looks and those of all others, corrected for the number of
 * tests (Bonferroni), excludes chance. The median alone would not know how many looks there were; the test alone would also
 * blame ranks that the odd one makes look odd.
 * Since when a rank is slow is in history.c, its stacks against those of the others in report_stacks.c.
 * Source: Iglewicz and Hoaglin, How to Detect and Handle Outliers (1993), for the limit of 3.5.
 */
#include "src/cluster/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cluster/private.h"

#define MIN_SHARE 0.10 /* of the median: smaller differences are named by nobody */
#define NORMAL 0.6745  /* the median absolute deviation of a normal distribution */
#define MIN_CHANGE 0.2 /* of the looks */

enum { MAX_STACKS_OF = 16 }; /* ranks whose stacks are compared; each takes time for all ranks */

/* ---- Numbers ---- */

/* Of the time that was measured. */
static double per_second(const struct rank_usage *usage, double seconds)
{
	return seconds < 0 ? -1 : seconds / usage->seconds;
}

static double cpu_of(const struct rank_usage *usage)
{
	return per_second(usage, usage->cpu_s);
}

static double queued_of(const struct rank_usage *usage)
{
	return per_second(usage, usage->queued_s);
}

static double throttled_of(const struct rank_usage *usage)
{
	return per_second(usage, usage->throttled_s);
}

static double stolen_of(const struct rank_usage *usage)
{
	return per_second(usage, usage->stolen_s);
}

static double memory_of(const struct rank_usage *usage)
{
	return usage->memory_mb;
}

static double step_of(const struct rank_usage *usage)
{
	return usage->step_ms;
}

static double forward_of(const struct rank_usage *usage)
{
	return usage->forward_ms;
}

static double backward_of(const struct rank_usage *usage)
{
	return usage->backward_ms;
}

static double comm_of(const struct rank_usage *usage)
{
	return usage->comm_ms;
}

/* Where it is not known by step. */
static double comm_share_of(const struct rank_usage *usage)
{
	return usage->comm_ms >= 0 ? -1 : per_second(usage, usage->comm_s);
}

static double data_of(const struct rank_usage *usage)
{
	return usage->data_ms;
}

const struct measure report_measures[N_MEASURES] = {
	[MEASURE_CPU] = { "CPU", "cpus", "CPUS", "", 6, cpu_of, "CPUs", 1, 0.02 },
	[MEASURE_QUEUED] = { "waits for a processor", "queued", "IN QUEUE", " %", 9, queued_of, "%", 100, 0.02 },
	[MEASURE_THROTTLED] = { "throttled by its control group", "throttled", "THROTTLED", " %", 9, throttled_of, "%",
				100, 0.01 },
	[MEASURE_STOLEN] = { "machine's processors taken by the hypervisor", "stolen", "STEAL", "", 6, stolen_of,
			     "CPUs", 1, 0.02 },
	[MEASURE_MEMORY] = { "memory", "memory", "MEMORY", " MB", 11, memory_of, "MB", 1, 16 },
	[MEASURE_STEP] = { "step", "step", "STEP", " ms", 11, step_of, "ms", 1, 0.05 },
	[MEASURE_FORWARD] = { "forward passes of a step", "forward", "FORWARD", " ms", 10, forward_of, "ms", 1, 0.05 },
	[MEASURE_BACKWARD] = { "backward passes of a step", "backward", "BACKWARD", " ms", 10, backward_of, "ms", 1,
			       0.05 },
	[MEASURE_COMM] = { "communication of a step", "communication", "COMM", " ms", 10, comm_of, "ms", 1, 0.05 },
	[MEASURE_COMM_SHARE] = { "communication", "communication_share", "COMM", " %", 8, comm_share_of, "%", 100,
				 0.02 },
	[MEASURE_DATA] = { "waits for data in a step", "data", "DATA", " ms", 10, data_of, "ms", 1, 0.05 },
};

double report_value(const struct cluster_rank *rank, enum measure_kind kind)
{
	return rank->usage.seconds > 0 ? report_measures[kind].of(&rank->usage) : -1;
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

void report_sort(double *values, size_t n)
{
	qsort(values, n, sizeof *values, compare_numbers);
}

struct spread report_spread(double *values, size_t n, double floor)
{
	struct spread spread = { .n = n };

	if (n == 0)
		return spread;
	report_sort(values, n);
	spread.median = middle(values, n);
	for (size_t i = 0; i < n; i++)
		values[i] = fabs(values[i] - spread.median);
	report_sort(values, n);
	spread.deviation = MAX(middle(values, n) / NORMAL, floor);
	return spread;
}

static struct spread spread_of(const struct job *job, enum measure_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < job->n; i++) {
		double value = report_value(job_rank(job, i), kind);

		if (value >= 0)
			job->sorted[n++] = value;
	}
	return report_spread(job->sorted, n, report_measures[kind].floor);
}

static void find_numbers(const struct job *job, size_t i)
{
	struct rank_findings *findings = &job->findings[i];

	for (enum measure_kind kind = 0; kind < N_MEASURES; kind++) {
		const struct spread *spread = &job->spreads[kind];
		double value = report_value(job_rank(job, i), kind);

		if (value < 0 || spread->n < REPORT_MIN_RANKS)
			continue;
		findings->distances[kind] = (value - spread->median) / spread->deviation;
		findings->is_far[kind] = fabs(findings->distances[kind]) >= REPORT_TOO_FAR &&
					 fabs(value - spread->median) >= MIN_SHARE * spread->median;
		findings->is_odd |= findings->is_far[kind];
	}
}

/* ---- Causes ---- */

const char *report_cause(const struct job *job, size_t i, char *to, size_t n_bytes)
{
	const struct rank_findings *findings = &job->findings[i];
	const struct rank_usage *usage = &job_rank(job, i)->usage;
	bool is_more[N_MEASURES];

	for (enum measure_kind kind = 0; kind < N_MEASURES; kind++)
		is_more[kind] = findings->is_far[kind] && findings->distances[kind] > 0;
	if (is_more[MEASURE_THROTTLED] && usage->limit_cpus >= 0)
		snprintf(
			to, n_bytes,
			"the quota of its control group, %.2f CPUs (cpu.max), is used up: raise it, or use fewer threads",
			usage->limit_cpus);
	else if (is_more[MEASURE_THROTTLED])
		snprintf(to, n_bytes,
			 "the quota of its control group (cpu.max) is used up: raise it, or use fewer threads");
	else if (is_more[MEASURE_STOLEN])
		snprintf(to, n_bytes, "the hypervisor gives processors of its machine to others");
	else if (is_more[MEASURE_QUEUED])
		snprintf(to, n_bytes, "it waits for processors that other threads use: see probing top on its machine");
	else
		return NULL;
	return to;
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
		n += job_rank(job, i)->n_threads;
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
		for (size_t k = 0; r == 0 && k < job_rank(job, i)->n_threads; k++) {
			const struct cluster_thread *thread = &job_rank(job, i)->threads[k];

			r = add_place(job, thread->frames, thread->n_frames, of_threads++);
		}
	job->n_places = (uint32_t)job->names.n;
	return r;
}

/* A place of the rank as looks, if it was not put yet. @sums: of its samples by place. */
static int put_count(struct job *job, size_t i, uint32_t place, uint64_t *sums, uint64_t n_samples)
{
	double share = n_samples > REPORT_MAX_LOOKS ? (double)REPORT_MAX_LOOKS / (double)n_samples : 1;
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
	const struct cluster_rank *rank = job_rank(job, i);
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
		of_threads += job_rank(job, i)->n_threads;
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

const char *report_place(const struct job *job, uint32_t place, uint32_t *ret_bytes)
{
	return interner_get(&job->names, place, ret_bytes);
}

uint32_t report_most(struct job *job, size_t i, double *ret_share)
{
	uint32_t most = 0;

	if (job->n_looks[i] == 0)
		return job->n_places;
	count_here(job, i);
	for (uint32_t place = 1; place < job->n_places; place++)
		if (job->here[place] > job->here[most])
			most = place;
	*ret_share = (double)job->here[most] / job->n_looks[i];
	return most;
}

/* Places where the others are not, or where the rank is not and they are; the most different first. */
static void find_differences(struct job *job, size_t i)
{
	struct rank_findings *findings = &job->findings[i];
	unsigned n = job->n_looks[i], m = job->n_all - n;
	double n_tests = (double)job->n * job->n_places;

	if (n == 0 || m == 0 || job->n < 2)
		return;
	count_here(job, i);
	while (findings->n_places < REPORT_MAX_PLACES) {
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
		if (p > REPORT_SURE)
			break;
		findings->places[findings->n_places++] = (struct place_difference){ best, (double)job->here[best] / n,
										    job->typical[best], p };
		job->here[best] = UINT32_MAX;
		findings->is_odd = true;
	}
}

/* ---- All of it ---- */

static int allocate(struct job *job)
{
	job->sorted = calloc(job->n + 1, sizeof *job->sorted);
	job->starts = calloc(job->n + 1, sizeof *job->starts);
	job->n_looks = calloc(job->n + 1, sizeof *job->n_looks);
	job->findings = calloc(job->n + 1, sizeof *job->findings);
	return job->sorted && job->starts && job->n_looks && job->findings ? 0 : -ENOMEM;
}

static size_t count_ranks(const struct cluster *cluster, size_t first)
{
	size_t n = 1;

	while (first + n < cluster->n_ranks &&
	       strcmp(cluster->ranks[first + n].identity.job, cluster->ranks[first].identity.job) == 0)
		n++;
	return n;
}

static int find_stacks(struct job *job, unsigned max_paths)
{
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r >= 0 && max_paths > 0 && i < job->n && n < MAX_STACKS_OF; i++)
		if (job->findings[i].is_odd) {
			r = report_stacks(job, i, max_paths);
			n++;
		}
	return r;
}

int report_find(const struct cluster *cluster, size_t first, unsigned max_paths, struct job *ret)
{
	int r;

	*ret = (struct job){ .cluster = cluster, .first = first, .n = count_ranks(cluster, first) };
	r = allocate(ret);
	if (r >= 0)
		r = find_places(ret);
	if (r < 0)
		return r;
	for (enum measure_kind kind = 0; kind < N_MEASURES; kind++)
		ret->spreads[kind] = spread_of(ret, kind);
	for (size_t i = 0; i < ret->n; i++) {
		find_numbers(ret, i);
		find_differences(ret, i);
	}
	r = report_history(ret);
	return r < 0 ? r : find_stacks(ret, max_paths);
}

void report_done(struct job *job)
{
	for (size_t i = 0; job->findings && i < job->n; i++) {
		for (size_t k = 0; k < job->findings[i].n_stacks; k++)
			free(job->findings[i].stacks[k].title);
		free(job->findings[i].stacks);
	}
	free(job->findings);
	free(job->sorted);
	free(job->starts);
	free(job->n_looks);
	free(job->counts);
	free(job->here);
	free(job->all);
	free(job->typical);
	interner_done(&job->names);
	*job = (struct job){ 0 };
}
