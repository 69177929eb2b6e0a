/* SPDX-License-Identifier: MIT */
/* test_filter.c - which threads and samples pass --threads, --function and --gil, and which frames --no-native leaves. */
#include "tests/unit/pipeline_fixture.h"

#include <sys/prctl.h>

#define SOON_NS UINT64_C(20000000)
#define LATEST_NS UINT64_C(1000000000)

/* Filters from typed lists; NULL: none. */
struct made_filter {
	struct filter_options options;
	struct thread_names names;
	struct filter filter;
};

static struct filter *make(struct made_filter *made, const char *threads, const char *functions)
{
	memset(made, 0, sizeof *made);
	if (threads)
		assert_int_equal(glob_list_add_list(&made->options.threads, threads), 0);
	if (functions)
		assert_int_equal(glob_list_add_list(&made->options.functions, functions), 0);
	filter_init(&made->filter, &made->options, &made->names);
	return &made->filter;
}

static void done(struct made_filter *made)
{
	filter_done(&made->filter);
	thread_names_done(&made->names);
	glob_list_done(&made->options.threads);
	glob_list_done(&made->options.functions);
}

static bool wants_own(struct filter *filter, uint64_t time_ns)
{
	return filter_wants_thread(filter, NULL, getpid(), gettid(), time_ns);
}

static void without_a_list_all_threads_pass(void **state)
{
	struct made_filter made;
	struct filter *filter = make(&made, NULL, NULL);

	(void)state;
	assert_true(filter_wants_all(filter));
	assert_true(filter_wants_thread(filter, NULL, PARENT_PID, PARENT_PID, 1));
	assert_int_equal(filter->n_threads, 0); /* nothing is kept of them */
	done(&made);
}

static void threads_by_number(void **state)
{
	struct made_filter made;
	struct filter *filter = make(&made, "5000001,5000003", NULL);

	(void)state;
	assert_false(filter_wants_all(filter));
	assert_true(filter_wants_thread(filter, NULL, PARENT_PID, 5000001, 1));
	assert_true(filter_wants_thread(filter, NULL, PARENT_PID, 5000003, 1));
	assert_false(filter_wants_thread(filter, NULL, PARENT_PID, 5000002, 1));
	assert_int_equal(filter->n_threads, 0); /* no name is read for numbers alone */
	done(&made);
}

/* Numbers and names may be mixed; a thread without a name passes no glob, not even "*". */
static void threads_by_their_name_in_the_system(void **state)
{
	struct made_filter made;
	struct filter *filter = make(&made, "5000001,load*", NULL);

	(void)state;
	prctl(PR_SET_NAME, "loader");
	assert_true(wants_own(filter, 1));
	assert_true(filter_wants_thread(filter, NULL, PARENT_PID, 5000001, 1));
	assert_false(filter_wants_thread(filter, NULL, PARENT_PID, 5000002, 1));
	done(&made);
	filter = make(&made, "loade", NULL);
	assert_false(wants_own(filter, 1));
	done(&made);
	filter = make(&made, "*", NULL);
	assert_false(filter_wants_thread(filter, NULL, PARENT_PID, 5000002, 1));
	done(&made);
}

/* As fixtures/images/3.11.7.truth has them; the kernel knows no such threads. */
static void threads_by_their_name_in_python(void **state)
{
	static struct memory_image image;
	CLEANUP(py_runtime_freep) struct py_runtime *runtime = runtime_of_image("3.11.7", &image);
	struct made_filter made;
	struct filter *filter = make(&made, "call*,Main*", NULL);

	(void)state;
	assert_true(filter_wants_thread(filter, runtime, PARENT_PID, 15310, 1));  /* callback */
	assert_true(filter_wants_thread(filter, runtime, PARENT_PID, 15082, 1));  /* MainThread */
	assert_false(filter_wants_thread(filter, runtime, PARENT_PID, 15315, 1)); /* collector */
	assert_false(filter_wants_thread(filter, runtime, PARENT_PID, 99, 1));
	done(&made);
}

/* A name is read again after 20 ms, 40 ms, ... 1 s, since a program may set it late. */
static void names_are_read_again(void **state)
{
	struct made_filter made;
	struct filter *filter = make(&made, "loader", NULL);
	uint64_t time_ns = 1000, wait_ns = SOON_NS;
	bool is_loader = false;

	(void)state;
	prctl(PR_SET_NAME, "other");
	assert_false(wants_own(filter, time_ns));
	for (int i = 0; i < 9; i++) {
		is_loader = !is_loader;
		prctl(PR_SET_NAME, is_loader ? "loader" : "other");
		assert_int_equal(wants_own(filter, time_ns + wait_ns - 1), !is_loader);
		assert_int_equal(wants_own(filter, time_ns + wait_ns), is_loader);
		time_ns += wait_ns;
		wait_ns = MIN(wait_ns * 2, LATEST_NS);
	}
	assert_int_equal(wait_ns, LATEST_NS);
	/* The kernel has reported another name: read it at once, and soon again. */
	is_loader = !is_loader;
	prctl(PR_SET_NAME, is_loader ? "loader" : "other");
	filter_forget_thread(filter, gettid());
	assert_int_equal(wants_own(filter, time_ns + 1), is_loader);
	prctl(PR_SET_NAME, is_loader ? "other" : "loader");
	assert_int_equal(wants_own(filter, time_ns + SOON_NS), is_loader);
	assert_int_equal(wants_own(filter, time_ns + 1 + SOON_NS), !is_loader);
	assert_int_equal(filter->n_threads, 1);
	filter_forget_thread(filter, OTHER_PID); /* an unknown one is none to forget */
	done(&made);
}

