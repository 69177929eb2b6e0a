/* SPDX-License-Identifier: MIT */
/* export_fixture.h - what tests of exporters share. After cmocka.h. */
#ifndef PROBING_TESTS_EXPORT_FIXTURE_H
#define PROBING_TESTS_EXPORT_FIXTURE_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/export/export.h"
#include "tests/unit/made_profile.h"

/* The whole output of an exporter; free(3) ends it. Not inline: gcc 12 takes it for a pointer to a local then. */
static __attribute__((noinline)) char *export_bytes(const char *name, const struct profile *profile,
						    const struct export_options *options, size_t *ret_bytes)
{
	const struct exporter *exporter = exporter_by_name(name);
	char *bytes = NULL;
	FILE *out;

	assert_non_null(exporter);
	assert_int_equal(profile_label_files((struct profile *)profile), 0); /* as loading does */
	out = open_memstream(&bytes, ret_bytes);
	assert_non_null(out);
	assert_int_equal(exporter->write(profile, options, out), 0);
	assert_int_equal(fclose(out), 0);
	return bytes;
}

static inline char *export_text(const char *name, const struct profile *profile, const struct export_options *options)
{
	size_t n_bytes;
	char *text = export_bytes(name, profile, options, &n_bytes);

	assert_int_equal(strlen(text), n_bytes);
	return text;
}

/* Return the output of a script that reads an export on its standard input; end it with free(3). */
static inline char *read_back(const char *name, const struct profile *profile, const struct export_options *options,
			      const char *command)
{
	CLEANUP(freep) char *bytes = NULL, *whole = NULL;
	char path[] = "/tmp/test_export.XXXXXX", *said = NULL;
	size_t n_bytes;
	FILE *pipe;
	int fd;

	bytes = export_bytes(name, profile, options, &n_bytes);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n_bytes), n_bytes);
	close(fd);
	assert_true(asprintf(&whole, "%s <%s 2>&1", command, path) > 0);
	pipe = popen(whole, "r");
	assert_non_null(pipe);
	assert_true(getdelim(&said, &(size_t){ 0 }, '\0', pipe) >= 0);
	if (pclose(pipe) != 0)
		fail_msg("%s: %s", command, said);
	unlink(path);
	return said;
}

/* The data that the page draws. */
#define HTML_DATA                                                                                                      \
	"python3 -c 'import sys, json, re; t = sys.stdin.read(); "                                                     \
	"d = json.loads(re.search(r\"id=.profile.>(.*?)</script>\", t, re.S).group(1)); "

static inline unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	for (size_t n_bytes = strlen(what); *text; text++)
		n += strncmp(text, what, n_bytes) == 0;
	return n;
}

/* Sum of the numbers that end the lines of a folded export. */
static inline uint64_t folded_sum(const char *text)
{
	uint64_t sum = 0;

	while (*text) {
		const char *end = strchr(text, '\n'), *space;

		assert_non_null(end);
		space = memrchr(text, ' ', (size_t)(end - text));
		assert_non_null(space);
		sum += strtoull(space + 1, NULL, 10);
		text = end + 1;
	}
	return sum;
}

/* With UPDATE_GOLDEN set, write the file instead; review the difference before committing it. */
static inline void compare_golden(const char *name, const char *text)
{
	CLEANUP(freep) char *path = NULL;
	CLEANUP(freep) char *expected = NULL;
	const char *root = getenv("PROBING_SOURCE_ROOT");

	assert_non_null(root);
	assert_true(asprintf(&path, "%s/tests/golden/%s", root, name) > 0);
	if (getenv("UPDATE_GOLDEN")) {
		FILE *file = fopen(path, "w");

		assert_non_null(file);
		fputs(text, file);
		assert_int_equal(fclose(file), 0);
	}
	assert_int_equal(read_file(path, 1 << 20, &expected, NULL), 0);
	assert_string_equal(text, expected);
}

#endif
