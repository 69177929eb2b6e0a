/* SPDX-License-Identifier: MIT */
/* help.c - the output of "probing --help". */
#include "src/cli/cli.h"
#include "src/columns/columns.h"

const struct exit_meaning cli_exit_statuses[] = {
	{ EXIT_OK, "success (record -- CMD: the exit status of CMD)" },
	{ EXIT_FAILED, "another failure; see the message on stderr" },
	{ EXIT_REGRESSED, "check: a regression" },
	{ EXIT_CANNOT_TELL, "check: inconclusive" },
	{ EXIT_USAGE, "usage error" },
	{ EXIT_BAD_DATA, "a damaged, foreign or empty recording, or an SQL error" },
	{ EXIT_NO_INPUT, "no such file or process" },
	{ EXIT_NO_OUTPUT, "the output cannot be created" },
	{ EXIT_IO, "the disk is full, or another write error" },
	{ EXIT_NOT_PERMITTED, "not permitted" },
	{ EXIT_NOT_EXECUTABLE, "record -- CMD: CMD cannot be executed" },
	{ EXIT_NOT_FOUND, "record -- CMD: CMD not found" },
	{ 0 },
};

void cli_help(FILE *out)
{
	fputs("Usage: probing VERB [OPTION...]\n"
	      "See where a running Python program spends its time: Python and native frames in\n"
	      "one stack, kept in a SQLite file.\n"
	      "\n"
	      "Verbs:\n",
	      out);
	for (size_t i = 0; verbs[i]; i++) {
		label_put(out, VERB_COLUMNS, verbs[i]->name);
		fputs(verbs[i]->summary, out);
		if (verbs[i]->aliases)
			fprintf(out, " (also: %s)", verbs[i]->aliases);
		fputc('\n', out);
	}
	fputs("\n"
	      "A PID or a recording may come first: probing 4242 backtrace,\n"
	      "probing 4242 'SELECT ...', probing -t train.db report.\n"
	      "probing help VERB explains a verb, probing help filters the options that choose\n"
	      "samples, probing --version prints the version.\n"
	      "Data goes to stdout, messages to stderr. On a terminal, long text goes through\n"
	      "PROBING_PAGER, PAGER or less (--no-pager: directly), and --color=auto|always|never,\n"
	      "NO_COLOR or CLICOLOR_FORCE choose colours.\n"
	      "\n"
	      "Exit status:\n",
	      out);
	for (size_t i = 0; cli_exit_statuses[i].meaning; i++)
		fprintf(out, "  %3d  %s\n", cli_exit_statuses[i].status, cli_exit_statuses[i].meaning);
}
