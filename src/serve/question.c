/* SPDX-License-Identifier: MIT */
/* question.c - see question.h. */
#include "src/serve/question.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/* Verbs, as bits. */
enum { NODES = 1, BACKTRACE = 2, QUERY = 4, REPORT = 8, RECORD = 16, EVERY = 31 };

static const struct verb {
	const char *name;
	unsigned bit;
} verbs[] = {
	{ "nodes", NODES }, { "backtrace", BACKTRACE }, { "query", QUERY }, { "report", REPORT }, { "record", RECORD }
};

/* Options of probing cluster. None names a file or a command. */
static const struct option {
	const char *name; /* ends with "=": has a value */
	unsigned verbs;
} options[] = {
	{ "--timeout=", EVERY },        { "--job=", EVERY },
	{ "--matching=", EVERY },       { "--each", QUERY },
	{ "--format=json", BACKTRACE }, { "--threads", BACKTRACE },
	{ "--no-native", BACKTRACE },   { "--all-frames", BACKTRACE },
	{ "--duration=", REPORT },      { "--samples=", REPORT },
	{ "--start-at=", RECORD },
};

/* Options of probing record, behind "--"; -X has a value in the next word. */
static const char *const record_flags[] = { "--no-native", "--native", "--idle", "--gil",
					    "--no-kernel", "--async",  "--tasks" };
static const char *const record_values[] = { "-d",     "--duration",  "-F",     "-r",
					     "--rate", "--frequency", "--mode", "--metrics" };

static const char below_name[] = "--below=";

void question_done(struct question *question)
{
	free(question->text);
	*question = (struct question){ 0 };
}

/*
 * Words are encoded (src/cli/cluster/hosts.c): letters, digits and a few signs that mean nothing to anybody. Only addresses
 * of hosts below have brackets, around IPv6.
 */
static bool is_plain(const char *word)
{
	static const char all[] = "[]abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:,@+-=%";
	const char *plain = strncmp(word, below_name, strlen(below_name)) == 0 ? all : all + 2;

	return word[0] && word[strspn(word, plain)] == '\0';
}

static unsigned verb_of(const char *word)
{
	for (size_t i = 0; i < N_ELEMENTS(verbs); i++)
		if (strcmp(verbs[i].name, word) == 0)
			return verbs[i].bit;
	return 0;
}

static bool is_option(const char *word, unsigned verb)
{
	for (size_t i = 0; i < N_ELEMENTS(options); i++) {
		const char *name = options[i].name;
		size_t n = strlen(name);

		if ((options[i].verbs & verb) &&
		    (name[n - 1] == '=' ? strncmp(word, name, n) == 0 : strcmp(word, name) == 0))
			return true;
	}
	return false;
}

static bool is_in(const char *word, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(word, list[i]) == 0)
			return true;
	return false;
}

/* "10s", "wall": a value that record cannot take for an option. */
static bool is_value(const char *word)
{
	return word && word[0] != '-' && !strchr(word, '%') && !strchr(word, '/');
}

static bool are_record_words(const char *const *words)
{
	for (; *words; words++) {
		const char *equals = strchr(*words, '=');

		if (is_in(*words, record_flags, N_ELEMENTS(record_flags)))
			continue;
		if (equals) {
			char name[32];
			size_t n = (size_t)(equals - *words);

			if (n >= sizeof name || n < 3)
				return false;
			memcpy(name, *words, n);
			name[n] = '\0';
			if (!is_in(name, record_values, N_ELEMENTS(record_values)) || !is_value(equals + 1))
				return false;
			continue;
		}
		if (!is_in(*words, record_values, N_ELEMENTS(record_values)) || !is_value(words[1]))
			return false;
		words++;
	}
	return true;
}

/* "https://a:7070,https://b:7070": addresses alone. */
static bool are_hosts(const char *list)
{
	static const char start[] = "https://";

	for (;;) {
		size_t n = strcspn(list, ",");

		if (n <= strlen(start) || strncmp(list, start, strlen(start)) != 0)
			return false;
		for (size_t i = strlen(start); i < n; i++)
			if (strchr("/@%=+", list[i]))
				return false;
		if (list[n] == '\0')
			return true;
		list += n + 1;
	}
}

static int fail(const char **ret_why, const char *why)
{
	*ret_why = why;
	return -EBADMSG;
}

static int split(struct question *question, const char **ret_why)
{
	char *rest = question->text, *word;

	while ((word = strsep(&rest, "\n"))) {
		if (!word[0] && !rest)
			break; /* the last line's end */
		if (!is_plain(word))
			return fail(ret_why,
				    "a word of the question has other signs than letters, digits and _./:,@+-=%");
		if (question->n == 0 || strncmp(word, below_name, strlen(below_name)) != 0) {
			if (question->n == QUESTION_MAX_WORDS)
				return fail(ret_why, "the question has too many words");
			question->words[question->n++] = word;
			continue;
		}
		question->below = word + strlen(below_name);
		if (!are_hosts(question->below))
			return fail(ret_why, "hosts that are asked from here are https://HOST:PORT");
	}
	return 0;
}

static int check(const struct question *question, const char **ret_why)
{
	unsigned verb = question->n > 0 ? verb_of(question->words[0]) : 0;
	size_t at = 1, n_more;

	if (verb == 0)
		return fail(ret_why, "the question is none of nodes, backtrace, query, report and record");
	while (at < question->n && strcmp(question->words[at], "--") != 0)
		if (!is_option(question->words[at++], verb))
			return fail(ret_why, "the question has an option that is not for other machines");
	n_more = at < question->n ? question->n - at - 1 : 0;
	if (verb == QUERY)
		return n_more == 1 ? 0 : fail(ret_why, "a query is one word");
	if (verb == RECORD)
		return are_record_words(question->words + at + (at < question->n))
			       ? 0
			       : fail(ret_why,
				      "probing record over the network takes -d, --rate, --mode, --metrics, --idle, --gil, "
				      "--async, --tasks, --native, --no-native and --no-kernel");
	return n_more == 0 ? 0 : fail(ret_why, "the question has words behind --");
}

int question_parse(const char *text, size_t n_bytes, struct question *ret, const char **ret_why)
{
	int r;

	*ret = (struct question){ 0 };
	if (n_bytes > QUESTION_MAX_BYTES || memchr(text, '\0', n_bytes))
		return fail(ret_why, "the question is too long, or not text");
	ret->text = strndup(text, n_bytes);
	if (!ret->text)
		return -ENOMEM;
	r = split(ret, ret_why);
	if (r >= 0)
		r = check(ret, ret_why);
	if (r < 0)
		return r;
	ret->is_recording = strcmp(ret->words[0], "record") == 0;
	return ret->is_recording && ret->below ? fail(ret_why, "recordings come from each host itself") : 0;
}
