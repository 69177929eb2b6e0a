/* SPDX-License-Identifier: MIT */
/* torch_forward.c - see torch_forward.h.
 *
 * Whatever is called here may run code of the program, which may call a module: after each call into the interpreter, the
 * thread's tables may be others.
 */
#include "src/agent/torch_forward.h"

#include <stdlib.h>

#include "src/agent/torch_graph.h"

enum { MAX_OWNERS = 1 << 14 }; /* of one outermost pass, which may last as long as the program */

/* A tensor's node, a new reference, or None. The class of a tensor may answer itself (__torch_function__): where it refuses,
 * there is none. NULL: an exception. */
static object *node_of(object *tensor)
{
	object *node = py.Attribute(tensor, traced.names.grad_fn);

	if (node || is_of(tensor, traced.tensor) || !py.IsError(*py.exception))
		return node;
	py.ErrorClear();
	return none();
}

static bool add_output(struct objects *nodes, const struct call *call, object *one)
{
	object *node;

	if (!is_kind_of(one, traced.tensor))
		return true;
	node = node_of(one);
	if (!node)
		return false;
	if (node != py.none && !objects_has(nodes, node) && !objects_has(&call->inputs, node))
		return objects_add(nodes, node);
	py.Forget(node);
	return true;
}

/* A new reference to the output's parts: a tuple or list; NULL: it is none, or an exception. */
static object *parts_of(object *output)
{
	if (is_kind_of(output, py.tuple_type) || is_kind_of(output, py.list_type))
		return keep(output);
	return is_kind_of(output, py.dict_type) ? py.DictValues(output) : NULL;
}

static bool nodes_of(const struct call *call, object *output, struct objects *ret)
{
	bool is_one = is_kind_of(output, traced.tensor), is_whole = true;
	OWNED parts = is_one ? NULL : parts_of(output);
	bool is_tuple = parts && is_kind_of(parts, py.tuple_type);

	if (is_one)
		return add_output(ret, call, output);
	for (ssize_t i = 0; parts && is_whole && i < (is_tuple ? py.TupleSize(parts) : py.ListSize(parts)); i++) {
		OWNED part = keep(is_tuple ? py.TupleItem(parts, i) : py.ListItem(parts, i));

		is_whole = part && add_output(ret, call, part);
	}
	return is_whole && !py.Error();
}

/* Which outputs it has made, and not passed on: their nodes are the start of its backward pass. *ret: there is one. */
static bool hook_starts(struct thread *thread, struct call *call, const struct objects *nodes, bool *ret)
{
	*ret = false;
	for (uint32_t i = 0; i < nodes->n; i++) {
		object *node = nodes->items[i];
		struct call *owner = map_get(&thread->owners, node);

		if (!owner) {
			if (thread->owners.n >= MAX_OWNERS)
				clear_graph(thread);
			if (!map_put(&thread->owners, node, call))
				return false;
			py.Keep(node);
			(void)call_keep(call);
			if (!hook_before(thread, node, call))
				return false;
			*ret = true;
		} else if (owner->index >= call->first) {
			if (!calls_add(&owner->same_start, call))
				return false;
			*ret = true;
		}
	}
	return true;
}

/* Hooks for the backward pass of a call that has returned. */
static bool watch(struct thread *thread, struct call *call, object *output)
{
	struct objects nodes = { 0 };
	bool is_done = nodes_of(call, output, &nodes), begins = false;

	if (is_done && nodes.n > 0) {
		call->index = thread->n_calls++;
		is_done = hook_starts(thread, call, &nodes, &begins);
		if (is_done && begins)
			is_done = hook_ends(thread, call, &nodes);
		call->waits_for = call->n_ends;
	}
	objects_done(&nodes);
	objects_done(&call->inputs);
	return is_done;
}

static bool take_inputs(struct call *call, object *inputs)
{
	ssize_t n = is_kind_of(inputs, py.tuple_type) ? py.TupleSize(inputs) : 0;

	for (ssize_t i = 0; i < n; i++) {
		object *one = py.TupleItem(inputs, i), *node;

		if (!is_kind_of(one, traced.tensor))
			continue;
		node = node_of(one);
		if (!node || !objects_add(&call->inputs, node))
			return false;
	}
	call->is_watched = true;
	return true;
}

/* 0 to 1, as _hash() of _torch.py: the finalizer of splitmix64 (Steele, Lea, Flood 2014). */
static double hash(uint64_t number)
{
	number = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
	number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
	return (double)(number ^ number >> 31) / 18446744073709551616.0;
}

static bool is_left_out(const struct known *known)
{
	uint64_t step = traced.step.kind == RING_IS_INTEGER ? (uint64_t)traced.step.integer : 0;

	return traced.layer_rate < 1 && hash(known->number ^ step << 20) >= traced.layer_rate;
}

