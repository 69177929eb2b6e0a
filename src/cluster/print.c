/* SPDX-License-Identifier: MIT */
/* print.c - a job as text: what is missing, who is odd, and where all are.
 *
 * What stands out comes first: ranks that could not be read, then the smallest classes, and in the tree the smallest
 * branches. Texts are foreign: terminal controls are removed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"
#include "src/cluster/private.h"
#include "src/columns/columns.h"

enum { MAX_NAMED = 4, FIRST_CLASSES = 20, LAST_CLASSES = 4, MAX_INDENT = 60, INDENT = 2 };

struct page {
	FILE *out;
	const struct cluster *cluster;
	const struct cluster_tree *tree;
	const char *head, *plain; /* terminal sequences */
	bool whole;               /* however many classes there are */
};

static void put(const struct page *page, const char *text)
{
	cell_put_all(page->out, text);
}

static void put_head(const struct page *page, const char *text)
{
	fputs(page->head, page->out);
	put(page, text);
	fputs(page->plain, page->out);
}

static void put_spaces(const struct page *page, unsigned n)
{
	fprintf(page->out, "%*s", (int)MIN(n, (unsigned)MAX_INDENT), "");
}

/* "rank 3 (pid 812, host b)" */
static void put_whose(const struct page *page, const struct cluster_rank *rank)
{
	if (rank->identity.rank >= 0)
		fprintf(page->out, "rank %jd (pid %d, ", (intmax_t)rank->identity.rank, (int)rank->pid);
	else
		fprintf(page->out, "pid %d (", (int)rank->pid);
	fputs("host ", page->out);
	put(page, cluster_host_label(&page->cluster->hosts[rank->host]));
	fputc(')', page->out);
}

/* ---- What is missing ---- */

/* What is to be said about a host, "" nothing. */
static void describe_host(const struct cluster_host *host, size_t n_ranks, char *to, size_t n_bytes)
{
	to[0] = '\0';
	if (host->problem)
		snprintf(to, n_bytes, "%s", host->problem);
	else if (host->n_hidden > 0)
		snprintf(to, n_bytes,
			 "%zu Python process%s may not be read, and may be ranks: run probing there as root",
			 host->n_hidden, host->n_hidden > 1 ? "es" : "");
	else if (n_ranks == 0)
		snprintf(to, n_bytes, "no rank was found there");
}

static int put_host_problems(const struct page *page)
{
	const struct cluster *cluster = page->cluster;
	CLEANUP(freep) size_t *n_ranks = calloc(cluster->n_hosts + 1, sizeof *n_ranks);

	if (!n_ranks)
		return -ENOMEM;
	for (size_t i = 0; i < cluster->n_ranks; i++)
		n_ranks[cluster->ranks[i].host]++;
	for (size_t i = 0; i < cluster->n_hosts; i++) {
		char text[CLUSTER_MAX_TEXT];

		describe_host(&cluster->hosts[i], n_ranks[i], text, sizeof text);
		if (!text[0])
			continue;
		fputs("host ", page->out);
		put_head(page, cluster_host_label(&cluster->hosts[i]));
		fputs(": ", page->out);
		put(page, text);
		fputc('\n', page->out);
	}
	return 0;
}

static void put_rank_problems(const struct page *page, const char *job)
{
	for (size_t i = 0; i < page->cluster->n_ranks; i++) {
		const struct cluster_rank *rank = &page->cluster->ranks[i];

		if (rank->status == RANK_READ || strcmp(rank->identity.job, job) != 0)
			continue;
		put_whose(page, rank);
		fprintf(page->out, ": %s: ", rank_status_name(rank->status));
		put(page, rank->problem ? rank->problem : "it does not say why");
		fputc('\n', page->out);
	}
}

static int put_missing(const struct page *page, const char *job)
{
	CLEANUP(freep) char *missing = NULL;
	uint64_t n;
	int r = cluster_missing(page->cluster, job, &missing, &n);

	if (r < 0 || !missing)
		return r;
	put_head(page, missing);
	fprintf(page->out, ": missing: the hosts that answered have no process of %s\n", n > 1 ? "them" : "it");
	return 0;
}

