/* SPDX-License-Identifier: MIT */
/* format.c - numbers, changes and remarks; see format.h. */
#include "src/compare/format.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/util.h"

enum { MAX_NAMED = 3, MAX_CELL = 64, MAX_TITLE = 6 };

const char *compare_quantity(const struct compare *compare)
{
	static const char *const of_time[] = { "time in a run", "time in a second of wall time", "share of all samples",
					       "time relative to the rest of the same run",
					       "time per unit of the counter" };
	static const char *const of_events[] = { "events in a run", "events in a second of wall time",
						 "share of all events", "events relative to the rest of the same run",
						 "events per unit of the counter" };

	if (compare->options.steps && compare->options.per == PER_RUN)
		return compare->unit ? "events in a step" : "time in a step";
	return (compare->unit ? of_events : of_time)[compare->options.per];
}

const char *compare_unit(const struct compare *compare)
{
	if (compare->options.per == PER_SAMPLES)
		return "share";
	if (compare->options.per == PER_REST)
		return "of the rest";
	return compare->unit ? compare->unit : "s";
}

bool compare_has_whole(const struct compare *compare)
{
	return compare->options.per != PER_SAMPLES && compare->options.per != PER_REST;
}

/* At most four digits and a unit prefix. */
static void format_scaled(double value, const char *const *units, size_t n_units, double first, char *to,
			  size_t n_bytes)
{
	size_t unit = 0;

	for (value /= first; fabs(value) >= 999.5 && unit + 1 < n_units; unit++)
		value /= 1000;
	snprintf(to, n_bytes, "%.*f%s", fabs(value) < 9.995 ? 2 : fabs(value) < 99.95 ? 1 : 0, value, units[unit]);
}

void compare_format(const struct compare *compare, double value, char *to, size_t n_bytes)
{
	static const char *const times[] = { " ns", " us", " ms", " s" };
	static const char *const counts[] = { "", " k", " M", " G", " T" };

	if (value == 0)
		snprintf(to, n_bytes, "0");
	else if (compare->options.per == PER_REST && !isfinite(value))
		snprintf(to, n_bytes, "all");
	else if (!compare_has_whole(compare))
		snprintf(to, n_bytes, "%.*f %%", value < 100 ? 1 : 0, 100 * value);
	else if (compare->unit)
		format_scaled(value, counts, N_ELEMENTS(counts), 1, to, n_bytes);
	else
		format_scaled(value, times, N_ELEMENTS(times), 1e-9, to, n_bytes);
}

void format_change(const struct estimate *estimate, char *to, size_t n_bytes)
{
	if (!estimate->is_known)
		snprintf(to, n_bytes, "~");
	else if (isinf(estimate->change))
		snprintf(to, n_bytes, "new");
	else if (estimate->head <= 0)
		snprintf(to, n_bytes, "gone");
	else
		snprintf(to, n_bytes, "%+.1f %%", 100 * estimate->change);
}

void format_interval(const struct estimate *estimate, char *to, size_t n_bytes)
{
	if (!isfinite(estimate->low) || !isfinite(estimate->high) || estimate->head <= 0)
		to[0] = '\0';
	else
		snprintf(to, n_bytes, "[%+.1f, %+.1f] %%", 100 * estimate->low, 100 * estimate->high);
}

static size_t first_of(const struct compare *compare, enum side side)
{
	return side == SIDE_BASE ? 0 : compare->n_side[SIDE_BASE];
}

const char *outcome_text(enum outcome outcome)
{
	static const char *const words[] = {
		[OUTCOME_PASSED] = "passed",
		[OUTCOME_CANNOT_TELL] = "inconclusive",
		[OUTCOME_REGRESSED] = "REGRESSED",
	};

	return words[outcome];
}

void print_finding(const struct compare *compare, const struct compare_finding *finding, FILE *out)
{
	struct compare time = { .options.per = PER_RUN };
	const struct compare *unit = finding->is_wall ? &time : compare;
	char base[MAX_CELL], head[MAX_CELL], interval[MAX_CELL];

	if (finding->has_estimate) {
		compare_format(unit, finding->estimate.base, base, sizeof base);
		compare_format(unit, finding->estimate.head, head, sizeof head);
		format_interval(&finding->estimate, interval, sizeof interval);
		fprintf(out, "%s to %s", base, head);
		if (finding->estimate.base > 0)
			fprintf(out, ", %+.1f %%", 100 * finding->estimate.change);
		fprintf(out, "%s%s, p %.2g", interval[0] ? " " : "", interval, finding->estimate.adjusted);
	}
	if (finding->why)
		fprintf(out, "%s%s", finding->has_estimate ? "; " : "", finding->why);
}

/* Length of the file's part of a run's name. */
static size_t file_bytes(const char *name)
{
	const char *number = strrchr(name, '#');

	return number && number[1] && strspn(number + 1, "0123456789") == strlen(number + 1) ? (size_t)(number - name)
											     : strlen(name);
}

static void print_steps(const struct compare *compare, enum side side, FILE *out)
{
	const struct compare_run *runs = &compare->runs[first_of(compare, side)];
	double n = 0;

	for (size_t i = 0; i < compare->n_side[side]; i++)
		n += runs[i].n_steps;
	fprintf(out, "%.0f %sstep%s of %s", n, side == SIDE_HEAD ? "slow " : "other ", n == 1 ? "" : "s", runs[0].name);
}

