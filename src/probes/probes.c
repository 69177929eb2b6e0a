/* SPDX-License-Identifier: MIT */
/* probes.c - see probes.h. libyaml builds the tree, whose nodes know their line and column. */
#include "src/probes/probes.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/util.h"

#define DEFAULT_INTERVAL_S 1.0
#define MIN_INTERVAL_S 0.01
#define MAX_INTERVAL_S 3600.0

struct parse {
	yaml_document_t *document;
	struct probes *probes;
	char *why;
};

static int __attribute__((format(printf, 3, 4)))
refuse(const struct parse *in, const yaml_mark_t *at, const char *format, ...)
{
	va_list arguments;
	int n = snprintf(in->why, PROBES_WHY_BYTES, "%zu:%zu: ", at->line + 1, at->column + 1);

	va_start(arguments, format);
	(void)vsnprintf(in->why + n, PROBES_WHY_BYTES - (size_t)n, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static const char *text_of(const yaml_node_t *node)
{
	return (const char *)node->data.scalar.value;
}

/* A text without NUL; @what is for the message: "a function". */
static int check_scalar(const struct parse *in, const yaml_node_t *node, const char *what)
{
	if (node->type != YAML_SCALAR_NODE || strlen(text_of(node)) != node->data.scalar.length)
		return refuse(in, &node->start_mark, "%s is expected here", what);
	return 0;
}

/* ---- Names ---- */

static bool is_function(const char *text)
{
	return config_is_dotted_name(text, strlen(text));
}

static bool is_variable(const char *text)
{
	return config_is_variable(text, strlen(text));
}

struct names {
	const char *what, *example;
	bool (*is_one)(const char *text);
	char ***to;
	size_t *n;
};

static int take_name(const struct parse *in, const yaml_node_t *node, const struct names *names)
{
	int r = check_scalar(in, node, names->what);

	if (r < 0)
		return r;
	if (!names->is_one(text_of(node)))
		return refuse(in, &node->start_mark, "'%.80s' is not %s: write %s", text_of(node), names->what,
			      names->example);
	for (size_t i = 0; i < *names->n; i++)
		if (strcmp((*names->to)[i], text_of(node)) == 0)
			return refuse(in, &node->start_mark, "%.80s is listed twice", text_of(node));
	if (*names->n == PROBES_MAX_NAMES)
		return refuse(in, &node->start_mark, "more than %d names", PROBES_MAX_NAMES);
	if (!*names->to)
		*names->to = calloc(PROBES_MAX_NAMES, sizeof **names->to);
	if (!*names->to || !((*names->to)[*names->n] = strdup(text_of(node))))
		return -ENOMEM;
	++*names->n;
	return 0;
}

static int take_names(const struct parse *in, const yaml_node_t *node, const struct names *names)
{
	if (node->type != YAML_SEQUENCE_NODE)
		return refuse(in, &node->start_mark, "a list is expected here, each item %s: write - %s", names->what,
			      names->example);
	for (yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top; item++) {
		int r = take_name(in, yaml_document_get_node(in->document, *item), names);

		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- Keys of the file ---- */

static int take_functions(const struct parse *in, const yaml_node_t *node)
{
	const struct names names = { "a function", "MODULE.FUNCTION or MODULE.CLASS.METHOD", is_function,
				     &in->probes->functions, &in->probes->n_functions };

	return take_names(in, node, &names);
}

static int take_variables(const struct parse *in, const yaml_node_t *node)
{
	const struct names names = { "a variable", "VARIABLE@FUNCTION or VARIABLE@MODULE", is_variable,
				     &in->probes->variables, &in->probes->n_variables };

	return take_names(in, node, &names);
}

static int take_interval(const struct parse *in, const yaml_node_t *node)
{
	double value;
	int r = check_scalar(in, node, "a number of seconds");

	if (r < 0)
		return r;
	if (!config_parse_number(text_of(node), &value) || value < MIN_INTERVAL_S || value > MAX_INTERVAL_S)
		return refuse(in, &node->start_mark, "interval cannot be '%.40s': it is 0.01 to 3600 seconds",
			      text_of(node));
	in->probes->interval_s = value;
	return 0;
}

static int take_torch(const struct parse *in, const yaml_node_t *node)
{
	static const char *const words[] = { "off", "on", "false", "true", "no", "yes" };
	int r = check_scalar(in, node, "on or off");

	if (r < 0)
		return r;
	for (size_t i = 0; i < N_ELEMENTS(words); i++)
		if (strcmp(text_of(node), words[i]) == 0) {
			in->probes->torch = i % 2 == 1;
			return 0;
		}
	return refuse(in, &node->start_mark, "torch cannot be '%.40s': it is on or off", text_of(node));
}

static int take_sampling_key(const struct parse *in, const yaml_node_t *key, const yaml_node_t *value)
{
	static const char *const allowed[] = { "sample_rate", "retention_days" };
	struct probes *probes = in->probes;
	char why[CONFIG_MAX_WHY];
	int r = check_scalar(in, key, "sample_rate or retention_days");

	if (r >= 0)
		r = check_scalar(in, value, "a number");
	if (r < 0)
		return r;
	if (strcmp(text_of(key), allowed[0]) != 0 && strcmp(text_of(key), allowed[1]) != 0)
		return refuse(in, &key->start_mark, "there is no key '%.40s' in sampling: the keys are %s and %s",
			      text_of(key), allowed[0], allowed[1]);
	for (size_t i = 0; i < probes->n_assignments; i++)
		if (strncmp(probes->assignments[i], text_of(key), strlen(text_of(key))) == 0)
			return refuse(in, &key->start_mark, "%s is set twice", text_of(key));
	if (asprintf(&probes->assignments[probes->n_assignments], "%s=%s", text_of(key), text_of(value)) < 0) {
		probes->assignments[probes->n_assignments] = NULL;
		return -ENOMEM;
	}
	probes->n_assignments++;
	if (config_assign(&probes->config, probes->assignments[probes->n_assignments - 1], why) < 0)
		return refuse(in, &value->start_mark, "%s", why);
	return 0;
}

static int take_sampling(const struct parse *in, const yaml_node_t *node)
{
	if (node->type != YAML_MAPPING_NODE)
		return refuse(in, &node->start_mark, "keys are expected here: sample_rate, retention_days");
	for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
		int r = take_sampling_key(in, yaml_document_get_node(in->document, pair->key),
					  yaml_document_get_node(in->document, pair->value));

		if (r < 0)
			return r;
	}
	return 0;
}

static const struct {
	const char *name;
	int (*take)(const struct parse *in, const yaml_node_t *node);
} keys[] = {
	{ "functions", take_functions }, { "variables", take_variables }, { "interval", take_interval },
	{ "sampling", take_sampling },   { "torch", take_torch },
};

static int take_key(const struct parse *in, const yaml_node_t *key, const yaml_node_t *value, bool is_taken[])
{
	int r = check_scalar(in, key, "a key");

	if (r < 0)
		return r;
	for (size_t i = 0; i < N_ELEMENTS(keys); i++) {
		if (strcmp(text_of(key), keys[i].name) != 0)
			continue;
		if (is_taken[i])
			return refuse(in, &key->start_mark, "%s is set twice", keys[i].name);
		is_taken[i] = true;
		return keys[i].take(in, value);
	}
	return refuse(in, &key->start_mark,
		      "there is no key '%.40s': the keys are functions, variables, interval, sampling and torch",
		      text_of(key));
}

static int take_document(const struct parse *in)
{
	const yaml_node_t *root = yaml_document_get_root_node(in->document);
	const yaml_mark_t start = { 0 };
	bool is_taken[N_ELEMENTS(keys)] = { false };

	if (!root)
		return refuse(in, &start, "the file is empty: docs/rings.md has an example");
	if (root->type != YAML_MAPPING_NODE)
		return refuse(in, &root->start_mark,
			      "keys are expected here: functions, variables, interval, sampling, torch");
	for (yaml_node_pair_t *pair = root->data.mapping.pairs.start; pair < root->data.mapping.pairs.top; pair++) {
		int r = take_key(in, yaml_document_get_node(in->document, pair->key),
				 yaml_document_get_node(in->document, pair->value), is_taken);

		if (r < 0)
			return r;
	}
	if (in->probes->n_functions + in->probes->n_variables + in->probes->n_assignments == 0 && !in->probes->torch)
		return refuse(in, &root->start_mark, "the file names no probe: list functions or variables");
	return 0;
}

/* ---- File ---- */

static int fail_syntax(const yaml_parser_t *parser, char *why)
{
	yaml_mark_t at = parser->problem_mark;

	if (parser->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	snprintf(why, PROBES_WHY_BYTES, "%zu:%zu: this is not YAML: %.200s", at.line + 1, at.column + 1,
		 parser->problem ? parser->problem : "it cannot be read");
	return -EINVAL;
}

static int load(yaml_parser_t *parser, struct probes *probes, char *why)
{
	yaml_document_t document, more;
	const struct parse in = { &document, probes, why };
	int r;

	if (!yaml_parser_load(parser, &document))
		return fail_syntax(parser, why);
	r = take_document(&in);
	yaml_document_delete(&document);
	if (r < 0)
		return r;
	if (!yaml_parser_load(parser, &more))
		return fail_syntax(parser, why);
	if (yaml_document_get_root_node(&more)) {
		const yaml_mark_t at = more.start_mark;

		r = refuse(&in, &at, "a second document begins here: write one");
	}
	yaml_document_delete(&more);
	return r;
}

int probes_parse(const char *text, size_t n_bytes, char why[PROBES_WHY_BYTES], struct probes *ret)
{
	struct probes probes = { .interval_s = DEFAULT_INTERVAL_S };
	yaml_parser_t parser;
	int r;

	if (n_bytes > PROBES_MAX_BYTES)
		return -EFBIG;
	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, n_bytes);
	r = load(&parser, &probes, why);
	yaml_parser_delete(&parser);
	if (r < 0)
		probes_done(&probes);
	else
		*ret = probes;
	return r;
}

static void free_names(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

void probes_done(struct probes *probes)
{
	free_names(probes->functions, probes->n_functions);
	free_names(probes->variables, probes->n_variables);
	for (size_t i = 0; i < probes->n_assignments; i++)
		free(probes->assignments[i]);
	*probes = (struct probes){ 0 };
}
