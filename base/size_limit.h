/* SPDX-License-Identifier: MIT */
/* size_limit.h - the file size limit (RLIMIT_FSIZE) as an error of write(2) instead of a signal. */
#ifndef PROBING_BASE_SIZE_LIMIT_H
#define PROBING_BASE_SIZE_LIMIT_H

/*
 * size_limit_as_error - from here on a write beyond the limit fails with EFBIG. By default the kernel also sends
 * SIGXFSZ, whose default action ends the process with the error untold. Source: setrlimit(2).
 */
void size_limit_as_error(void);

/* In a child, before its exec: restore SIGXFSZ as this process inherited it, because exec keeps ignored signals. */
void size_limit_as_found(void);

#endif
