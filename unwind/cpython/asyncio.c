/* SPDX-License-Identifier: MIT */
/* asyncio.c - the tasks, their names, and which task waits for which; see cpython.h.
 *
 * From 3.14 each thread, and each interpreter for those of ended threads, has a list of its
 * tasks, and a section of the file with asyncio's C code has the offsets (docs/waiting.md).
 * Before, sets of weak references contain them, in the module or, up to 3.6, in the class or in a variable of
 * the C code. The layout of a task written in C is found by search: its words up to the pointer to a
 * coroutine. The next word is the name, the one before is the future that it waits for
 * (Modules/_asynciomodule.c, 3.6 to 3.13). A task written in Python has attributes.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/util.h"
#include "unwind/cpython/await.h"

enum {
	WORD = sizeof(uint64_t),
	MAX_STRUCTURE = 1 << 20, /* bytes; larger values cannot be offsets */
	MAX_VARIABLES = 1 << 16, /* bytes */
	MAX_TASK_BYTES = 1 << 10,
	MAX_VARIABLES_KEPT = 64, /* per function */
	MAX_AWAITERS = 1 << 10,  /* per task */
	FORGET_AFTER = 256,      /* samples */
	MAX_LOOPS = 16,
};

/* The section's layout, in this order (Modules/_asynciomodule.c, 3.14 and 3.15). */
struct asyncio_offsets {
	uint64_t task_bytes, name, awaited_by, is_task, awaited_by_is_set, coroutine, node;
	uint64_t interpreter_bytes, interpreter_tasks;
	uint64_t thread_bytes, running_loop, running_task, thread_tasks;
};

/* Memory that a link of a chain refers to. */
struct link_memory {
	char *name;
	struct py_frames frames;
};

struct known_loop {
	uint64_t loop, pthread;
};

struct asyncio {
	bool has_offsets;
	uint64_t section; /* address the offsets were read from */
	struct asyncio_offsets offsets;
	uint64_t variables_bytes; /* size of the variables of asyncio's C code in 3.6, from symbols.asyncio on */
	unsigned generation;      /* generation of the address space at the last search */
	bool has_looked;
	uint64_t coroutine_at; /* offset in tasks written in C, up to 3.13; 0: not found yet */
	bool has_names;        /* a name follows the coroutine */
	struct known_loop loops[MAX_LOOPS];
	unsigned n_loops, age;
	uint64_t interpreter, running_tasks; /* dict of running tasks, up to 3.13; 0: not found */
	bool has_no_tasks;                   /* a search found no dict */
	struct link_memory links[PY_MAX_LINKS];
};

/* Fields of a task; 0: none. */
struct parts {
	uint64_t coroutine, name, future;
};

void asyncio_free(struct asyncio *asyncio)
{
	for (size_t i = 0; asyncio && i < PY_MAX_LINKS; i++) {
		free(asyncio->links[i].name);
		py_frames_done(&asyncio->links[i].frames);
	}
	free(asyncio);
}

void py_tasks_done(struct py_tasks *tasks)
{
	for (size_t i = 0; i < tasks->n; i++)
		free(tasks->tasks[i].name);
	free(tasks->tasks);
	free(tasks->awaiters);
	py_frames_done(&tasks->frames);
	memset(tasks, 0, sizeof *tasks);
}

static struct asyncio *asyncio_of(struct py_runtime *runtime)
{
	if (!runtime->asyncio)
		runtime->asyncio = calloc(1, sizeof *runtime->asyncio);
	return runtime->asyncio;
}

static bool has_lists(const struct py_runtime *runtime)
{
	return runtime->layout.field[TASKS] == TASKS_LISTS;
}

/* ---- Offsets and variables of asyncio ---- */

/* Up to 3.6, only variables of the C code, which are no attributes, may refer to tasks. */
static void find_variables(struct py_runtime *runtime, struct elf_file *elf, int64_t bias)
{
	struct elf_segment segment;

	for (size_t n = 0; elf_file_segment(elf, n, &segment); n++) {
		if (!segment.writable)
			continue;
		runtime->symbols.asyncio = segment.address + (uint64_t)bias;
		runtime->asyncio->variables_bytes = MIN(segment.n_memory_bytes, (uint64_t)MAX_VARIABLES);
	}
}

