/* SPDX-License-Identifier: MIT */
/* report_stacks.c - the stack tree of a rank against those of the others of its job, with the statistics of `probing diff`.
 *
 * A rank is a run: the one in question is the head, and up to MAX_OTHERS others, evenly chosen, are the base. Of a job of few
 * ranks, parts of the time are runs, so that there is a variation to compare with. Compared are shares of samples, by
 * function: the line does not count.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/util.h"
#include "src/cluster/private.h"
#include "src/cluster/report.h"
#include "src/compare/compare.h"
#include "src/profile/profile.h"

enum {
	MAX_OTHERS = 200,
	FEW_OTHERS = 11, /* a permutation test takes the longer, the more runs there are */
	N_PARTS = 5,
	MIN_LOOKS = 10, /* of a rank that is divided */
	MAX_NAME = 32,
};

#define MIN_SHARE 0.02 /* of the samples, on a side: smaller stacks are not tested */
#define MOST_OF_IT 0.9 /* a callee with so much of its caller's change is named in its place */

/* A profile of some ranks of a job, as it is filled. */
struct filling {
	const struct job *job;
	struct profile *profile;
	struct id_map nodes; /* parent and frame: stack, plus 1 */
	size_t stacks_allocated, totals_allocated, ranks_allocated;
	int32_t *ranks_of; /* by total */
	struct compare_rank *ranks;
	char (*names)[MAX_NAME]; /* by run */
	size_t n_ranks, n_parts;
};

static void filling_done(struct filling *filling)
{
	profile_free(filling->profile);
	id_map_done(&filling->nodes);
	free(filling->ranks_of);
	free(filling->ranks);
	free(filling->names);
}

static int add_text(struct profile *profile, const char *text, const char **ret)
{
	*ret = NULL;
	return text ? profile_add_string(profile, text, strlen(text), ret) : 0;
}

static int add_frames(struct profile *profile, const struct cluster *cluster)
{
	int r = 0;

	profile->frames = calloc(cluster->n_frames + 1, sizeof *profile->frames);
	if (!profile->frames)
		return -ENOMEM;
	for (size_t i = 0; r >= 0 && i < cluster->n_frames; i++) {
		const struct cluster_frame *from = &cluster->frames[i];
		struct profile_frame *to = &profile->frames[i];

		*to = (struct profile_frame){ .kind = from->kind,
					      .role = from->is_builtin ? ROLE_BUILTIN : ROLE_NONE,
					      .name = "",
					      .line = from->line,
					      .inlined_into = -1 };
		profile->n_frames = i + 1;
		r = add_text(profile, from->function, &to->name);
		if (r >= 0)
			r = add_text(profile, from->file, &to->file);
		if (r >= 0)
			r = add_text(profile, from->module, &to->module);
	}
	return r;
}

/* @stack: caller, and receives the stack with that frame. */
static int enter(struct filling *filling, uint32_t frame, int32_t *stack)
{
	struct profile *profile = filling->profile;
	uint64_t key = (uint64_t)(uint32_t)(*stack + 1) << 32 | (frame + 1);
	const struct id_slot *slot = id_map_find(&filling->nodes, key);
	int r;

	if (slot) {
		*stack = (int32_t)slot->id - 1;
		return 0;
	}
	if (profile->n_stacks >= INT32_MAX - 1)
		return -EOVERFLOW;
	r = grow(&profile->stacks, profile->n_stacks, &filling->stacks_allocated, sizeof *profile->stacks);
	if (r >= 0)
		r = id_map_add(&filling->nodes, key, (uint32_t)profile->n_stacks + 1);
	if (r < 0)
		return r;
	profile->stacks[profile->n_stacks] = (struct profile_stack){ *stack, (int32_t)frame };
	*stack = (int32_t)profile->n_stacks++;
	return 0;
}

/* Without the frames of the program's start. */
static int add_samples(struct filling *filling, size_t run, const uint32_t *frames, size_t n_frames, uint64_t n)
{
	const struct cluster *cluster = filling->job->cluster;
	struct profile *profile = filling->profile;
	size_t first = 0, allocated = filling->totals_allocated;
	int32_t stack = -1;
	int r = 0;

	while (first < n_frames && frame_is_start(&cluster->frames[frames[first]]))
		first++;
	for (size_t i = first == n_frames ? 0 : first; r >= 0 && i < n_frames; i++)
		r = enter(filling, frames[i], &stack);
	if (r >= 0)
		r = grow(&profile->totals, profile->n_totals, &allocated, sizeof *profile->totals);
	if (r >= 0)
		r = grow(&filling->ranks_of, profile->n_totals, &filling->totals_allocated, sizeof *filling->ranks_of);
	if (r < 0)
		return r;
	filling->ranks_of[profile->n_totals] = (int32_t)run;
	profile->totals[profile->n_totals++] = (struct profile_total){ .stack = stack, .samples = n, .weight = n };
	return 0;
}

