/*
 * export_gecko.c - the format of profiler.firefox.com: samples with times, weights and categories, by thread.
 *
 * Format: its "processed" one, src/types/profile.ts of github.com/firefox-devtools/profiler, version 60: tables are
 * columns of the same length, and all threads share those of strings, functions, frames and stacks. A label is a frame
 * and a function there, a node of the call tree a stack.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "src/export/export.h"
#include "src/export/json.h"
#include "src/export/names.h"
#include "src/export/text.h"
#include "src/export/timeline.h"

enum { VERSION = 60, GECKO_VERSION = 24, LIBRARY = 1, MILLISECOND_DECIMALS = 6, NONE = -1 };

static const struct {
	const char *name, *colour;
} categories[LABEL_N_KINDS] = {
	[LABEL_PYTHON] = { "Python", "yellow" }, [LABEL_BUILTIN] = { "Builtin", "lightblue" },
	[LABEL_NATIVE] = { "Native", "blue" },	 [LABEL_KERNEL] = { "Kernel", "orange" },
	[LABEL_TASK] = { "Task", "green" },	 [LABEL_WAIT] = { "Waiting", "red" },
	[LABEL_GROUP] = { "Other", "grey" },
};

/* By label: its texts as numbers. */
struct function {
	uint32_t name;
	int64_t source, library; /* NONE: unknown */
};

struct writing {
	struct json json;
	const struct profile *profile;
	const struct export_options *options;
	const struct timeline *timeline;
	struct names strings, sources, libraries;
	struct function *functions;
	uint32_t *stacks; /* by node: its number in the table */
	uint64_t origin_ns;
};

static void writing_done(struct writing *writing)
{
	json_done(&writing->json);
	names_done(&writing->strings);
	names_done(&writing->sources);
	names_done(&writing->libraries);
	free(writing->functions);
	free(writing->stacks);
}

/* ---- Numbers for what is written ---- */

static int add_optional(struct names *names, const char *text, int64_t *ret)
{
	uint32_t number;
	int r;

	*ret = NONE;
	if (!text)
		return 0;
	r = names_add(names, text, &number);
	if (r == 0)
		*ret = number;
	return r;
}

static int number_functions(struct writing *writing)
{
	const struct labels *labels = &writing->timeline->tree->labels;
	int r = 0;

	writing->functions = calloc(labels->n_items + 1, sizeof *writing->functions);
	if (!writing->functions)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < labels->n_items; i++) {
		struct function *function = &writing->functions[i];

		r = names_add(&writing->strings, labels->items[i].text, &function->name);
		if (r == 0)
			r = add_optional(&writing->sources, labels->items[i].file, &function->source);
		if (r == 0)
			r = add_optional(&writing->libraries, labels->items[i].module, &function->library);
	}
	return r;
}

static int number_stacks(struct writing *writing)
{
	const struct call_tree *tree = writing->timeline->tree;
	uint32_t n = 0;

	writing->stacks = calloc(tree->n_nodes, sizeof *writing->stacks);
	if (!writing->stacks)
		return -ENOMEM;
	for (size_t i = 1; i < tree->n_nodes; i++)
		if (!call_tree_is_small(tree, (uint32_t)i))
			writing->stacks[i] = n++;
	return 0;
}

/* ---- Columns ---- */

/* The same number or nothing n times over. */
static void put_same(struct json *json, const char *name, size_t n, int64_t value)
{
	json_key(json, name);
	json_array(json);
	for (size_t i = 0; i < n; i++)
		if (value == NONE)
			json_null(json);
		else
			json_integer(json, value);
	json_array_end(json);
}

static void put_false(struct json *json, const char *name, size_t n)
{
	json_key(json, name);
	json_array(json);
	for (size_t i = 0; i < n; i++)
		json_bool(json, false);
	json_array_end(json);
}

static void put_empty(struct json *json, const char *name)
{
	put_same(json, name, 0, 0);
}

/* ---- Tables of all threads ---- */

static void put_strings(struct json *json, const char *key, const struct names *names)
{
	json_key(json, key);
	json_array(json);
	for (size_t i = 0; i < names->n; i++)
		json_string(json, names->texts[i]);
	json_array_end(json);
}