static bool look_in(struct py_runtime *runtime, struct address_space *space, const struct mapping *mapping)
{
	uint64_t own, n_bytes;
	struct module *module;
	struct elf_file *elf;

	if (address_space_resolve(space, mapping->start, &module, &own) < 0 || !mapping->has_bias ||
	    module_elf(module, &elf) < 0)
		return false;
	if (!has_lists(runtime)) {
		find_variables(runtime, elf, mapping->bias);
		return true;
	}
	if (elf_file_section(elf, ".AsyncioDebug", &own, &n_bytes) < 0 || n_bytes < sizeof(struct asyncio_offsets))
		return false;
	runtime->symbols.asyncio = own + (uint64_t)mapping->bias;
	return true;
}

void py_asyncio_look(struct py_runtime *runtime, struct address_space *space)
{
	unsigned generation = address_space_generation(space);
	struct asyncio *asyncio = asyncio_of(runtime);
	const struct mapping *mapping;

	if (!asyncio || runtime->layout.field[TASKS] == TASKS_MODULE || runtime->symbols.asyncio != 0 ||
	    (asyncio->has_looked && asyncio->generation == generation))
		return;
	asyncio->has_looked = true;
	asyncio->generation = generation;
	for (size_t n = 0; (mapping = address_space_nth(space, n)) != NULL; n++) {
		if (!mapping->executable || !mapping->module || mapping->module->is_vdso)
			continue;
		if ((mapping->module != runtime->module || !has_lists(runtime)) &&
		    !strstr(module_name(mapping->module), "_asyncio"))
			continue;
		if (look_in(runtime, space, mapping))
			return;
	}
}

static bool is_inside(uint64_t offset, uint64_t n_bytes, uint64_t structure_bytes)
{
	return structure_bytes <= MAX_STRUCTURE && n_bytes <= structure_bytes && offset <= structure_bytes - n_bytes;
}

static bool can_be(const struct asyncio_offsets *offsets)
{
	const uint64_t task[] = { offsets->name, offsets->awaited_by, offsets->coroutine, offsets->node };
	const uint64_t thread[] = { offsets->running_loop, offsets->running_task, offsets->thread_tasks };

	for (size_t i = 0; i < N_ELEMENTS(task); i++)
		if (!is_inside(task[i], WORD, offsets->task_bytes) || task[i] % WORD != 0)
			return false;
	for (size_t i = 0; i < N_ELEMENTS(thread); i++)
		if (!is_inside(thread[i], WORD, offsets->thread_bytes))
			return false;
	return is_inside(offsets->interpreter_tasks, WORD, offsets->interpreter_bytes) &&
	       is_inside(offsets->awaited_by_is_set, 1, offsets->task_bytes);
}

/* NULL: unknown, or out of memory. */
static const struct asyncio_offsets *offsets_of(struct py_runtime *runtime)
{
	struct asyncio *asyncio = asyncio_of(runtime);
	uint64_t section = runtime->symbols.asyncio;

	if (!asyncio || section == 0)
		return NULL;
	if (asyncio->section != section) {
		asyncio->section = section;
		asyncio->has_offsets = page_cache_read(&runtime->page_cache, section, &asyncio->offsets,
						       sizeof asyncio->offsets) >= 0 &&
				       can_be(&asyncio->offsets);
	}
	return asyncio->has_offsets ? &asyncio->offsets : NULL;
}

/* ---- One task ---- */

/* Read an int of up to three digits, enough for a thread's or task's number; of larger ones, the low part. */
static int read_number(struct py_runtime *runtime, uint64_t object, uint64_t *ret)
{
	enum { MAX_DIGITS = 3, DIGIT_BITS = 30, TAG_BITS = 3 };
	uint64_t n, value = 0;
	uint32_t digit;
	int r;

	if (reader_has(runtime, LONG_TAG)) {
		r = object_word(runtime, object + reader_field(runtime, LONG_TAG), &n);
		n >>= TAG_BITS;
	} else {
		r = object_size(runtime, object, &n);
	}
	for (uint64_t i = 0; r >= 0 && i < MIN(n, (uint64_t)MAX_DIGITS); i++) {
		r = page_cache_read(&runtime->page_cache,
				    object + reader_field(runtime, LONG_DIGITS) + i * sizeof digit, &digit,
				    sizeof digit);
		if (r >= 0)
			value |= (uint64_t)digit << i * DIGIT_BITS;
	}
	if (r < 0)
		return r;
	*ret = value;
	return 0;
}