/* ---- Classes ---- */

/* The innermost frame of one's own code, the call there, and what the thread waits for. */
static void put_place(const struct page *page, const struct tree_stack *stack)
{
	const struct cluster_rank *rank = &page->cluster->ranks[stack->rank];
	const struct cluster_thread *thread = &rank->threads[stack->thread];
	const struct cluster_frame *call;
	struct stack_place place;

	tree_place(page->tree, stack, &place);
	call = place.collective                            ? place.collective
	       : place.python && place.python != place.own ? place.python
	       : place.builtin                             ? place.builtin
							   : place.innermost;
	if (place.own)
		frame_put(page->out, place.own);
	if (call && call != place.own) {
		fputs(place.own ? ", in " : "", page->out);
		frame_put(page->out, call);
	}
	if (!place.innermost)
		fputs("no frames", page->out);
	if (thread->state == 'T')
		fputs("; stopped by a signal", page->out);
	if (thread->is_approximate)
		fputs("; approximate: some Python frames may be missing", page->out);
	if (thread->wait) {
		fputs("; waits: ", page->out);
		put(page, thread->wait);
	}
}

static void put_members(const struct page *page, const struct tree_class *class)
{
	for (uint32_t i = 0; i < class->n_stacks; i++) {
		const struct tree_stack *stack = &page->tree->stacks[page->tree->by_class[class->start + i]];
		const struct cluster_rank *rank = &page->cluster->ranks[stack->rank];
		pid_t tid = rank->threads[stack->thread].tid;

		fprintf(page->out, "%spid %d", i > 0 ? ", " : "  (", (int)rank->pid);
		if (tid > 0 && tid != rank->pid)
			fprintf(page->out, " thread %d", (int)tid);
		fputs(" on ", page->out);
		put(page, cluster_host_label(&page->cluster->hosts[rank->host]));
	}
	fputc(')', page->out);
}

static int put_class(const struct page *page, uint32_t index)
{
	const struct tree_class *class = &page->tree->classes[index];
	CLEANUP(freep) char *ranks = tree_class_ranks(page->tree, index);

	if (!ranks)
		return -ENOMEM;
	fputs("  ", page->out);
	put_head(page, ranks);
	if (class->n_stacks > 1)
		fprintf(page->out, ": %" PRIu32 " alike", class->n_stacks);
	if (class->n_stacks <= MAX_NAMED)
		put_members(page, class);
	fputs("\n      ", page->out);
	put_place(page, &page->tree->stacks[class->first]);
	fputc('\n', page->out);
	return 0;
}

/* Of very many classes, as of a job that runs, the smallest and the largest. */
static bool is_shown(const struct page *page, uint32_t index)
{
	size_t n = page->tree->n_classes;

	return page->whole || n <= FIRST_CLASSES + LAST_CLASSES || index < FIRST_CLASSES || index >= n - LAST_CLASSES;
}

static int put_classes(const struct page *page)
{
	size_t n = page->tree->n_classes;
	int r = 0;

	fprintf(page->out, "\n%zu %s of equal stacks%s:\n", n, n == 1 ? "class" : "classes",
		n > 1 ? ", outliers first" : "");
	for (uint32_t i = 0; r >= 0 && i < n; i++)
		if (is_shown(page, i))
			r = put_class(page, i);
		else if (i == FIRST_CLASSES)
			fprintf(page->out, "  %zu more classes; --all-frames shows them\n",
				n - FIRST_CLASSES - LAST_CLASSES);
	return r;
}

/* ---- Who is waited for ---- */

static void put_call(const struct page *page, const struct stack_place *place)
{
	put(page, place->collective->function);
	if (!place->own)
		return;
	fputs(", called by ", page->out);
	frame_put(page->out, place->own);
}

static bool is_same_call(const struct stack_place *a, const struct stack_place *b)
{
	return a->own == b->own && a->collective && strcmp(a->collective->function, b->collective->function) == 0;
}

