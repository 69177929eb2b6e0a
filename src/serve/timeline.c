/* SPDX-License-Identifier: MIT */
/* timeline.c - the answer of /apis/timeline, from a worker with "probing timeline --requests". */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "src/serve/answers.h"

enum { QUESTION_BYTES = 1000, TIMELINE_SECONDS = 120 };

/* Numbers and lists of them: nothing that could end the line, or begin another parameter. The worker judges the rest. */
static bool put_parameter(const struct request *request, const char *name, char *question, struct answer *ret)
{
	const char *value = request_parameter(request, name);
	size_t n = strlen(question);

	if (!value)
		return true;
	if (value[strspn(value, "0123456789.,-")] == '\0' &&
	    snprintf(question + n, QUESTION_BYTES - n, "%s%s=%s", n > 0 ? "&" : "", name, value) <
		    (int)(QUESTION_BYTES - n))
		return true;
	answer_fail(ret, MHD_HTTP_BAD_REQUEST, "%s needs numbers", name);
	return false;
}

void answer_timeline(const struct request *request, struct answer *ret)
{
	static const char *const names[] = { "since", "until", "pixels", "depth", "threads" };
	const struct serve_target *target = request_target(request, "target", ret);
	char question[QUESTION_BYTES + 2] = "";

	if (!target)
		return;
	if (target->pid != 0) {
		answer_fail(
			ret, MHD_HTTP_BAD_REQUEST,
			"%s is a process: record it with 'probing record -p %s -o FILE', and serve FILE, also meanwhile",
			target->name, target->name);
		return;
	}
	if (target->is_fleet) {
		answer_fail(ret, MHD_HTTP_BAD_REQUEST,
			    "%s is a fleet: it has SQL, flame graphs and comparisons, and no timeline", target->name);
		return;
	}
	for (size_t i = 0; i < N_ELEMENTS(names); i++)
		if (!put_parameter(request, names[i], question, ret))
			return;
	strcat(question, "\n");
	if (request_ask(request, target, (const char *const[]){ "timeline", "--requests", "--", target->word, NULL },
			question, TIMELINE_SECONDS, ret))
		ret->type = "application/json";
}
