/* SPDX-License-Identifier: MIT */
/* print.c - findings as text: a line per check, and its remedy below. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/columns/columns.h"
#include "src/doctor/doctor.h"

static const struct column finding_columns[] = { { "", 8, 2, true }, { "", 19, 1, true }, { "", 0, 1, true } };

static enum style style_of(enum doctor_state state)
{
	return state == DOCTOR_OK ? STYLE_GOOD : state == DOCTOR_LIMITED ? STYLE_LIMITED : STYLE_BAD;
}

static void put_finding(const struct doctor_finding *finding, bool colour, FILE *out)
{
	struct columns columns = {
		.list = finding_columns, .n = N_ELEMENTS(finding_columns), .out = out, .colour = colour
	};

	columns_put_styled(&columns, style_of(finding->state), doctor_state_name(finding->state));
	columns_put(&columns, finding->name);
	columns_start_last(&columns);
	fputs(finding->found, out);
	columns_end(&columns);
	if (finding->means[0])
		fprintf(out, "           %s: %s\n", finding->purpose, finding->means);
	else if (finding->state != DOCTOR_OK)
		fprintf(out, "           needed for %s\n", finding->purpose);
	if (finding->remedy[0])
		fprintf(out, "           %s: %s\n", finding->as_root ? "as root" : "run", finding->remedy);
}

static void put_end(const struct doctor_report *report, FILE *out)
{
	static const char *const endings[] = {
		[RECORDING_NONE] =
			"Recording does not work here, but for programs that have the agent: PROBING=1 python3 SCRIPT.",
		[RECORDING_POLL] = "Recording works, without native frames (stack source: poll).",
		[RECORDING_AGENT] = "Recording works (stack source: agent).",
		[RECORDING_WAKEUP] = "Recording works (stack source: wakeup).",
		[RECORDING_BPF] = "Recording works (stack source: bpf).",
	};

	fprintf(out, "\n%s\n", endings[report->recording]);
}

int doctor_print_text(const struct doctor_report *report, bool colour, FILE *out)
{
	const char *group = "";

	for (size_t i = 0; i < report->n_findings; i++) {
		const struct doctor_finding *finding = &report->findings[i];

		if (strcmp(group, finding->group) != 0)
			fprintf(out, "%s%s%s%s\n", i > 0 ? "\n" : "", colour ? "\033[1m" : "", finding->group,
				colour ? "\033[0m" : "");
		group = finding->group;
		put_finding(finding, colour, out);
	}
	put_end(report, out);
	return ferror(out) ? -EIO : 0;
}
