/* SPDX-License-Identifier: MIT */
/* least_privilege.h - after attaching, a recorder keeps only the rights that the recording needs. */
#ifndef PROBING_CLI_RECORD_LEAST_PRIVILEGE_H
#define PROBING_CLI_RECORD_LEAST_PRIVILEGE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/capture/capture.h"

/* Properties of a recording that need a privilege. */
struct privilege_needs {
	enum capture_source source;
	enum capture_mode mode;
	bool has_child;   /* we signal our command, which may have changed its user */
	const char *path; /* of the file that is written; NULL: none that has a name */
};

/* The capabilities to keep, as bits: of the capturing thread, and of the writing thread (see pipeline_options). */
uint64_t privilege_of_capture(const struct privilege_needs *needs);
uint64_t privilege_of_writer(const struct privilege_needs *needs);

/*
 * privilege_restrict - limit the calling thread to the capabilities of capturing; programs that the process starts
 * gain none, and most system calls are refused (docs/security.md).
 * Call it after opening all files that are opened once, and after starting the command.
 * Errors: of capset(2), prctl(2), seccomp(2): -EINVAL or -ENOSYS if this kernel has no filters. The other limits apply
 * then.
 */
int privilege_restrict(const struct privilege_needs *needs);

#endif
