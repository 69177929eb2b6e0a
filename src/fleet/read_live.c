/* SPDX-License-Identifier: MIT */
/* read_live.c - the last samples of a job, again and again, for top.
 *
 * Stacks and functions are fetched once; runs and threads again after some questions, because a job gets new ones.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/fleet/read_private.h"

enum { ASKS_PER_SURVEY = 10 };

struct fleet_live {
	struct fleet *fleet;
	struct fleet_selection selection;
	struct fleet_answers answers;
	struct fleet_writer writer;
	unsigned n_asks;      /* since the runs and threads were fetched */
	bool has_new_threads; /* that are not in the store */
};

int fleet_live_new(struct fleet *fleet, const struct fleet_selection *selection, struct store *store,
		   const char *version, struct fleet_live **ret)
{
	struct fleet_live *live;
	bool is_raw;
	int r = fleet_are_raw(fleet, &is_raw);

	if (r == 0 && !is_raw)
		r = fleet_fail(
			fleet, -EINVAL,
			"the shippers send no single samples, only sums of minutes, of which report has the last ones");
	if (r == 0)
		r = store_begin(store);
	if (r < 0)
		return r;
	live = calloc(1, sizeof *live);
	if (!live)
		return -ENOMEM;
	live->fleet = fleet;
	live->selection = *selection;
	live->n_asks = ASKS_PER_SURVEY;
	live->writer = (struct fleet_writer){ .fleet = fleet, .answers = &live->answers, .store = store };
	r = fleet_write_run(&live->writer, false, version);
	if (r == 0)
		r = store_commit(store);
	if (r < 0)
		fleet_live_free(live);
	else
		*ret = live;
	return r;
}

void fleet_live_free(struct fleet_live *live)
{
	if (!live)
		return;
	fleet_writer_done(&live->writer);
	fleet_answers_done(&live->answers);
	free(live);
}

/* New recordings of the job, and their threads. */
static int survey(struct fleet_live *live)
{
	int r = fleet_select(live->fleet, &live->selection);

	if (r < 0)
		return r;
	fleet_forget_threads(&live->answers);
	r = fleet_fetch_threads(live->fleet, &live->answers);
	if (r == 0) {
		live->has_new_threads = true;
		live->n_asks = 0;
	}
	return r;
}

static int fetch(struct fleet_live *live, double window_s, uint64_t *ret_newest_ms)
{
	struct fleet_selection selection = live->selection;
	int r = live->n_asks++ >= ASKS_PER_SURVEY ? survey(live) : 0;

	live->answers.n_sums = 0;
	if (r == 0)
		r = fleet_newest(live->fleet, &selection, ret_newest_ms);
	if (r < 0 || *ret_newest_ms == 0)
		return r;
	selection.has_since = selection.has_until = true;
	selection.until = (double)(*ret_newest_ms + 1) / 1000;
	selection.since = selection.until - window_s;
	r = fleet_fetch_samples(live->fleet, &selection, &live->answers);
	return r < 0 ? r : fleet_fetch_stacks(live->fleet, &live->answers);
}

/* Of sums, which come by run. */
static void count_sources(const struct fleet_live *live, struct fleet_live_state *ret)
{
	const struct fleet *fleet = live->fleet;
	struct interner hosts = { 0 }, ranks = { 0 };

	for (size_t i = 0; i < live->answers.n_sums; i++) {
		const struct fleet_sum *sum = &live->answers.sums[i];
		const struct fleet_thread *thread = fleet_find_thread(&live->answers, sum);
		const int64_t key[] = { thread && thread->rank >= 0 ? 0 : (int64_t)sum->run,
					thread ? thread->rank : -1 };
		uint32_t ignored;

		(void)interner_add(&ranks, key, sizeof key, &ignored);
		for (size_t k = 0; k < fleet->n_runs && (i == 0 || sum->run != sum[-1].run); k++)
			if (fleet->runs[k].run == sum->run)
				(void)interner_add(&hosts, fleet->runs[k].host, strlen(fleet->runs[k].host), &ignored);
	}
	ret->n_hosts = hosts.n;
	ret->n_ranks = ranks.n;
	interner_done(&hosts);
	interner_done(&ranks);
}

static int put_all(struct fleet_live *live, int (*take)(void *data, const struct sample_row *row, uint64_t n_samples),
		   void *data)
{
	int r = fleet_write_names(&live->writer);

	if (r == 0 && live->has_new_threads)
		r = fleet_write_threads(&live->writer, true);
	live->has_new_threads &= r < 0;
	for (size_t i = 0; i < live->answers.n_sums && r == 0; i++) {
		const struct fleet_sum *sum = &live->answers.sums[i];
		const struct fleet_thread *thread = fleet_find_thread(&live->answers, sum);
		struct sample_row row = { .pid = (pid_t)(sum->pid + (thread ? thread->apart : 0)),
					  .tid = (pid_t)(sum->tid + (thread ? thread->apart : 0)),
					  .weight = sum->weight };

		r = fleet_find_stack(&live->writer, sum, &row.stack);
		if (r == 0)
			r = take(data, &row, sum->samples);
	}
	return r;
}

int fleet_live_ask(struct fleet_live *live, double window_s,
		   int (*take)(void *data, const struct sample_row *row, uint64_t n_samples), void *data,
		   struct fleet_live_state *ret)
{
	uint64_t newest_ms = 0;
	int r = fetch(live, window_s, &newest_ms);

	if (r == 0)
		r = store_begin(live->writer.store);
	if (r < 0)
		return r;
	r = put_all(live, take, data);
	if (r == 0)
		r = store_commit(live->writer.store);
	*ret = (struct fleet_live_state){ .newest_ns = newest_ms * 1000000, .hz = live->fleet->runs[0].hz };
	count_sources(live, ret);
	return r;
}
