/* SPDX-License-Identifier: MIT */
/* crash_write.h - the process beside one with probing.crash, which writes its report. */
#ifndef PROBING_CLI_CRASH_WRITE_H
#define PROBING_CLI_CRASH_WRITE_H

/*
 * crash_write - wait for a crash, and write the report.
 * @page: descriptor of a struct crash_page. @pipe: ends with the process; both are borrowed.
 * Returns an exit status when the pipe has ended.
 */
int crash_write(int page, int pipe);

/*
 * crash_folder - the user's folder of reports, ${XDG_STATE_HOME:-~/.local/state}/probing/crash, created if necessary.
 * Errors: -ENOENT no home is known; what mkdir(2) reports; -ENOMEM.
 */
int crash_folder(char **ret);

#endif
