/* SPDX-License-Identifier: MIT */
/*
 * import_pstats.c - the dumps of cProfile and profile, the format of pstats.
 *
 * A marshalled dict of (file, line, name) to (primitive calls, calls, own seconds, all seconds, callers), where callers
 * is a dict of functions to (calls, primitive calls, own seconds, all seconds), or of `profile` to a number of calls.
 * It has callers, not stacks: calls.c estimates those. A "sample" is a call.
 * Source: CPython's Lib/cProfile.py, Lib/profile.py, Lib/pstats.py, 2.7 to 3.14.
 */
#include <errno.h>
#include <math.h>

#include "src/import/calls.h"
#include "src/import/ids.h"
#include "src/import/marshal.h"

/* A dict of callers is stored once, but many functions may refer to it. */
enum { PSTATS_PID = 1, MAX_EDGES = 1 << 22 };
#define MAX_SECONDS 1e9 /* per function; three decades */

struct pstats {
	struct sink *sink;
	const struct marshal *marshal;
	struct ids known; /* by file, line and name */
	struct calls calls;
};

static void pstats_done(struct pstats *pstats)
{
	ids_done(&pstats->known);
	calls_done(&pstats->calls);
}

static int damaged(const struct pstats *pstats)
{
	return sink_explain(pstats->sink, -EBADMSG, "it is not in the format of pstats");
}

/* Index of the function (file, line, name). */
static int find_function(struct pstats *pstats, const struct marshal_value *key, uint32_t *ret)
{
	const struct marshal_value *file = marshal_item(pstats->marshal, key, 0),
				   *line = marshal_item(pstats->marshal, key, 1);
	const struct marshal_value *name = marshal_item(pstats->marshal, key, 2);
	struct sink_frame frame = { .kind = FRAME_PYTHON };
	struct calls *calls = &pstats->calls;
	int64_t place;
	int r;

	if (!name || file->type != MARSHAL_TEXT || name->type != MARSHAL_TEXT || line->type != MARSHAL_INTEGER)
		return damaged(pstats);
	frame.name = name->text.n > 0 ? name->text : piece_of("?");
	if (file->text.n == 1 && file->text.at[0] == '~') /* C functions */
		frame.kind = FRAME_NATIVE;
	else
		frame.file = file->text;
	frame.first_line = line->integer > 0 && line->integer < INT32_MAX ? (int)line->integer : 0;
	frame.line = frame.first_line;
	r = sink_frame(pstats->sink, &frame, &place);
	if (r >= 0)
		r = ids_add(&pstats->known, &place, sizeof place, &place);
	if (r > 0) {
		r = grow(&calls->functions, calls->n_functions, &calls->functions_allocated, sizeof *calls->functions);
		if (r >= 0) /* function indices equal the sink's frame numbers */
			calls->functions[calls->n_functions++] = (struct call_function){ .frame = place };
	}
	if (r >= 0)
		*ret = (uint32_t)place - 1;
	return r;
}

/* Read a non-negative number of a row; false: it is none. */
static bool number_at(const struct pstats *pstats, const struct marshal_value *row, size_t i, double most, double *ret)
{
	const struct marshal_value *value = marshal_item(pstats->marshal, row, i);

	if (!value || (value->type != MARSHAL_INTEGER && value->type != MARSHAL_REAL) || !(value->real < most))
		return false;
	*ret = MAX(value->real, 0); /* the clock may have gone backwards */
	return true;
}

