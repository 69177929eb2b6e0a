/* SPDX-License-Identifier: MIT */
/* errors.c - from a negative errno to a sentence and an exit status. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/place.h"
#include "base/text.h"
#include "base/util.h"
#include "src/cli/cli.h"

enum { MAX_SENTENCE = 4096 + 256 }; /* a path and an error text */

/*
 * In one write, so that lines of several processes do not mix. The text may contain foreign names, so escape control characters
 * except the format's own newline.
 */
static void say(const char *before, const char *format, va_list arguments, const char *after)
{
	size_t n_format = strlen(format), n_end = n_format > 0 && format[n_format - 1] == '\n', n_message = 0;
	CLEANUP(freep) char *text = NULL, *message = NULL;
	int n = vasprintf(&text, format, arguments);
	FILE *to = n < 0 ? NULL : open_memstream(&message, &n_message);

	if (n < 0)
		text = NULL;
	if (to) {
		fputs(before, to);
		text_put_spelled(to, text, (size_t)n - n_end);
		fputs(n_end ? "\n" : after, to);
	}
	if (to && fclose(to) == 0)
		fwrite(message, 1, n_message, stderr);
	else /* out of memory: print the format alone */
		fprintf(stderr, "%s%s%s", before, format, after);
}

void cli_say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say("", format, arguments, "");
	va_end(arguments);
}

int cli_fail(int status, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say("probing: ", format, arguments, "\n");
	va_end(arguments);
	return status;
}

int cli_fail_lines(int status, const char *lines)
{
	const char *end = strchrnul(lines, '\n');

	cli_fail(status, "%.*s", (int)(end - lines), lines);
	while (*end) {
		lines = end + 1;
		end = strchrnul(lines, '\n');
		cli_say("%.*s\n", (int)(end - lines), lines);
	}
	return status;
}

int cli_status(int error)
{
	static const struct {
		int error, status;
	} statuses[] = {
		{ ENOENT, EXIT_NO_INPUT },
		{ ESRCH, EXIT_NO_INPUT },
		{ EISDIR, EXIT_NO_INPUT },
		{ ENOTDIR, EXIT_NO_INPUT },
		{ ENXIO, EXIT_NO_INPUT },
		{ EBADMSG, EXIT_BAD_DATA },
		{ EMEDIUMTYPE, EXIT_BAD_DATA },
		{ EPROTONOSUPPORT, EXIT_BAD_DATA },
		{ EACCES, EXIT_NOT_PERMITTED },
		{ EPERM, EXIT_NOT_PERMITTED },
		{ ENOSPC, EXIT_IO },
		{ EDQUOT, EXIT_IO },
		{ EFBIG, EXIT_IO },
		{ EIO, EXIT_IO },
		{ EPIPE, EXIT_IO },
		{ EROFS, EXIT_NO_OUTPUT },
		{ ESTALE, EXIT_IO },
		{ PLACE_EOTHERS_LINK, EXIT_NOT_PERMITTED },
		{ PLACE_EOTHERS_FILE, EXIT_NOT_PERMITTED },
		{ PLACE_EOTHERS_BESIDE, EXIT_NOT_PERMITTED },
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
	char sentence[MAX_SENTENCE];

	bool is_of_place = error == -PLACE_ENO_READER || error == -PLACE_ECHANGED;

	if (cli_status(error) == EXIT_IO && !is_of_place) /* a full disk may already fail the open */
		return cli_fail_write(path, error);
	place_explain(error, output_name(path), sentence, sizeof sentence);
	return cli_fail(EXIT_NO_OUTPUT, "%s", sentence);
}

int cli_fail_write(const char *path, int error)
{
	if (error == -EPIPE)
		return EXIT_IO;
	if (error == -PLACE_ECHANGED)
		return cli_fail_open(path, error);
	return cli_fail(EXIT_IO, "writing %s failed: %s", output_name(path), strerror(-error));
}
