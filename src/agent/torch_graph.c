/* SPDX-License-Identifier: MIT */
/* torch_graph.c - see torch_graph.h.
 *
 * To ask a node for its next ones may run code of the program, by the garbage collector, which may call a module: the thread's
 * tables may be others afterwards.
 */
#include "src/agent/torch_graph.h"

#include <stdlib.h>

/* ---- Hooks of nodes ---- */

static bool begin_backward(struct call *call, uint64_t now)
{
	if (call->visited_ns == now) /* of nested modules that pass all outputs on, n have 2^n ways */
		return true;
	call->visited_ns = now;
	if (call->backward_began_ns == 0) {
		call->backward_began_ns = now;
		call->backward_seq = next_seq();
		if (call->is_on_gpu && !begin_on_gpu(&call->backward_event))
			return false;
	}
	for (uint32_t i = 0; i < call->same_start.n; i++)
		if (!begin_backward(call->same_start.items[i], now))
			return false;
	return true;
}

static bool end_own_backward(struct call *call, uint64_t now)
{
	OWNED event = call->backward_event;
	OWNED arguments = NULL;
	OWNED done = NULL;

	call->backward_event = NULL;
	if (!event || !traced.cuda) {
		append_row(call->known, "backward", 8, call->backward_seq, call->backward_began_ns, now);
		return true;
	}
	arguments = gpu_arguments(call, event, call->backward_seq, call->backward_began_ns, now);
	done = arguments ? py.CallMethod(traced.cuda, traced.names.end_backward, arguments, NULL) : NULL;
	return done != NULL;
}

static bool end_backward(struct call *call, uint64_t now)
{
	if (--call->waits_for > 0)
		return true;
	call->waits_for = call->n_ends; /* for a second pass through a graph that is retained */
	if (call->backward_began_ns != 0) {
		bool is_done = end_own_backward(call, now);

		call->backward_began_ns = 0;
		if (!is_done)
			return false;
	}
	for (uint32_t i = 0; i < call->same_end.n; i++)
		if (!end_backward(call->same_end.items[i], now))
			return false;
	return true;
}

static object *start_hook(object *self, object *gradients)
{
	(void)gradients;
	return traced.is_on ? answer(begin_backward(py.CapsulePointer(self, NULL), now_ns())) : none();
}

static object *end_hook(object *self, object *const *arguments, ssize_t n)
{
	(void)arguments;
	(void)n;
	return traced.is_on ? answer(end_backward(py.CapsulePointer(self, NULL), now_ns())) : none();
}

static struct method start_method = { "begin_backward", start_hook, METHOD_ONE, NULL };
static struct method end_method = { "end_backward", end_hook, METHOD_FAST, NULL };

static void end_hooks(object *capsule)
{
	struct call *call = py.CapsulePointer(capsule, NULL);

	call->capsule = NULL;
	call_drop(call);
}

/* A new reference. All hooks of a call share one capsule. */
static object *make_hook(struct call *call, struct method *method)
{
	OWNED capsule = call->capsule ? keep(call->capsule) : py.CapsuleNew(call, NULL, end_hooks);

	if (!capsule)
		return NULL;
	if (!call->capsule) {
		(void)call_keep(call);
		call->capsule = capsule;
	}
	return py.Callable(method, capsule, NULL);
}

/*
 * torch's C++ code calls Function._register_hook(hooks, hook) in Python for each hook of a node, which takes longer than the
 * hook itself: it makes a handle, by which the hook can be removed. Hooks of a node end with the node, so ours need none.
 * The hooks may become a part of a handle of somebody else's hook, which refers to them weakly: a dict cannot be referred to
 * so, an OrderedDict can. Its keys are numbers of handles, and our hooks themselves.
 * Source: torch 1.13 and 2.14, torch/csrc/autograd/python_cpp_function.cpp, registerFunctionHook().
 */
static __thread const object *registering; /* our hook that this thread registers */

