/* SPDX-License-Identifier: MIT */
/* collectives.c - the section of a report about dumps of Flight Recorders; see collectives.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/rank.h"
#include "base/util.h"
#include "src/columns/columns.h"
#include "src/report/sections.h"

enum { MAX_COLUMNS = 200 };

const char *const report_group_state_names[GROUP_N_STATES] = { "ended", "goes_on", "behind", "differs" };

void report_collectives_done(struct report_collectives *collectives)
{
	for (size_t i = 0; i < collectives->n_groups; i++) {
		struct report_group *group = &collectives->groups[i];

		for (size_t j = 0; j < group->n_parts; j++) {
			free(group->parts[j].ranks);
			free(group->parts[j].op);
			free(group->parts[j].state);
			free(group->parts[j].func);
			free(group->parts[j].file);
		}
		free(group->parts);
		free(group->name);
		free(group->description);
	}
	free(collectives->groups);
	*collectives = (struct report_collectives){ 0 };
}

/* ---- Text ---- */

static void put(const char *text, FILE *out)
{
	cell_put(out, text, MAX_COLUMNS, CELL_CUT_MIDDLE);
}

static int put_ranks(const struct report_group_ranks *part, FILE *out)
{
	CLEANUP(freep) int64_t *ranks = calloc(part->n + 1, sizeof *ranks);

	if (!ranks)
		return -ENOMEM;
	memcpy(ranks, part->ranks, part->n * sizeof *ranks);
	fputs(part->n == 1 ? "  rank " : "  ranks ", out);
	rank_put_ranges(ranks, part->n, out);
	return 0;
}

static void put_operation(const struct report_group_ranks *part, FILE *out)
{
	if (part->op)
		put(part->op, out);
	fprintf(out, "%s%jd", part->op ? ", number " : "number ", (intmax_t)part->seq);
	if (part->state) {
		fputs(" (", out);
		put(part->state, out);
		fputs(")", out);
	}
	if (part->func) {
		fputs(", called by ", out);
		put(part->func, out);
	}
	if (part->file) {
		fputs(" (", out);
		put(path_base_name(part->file), out);
		fprintf(out, part->line > 0 ? ":%jd)" : ")", (intmax_t)part->line);
	}
}

static int put_part(const struct report_group *group, const struct report_group_ranks *part, FILE *out)
{
	int r = put_ranks(part, out);

	if (r < 0)
		return r;
	if (!part->has_dump) {
		fprintf(out, ": no dump\n");
		return 0;
	}
	if (part->seq == 0) {
		fprintf(out, part->has_come ? ": no collective in this group\n"
					    : ": not there; no collective in this group\n");
		return 0;
	}
	fputs(!part->has_come ? (part->n == 1 ? ": not there; its last is " : ": not there; their last is ") : ": ",
	      out);
	if (part->has_come && !part->op)
		fprintf(out, "past number %jd, which the dump no longer has", (intmax_t)group->seq);
	else
		put_operation(part, out);
	fputs("\n", out);
	return 0;
}

static void put_group_head(const struct report_group *group, FILE *out)
{
	fputs("\ngroup ", out);
	put(group->name, out);
	if (group->description) {
		fputs(" (", out);
		put(group->description, out);
		fputs(")", out);
	}
	fprintf(out, ", %jd rank%s: ", (intmax_t)group->n_ranks, group->n_ranks == 1 ? "" : "s");
	switch (group->state) {
	case GROUP_ENDED:
	case GROUP_N_STATES:
		fprintf(out, group->seq > 0 ? "no collective waits, the last is number %jd\n" : "no collective\n",
			(intmax_t)group->seq);
		break;
	case GROUP_GOES_ON:
		fprintf(out, "all that have a dump are in collective %jd, which has not ended\n", (intmax_t)group->seq);
		break;
	case GROUP_BEHIND:
		fprintf(out, "not all have come to collective %jd\n", (intmax_t)group->seq);
		break;
	case GROUP_DIFFERS:
		fprintf(out, "collective %jd is not the same operation in all ranks\n", (intmax_t)group->seq);
		break;
	}
}

int print_collectives(const struct report_collectives *collectives, FILE *out)
{
	int r = 0;

	fprintf(out, "\nFlight Recorder: %jd dump%s, %jd operations\n", (intmax_t)collectives->n_dumps,
		collectives->n_dumps == 1 ? "" : "s", (intmax_t)collectives->n_operations);
	if (collectives->n_without_rank > 0)
		fprintf(out, "%jd dump%s not compared: the name of its file does not end with the rank\n",
			(intmax_t)collectives->n_without_rank, collectives->n_without_rank == 1 ? " is" : "s are");
	if (collectives->n_older > 0)
		fprintf(out, "%jd dump%s not compared: the rank has a newer one\n", (intmax_t)collectives->n_older,
			collectives->n_older == 1 ? " is" : "s are");
	for (size_t i = 0; i < collectives->n_groups && r >= 0; i++) {
		const struct report_group *group = &collectives->groups[i];

		put_group_head(group, out);
		for (size_t j = 0; j < group->n_parts && r >= 0; j++)
			r = put_part(group, &group->parts[j], out);
	}
	if (collectives->n_open_messages > 0)
		fprintf(out, "\n%jd message%s not ended: table comm_flight, is_message = 1 AND is_ended = 0\n",
			(intmax_t)collectives->n_open_messages, collectives->n_open_messages == 1 ? " has" : "s have");
	return r;
}

/* ---- JSON ---- */

static void put_json_part(struct json *json, const struct report_group_ranks *part)
{
	to_json_object(json);
	to_json_put_array(json, "ranks");
	for (size_t i = 0; i < part->n; i++)
		to_json_integer(json, part->ranks[i]);
	to_json_array_end(json);
	to_json_put_bool(json, "has_dump", part->has_dump);
	to_json_put_bool(json, "has_come", part->has_come);
	to_json_put_known(json, "seq", part->seq, part->seq > 0);
	to_json_put_text(json, "op", part->op);
	to_json_put_text(json, "state", part->state);
	to_json_put_text(json, "func", part->func);
	to_json_put_text(json, "file", part->file);
	to_json_put_known(json, "line", part->line, part->line > 0);
	to_json_object_end(json);
}

void print_json_collectives(struct json *json, const struct report_collectives *collectives)
{
	to_json_put_object(json, "collectives");
	to_json_put_integer(json, "dumps", collectives->n_dumps);
	to_json_put_integer(json, "dumps_without_rank", collectives->n_without_rank);
	to_json_put_integer(json, "dumps_older", collectives->n_older);
	to_json_put_integer(json, "operations", collectives->n_operations);
	to_json_put_integer(json, "open_messages", collectives->n_open_messages);
	to_json_put_array(json, "groups");
	for (size_t i = 0; i < collectives->n_groups; i++) {
		const struct report_group *group = &collectives->groups[i];

		to_json_object(json);
		to_json_put_string(json, "group", group->name);
		to_json_put_text(json, "description", group->description);
		to_json_put_integer(json, "ranks", group->n_ranks);
		to_json_put_string(json, "state", report_group_state_names[group->state]);
		to_json_put_integer(json, "seq", group->seq);
		to_json_put_array(json, "parts");
		for (size_t j = 0; j < group->n_parts; j++)
			put_json_part(json, &group->parts[j]);
		to_json_array_end(json);
		to_json_object_end(json);
	}
	to_json_array_end(json);
	to_json_object_end(json);
}