/* The same number in another process is another thread. */
static void a_number_of_another_process_is_judged_anew(void **state)
{
	struct made_filter made;
	struct filter *filter = make(&made, "loader", NULL);

	(void)state;
	prctl(PR_SET_NAME, "loader");
	assert_false(filter_wants_thread(filter, NULL, PARENT_PID, gettid(), 1));
	assert_true(wants_own(filter, 2));
	assert_false(filter_wants_thread(filter, NULL, PARENT_PID, gettid(), 3));
	assert_int_equal(filter->n_threads, 1);
	done(&made);
}

/* Leaf first: native code below Trainer.step, which main calls in a task. */
struct made_stack {
	struct py_code codes[2];
	struct frame frames[6];
	struct stack stack;
};

static struct stack *make_stack(struct made_stack *made)
{
	*made = (struct made_stack){
		.codes = { { .qualname = "Trainer.step" }, { .qualname = "main" } },
		.frames = { { .kind = FRAME_KERNEL },
			    { .kind = FRAME_NATIVE },
			    { .kind = FRAME_PYTHON, .python.code = &made->codes[0] },
			    { .kind = FRAME_TASK, .task.name = "main" },
			    { .kind = FRAME_NATIVE },
			    { .kind = FRAME_PYTHON, .python.code = &made->codes[1] } },
		.stack = { .frames = made->frames, .n_frames = N_ELEMENTS(made->frames) },
	};
	return &made->stack;
}

static void samples_by_function(void **state)
{
	static const struct {
		const char *functions;
		bool is_wanted;
	} cases[] = { { NULL, true },         { "main", true },     { "Trainer.step", true },
		      { "step", true },       { "st*", true },      { "other", false },
		      { "other,main", true }, { "Trainer", false }, { "Train", false } };
	const struct gil_state unknown = { 0 };
	struct made_stack stack;
	struct made_filter made;

	(void)state;
	make_stack(&stack);
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct filter *filter = make(&made, NULL, cases[i].functions);

		assert_int_equal(filter_wants_sample(filter, &stack.stack, &unknown), cases[i].is_wanted);
		assert_int_equal(filter_wants_all(filter), cases[i].functions == NULL);
		done(&made);
	}
	/* A stack without Python has none of the functions. */
	stack.stack.n_frames = 2;
	assert_false(filter_wants_sample(make(&made, NULL, "*"), &stack.stack, &unknown));
	done(&made);
}

/* A sample passes only if its thread is known to hold the GIL. */
static void samples_by_the_gil(void **state)
{
	struct made_stack stack;
	struct made_filter made;
	struct filter *filter = make(&made, NULL, NULL);

	(void)state;
	make_stack(&stack);
	for (enum answer gil = ANSWER_UNKNOWN; gil <= ANSWER_YES; gil++) {
		const struct gil_state gil_state = { .gil = gil, .gc = ANSWER_YES };

		made.options.gil = false;
		assert_true(filter_wants_sample(filter, &stack.stack, &gil_state));
		made.options.gil = true;
		assert_int_equal(filter_wants_sample(filter, &stack.stack, &gil_state), gil == ANSWER_YES);
	}
	assert_false(filter_wants_all(filter));
	done(&made);
	/* Both have to pass. */
	filter = make(&made, NULL, "other");
	made.options.gil = true;
	assert_false(filter_wants_sample(filter, &stack.stack, &(struct gil_state){ .gil = ANSWER_YES }));
	done(&made);
}

static void python_frames_and_tasks_alone(void **state)
{
	struct made_stack made_stack;
	struct stack *stack = make_stack(&made_stack);
	struct made_filter made;
	struct filter *filter = make(&made, NULL, NULL);

	(void)state;
	filter_trim(filter, stack);
	assert_int_equal(stack->n_frames, 6);
	made.options.no_native = true;
	assert_true(filter_wants_all(filter)); /* it drops frames, not samples */
	filter_trim(filter, stack);
	assert_int_equal(stack->n_frames, 3);
	assert_ptr_equal(stack->frames[0].python.code, &made_stack.codes[0]);
	assert_int_equal(stack->frames[1].kind, FRAME_TASK);
	assert_ptr_equal(stack->frames[2].python.code, &made_stack.codes[1]);
	done(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_list_all_threads_pass),
		cmocka_unit_test(threads_by_number),
		cmocka_unit_test(threads_by_their_name_in_the_system),
		cmocka_unit_test(threads_by_their_name_in_python),
		cmocka_unit_test(names_are_read_again),
		cmocka_unit_test(a_number_of_another_process_is_judged_anew),
		cmocka_unit_test(samples_by_function),
		cmocka_unit_test(samples_by_the_gil),
		cmocka_unit_test(python_frames_and_tasks_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
