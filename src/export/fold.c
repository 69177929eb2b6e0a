/* fold.c - merging a profile's stacks into a call tree.
 *
 * Totals are sorted by group and stack, so that each stack is walked once and
 * neighbours share most of their callers: a path only looks up what differs
 * from the path before it.
 */
#include "src/export/fold.h"

#include <errno.h>

#include "base/util.h"

enum { FIRST_PATH = 256 };

/* The state of folding. */
struct folding {
	struct call_tree *tree;
	const struct profile *profile;
	const struct profile_thread **threads; /* sorted by pid and tid */
	bool by_process, by_thread, show_interpreter, inverted;
	struct fold_place *entries; /* one per group and stack */
	size_t n_entries;
	int32_t *path; /* of the profile's frames */
	size_t path_allocated;
	/* The nodes of the path last folded, outermost first, groups left out. */
	uint32_t *nodes;
	size_t n_nodes, nodes_allocated;
	uint32_t group; /* the node that stacks of the current group hang under */
	size_t next_thread;
};

static int compare_entries(const void *a, const void *b)
{
	const struct fold_place *left = a, *right = b;

	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	if (left->tid != right->tid)
		return left->tid < right->tid ? -1 : 1;
	return left->stack < right->stack ? -1 : left->stack > right->stack;
}

static int compare_threads(const void *a, const void *b)
{
	const struct profile_thread *left = *(void *const *)a, *right = *(void *const *)b;

	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	return left->tid < right->tid ? -1 : left->tid > right->tid;
}

static int sort_threads(struct folding *folding)
{
	const struct profile *profile = folding->profile;

	folding->threads = calloc(profile->n_threads + 1, sizeof(struct profile_thread *));
	if (!folding->threads)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_threads; i++)
		folding->threads[i] = &profile->threads[i];
	qsort(folding->threads, profile->n_threads, sizeof *folding->threads, compare_threads);
	return 0;
}

/* Totals as entries, one per group and stack. */
static int collect_entries(struct folding *folding)
{
	const struct profile *profile = folding->profile;
	size_t n = 0;

	folding->entries = calloc(profile->n_totals + 1, sizeof *folding->entries);
	if (!folding->entries)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_totals; i++) {
		const struct profile_total *total = &profile->totals[i];

		folding->entries[i] = (struct fold_place){
			.pid = folding->by_process || folding->by_thread ? total->pid : 0,
			.tid = folding->by_thread ? total->tid : 0,
			.stack = total->stack,
			.samples = total->samples,
			.weight_ns = total->weight_ns,
		};
	}
	qsort(folding->entries, profile->n_totals, sizeof *folding->entries, compare_entries);
	for (size_t i = 0; i < profile->n_totals; i++) {
		struct fold_place *entry = &folding->entries[i];

		if (n > 0 && compare_entries(&folding->entries[n - 1], entry) == 0) {
			folding->entries[n - 1].samples += entry->samples;
			folding->entries[n - 1].weight_ns += entry->weight_ns;
		} else {
			folding->entries[n++] = *entry;
		}
	}
	folding->n_entries = n;
	return 0;
}

/* The entries come in the order of the threads, so one pass over them serves all. */
static const struct profile_thread *find_thread(struct folding *folding, const struct fold_place *entry)
{
	struct profile_thread wanted = { .pid = entry->pid, .tid = entry->tid };
	const struct profile_thread *key = &wanted;

	while (folding->next_thread < folding->profile->n_threads) {
		const struct profile_thread **at = &folding->threads[folding->next_thread];

		if (compare_threads(at, &key) >= 0)
			break;
		folding->next_thread++;
	}
	if (folding->next_thread == folding->profile->n_threads)
		return NULL;
	return folding->threads[folding->next_thread];
}

static int enter_group(struct folding *folding, uint32_t parent, const char *name, int32_t id,
		       uint32_t *ret)
{
	uint32_t label;
	int r;

	r = labels_add_group(&folding->tree->labels, name, id, &label);
	return r < 0 ? r : call_tree_enter(folding->tree, parent, label, ret);
}

/* Makes folding->group the node of the entry's process and thread. */
static int change_group(struct folding *folding, const struct fold_place *last,
			const struct fold_place *entry)
{
	const struct profile_thread *thread = find_thread(folding, entry);
	uint32_t group = 0;
	int r;

	if (thread && thread->pid != entry->pid)
		thread = NULL;
	if (folding->by_process && last && last->pid == entry->pid) {
		group = folding->tree->nodes[folding->group].parent;
	} else if (folding->by_process) {
		r = enter_group(folding, 0, thread && thread->process ? thread->process : "process",
				entry->pid, &group);
		if (r < 0)
			return r;
	}
	if (thread && thread->tid != entry->tid)
		thread = NULL;
	if (folding->by_thread) {
		r = enter_group(folding, group, thread && thread->name ? thread->name : "thread",
				entry->tid, &group);
		if (r < 0)
			return r;
	}
	folding->group = group;
	folding->n_nodes = 0;
	return 0;
}

/* The shown path of a stack, outermost first, whatever its length, in folding->path. */
static int read_stack(struct folding *folding, int32_t stack, size_t *ret)
{
	for (;;) {
		size_t n = 0;
		int r;

		if (folding->path_allocated > 0)
			n = profile_path(folding->profile, stack, folding->show_interpreter,
					 folding->path, folding->path_allocated);
		if (n < folding->path_allocated) {
			*ret = n;
			return 0;
		}
		/* Full: there may be more of it. */
		r = grow(&folding->path, MAX(n, (size_t)FIRST_PATH), &folding->path_allocated,
			 sizeof *folding->path);
		if (r < 0)
			return r;
	}
}

