/* exporters.c - see exporters.h. */
#include "src/cli/exporters.h"

#include "src/cli/cli.h"

int exporters_check(const struct exporter *exporter)
{
	const char *lacks = exporter->lacks ? exporter->lacks() : NULL;

	if (lacks)
		return cli_fail(EXIT_FAILED, "this probing cannot make %s: %s", exporter->name, lacks);
	return EXIT_OK;
}
