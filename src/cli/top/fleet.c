/* SPDX-License-Identifier: MIT */
/* fleet.c - see top.h.
 *
 * Each refresh asks for the whole window again: shipments come late and in any order, so that a window that ends at the
 * newest sample changes in its middle, too.
 */
#include "src/cli/top/top.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/fleet_source.h"

enum { MAX_NAME = 256, MAX_NOTE = 512 };

struct top_fleet {
	struct fleet_source *source;
	struct fleet_live *live;
	struct store *store; /* of the live's rows */
	uint64_t started_ns;
	bool has_shown;
	char name[MAX_NAME], note[MAX_NOTE];
};

static void forget(struct top_fleet *fleet)
{
	fleet_live_free(TAKE(fleet->live));
	store_close(TAKE(fleet->store));
}

/* Begin with empty tables. */
static int begin(struct top_fleet *fleet, struct top *top)
{
	int r;

	forget(fleet);
	r = top_begin(top, monotonic_ns(), &fleet->store);
	return r < 0 ? r
		     : fleet_live_new(fleet_source_fleet(fleet->source), fleet_source_selection(fleet->source),
				      fleet->store, cli_version, &fleet->live);
}

static int take(void *data, const struct sample_row *row, uint64_t n_samples)
{
	return top_add(data, row, n_samples);
}

static void describe(struct top_fleet *fleet, const struct fleet_live_state *state)
{
	time_t newest_s = (time_t)(state->newest_ns / 1000000000u);
	uint64_t now_ns = realtime_ns(), age_ns = now_ns > state->newest_ns ? now_ns - state->newest_ns : 0;
	struct tm local;
	char when[32];

	if (state->newest_ns == 0) {
		snprintf(fleet->note, sizeof fleet->note, "no sample has arrived yet");
		return;
	}
	localtime_r(&newest_s, &local);
	strftime(when, sizeof when, age_ns < UINT64_C(86400000000000) ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &local);
	snprintf(fleet->note, sizeof fleet->note, "%zu rank%s on %zu host%s; newest sample %s, %.0f s ago",
		 state->n_ranks, state->n_ranks == 1 ? "" : "s", state->n_hosts, state->n_hosts == 1 ? "" : "s", when,
		 (double)age_ns / 1e9);
}

/* The window may have been changed by a key; 0 stands for all since the view began. */
static double window_of(const struct top_fleet *fleet, const struct top *top)
{
	double window_s = top_window(top);

	return window_s > 0 ? window_s : TOP_FLEET_WINDOW_S + (double)(monotonic_ns() - fleet->started_ns) / 1e9;
}

static int ask(struct top_fleet *fleet, struct top *top, struct fleet_live_state *ret)
{
	double window_s = window_of(fleet, top);
	uint64_t now_ns = monotonic_ns();
	int r = fleet->live && !top_is_full(top) ? 0 : begin(fleet, top);

	if (r < 0)
		return r;
	top_replace(top, now_ns - MIN((uint64_t)(window_s * 1e9), now_ns));
	r = fleet_live_ask(fleet->live, window_s, take, top, ret);
	return r < 0 ? r : top_absorb(top, now_ns);
}

/* What passes is shown in place of the state, and asked for again at the next refresh. */
static int fetch(void *data, struct top *top, struct top_status *ret)
{
	struct top_fleet *fleet = data;
	struct fleet_live_state state = { 0 };
	int r = ask(fleet, top, &state);

	if (r == 0)
		describe(fleet, &state);
	else if (r == -EAGAIN && fleet->has_shown)
		snprintf(fleet->note, sizeof fleet->note, "%s", fleet_error(fleet_source_fleet(fleet->source)));
	else
		return r;
	if (r < 0)
		forget(fleet);
	fleet->has_shown = true;
	ret->command = fleet->name;
	ret->python = "";
	ret->source = "fleet";
	ret->hz = state.hz;
	ret->note = fleet->note;
	return 0;
}

int top_fleet_open(const struct top_arguments *arguments, struct top_session *session, struct top_fleet **ret)
{
	struct top_fleet *fleet = calloc(1, sizeof *fleet);
	int status;

	*ret = fleet;
	if (!fleet)
		return cli_fail(EXIT_FAILED, "not enough memory");
	fleet->started_ns = monotonic_ns();
	fleet_source_name(arguments->address, fleet->name, sizeof fleet->name);
	status = fleet_source_open(arguments->address, &arguments->view, &fleet->source);
	session->fetch = fetch;
	session->fetch_data = fleet;
	return status;
}

void top_fleet_close(struct top_fleet *fleet)
{
	if (!fleet)
		return;
	forget(fleet);
	fleet_source_close(fleet->source);
	free(fleet);
}

int top_fleet_fail(const struct top_fleet *fleet, int error)
{
	return fleet_source_fail(fleet->source, error);
}