/* From 3.12 on, a default name is stored as its number. -ENOMEM. */
static int read_name(struct py_runtime *runtime, uint64_t object, char **ret)
{
	struct object_type type;
	uint64_t number;
	int r = -ENOENT;

	if (object == 0 || object_type_of(runtime, object, &type) < 0)
		type.flags = 0;
	if (type.flags & TYPE_UNICODE)
		r = reader_string(runtime, object, PY_TASK_NAME_BYTES, ret);
	else if ((type.flags & TYPE_LONG) && read_number(runtime, object, &number) >= 0)
		r = asprintf(ret, "Task-%llu", (unsigned long long)number) < 0 ? -ENOMEM : 0;
	if (r >= 0 || r == -ENOMEM)
		return r;
	*ret = strdup("");
	return *ret ? 0 : -ENOMEM;
}

/* Find the coroutine among the words of a task written in C. False: there is none. */
static bool find_coroutine(struct py_runtime *runtime, struct asyncio *asyncio, uint64_t task, int64_t n_bytes)
{
	struct object_type type;
	uint64_t word;

	n_bytes = MIN(n_bytes, (int64_t)MAX_TASK_BYTES);
	for (uint64_t at = reader_field(runtime, OBJECT_SIZE) + WORD; (int64_t)(at + 2 * WORD) <= n_bytes; at += WORD) {
		if (object_word(runtime, task + at, &word) < 0 || !await_is_coroutine(runtime, word))
			continue;
		asyncio->coroutine_at = at;
		asyncio->has_names = object_word(runtime, task + at + WORD, &word) >= 0 &&
				     object_type_of(runtime, word, &type) >= 0 &&
				     (type.flags & (TYPE_UNICODE | TYPE_LONG));
		return true;
	}
	return false;
}

static int parts_in_c(struct py_runtime *runtime, uint64_t task, int64_t n_bytes, struct parts *ret)
{
	struct asyncio *asyncio = asyncio_of(runtime);
	uint64_t words[3] = { 0 };
	int r;

	if (!asyncio)
		return -ENOMEM;
	if (asyncio->coroutine_at == 0 && !find_coroutine(runtime, asyncio, task, n_bytes))
		return -ENOENT;
	r = page_cache_read(&runtime->page_cache, task + asyncio->coroutine_at - WORD, words, sizeof words);
	if (r < 0)
		return r;
	*ret = (struct parts){
		.future = words[0],
		.coroutine = words[1],
		.name = asyncio->has_names ? words[2] : 0,
	};
	return 0;
}

/* An attribute; 0: none. */
static uint64_t attribute(struct py_runtime *runtime, uint64_t object, const char *name)
{
	uint64_t value;

	return object_attribute(runtime, object, name, &value) < 0 ? 0 : value;
}

static int read_parts(struct py_runtime *runtime, uint64_t task, struct parts *ret)
{
	const struct asyncio_offsets *offsets;
	struct object_type type, base;
	int r;

	*ret = (struct parts){ 0 };
	if (has_lists(runtime)) {
		offsets = offsets_of(runtime);
		r = offsets ? object_word(runtime, task + offsets->coroutine, &ret->coroutine) : -ENOENT;
		return r < 0 ? r : object_word(runtime, task + offsets->name, &ret->name);
	}
	r = object_type_of(runtime, task, &type);
	if (r < 0)
		return r;
	if (object_is_a(runtime, &type, "_asyncio.Task", &base))
		return parts_in_c(runtime, task, base.basic_size, ret);
	ret->coroutine = attribute(runtime, task, "_coro");
	ret->name = attribute(runtime, task, "_name");
	ret->future = attribute(runtime, task, "_fut_waiter");
	return ret->coroutine ? 0 : -ENOENT;
}

/* ---- All tasks of a thread ---- */

static int add_awaiter(struct py_tasks *tasks, size_t task, size_t awaiter)
{
	int r;

	r = grow(&tasks->awaiters, tasks->n_awaiters, &tasks->awaiters_allocated, sizeof *tasks->awaiters);
	if (r >= 0)
		tasks->awaiters[tasks->n_awaiters++] = (struct py_awaiter){ task, awaiter };
	return r;
}

/* Returns 0 also if the object is no task or has ended. -ENOMEM. */
static int add_task(struct py_runtime *runtime, uint64_t address, struct py_tasks *tasks)
{
	struct py_task *task;
	struct parts parts;
	int r;

	if (tasks->n == PY_MAX_TASKS) {
		tasks->is_cut = true;
		return 0;
	}
	r = read_parts(runtime, address, &parts);
	if (r < 0 || !await_is_coroutine(runtime, parts.coroutine))
		return r == -ENOMEM ? r : 0;
	r = grow(&tasks->tasks, tasks->n, &tasks->allocated, sizeof *tasks->tasks);
	if (r < 0)
		return r;
	task = &tasks->tasks[tasks->n];
	*task = (struct py_task){ .address = address, .first_frame = tasks->frames.n };
	if (await_frame(runtime, parts.coroutine, &task->frame) < 0)
		return 0;
	r = read_name(runtime, parts.name, &task->name);
	if (r < 0)
		return r;
	tasks->n++;
	r = await_walk(runtime, parts.coroutine, &tasks->frames, &task->future);
	task->n_frames = tasks->frames.n - task->first_frame;
	if (!has_lists(runtime) && parts.future != 0)
		task->future = parts.future;
	return r;
}

