/* SPDX-License-Identifier: MIT */
/* torch_calls.h - modules, their calls, and what a thread knows of those. Private to torch*.c; with the interpreter's lock.
 *
 * A call is one forward pass of a module, and its backward pass. It refers to no node of the graph: hooks of nodes
 * refer to it. While the outermost pass of a thread goes on, the thread knows for each node which call's output it is
 * (owners). It knows for each call that has returned from which nodes its inputs came (entries): so the graph of a
 * module's pass need not be walked through the modules in it.
 */
#ifndef PROBING_AGENT_TORCH_CALLS_H
#define PROBING_AGENT_TORCH_CALLS_H

#include <time.h>

#include "src/agent/torch_objects.h"
#include "src/ring/ring.h"

/* ---- Modules ---- */

enum { MAX_WAY = 8 };

struct known {
	uint32_t n_refs;
	bool is_root;
	uint64_t number;
	object *name_text, *class_text; /* owned; what follows are their bytes */
	const char *name, *class;
	size_t n_name, n_class;
	/* Where its one last node is: types of the output's node and of that one, owned, and indexes of the way. */
	object *end_from, *end_to;
	uint8_t n_way, way[MAX_WAY];
};

/* ---- Calls ---- */

struct calls {
	struct call **items;
	uint32_t n, allocated;
};

struct call {
	uint32_t n_refs;
	struct known *known;
	const object *module;                 /* of a pass that goes on; its caller owns it */
	uint64_t began_ns, backward_began_ns; /* backward: 0: it does not go on */
	uint64_t visited_ns;                  /* by the hook of that time */
	int64_t seq, backward_seq;
	object *event, *backward_event; /* owned; NULL: not on the GPU */
	object *capsule;                /* of its hooks: not owned, there is a capsule as long as it has a reference */
	bool is_watched, is_on_gpu;
	uint32_t first, index; /* numbers of its first inner call that has returned, and its own */
	uint32_t n_ends, waits_for;
	struct objects inputs;             /* nodes; py.none where an input has none */
	struct calls same_start, same_end; /* outer ones, whose backward pass begins or ends with this one's */
};

/*
 * find_known - with a reference; NULL: it is not known.
 * known_put - takes the reference, also where there is no memory (false). What was known at that address is not any more.
 */
struct known *find_known(const object *module);
bool known_put(object *module, struct known *known);
void known_remove(const object *module);
void known_remove_all(void);
void known_drop(struct known *known);

/* calls_add - adds a reference of its own. False: no memory. */
struct call *call_keep(struct call *call);
void call_drop(struct call *call);
bool calls_add(struct calls *calls, struct call *call);

static inline void call_dropp(struct call **call)
{
	if (*call)
		call_drop(*call);
}
#define OWNED_CALL __attribute__((cleanup(call_dropp))) struct call *

/* ---- What is traced ---- */

extern struct torch_tracing {
	bool is_on, has_backward;
	object *trace, *local, *is_grad_enabled, *is_tracing, *tensor, *accumulate, *dummy, *ordered_dict, *append,
		*cuda;            /* owned */
	struct rows_table *table; /* of append */
	struct ring_value step, local_step, global_step, rank;
	double step_began, layer_rate;
	int64_t seq;
	struct {
		object *identify, *begin_outermost, *is_outermost, *end_inference, *fail, *state, *grad_fn,
			*next_functions, *register_hook, *register_prehook, *register_hook_dict, *backward_hooks,
			*begin, *end, *end_backward, *zero;
	} names; /* owned, once */
} traced;

static inline uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int64_t next_seq(void);

/* append_row - a pass that has ended, whose time is the host's. */
void append_row(const struct known *known, const char *stage, size_t n_stage, int64_t seq, uint64_t began_ns,
		uint64_t ended_ns);

/*
 * begin_on_gpu - *ret: an event of now, owned, or NULL: there is no GPU, or a graph is being captured. False: an exception.
 * gpu_arguments - the pass that end() and end_backward() of _torch.Cuda take, a new reference.
 */
bool begin_on_gpu(object **ret);
object *gpu_arguments(const struct call *call, object *event, int64_t seq, uint64_t began_ns, uint64_t now);

/* answer - None, as a hook's result. An exception of ours: trace.fail() says it, and ends tracing. NULL: it is one of the
 * program's (KeyboardInterrupt). */
object *answer(bool is_done);

/* ---- A thread ---- */

struct thread {
	struct calls stack;                       /* the calls that it is in */
	struct map owners;                        /* node, owned: the innermost call whose output it made, owned */
	struct objects *entries;                  /* by a call's index: nodes of its inputs */
	uint32_t n_calls, n_entries, n_allocated; /* n_calls: that have returned */
	uint32_t n_past; /* calls that have no entry any more: the first entry is of that index */
	object *dummy;   /* owned */
	struct thread *next;
};

extern __thread struct thread *own; /* NULL: it has none yet */

/*
 * get_thread - NULL: an exception.
 * clear_graph - the owners and entries. Nodes that are kept keep what they have saved for the backward pass. Calls that go on
 * keep their numbers.
 * clear - the calls that it is in, too.
 * clear_threads - all of them, once no hook will do so any more; where threads run the interpreter at once, this one.
 * put_entry - takes @nodes, also where there is no memory (false).
 */
struct thread *get_thread(void);
void clear_graph(struct thread *thread);
void clear(struct thread *thread);
void clear_threads(void);
struct objects *entry_of(struct thread *thread, uint32_t index);
bool put_entry(struct thread *thread, uint32_t index, struct objects *nodes);

#endif
