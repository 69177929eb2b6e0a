/* SPDX-License-Identifier: MIT */
/* requests.c - see requests.h. */
#include "src/cli/requests.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/cli.h"

struct requests {
	int (*answer)(void *data, const char *line, FILE *out, char *sentence);
	void *data;
};

/* Its rest is no request of its own. */
static void skip_rest(void)
{
	int c;

	do
		c = getchar();
	while (c != EOF && c != '\n');
}

static int answer_one(const struct requests *requests, const char *line, bool is_whole)
{
	CLEANUP(freep) char *body = NULL;
	char sentence[REQUEST_SENTENCE_BYTES] = "";
	size_t n = 0;
	FILE *out = open_memstream(&body, &n);
	int status = is_whole ? EXIT_FAILED : EXIT_USAGE;

	if (is_whole && out)
		status = requests->answer(requests->data, line, out, sentence);
	else
		snprintf(sentence, sizeof sentence, is_whole ? "not enough memory" : "a request is too long");
	if (out && fclose(out) != 0 && status == EXIT_OK) {
		snprintf(sentence, sizeof sentence, "not enough memory");
		status = EXIT_FAILED;
	}
	sentence[strcspn(sentence, "\n")] = '\0'; /* a path may have line ends */
	if (status != EXIT_OK)
		printf("bad %d %s\n", status, sentence);
	else
		printf("ok %zu%s%s\n", n, sentence[0] ? " " : "", sentence);
	if (status == EXIT_OK)
		fwrite(body, 1, n, stdout);
	return fflush(stdout) == 0 ? EXIT_OK : cli_fail_write("-", -errno);
}

int requests_serve(size_t max_bytes, int (*answer)(void *data, const char *line, FILE *out, char *sentence), void *data)
{
	const struct requests requests = { answer, data };
	CLEANUP(freep) char *line = malloc(max_bytes + 1);
	int status = EXIT_OK;

	if (!line)
		return cli_fail(EXIT_FAILED, "not enough memory");
	while (status == EXIT_OK && fgets(line, (int)max_bytes + 1, stdin)) {
		bool is_whole = strchr(line, '\n') || feof(stdin);

		if (!is_whole)
			skip_rest();
		line[strcspn(line, "\n")] = '\0';
		status = answer_one(&requests, line, is_whole);
	}
	return status;
}
