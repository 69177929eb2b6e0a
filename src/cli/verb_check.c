/* SPDX-License-Identifier: MIT */
/* verb_check.c - a gate: recordings held against a baseline and rules, with an exit status for each answer. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/compare_arguments.h"

enum {
	KEY_BASELINE = 0x800,
	KEY_FAIL_ON,
	KEY_ALLOW,
	KEY_JUNIT,
	KEY_GITHUB,
	KEY_HYPERFINE,
	KEY_GO,
	KEY_MARKDOWN,
	KEY_JSON
};
enum { MAX_WHY = 256, MARKDOWN_ROWS = 20 };
static const char default_rule[] = "total>+5%";

struct options {
	struct compare_arguments arguments;
	struct compare_rule *rules;
	size_t n_rules, rules_allocated;
	struct glob_list allowed;
	const char *junit, *github, *hyperfine, *go, *markdown, *json; /* output files; NULL: none */
	bool quiet;
};

static const struct argp_option option_list[] = {
	{ "baseline", KEY_BASELINE, "BASE", 0, "Compare with this recording, or with several (repeatable)", 0 },
	{ "fail-on", KEY_FAIL_ON, "RULE", 0, "Fail on this rule (repeatable; default: total>+5%)", 0 },
	{ "allow", KEY_ALLOW, "LIST", 0,
	  "Compare even if these differ: cpu_model, cpus, kernel, python, probing, mode, event, unit, hz, period, "
	  "stack_source, kernel_frames; runs: even if there are few; all",
	  0 },
	{ "junit", KEY_JUNIT, "OUT", 0, "Write the results as JUnit XML", 0 },
	{ "markdown", KEY_MARKDOWN, "OUT", 0, "Write the results and the comparison as a review comment", 0 },
	{ "json", KEY_JSON, "OUT", 0, "Write the comparison as JSON", 0 },
	{ "github-benchmark", KEY_GITHUB, "OUT", 0,
	  "Write HEAD's numbers for github-action-benchmark (customSmallerIsBetter)", 0 },
	{ "hyperfine", KEY_HYPERFINE, "OUT", 0, "Write wall times as hyperfine's JSON", 0 },
	{ "go-benchmark", KEY_GO, "OUT", 0, "Write HEAD's numbers in the format of Go's benchmarks", 0 },
	{ "quiet", 'q', NULL, 0, "Do not print the results", 0 },
	COMPARE_ARGUMENTS_OPTION_ROWS,
	VIEW_OPTION_ROWS,
	{ 0 },
};

static void add_rule(struct options *options, const char *text, struct argp_state *state)
{
	char why[MAX_WHY] = "not enough memory";

	if (grow(&options->rules, options->n_rules, &options->rules_allocated, sizeof *options->rules) < 0 ||
	    compare_rule_parse(text, &options->rules[options->n_rules], why) < 0)
		argp_error(state, "%s is no rule: %s", text, why);
	else
		options->n_rules++;
}

static bool is_column(const char *word)
{
	for (size_t i = 0; i < N_ABOUT; i++)
		if (about_fields[i].matters && strcmp(about_fields[i].column, word) == 0)
			return true;
	return strcmp(word, "runs") == 0 || strcmp(word, "all") == 0;
}

static void add_allowed(struct options *options, const char *list, struct argp_state *state)
{
	if (glob_list_add_list(&options->allowed, list) < 0)
		argp_error(state, "--allow needs a list");
	for (size_t i = 0; i < options->allowed.n; i++)
		if (!is_column(options->allowed.words[i]))
			argp_error(state, "--allow does not accept %s; --help lists its values",
				   options->allowed.words[i]);
}

static void check(struct options *options, struct argp_state *state)
{
	if (options->arguments.files[SIDE_BASE].n == 0)
		argp_error(state, "baseline missing: give --baseline FILE");
	if (options->arguments.files[SIDE_HEAD].n == 0)
		argp_error(state, "name the recordings that are checked");
	if (options->n_rules == 0)
		add_rule(options, default_rule, state);
}

