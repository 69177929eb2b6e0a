/* main.c - which verb is meant, and what happens to stdout at the end.
 *
 * SIGPIPE is left as it was found: a program that record starts inherits it.
 * By default it ends us without a word; where it is ignored, EPIPE does.
 */
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"

/* What stdio still holds may fail to be written only now: help, a short answer. */
static void flush_stdout(void)
{
	int status;

	errno = 0;
	if (fflush(stdout) == 0)
		return;
	status = cli_fail_write("-", -errno);
	_exit(status);
}

static int run_verb(const struct verb *verb, int argc, char **argv)
{
	char name[64];

	snprintf(name, sizeof name, "probing %s", verb->name);
	argv[0] = name;
	return verb->run(argc, argv);
}

static int unknown_verb(const char *typed)
{
	char near[256];

	if (typed[0] == '-')
		return cli_fail(EXIT_USAGE,
				"there is no option %s before a verb; see probing --help", typed);
	verb_suggest(typed, near, sizeof near);
	if (near[0])
		return cli_fail(EXIT_USAGE, "there is no verb %s; did you mean %s?", typed, near);
	return cli_fail(EXIT_USAGE, "there is no verb %s; see probing --help", typed);
}

int main(int argc, char **argv)
{
	const struct verb *verb;

	setlocale(LC_CTYPE, "");
	if (atexit(flush_stdout) != 0)
		return cli_fail(EXIT_FAILED, "not enough memory");
	if (argc < 2) {
		cli_help(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		cli_help(stdout);
		return EXIT_OK;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		printf("probing %s\n", cli_version);
		return EXIT_OK;
	}
	verb = verb_find(argv[1]);
	if (!verb)
		return unknown_verb(argv[1]);
	return run_verb(verb, argc - 1, argv + 1);
}