/* From 3.14 on: a circular list with a head node. */
static int add_list(struct py_runtime *runtime, const struct asyncio_offsets *offsets, uint64_t head,
		    struct py_tasks *tasks)
{
	struct circle circle = { 0 };
	uint64_t node;

	if (object_word(runtime, head, &node) < 0)
		return 0;
	while (node != 0 && node != head && !circle_met(&circle, node) && !tasks->is_cut) {
		int r = add_task(runtime, node - offsets->node, tasks);

		if (r < 0)
			return r;
		if (object_word(runtime, node, &node) < 0)
			break;
	}
	return 0;
}

static int add_listed(struct py_runtime *runtime, const struct thread_slot *slot, struct py_tasks *tasks)
{
	const struct asyncio_offsets *offsets = offsets_of(runtime);

	if (!offsets)
		return asyncio_of(runtime) ? 0 : -ENOMEM;
	return add_list(runtime, offsets, slot->state + offsets->thread_tasks, tasks);
}

/* Whether a dict's keys are loops; type dicts have names or numbers as keys. */
static bool is_by_loops(struct py_runtime *runtime, uint64_t dict)
{
	struct object_type type;
	struct dict_walk walk;
	uint64_t key, value;
	int r;

	if (object_dict_walk(runtime, dict, &walk) < 0)
		return false;
	r = object_dict_next(runtime, &walk, &key, &value);
	if (r > 0)
		r = object_type_of(runtime, key, &type) < 0 || (type.flags & (TYPE_UNICODE | TYPE_LONG)) ? -EBADMSG : 0;
	return r == 0;
}

/* Find a variable by the type it refers to: one is a WeakSet, one a dict (Modules/_asynciomodule.c, 3.6). */
static int find_variable(struct py_runtime *runtime, const char *type_name, uint64_t *ret)
{
	uint64_t start = (runtime->symbols.asyncio + WORD - 1) & ~(uint64_t)(WORD - 1), word;
	struct object_type type;

	for (uint64_t at = 0; at + WORD <= runtime->asyncio->variables_bytes; at += WORD) {
		if (object_word(runtime, start + at, &word) < 0)
			return -EFAULT;
		if (object_type_of(runtime, word, &type) < 0 || strcmp(type.name, type_name) != 0)
			continue;
		if ((type.flags & TYPE_DICTIONARY) && !is_by_loops(runtime, word))
			continue;
		*ret = word;
		return 0;
	}
	return -ENOENT;
}

/* Up to 3.13: an attribute of the module or of its Task class. -ENOENT. */
static int find_in_module(struct py_runtime *runtime, uint64_t interpreter, const char *name, uint64_t *ret)
{
	uint64_t dict, class;
	int r;

	r = object_module_dict(runtime, interpreter, "asyncio.tasks", &dict);
	if (r < 0 || runtime->layout.field[TASKS] == TASKS_MODULE)
		return r < 0 ? r : object_dict_find(runtime, dict, name, ret);
	r = object_dict_find(runtime, dict, "Task", &class);
	if (r >= 0)
		r = object_word(runtime, class + reader_field(runtime, TYPE_DICT), &dict);
	if (r >= 0)
		r = object_dict_find(runtime, dict, name, ret);
	return r == -ENOENT ? find_variable(runtime, strcmp(name, "_all_tasks") == 0 ? "WeakSet" : "dict", ret) : r;
}

/* The pthread_self() of the thread that runs a loop; 0: unknown. */
static uint64_t thread_of_loop(struct py_runtime *runtime, uint64_t loop)
{
	struct object_type type;
	uint64_t number, value;

	if (object_attribute(runtime, loop, "_thread_id", &number) < 0 || object_type_of(runtime, number, &type) < 0 ||
	    !(type.flags & TYPE_LONG) || read_number(runtime, number, &value) < 0)
		return 0;
	return value;
}

