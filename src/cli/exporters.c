/* exporters.c - see exporters.h. */
#include "src/cli/exporters.h"

#include <inttypes.h>
#include <string.h>

#include "src/cli/cli.h"
#include "src/cli/view.h"

int exporters_check(const struct exporter *exporter)
{
	const char *lacks = exporter->lacks ? exporter->lacks() : NULL;

	if (lacks)
		return cli_fail(EXIT_FAILED, "this probing cannot make %s: %s", exporter->name, lacks);
	return EXIT_OK;
}

static int put(const void *data, FILE *out)
{
	const struct exporting *exporting = data;

	return exporting->exporter->write(exporting->profile, exporting->options, out);
}

static int fail(const void *data, int error)
{
	const struct exporting *exporting = data;

	return view_fail_export(exporting->recording, exporting->exporter, error);
}

int exporters_write(const struct exporting *exporting, bool quiet)
{
	int status = output_write(exporting->out, exporting->mode, put, fail, exporting);

	if (status == EXIT_OK && strcmp(exporting->out, "-") != 0 && !quiet)
		cli_say("probing: wrote %s (%" PRIu64 " samples)\n", exporting->out,
			cli_count_samples(exporting->profile));
	return status;
}
