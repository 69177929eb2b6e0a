/* SPDX-License-Identifier: MIT */
/*
 * Test that the documented layers are true.
 * One table lists each folder and the folders that it may use. The test compares it with every #include "..." of the
 * source. Of another folder, only the public header may be included; of base, all headers are public.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"

#define MAX_NAME 512
#define MAX_USES 40

/*
 * The arrows, lower layers first. A folder uses itself without saying so; what
 * does not stand here is not allowed, so siblings do not know each other.
 */
static const struct layer {
	const char *folder;
	const char *uses[MAX_USES];
} layers[] = {
	{ "base", { NULL } },

	{ "unwind/native", { "base" } },
	{ "unwind/cpython", { "base" } },
	{ "unwind/stitch", { "base", "unwind/native", "unwind/cpython" } },
	{ "symbolize", { "base" } },
	{ "src/config", { NULL } },
	{ "src/ring", { "base" } },
	{ "src/agent", { "base", "src/config", "src/ring" } },
	{ "src/capture", { "base", "src/agent" } },
	{ "src/target", { "base", "src/capture" } },
	{ "src/catalogue", { "base" } },
	{ "src/profile", { "base" } },
	{ "src/columns", { "base" } },
	{ "src/store", { "base", "src/catalogue", "src/profile" } },

	{ "src/metrics", { "base", "src/store" } },
	{ "src/rows", { "base", "src/store", "src/ring" } },
	{ "src/prompt", { "base" } },
	{ "src/http", { "base" } },
	{ "src/fleet", { "base", "src/store", "src/http" } },
	{ "src/sql", { "base", "src/catalogue", "src/profile", "src/store", "src/prompt" } },
	{ "src/export", { "base", "src/profile", "src/store" } },
	{ "src/report", { "base", "src/profile", "src/columns" } },
	{ "src/lanes", { "base", "src/profile", "src/store" } },
	{ "src/archive", { "base", "src/store" } },
	{ "src/import", { "base", "unwind/native", "src/store" } },
	{ "src/compare", { "base", "src/profile", "src/columns", "src/export" } },
	{ "src/top", { "base", "src/profile", "src/store" } },
	{ "src/pipeline",
	  { "base", "unwind/native", "unwind/cpython", "unwind/stitch", "symbolize", "src/capture", "src/store",
	    "src/metrics", "src/rows" } },

	{ "src/backtrace",
	  { "base", "unwind/native", "unwind/cpython", "unwind/stitch", "symbolize", "src/profile", "src/columns" } },

	{ "src/cluster", { "base", "src/profile", "src/columns", "src/compare" } },

	{ "src/live", { "base", "src/catalogue", "src/backtrace", "src/ring", "src/metrics", "src/rows" } },

	{ "src/doctor", { "base", "unwind/cpython", "src/capture", "src/columns" } },

	{ "src/serve", { "base" } },

	{ "src/extension", { "base", "src/store", "src/sql" } },

	{ "src/probes", { "base", "src/config" } },
	{ "src/inject", { "base", "unwind/native", "unwind/cpython", "src/agent" } },

	{ "src/cli",
	  { "base",          "src/profile",   "unwind/native", "unwind/cpython", "unwind/stitch", "symbolize",
	    "src/capture",   "src/store",     "src/sql",       "src/export",     "src/report",    "src/pipeline",
	    "src/backtrace", "src/doctor",    "src/top",       "src/live",       "src/archive",   "src/import",
	    "src/compare",   "src/inject",    "src/agent",     "src/prompt",     "src/config",    "src/probes",
	    "src/ring",      "src/catalogue", "src/cluster",   "src/rows",       "src/metrics",   "src/serve",
	    "src/lanes",     "src/http",      "src/fleet",     "src/target",     "src/columns" } },
};

/* Folders inside src/cli, the parts of large verbs: they share its headers, and know few of each other. */
static const struct layer rooms[] = {
	{ "src/cli/report", { NULL } },
	{ "src/cli/record", { "src/cli/report" } },
	{ "src/cli/top", { "src/cli/record" } },
	{ "src/cli/cluster", { NULL } },
};

/* Folders of sources: each belongs to a layer. */
static const char *const roots[] = { "base", "unwind", "symbolize", "src" };

/* ---- The checker ---- */

/* The layer of a table that a file belongs to, by the longest folder; NULL: none. */
static const struct layer *find_layer(const struct layer *table, size_t n_layers, const char *path)
{
	const struct layer *best = NULL;

	for (size_t i = 0; i < n_layers; i++) {
		size_t n = strlen(table[i].folder);

		if (strncmp(path, table[i].folder, n) == 0 && path[n] == '/' && (!best || n > strlen(best->folder)))
			best = &table[i];
	}
	return best;
}