static uint64_t known_thread_of_loop(struct py_runtime *runtime, uint64_t loop)
{
	struct asyncio *asyncio = runtime->asyncio;

	for (unsigned i = 0; i < asyncio->n_loops; i++)
		if (asyncio->loops[i].loop == loop)
			return asyncio->loops[i].pthread;
	if (asyncio->n_loops == MAX_LOOPS)
		asyncio->n_loops = 0;
	asyncio->loops[asyncio->n_loops] = (struct known_loop){ loop, thread_of_loop(runtime, loop) };
	return asyncio->loops[asyncio->n_loops++].pthread;
}

/* Whether the thread of this state runs the loop. */
static bool is_loop_of(struct py_runtime *runtime, const struct thread_slot *slot, uint64_t loop)
{
	uint64_t pthread = known_thread_of_loop(runtime, loop), own;

	if (pthread == 0)
		return slot->tid == runtime->pid;
	return object_word(runtime, slot->state + reader_field(runtime, THREAD_IDENT), &own) >= 0 && own == pthread;
}

/* Compare the task's loop, which follows the object head or is an attribute. */
static bool is_task_of(struct py_runtime *runtime, const struct thread_slot *slot, uint64_t task)
{
	struct object_type type;
	uint64_t loop;

	if (object_type_of(runtime, task, &type) < 0)
		return false;
	if (!object_is_a(runtime, &type, "_asyncio.Task", NULL))
		loop = attribute(runtime, task, "_loop");
	else if (object_word(runtime, task + reader_field(runtime, OBJECT_SIZE), &loop) < 0)
		return false;
	return is_loop_of(runtime, slot, loop);
}

/* Add the tasks of a set, or of a set of weak references. */
static int add_set(struct py_runtime *runtime, const struct thread_slot *slot, uint64_t set, bool is_weak,
		   struct py_tasks *tasks)
{
	struct item_walk walk;
	uint64_t item;
	int r = 0;

	if (object_set_walk(runtime, set, &walk) < 0)
		return 0;
	while (r >= 0 && !tasks->is_cut && object_item_next(runtime, &walk, &item) > 0) {
		if (is_weak && object_weakref_target(runtime, item, &item) < 0)
			continue;
		if (is_task_of(runtime, slot, item))
			r = add_task(runtime, item, tasks);
	}
	return r;
}

static bool is_set(struct py_runtime *runtime, uint64_t object)
{
	struct object_type type;

	return object_type_of(runtime, object, &type) >= 0 && object_is_a(runtime, &type, "set", NULL);
}

static int add_from_sets(struct py_runtime *runtime, const struct thread_slot *slot, struct py_tasks *tasks)
{
	/* Up to 3.11 _all_tasks; later, eager tasks are separate. */
	static const char *const names[] = { "_all_tasks", "_scheduled_tasks", "_eager_tasks" };
	int r = 0;

	for (size_t i = 0; i < N_ELEMENTS(names) && r >= 0; i++) {
		uint64_t set, data;

		if (find_in_module(runtime, slot->interpreter, names[i], &set) < 0)
			continue;
		if (is_set(runtime, set))
			r = add_set(runtime, slot, set, false, tasks);
		else if (object_attribute(runtime, set, "data", &data) >= 0 && is_set(runtime, data))
			r = add_set(runtime, slot, data, true, tasks);
	}
	return r;
}

/* Find the dict of running tasks, keyed by loop. It never moves. */
static int find_running(struct py_runtime *runtime, uint64_t interpreter, uint64_t *ret)
{
	struct asyncio *asyncio = runtime->asyncio;
	int r;

	if (asyncio->interpreter == interpreter && asyncio->running_tasks != 0) {
		*ret = asyncio->running_tasks;
		return 0;
	}
	if (asyncio->interpreter == interpreter && asyncio->has_no_tasks)
		return -ENOENT;
	r = find_in_module(runtime, interpreter, "_current_tasks", ret);
	asyncio->interpreter = interpreter;
	asyncio->running_tasks = r < 0 ? 0 : *ret;
	asyncio->has_no_tasks = r < 0;
	return r;
}

/* 0: no task runs. */
static uint64_t running_by_dict(struct py_runtime *runtime, const struct thread_slot *slot)
{
	uint64_t dict, loop, task;
	struct dict_walk walk;

	if (find_running(runtime, slot->interpreter, &dict) < 0)
		return 0;
	if (object_dict_walk(runtime, dict, &walk) < 0) {
		runtime->asyncio->running_tasks = 0;
		return 0;
	}
	while (object_dict_next(runtime, &walk, &loop, &task) > 0)
		if (is_loop_of(runtime, slot, loop))
			return task;
	return 0;
}

