/* SPDX-License-Identifier: MIT */
/* verb_diff.c - differences between recordings. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/compare_arguments.h"
#include "src/cli/slow_steps.h"
#include "src/export/export.h"

enum { KEY_AGAINST = 0x800, KEY_STACKS, KEY_TITLE, KEY_SLOW_STEPS, DEFAULT_ROWS = 20 };
#define DEFAULT_SLOW_PERCENT 5
enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_MARKDOWN, FORMAT_SVG, FORMAT_HTML, N_FORMATS };

static const char *const format_names[] = { "text", "json", "markdown", "svg", "html" };

struct options {
	struct compare_arguments arguments;
	bool is_head;       /* the following arguments belong to head */
	enum format format; /* N_FORMATS: by out's file name extension */
	const char *out, *title;
	double slow_percent; /* of the steps of one recording; 0: two sides are given */
	struct compare_look look;
};

static const struct argp_option option_list[] = {
	{ "against", KEY_AGAINST, "HEAD", 0,
	  "Recordings before this option are the base, HEAD and those after it are the head", 0 },
	{ "base-since", KEY_COMPARE_BASE_SINCE, "TIME", 0,
	  "Only BASE's samples from TIME on; --since and --until are HEAD's then: two windows of one recording", 0 },
	{ "base-until", KEY_COMPARE_BASE_UNTIL, "TIME", 0, "Only BASE's samples before TIME", 0 },
	{ "format", 'f', "FORMAT", 0,
	  "text, json, markdown (for a review comment), or svg or html: a flame graph of HEAD, red where it takes more "
	  "than BASE, blue where less (default: by OUT's extension, otherwise text)",
	  0 },
	{ "output", 'o', "OUT", 0, "Write to OUT (default: -, stdout)", 0 },
	{ "rows", 'n', "N", 0, "Show N functions, 0: all (default: 20)", 0 },
	{ "stacks", KEY_STACKS, NULL, 0, "Compare stacks as well as functions", 0 },
	{ "slow-steps", KEY_SLOW_STEPS, "PERCENT", OPTION_ARG_OPTIONAL,
	  "Compare the slowest steps of one recording with its other steps (default: 5 percent); needs probing.step() in the program",
	  0 },
	{ "title", KEY_TITLE, "TEXT", 0, "Set the title", 0 },
	COMPARE_ARGUMENTS_OPTION_ROWS,
	VIEW_OPTION_ROWS,
	{ 0 },
};

/* Without --against, there is one file on each side. */
static void check(struct options *options, struct argp_state *state)
{
	const struct glob_list *files = options->arguments.files;

	if (options->slow_percent > 0) {
		if (files[SIDE_BASE].n + files[SIDE_HEAD].n > 1)
			argp_error(state, "--slow-steps compares the steps of one recording: give one");
		return;
	}
	if (files[SIDE_BASE].n == 0 || files[SIDE_HEAD].n == 0)
		argp_error(state, "recordings missing: give BASE HEAD, or BASE... --against HEAD...");
}

static void parse_file(struct options *options, const char *argument, struct argp_state *state)
{
	const struct glob_list *files = options->arguments.files;
	bool is_second = state->arg_num == 1 && files[SIDE_BASE].n > 0 && !options->is_head;

	for (int i = state->next; is_second && state->argv[i]; i++)
		if (strncmp(state->argv[i], "--against", strlen("--against")) == 0)
			is_second = false;
	if (state->arg_num > 1 && !options->is_head && files[SIDE_HEAD].n > 0)
		argp_error(state, "several recordings a side are written BASE... --against HEAD...");
	compare_arguments_add(&options->arguments, is_second || options->is_head ? SIDE_HEAD : SIDE_BASE, argument,
			      state);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case KEY_AGAINST:
		options->is_head = true;
		compare_arguments_add(&options->arguments, SIDE_HEAD, argument, state);
		return 0;
	case KEY_STACKS:
		options->arguments.options.stacks = true;
		return 0;
	case 'f':
		options->format = cli_parse_word(state, argument, "--format", format_names, N_FORMATS);
		return 0;
	case KEY_SLOW_STEPS:
		options->slow_percent = argument ? cli_parse_number(state, argument, "--slow-steps", 0.01, 50)
						 : DEFAULT_SLOW_PERCENT;
		return 0;
	case KEY_TITLE:
		options->title = argument;
		return 0;
	case 'o':
		options->out = argument;
		return 0;
	case 'n':
		options->look.max_rows = (unsigned)cli_parse_number(state, argument, "the number of rows", 0, 1e6);
		return 0;
	case ARGP_KEY_ARG:
		parse_file(options, argument, state);
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
	.args_doc = "BASE HEAD\nBASE... --against HEAD...\n--slow-steps [FILE]",
	.doc = "Show the functions that take more or less time in HEAD than in BASE; ~ marks no significant change. "
	       "Each side is one recording, a recording of several runs (by bench or merge), or several recordings, as "
	       "a comma list or a quoted glob.\v"
	       "Examples:\n"
	       "  probing diff before.db after.db\n"
	       "  probing diff 'base*.db' 'head*.db' --format markdown\n"
	       "  probing diff before.db after.db -o change.svg\n"
	       "  probing diff train.db --slow-steps\n"
	       "  probing diff train.db train.db --base-until 5m --since 5m --normalize samples\n"
	       "  probing diff b1.db b2.db b3.db --against h1.db h2.db h3.db --normalize samples\n"
	       "\n"
	       "With four or more runs per side, the answer accounts for variation between runs; with one each it "
	       "cannot. Functions match by kind, name and file name; lines and folders do not matter.",
};

