/* SPDX-License-Identifier: MIT */
/* cfi_client.h - the recorder's end of the process without privilege that reads modules' ELF files. Private.
 *
 * base/ uses it as a reader of ELF files, unwind/native as a source of rows. Each request waits for its answer, for a
 * limited time. If the other process dies of a file, does not answer or answers nonsense, that file is given up: its
 * code is unwound as code without call frame information. A new process reads the other files, a few times.
 * Used by one thread.
 */
#ifndef PROBING_CFI_CLIENT_H
#define PROBING_CFI_CLIENT_H

#include "base/elf_reader.h"
#include "src/pipeline/pipeline.h"
#include "unwind/native/native.h"

struct cfi_client;

/* Answers come after some 10 µs, after milliseconds for a large symbol table. The rest is for a slow disk. */
enum { CFI_CLIENT_PATIENCE_MS = 10000 };

/*
 * cfi_client_start - start the processes; before there are threads.
 * @patience_ms: limits an answer; three times that limits slow ones together. Errors: of fork(2) and socketpair(2);
 *               -ENOMEM.
 */
int cfi_client_start(int patience_ms, struct cfi_client **ret);
/* The same with another process, which cannot be started again; for tests. @worker: taken over. -ENOMEM. */
int cfi_client_over(int worker, int patience_ms, struct cfi_client **ret);
/* After all files that were opened through it. */
void cfi_client_free(struct cfi_client *client);

/* Borrowed, as long as the client. */
const struct elf_reader *cfi_client_reader(const struct cfi_client *client);
const struct native_row_source *cfi_client_rows(const struct cfi_client *client);

/* The path is borrowed from the client. */
void cfi_client_troubles(const struct cfi_client *client, struct pipeline_cfi_troubles *ret);

#endif
