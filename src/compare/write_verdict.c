/* SPDX-License-Identifier: MIT */
/* write_verdict.c - the results of the rules, as text and as JUnit XML. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/compare/format.h"

int compare_write_verdict(const struct compare *compare, const struct compare_verdict *verdict, FILE *out)
{
	fputs("base  ", out);
	print_runs(compare, SIDE_BASE, out);
	fputs("\nhead  ", out);
	print_runs(compare, SIDE_HEAD, out);
	fprintf(out, "\n%s\n\n", compare_quantity(compare));
	for (size_t i = 0; i < verdict->n_findings; i++) {
		const struct compare_finding *finding = &verdict->findings[i];

		fprintf(out, "%-12s  %s%s%s", outcome_text(finding->outcome), finding->rule ? finding->rule->text : "",
			finding->rule ? ": " : "", finding->subject);
		if (finding->has_estimate || finding->why)
			fputs(": ", out);
		print_finding(compare, finding, out);
		fputc('\n', out);
	}
	fprintf(out, "\n%s\n", outcome_text(verdict->outcome));
	return ferror(out) ? -EIO : 0;
}

/* For XML text and attributes; names are clean, so only these characters need escapes. */
static void put_xml(FILE *out, const char *text)
{
	static const char special[] = "&<>\"";
	static const char *const entities[] = { "&amp;", "&lt;", "&gt;", "&quot;" };

	for (; *text; text++) {
		const char *found = strchr(special, *text);

		if (found)
			fputs(entities[found - special], out);
		else
			fputc((unsigned char)*text >= 0x20 && *text != 0x7f ? *text : ' ', out);
	}
}

static int put_case(const struct compare *compare, const struct compare_finding *finding, FILE *out)
{
	static const char *const elements[] = { "system-out", "skipped", "failure" };
	CLEANUP(freep) char *text = NULL;
	const char *element = elements[finding->outcome];
	size_t n_bytes;
	FILE *said = open_memstream(&text, &n_bytes);

	if (!said)
		return -ENOMEM;
	print_finding(compare, finding, said);
	if (fclose(said) != 0)
		return -ENOMEM;
	fputs("  <testcase classname=\"", out);
	put_xml(out, finding->rule ? finding->rule->text : "comparable");
	fputs("\" name=\"", out);
	put_xml(out, finding->subject);
	fprintf(out, "\">\n    <%s", element);
	if (finding->outcome != OUTCOME_PASSED) {
		fputs(" message=\"", out);
		put_xml(out, text);
		fputs("\"/>\n", out);
	} else {
		fputc('>', out);
		put_xml(out, text);
		fprintf(out, "</%s>\n", element);
	}
	fputs("  </testcase>\n", out);
	return 0;
}

static size_t count(const struct compare_verdict *verdict, enum outcome outcome)
{
	size_t n = 0;

	for (size_t i = 0; i < verdict->n_findings; i++)
		n += verdict->findings[i].outcome == outcome;
	return n;
}

int compare_write_junit(const struct compare *compare, const struct compare_verdict *verdict, FILE *out)
{
	size_t n_failed = count(verdict, OUTCOME_REGRESSED), n_skipped = count(verdict, OUTCOME_CANNOT_TELL);
	int r = 0;

	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
	fprintf(out, "<testsuites tests=\"%zu\" failures=\"%zu\">\n", verdict->n_findings, n_failed);
	fprintf(out, "<testsuite name=\"probing check\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\">\n",
		verdict->n_findings, n_failed, n_skipped);
	for (size_t i = 0; i < verdict->n_findings && r >= 0; i++)
		r = put_case(compare, &verdict->findings[i], out);
	fputs("</testsuite>\n</testsuites>\n", out);
	return r < 0 ? r : ferror(out) ? -EIO : 0;
}
