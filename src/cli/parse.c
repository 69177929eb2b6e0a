/* SPDX-License-Identifier: MIT */
/* parse.c - parsing of options, the same for every verb.
 *
 * argp's own help options are replaced, since they lack -h. --usage stays
 * because argp's hint after a mistake names it.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/glob_list.h"
#include "base/util.h"
#include "src/cli/aliases.h"
#include "src/cli/cli.h"
#include "src/cli/duration.h"
#include "src/cli/pager.h"

enum {
	OPTION_USAGE = 0x100,
	OPTION_COLOUR,
	OPTION_NO_PAGER,
	MAX_ID = 1 << 22, /* proc_sys_kernel(5), pid_max */
	/* Of help: its examples must not wrap, and lines beyond that are hard to read. */
	MIN_HELP_COLUMNS = 79,
	MAX_HELP_COLUMNS = 110,
};

const struct argp_option cli_common_options[] = {
	{ "help", 'h', NULL, 0, "Show this help", -1 },
	{ "color", OPTION_COLOUR, "WHEN", 0, "Use colours: auto, always or never (default: auto)", -1 },
	{ "colour", OPTION_COLOUR, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, -1 },
	{ "no-pager", OPTION_NO_PAGER, NULL, 0, "Print without the pager", -1 },
	{ "usage", OPTION_USAGE, NULL, OPTION_HIDDEN, NULL, -1 },
	{ 0 },
};
/* The same of a verb whose output no pager shows. */
static const struct argp_option common_unpaged_options[] = {
	{ "help", 'h', NULL, 0, "Show this help", -1 },
	{ "color", OPTION_COLOUR, "WHEN", OPTION_HIDDEN, NULL, -1 },
	{ "colour", OPTION_COLOUR, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, -1 },
	{ "no-pager", OPTION_NO_PAGER, NULL, OPTION_HIDDEN, NULL, -1 },
	{ "usage", OPTION_USAGE, NULL, OPTION_HIDDEN, NULL, -1 },
	{ 0 },
};

static const char *const colour_words[] = {
	[COLOUR_AUTO] = "auto", [COLOUR_ALWAYS] = "always", [COLOUR_NEVER] = "never"
};

/* Let argp wrap help at the width of the terminal; a user's own ARGP_HELP_FMT wins. Source: glibc 2.36, argp-help.c. */
static void fit_help(void)
{
	unsigned columns = cli_columns(STDOUT_FILENO);
	char format[32];

	if (columns == 0)
		return;
	snprintf(format, sizeof format, "rmargin=%u", MIN(MAX(columns - 1, MIN_HELP_COLUMNS), MAX_HELP_COLUMNS));
	setenv("ARGP_HELP_FMT", format, 0);
}

void cli_begin_help(void)
{
	fit_help();
	pager_allow();
	pager_start();
}

/* argp's error messages contain arguments, which may be foreign file names: escape them. */
static ssize_t write_mistake(void *cookie, const char *bytes, size_t n)
{
	(void)cookie;
	for (size_t at = 0, n_line; at < n; at += n_line + 1) {
		const char *end = memchr(bytes + at, '\n', n - at);

		n_line = end ? (size_t)(end - bytes) - at : n - at;
		text_put_spelled(stderr, bytes + at, n_line);
		if (end)
			fputc('\n', stderr);
	}
	return (ssize_t)n;
}

/* The stream is never closed, because an error ends the process. Without memory, argp keeps stderr. */
static void spell_mistakes(struct argp_state *state)
{
	FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = write_mistake });

	if (!stream)
		return;
	setvbuf(stream, NULL, _IOLBF, 0);
	state->err_stream = stream;
}

