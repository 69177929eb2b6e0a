/* SPDX-License-Identifier: MIT */
/* cfi_server.h - the process that reads the ELF files of modules for the capturing thread. Private. */
#ifndef PROBING_CFI_SERVER_H
#define PROBING_CFI_SERVER_H

#include <sys/types.h>

/* Its keeper; see keeper_start(). */
int cfi_keeper_start(int *ret_socket, pid_t *ret_pid);

#endif
