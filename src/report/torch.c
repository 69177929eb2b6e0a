/* SPDX-License-Identifier: MIT */
/* torch.c - see torch.h. */
#include "src/report/torch.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/interner.h"
#include "base/text.h"
#include "base/util.h"
#include "src/columns/columns.h"
#include "src/report/print.h"
#include "src/report/table.h"

enum {
	NONE = -1,
	MAX_OPEN = 256,      /* passes within one another; deeper ones count for the innermost of these */
	NUMBER_COLUMNS = 56, /* of a line, before the name */
	MIN_NAME_COLUMNS = 16,
	ANY_COLUMNS = 1 << 16
};

enum sort { MODULE, OPTIMIZER, LOADER, OTHER, N_SORTS };
enum stage { FORWARD, BACKWARD, ONLY, N_STAGES }; /* ONLY: of what is no module */

static const char *const sort_names[N_SORTS] = { "module", "optimizer", "data", "other" };
static const char *const sort_heads[N_SORTS] = { "", "[optimizer] ", "[data] ", "[other] " };

struct node {
	char *name, *kind; /* kind: its class */
	enum sort sort;
	uint64_t calls[N_STAGES];
	double total_s[N_STAGES], self_s[N_STAGES];
	double gpu_s; /* of total_s, by the GPU's clock */
	double peak_mb;
	int64_t around; /* the model that its passes lie in; NONE: in none */
	int64_t parent; /* NONE: a root */
	unsigned depth;
	bool is_chosen;
};

struct open_pass {
	uint32_t node;
	enum stage stage;
	double end_s, duration_s, parts_s;
};

struct torch_report {
	struct interner names;
	struct node *nodes; /* by the number of the name */
	size_t n, allocated;
	struct open_pass open[MAX_OPEN];
	size_t n_open;
	int64_t process, step, thread;
	double begin_s, end_s; /* of the step */
	bool has_any, is_first;
	uint64_t n_processes, n_steps, n_passes, n_on_gpu;
	double steps_s;
	uint32_t *order; /* of printing */
	size_t n_order;
};

int torch_report_new(struct torch_report **ret)
{
	*ret = calloc(1, sizeof **ret);
	return *ret ? 0 : -ENOMEM;
}

void torch_report_free(struct torch_report *report)
{
	if (!report)
		return;
	for (size_t i = 0; i < report->n; i++) {
		free(report->nodes[i].name);
		free(report->nodes[i].kind);
	}
	free(report->nodes);
	free(report->order);
	interner_done(&report->names);
	free(report);
}

/* ---- Add up ---- */

static enum sort sort_of(const char *stage)
{
	if (strcmp(stage, "forward") == 0 || strcmp(stage, "backward") == 0)
		return MODULE;
	if (strcmp(stage, "step") == 0)
		return OPTIMIZER;
	return strcmp(stage, "data") == 0 ? LOADER : OTHER;
}

static int add_node(struct torch_report *report, enum sort sort, const struct torch_pass *pass)
{
	struct node *node;
	int r = grow(&report->nodes, report->n, &report->allocated, sizeof *report->nodes);

	if (r < 0)
		return r;
	node = &report->nodes[report->n];
	*node = (struct node){ .name = strdup(pass->module),
			       .kind = strdup(pass->kind),
			       .sort = sort,
			       .peak_mb = -1,
			       .around = NONE,
			       .parent = NONE };
	if (!node->name || !node->kind) {
		free(node->name);
		free(node->kind);
		return -ENOMEM;
	}
	report->n++;
	return 0;
}

/* Loaders of several data sets have one name. */
static int get_node(struct torch_report *report, const struct torch_pass *pass, uint32_t *ret)
{
	enum sort sort = sort_of(pass->stage);
	char *key = NULL;
	int n, r;

	n = asprintf(&key, "%c%s%s%s", '0' + (char)sort, pass->module, sort == LOADER ? "\n" : "",
		     sort == LOADER ? pass->kind : "");
	if (n < 0)
		return -ENOMEM;
	r = interner_add(&report->names, key, (size_t)n, ret);
	free(key);
	return r > 0 ? add_node(report, sort, pass) : r;
}

/* A model: its name is that of its class, or "Net#2". */
static bool is_model(const struct node *node)
{
	size_t n = strlen(node->kind);

	return node->sort == MODULE && strncmp(node->name, node->kind, n) == 0 &&
	       (node->name[n] == '\0' || node->name[n] == '#') && !strchr(node->name, '.');
}

static void close_pass(struct torch_report *report)
{
	const struct open_pass *pass = &report->open[--report->n_open];

	report->nodes[pass->node].self_s[pass->stage] += fmax(0, pass->duration_s - pass->parts_s);
}

