/* SPDX-License-Identifier: MIT */
/* modules.h - the modules of the package `probing` that the agent has for processes without it. Private. */
#ifndef PROBING_AGENT_MODULES_H
#define PROBING_AGENT_MODULES_H

struct python_module {
	const char *name; /* "probing._rows" */
	const char *text;
};

extern const struct python_module python_modules[]; /* ends with a NULL name */
extern const char python_modules_version[];         /* "0.1.0": that of the package and of probing */

#endif
