/* SPDX-License-Identifier: MIT */
/* least_privilege.h - after attaching, a recorder keeps only what the rest of the recording takes. */
#ifndef PROBING_CLI_LEAST_PRIVILEGE_H
#define PROBING_CLI_LEAST_PRIVILEGE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/capture/capture.h"

/* What a recording does from now on, as far as it takes a privilege. */
struct privilege_needs {
	enum capture_source source;
	enum capture_mode mode;
	bool has_child;   /* a command of ours gets our signals, whoever it has become */
	const char *path; /* of the file that is written; NULL: none that has a name */
};

/* The capabilities that are kept, as bits: of the capturing thread, and of the one that writes (see pipeline_options). */
uint64_t privilege_of_capture(const struct privilege_needs *needs);
uint64_t privilege_of_writer(const struct privilege_needs *needs);

/*
 * privilege_restrict - the calling thread keeps the capabilities of capturing, and the whole process gains none by a program;
 * most system calls are refused to it (docs/privileges.md).
 * After everything was opened that is opened once; a command has been let go.
 * Errors: of capset(2), prctl(2), seccomp(2): -EINVAL or -ENOSYS where this kernel has no filters. The rest holds then.
 */
int privilege_restrict(const struct privilege_needs *needs);

#endif
