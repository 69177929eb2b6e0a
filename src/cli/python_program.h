/* SPDX-License-Identifier: MIT */
/* python_program.h - whether a process runs Python. */
#ifndef PROBING_CLI_PYTHON_PROGRAM_H
#define PROBING_CLI_PYTHON_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

enum { PYTHON_VERSION_BYTES = 16 };

/*
 * python_program - whether the program of a process is an interpreter, or has mapped one as code.
 * @version: from the file's name, "3.11"; "" unknown.
 */
bool python_program(pid_t pid, char version[PYTHON_VERSION_BYTES]);

#endif