static error_t parse_common(int key, char *argument, struct argp_state *state)
{
	switch (key) {
	case 'h':
		cli_begin_help();
		argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP);
		return 0;
	case OPTION_COLOUR:
		cli_choose_colour(cli_parse_word(state, argument, "--color", colour_words, N_ELEMENTS(colour_words)));
		return 0;
	case OPTION_NO_PAGER:
		pager_forbid();
		return 0;
	case ARGP_KEY_INIT:
		spell_mistakes(state);
		return 0;
	case ARGP_KEY_FINI:
		if (state->err_stream != stderr)
			fclose(state->err_stream);
		state->err_stream = stderr;
		return 0;
	case OPTION_USAGE:
		fit_help();
		argp_state_help(state, state->out_stream, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp common = { .options = cli_common_options, .parser = parse_common };
static const struct argp common_unpaged = { .options = common_unpaged_options, .parser = parse_common };

/* State of the parsed verb; a process has one command line. */
static struct aliased aliased;

static error_t parse_aliased(int key, char *argument, struct argp_state *state)
{
	return aliases_parse(&aliased, key, argument, state);
}

/* Omit argp's note on long options, because the list shows the same. */
char *cli_help_filter(int key, const char *text, void *input)
{
	(void)input;
	if (key == ARGP_KEY_HELP_EXTRA)
		return aliased.argp ? aliases_help_with_filters(&aliased) : NULL;
	return key == ARGP_KEY_HELP_DUP_ARGS_NOTE ? NULL : (char *)text;
}

void cli_parse(const struct argp *argp, int argc, char **argv, unsigned flags, void *input)
{
	const struct verb *verb = verb_of_words(strchr(argv[0], ' ') + 1);
	const struct argp_child children[] = { { verb && verb->pages ? &common : &common_unpaged, 0, NULL, 0 }, { 0 } };
	struct argp whole = *argp;
	const char *near, *typed;
	error_t error;

	assert(!argp->children);
	if (aliases_init(strchr(argv[0], ' ') + 1, argp, &aliased) < 0)
		exit(cli_fail(EXIT_FAILED, "the arguments cannot be read: not enough memory"));
	near = aliases_suggest(&aliased, cli_common_options, argv + 1, argc - 1, flags & ARGP_IN_ORDER, &typed);
	if (near)
		exit(cli_fail(EXIT_USAGE, "there is no option %.*s; did you mean --%s?", (int)strcspn(typed, "="),
			      typed, near));
	whole.children = children;
	whole.options = aliased.options;
	whole.parser = parse_aliased;
	if (!whole.help_filter)
		whole.help_filter = cli_help_filter;
	argp_err_exit_status = EXIT_USAGE;
	error = argp_parse(&whole, argc, argv, flags | ARGP_NO_HELP, NULL, input);
	aliases_done(&aliased);
	if (verb && verb->pages)
		pager_allow();
	if (error != 0) /* out of memory only: usage errors have ended the process */
		exit(cli_fail(EXIT_FAILED, "the arguments cannot be read: not enough memory"));
}

int cli_take_common(int argc, char **argv)
{
	static const char *const names[] = { "--color", "--colour" };
	int n = 1;

	for (; n < argc; n++) {
		const char *word = argv[n], *value = strchr(word, '=');
		size_t n_name = strcspn(word, "="), which = 0;

		if (strcmp(word, "--no-pager") == 0) {
			pager_forbid();
			continue;
		}
		if (strncmp(word, names[0], n_name) != 0 && strncmp(word, names[1], n_name) != 0)
			break;
		if (n_name < strlen(names[0]))
			break;
		value = value ? value + 1 : n + 1 < argc ? argv[++n] : "";
		while (which < N_ELEMENTS(colour_words) && strcmp(value, colour_words[which]) != 0)
			which++;
		if (which == N_ELEMENTS(colour_words))
			exit(cli_fail(EXIT_USAGE, "--color must be auto, always or never, not %s", value));
		cli_choose_colour((enum cli_colour_choice)which);
	}
	for (int i = n; i <= argc; i++)
		argv[i - n + 1] = argv[i];
	return argc - n + 1;
}

double cli_parse_number(struct argp_state *state, const char *text, const char *what, double low, double high)
{
	char *end;
	double value;

	errno = 0;
	value = strtod(text, &end);
	if (end == text || *end != '\0' || errno != 0 || !(value >= low && value <= high))
		argp_error(state, "%s must be a number from %.10g to %.10g, not %s", what, low, high, text);
	return value;
}

uint64_t cli_parse_bytes(struct argp_state *state, const char *text, const char *what, uint64_t low, uint64_t high)
{
	static const char units[] = "KMGT";
	char *end;
	double bytes = strtod(text, &end);
	const char *unit = memchr(units, *end & ~0x20, sizeof units - 1);

	for (const char *one = units; unit && one <= unit; one++)
		bytes *= 1024;
	if (end == text || (*end && (!unit || end[1])) || !(bytes >= (double)low && bytes <= (double)high))
		argp_error(state, "%s must be a size such as 512M or 2G, from %lluM to %lluM, not %s", what,
			   (unsigned long long)low >> 20, (unsigned long long)high >> 20, text);
	return (uint64_t)bytes;
}

double cli_parse_duration(struct argp_state *state, const char *text, const char *what, double low, double high)
{
	double seconds = 0;

	if (duration_parse(text, &seconds) < 0 || !(seconds >= low && seconds <= high))
		argp_error(state, "%s must be a time such as 10, 500ms, 2m or 1h, from %.10g to %.10g seconds, not %s",
			   what, low, high, text);
	return seconds;
}

unsigned cli_parse_word(struct argp_state *state, const char *text, const char *what, const char *const *words,
			unsigned n)
{
	char all[128] = "";

	for (unsigned i = 0; i < n; i++)
		if (strcmp(text, words[i]) == 0)
			return i;
	for (unsigned i = 0; i < n; i++) {
		strcat(all, i == 0 ? "" : i + 1 < n ? ", " : " or ");
		strcat(all, words[i]);
	}
	argp_error(state, "%s must be %s, not %s", what, all, text);
	return 0;
}

pid_t cli_parse_id(struct argp_state *state, const char *argument, const char *what)
{
	char *end;
	long id;

	errno = 0;
	id = strtol(argument, &end, 10);
	if (errno != 0 || end == argument || *end != '\0' || id < 1 || id > MAX_ID)
		argp_error(state, "the %s id must be a number from 1 to %d, not %s", what, MAX_ID, argument);
	return (pid_t)id;
}

void cli_take_pid(struct argp_state *state, const char *argument, pid_t *pid)
{
	if (*pid)
		argp_error(state, "one process at a time: %s?", argument);
	*pid = cli_parse_id(state, argument, "process");
}

void cli_require_pid(struct argp_state *state, pid_t pid)
{
	if (!pid)
		argp_error(state, "the PID of the process is missing");
}

mode_t cli_parse_mode(struct argp_state *state, const char *argument)
{
	enum { ALLOWED = 0755 };
	unsigned long mode;

	errno = 0;
	mode = strtoul(argument, NULL, 8);
	if (errno != 0 || argument[strspn(argument, "01234567")] != '\0' || mode == 0 ||
	    (mode & ~(unsigned long)ALLOWED) != 0)
		argp_error(
			state,
			"--chmod takes octal permissions in which only the owner may write, such as 600, 640 or 644, "
			"not %s",
			argument);
	return (mode_t)mode;
}

static void check_memory(struct argp_state *state, int r)
{
	if (r == -ENOMEM)
		argp_failure(state, EXIT_FAILED, 0, "not enough memory");
}

void cli_parse_name(struct argp_state *state, const char *name, struct glob_list *to)
{
	check_memory(state, glob_list_add(to, name));
}

void cli_parse_list(struct argp_state *state, const char *list, const char *what, struct glob_list *to)
{
	int r = glob_list_add_list(to, list);

	check_memory(state, r);
	if (r < 0)
		argp_error(state, "%s", what);
}

void cli_parse_recording(struct argp_state *state, const char *path, const char **recording)
{
	if (*recording)
		argp_error(state, "one recording at a time: %s?", path);
	*recording = path;
}

/* Reject a missing folder here: otherwise files would silently not be found. */
void cli_parse_source_root(struct argp_state *state, const char *root, struct glob_list *to)
{
	const char *equals = strchr(root, '='), *folder = equals ? equals + 1 : root;
	struct stat about;

	if (stat(folder, &about) < 0 || !S_ISDIR(about.st_mode))
		argp_error(state, "--source-root: there is no folder %s%s", folder,
			   strncmp(folder, "/proc/", strlen("/proc/")) == 0 ? "; has the process ended?" : "");
	cli_parse_name(state, root, to);
}
