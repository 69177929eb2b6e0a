/* fold.c - merging a profile's stacks into a call tree.
 *
 * Totals are sorted by group and stack, so that each stack is walked once and
 * neighbours share most of their callers: a path only looks up what differs
 * from the path before it.
 */
#include "src/export/fold.h"

#include <errno.h>

#include "base/util.h"
#include "src/export/path.h"

/* A stack of one group; pid and tid are 0 where groups do not tell them apart. */
struct entry {
	int32_t pid, tid, stack;
	uint64_t samples, weight_ns;
};

/* The state of folding. */
struct folding {
	struct call_tree *tree;
	const struct profile *profile;
	const struct profile_thread **threads; /* sorted by pid and tid */
	const struct export_options *options;
	bool by_process, by_thread;
	uint32_t *order; /* of the profile's totals: by group and stack */
	struct path path; /* of the entry at hand */
	/* The nodes of the path last folded, outermost first, groups left out. */
	uint32_t *nodes;
	size_t n_nodes, nodes_allocated;
	uint32_t group; /* the node that stacks of the current group hang under */
	size_t next_thread;
	uint32_t *node_of_stack; /* by index + 1; NULL: nobody asks */
};

static int compare_entries(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

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

static struct entry entry_of(const struct folding *folding, uint32_t i)
{
	const struct profile_total *total = &folding->profile->totals[i];

	return (struct entry){
		.pid = folding->by_process || folding->by_thread ? total->pid : 0,
		.tid = folding->by_thread ? total->tid : 0,
		.stack = total->stack,
		.samples = total->samples,
		.weight_ns = total->weight_ns,
	};
}

static int compare_totals(const void *a, const void *b, void *data)
{
	struct entry left = entry_of(data, *(const uint32_t *)a), right = entry_of(data, *(const uint32_t *)b);

	return compare_entries(&left, &right);
}

/* Sorted by number, since there may be millions. */
static int sort_totals(struct folding *folding)
{
	size_t n = folding->profile->n_totals;

	if (n >= UINT32_MAX)
		return -EOVERFLOW;
	folding->order = calloc(n + 1, sizeof *folding->order);
	if (!folding->order)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		folding->order[i] = (uint32_t)i;
	qsort_r(folding->order, n, sizeof *folding->order, compare_totals, folding);
	return 0;
}

/* All totals from *at on that are of one group and stack; moves on behind them. */
static struct entry next_entry(const struct folding *folding, size_t *at)
{
	struct entry entry = entry_of(folding, folding->order[(*at)++]);

	for (; *at < folding->profile->n_totals; (*at)++) {
		struct entry more = entry_of(folding, folding->order[*at]);

		if (compare_entries(&entry, &more) != 0)
			break;
		entry.samples += more.samples;
		entry.weight_ns += more.weight_ns;
	}
	return entry;
}

/* The entries come in the order of the threads, so one pass over them serves all. */
static const struct profile_thread *find_thread(struct folding *folding, const struct entry *entry)
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
static int change_group(struct folding *folding, const struct entry *last,
			const struct entry *entry)
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

/* Nodes for a path, by the labels of its frames; *ret is the innermost. */
static int fold_path(struct folding *folding, uint32_t *ret)
{
	struct call_tree *tree = folding->tree;
	size_t n_path = folding->path.n;
	uint32_t node = folding->group;
	size_t shared = 0;
	int r;

	while (shared < n_path && shared < folding->n_nodes &&
	       tree->nodes[folding->nodes[shared]].label ==
		       tree->labels.of_frame[folding->path.frames[shared]])
		node = folding->nodes[shared++];
	folding->n_nodes = shared;
	for (size_t i = shared; i < n_path; i++) {
		r = call_tree_enter(tree, node, tree->labels.of_frame[folding->path.frames[i]], &node);
		if (r < 0)
			return r;
		r = append_node(folding, node);
		if (r < 0)
			return r;
	}
	*ret = node;
	return 0;
}

static int fold_entry(struct folding *folding, const struct entry *entry)
{
	struct call_tree *tree = folding->tree;
	uint32_t node;
	int r;

	r = path_read(&folding->path, folding->profile, folding->options, entry->stack);
	if (r < 0)
		return r;
	if (folding->path.n > 0)
		r = fold_path(folding, &node);
	else
		r = call_tree_enter(tree, folding->group, tree->no_stack, &node);
	if (r < 0)
		return r;
	if (folding->node_of_stack)
		folding->node_of_stack[entry->stack + 1] = node;
	tree->nodes[node].self_samples += entry->samples;
	tree->nodes[node].samples += entry->samples;
	tree->nodes[node].weight_ns += entry->weight_ns;
	return 0;
}

static int fold_entries(struct folding *folding)
{
	struct entry last;
	bool is_first = true;
	int r;

	for (size_t at = 0; at < folding->profile->n_totals;) {
		struct entry entry = next_entry(folding, &at);

		if (entry.samples == 0 && entry.weight_ns == 0)
			continue;
		if (is_first || last.pid != entry.pid || last.tid != entry.tid) {
			r = change_group(folding, is_first ? NULL : &last, &entry);
			if (r < 0)
				return r;
		}
		r = fold_entry(folding, &entry);
		if (r < 0)
			return r;
		last = entry;
		is_first = false;
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

static int fold(struct folding *folding)
{
	int r;

	r = sort_threads(folding);
	if (r >= 0)
		r = sort_totals(folding);
	if (r >= 0)
		r = fold_entries(folding);
	return r < 0 ? r : call_tree_finish(folding->tree, folding->options->min_share);
}

/* What was left out ends where its time stays. */
static void move_small(const struct call_tree *tree, uint32_t *nodes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t node = nodes[i];

		if (node == 0)
			continue;
		while (node != 0 && call_tree_is_small(tree, node))
			node = tree->nodes[node].parent;
		nodes[i] = node != 0 ? node : tree->rest;
	}
}

static void folding_done(struct folding *folding)
{
	free(folding->threads);
	free(folding->order);
	path_done(&folding->path);
	free(folding->nodes);
}

static int make_tree(struct folding *folding, bool one_line, struct call_tree **ret)
{
	CLEANUP(call_tree_freep) struct call_tree *tree = NULL;
	struct label_options label_options = { .lines = folding->options->lines, .one_line = one_line };
	int r;

	r = call_tree_new(folding->profile, &label_options, &tree);
	if (r < 0)
		return r;
	folding->tree = tree;
	r = fold(folding);
	if (r < 0)
		return r;
	*ret = TAKE(tree);
	return 0;
}

int fold_profile(const struct profile *profile, const struct export_options *options, bool one_line,
		 struct call_tree **ret)
{
	CLEANUP(folding_done) struct folding folding = {
		.profile = profile,
		.options = options,
		.by_process = has_several_processes(profile),
		.by_thread = options->by_thread,
	};

	return make_tree(&folding, one_line, ret);
}

int fold_stacks(const struct profile *profile, const struct export_options *options, struct call_tree **ret,
		uint32_t **ret_nodes)
{
	CLEANUP(folding_done) struct folding folding = { .profile = profile, .options = options };
	CLEANUP(freep) uint32_t *nodes = calloc(profile->n_stacks + 1, sizeof *nodes);
	int r;

	if (!nodes)
		return -ENOMEM;
	folding.node_of_stack = nodes;
	r = make_tree(&folding, false, ret);
	if (r < 0)
		return r;
	move_small(*ret, nodes, profile->n_stacks + 1);
	*ret_nodes = TAKE(nodes);
	return 0;
}