static object *register_own(object *hooks, object *hook)
{
	OWNED own_hooks = hooks == py.none ? py.Call(traced.ordered_dict, NULL) : keep(hooks);

	if (!own_hooks || py.SetItem(own_hooks, hook, hook) < 0)
		return NULL;
	return py.TuplePack(2, own_hooks, py.none);
}

static object *register_hook(object *others, object *const *arguments, ssize_t n)
{
	if (n == 2 && arguments[1] == registering)
		return register_own(arguments[0], arguments[1]);
	return py.Call(others, n > 0 ? arguments[0] : NULL, n > 1 ? arguments[1] : NULL, NULL);
}

static struct method register_method = { "_register_hook", register_hook, METHOD_FAST, NULL };

object *make_registrar(object *self, object *others)
{
	(void)self;
	return py.Callable(&register_method, others, NULL);
}

static bool register_by(object *node, object *name, object *hook)
{
	object *done;

	registering = hook;
	done = py.CallMethod(node, name, hook, NULL);
	registering = NULL;
	forget(&done);
	return done != NULL;
}

/* A hook before the node. Before torch 2.0 it takes one only from a tensor, which is one of ours here: the program's keeps
 * none. */
bool hook_before(struct thread *thread, object *node, struct call *call)
{
	OWNED hook = make_hook(call, &start_method);
	OWNED hooks = NULL;
	OWNED done = NULL;

	if (!hook)
		return false;
	if (traced.dummy == py.none)
		return register_by(node, traced.names.register_prehook, hook);
	if (!thread->dummy)
		thread->dummy = py.Call(traced.dummy, NULL);
	hooks = thread->dummy ? py.DictNew() : NULL;
	if (!hooks || py.DictSet(hooks, traced.names.zero, hook) < 0 ||
	    py.SetAttribute(thread->dummy, traced.names.backward_hooks, hooks) < 0)
		return false;
	done = py.CallMethod(node, traced.names.register_hook_dict, thread->dummy, NULL);
	return done != NULL;
}

static bool hook_after(object *node, struct call *call)
{
	OWNED hook = make_hook(call, &end_method);

	return hook && register_by(node, traced.names.register_hook, hook);
}

/* ---- The walk from an output to the inputs ---- */

enum { MAX_NODES = 4096 /* that are looked at for the end of one module's backward pass */ };

/* A node's way on, a new reference: NULL with no error: there is none. */
static object *next_node(object *node, ssize_t at)
{
	OWNED nexts = py.Attribute(node, traced.names.next_functions);
	object *pair = nexts && at < py.TupleSize(nexts) ? py.TupleItem(nexts, at) : NULL;
	object *next = pair ? py.TupleItem(pair, 0) : NULL;

	return next && next != py.none ? keep(next) : NULL; /* None: that input needs no gradient */
}

/* Of a module without modules in it: its last node is where it was in an earlier call, if the nodes have its types.
 * A new reference; NULL, without an error: it is not. */
static object *find_end_again(const struct call *call, const struct objects *nodes)
{
	const struct known *known = call->known;
	object *node;

	if (!known->end_from || nodes->n != 1 || !is_of(nodes->items[0], known->end_from))
		return NULL;
	node = keep(nodes->items[0]);
	for (uint8_t i = 0; i < known->n_way && node; i++)
		replace(&node, next_node(node, known->way[i]));
	if (node && is_of(node, known->end_to))
		return node;
	forget(&node);
	return NULL;
}

/* A node, or a call that has returned, on the way from a module's output to its inputs. */
struct place {
	object *node;      /* owned */
	struct call *call; /* owned; NULL: it is the node itself */
};

