/* SPDX-License-Identifier: MIT */
/* stacks.c - a recording with as many distinct stacks as one likes; see bench/exports.py.
 *
 * Usage: bench_stacks OUT N THREADS    OUT: the recording to make; N: how many stacks are sampled, each once, by
 * how many threads
 *
 * Each stack leaves the one before it a few calls further out and goes in again by other functions, so that the
 * tree has about two nodes for each, at depths of 10 to 60. A function calls a dozen others, and a node none of
 * them twice: stacks stay distinct whatever folds them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/store/store.h"

enum {
	N_FUNCTIONS = 20000,
	N_CALLEES = 12, /* per function */
	N_MODULES = 50,
	FIRST_PID = 1000,
	MIN_DEPTH = 10,
	MAX_DEPTH = 60,
	BATCH = 10000,
	WEIGHT_NS = 2004008,
};

struct maker {
	struct store *store;
	uint64_t seed;
	int64_t n_stacks;
	unsigned n_threads;
	int64_t path[MAX_DEPTH + 1], functions[MAX_DEPTH + 1]; /* by depth, outermost first */
	uint32_t n_called[MAX_DEPTH + 1];                      /* [d]: calls by the function at depth d - 1 */
	unsigned depth;
};

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench_stacks: %s: %s\n", what, strerror(-r));
	exit(1);
}

static unsigned next_random(struct maker *maker, unsigned below)
{
	maker->seed = maker->seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(maker->seed >> 33) % below;
}

static void put_function(struct store *store, int64_t number)
{
	bool is_python = number % 5 < 3;
	char name[64], file[64];
	struct function_row function = {
		.function = number,
		.name = name,
		.file = file,
		.kind = is_python ? FRAME_PYTHON : FRAME_NATIVE,
		.first_line = (int)(number % 1000) + 1,
		.module = is_python ? 0 : number % N_MODULES + 1,
	};
	struct frame_row frame = {
		.frame = number,
		.kind = function.kind,
		.function = number,
		.module = function.module,
		.line = function.first_line + 7,
		.has_address = !is_python,
		.address = (uint64_t)number * 64,
	};

	snprintf(name, sizeof name, "%s_%lld", is_python ? "Class.method" : "library::function", (long long)number);
	snprintf(file, sizeof file, "/srv/application/module_%lld.%s", (long long)number / 20,
		 is_python ? "py" : "cpp");
	must(store_put_function(store, &function), "function");
	must(store_put_frame(store, &frame), "frame");
}

static void put_names(struct store *store, unsigned n_threads)
{
	char text[64];

	must(store_put_run(store, &(struct run_row){ .started_ns = realtime_ns(),
						     .command = "bench_stacks",
						     .mode = "cpu",
						     .stack_source = "memory",
						     .host = "bench",
						     .kernel = "-",
						     .probing = "-",
						     .hz = 499,
						     .pid = FIRST_PID,
						     .cpus = n_threads }),
	     "run");
	must(store_put_process(store, &(struct process_row){ .pid = FIRST_PID,
							     .started_ns = realtime_ns(),
							     .name = "bench",
							     .command = "bench" }),
	     "process");
	for (unsigned i = 0; i < n_threads; i++) {
		snprintf(text, sizeof text, "worker-%u", i);
		must(store_put_thread(store, &(struct thread_row){ .pid = FIRST_PID,
								   .tid = FIRST_PID + (pid_t)i,
								   .name = text,
								   .started_ns = realtime_ns() }),
		     "thread");
	}
	for (int i = 1; i <= N_MODULES; i++) {
		snprintf(text, sizeof text, "/usr/lib/liblibrary%d.so", i);
		must(store_put_module(store, &(struct module_row){ .module = i, .path = text }), "module");
	}
	for (int i = 1; i <= N_FUNCTIONS; i++)
		put_function(store, i);
}

static void call(struct maker *maker)
{
	int64_t caller = maker->depth > 0 ? maker->path[maker->depth - 1] : 0;
	int64_t function = maker->depth > 0 ? maker->functions[maker->depth - 1] : 0;
	uint32_t *n_called = &maker->n_called[maker->depth];
	struct stack_row row = {
		.stack = ++maker->n_stacks,
		.parent = caller,
		.frame = (int64_t)((mix64((uint64_t)function + 1) + *n_called) % N_FUNCTIONS) + 1,
		.depth = maker->depth + 1,
	};

	must(store_put_stack(maker->store, &row), "stack");
	++*n_called;
	maker->functions[maker->depth] = row.frame;
	maker->path[maker->depth++] = row.stack;
	maker->n_called[maker->depth] = 0;
}

/* Return from one to four calls, and call about as many again. */
static void next_stack(struct maker *maker)
{
	unsigned out = 1 + next_random(maker, 4), in = 1 + next_random(maker, 3);

	while (out-- > 0 && maker->depth > MIN_DEPTH)
		maker->depth--;
	while (maker->n_called[maker->depth] == N_CALLEES)
		maker->depth--;
	do
		call(maker);
	while ((in-- > 1 || maker->depth < MIN_DEPTH + 1) && maker->depth < MAX_DEPTH);
}

static void put_sample(struct maker *maker, size_t i, uint64_t started_ns)
{
	int64_t stack = maker->path[maker->depth - 1];
	pid_t tid = FIRST_PID + (pid_t)next_random(maker, maker->n_threads);

	must(store_put_sample(maker->store,
			      &(struct sample_row){
				      .time_ns = started_ns + i * WEIGHT_NS,
				      .pid = FIRST_PID,
				      .tid = tid,
				      .cpu = i % maker->n_threads,
				      .weight = WEIGHT_NS,
				      .verdict = i % 10 ? VERDICT_VERIFIED : VERDICT_NO_PYTHON,
				      .stack = stack,
				      .gil = i % 3 ? ANSWER_YES : ANSWER_NO,
			      }),
	     "sample");
	must(store_put_total(maker->store, &(struct total_row){ FIRST_PID, tid, stack, 1, WEIGHT_NS }), "total");
}

int main(int argc, char **argv)
{
	struct maker maker = { .seed = 1 };
	uint64_t started_ns = realtime_ns();
	size_t n = argc == 4 ? (size_t)atoll(argv[2]) : 0;

	if (n > 0)
		maker.n_threads = (unsigned)atoi(argv[3]);
	if (maker.n_threads == 0) {
		fprintf(stderr, "usage: bench_stacks OUT N THREADS\n");
		return 2;
	}
	must(store_create(argv[1], NULL, &maker.store), argv[1]);
	must(store_begin(maker.store), "begin");
	put_names(maker.store, maker.n_threads);
	for (size_t i = 0; i < n; i++) {
		next_stack(&maker);
		put_sample(&maker, i, started_ns);
		if (i % BATCH == BATCH - 1) {
			must(store_commit(maker.store), "commit");
			must(store_begin(maker.store), "begin");
		}
	}
	must(store_finish(maker.store, started_ns + n * WEIGHT_NS), "finish");
	printf("%lld stacks in the tree, %zu sampled\n", (long long)maker.n_stacks, n);
	return 0;
}