static const struct layer *layer_of(const char *path)
{
	return find_layer(layers, N_ELEMENTS(layers), path);
}

static const struct layer *room_of(const char *path)
{
	return find_layer(rooms, N_ELEMENTS(rooms), path);
}

static bool may_use(const struct layer *layer, const char *folder)
{
	for (size_t i = 0; i < MAX_USES && layer->uses[i]; i++)
		if (strcmp(layer->uses[i], folder) == 0)
			return true;
	return false;
}

/* base/<any>.h, else FOLDER/<last component of FOLDER>.h */
static bool is_public(const struct layer *layer, const char *included)
{
	const char *name = included + strlen(layer->folder) + 1;
	const char *slash = strrchr(layer->folder, '/');
	const char *last = slash ? slash + 1 : layer->folder;
	size_t n = strlen(last);

	if (strcmp(layer->folder, "base") == 0)
		return strchr(name, '/') == NULL;
	return strncmp(name, last, n) == 0 && strcmp(name + n, ".h") == 0;
}

/* Return what is wrong with an include; NULL: nothing. */
static const char *check_include(const char *file, const char *included)
{
	const struct layer *from = layer_of(file), *to = layer_of(included);
	const struct layer *from_room = room_of(file), *to_room = room_of(included);

	if (!from)
		return "lies in a folder that the picture of the layers does not have";
	if (!strchr(included, '/'))
		return "includes a header without its folder";
	if (!to)
		return "includes what belongs to no layer";
	if (from_room && to_room && from_room != to_room && !may_use(from_room, to_room->folder))
		return "uses a part of another verb that it must not know";
	if (from == to)
		return NULL;
	if (!may_use(from, to->folder))
		return "uses a layer that it must not know";
	if (!is_public(to, included))
		return "includes a private header of another layer";
	return NULL;
}

/* The name in '#include "name"'; false: the line is something else. */
static bool parse_include(const char *line, char *name, size_t n_bytes)
{
	size_t n;

	line += strspn(line, " \t");
	if (*line++ != '#')
		return false;
	line += strspn(line, " \t");
	if (strncmp(line, "include", strlen("include")) != 0)
		return false;
	line += strlen("include");
	line += strspn(line, " \t");
	if (*line++ != '"')
		return false;
	n = strcspn(line, "\"\n");
	if (line[n] != '"' || n >= n_bytes)
		return false;
	memcpy(name, line, n);
	name[n] = '\0';
	return true;
}

struct walk {
	const char *root;
	unsigned n_files, n_includes, n_wrong;
};

static void check_text(struct walk *walk, const char *file, char *text)
{
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n")) != NULL) {
		char included[MAX_NAME];
		const char *wrong;

		if (!parse_include(line, included, sizeof included))
			continue;
		walk->n_includes++;
		wrong = check_include(file, included);
		if (!wrong)
			continue;
		walk->n_wrong++;
		print_error("%s %s: %s\n", file, wrong, included);
	}
}

static char *join(const char *folder, const char *name)
{
	char *path;

	assert_true(asprintf(&path, "%s/%s", folder, name) > 0);
	return path;
}

static void check_file(struct walk *walk, const char *file)
{
	CLEANUP(freep) char *text = NULL, *path = join(walk->root, file);

	assert_int_equal(read_file(path, 16 << 20, &text, NULL), 0);
	walk->n_files++;
	check_text(walk, file, text);
}

static bool is_source(const char *name)
{
	const char *dot = strrchr(name, '.');

	/* .in: generated sources start from these */
	return dot && (strcmp(dot, ".c") == 0 || strcmp(dot, ".h") == 0 || strcmp(dot, ".in") == 0);
}

static void check_folder(struct walk *walk, const char *folder)
{
	CLEANUP(freep) char *path = join(walk->root, folder);
	struct dirent *entry;
	DIR *dir;

	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL) {
		CLEANUP(freep) char *inside = join(folder, entry->d_name);

		if (entry->d_name[0] == '.')
			continue;
		if (entry->d_type == DT_DIR)
			check_folder(walk, inside);
		else if (is_source(entry->d_name))
			check_file(walk, inside);
	}
	closedir(dir);
}

/* ---- Tests ---- */

static void the_source_keeps_to_the_picture(void **state)
{
	struct walk walk = { .root = getenv("PROBING_SOURCE_ROOT") };

	(void)state;
	assert_non_null(walk.root);
	for (size_t i = 0; i < N_ELEMENTS(roots); i++)
		check_folder(&walk, roots[i]);
	/* Not a walk over nothing. */
	assert_true(walk.n_files > 20);
	assert_true(walk.n_includes > 40);
	if (walk.n_wrong > 0)
		fail_msg("%u of %u includes go against the picture", walk.n_wrong, walk.n_includes);
}

