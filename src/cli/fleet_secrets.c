/* SPDX-License-Identifier: MIT */
/* fleet_secrets.c - see fleet_secrets.h. */
#include "src/cli/fleet_secrets.h"

#include <stdlib.h>
#include <string.h>

#include "src/cli/cli.h"
#include "src/http/http.h"

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

int fleet_read_password(const char *file, char **ret)
{
	const char *password = variable(FLEET_PASSWORD_VARIABLE);
	int r;

	*ret = NULL;
	if (!file)
		file = variable(FLEET_PASSWORD_FILE_VARIABLE);
	if (file) {
		r = http_read_secret(file, ret);
		return r == 0 ? EXIT_OK
			      : cli_fail(cli_status(r), "%s: no password in its first line: %s", file, strerror(-r));
	}
	if (!password)
		return EXIT_OK;
	*ret = strdup(password);
	return *ret ? EXIT_OK : cli_fail(EXIT_FAILED, "not enough memory");
}

const char *fleet_ca_file(const char *given)
{
	return given ? given : variable(FLEET_CA_FILE_VARIABLE);
}
