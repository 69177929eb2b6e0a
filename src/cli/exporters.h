/* exporters.h - whether this build has what a format needs, and a recording written as one. */
#ifndef PROBING_CLI_EXPORTERS_H
#define PROBING_CLI_EXPORTERS_H

#include "src/export/export.h"

/* A view of a recording on its way out. */
struct exporting {
	const char *recording, *out;
	const struct exporter *exporter;
	const struct profile *profile;
	const struct export_options *options;
	mode_t mode; /* of out; 0: not asked for */
};

/* Write it and say so, unless @quiet, or out is stdout. Returns 0, or an exit status after having said why. */
int exporters_write(const struct exporting *exporting, bool quiet);

/* exporters_check - 0, or an exit status after having said what it lacks. */
int exporters_check(const struct exporter *exporter);

#endif