/* A rank may be several runs, one after the other. */
static void print_ranks(const struct compare *compare, enum side side, FILE *out)
{
	const struct compare_run *runs = &compare->runs[first_of(compare, side)];
	size_t n = 1;

	for (size_t i = 1; i < compare->n_side[side]; i++)
		n += strcmp(runs[i].name, runs[i - 1].name) != 0;
	if (n == 1)
		fputs(runs[0].name, out);
	else
		fprintf(out, "%zu other ranks", n);
}

void print_runs(const struct compare *compare, enum side side, FILE *out)
{
	const struct compare_run *runs = &compare->runs[first_of(compare, side)];
	const char *last = "";
	size_t n = compare->n_side[side], n_files = 0, last_bytes = 0;

	if (compare->options.steps) {
		print_steps(compare, side, out);
		return;
	}
	if (compare->options.ranks) {
		print_ranks(compare, side, out);
		return;
	}
	fprintf(out, "%zu run%s of", n, n == 1 ? "" : "s");
	for (size_t i = 0; i < n; i++) {
		size_t bytes = file_bytes(runs[i].name);

		if (bytes == last_bytes && strncmp(last, runs[i].name, bytes) == 0)
			continue;
		last = runs[i].name;
		last_bytes = bytes;
		if (n_files++ < MAX_NAMED)
			fprintf(out, "%s %.*s", n_files == 1 ? "" : ",", (int)bytes, last);
	}
	if (n_files > MAX_NAMED)
		fprintf(out, " and %zu other file%s", n_files - MAX_NAMED, n_files - MAX_NAMED == 1 ? "" : "s");
}

static size_t count_ambiguous(const struct compare *compare)
{
	size_t n = 0;

	for (size_t i = 0; i < compare->n_rows; i++)
		n += compare->functions[compare->rows[i].function].is_ambiguous;
	return n;
}

static bool has_no_rest(const struct compare *compare)
{
	for (size_t i = 0; i < compare->n_rows; i++)
		if (compare->rows[i].self.has_no_rest || compare->rows[i].total.has_no_rest)
			return true;
	return false;
}

static void print_differences(const struct compare *compare, const char *prefix, FILE *out)
{
	for (size_t field = 0; field < N_ABOUT; field++) {
		const char *base, *head;

		if (compare_differs(compare, field, &base, &head))
			fprintf(out, "%s%s differs: %s, %s%s\n", prefix, about_fields[field].name, base, head,
				about_fields[field].matters ? "; this may explain differences" : "");
	}
}

void print_remarks(const struct compare *compare, const char *prefix, FILE *out)
{
	size_t n = count_ambiguous(compare);

	print_differences(compare, prefix, out);
	if (compare->n_side[SIDE_BASE] + compare->n_side[SIDE_HEAD] == 2 && !compare->options.steps)
		fprintf(out,
			"%sone run each: the variation between runs is unknown; changes are significant between these "
			"two runs only\n",
			prefix);
	else if (compare->by_count)
		fprintf(out,
			compare->options.steps
				? "%sfew steps: the variation between steps is uncertain; record longer\n"
				: "%sfew runs: the variation between runs is uncertain; use 10 each\n",
			prefix);
	if (n > 0)
		fprintf(out, "%s* %zu name%s of several functions, in files of one name: they are added up\n", prefix,
			n, n == 1 ? " is" : "s are");
	if (has_no_rest(compare))
		fprintf(out, "%sall: nothing else ran to normalise against\n", prefix);
	if (compare->n_unmatched > 0)
		fprintf(out,
			"%s%zu functions may have moved to another file, but several have their name: they stay "
			"separate\n",
			prefix, compare->n_unmatched);
}

char *compare_title(const struct compare_function *function)
{
	char *title = NULL;

	if (asprintf(&title, function->place[0] ? "%s (%s)" : "%s%s", function->name, function->place) < 0)
		return NULL;
	return title;
}

char *compare_stack_title(const struct compare *compare, uint32_t node)
{
	const struct compare_function *last = &compare->functions[compare->nodes[node].function];
	uint32_t nodes[MAX_TITLE], n = 0;
	char *text = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);

	if (!out)
		return NULL;
	for (uint32_t at = node; at != 0 && n < MAX_TITLE; at = compare->nodes[at].parent)
		nodes[n++] = at;
	if (n > 0 && compare->nodes[nodes[n - 1]].parent != 0)
		fputs("... > ", out);
	for (uint32_t i = n; i-- > 0;)
		fprintf(out, "%s%s", compare->functions[compare->nodes[nodes[i]].function].name, i > 0 ? " > " : "");
	if (last->place[0])
		fprintf(out, "  (%s)", last->place);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

void print_path(const struct compare *compare, uint32_t node, FILE *out)
{
	uint32_t depth = 0;

	for (uint32_t at = node; at != 0; at = compare->nodes[at].parent)
		depth++;
	for (uint32_t i = depth; i-- > 0;) { /* go up again for each level: rows are few */
		uint32_t at = node;

		for (uint32_t up = 0; up < i; up++)
			at = compare->nodes[at].parent;
		fprintf(out, "%s%s", i + 1 < depth ? ";" : "", compare->functions[compare->nodes[at].function].name);
	}
}

size_t row_limit(size_t n, unsigned max_rows)
{
	return max_rows > 0 ? MIN(n, (size_t)max_rows) : n;
}
