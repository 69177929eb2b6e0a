/* SPDX-License-Identifier: MIT */
/* fleet_secrets.h - what proves to a fleet's servers who we are, and to us who they are; the same for sending and reading. */
#ifndef PROBING_CLI_FLEET_SECRETS_H
#define PROBING_CLI_FLEET_SECRETS_H

#define FLEET_PASSWORD_VARIABLE "PROBING_FLEET_PASSWORD"
#define FLEET_PASSWORD_FILE_VARIABLE "PROBING_FLEET_PASSWORD_FILE"
#define FLEET_CA_FILE_VARIABLE "PROBING_FLEET_CA_FILE"

/*
 * fleet_read_password - the first line of a file, else of the one that a variable names, else a variable's value.
 * An empty variable is none.
 * @file: NULL: none was given. @ret: NULL: there is no password; ended with http_forget().
 * Returns 0, or prints a message and returns an exit status.
 */
int fleet_read_password(const char *file, char **ret);

/* The authorities' file: the given one, else the variable's; NULL: the system's. Borrowed. */
const char *fleet_ca_file(const char *given);

#endif
