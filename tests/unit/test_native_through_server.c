/* SPDX-License-Identifier: MIT */
/* The agreement with libdwfl, where another process reads the files, as it does for a recorder. */
#define THROUGH_SERVER
#include "test_native_oracle.c" /* NOLINT(bugprone-suspicious-include) */