/* The same, as the tree is to have it. */
static int read_path(struct folding *folding, int32_t stack, size_t *ret)
{
	int32_t *path;
	int r;

	r = read_stack(folding, stack, ret);
	if (r < 0 || !folding->inverted)
		return r;
	path = folding->path;
	for (size_t i = 0; i < *ret / 2; i++) {
		int32_t frame = path[i];

		path[i] = path[*ret - 1 - i];
		path[*ret - 1 - i] = frame;
	}
	return 0;
}

static int append_node(struct folding *folding, uint32_t node)
{
	int r;

	r = grow(&folding->nodes, folding->n_nodes, &folding->nodes_allocated,
		 sizeof *folding->nodes);
	if (r < 0)
		return r;
	folding->nodes[folding->n_nodes++] = node;
	return 0;
}

/* Nodes for a path, given as labels of its frames; *ret is the innermost. */
static int fold_path(struct folding *folding, size_t n_path, uint32_t *ret)
{
	struct call_tree *tree = folding->tree;
	uint32_t node = folding->group;
	size_t shared = 0;
	int r;

	while (shared < n_path && shared < folding->n_nodes &&
	       tree->nodes[folding->nodes[shared]].label ==
		       tree->labels.of_frame[folding->path[shared]])
		node = folding->nodes[shared++];
	folding->n_nodes = shared;
	for (size_t i = shared; i < n_path; i++) {
		r = call_tree_enter(tree, node, tree->labels.of_frame[folding->path[i]], &node);
		if (r < 0)
			return r;
		r = append_node(folding, node);
		if (r < 0)
			return r;
	}
	*ret = node;
	return 0;
}

static int fold_entry(struct folding *folding, struct fold_place *entry)
{
	struct call_tree *tree = folding->tree;
	size_t n_path = 0;
	uint32_t node;
	int r;

	if (entry->stack >= 0) {
		r = read_path(folding, entry->stack, &n_path);
		if (r < 0)
			return r;
	}
	if (n_path > 0)
		r = fold_path(folding, n_path, &node);
	else
		r = call_tree_enter(tree, folding->group, tree->no_stack, &node);
	if (r < 0)
		return r;
	entry->node = node;
	tree->nodes[node].self_samples += entry->samples;
	tree->nodes[node].samples += entry->samples;
	tree->nodes[node].weight_ns += entry->weight_ns;
	return 0;
}

static int fold_entries(struct folding *folding)
{
	const struct fold_place *last = NULL;
	int r;

	for (size_t i = 0; i < folding->n_entries; i++) {
		struct fold_place *entry = &folding->entries[i];

		if (entry->samples == 0 && entry->weight_ns == 0)
			continue;
		if (!last || last->pid != entry->pid || last->tid != entry->tid) {
			r = change_group(folding, last, entry);
			if (r < 0)
				return r;
		}
		r = fold_entry(folding, entry);
		if (r < 0)
			return r;
		last = entry;
	}
	return 0;
}

static bool has_several_processes(const struct profile *profile)
{
	for (size_t i = 1; i < profile->n_totals; i++) {
		if (profile->totals[i].pid != profile->totals[0].pid)
			return true;
	}
	return false;
}

static int fold(struct folding *folding, double min_share)
{
	int r;

	r = sort_threads(folding);
	if (r >= 0)
		r = collect_entries(folding);
	if (r >= 0)
		r = fold_entries(folding);
	return r < 0 ? r : call_tree_finish(folding->tree, min_share);
}

static void folding_done(struct folding *folding)
{
	free(folding->threads);
	free(folding->entries);
	free(folding->path);
	free(folding->nodes);
}

void fold_places_done(struct fold_places *places)
{
	free(places->items);
	*places = (struct fold_places){ 0 };
}

int fold_profile_places(const struct profile *profile, const struct export_options *options, bool one_line,
			struct fold_places *places, struct call_tree **ret)
{
	CLEANUP(call_tree_freep) struct call_tree *tree = NULL;
	struct label_options label_options = { .lines = options->lines, .one_line = one_line };
	CLEANUP(folding_done) struct folding folding = {
		.profile = profile,
		.by_process = has_several_processes(profile),
		.by_thread = options->by_thread,
		.show_interpreter = options->show_interpreter,
		.inverted = options->inverted,
	};
	int r;

	r = call_tree_new(profile, &label_options, &tree);
	if (r < 0)
		return r;
	folding.tree = tree;
	r = fold(&folding, options->min_share);
	if (r < 0)
		return r;
	*places = (struct fold_places){
		.items = TAKE(folding.entries),
		.n = folding.n_entries,
		.by_process = folding.by_process,
		.by_thread = folding.by_thread,
	};
	*ret = TAKE(tree);
	return 0;
}

int fold_profile(const struct profile *profile, const struct export_options *options, bool one_line,
		 struct call_tree **ret)
{
	CLEANUP(fold_places_done) struct fold_places places = { 0 };

	return fold_profile_places(profile, options, one_line, &places, ret);
}

uint32_t fold_find(const struct fold_places *places, int32_t pid, int32_t tid, int32_t stack)
{
	struct fold_place wanted = {
		.pid = places->by_process || places->by_thread ? pid : 0,
		.tid = places->by_thread ? tid : 0,
		.stack = stack,
	};
	const struct fold_place *found = NULL;

	if (places->n > 0)
		found = bsearch(&wanted, places->items, places->n, sizeof wanted, compare_entries);
	return found ? found->node : 0;
}