/* A column of the numbers under which other texts are among the strings. */
static int put_text_numbers(struct writing *writing, const char *key, const struct names *names, bool base_names)
{
	int r = 0;

	json_key(&writing->json, key);
	json_array(&writing->json);
	for (size_t i = 0; r == 0 && i < names->n; i++) {
		uint32_t number;

		r = names_add(&writing->strings, base_names ? text_base_name(names->texts[i]) : names->texts[i], &number);
		if (r == 0)
			json_integer(&writing->json, number);
	}
	json_array_end(&writing->json);
	return r;
}

static void put_stack_table(struct writing *writing)
{
	const struct call_tree *tree = writing->timeline->tree;
	struct json *json = &writing->json;
	size_t n = 0;

	json_key(json, "stackTable");
	json_object(json);
	json_key(json, "frame");
	json_array(json);
	for (uint32_t i = 1; i < tree->n_nodes; i++)
		if (!call_tree_is_small(tree, i)) {
			json_integer(json, tree->nodes[i].label);
			n++;
		}
	json_array_end(json);
	json_key(json, "prefix");
	json_array(json);
	for (uint32_t i = 1; i < tree->n_nodes; i++) {
		if (call_tree_is_small(tree, i))
			continue;
		if (tree->nodes[i].parent == 0)
			json_null(json);
		else
			json_integer(json, writing->stacks[tree->nodes[i].parent]);
	}
	json_array_end(json);
	json_put_integer(json, "length", (int64_t)n);
	json_object_end(json);
}

static void put_frame_table(struct writing *writing)
{
	const struct labels *labels = &writing->timeline->tree->labels;
	struct json *json = &writing->json;

	json_key(json, "frameTable");
	json_object(json);
	json_key(json, "address");
	json_array(json);
	for (size_t i = 0; i < labels->n_items; i++)
		json_integer(json, -1);
	json_array_end(json);
	put_same(json, "inlineDepth", labels->n_items, 0);
	json_key(json, "category");
	json_array(json);
	for (size_t i = 0; i < labels->n_items; i++)
		json_integer(json, labels->items[i].kind);
	json_array_end(json);
	put_same(json, "subcategory", labels->n_items, 0);
	json_key(json, "func");
	json_array(json);
	for (size_t i = 0; i < labels->n_items; i++)
		json_integer(json, (int64_t)i);
	json_array_end(json);
	put_same(json, "nativeSymbol", labels->n_items, NONE);
	put_same(json, "innerWindowID", labels->n_items, 0);
	json_key(json, "line");
	json_array(json);
	for (size_t i = 0; i < labels->n_items; i++)
		if (writing->options->lines && labels->items[i].first_line > 0)
			json_integer(json, labels->items[i].first_line);
		else
			json_null(json);
	json_array_end(json);
	put_same(json, "column", labels->n_items, NONE);
	json_put_integer(json, "length", (int64_t)labels->n_items);
	json_object_end(json);
}

static void put_function_table(struct writing *writing)
{
	size_t n = writing->timeline->tree->labels.n_items;
	struct json *json = &writing->json;

	json_key(json, "funcTable");
	json_object(json);
	json_key(json, "name");
	json_array(json);
	for (size_t i = 0; i < n; i++)
		json_integer(json, writing->functions[i].name);
	json_array_end(json);
	put_false(json, "isJS", n);
	put_false(json, "relevantForJS", n);
	json_key(json, "resource");
	json_array(json);
	for (size_t i = 0; i < n; i++)
		json_integer(json, writing->functions[i].library);
	json_array_end(json);
	json_key(json, "source");
	json_array(json);
	for (size_t i = 0; i < n; i++)
		if (writing->functions[i].source == NONE)
			json_null(json);
		else
			json_integer(json, writing->functions[i].source);
	json_array_end(json);
	put_same(json, "lineNumber", n, NONE);
	put_same(json, "columnNumber", n, NONE);
	json_put_integer(json, "length", (int64_t)n);
	json_object_end(json);
}

/* Each library is a resource of that number. */
static int put_resource_table(struct writing *writing)
{
	size_t n = writing->libraries.n;
	struct json *json = &writing->json;
	int r;

	json_key(json, "resourceTable");
	json_object(json);
	json_put_integer(json, "length", (int64_t)n);
	json_key(json, "lib");
	json_array(json);
	for (size_t i = 0; i < n; i++)
		json_integer(json, (int64_t)i);
	json_array_end(json);
	r = put_text_numbers(writing, "name", &writing->libraries, true);
	put_same(json, "host", n, NONE);
	put_same(json, "type", n, LIBRARY);
	json_object_end(json);
	return r;
}