static void close_thread(struct torch_report *report)
{
	while (report->n_open > 0)
		close_pass(report);
}

static void close_step(struct torch_report *report)
{
	close_thread(report);
	if (!report->has_any)
		return;
	/* What was before the first step is not of it: the program made its model. */
	report->steps_s += report->end_s - (report->is_first ? report->begin_s : fmin(0, report->begin_s));
	report->n_steps++;
}

static void begin_pass_of(struct torch_report *report, const struct torch_pass *pass)
{
	bool is_process = report->has_any && report->process == pass->process;

	if (is_process && report->step == pass->step) {
		if (report->thread != pass->thread)
			close_thread(report);
		report->thread = pass->thread;
		return;
	}
	close_step(report);
	report->n_processes += !is_process;
	report->is_first = !is_process;
	report->has_any = true;
	report->process = pass->process;
	report->step = pass->step;
	report->thread = pass->thread;
	report->begin_s = pass->begin_s;
	report->end_s = pass->begin_s;
}

/* The innermost model that is open, unless it is the node itself. */
static int64_t model_around(const struct torch_report *report, uint32_t node)
{
	for (size_t i = report->n_open; i > 0; i--) {
		uint32_t open = report->open[i - 1].node;

		if (open != node && is_model(&report->nodes[open]))
			return open;
	}
	return NONE;
}

/* On the CPU both are the same number. */
static bool is_on_gpu(const struct torch_pass *pass)
{
	return pass->peak_mb >= 0 || pass->duration_s != pass->host_s;
}

static void open_pass(struct torch_report *report, uint32_t number, const struct torch_pass *pass)
{
	struct node *node = &report->nodes[number];
	enum stage stage = node->sort != MODULE ? ONLY : strcmp(pass->stage, "backward") == 0 ? BACKWARD : FORWARD;
	double end_s = pass->begin_s + pass->host_s;

	/* A pass that goes on beyond the end of another one is not in it. */
	while (report->n_open > 0 && report->open[report->n_open - 1].end_s < end_s - 1e-9)
		close_pass(report);
	if (node->around == NONE && stage == FORWARD)
		node->around = model_around(report, number);
	if (report->n_open > 0)
		report->open[report->n_open - 1].parts_s += pass->duration_s;
	if (report->n_open < MAX_OPEN)
		report->open[report->n_open++] = (struct open_pass){
			.node = number, .stage = stage, .end_s = end_s, .duration_s = pass->duration_s
		};
	node->calls[stage]++;
	node->total_s[stage] += pass->duration_s;
	node->peak_mb = fmax(node->peak_mb, pass->peak_mb);
	node->gpu_s += is_on_gpu(pass) ? pass->duration_s : 0;
	report->n_on_gpu += is_on_gpu(pass);
	report->n_passes++;
	report->begin_s = fmin(report->begin_s, pass->begin_s);
	report->end_s = fmax(report->end_s, end_s);
}

int torch_report_add(struct torch_report *report, const struct torch_pass *pass)
{
	uint32_t number;
	int r;

	if (!isfinite(pass->begin_s) || !isfinite(pass->host_s) || !isfinite(pass->duration_s) || pass->host_s < 0 ||
	    pass->duration_s < 0)
		return 0;
	r = get_node(report, pass, &number);
	if (r < 0)
		return r;
	begin_pass_of(report, pass);
	open_pass(report, number, pass);
	return 0;
}

/* ---- The tree ---- */

static double total_of(const struct node *node)
{
	return node->total_s[FORWARD] + node->total_s[BACKWARD] + node->total_s[ONLY];
}

static double self_of(const struct node *node)
{
	return node->self_s[FORWARD] + node->self_s[BACKWARD] + node->self_s[ONLY];
}

static uint64_t calls_of(const struct node *node)
{
	return MAX(node->calls[FORWARD], node->calls[BACKWARD]) + node->calls[ONLY];
}

/* The module "layer3" of "layer3.0.conv2", if "layer3.0" has no passes; else the model. */
static int64_t find_parent(const struct torch_report *report, const struct node *node)
{
	size_t n = strlen(node->name);
	char key[512];
	uint32_t found;

	if (node->sort != MODULE)
		return NONE;
	while (n > 0 && n + 2 < sizeof key) {
		while (n > 0 && node->name[n - 1] != '.')
			n--;
		if (n == 0)
			break;
		snprintf(key, sizeof key, "%c%.*s", '0' + MODULE, (int)--n, node->name);
		if (interner_find(&report->names, key, n + 1, &found))
			return found;
	}
	return node->around;
}

