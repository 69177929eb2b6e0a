/* SPDX-License-Identifier: MIT */
/* format.h - numbers as people read them. */
#ifndef PROBING_CLI_FORMAT_H
#define PROBING_CLI_FORMAT_H

#include <stdint.h>

/* "340 KB", "1.2 GB". */
void format_bytes(uint64_t n, char to[16]);
/* "1,234,567" */
void format_count(uint64_t n, char to[32]);

#endif
