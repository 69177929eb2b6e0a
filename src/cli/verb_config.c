/* SPDX-License-Identifier: MIT */
/* verb_config.c - settings of the agent in a process. The keys and their documentation are those of src/config. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "src/cli/agent_eval.h"
#include "src/cli/cli.h"

enum { OPTION_JSON = 0x200, MAX_WORDS = CONFIG_MAX_KEYS };

struct options {
	pid_t pid;
	const char *words[MAX_WORDS]; /* KEY, or KEY=VALUE */
	size_t n_words;
	bool json;
	struct config config; /* the assignments applied to a copy, to check all of them before setting the first */
};

static const struct argp_option option_list[] = {
	{ "json", OPTION_JSON, NULL, 0, "Print JSON", 0 },
	{ 0 },
};

static void take_word(struct argp_state *state, const char *word, struct options *options)
{
	char why[CONFIG_MAX_WHY] = "";
	struct config scratch = { 0 };

	if (options->n_words == MAX_WORDS)
		argp_error(state, "each key once");
	/* Check a key alone like an assignment. */
	if (strchr(word, '=')) {
		if (config_assign(&options->config, word, why) < 0)
			agent_refuse_key(state, word, why);
	} else if (config_find(word, strlen(word)) < 0) {
		(void)config_assign(&scratch, word, why);
		agent_refuse_key(state, word, why);
	}
	options->words[options->n_words++] = word;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case OPTION_JSON:
		options->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (!options->pid && argument[strspn(argument, "0123456789")] == '\0')
			options->pid = cli_parse_id(state, argument, "process");
		else
			take_word(state, argument, options);
		return 0;
	case ARGP_KEY_END:
		if (options->n_words > 0)
			cli_require_pid(state, options->pid);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* One line per key: values, default, meaning. */
static void put_keys(FILE *out)
{
	char allowed[CONFIG_MAX_TEXT];

	for (unsigned i = 0; i < n_config_keys; i++) {
		const struct config_key *key = config_keys[i];

		config_allowed(key, allowed);
		fprintf(out, "%s (%s; default: %s%s%s): %s\n", key->name, allowed, key->by_default,
			key->variable ? "; set by " : "", key->variable ? key->variable : "", key->doc);
	}
}

static char *help_filter(int key, const char *text, void *input)
{
	char *whole = NULL;
	size_t n_bytes;
	FILE *out;

	if (key != ARGP_KEY_HELP_POST_DOC)
		return cli_help_filter(key, text, input);
	out = open_memstream(&whole, &n_bytes);
	if (!out)
		return NULL;
	fputs("Keys:\n", out);
	put_keys(out);
	fprintf(out, "%s", text ? text : "");
	return fclose(out) == 0 ? whole : NULL;
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "\nPID [KEY | KEY=VALUE]...",
	.doc = "List, get and set the configuration of the agent in a process. Without PID, list the keys. Setting a "
	       "key loads the agent first if the process has none. KEY=default unsets.\v"
	       "Examples:\n"
	       "  probing 4242 config\n"
	       "  probing 4242 config probing.sample_rate=0.1\n"
	       "  probing config 4242 eval=off\n",
	.help_filter = help_filter,
};

/* ---- Print ---- */

static void put_text(const struct config *config, unsigned key)
{
	char value[CONFIG_MAX_TEXT];

	config_format(config, key, value);
	printf("%s=%s", config_keys[key]->name, value);
	if (!config->values[key].is_set)
		printf("  (%s)", config_keys[key]->by_default);
	putchar('\n');
}

static void put_json_text(const char *text)
{
	CLEANUP(freep) char *quoted = to_json_quote(text);

	fputs(quoted ? quoted : "null", stdout);
}

static void put_json_value(const struct config *config, unsigned key)
{
	char value[CONFIG_MAX_TEXT];

	config_format(config, key, value);
	if (!config->values[key].is_set)
		printf("null");
	else if (config_keys[key]->type == CONFIG_SWITCH)
		printf("%s", config->values[key].number != 0 ? "true" : "false");
	else if (config_keys[key]->type == CONFIG_TEXT)
		put_json_text(value);
	else
		printf("%s", value);
}

static bool is_asked_for(const struct options *options, unsigned key)
{
	for (size_t i = 0; i < options->n_words; i++)
		if (config_find(options->words[i], strcspn(options->words[i], "=")) == (int)key)
			return true;
	return options->n_words == 0;
}

static void put_all(const struct options *options, const struct config *config)
{
	const char *before = "{";

	for (unsigned i = 0; i < n_config_keys; i++) {
		if (!is_asked_for(options, i))
			continue;
		if (!options->json) {
			put_text(config, i);
			continue;
		}
		printf("%s\"%s\": ", before, config_keys[i]->name);
		put_json_value(config, i);
		before = ", ";
	}
	if (options->json)
		puts("}");
}

/* ---- Talk to the process ---- */

static int set_all(const struct options *options)
{
	struct agent_talk talk;
	int status = agent_get(options->pid, &talk);

	if (status != EXIT_OK)
		return status;
	for (size_t i = 0; i < options->n_words && status == EXIT_OK; i++)
		if (strchr(options->words[i], '='))
			status = agent_configure(options->pid, &talk, options->words[i]);
	agent_talk_end(&talk);
	return status;
}

static int fail_look(pid_t pid, int error)
{
	if (error == -ENOENT)
		return cli_fail(EXIT_FAILED, "process %d has no agent: probing inject %d loads it", (int)pid, (int)pid);
	if (error == -ESRCH)
		return cli_fail(EXIT_NO_INPUT, "there is no process %d", (int)pid);
	return cli_fail(cli_status(error), "the agent in process %d cannot be read: %s", (int)pid, strerror(-error));
}

static int run_config(int argc, char **argv)
{
	struct options options = { 0 };
	struct agent_state state;
	int r, status = EXIT_OK;
	bool sets = false;

	cli_parse(&argp, argc, argv, 0, &options);
	if (!options.pid) {
		put_keys(stdout);
		return EXIT_OK;
	}
	for (size_t i = 0; i < options.n_words; i++)
		sets |= strchr(options.words[i], '=') != NULL;
	if (sets)
		status = set_all(&options);
	if (status != EXIT_OK)
		return status;
	r = agent_look(options.pid, &state);
	if (r < 0)
		return fail_look(options.pid, r);
	put_all(&options, &state.config);
	return EXIT_OK;
}

const struct verb verb_config = {
	.name = "config",
	.aliases = "cfg c",
	.summary = "list, get and set what is configured in a process",
	.argp = &argp,
	.run = run_config,
};
