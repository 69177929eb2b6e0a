/* exporters.h - whether this build has what a format needs. */
#ifndef PROBING_CLI_EXPORTERS_H
#define PROBING_CLI_EXPORTERS_H

#include "src/export/export.h"

/* exporters_check - 0, or an exit status after having said what it lacks. */
int exporters_check(const struct exporter *exporter);

#endif
