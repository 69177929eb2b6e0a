/* SPDX-License-Identifier: MIT */
/* profiles.c - flame graphs and comparisons: parameters become options of the verbs flamegraph and diff. */
#include <string.h>

#include "base/util.h"
#include "src/serve/command_words.h"

enum { DEFAULT_SECONDS = 5, MAX_SECONDS = 60, PICTURE_SECONDS = 60 };

/* What both verbs take. */
static const struct option_of filters[] = {
	{ "since", "--since", false },        { "until", "--until", false },       { "process", "--process", false },
	{ "threads", "--threads", false },    { "function", "--function", false }, { "focus", "--focus", false },
	{ "ignore", "--ignore", false },      { "module", "--module", false },     { "gil", "--gil", true },
	{ "no-native", "--no-native", true },
};
static const struct option_of forms[] = {
	{ "by", "--by", false },
	{ "by-thread", "--by-thread", true },
	{ "inverted", "--inverted", true },
	{ "lines", "--lines", true },
};
static const struct option_of of_diff[] = {
	{ "base-since", "--base-since", false },
	{ "base-until", "--base-until", false },
	{ "normalize", "--normalize", false },
};

static bool is_one_of(const char *value, const char *const *values)
{
	for (size_t i = 0; values[i]; i++)
		if (strcmp(value, values[i]) == 0)
			return true;
	return false;
}

static const char *picture_format(const struct request *request, struct answer *ret)
{
	static const char *const formats[] = { "svg", "html", NULL };
	const char *format = request_parameter(request, "format");

	if (!format)
		return formats[0];
	if (is_one_of(format, formats))
		return format;
	answer_fail(ret, MHD_HTTP_BAD_REQUEST, "the format is svg or html, not %s", format);
	return NULL;
}

/* The sides of a comparison, last of all words. */
static bool put_sides(struct command_words *words, const struct request *request, const struct serve_target *head,
		      struct answer *ret)
{
	const struct serve_target *base = request_target(request, "base", ret);

	if (!base)
		return false;
	if (head->pid != 0 || base->pid != 0) {
		answer_fail(ret, MHD_HTTP_BAD_REQUEST,
			    "%s is a process: only recordings are compared, so record it first",
			    head->pid != 0 ? head->name : base->name);
		return false;
	}
	command_words_put(words, "--");
	command_words_put(words, base->word);
	command_words_put(words, head->word);
	return true;
}

static bool put_diff(struct command_words *words, const struct request *request, const struct serve_target *head,
		     const char *format, struct answer *ret)
{
	command_words_put(words, "diff");
	command_words_format(words, "--format=%s", format);
	if (!command_words_options(words, request, filters, N_ELEMENTS(filters), ret) ||
	    !command_words_options(words, request, of_diff, N_ELEMENTS(of_diff), ret))
		return false;
	return put_sides(words, request, head, ret);
}

static bool put_flamegraph(struct command_words *words, const struct request *request,
			   const struct serve_target *target, const char *format, long seconds, struct answer *ret)
{
	const char *sources = request_parameter(request, "sources");

	command_words_put(words, "flamegraph");
	command_words_put(words, "--quiet");
	command_words_put(words, "--output=-");
	command_words_format(words, "--format=%s", format);
	if (sources && strcmp(sources, "1") != 0) {
		answer_fail(ret, MHD_HTTP_BAD_REQUEST, "sources is 1, or absent");
		return false;
	}
	if (sources && strcmp(format, "html") == 0)
		command_words_put(words, "--sources");
	if (target->pid != 0)
		command_words_format(words, "--duration=%ld", seconds);
	if (!command_words_options(words, request, filters, N_ELEMENTS(filters), ret) ||
	    !command_words_options(words, request, forms, N_ELEMENTS(forms), ret))
		return false;
	command_words_put(words, "--");
	command_words_put(words, target->word);
	return true;
}

static void draw(const struct request *request, struct answer *ret)
{
	CLEANUP(command_words_done) struct command_words words = { 0 };
	const struct serve_target *target = request_target(request, "target", ret);
	const char *format = target ? picture_format(request, ret) : NULL;
	long seconds = format ? request_number(request, "seconds", 1, MAX_SECONDS, DEFAULT_SECONDS, ret) : -1;

	if (seconds < 0)
		return;
	if (request_parameter(request, "base")) {
		if (!put_diff(&words, request, target, format, ret))
			return;
	} else if (!put_flamegraph(&words, request, target, format, seconds, ret))
		return;
	if (!command_words_run(&words, request, (double)(target->pid != 0 ? seconds : 0) + PICTURE_SECONDS, ret))
		return;
	ret->type = strcmp(format, "html") == 0 ? "text/html; charset=utf-8" : "image/svg+xml";
}

/* Failures too may be in a frame, which then can tell them from no answer. */
void answer_flamegraph(const struct request *request, struct answer *ret)
{
	draw(request, ret);
	ret->is_picture = true;
}

/* Of two recordings, of two windows, or of the slow steps of one against its other steps. */
void answer_compare(const struct request *request, struct answer *ret)
{
	static const char *const formats[] = { "json", "svg", "html", NULL };
	CLEANUP(command_words_done) struct command_words words = { 0 };
	const struct serve_target *target = request_target(request, "target", ret);
	const char *format = request_parameter(request, "format");
	const char *percent = request_parameter(request, "slow-steps");

	if (!target)
		return;
	format = format ? format : formats[0];
	if (!is_one_of(format, formats)) {
		answer_fail(ret, MHD_HTTP_BAD_REQUEST, "the format is json, svg or html, not %s", format);
		return;
	}
	if (percent) {
		command_words_put(&words, "diff");
		command_words_format(&words, "--format=%s", format);
		command_words_format(&words, "--slow-steps=%s", percent);
		if (!command_words_options(&words, request, filters, N_ELEMENTS(filters), ret))
			return;
		command_words_put(&words, "--");
		command_words_put(&words, target->word);
	} else if (!put_diff(&words, request, target, format, ret))
		return;
	if (!command_words_run(&words, request, PICTURE_SECONDS, ret))
		return;
	ret->is_picture = strcmp(format, "json") != 0;
	ret->type = !ret->is_picture              ? "application/json"
		    : strcmp(format, "html") == 0 ? "text/html; charset=utf-8"
						  : "image/svg+xml";
}