/* Models around one another in a circle would be damage. */
static bool is_below(const struct torch_report *report, int64_t node, int64_t other)
{
	for (size_t i = 0; node != NONE && i <= report->n; i++, node = report->nodes[node].parent)
		if (node == other)
			return true;
	return false;
}

static int compare_nodes(const void *a, const void *b, void *context)
{
	const struct torch_report *report = context;
	const struct node *one = &report->nodes[*(const uint32_t *)a], *other = &report->nodes[*(const uint32_t *)b];
	double total = total_of(one), others = total_of(other);

	if (one->sort != other->sort)
		return one->sort < other->sort ? -1 : 1;
	if (total != others)
		return total > others ? -1 : 1;
	return strcmp(one->name, other->name);
}

/* @sorted: all nodes, those with most time first. */
static void put_below(struct torch_report *report, const uint32_t *sorted, int64_t parent, unsigned depth)
{
	for (size_t i = 0; i < report->n; i++) {
		struct node *node = &report->nodes[sorted[i]];

		if (node->parent != parent || !node->is_chosen)
			continue;
		node->depth = depth;
		report->order[report->n_order++] = sorted[i];
		if (node->sort == MODULE && depth < MAX_OPEN)
			put_below(report, sorted, sorted[i], depth + 1);
	}
}

/* The first @n modules, with those that they are in; all others. */
static void choose(struct torch_report *report, const uint32_t *sorted, size_t n)
{
	for (size_t i = 0; i < report->n; i++) {
		bool is_module = report->nodes[sorted[i]].sort == MODULE;

		if (is_module && i >= n)
			continue;
		for (int64_t at = sorted[i]; at != NONE && !report->nodes[at].is_chosen; at = report->nodes[at].parent)
			report->nodes[at].is_chosen = true;
	}
}

static int make_tree(struct torch_report *report, size_t max_rows)
{
	CLEANUP(freep) uint32_t *sorted = calloc(report->n + 1, sizeof *sorted);

	report->order = calloc(report->n + 1, sizeof *report->order);
	if (!sorted || !report->order)
		return -ENOMEM;
	for (size_t i = 0; i < report->n; i++) {
		int64_t parent = find_parent(report, &report->nodes[i]);

		sorted[i] = (uint32_t)i;
		if (!is_below(report, parent, (int64_t)i))
			report->nodes[i].parent = parent;
	}
	qsort_r(sorted, report->n, sizeof *sorted, compare_nodes, report);
	choose(report, sorted, max_rows);
	put_below(report, sorted, NONE, 0);
	return 0;
}

/* ---- Print ---- */

static uint64_t ns_of(double seconds)
{
	return seconds > 0 && seconds < 1e9 ? (uint64_t)llround(seconds * 1e9) : 0;
}

static double share_of(const struct torch_report *report, double seconds)
{
	return report->steps_s > 0 ? 100 * seconds / report->steps_s : 0;
}

static const struct column module_columns[] = {
	{ "step %", 6, 0, false },   { "total", 7, 1, false }, { "self", 7, 1, false },   { "forward", 7, 1, false },
	{ "backward", 8, 1, false }, { "calls", 7, 1, false }, { "max MB", 6, 1, false }, { "module", 0, 1, true },
};

static void put_time(struct columns *columns, double seconds, bool is_known)
{
	char text[24] = "";

	if (is_known)
		cell_format_ns(ns_of(seconds), text, sizeof text);
	columns_put(columns, text);
}

static void put_node(const struct torch_report *report, const struct node *node, const struct report_options *options,
		     struct columns *columns)
{
	FILE *out = columns->out;
	unsigned rest = options->columns == 0
				? (unsigned)ANY_COLUMNS
				: MAX(options->columns, NUMBER_COLUMNS + MIN_NAME_COLUMNS) - NUMBER_COLUMNS;
	unsigned indent = MIN(2 * node->depth, rest / 2), used;

	columns_printf(columns, "%.1f", share_of(report, total_of(node)));
	put_time(columns, total_of(node), true);
	put_time(columns, self_of(node), true);
	put_time(columns, node->total_s[FORWARD], node->calls[FORWARD] > 0);
	put_time(columns, node->total_s[BACKWARD], node->calls[BACKWARD] > 0);
	columns_printf(columns, "%ju", (uintmax_t)calls_of(node));
	if (node->peak_mb >= 0)
		columns_printf(columns, "%.0f", node->peak_mb);
	columns_start_last(columns);
	fprintf(out, "%*s%s", (int)indent, "", sort_heads[node->sort]);
	used = indent + (unsigned)strlen(sort_heads[node->sort]);
	used += cell_put(out, node->name, rest > used ? rest - used : 1, CELL_CUT_START);
	if (strcmp(node->name, node->kind) != 0 && used + 3 + text_columns_shown(node->kind) <= rest) {
		fputs(" (", out);
		cell_put(out, node->kind, ANY_COLUMNS, CELL_CUT_MIDDLE);
		fputs(")", out);
	}
	columns_end(columns);
}

