/* errors.c - from a negative errno to a sentence and an exit status. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/cli.h"

int cli_fail(int status, const char *format, ...)
{
	va_list arguments;

	fputs("probing: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return status;
}

int cli_status(int error)
{
	static const struct {
		int error, status;
	} statuses[] = {
		{ ENOENT, EXIT_NO_INPUT },    { ESRCH, EXIT_NO_INPUT },
		{ EISDIR, EXIT_NO_INPUT },    { ENOTDIR, EXIT_NO_INPUT },
		{ ENXIO, EXIT_NO_INPUT },     { EBADMSG, EXIT_BAD_DATA },
		{ EMEDIUMTYPE, EXIT_BAD_DATA }, { EPROTONOSUPPORT, EXIT_BAD_DATA },
		{ EACCES, EXIT_NOT_PERMITTED }, { EPERM, EXIT_NOT_PERMITTED },
		{ ENOSPC, EXIT_IO },          { EDQUOT, EXIT_IO },
		{ EFBIG, EXIT_IO },           { EIO, EXIT_IO },
		{ EPIPE, EXIT_IO },           { EROFS, EXIT_NO_OUTPUT },
		{ ESTALE, EXIT_IO },
	};

	if (error == 0)
		return EXIT_OK;
	for (size_t i = 0; i < N_ELEMENTS(statuses); i++)
		if (statuses[i].error == -error)
			return statuses[i].status;
	return EXIT_FAILED;
}

static const char *output_name(const char *path)
{
	return strcmp(path, "-") == 0 ? "standard output" : path;
}

int cli_fail_open(const char *path, int error)
{
	if (cli_status(error) == EXIT_IO) /* a full disk stops the first byte, too */
		return cli_fail_write(path, error);
	return cli_fail(EXIT_NO_OUTPUT, "%s cannot be written: %s", output_name(path),
			strerror(-error));
}

int cli_fail_write(const char *path, int error)
{
	if (error == -EPIPE)
		return EXIT_IO;
	return cli_fail(EXIT_IO, "writing %s failed: %s", output_name(path), strerror(-error));
}