/* 1: the pass that begins is traced; 0; negative: an exception. */
static int takes(struct thread *thread, const struct known *known, bool has_grad)
{
	int is_alone = thread->stack.n > 0 && known->is_root
			       ? truth(py.CallMethod(traced.trace, traced.names.is_outermost, NULL))
			       : 0;
	int is_taken = 1;
	object *tracing;

	if (is_alone < 0)
		return is_alone;
	if (is_alone > 0 || thread->stack.n == 0) {
		clear(thread); /* exceptions have left those on the stack */
		is_taken = truth(
			py.CallMethod(traced.trace, traced.names.begin_outermost, has_grad ? py.yes : py.none, NULL));
	}
	if (is_taken <= 0)
		return is_taken;
	tracing = py.Call(traced.is_tracing, NULL);
	if (!tracing)
		return -1;
	is_taken = tracing == py.none && !is_left_out(known);
	py.Forget(tracing);
	return is_taken;
}

static struct call *new_call(const struct thread *thread, struct known *known, const object *module)
{
	struct call *call = calloc(1, sizeof *call);

	if (!call)
		return NULL;
	*call = (struct call){ .n_refs = 1,
			       .known = known,
			       .module = module,
			       .first = thread->n_calls,
			       .index = UINT32_MAX,
			       .seq = next_seq() };
	__atomic_add_fetch(&known->n_refs, 1, __ATOMIC_RELAXED);
	return call;
}

static bool begin_pass(struct thread *thread, struct known *known, object *module, object *inputs)
{
	int has_grad = truth(py.Call(traced.is_grad_enabled, NULL));
	int is_taken = has_grad < 0 ? has_grad : takes(thread, known, has_grad);
	OWNED_CALL call = is_taken > 0 ? new_call(thread, known, module) : NULL;

	if (is_taken <= 0)
		return is_taken == 0;
	if (!call || (has_grad && traced.has_backward && !take_inputs(call, inputs)) ||
	    !calls_add(&thread->stack, call))
		return false;
	if (!begin_on_gpu(&call->event))
		return false;
	call->began_ns = now_ns();
	return true;
}

static struct known *identify(object *module)
{
	struct known *known = find_known(module);
	OWNED named = known ? NULL : py.CallMethod(traced.trace, traced.names.identify, module, NULL);

	return named && named != py.none ? find_known(module) : known;
}

object *enter(object *self, object *const *arguments, ssize_t n)
{
	struct thread *thread;
	struct known *known;
	bool is_done;

	(void)self;
	if (!traced.is_on || n < 2)
		return none();
	known = identify(arguments[0]);
	if (!known)
		return answer(!py.Error());
	thread = get_thread();
	is_done = thread && begin_pass(thread, known, arguments[0], arguments[1]);
	known_drop(known);
	return answer(is_done);
}

/* The call of a module, with the stack's reference: exceptions have left those above it. NULL: it is not there. */
static struct call *take_call(struct thread *thread, const object *module)
{
	struct calls *stack = &thread->stack;
	uint32_t i = stack->n;
	struct call *found;

	while (i > 0 && stack->items[i - 1]->module != module)
		i--;
	if (i == 0)
		return NULL;
	while (stack->n > i)
		call_drop(stack->items[--stack->n]);
	if (stack->n < i) /* another thread has ended tracing meanwhile */
		return NULL;
	found = stack->items[--stack->n];
	found->module = NULL;
	return found;
}

/* Whether the module has run on the GPU: 1, 0, negative: an exception. */
static int end_on_gpu(struct call *call, uint64_t now, object *output)
{
	OWNED event = call->event;
	OWNED arguments = event && traced.cuda ? gpu_arguments(call, event, call->seq, call->began_ns, now) : NULL;

	call->event = NULL;
	if (!event || !traced.cuda)
		return 0;
	return arguments ? truth(py.CallMethod(traced.cuda, traced.names.end, arguments, output, NULL)) : -1;
}

static bool end_pass(struct thread *thread, struct call *call, object *output, uint64_t now)
{
	int is_on_gpu = end_on_gpu(call, now, output);

	if (is_on_gpu < 0)
		return false;
	call->is_on_gpu = is_on_gpu > 0;
	if (!call->is_on_gpu)
		append_row(call->known, "forward", 7, call->seq, call->began_ns, now);
	if (call->is_watched && !watch(thread, call, output))
		return false;
	if (thread->stack.n > 0)
		return true;
	clear(thread);
	switch (truth(py.Call(traced.is_grad_enabled, NULL))) {
	case 0: {
		OWNED done = py.CallMethod(traced.trace, traced.names.end_inference, NULL);

		return done != NULL;
	}
	case 1:
		return true;
	default:
		return false;
	}
}

object *leave(object *self, object *const *arguments, ssize_t n)
{
	uint64_t now = now_ns();
	OWNED_CALL call = NULL;

	(void)self;
	if (!traced.is_on || n < 3 || !own)
		return none();
	call = take_call(own, arguments[0]);
	return call ? answer(end_pass(own, call, arguments[2], now)) : none();
}