static enum format format_by_ending(const char *out)
{
	static const struct {
		const char *ending;
		enum format format;
	} endings[] = {
		{ ".json", FORMAT_JSON }, { ".md", FORMAT_MARKDOWN }, { ".svg", FORMAT_SVG }, { ".html", FORMAT_HTML }
	};
	const char *dot = strrchr(out, '.');

	for (size_t i = 0; dot && i < N_ELEMENTS(endings); i++)
		if (strcmp(dot, endings[i].ending) == 0)
			return endings[i].format;
	return FORMAT_TEXT;
}

struct writing {
	const struct options *options;
	const struct compare *compare;
};

static int write_out(const void *data, FILE *out)
{
	const struct writing *writing = data;

	switch (writing->options->format) {
	case FORMAT_JSON:
		return compare_write_json(writing->compare, out);
	case FORMAT_MARKDOWN:
		return compare_write_markdown(writing->compare, NULL, &writing->options->look, out);
	case FORMAT_SVG:
		return compare_write_svg(writing->compare, writing->options->title, out);
	case FORMAT_HTML:
		return compare_write_html(writing->compare, writing->options->title, out);
	default:
		return compare_write_text(writing->compare, &writing->options->look, out);
	}
}

/* As pictures of one recording, it says which part it shows. NULL: all of it, or no memory. */
static char *part_title(const struct options *options)
{
	CLEANUP(freep) char *parts = view_parts(&options->arguments.view, NULL);
	char *title = NULL;

	if (!parts || !parts[0] || asprintf(&title, "What has changed (%s)", parts) < 0)
		return NULL;
	return title;
}

static int print(struct options *options, const struct compare *compare)
{
	CLEANUP(freep) char *title = options->title ? NULL : part_title(options);

	if (title)
		options->title = title;
	if (strcmp(options->out, "-") == 0) {
		options->look.columns = cli_columns(STDOUT_FILENO);
		options->look.colour = cli_colour(STDOUT_FILENO);
	}
	return compare_arguments_write(&options->arguments, options->out, write_out,
				       &(struct writing){ options, compare });
}

static int run_diff(int argc, char **argv)
{
	CLEANUP(compare_freep) struct compare *compare = NULL;
	struct options options = { .format = N_FORMATS, .out = "-", .look.max_rows = DEFAULT_ROWS };
	int status;

	compare_arguments_init(&options.arguments);
	cli_parse(&argp, argc, argv, ARGP_IN_ORDER, &options);
	if (options.format == N_FORMATS)
		options.format = format_by_ending(options.out);
	options.arguments.options.stacks |= options.format == FORMAT_SVG || options.format == FORMAT_HTML;
	if (options.format == FORMAT_HTML && export_diff_html_lacks()) {
		compare_arguments_done(&options.arguments);
		return cli_fail(EXIT_FAILED, "no html: %s", export_diff_html_lacks());
	}
	status = options.slow_percent > 0 ? slow_steps_run(&options.arguments, options.slow_percent, &compare)
					  : compare_arguments_run(&options.arguments, &compare);
	if (status == EXIT_OK)
		status = print(&options, compare);
	compare_arguments_done(&options.arguments);
	return status;
}

const struct verb verb_diff = {
	.name = "diff",
	.summary = "compare recordings",
	.argp = &argp,
	.pages = true,
	.run = run_diff,
};