struct walk {
	struct thread *thread;
	struct call *call;
	struct map seen;      /* node: its number in nodes, + 1 */
	struct objects nodes; /* that were seen; those from n_done on are still to be looked at, the last one first */
	struct step {
		uint32_t from, at; /* the number of the node that led to it, and as which of its next ones */
	} * steps;
	uint32_t n_steps, *todo, n_todo, n_allocated;
	struct place *ends, *deepest;
	uint32_t n_ends, n_deepest, ends_allocated, deepest_allocated;
	struct objects outside;
};

static void places_done(struct place *places, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		py.Forget(places[i].node);
		call_dropp(&places[i].call);
	}
	free(places);
}

static void walk_done(struct walk *walk)
{
	free(walk->seen.slots);
	objects_done(&walk->nodes);
	free(walk->steps);
	free(walk->todo);
	places_done(walk->ends, walk->n_ends);
	places_done(walk->deepest, walk->n_deepest);
	objects_done(&walk->outside);
}

static bool add_place(struct place **places, uint32_t *n, uint32_t *allocated, object *node, struct call *call)
{
	if (*n == *allocated) {
		uint32_t more = *allocated > 0 ? 2 * *allocated : 4;
		struct place *larger = realloc(*places, more * sizeof *larger);

		if (!larger)
			return false;
		*places = larger;
		*allocated = more;
	}
	(*places)[(*n)++] = (struct place){ keep(node), call ? call_keep(call) : NULL };
	return true;
}

static bool add_seen(struct walk *walk, object *node, uint32_t from, uint32_t at)
{
	uint32_t number = walk->nodes.n;

	if (number == walk->n_allocated) {
		uint32_t n = number > 0 ? 2 * number : 16;
		struct step *steps = realloc(walk->steps, n * sizeof *steps);
		uint32_t *todo = steps ? realloc(walk->todo, n * sizeof *todo) : NULL;

		walk->steps = steps ? steps : walk->steps;
		walk->todo = todo ? todo : walk->todo;
		if (!steps || !todo)
			return false;
		walk->n_allocated = n;
	}
	if (!objects_add(&walk->nodes, keep(node)) || !map_put(&walk->seen, node, (void *)(uintptr_t)(number + 1)))
		return false;
	walk->steps[number] = (struct step){ from, at };
	walk->todo[walk->n_todo++] = number;
	return true;
}

struct ways {
	bool lead_on, lead_out;
};

static bool look_at_next(struct walk *walk, object *next, uint32_t from, uint32_t at, struct ways *ways)
{
	const struct call *its, *call = walk->call;

	if (next == py.none || is_of(next, traced.accumulate))
		return true;
	its = map_get(&walk->thread->owners, next);
	if (objects_has(&call->inputs, next) || (its && its->index < call->first)) {
		ways->lead_out = true;
		return objects_add(&walk->outside, keep(next));
	}
	ways->lead_on = true;
	return map_get(&walk->seen, next) || add_seen(walk, next, from, at);
}

/* The nodes, owned, that follow a node, or the call that it is the output of, which *ret_call gets with a reference. */
static bool nexts_of(struct walk *walk, object *node, struct objects *ret, struct call **ret_call)
{
	struct call *owner = map_get(&walk->thread->owners, node), *call = walk->call;
	const struct objects *entry = owner && owner != call && owner->index >= call->first
					      ? entry_of(walk->thread, owner->index)
					      : NULL;
	object *nexts;
	bool is_whole = true;

	if (entry && entry->allocated > 0) { /* it has been put */
		*ret_call = call_keep(owner);
		for (uint32_t i = 0; i < entry->n && is_whole; i++)
			is_whole = objects_add(ret, keep(entry->items[i]));
		return is_whole;
	}
	nexts = py.Attribute(node, traced.names.next_functions);
	for (ssize_t i = 0, n = nexts ? py.TupleSize(nexts) : 0; i < n && is_whole; i++) {
		object *next = py.TupleItem(py.TupleItem(nexts, i), 0);

		is_whole = next && objects_add(ret, keep(next));
	}
	forget(&nexts);
	return is_whole && nexts;
}