static int read_edge(struct pstats *pstats, uint32_t callee, uint32_t caller, const struct marshal_value *row,
		     double calls, double own_s, double all_s)
{
	struct call_edge edge = { .caller = caller, .callee = callee };
	struct calls *all = &pstats->calls;
	int r;

	if (row->type == MARSHAL_INTEGER) { /* only a number of calls: split the times in proportion */
		double share = calls > 0 ? MIN(MAX(row->real, 0) / calls, 1) : 0;

		edge.calls = share * calls;
		edge.self_weight = share * own_s * 1e9;
		edge.total_weight = share * all_s * 1e9;
	} else {
		if (!number_at(pstats, row, 0, MAX_SECONDS * 1e9, &edge.calls) ||
		    !number_at(pstats, row, 2, MAX_SECONDS, &edge.self_weight) ||
		    !number_at(pstats, row, 3, MAX_SECONDS, &edge.total_weight))
			return damaged(pstats);
		edge.self_weight *= 1e9;
		edge.total_weight *= 1e9;
	}
	if (all->n_edges == MAX_EDGES)
		return sink_explain(pstats->sink, -EBADMSG, "it has more than %d pairs of callers and functions",
				    MAX_EDGES);
	r = grow(&all->edges, all->n_edges, &all->edges_allocated, sizeof *all->edges);
	if (r >= 0)
		all->edges[all->n_edges++] = edge;
	return r;
}

static int read_entry(struct pstats *pstats, const struct marshal_value *key, const struct marshal_value *row)
{
	const struct marshal_value *callers = marshal_item(pstats->marshal, row, 4);
	double calls, own_s, all_s;
	struct call_function *function;
	uint32_t index, caller;
	int r;

	if (!callers || callers->type != MARSHAL_DICT || !number_at(pstats, row, 1, MAX_SECONDS * 1e9, &calls) ||
	    !number_at(pstats, row, 2, MAX_SECONDS, &own_s) || !number_at(pstats, row, 3, MAX_SECONDS, &all_s))
		return damaged(pstats);
	r = find_function(pstats, key, &index);
	for (size_t i = 0; i + 1 < callers->n_items && r >= 0; i += 2) {
		r = find_function(pstats, marshal_item(pstats->marshal, callers, i), &caller);
		if (r >= 0)
			r = read_edge(pstats, index, caller, marshal_item(pstats->marshal, callers, i + 1), calls,
				      own_s, all_s);
	}
	if (r < 0)
		return r;
	function = &pstats->calls.functions[index];
	function->calls = calls;
	function->self_weight = own_s * 1e9;
	function->total_weight = all_s * 1e9;
	return 0;
}

static int read_pstats(const struct import_input *input, struct sink *sink)
{
	CLEANUP(marshal_done) struct marshal marshal = { 0 };
	CLEANUP(pstats_done) struct pstats pstats = { .sink = sink, .marshal = &marshal };
	const struct marshal_value *all;
	int r;

	strcpy(sink_run(sink)->event, "calls");
	r = marshal_read(input->bytes, input->n_bytes, &marshal);
	if (r == -E2BIG)
		return sink_explain(sink, -EBADMSG, "it has more than %d values", MARSHAL_MAX_VALUES);
	if (r < 0)
		return r == -EBADMSG ? damaged(&pstats) : r;
	all = &marshal.values[0];
	if (all->type != MARSHAL_DICT)
		return damaged(&pstats);
	for (size_t i = 0; i + 1 < all->n_items && r >= 0; i += 2) {
		r = read_entry(&pstats, marshal_item(&marshal, all, i), marshal_item(&marshal, all, i + 1));
		if (r >= 0)
			r = sink_read(sink, i + 2, all->n_items);
	}
	return r < 0 ? r : calls_spread(&pstats.calls, sink, PSTATS_PID);
}

/* Whether the file is a dict whose first key is a tuple of three. */
static bool is_pstats(const uint8_t *bytes, size_t n_bytes)
{
	if (n_bytes < 8 || (bytes[0] & 0x7f) != '{')
		return false;
	return ((bytes[1] & 0x7f) == '(' && bytes[2] == 3 && bytes[3] == 0) ||
	       ((bytes[1] & 0x7f) == ')' && bytes[2] == 3);
}

const struct importer import_pstats = {
	.name = "pstats",
	.summary = "dumps of cProfile and profile, as pstats reads them",
	.recognise = is_pstats,
	.read = read_pstats,
};