/* Lower layers come first in a table, so it cannot contain a cycle. */
static void check_order(const struct layer *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < MAX_USES && table[i].uses[j]; j++) {
			bool is_below = false;

			for (size_t k = 0; k < i; k++)
				is_below |= strcmp(table[k].folder, table[i].uses[j]) == 0;
			if (!is_below)
				fail_msg("%s uses %s, which does not stand above it", table[i].folder,
					 table[i].uses[j]);
		}
}

static void the_picture_has_no_circles(void **state)
{
	(void)state;
	check_order(layers, N_ELEMENTS(layers));
	check_order(rooms, N_ELEMENTS(rooms));
}

static void the_checker_tells_right_from_wrong(void **state)
{
	static const struct {
		const char *file, *included;
		bool is_right;
	} cases[] = {
		{ "base/maps.c", "base/util.h", true },
		{ "base/maps.c", "src/store/store.h", false }, /* up */
		{ "src/store/writer.c", "base/util.h", true },
		{ "src/store/writer.c", "src/store/rows.h", true }, /* one's own private header */
		{ "src/store/writer.c", "src/sql/sql.h", false },   /* up */
		{ "src/export/export_svg.c", "src/store/store.h", true },
		{ "src/export/export_svg.c", "src/store/rows.h", false },    /* private */
		{ "src/export/export_svg.c", "src/report/report.h", false }, /* a sibling */
		{ "src/report/report.h", "src/profile/profile.h", true },
		{ "src/report/report.h", "src/store/store.h", false }, /* profiles come without SQLite */
		{ "src/export/deeper/a.c", "src/export/export.h", true },
		{ "src/sql/run.c", "src/capture/capture.h", false },
		{ "unwind/stitch/stitch.c", "unwind/native/native.h", true },
		{ "unwind/stitch/stitch.c", "unwind/native/row.h", false },
		{ "unwind/native/unwind.c", "unwind/cpython/cpython.h", false },
		{ "symbolize/lines.c", "unwind/native/native.h", false },
		{ "src/pipeline/run.c", "unwind/stitch/stitch.h", true },
		{ "src/pipeline/run.c", "src/export/export.h", false },
		{ "src/cli/verb_sql.c", "src/sql/sql.h", true },
		{ "src/cli/verb_sql.c", "src/sql/format.h", false },
		{ "src/cli/verb_sql.c", "src/sql/sql.hidden.h", false },
		{ "src/cli/verb_top.c", "src/cli/top/top.h", true },
		{ "src/cli/top/run.c", "src/cli/cli.h", true },
		{ "src/cli/top/run.c", "src/cli/record/record.h", true },
		{ "src/cli/record/run.c", "src/cli/top/top.h", false },        /* up */
		{ "src/cli/cluster/run.c", "src/cli/report/report.h", false }, /* another verb's */
		{ "src/cli/verb_sql.c", "cli.h", false },                      /* no folder */
		{ "src/cli/verb_sql.c", "tests/helper.h", false },             /* no layer */
		{ "src/storehouse/a.c", "base/util.h", false },                /* not in the picture */
		{ "src/main.c", "base/util.h", false },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		const char *wrong = check_include(cases[i].file, cases[i].included);

		if ((wrong == NULL) != cases[i].is_right)
			fail_msg("%s including %s: %s", cases[i].file, cases[i].included,
				 wrong ? wrong : "nothing found");
	}
}

static void includes_are_found_in_text(void **state)
{
	struct walk walk = { 0 };
	char wrong[] = "#include <stdio.h>\n"
		       "  #  include \"base/util.h\"\n"
		       "/* words */\n"
		       "#include \"src/cli/cli.h\"\n"
		       "#include \"src/export/export.h\" /* both */";
	char nothing[] = "int include;\n#define include \"src/cli/cli.h\"\n#include \"half\n//#include \"x\"\n";

	(void)state;
	check_text(&walk, "src/store/writer.c", wrong);
	assert_int_equal(walk.n_includes, 3);
	assert_int_equal(walk.n_wrong, 2);
	check_text(&walk, "src/store/writer.c", nothing);
	assert_int_equal(walk.n_includes, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_source_keeps_to_the_picture),
		cmocka_unit_test(the_picture_has_no_circles),
		cmocka_unit_test(the_checker_tells_right_from_wrong),
		cmocka_unit_test(includes_are_found_in_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