static bool look_at(struct walk *walk, uint32_t number)
{
	object *node = walk->nodes.items[number];
	struct objects nexts = { 0 };
	struct ways ways = { false, false };
	OWNED_CALL call = NULL;
	bool is_whole = nexts_of(walk, node, &nexts, &call);

	for (uint32_t i = 0; i < nexts.n && is_whole; i++)
		is_whole = look_at_next(walk, nexts.items[i], number, i, &ways);
	objects_done(&nexts);
	if (is_whole && ways.lead_out)
		is_whole = add_place(&walk->ends, &walk->n_ends, &walk->ends_allocated, node, call);
	else if (is_whole && !ways.lead_on)
		is_whole = add_place(&walk->deepest, &walk->n_deepest, &walk->deepest_allocated, node, call);
	return is_whole;
}

/* The next call of the module finds its end at once, if it is a node that a short way leads to. */
static void learn_end(const struct walk *walk, const struct objects *outputs, const struct place *end)
{
	struct known *known = walk->call->known;
	uint32_t number = (uint32_t)(uintptr_t)map_get(&walk->seen, end->node) - 1;
	uint8_t way[MAX_WAY], n = 0;

	if (outputs->n != 1 || end->call)
		return;
	while (number != 0) {
		if (n == MAX_WAY || walk->steps[number].at > UINT8_MAX)
			return;
		way[n++] = (uint8_t)walk->steps[number].at;
		number = walk->steps[number].from;
	}
	for (uint8_t i = 0; i < n; i++)
		known->way[i] = way[n - 1 - i];
	known->n_way = n;
	replace(&known->end_from, py.Type(outputs->items[0]));
	replace(&known->end_to, py.Type(end->node));
}

static bool hook_end(struct call *call, const struct place *end)
{
	if (!end->call && !hook_after(end->node, call))
		return false;
	if (end->call && end->call->n_ends == 0)
		return true;
	if (end->call && !calls_add(&end->call->same_end, call))
		return false;
	call->n_ends++;
	return true;
}

/* The nodes, or calls of modules in it, that lead to its inputs; if none does, those that lead nowhere. */
static bool find_ends(struct thread *thread, struct call *call, const struct objects *outputs)
{
	__attribute__((cleanup(walk_done))) struct walk walk = { .thread = thread, .call = call };
	const struct place *ends;
	uint32_t n;

	for (uint32_t i = 0; i < outputs->n; i++)
		if (!add_seen(&walk, outputs->items[i], 0, 0))
			return false;
	for (int i = 0; i < MAX_NODES && walk.n_todo > 0; i++)
		if (!look_at(&walk, walk.todo[--walk.n_todo]))
			return false;
	/* An empty list has been put, too. */
	if (walk.outside.n == 0)
		walk.outside = (struct objects){ .items = calloc(1, sizeof(object *)), .allocated = 1 };
	if (!walk.outside.items || !put_entry(thread, call->index, &walk.outside))
		return false;
	ends = walk.n_ends > 0 ? walk.ends : walk.deepest;
	n = walk.n_ends > 0 ? walk.n_ends : walk.n_deepest;
	if (call->first == call->index && n == 1)
		learn_end(&walk, outputs, &ends[0]);
	for (uint32_t i = 0; i < n; i++)
		if (!hook_end(call, &ends[i]))
			return false;
	return true;
}

bool hook_ends(struct thread *thread, struct call *call, const struct objects *nodes)
{
	OWNED end = call->first == call->index ? find_end_again(call, nodes) : NULL;

	if (!end)
		return !py.Error() && find_ends(thread, call, nodes);
	if (call->inputs.n == 0)
		call->inputs = (struct objects){ .items = calloc(1, sizeof(object *)), .allocated = 1 };
	call->n_ends = 1;
	return call->inputs.items && put_entry(thread, call->index, &call->inputs) && hook_after(end, call);
}