static uint64_t running_of(struct py_runtime *runtime, const struct thread_slot *slot)
{
	const struct asyncio_offsets *offsets;
	uint64_t task;

	if (!asyncio_of(runtime))
		return 0;
	if (!has_lists(runtime))
		return running_by_dict(runtime, slot);
	offsets = offsets_of(runtime);
	if (!offsets || object_word(runtime, slot->state + offsets->running_task, &task) < 0)
		return 0;
	return task;
}

/* ---- Awaiters ---- */

static int index_tasks(const struct py_tasks *tasks, struct id_map *map)
{
	int r = 0;

	for (size_t i = 0; i < tasks->n && r >= 0; i++)
		if (!id_map_find(map, tasks->tasks[i].address))
			r = id_map_add(map, tasks->tasks[i].address, (uint32_t)i);
	return r;
}

/* Link the awaiter to the future it waits for, if that is a task. */
static int link_future(const struct id_map *map, uint64_t future, size_t awaiter, struct py_tasks *tasks)
{
	const struct id_slot *slot = future ? id_map_find(map, future) : NULL;

	return slot ? add_awaiter(tasks, slot->id, awaiter) : 0;
}

/* Link the futures that asyncio.gather() waits for. */
static int link_children(struct py_runtime *runtime, const struct id_map *map, uint64_t future, size_t awaiter,
			 struct py_tasks *tasks)
{
	struct object_type type;
	struct item_walk walk;
	uint64_t children, child;
	int r = 0;

	if (object_type_of(runtime, future, &type) < 0 || !object_is_a(runtime, &type, "_GatheringFuture", NULL) ||
	    object_attribute(runtime, future, "_children", &children) < 0 ||
	    object_type_of(runtime, children, &type) < 0 || !(type.flags & TYPE_LIST) ||
	    object_list_walk(runtime, children, &walk) < 0)
		return 0;
	while (r >= 0 && object_item_next(runtime, &walk, &child) > 0)
		r = link_future(map, child, awaiter, tasks);
	return r;
}

/* A task's done callback may be a method of its task group: then the group's parent task awaits it. */
static int link_group(struct py_runtime *runtime, const struct id_map *map, size_t task, struct py_tasks *tasks)
{
	uint64_t head = reader_field(runtime, OBJECT_SIZE), address = tasks->tasks[task].address;
	uint64_t callback, group, parent;
	struct object_type type;

	if (object_word(runtime, address + head + WORD, &callback) < 0 ||
	    object_type_of(runtime, callback, &type) < 0 || strcmp(type.name, "method") != 0 ||
	    object_word(runtime, callback + head + WORD, &group) < 0 || object_type_of(runtime, group, &type) < 0 ||
	    !object_is_a(runtime, &type, "TaskGroup", NULL))
		return 0;
	parent = attribute(runtime, group, "_parent_task");
	if (parent != 0) {
		const struct id_slot *slot = id_map_find(map, parent);

		return slot ? add_awaiter(tasks, task, slot->id) : 0;
	}
	return 0;
}

/* From 3.14 on, a task refers to its awaiter, or to a set of awaiters. */
static int link_awaited(struct py_runtime *runtime, const struct id_map *map, size_t task, struct py_tasks *tasks)
{
	const struct asyncio_offsets *offsets = offsets_of(runtime);
	uint64_t address = tasks->tasks[task].address, by, item;
	struct item_walk walk;
	uint8_t is_many;
	int r = 0;

	if (!offsets || object_word(runtime, address + offsets->awaited_by, &by) < 0 || by == 0 ||
	    page_cache_read(&runtime->page_cache, address + offsets->awaited_by_is_set, &is_many, 1) < 0)
		return 0;
	if (!is_many) {
		const struct id_slot *slot = id_map_find(map, by);

		return slot ? add_awaiter(tasks, task, slot->id) : 0;
	}
	if (!is_set(runtime, by) || object_set_walk(runtime, by, &walk) < 0)
		return 0;
	for (unsigned n = 0; r >= 0 && n < MAX_AWAITERS && object_item_next(runtime, &walk, &item) > 0; n++) {
		const struct id_slot *slot = id_map_find(map, item);

		if (slot)
			r = add_awaiter(tasks, task, slot->id);
	}
	return r;
}

static int by_task(const void *a, const void *b)
{
	const struct py_awaiter *left = a, *right = b;

	if (left->task != right->task)
		return left->task < right->task ? -1 : 1;
	return (left->awaiter > right->awaiter) - (left->awaiter < right->awaiter);
}