static void put_whole(const struct torch_report *report, FILE *out)
{
	char time[24];

	cell_format_ns(ns_of(report->steps_s), time, sizeof time);
	fprintf(out, "%ju traced step%s", (uintmax_t)report->n_steps, report->n_steps == 1 ? "" : "s");
	if (report->n_processes > 1)
		fprintf(out, " of %ju processes", (uintmax_t)report->n_processes);
	fprintf(out, ", %s; %ju passes", time, (uintmax_t)report->n_passes);
	if (report->n_on_gpu > 0)
		fprintf(out, ", %ju of them timed by the GPU", (uintmax_t)report->n_on_gpu);
	fputs("\n\n", out);
}

static int print_text(const struct torch_report *report, const struct report_options *options, FILE *out)
{
	struct columns columns = {
		.list = module_columns, .n = N_ELEMENTS(module_columns), .out = out, .colour = options->colour
	};

	put_whole(report, out);
	columns_put_head(&columns);
	for (size_t i = 0; i < report->n_order; i++)
		put_node(report, &report->nodes[report->order[i]], options, &columns);
	if (report->n > report->n_order)
		fprintf(out, "(%zu more)\n", report->n - report->n_order);
	return text_finish(out);
}

static void put_json_stage(struct json *json, const char *name, const struct node *node, enum stage stage)
{
	to_json_put_object(json, name);
	to_json_put_integer(json, "calls", (int64_t)node->calls[stage]);
	to_json_put_integer(json, "self", (int64_t)ns_of(node->self_s[stage]));
	to_json_put_integer(json, "total", (int64_t)ns_of(node->total_s[stage]));
	to_json_object_end(json);
}

static void put_json_time(struct json *json, const struct torch_report *report, const char *key, double seconds)
{
	char share[32];

	to_json_put_integer(json, key, (int64_t)ns_of(seconds));
	snprintf(share, sizeof share, "%s_share", key);
	print_json_percent(json, share, share_of(report, seconds));
}

static void put_json_node(struct json *json, const struct torch_report *report, const struct node *node)
{
	to_json_object(json);
	to_json_put_string(json, "name", node->name);
	to_json_put_string(json, "class", node->kind);
	to_json_put_string(json, "sort", sort_names[node->sort]);
	to_json_put_string(json, "parent", node->parent == NONE ? NULL : report->nodes[node->parent].name);
	to_json_put_integer(json, "depth", node->depth);
	to_json_put_integer(json, "calls", (int64_t)calls_of(node));
	put_json_time(json, report, "self", self_of(node));
	put_json_time(json, report, "total", total_of(node));
	to_json_put_integer(json, "gpu", (int64_t)ns_of(node->gpu_s));
	if (node->peak_mb >= 0)
		to_json_put_number(json, "max_allocated_mb", node->peak_mb);
	else
		to_json_put_null(json, "max_allocated_mb");
	if (node->sort == MODULE) {
		put_json_stage(json, "forward", node, FORWARD);
		put_json_stage(json, "backward", node, BACKWARD);
	}
	to_json_object_end(json);
}

static int print_json(const struct torch_report *report, FILE *out)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	int r = to_json_keep(" ", &json);

	if (r < 0)
		return r;
	to_json_object(&json);
	to_json_put_string(&json, "by", report_by_names[REPORT_BY_TORCH]);
	to_json_put_string(&json, "unit", "ns");
	to_json_put_integer(&json, "processes", (int64_t)report->n_processes);
	to_json_put_integer(&json, "steps", (int64_t)report->n_steps);
	to_json_put_integer(&json, "step_time", (int64_t)ns_of(report->steps_s));
	to_json_put_integer(&json, "passes", (int64_t)report->n_passes);
	to_json_put_integer(&json, "gpu_passes", (int64_t)report->n_on_gpu);
	to_json_put_array(&json, "rows");
	for (size_t i = 0; i < report->n_order; i++)
		put_json_node(&json, report, &report->nodes[report->order[i]]);
	to_json_array_end(&json);
	to_json_put_integer(&json, "left_out", (int64_t)(report->n - report->n_order));
	to_json_object_end(&json);
	return to_json_finish(&json, out);
}

int torch_report_print(struct torch_report *report, const struct report_options *options, FILE *out)
{
	int r;

	close_step(report);
	r = make_tree(report, options->max_rows ?: REPORT_ROWS);
	if (r < 0)
		return r;
	return options->json ? print_json(report, out) : print_text(report, options, out);
}
