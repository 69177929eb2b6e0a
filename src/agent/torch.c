/* SPDX-License-Identifier: MIT */
/* torch.c - see torch.h: the builtins. What is the exception rather than the rule (names, steps, the GPU) is Python's. */
#include "src/agent/torch.h"

#include <stdlib.h>

#include "src/agent/rows.h"
#include "src/agent/torch_calls.h"
#include "src/agent/torch_forward.h"
#include "src/agent/torch_graph.h"

static object *next_sequence(object *self, object *unused)
{
	(void)self;
	(void)unused;
	return py.FromLong(next_seq());
}

static object *clear_thread(object *self, object *unused)
{
	(void)self;
	(void)unused;
	if (own)
		clear(own);
	return none();
}

static object *end(object *self, object *unused)
{
	(void)self;
	(void)unused;
	traced.is_on = false;
	clear_threads();
	return none();
}

static object *set_cuda(object *self, object *cuda)
{
	(void)self;
	replace(&traced.cuda, cuda == py.none ? NULL : keep(cuda));
	return none();
}

static object *set_step(object *self, object *const *arguments, ssize_t n)
{
	struct ring_value *const numbers[] = { &traced.step, &traced.local_step, &traced.global_step, &traced.rank };

	(void)self;
	if (n < 8)
		return none();
	if (traced.append != arguments[0]) {
		traced.table = rows_table_of(arguments[0]);
		replace(&traced.append, keep(arguments[0]));
	}
	if (own) /* a pass around the whole training keeps no step's graph */
		clear_graph(own);
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		if (!rows_number(arguments[1 + i], numbers[i]))
			return NULL;
	traced.step_began = py.AsDouble(arguments[5]);
	traced.layer_rate = py.AsDouble(arguments[6]);
	traced.has_backward = py.IsTrue(arguments[7]) > 0;
	__atomic_store_n(&traced.seq, 0, __ATOMIC_RELAXED);
	return py.Error() ? NULL : none();
}

static object *know(object *self, object *const *arguments, ssize_t n)
{
	struct known *known = n < 5 ? NULL : calloc(1, sizeof *known);
	ssize_t n_name = 0, n_class = 0;
	struct ring_value number = { 0 };

	(void)self;
	if (!known)
		return n < 5 ? none() : py.NoMemory();
	known->n_refs = 1;
	known->name_text = keep(arguments[2]);
	known->class_text = keep(arguments[3]);
	known->name = py.AsText(arguments[2], &n_name);
	known->class = py.AsText(arguments[3], &n_class);
	known->n_name = (size_t)n_name;
	known->n_class = (size_t)n_class;
	known->is_root = py.IsTrue(arguments[4]) > 0;
	if (!known->name || !known->class || !rows_number(arguments[1], &number)) {
		known_drop(known);
		return NULL;
	}
	known->number = (uint64_t)number.integer;
	return known_put(arguments[0], known) ? none() : py.NoMemory();
}

static object *forget_module(object *self, object *address)
{
	const object *module = py.AsPointer(address);

	(void)self;
	if (!module)
		return py.Error() ? NULL : none();
	known_remove(module);
	return none();
}

static bool make_names(void)
{
	static const char *const words[] = { "identify",
					     "begin_outermost",
					     "is_outermost",
					     "end_inference",
					     "fail",
					     "state",
					     "grad_fn",
					     "next_functions",
					     "register_hook",
					     "register_prehook",
					     "_register_hook_dict",
					     "_backward_hooks",
					     "begin",
					     "end",
					     "end_backward" };
	object **names = &traced.names.identify;
	size_t n = sizeof words / sizeof words[0];

	_Static_assert(sizeof traced.names == (sizeof words / sizeof words[0] + 1) * sizeof(object *),
		       "a name for each");
	for (size_t i = 0; i < n; i++)
		names[i] = names[i] ? names[i] : py.FromText(words[i]);
	traced.names.zero = traced.names.zero ? traced.names.zero : py.FromLong(0);
	return !py.Error();
}

static object *begin(object *self, object *const *arguments, ssize_t n)
{
	object **const kept[] = { &traced.trace,  &traced.local,      &traced.is_grad_enabled, &traced.is_tracing,
				  &traced.tensor, &traced.accumulate, &traced.dummy,           &traced.ordered_dict };

	(void)self;
	if (n < (ssize_t)(sizeof kept / sizeof kept[0]) || !make_names())
		return py.Error() ? NULL : none();
	traced.is_on = false;
	known_remove_all();
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
		replace(kept[i], keep(arguments[i]));
	replace(&traced.cuda, NULL);
	return none();
}

static object *start(object *self, object *unused)
{
	(void)self;
	(void)unused;
	traced.is_on = traced.trace != NULL;
	return none();
}

static struct method methods[] = {
	{ "begin", begin, METHOD_FAST, NULL },
	{ "start", start, METHOD_NONE, NULL },
	{ "end", end, METHOD_NONE, NULL },
	{ "step", set_step, METHOD_FAST, NULL },
	{ "cuda", set_cuda, METHOD_ONE, NULL },
	{ "know", know, METHOD_FAST, NULL },
	{ "forget", forget_module, METHOD_ONE, NULL },
	{ "enter", enter, METHOD_FAST, NULL },
	{ "leave", leave, METHOD_FAST, NULL },
	{ "clear", clear_thread, METHOD_NONE, NULL },
	{ "sequence", next_sequence, METHOD_NONE, NULL },
	{ "registrar", make_registrar, METHOD_ONE, NULL },
};

void *torch_builtins(void)
{
	object *made, *name;
	size_t n = sizeof methods / sizeof methods[0], i = 0;

	made = find_functions() ? py.DictNew() : NULL;
	for (; made && i < n; i++) {
		OWNED one = py.Callable(&methods[i], NULL, NULL);

		name = one ? py.FromText(methods[i].name) : NULL;
		if (!name || py.DictSet(made, name, one) < 0)
			replace(&made, NULL);
		forget(&name);
	}
	return made;
}