static void drop_doubles(struct py_tasks *tasks)
{
	size_t n = 0;

	if (tasks->n_awaiters > 0)
		qsort(tasks->awaiters, tasks->n_awaiters, sizeof *tasks->awaiters, by_task);
	for (size_t i = 0; i < tasks->n_awaiters; i++)
		if (n == 0 || by_task(&tasks->awaiters[n - 1], &tasks->awaiters[i]) != 0)
			tasks->awaiters[n++] = tasks->awaiters[i];
	tasks->n_awaiters = n;
}

static int link_all(struct py_runtime *runtime, struct py_tasks *tasks)
{
	struct id_map map = { 0 };
	int r;

	r = index_tasks(tasks, &map);
	for (size_t i = 0; i < tasks->n && r >= 0; i++) {
		if (has_lists(runtime)) {
			r = link_awaited(runtime, &map, i, tasks);
			continue;
		}
		r = link_future(&map, tasks->tasks[i].future, i, tasks);
		if (r >= 0)
			r = link_children(runtime, &map, tasks->tasks[i].future, i, tasks);
		if (r >= 0)
			r = link_group(runtime, &map, i, tasks);
	}
	id_map_done(&map);
	if (r >= 0)
		drop_doubles(tasks);
	return r;
}

static int add_tasks_of_state(struct py_runtime *runtime, const struct thread_slot *slot, struct py_tasks *tasks)
{
	size_t before = tasks->n;
	uint64_t running;
	bool is_there = false;
	int r;

	r = has_lists(runtime) ? add_listed(runtime, slot, tasks) : add_from_sets(runtime, slot, tasks);
	running = r < 0 ? 0 : running_of(runtime, slot);
	if (running == 0)
		return r;
	for (size_t i = before; i < tasks->n; i++)
		is_there |= tasks->tasks[i].address == running;
	if (!is_there)
		r = add_task(runtime, running, tasks);
	for (size_t i = before; i < tasks->n; i++)
		tasks->tasks[i].is_running = tasks->tasks[i].address == running;
	return r;
}

int py_tasks_of(struct py_runtime *runtime, pid_t tid, struct py_tasks *ret)
{
	struct thread_slot slots[PY_MAX_STATES];
	int n, r = 0;

	memset(ret, 0, sizeof *ret);
	n = reader_states(runtime, tid, false, slots, PY_MAX_STATES);
	if (n < 0)
		return n;
	if (!asyncio_of(runtime))
		return -ENOMEM;
	runtime->asyncio->n_loops = 0;
	runtime->asyncio->has_no_tasks = false;
	for (int i = 0; i < n && r >= 0; i++)
		r = add_tasks_of_state(runtime, &slots[i], ret);
	return r < 0 ? r : link_all(runtime, ret);
}

/* ---- The running task, for samples ---- */

/* A closure variable of a Python function, found by its type; 0: none. */
static uint64_t kept_by_function(struct py_runtime *runtime, uint64_t function, int64_t n_bytes, const char *type_name)
{
	struct object_type type;
	struct item_walk walk;
	uint64_t word, cell;

	for (int64_t at = (int64_t)reader_field(runtime, OBJECT_SIZE);
	     at + WORD <= MIN(n_bytes, (int64_t)MAX_TASK_BYTES); at += WORD) {
		if (object_word(runtime, function + (uint64_t)at, &word) < 0 ||
		    object_type_of(runtime, word, &type) < 0 || strcmp(type.name, "tuple") != 0 ||
		    object_tuple_walk(runtime, word, &walk) < 0)
			continue;
		for (unsigned n = 0; n < MAX_VARIABLES_KEPT && object_item_next(runtime, &walk, &cell) > 0; n++) {
			if (object_type_of(runtime, cell, &type) < 0 || strcmp(type.name, "cell") != 0 ||
			    object_word(runtime, cell + reader_field(runtime, CELL_OBJECT), &word) < 0 ||
			    object_type_of(runtime, word, &type) < 0)
				continue;
			if (object_is_a(runtime, &type, type_name, NULL))
				return word;
		}
	}
	return 0;
}

/* The first done callback of a future; 0: none. */
static uint64_t callback_of(struct py_runtime *runtime, uint64_t future)
{
	uint64_t callback;
	struct object_type type;
	struct item_walk walk;

	if (object_word(runtime, future + reader_field(runtime, OBJECT_SIZE) + WORD, &callback) < 0 || callback == 0 ||
	    object_type_of(runtime, callback, &type) < 0)
		return 0;
	if (!(type.flags & TYPE_LIST))
		return callback;
	/* Up to 3.6: a list of all callbacks; functions are wrapped in functools.partial. */
	if (object_list_walk(runtime, callback, &walk) < 0 || object_item_next(runtime, &walk, &callback) <= 0 ||
	    object_type_of(runtime, callback, &type) < 0)
		return 0;
	if (strcmp(type.name, "functools.partial") == 0 &&
	    object_word(runtime, callback + reader_field(runtime, OBJECT_SIZE), &callback) < 0)
		return 0;
	return callback;
}