static int put_source_table(struct writing *writing)
{
	struct json *json = &writing->json;
	int r;

	json_key(json, "sources");
	json_object(json);
	json_put_integer(json, "length", (int64_t)writing->sources.n);
	put_same(json, "id", writing->sources.n, NONE);
	r = put_text_numbers(writing, "filename", &writing->sources, false);
	json_object_end(json);
	return r;
}

static void put_no_symbols(struct json *json)
{
	json_key(json, "nativeSymbols");
	json_object(json);
	json_put_integer(json, "length", 0);
	put_empty(json, "address");
	put_empty(json, "functionSize");
	put_empty(json, "libIndex");
	put_empty(json, "name");
	json_object_end(json);
}

/* Strings last: the other tables add theirs. */
static int put_shared(struct writing *writing)
{
	struct json *json = &writing->json;
	int r;

	json_key(json, "shared");
	json_object(json);
	put_stack_table(writing);
	put_frame_table(writing);
	put_function_table(writing);
	put_no_symbols(json);
	r = put_resource_table(writing);
	if (r == 0)
		r = put_source_table(writing);
	put_strings(json, "stringArray", &writing->strings);
	json_object_end(json);
	return r;
}

/* ---- Threads ---- */

/* What the graph of a thread's activity is made of. */
static void put_cpu_times(struct json *json, const struct timeline *timeline, const struct timeline_thread *thread)
{
	json_key(json, "threadCPUDelta");
	json_array(json);
	for (size_t i = 0; i < thread->n; i++) {
		const struct profile_sample *sample = timeline_sample(timeline, thread, i);

		json_integer(json, timeline_is_running(sample) ? (int64_t)sample->weight_ns : 0);
	}
	json_array_end(json);
}

static void put_samples(struct writing *writing, const struct timeline_thread *thread)
{
	const struct timeline *timeline = writing->timeline;
	struct json *json = &writing->json;

	json_key(json, "samples");
	json_object(json);
	json_put_integer(json, "length", (int64_t)thread->n);
	json_key(json, "stack");
	json_array(json);
	for (size_t i = 0; i < thread->n; i++) {
		uint32_t node = timeline_node(timeline, timeline_sample(timeline, thread, i));

		if (node == 0)
			json_null(json);
		else
			json_integer(json, writing->stacks[node]);
	}
	json_array_end(json);
	json_key(json, "time");
	json_array(json);
	for (size_t i = 0; i < thread->n; i++)
		json_fixed(json, timeline_sample(timeline, thread, i)->time_ns - writing->origin_ns, MILLISECOND_DECIMALS);
	json_array_end(json);
	json_key(json, "weight");
	json_array(json);
	for (size_t i = 0; i < thread->n; i++)
		json_fixed(json, timeline_sample(timeline, thread, i)->weight_ns,
			   writing->profile->unit ? 0 : MILLISECOND_DECIMALS);
	json_array_end(json);
	json_put_string(json, "weightType", writing->profile->unit ? "samples" : "tracing-ms");
	if (!writing->profile->unit)
		put_cpu_times(json, timeline, thread);
	json_object_end(json);
}

static void put_no_markers(struct json *json)
{
	static const char *const columns[] = { "data", "name", "startTime", "endTime", "phase", "category" };

	json_key(json, "markers");
	json_object(json);
	json_put_integer(json, "length", 0);
	for (size_t i = 0; i < N_ELEMENTS(columns); i++)
		put_empty(json, columns[i]);
	json_object_end(json);
}

static void put_thread(struct writing *writing, const struct timeline_thread *thread)
{
	const struct profile_thread *it = thread->thread;
	struct json *json = &writing->json;
	char pid[16];

	snprintf(pid, sizeof pid, "%d", it->pid);
	json_object(json);
	json_put_string(json, "name", *it->name ? it->name : "thread");
	json_put_bool(json, "isMainThread", it->pid == it->tid);
	json_put_string(json, "processType", "default");
	json_put_string(json, "processName", *it->process ? it->process : "process");
	json_put_string(json, "pid", pid);
	json_put_integer(json, "tid", it->tid);
	json_put_integer(json, "processStartupTime", 0);
	json_key(json, "processShutdownTime");
	json_null(json);
	json_put_integer(json, "registerTime", 0);
	json_key(json, "unregisterTime");
	json_null(json);
	put_empty(json, "pausedRanges");
	put_samples(writing, thread);
	put_no_markers(json);
	json_object_end(json);
}

