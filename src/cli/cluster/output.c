/* SPDX-License-Identifier: MIT */
/* output.c - see cluster.h. */
#include <string.h>

#include "base/util.h"
#include "src/cli/cluster/cluster.h"
#include "src/cli/exporters.h"

static const char *const formats[] = { "text", "json", "svg", "html" };

/* "diff.svg" is a picture. */
static void choose_by_name(struct cluster_output *output)
{
	const char *dot = strrchr(output->path, '.');

	output->format = CLUSTER_TEXT;
	for (unsigned i = 0; dot && i < N_ELEMENTS(formats); i++)
		if (strcmp(dot + 1, formats[i]) == 0)
			output->format = (enum cluster_format)i;
}

error_t cluster_output_parse(int key, char *argument, struct argp_state *state, struct cluster_output *output)
{
	switch (key) {
	case CLUSTER_OPTION_FORMAT:
		output->format = (enum cluster_format)cli_parse_word(state, argument, "--format", formats,
								     N_ELEMENTS(formats));
		return 0;
	case 'j':
		output->format = CLUSTER_JSON;
		return 0;
	case 'o':
		output->path = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void cluster_output_end(struct cluster_output *output)
{
	if (output->format == CLUSTER_BY_NAME)
		choose_by_name(output);
}

bool cluster_output_is_drawn(const struct cluster_output *output)
{
	return output->format == CLUSTER_SVG || output->format == CLUSTER_HTML;
}

int cluster_output_check(const struct cluster_output *output)
{
	return cluster_output_is_drawn(output) ? exporters_check(exporter_by_name(formats[output->format])) : EXIT_OK;
}

const struct exporter *cluster_output_exporter(const struct cluster_output *output)
{
	return exporter_by_name(formats[output->format]);
}
