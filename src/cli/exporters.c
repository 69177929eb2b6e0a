/* exporters.c - see exporters.h. */
#include "src/cli/exporters.h"

#include "src/cli/cli.h"

int exporters_check(const struct exporter *exporter, const struct profile *profile)
{
	const char *lacks = exporter->lacks ? exporter->lacks() : NULL;

	if (lacks)
		return cli_fail(EXIT_FAILED, "this probing cannot make %s: %s", exporter->name, lacks);
	if (exporter->only_time && profile && profile->unit)
		return cli_fail(EXIT_USAGE, "%s knows times only, and this recording counts %s: choose another format, such as svg",
				exporter->name, profile->unit);
	return EXIT_OK;
}
