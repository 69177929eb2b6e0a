/* SPDX-License-Identifier: MIT */
/* shell.h - what tests have compilers and other programs make, in a folder of their own. */
#ifndef PROBING_TESTS_SHELL_H
#define PROBING_TESTS_SHELL_H

#include <stdio.h>
#include <stdlib.h>

/* As system(3); the command's output goes to the folder's file "log". */
static inline int shell_in(const char *folder, const char *command)
{
	char line[900];

	snprintf(line, sizeof line, "cd %s && { %s ; } >log 2>&1", folder, command);
	return system(line);
}

/* 0, or -1. */
static inline int write_in(const char *folder, const char *name, const char *text)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "w");
	return !file || fputs(text, file) < 0 || fclose(file) != 0 ? -1 : 0;
}

#endif
