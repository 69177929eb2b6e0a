/* SPDX-License-Identifier: MIT */
/* write_markdown.c - a comparison as a comment on a change: the results of the rules, changes as a table, the rest in
 * one line. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/compare/format.h"

enum { MAX_CELL = 64 };

/* Escape what is special in Markdown or HTML, or ends a table cell. */
static void put_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '|':
		case '*':
		case '_':
		case '`':
		case '[':
		case ']':
		case '\\':
		case '~':
		case '@':
		case '#':
		case ':':
			fprintf(out, "&#%d;", *text);
			break;
		default:
			fputc(*text, out);
		}
	}
}

static void put_code(FILE *out, const char *text)
{
	fputs("<code>", out);
	put_escaped(out, text);
	fputs("</code>", out);
}

/* Remarks contain text from recordings. */
static int put_remarks(const struct compare *compare, FILE *out)
{
	CLEANUP(freep) char *text = NULL;
	size_t n_bytes;
	FILE *lines = open_memstream(&text, &n_bytes);
	char *rest, *line;

	if (!lines)
		return -ENOMEM;
	print_remarks(compare, "", lines);
	if (fclose(lines) != 0)
		return -ENOMEM;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		fputs("- ", out);
		put_escaped(out, line);
		fputc('\n', out);
	}
	return 0;
}

static void put_estimate(const struct compare *compare, const struct estimate *estimate, FILE *out)
{
	char base[MAX_CELL], head[MAX_CELL], change[MAX_CELL], interval[MAX_CELL];

	compare_format(compare, estimate->base, base, sizeof base);
	compare_format(compare, estimate->head, head, sizeof head);
	format_change(estimate, change, sizeof change);
	format_interval(estimate, interval, sizeof interval);
	fprintf(out, " %s | %s | %s%s%s |", base, head, strcmp(change, "~") == 0 ? "\\~" : change,
		estimate->is_known && interval[0] ? " " : "", estimate->is_known ? interval : "");
}

static void put_row(const struct compare *compare, const struct compare_row *row, FILE *out)
{
	const struct compare_function *function = &compare->functions[row->function];

	fputs("| ", out);
	put_code(out, function->name);
	if (function->place[0]) {
		fputc(' ', out);
		put_code(out, function->place);
	}
	if (function->is_ambiguous)
		fputs(" \\*", out);
	fputs(" |", out);
	put_estimate(compare, &row->self, out);
	put_estimate(compare, &row->total, out);
	fputc('\n', out);
}

static size_t count_known(const struct compare *compare)
{
	size_t n = 0;

	while (n < compare->n_rows && (compare->rows[n].self.is_known || compare->rows[n].total.is_known))
		n++;
	return n;
}

static void put_head(const struct compare *compare, FILE *out)
{
	struct compare time = { .options.per = PER_RUN };

	fputs("| | base | head | change |\n|---|--:|--:|--:|\n", out);
	if (compare_has_whole(compare)) {
		fputs("| total |", out);
		put_estimate(compare, &compare->whole, out);
		fputc('\n', out);
	}
	if (compare->n_timed[SIDE_BASE] > 0 && compare->n_timed[SIDE_HEAD] > 0) {
		fputs("| wall time without a recorder |", out);
		put_estimate(&time, &compare->wall, out);
		fputc('\n', out);
	}
}

/* One line per finding, the decisive ones first. */
static int put_verdict(const struct compare *compare, const struct compare_verdict *verdict, FILE *out)
{
	for (size_t i = 0; i < verdict->n_findings; i++) {
		const struct compare_finding *finding = &verdict->findings[i];
		CLEANUP(freep) char *text = NULL;
		size_t n_bytes;
		FILE *said = open_memstream(&text, &n_bytes);

		if (!said)
			return -ENOMEM;
		fprintf(said, "%s%s", finding->subject, finding->has_estimate || finding->why ? ": " : "");
		print_finding(compare, finding, said);
		if (fclose(said) != 0)
			return -ENOMEM;
		fprintf(out, "- %s ", outcome_text(finding->outcome));
		if (finding->rule)
			put_code(out, finding->rule->text);
		fputs(finding->rule ? ", " : "", out);
		put_escaped(out, text);
		fputc('\n', out);
	}
	fputc('\n', out);
	return 0;
}

static int put_title(const struct compare *compare, const struct compare_verdict *verdict, size_t n_known, FILE *out)
{
	const char *have = n_known == 1 ? "function has" : "functions have";

	if (!verdict) {
		fprintf(out, "### Profile: %zu %s changed\n\n", n_known, have);
		return 0;
	}
	fprintf(out, "### Profile: %s\n\n", outcome_text(verdict->outcome));
	return put_verdict(compare, verdict, out);
}

int compare_write_markdown(const struct compare *compare, const struct compare_verdict *verdict,
			   const struct compare_look *look, FILE *out)
{
	size_t n_known = count_known(compare), n = row_limit(n_known, look->max_rows);
	int r;

	r = put_title(compare, verdict, n_known, out);
	if (r < 0)
		return r;
	put_head(compare, out);
	if (n > 0)
		fputs("\n| function | self, base | head | change | total, base | head | change |\n"
		      "|---|--:|--:|--:|--:|--:|--:|\n",
		      out);
	for (size_t i = 0; i < n; i++)
		put_row(compare, &compare->rows[i], out);
	if (n < n_known)
		fprintf(out, "\n%zu more have changed.\n", n_known - n);
	fprintf(out, "\n%zu function%s without a significant change. Numbers are %s, of %zu %s%s against %zu.\n",
		compare->n_rows - n_known, compare->n_rows - n_known == 1 ? " is" : "s are", compare_quantity(compare),
		compare->n_side[SIDE_BASE], compare->options.steps ? "group" : "run",
		compare->n_side[SIDE_BASE] == 1 ? "" : "s", compare->n_side[SIDE_HEAD]);
	fputc('\n', out);
	r = put_remarks(compare, out);
	return r < 0 ? r : ferror(out) ? -EIO : 0;
}