/* Where to store an option's file name; NULL: another option. */
static const char **file_of(struct options *options, int key)
{
	switch (key) {
	case KEY_JUNIT:
		return &options->junit;
	case KEY_GITHUB:
		return &options->github;
	case KEY_HYPERFINE:
		return &options->hyperfine;
	case KEY_GO:
		return &options->go;
	case KEY_MARKDOWN:
		return &options->markdown;
	case KEY_JSON:
		return &options->json;
	default:
		return NULL;
	}
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;
	const char **file = file_of(options, key);

	if (file) {
		*file = argument;
		return 0;
	}
	switch (key) {
	case KEY_BASELINE:
		compare_arguments_add(&options->arguments, SIDE_BASE, argument, state);
		return 0;
	case KEY_FAIL_ON:
		add_rule(options, argument, state);
		return 0;
	case KEY_ALLOW:
		add_allowed(options, argument, state);
		return 0;
	case 'q':
		options->quiet = true;
		return 0;
	case ARGP_KEY_ARG:
		compare_arguments_add(&options->arguments, SIDE_HEAD, argument, state);
		return 0;
	case ARGP_KEY_END:
		check(options, state);
		break;
	default:
		break;
	}
	return compare_arguments_parse(key, argument, state, &options->arguments);
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "--baseline BASE HEAD...",
	.doc = "Compare recordings with a baseline and set the exit status: did they get slower? A rule fails if a "
	       "significant increase exceeds its threshold.\v"
	       "Rules:\n"
	       "  self(func=NAME)>+5%           self time of a function; NAME may be a glob,\n"
	       "                                ,file=NAME narrows it to a file\n"
	       "  total(func=NAME)>+5%          total time of a function\n"
	       "  total>+5%                     time of all samples\n"
	       "  wall>+5%                      wall time of bench's unrecorded runs\n"
	       "  any>+5%                       self time of any function\n"
	       "  new-hot>1%                    share of a function absent from the baseline\n"
	       "  lost>1%                       lost samples\n"
	       "Examples:\n"
	       "  probing check --baseline base.db head.db --fail-on 'self(func=Trainer.step)>+5%'\n"
	       "  probing check --baseline 'base*.db' head*.db --fail-on wall\\>+3% --junit probing.xml\n"
	       "  probing check --baseline base.db head.db --normalize rest --fail-on 'any>+10%'\n"
	       "\n"
	       "Exit status: 0 no significant regression; 2 regressed; 3 inconclusive: the recordings are not "
	       "comparable, runs are too few, or the result is less certain than the rule requires.",
};

static bool allows(const void *data, const char *what)
{
	const struct glob_list *allowed = data;

	for (size_t i = 0; i < allowed->n; i++)
		if (strcmp(allowed->words[i], what) == 0 || strcmp(allowed->words[i], "all") == 0)
			return true;
	return false;
}

/* ---- Output ---- */

struct writing {
	const struct compare *compare;
	const struct compare_verdict *verdict;
};

static int put_text(const void *data, FILE *out)
{
	const struct writing *writing = data;

	return compare_write_verdict(writing->compare, writing->verdict, out);
}

static int put_junit(const void *data, FILE *out)
{
	const struct writing *writing = data;

	return compare_write_junit(writing->compare, writing->verdict, out);
}

static int put_markdown(const void *data, FILE *out)
{
	const struct writing *writing = data;
	const struct compare_look look = { .max_rows = MARKDOWN_ROWS };

	return compare_write_markdown(writing->compare, writing->verdict, &look, out);
}

static int put_json(const void *data, FILE *out)
{
	const struct writing *writing = data;

	return compare_write_json(writing->compare, out);
}

static int put_github(const void *data, FILE *out)
{
	const struct writing *writing = data;

	return compare_write_github(writing->compare, out);
}

static int put_hyperfine(const void *data, FILE *out)
{
	const struct writing *writing = data;

	return compare_write_hyperfine(writing->compare, out);
}

static int put_go(const void *data, FILE *out)
{
	const struct writing *writing = data;

	return compare_write_go(writing->compare, out);
}

static int write_all(const struct options *options, const struct writing *writing)
{
	const struct {
		const char *path;
		output_put *put;
	} files[] = {
		{ options->quiet ? NULL : "-", put_text },
		{ options->junit, put_junit },
		{ options->markdown, put_markdown },
		{ options->json, put_json },
		{ options->github, put_github },
		{ options->hyperfine, put_hyperfine },
		{ options->go, put_go },
	};
	int status = EXIT_OK;

	for (size_t i = 0; i < N_ELEMENTS(files) && status == EXIT_OK; i++)
		if (files[i].path)
			status = compare_arguments_write(&options->arguments, files[i].path, files[i].put, writing);
	return status;
}

static int judge(const struct options *options, const struct compare *compare)
{
	static const int statuses[] = {
		[OUTCOME_PASSED] = EXIT_OK,
		[OUTCOME_CANNOT_TELL] = EXIT_CANNOT_TELL,
		[OUTCOME_REGRESSED] = EXIT_REGRESSED,
	};
	CLEANUP(compare_verdict_done) struct compare_verdict verdict = { 0 };
	int status;

	if (compare_judge(compare, options->rules, options->n_rules, allows, &options->allowed, &verdict) < 0)
		return cli_fail(EXIT_FAILED, "not enough memory");
	status = write_all(options, &(struct writing){ compare, &verdict });
	return status != EXIT_OK ? status : statuses[verdict.outcome];
}

static int run_check(int argc, char **argv)
{
	CLEANUP(compare_freep) struct compare *compare = NULL;
	struct options options = { 0 };
	int status;

	compare_arguments_init(&options.arguments);
	cli_parse(&argp, argc, argv, 0, &options);
	status = compare_arguments_run(&options.arguments, &compare);
	if (status == EXIT_OK)
		status = judge(&options, compare);
	for (size_t i = 0; i < options.n_rules; i++)
		compare_rule_done(&options.rules[i]);
	free(options.rules);
	glob_list_done(&options.allowed);
	compare_arguments_done(&options.arguments);
	return status;
}

const struct verb verb_check = {
	.name = "check",
	.summary = "compare recordings with a baseline, for CI",
	.argp = &argp,
	.run = run_check,
};
