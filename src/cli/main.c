/* SPDX-License-Identifier: MIT */
/* main.c - selects the verb, and closes stdout at the end.
 *
 * SIGPIPE keeps its inherited disposition: a program that record starts inherits it.
 * By default it ends us silently; if it is ignored, EPIPE does; a recording goes on in either case (record/run.c). SIGXFSZ is ignored, because a file at its size
 * limit is an error with a sentence of its own (base/size_limit.h).
 */
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/endpoint.h"
#include "src/cli/older_probing.h"
#include "base/size_limit.h"
#include "src/store/store.h"

/* Writing buffered text, such as help or a short answer, may fail only now. */
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
	const char *instead = older_verb(typed);
	char near[256];

	if (instead)
		return cli_fail(EXIT_USAGE, "there is no verb %s: %s", typed, instead);
	if (strcmp(typed, "-t") == 0 || strcmp(typed, "--target") == 0)
		return cli_fail(EXIT_USAGE, "%s needs a process, or a recording", typed);
	if (typed[0] == '-')
		return cli_fail(EXIT_USAGE, "there is no option %s before a verb; see probing --help", typed);
	verb_suggest(typed, near, sizeof near);
	if (near[0])
		return cli_fail(EXIT_USAGE, "there is no verb %s; did you mean %s?", typed, near);
	return cli_fail(EXIT_USAGE, "there is no verb %s; see probing --help", typed);
}

/*
 * Accept "PID VERB ...", "PID 'SELECT ...'", "-t PID VERB ...": move a leading target behind the verb, or into its
 * option.
 */
struct target {
	const char *name; /* NULL: no leading target */
	int n_words;      /* number of words of the target */
};

static struct target leading_target(int argc, char **argv)
{
	static const char option[] = "--target=";

	if (endpoint_is_process(argv[1]))
		return (struct target){ argv[1], 1 };
	if (strncmp(argv[1], option, strlen(option)) == 0)
		return (struct target){ argv[1] + strlen(option), 1 };
	if (argc > 2 && (strcmp(argv[1], "-t") == 0 || strcmp(argv[1], "--target") == 0))
		return (struct target){ argv[2], 2 };
	return (struct target){ NULL, 0 };
}

static int run_with_target(const struct target *target, int argc, char **argv)
{
	char **words = calloc((size_t)argc + 3, sizeof *words);
	bool is_sql = strpbrk(argv[0], " \t\n") != NULL; /* otherwise a verb, or a misspelt one */
	const struct verb *verb;
	int n = 1, status;

	if (!words)
		return cli_fail(EXIT_FAILED, "not enough memory");
	verb = verb_find(is_sql ? "sql" : argv[0]);
	if (verb && !is_sql) {
		argc--;
		argv++;
	}
	if (verb && verb->target)
		words[n++] = (char *)verb->target;
	words[n++] = (char *)target->name;
	for (int i = 0; i < argc; i++)
		words[n++] = argv[i];
	status = verb ? run_verb(verb, n, words) : unknown_verb(argv[0]);
	free(words);
	return status;
}

static void tell(const char *sentence)
{
	cli_say("probing: %s\n", sentence);
}

int main(int argc, char **argv)
{
	struct target target;
	const struct verb *verb;

	setlocale(LC_CTYPE, "");
	store_on_notice(tell);
	size_limit_as_error();
	if (atexit(flush_stdout) != 0)
		return cli_fail(EXIT_FAILED, "not enough memory");
	argc = cli_take_common(argc, argv);
	if (argc < 2) {
		cli_help(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		cli_begin_help();
		cli_help(stdout);
		return EXIT_OK;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		printf("probing %s\n", cli_version);
		return EXIT_OK;
	}
	target = leading_target(argc, argv);
	if (older_is_remote(target.name ? target.name : argv[1]))
		return cli_fail(
			EXIT_USAGE,
			"%s: probing connects to no port; on the machine of the process, probing list shows its PID",
			target.name ? target.name : argv[1]);
	if (target.name && argc > target.n_words + 1)
		return run_with_target(&target, argc - target.n_words - 1, argv + target.n_words + 1);
	if (target.name)
		return cli_fail(EXIT_USAGE, "verb missing after %s, for example: probing backtrace %s", target.name,
				target.name);
	verb = verb_find(argv[1]);
	if (!verb)
		return unknown_verb(argv[1]);
	return run_verb(verb, argc - 1, argv + 1);
}
