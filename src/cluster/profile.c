/* SPDX-License-Identifier: MIT */
/* profile.c - the tree as a profile: a stack of a rank is a sample, and the first frame of a branch names its ranks. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/cluster/private.h"
#include "src/profile/profile.h"

static int add_text(struct profile *profile, const char *text, const char **ret)
{
	return text ? profile_add_string(profile, text, strlen(text), ret) : 0;
}

/* Whether it has siblings: then its ranks are not those of its caller. */
static bool is_branch(const struct cluster_tree *tree, uint32_t at)
{
	return tree->nodes[at].n_stacks != tree->nodes[tree->nodes[at].parent].n_stacks || tree->nodes[at].parent == 0;
}

static int name_node(struct profile *profile, const struct cluster_tree *tree, uint32_t at, const char **ret)
{
	const struct cluster_frame *frame = &tree->cluster->frames[tree->nodes[at].frame];
	CLEANUP(freep) char *ranks = NULL, *text = NULL;

	if (!is_branch(tree, at))
		return add_text(profile, frame->function, ret);
	ranks = tree_node_ranks(tree, at);
	if (!ranks)
		return -ENOMEM;
	if (asprintf(&text, "%s [%s]", frame->function, ranks) < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return add_text(profile, text, ret);
}

/* A frame per node: the same frame of two branches has two names. */
static int add_frame(struct profile *profile, const struct cluster_tree *tree, uint32_t at)
{
	const struct cluster_frame *from = &tree->cluster->frames[tree->nodes[at].frame];
	struct profile_frame *to = &profile->frames[at - 1];
	int r;

	*to = (struct profile_frame){ .kind = from->kind,
				      .role = from->is_builtin ? ROLE_BUILTIN : ROLE_NONE,
				      .line = from->line,
				      .first_line = from->line,
				      .inlined_into = -1 };
	profile->n_frames = at;
	to->name = "";
	r = name_node(profile, tree, at, &to->name);
	if (r >= 0)
		r = add_text(profile, from->file, &to->file);
	if (r >= 0)
		r = add_text(profile, from->module, &to->module);
	profile->stacks[at - 1] = (struct profile_stack){ .parent = (int32_t)tree->nodes[at].parent - 1,
							  .frame = (int32_t)at - 1 };
	profile->n_stacks = at;
	return r;
}

static int add_total(struct profile *profile, const struct cluster_tree *tree, size_t i)
{
	const struct tree_stack *stack = &tree->stacks[i];
	const struct cluster_rank *rank = &tree->cluster->ranks[stack->rank];
	const struct cluster_thread *thread = &rank->threads[stack->thread];
	struct profile_thread *row = &profile->threads[i];
	char name[64];
	int r;

	snprintf(name, sizeof name, rank->identity.rank >= 0 ? "rank %jd" : "pid %jd",
		 (intmax_t)(rank->identity.rank >= 0 ? rank->identity.rank : rank->pid));
	/* PIDs of two hosts may be equal: the row's number is unique. */
	*row = (struct profile_thread){
		.pid = (int32_t)stack->rank + 1, .tid = (int32_t)i + 1, .name = "", .process = ""
	};
	profile->n_threads = i + 1;
	r = add_text(profile, name, &row->process);
	if (r >= 0)
		r = add_text(profile, thread->name ? thread->name : "", &row->name);
	profile->totals[i] = (struct profile_total){
		.pid = row->pid, .tid = row->tid, .stack = (int32_t)stack->leaf - 1, .samples = 1, .weight = 1
	};
	profile->n_totals = i + 1;
	return r;
}

int cluster_profile(const struct cluster_tree *tree, struct profile **ret)
{
	CLEANUP(profile_freep) struct profile *profile = NULL;
	int r = profile_new(&profile);

	if (r < 0)
		return r;
	profile->frames = calloc(tree->n_nodes, sizeof *profile->frames);
	profile->stacks = calloc(tree->n_nodes, sizeof *profile->stacks);
	profile->totals = calloc(tree->n_stacks + 1, sizeof *profile->totals);
	profile->threads = calloc(tree->n_stacks + 1, sizeof *profile->threads);
	if (!profile->frames || !profile->stacks || !profile->totals || !profile->threads)
		return -ENOMEM;
	for (uint32_t i = 1; r >= 0 && i < tree->n_nodes; i++)
		r = add_frame(profile, tree, i);
	for (size_t i = 0; r >= 0 && i < tree->n_stacks; i++)
		r = add_total(profile, tree, i);
	profile->unit = "stacks";
	if (r >= 0)
		r = profile_label_files(profile);
	if (r < 0)
		return r;
	*ret = TAKE(profile);
	return 0;
}
