/* SPDX-License-Identifier: MIT */
/* cfi_client.h - modules whose ELF files another process reads, which has no privilege. Private.
 *
 * To base/ it is a reader of ELF files, to unwind/native a source of rows. Each question waits for its answer, for a
 * limited time. Where the other process dies of a file, says nothing or nonsense, that file is not read again: its code
 * is unwound as code without call frame information. A new process reads the rest, a few times.
 * Used by one thread.
 */
#ifndef PROBING_CFI_CLIENT_H
#define PROBING_CFI_CLIENT_H

#include "base/elf_reader.h"
#include "src/pipeline/pipeline.h"
#include "unwind/native/native.h"

struct cfi_client;

/* cfi_client_start - start the processes; before there are threads. Errors: of fork(2) and socketpair(2); -ENOMEM. */
int cfi_client_start(struct cfi_client **ret);
/* The same with somebody else at the other end, who cannot be started again; for tests. @worker: taken over. -ENOMEM. */
int cfi_client_over(int worker, int patience_ms, struct cfi_client **ret);
/* After all files that were opened through it. */
void cfi_client_free(struct cfi_client *client);

/* Borrowed, as long as the client. */
const struct elf_reader *cfi_client_reader(const struct cfi_client *client);
const struct native_row_source *cfi_client_rows(const struct cfi_client *client);

/* The path is borrowed from the client. */
void cfi_client_troubles(const struct cfi_client *client, struct pipeline_cfi_troubles *ret);

#endif