/*
 * Up to 3.13: find the awaiting task through the future's first done callback. That is a wake-up of the task (up to 3.7
 * a separate object, later a method), a method of a task group, or a function with the gathering future in its closure.
 */
static uint64_t task_woken_by(struct py_runtime *runtime, uint64_t future, bool is_gathered)
{
	uint64_t head = reader_field(runtime, OBJECT_SIZE), callback = callback_of(runtime, future), self;
	struct object_type type;

	if (callback == 0 || object_type_of(runtime, callback, &type) < 0)
		return 0;
	if (strcmp(type.name, "function") == 0) {
		future = is_gathered ? 0 : kept_by_function(runtime, callback, type.basic_size, "_GatheringFuture");
		return future ? task_woken_by(runtime, future, true) : 0;
	}
	if (strcmp(type.name, "builtin_function_or_method") == 0 || strcmp(type.name, "method") == 0)
		head += WORD;
	else if (strcmp(type.name, "TaskWakeupMethWrapper") != 0)
		return 0;
	if (object_word(runtime, callback + head, &self) < 0 || object_type_of(runtime, self, &type) < 0)
		return 0;
	return object_is_a(runtime, &type, "TaskGroup", NULL) ? attribute(runtime, self, "_parent_task") : self;
}

/* The first task that awaits this one; 0: none, or unknown. */
static uint64_t awaiter_of(struct py_runtime *runtime, uint64_t task)
{
	const struct asyncio_offsets *offsets = has_lists(runtime) ? offsets_of(runtime) : NULL;
	struct item_walk walk;
	uint8_t is_many;
	uint64_t by;

	if (!has_lists(runtime))
		return task_woken_by(runtime, task, false);
	if (!offsets || object_word(runtime, task + offsets->awaited_by, &by) < 0 || by == 0 ||
	    page_cache_read(&runtime->page_cache, task + offsets->awaited_by_is_set, &is_many, 1) < 0)
		return 0;
	if (is_many && (!is_set(runtime, by) || object_set_walk(runtime, by, &walk) < 0 ||
			object_item_next(runtime, &walk, &by) <= 0))
		return 0;
	return by;
}

/* @is_outer: the task awaits another one. */
static int read_link(struct py_runtime *runtime, uint64_t task, bool is_outer, struct link_memory *memory,
		     struct py_task_link *ret)
{
	struct parts parts;
	uint64_t future;
	int r;

	memory->frames.n = 0;
	free(TAKE(memory->name));
	r = read_parts(runtime, task, &parts);
	if (r < 0)
		return r;
	*ret = (struct py_task_link){ 0 };
	if (!await_is_coroutine(runtime, parts.coroutine))
		return -ENOENT;
	r = await_frame(runtime, parts.coroutine, &ret->frame);
	if (r >= 0)
		r = read_name(runtime, parts.name, &memory->name);
	if (r >= 0 && is_outer)
		r = await_walk(runtime, parts.coroutine, &memory->frames, &future);
	if (r < 0)
		return r;
	ret->name = memory->name;
	ret->frames = memory->frames.frames;
	ret->n_frames = memory->frames.n;
	return 0;
}

static void forget_some(struct asyncio *asyncio)
{
	if (++asyncio->age < FORGET_AFTER)
		return;
	asyncio->age = 0;
	asyncio->n_loops = 0;
	asyncio->has_no_tasks = false;
}

int py_running_task(struct py_runtime *runtime, pid_t tid, struct py_task_link *links)
{
	struct thread_slot slots[PY_MAX_STATES];
	uint64_t task = 0;
	int n_slots, n = 0;

	if (!asyncio_of(runtime))
		return -ENOMEM;
	forget_some(runtime->asyncio);
	n_slots = reader_states(runtime, tid, false, slots, PY_MAX_STATES);
	for (int i = 0; i < n_slots && task == 0; i++)
		task = running_of(runtime, &slots[i]);
	while (task != 0 && n < PY_MAX_LINKS) {
		int r = read_link(runtime, task, n > 0, &runtime->asyncio->links[n], &links[n]);

		if (r == -ENOMEM)
			return r;
		if (r < 0)
			break;
		n++;
		task = awaiter_of(runtime, task);
	}
	return n;
}