/* ---- The whole ---- */

static void put_categories(struct json *json)
{
	json_key(json, "categories");
	json_array(json);
	for (size_t i = 0; i < N_ELEMENTS(categories); i++) {
		json_object(json);
		json_put_string(json, "name", categories[i].name);
		json_put_string(json, "color", categories[i].colour);
		json_key(json, "subcategories");
		json_array(json);
		json_string(json, "Other");
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_meta(struct writing *writing)
{
	const struct profile_run *run = &writing->profile->run;
	struct json *json = &writing->json;

	json_key(json, "meta");
	json_object(json);
	json_put_integer(json, "preprocessedProfileVersion", VERSION);
	json_put_integer(json, "version", GECKO_VERSION);
	json_put_string(json, "product", writing->options->title ?: run->command ?: "probing");
	json_put_string(json, "importedFrom", "probing");
	json_put_fixed(json, "startTime", writing->origin_ns, MILLISECOND_DECIMALS);
	json_put_fixed(json, "interval", run->hz > 0 ? (uint64_t)(1e9 / run->hz) : 1000000, MILLISECOND_DECIMALS);
	json_put_integer(json, "processType", 0);
	json_put_integer(json, "stackwalk", 1);
	json_put_bool(json, "debug", false);
	json_put_bool(json, "symbolicated", true);
	json_put_bool(json, "usesOnlyOneStackType", true);
	json_put_bool(json, "sourceCodeIsNotOnSearchfox", true);
	json_key(json, "sampleUnits");
	json_object(json);
	json_put_string(json, "time", "ms");
	json_put_string(json, "eventDelay", "ms");
	json_put_string(json, "threadCPUDelta", "ns");
	json_object_end(json);
	put_empty(json, "markerSchema");
	put_categories(json);
	json_object_end(json);
}

static void put_libraries(struct writing *writing)
{
	static const char *const same[] = { "path", "debugPath", NULL };
	struct json *json = &writing->json;

	json_key(json, "libs");
	json_array(json);
	for (size_t i = 0; i < writing->libraries.n; i++) {
		const char *path = writing->libraries.texts[i];

		json_object(json);
		json_put_string(json, "arch", "");
		json_put_string(json, "name", text_base_name(path));
		json_put_string(json, "debugName", text_base_name(path));
		for (size_t k = 0; same[k]; k++)
			json_put_string(json, same[k], path);
		json_put_string(json, "breakpadId", "");
		json_key(json, "codeId");
		json_null(json);
		json_object_end(json);
	}
	json_array_end(json);
}

static int put_all(struct writing *writing)
{
	struct json *json = &writing->json;
	int r;

	json_object(json);
	put_meta(writing);
	put_libraries(writing);
	put_empty(json, "pages");
	r = put_shared(writing);
	json_key(json, "threads");
	json_array(json);
	for (size_t i = 0; i < writing->timeline->n_threads; i++)
		put_thread(writing, &writing->timeline->threads[i]);
	json_array_end(json);
	json_object_end(json);
	return r;
}

static int write_gecko(const struct profile *profile, const struct export_options *options, FILE *out)
{
	CLEANUP(timeline_freep) struct timeline *timeline = NULL;
	CLEANUP(writing_done) struct writing writing = { .profile = profile, .options = options };
	int r;

	if (profile->n_samples == 0)
		return -ENODATA;
	r = timeline_new(profile, options, &timeline);
	if (r < 0)
		return r;
	writing.timeline = timeline;
	writing.origin_ns = timeline_origin(profile);
	r = number_functions(&writing);
	if (r == 0)
		r = number_stacks(&writing);
	if (r == 0)
		r = json_open(out, &writing.json);
	if (r == 0)
		r = put_all(&writing);
	return r < 0 ? r : json_finish(&writing.json, out);
}

const struct exporter export_gecko = {
	.name = "gecko",
	.endings = ".gecko.json",
	.summary = "for profiler.firefox.com: samples with times, weights and categories",
	.needs_samples = true,
	.write = write_gecko,
};
