/* export_fixture.h - what tests of exporters share. After cmocka.h. */
#ifndef PROBING_TESTS_EXPORT_FIXTURE_H
#define PROBING_TESTS_EXPORT_FIXTURE_H

#include <stdio.h>
#include <string.h>

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

/* With UPDATE_GOLDEN set the file is written instead; look at the difference before keeping it. */
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
