/* exporters.h - whether a format can hold what is asked of it. */
#ifndef PROBING_CLI_EXPORTERS_H
#define PROBING_CLI_EXPORTERS_H

#include "src/export/export.h"

/* exporters_check - 0, or an exit status after having said why not. @profile: NULL: not known yet. */
int exporters_check(const struct exporter *exporter, const struct profile *profile);

#endif