static void name_run(struct filling *filling, const struct cluster_rank *rank, enum side side)
{
	char *name = filling->names[filling->n_ranks];

	snprintf(name, MAX_NAME, rank->identity.rank >= 0 ? "rank %jd" : "pid %jd",
		 (intmax_t)(rank->identity.rank >= 0 ? rank->identity.rank : rank->pid));
	filling->ranks[filling->n_ranks++] = (struct compare_rank){ side, name };
}

static int add_rank(struct filling *filling, size_t i, enum side side)
{
	const struct cluster *cluster = filling->job->cluster;
	const struct cluster_rank *rank = job_rank(filling->job, i);
	size_t first = filling->n_ranks, n_parts = rank->n_threads >= MIN_LOOKS ? filling->n_parts : 1;
	uint64_t n_samples = 0;
	double share;
	int r = 0;

	for (size_t k = 0; k < rank->n_looks; k++)
		n_samples += rank->looks[k].n;
	share = n_samples > REPORT_MAX_LOOKS ? (double)REPORT_MAX_LOOKS / (double)n_samples : 1;
	for (size_t k = 0; r >= 0 && k < rank->n_threads; k++)
		r = add_samples(filling, first + k * n_parts / rank->n_threads, rank->threads[k].frames,
				rank->threads[k].n_frames, 1);
	for (size_t k = 0; r >= 0 && k < rank->n_looks; k++) {
		const struct cluster_stack *stack = &cluster->stacks[rank->looks[k].stack];
		uint64_t n = (uint64_t)llround((double)rank->looks[k].n * share);

		if (n > 0)
			r = add_samples(filling, first, stack->frames, stack->n_frames, n);
	}
	for (size_t part = 0; part < n_parts; part++)
		name_run(filling, rank, side);
	return r;
}

/* -ENOENT: the rank, or all others, have no samples. */
static int fill(struct filling *filling, size_t odd)
{
	const struct job *job = filling->job;
	size_t n_others = 0, at = 0;
	int r = profile_new(&filling->profile);

	for (size_t i = 0; i < job->n; i++)
		n_others += i != odd && job->n_looks[i] > 0;
	if (n_others == 0 || job->n_looks[odd] == 0)
		return r < 0 ? r : -ENOENT;
	filling->n_parts = n_others <= FEW_OTHERS ? N_PARTS : 1;
	filling->ranks = calloc(MAX_OTHERS + N_PARTS * (FEW_OTHERS + 1), sizeof *filling->ranks);
	filling->names = calloc(MAX_OTHERS + N_PARTS * (FEW_OTHERS + 1), sizeof *filling->names);
	if (!filling->ranks || !filling->names)
		return -ENOMEM;
	if (r >= 0)
		r = add_frames(filling->profile, job->cluster);
	for (size_t i = 0; r >= 0 && i < job->n; i++) {
		if (i == odd || job->n_looks[i] == 0)
			continue;
		/* Of more than MAX_OTHERS, those where the quotient grows. */
		if (n_others <= MAX_OTHERS || (at + 1) * MAX_OTHERS / n_others > at * MAX_OTHERS / n_others)
			r = add_rank(filling, i, SIDE_BASE);
		at++;
	}
	if (r >= 0)
		r = add_rank(filling, odd, SIDE_HEAD);
	filling->profile->unit = "samples";
	return r < 0 ? r : profile_label_files(filling->profile);
}

/* The tree of rank i against those of the others. @ret: compare_free() ends it. -ENOENT, -ENOMEM. */
static int compare_ranks(const struct job *job, size_t i, struct compare **ret)
{
	const struct compare_options options = {
		.per = PER_SAMPLES, .stacks = true, .ranks = true, .min_share = MIN_SHARE
	};
	CLEANUP(compare_freep) struct compare *compare = NULL;
	CLEANUP(filling_done) struct filling filling = { .job = job };
	int r = fill(&filling, i);

	if (r >= 0)
		r = compare_new(&options, &compare);
	if (r >= 0)
		r = compare_add_ranks(compare, filling.profile, filling.ranks, filling.n_ranks, filling.ranks_of);
	if (r >= 0)
		r = compare_compute(compare);
	if (r < 0)
		return r;
	*ret = TAKE(compare);
	return 0;
}

/* ---- Paths ---- */

static double change_of(const struct compare_row *row)
{
	return row->total.head - row->total.base;
}

/* Of equal changes, what the rank does more often comes first. */
static double size_of(const struct compare_row *row)
{
	return fabs(change_of(row)) + (change_of(row) > 0 ? 1e-9 : 0);
}

