/* SPDX-License-Identifier: MIT */
/*
 * rules.c - parses the rules of a check.
 *
 *   self(func=GLOB[,file=GLOB])>+N%    total(func=...)>+N%    total>+N%    wall>+N%
 *   any[>+N%]    new-hot[>N%]    lost[>N%]
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "src/compare/function_table.h"

/* Rule names, and their default thresholds; 0: a threshold is required. */
static const struct {
	const char *name;
	double threshold;
	bool takes_function, needs_function;
} kinds[N_RULE_KINDS] = {
	[RULE_SELF] = { "self", 0, true, true },
	[RULE_TOTAL] = { "total", 0, true, false },
	[RULE_WALL] = { "wall", 0, false, false },
	[RULE_ANY] = { "any", 0.05, false, false },
	[RULE_NEW_HOT] = { "new-hot", 0.01, false, false },
	[RULE_LOST] = { "lost", 0.01, false, false },
};

void compare_rule_done(struct compare_rule *rule)
{
	free(rule->text);
	free(rule->function);
	free(rule->file);
	*rule = (struct compare_rule){ 0 };
}

static int fail(char *why, const char *text)
{
	snprintf(why, 256, "%s", text);
	return -EINVAL;
}

static int parse_kind(const char **at, struct compare_rule *rule, char *why)
{
	size_t n = strcspn(*at, "(>");

	for (size_t i = 0; i < N_RULE_KINDS; i++) {
		if (strlen(kinds[i].name) != n || strncmp(*at, kinds[i].name, n) != 0)
			continue;
		rule->kind = (enum rule_kind)i;
		rule->threshold = kinds[i].threshold;
		*at += n;
		return 0;
	}
	return fail(why, "a rule begins with self, total, wall, any, new-hot or lost");
}

/* "func=GLOB" or "file=GLOB". A name may contain parentheses and commas, so it ends at ",file=" or ")>". */
static int parse_glob(const char **at, struct compare_rule *rule, char *why)
{
	bool is_function = strncmp(*at, "func=", 5) == 0;
	char **to = is_function ? &rule->function : &rule->file;
	const char *end, *comma;

	if ((!is_function && strncmp(*at, "file=", 5) != 0) || *to)
		return fail(why, "parentheses contain func=NAME, optionally followed by ,file=NAME");
	*at += 5;
	end = strstr(*at, ")>");
	comma = strstr(*at, is_function ? ",file=" : ",func=");
	if (comma && (!end || comma < end))
		end = comma;
	if (!end || end == *at)
		return fail(why, "the parenthesis does not end before '>'");
	*to = strndup(*at, (size_t)(end - *at));
	*at = end;
	return *to ? 0 : -ENOMEM;
}

static int parse_function(const char **at, struct compare_rule *rule, char *why)
{
	int r;

	if (**at != '(')
		return kinds[rule->kind].needs_function ? fail(why, "it needs a function: self(func=NAME)>+5%") : 0;
	if (!kinds[rule->kind].takes_function)
		return fail(why, "only self and total are of a function");
	do {
		++*at;
		r = parse_glob(at, rule, why);
	} while (r >= 0 && **at == ',');
	if (r < 0)
		return r;
	++*at;
	return rule->function ? 0 : fail(why, "func=NAME is missing");
}

/* Parse ">+5%" or "> 5 %". */
static int parse_threshold(const char *at, struct compare_rule *rule, char *why)
{
	char *end;
	double percent;

	if (!*at)
		return rule->threshold > 0 ? 0 : fail(why, "it has no threshold: add >+5%");
	if (*at != '>')
		return fail(why, "'>' and a percentage end a rule");
	percent = strtod(at + 1, &end);
	if (end == at + 1 || !(percent >= 0 && percent <= 1e6))
		return fail(why, "'>' needs a percentage, 0 or more");
	end += strspn(end, " ");
	if (strcmp(end, "%") != 0)
		return fail(why, "a percentage ends with '%'");
	rule->threshold = percent / 100;
	return 0;
}

int compare_rule_parse(const char *text, struct compare_rule *ret, char *why)
{
	CLEANUP(compare_rule_done) struct compare_rule rule = { .text = name_clean(text) };
	const char *at = text;
	int r;

	why[0] = '\0';
	if (!rule.text)
		return -ENOMEM;
	r = parse_kind(&at, &rule, why);
	if (r >= 0)
		r = parse_function(&at, &rule, why);
	if (r >= 0)
		r = parse_threshold(at, &rule, why);
	if (r < 0)
		return r;
	*ret = rule;
	rule = (struct compare_rule){ 0 };
	return 0;
}