static int put_one_elsewhere(const struct page *page, uint32_t index, const struct stack_place *call)
{
	const struct cluster_tree *tree = page->tree;
	const struct tree_stack *first = &tree->stacks[tree->classes[index].first];
	CLEANUP(freep) char *ranks = NULL;
	struct stack_place place;
	bool is_there;

	tree_place(tree, first, &place);
	is_there = is_same_call(&place, call);
	if (is_there && tree->cluster->ranks[first->rank].threads[first->thread].state != 'T')
		return 0;
	ranks = tree_class_ranks(tree, index);
	if (!ranks)
		return -ENOMEM;
	fputs("  ", page->out);
	put_head(page, ranks);
	fputs(is_there           ? ": there, too: "
	      : place.collective ? ": in another one: "
				 : ": not there, but in ",
	      page->out);
	put_place(page, first);
	fputc('\n', page->out);
	return 0;
}

/*
 * Most ranks in one collective operation: it ends when the others come, so they are at fault, or slow. Says nothing of
 * other jobs, and with all threads.
 */
static int put_verdict(const struct page *page)
{
	const struct cluster_tree *tree = page->tree;
	size_t n = tree->n_classes;
	const struct tree_class *most = n > 0 ? &tree->classes[n - 1] : NULL;
	CLEANUP(freep) char *ranks = NULL;
	struct stack_place call;
	int r = 0;

	if (!most || most->n_stacks < 2 || 2 * (uint64_t)most->n_stacks <= tree->n_stacks)
		return 0;
	tree_place(tree, &tree->stacks[most->first], &call);
	if (!call.collective)
		return 0;
	ranks = tree_class_ranks(tree, (uint32_t)n - 1);
	if (!ranks)
		return -ENOMEM;
	fputc('\n', page->out);
	put_head(page, ranks);
	fputs(most->n_stacks == 2 ? " are both in " : " are in ", page->out);
	put_call(page, &call);
	fputs(n == 1 ? "; no rank that was read is elsewhere\n" : "\n", page->out);
	for (uint32_t i = 0; r >= 0 && i + 1 < n; i++)
		if (is_shown(page, i))
			r = put_one_elsewhere(page, i, &call);
	return r;
}

/* ---- The tree ---- */

static void put_node(const struct page *page, uint32_t at, unsigned indent)
{
	const struct tree_node *node = &page->tree->nodes[at];

	put_spaces(page, indent);
	frame_put(page->out, &page->cluster->frames[node->frame]);
	if (node->most > 1 && node->least == node->most)
		fprintf(page->out, "  x %" PRIu32, node->most);
	else if (node->most > 1)
		fprintf(page->out, "  x %" PRIu32 "-%" PRIu32, node->least, node->most);
	fputc('\n', page->out);
}

static int put_branch_head(const struct page *page, uint32_t at, unsigned indent)
{
	CLEANUP(freep) char *ranks = tree_node_ranks(page->tree, at);

	if (!ranks)
		return -ENOMEM;
	put_spaces(page, indent);
	put_head(page, ranks);
	fputs(":\n", page->out);
	return 0;
}

/* Those that end where others go on. */
static uint32_t count_ends(const struct cluster_tree *tree, uint32_t at)
{
	uint32_t n = tree->nodes[at].n_stacks;

	for (uint32_t child = tree->nodes[at].child; child != 0; child = tree->nodes[child].sibling)
		n -= tree->nodes[child].n_stacks;
	return n;
}

/* A branch that is still to be printed. */
struct branch {
	uint32_t node, indent;
};

/* All branches below a node, so that the first one is on top of the stack. */
static void push_children(const struct cluster_tree *tree, uint32_t at, uint32_t indent, struct branch *branches,
			  size_t *n)
{
	size_t first = *n;

	for (uint32_t child = tree->nodes[at].child; child != 0; child = tree->nodes[child].sibling)
		branches[(*n)++] = (struct branch){ child, indent };
	for (size_t low = first, high = *n; low + 1 < high; low++, high--) {
		struct branch moved = branches[low];

		branches[low] = branches[high - 1];
		branches[high - 1] = moved;
	}
}

