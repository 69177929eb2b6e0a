/* SPDX-License-Identifier: MIT */
/* view_by.c - see view.h. */
#include "src/cli/view.h"

#include <string.h>

#include "base/util.h"
#include "src/cli/cli.h"

static const char *const names[] = { "step", "span", "phase", "module", "stage", "torch", "rank" };
static const struct {
	const char *column, *none;
} groups[] = {
	{ "'step ' || step", "[no step]" },
	{ "span", "[no span]" },
	{ "phase", "[no span]" },
	{ "torch_module", "[no torch module]" },
	{ "torch_stage", "[no torch module]" },
	{ "torch_module || ' ' || torch_stage", "[no torch module]" },
	{ "'rank ' || rank", "[no rank]" },
};

void view_by_parse(struct argp_state *state, const char *argument, struct view *view)
{
	int by = cli_parse_word(state, argument, "--by", names, N_ELEMENTS(names));

	view->by = names[by];
	view->label = groups[by].column;
	view->label_none = groups[by].none;
}

/* Single samples belong to no group. */
int view_by_check(const struct view *view, const struct exporter *exporter)
{
	if (view->by && (strcmp(exporter->name, "chrome") == 0 || strcmp(exporter->name, "gecko") == 0))
		return cli_fail(
			EXIT_USAGE,
			"%s shows single samples, which --by %s does not group: use svg, html or another format",
			exporter->name, view->by);
	return EXIT_OK;
}