static bool is_above(const struct compare *compare, uint32_t above, uint32_t node)
{
	while (node > above)
		node = compare->nodes[node].parent;
	return node == above;
}

/* Whether a path contains another one, or is within it. */
static bool is_related(const struct compare *compare, const struct compare_row *const *taken, size_t n,
		       const struct compare_row *row)
{
	for (size_t i = 0; i < n; i++)
		if (is_above(compare, taken[i]->node, row->node) || is_above(compare, row->node, taken[i]->node))
			return true;
	return false;
}

/* A callee of row with most of its change; NULL: its change is spread, or its own. */
static const struct compare_row *find_callee(const struct compare *compare, const struct compare_row *row)
{
	for (size_t i = 0; i < compare->n_stacks; i++) {
		const struct compare_row *callee = &compare->stacks[i];

		if (callee->total.is_known && callee->node > row->node && is_above(compare, row->node, callee->node) &&
		    change_of(callee) / change_of(row) >= MOST_OF_IT)
			return callee;
	}
	return NULL;
}

/* The largest change; of about equal ones the innermost. NULL: there is none that is sure. */
static const struct compare_row *find_largest(const struct compare *compare, const struct compare_row *const *taken,
					      size_t n)
{
	const struct compare_row *best = NULL, *callee;

	for (size_t i = 0; i < compare->n_stacks; i++) {
		const struct compare_row *row = &compare->stacks[i];

		if (row->total.is_known && !is_related(compare, taken, n, row) &&
		    (!best || size_of(row) > size_of(best)))
			best = row;
	}
	while (best && (callee = find_callee(compare, best)))
		best = callee;
	return best;
}

int report_stacks(struct job *job, size_t i, unsigned max)
{
	CLEANUP(compare_freep) struct compare *compare = NULL;
	CLEANUP(freep) const struct compare_row **taken = calloc(max + 1, sizeof *taken);
	struct rank_findings *findings = &job->findings[i];
	const struct compare_row *row;
	int r;

	findings->stacks = calloc(max + 1, sizeof *findings->stacks);
	if (!taken || !findings->stacks)
		return -ENOMEM;
	r = compare_ranks(job, i, &compare);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	while (findings->n_stacks < max && (row = find_largest(compare, taken, findings->n_stacks))) {
		struct stack_difference *to = &findings->stacks[findings->n_stacks];

		*to = (struct stack_difference){ .title = compare_stack_title(compare, row->node),
						 .base = row->total.base,
						 .head = row->total.head,
						 .p = row->total.adjusted };
		if (!to->title)
			return -ENOMEM;
		taken[findings->n_stacks++] = row;
	}
	return 0;
}

/* ---- Picture ---- */

static int put_picture(const struct job *job, size_t i, bool is_html, FILE *out)
{
	CLEANUP(compare_freep) struct compare *compare = NULL;
	const struct cluster_rank *rank = job_rank(job, i);
	char title[64];
	int r = compare_ranks(job, i, &compare);

	if (r < 0)
		return r;
	snprintf(title, sizeof title,
		 rank->identity.rank >= 0 ? "rank %jd against the others" : "pid %jd against the others",
		 (intmax_t)(rank->identity.rank >= 0 ? rank->identity.rank : rank->pid));
	return is_html ? compare_write_html(compare, title, out) : compare_write_svg(compare, title, out);
}

static double oddness(const struct rank_findings *findings)
{
	double most = findings->slow.is_slow ? 1 + findings->slow.change : 0;

	for (size_t k = 0; k < findings->n_places; k++)
		most = MAX(most, fabs(findings->places[k].share - findings->places[k].typical));
	return most + findings->is_odd;
}

/* @rank: negative: the one that differs most. Returns n if there is none. */
static size_t choose(const struct job *job, int64_t rank)
{
	size_t best = job->n;

	for (size_t i = 0; i < job->n; i++) {
		if (rank >= 0 && job_rank(job, i)->identity.rank != rank)
			continue;
		if (job->n_looks[i] > 0 &&
		    (best == job->n || oddness(&job->findings[i]) > oddness(&job->findings[best])))
			best = i;
	}
	return best;
}

int cluster_report_picture(const struct cluster *cluster, int64_t rank, bool is_html, FILE *out)
{
	struct job job = { 0 };
	size_t i;
	int r = cluster->n_ranks > 0 ? report_find(cluster, 0, 0, &job) : -ENOENT;

	if (r >= 0) {
		i = choose(&job, rank);
		r = i < job.n ? put_picture(&job, i, is_html, out) : -ENOENT;
	}
	report_done(&job);
	return r;
}