/* Deeper branches than the indent shows stay at the same column; their heads tell them apart. */
static int put_tree(const struct page *page)
{
	const struct cluster_tree *tree = page->tree;
	CLEANUP(freep) struct branch *branches = calloc(tree->n_nodes, sizeof *branches);
	uint32_t at = 0, indent = 0;
	size_t n = 0;
	int r;

	if (!branches)
		return -ENOMEM;
	for (;;) {
		uint32_t only = tree->nodes[at].child, n_ends = count_ends(tree, at);

		if (only != 0 && tree->nodes[only].sibling == 0 && n_ends == 0) {
			put_node(page, only, indent);
			at = only;
			continue;
		}
		if (n_ends > 0 && only != 0) {
			put_spaces(page, indent);
			fprintf(page->out, "(%" PRIu32 " %s here)\n", n_ends, n_ends > 1 ? "end" : "ends");
		}
		push_children(tree, at, indent, branches, &n);
		if (n == 0)
			return 0;
		at = branches[--n].node;
		indent = branches[n].indent;
		r = put_branch_head(page, at, indent);
		if (r < 0)
			return r;
		indent += INDENT;
		put_node(page, at, indent);
	}
}

/* ---- Jobs ---- */

static void put_title(const struct page *page, const char *job)
{
	size_t n_read = 0, n = 0;
	int64_t world_size = -1;

	for (size_t i = 0; i < page->cluster->n_ranks; i++) {
		const struct cluster_rank *rank = &page->cluster->ranks[i];

		if (strcmp(rank->identity.job, job) != 0)
			continue;
		n++;
		n_read += rank->status == RANK_READ;
		world_size = MAX(world_size, rank->identity.world_size);
	}
	fputs(page->head, page->out);
	fputs("Job", page->out);
	if (job[0]) {
		fputc(' ', page->out);
		put(page, job);
	}
	fprintf(page->out, ": %zu of %jd %s read%s\n", n_read, world_size > 0 ? (intmax_t)world_size : (intmax_t)n,
		world_size > 0 ? "ranks" : "processes", page->plain);
}

static int put_job(struct page *page, const struct tree_options *options, bool expects_all)
{
	struct cluster_tree tree;
	int r;

	put_title(page, options->job);
	put_rank_problems(page, options->job);
	r = expects_all ? put_missing(page, options->job) : 0;
	if (r >= 0)
		r = cluster_merge(page->cluster, options, &tree);
	if (r < 0)
		return r;
	page->tree = &tree;
	if (tree.n_stacks > 0) {
		if (!options->all_threads)
			r = put_verdict(page);
		if (r >= 0)
			r = cluster_put_collectives(page->cluster, options->job, page->out);
		if (r >= 0)
			r = put_classes(page);
		fputs("\nAll of them, outermost frame first:\n\n", page->out);
		if (r >= 0)
			r = put_tree(page);
	}
	page->tree = NULL;
	cluster_tree_done(&tree);
	return r;
}

static bool has_job(const struct cluster *cluster, const char *job)
{
	for (size_t i = 0; i < cluster->n_ranks; i++)
		if (strcmp(cluster->ranks[i].identity.job, job) == 0)
			return true;
	return false;
}

int cluster_print(const struct cluster *cluster, const struct tree_options *options, bool colour, bool expects_all,
		  FILE *out)
{
	struct page page = { out, cluster, NULL, colour ? "\033[1m" : "", colour ? "\033[0m" : "", options->whole };
	struct tree_options of_job = *options;
	CLEANUP(freep) const char *const *jobs = NULL;
	size_t n_jobs;
	int r = cluster_jobs(cluster, &jobs, &n_jobs);

	if (r < 0)
		return r;
	r = put_host_problems(&page);
	if (r >= 0 && options->job && has_job(cluster, options->job))
		r = put_job(&page, options, expects_all);
	for (size_t i = 0; r >= 0 && !options->job && i < n_jobs; i++) {
		of_job.job = jobs[i];
		fputs(i > 0 ? "\n" : "", out);
		r = put_job(&page, &of_job, expects_all);
	}
	if (r >= 0 && !options->job && n_jobs == CLUSTER_MAX_JOBS)
		fprintf(out, "\nThese are the first %d jobs; --job NAME shows one\n", CLUSTER_MAX_JOBS);
	return r < 0 ? r : ferror(out) ? -EIO : 0;
}
