/* SPDX-License-Identifier: MIT */
/* torch_graph.h - hooks of the nodes of autograd's graph, by which a module's backward pass is timed. Private to torch*.c. */
#ifndef PROBING_AGENT_TORCH_GRAPH_H
#define PROBING_AGENT_TORCH_GRAPH_H

#include "src/agent/torch_calls.h"

/*
 * hook_before - have the backward pass of a call, and of those of its same_start, begin with a node of its output.
 * hook_ends - find the nodes, or calls of modules in it, that lead from its output to its inputs, and have it end with those.
 * False: an exception, or no memory.
 */
bool hook_before(struct thread *thread, object *node, struct call *call);
bool hook_ends(struct thread *thread, struct call *call, const struct objects *outputs);

/* make_registrar - the builtin registrar() of torch.h. */
object *make_registrar(object *self, object *others);

#endif
