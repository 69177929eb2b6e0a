/* SPDX-License-Identifier: MIT */
/*
 * sink.c - makes rows of the importers' data.
 *
 * Invariants:
 * 1. A row is put once: each kind has a key of its distinguishing columns, and a number from 1.
 * 2. Rows that a row refers to have been put before it; unassigned numbers are refused.
 * 3. The sum of all weights stays below 2^63, so that sums remain integers.
 * 4. Texts, keys and stacks have bounds, however often the file refers to the same bytes.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/import/sink_private.h"

enum {
	STEP_ROWS = 1 << 16,
	ASK_ROWS = 1 << 11,
	MAX_DEPTH = 1 << 16,
	/*
	 * Large profiles have a tenth of this, and this needs a few gigabytes. A few bytes of a file may make a stack.
	 */
	MAX_STACKS = 1 << 24,
	MAX_TEXT_BYTES = 1 << 16, /* truncate longer names: a file's text may be used by many names */
	MAX_LABEL_BYTES = 1 << 12,
};
#define MAX_KEY_BYTES ((size_t)1 << 30)

struct sink_run *sink_run(struct sink *sink)
{
	return &sink->run;
}

int sink_explain(struct sink *sink, int error, const char *format, ...)
{
	va_list arguments;

	if (sink->result->why[0])
		return error;
	va_start(arguments, format);
	vsnprintf(sink->result->why, sizeof sink->result->why, format, arguments);
	va_end(arguments);
	return error;
}

void sink_skip(struct sink *sink)
{
	sink->result->n_skipped++;
}

static int ask(const struct sink *sink)
{
	const struct import_input *input = sink->input;

	return !input->keep_going || input->keep_going(input->data, &sink->progress) ? 0 : -ECANCELED;
}

static int reach(struct sink *sink, const char *what, uint64_t n_done, uint64_t n_all)
{
	sink->progress.what = what;
	sink->progress.n_done = n_done;
	sink->progress.n_all = n_all;
	return ++sink->n_reached % ASK_ROWS == 0 ? ask(sink) : 0;
}

int sink_read(struct sink *sink, uint64_t n_done, uint64_t n_all)
{
	static const char what[] = "read";

	return reach(sink, what, n_done, n_all);
}

int sink_write(struct sink *sink, uint64_t n_done, uint64_t n_all)
{
	static const char what[] = "written";

	return reach(sink, what, n_done, n_all);
}

int sink_step(struct sink *sink)
{
	int r = ++sink->progress.n_rows % ASK_ROWS == 0 ? ask(sink) : 0;

	if (r < 0)
		return r;
	if (sink->into || sink->progress.n_rows % STEP_ROWS != 0)
		return 0;
	r = store_commit(sink->store);
	return r < 0 ? r : store_begin(sink->store);
}

char *piece_text(struct piece piece)
{
	char *text = malloc(piece.n + 1);

	if (!text)
		return NULL;
	for (size_t i = 0; i < piece.n; i++)
		text[i] = piece.at[i] ? piece.at[i] : '?';
	text[piece.n] = '\0';
	return text;
}

static struct piece shortened(struct piece piece, size_t most)
{
	return (struct piece){ piece.at, MIN(piece.n, most) };
}

/* ---- Processes and threads ---- */

static const char *or_unknown(const char *text)
{
	return text[0] ? text : "?";
}

int sink_process(struct sink *sink, pid_t pid, pid_t parent, struct piece name, struct piece command)
{
	CLEANUP(freep) char *name_text = piece_text(shortened(name, MAX_LABEL_BYTES));
	CLEANUP(freep) char *command_text = piece_text(shortened(command, MAX_TEXT_BYTES));
	struct process_row row = { .pid = pid, .parent_pid = parent, .started_ns = 1 };
	int64_t id;
	int r;

	if (!name_text || !command_text)
		return -ENOMEM;
	if (pid < 0)
		return sink_explain(sink, -EBADMSG, "a process has a negative number");
	r = ids_add(&sink->processes, &pid, sizeof pid, &id);
	if (r < 0 || (r == 0 && name.n == 0))
		return r;
	if (id == 1)
		sink->first_pid = pid;
	row.name = or_unknown(name_text);
	row.command = command_text;
	return store_put_process(sink->store, &row);
}

int sink_rank(struct sink *sink, pid_t pid, const char *name, const struct rank_identity *rank)
{
	struct process_row row = { .pid = pid, .name = name, .command = name, .rank = rank, .started_ns = 1 };
	int r = sink_process(sink, pid, 0, piece_of(name), piece_of(name));

	if (r >= 0)
		r = store_put_process(sink->store, &row);
	return r < 0 ? r : sink_thread(sink, pid, pid, piece_of(name));
}

int sink_thread(struct sink *sink, pid_t pid, pid_t tid, struct piece name)
{
	CLEANUP(freep) char *text = NULL;
	pid_t key[2] = { pid, tid };
	struct thread_row row = { .pid = pid, .tid = tid, .started_ns = 1 };
	int64_t id;
	int r;

	if (sink->into || tid < 0)
		return sink_explain(sink, tid < 0 ? -EBADMSG : -EOPNOTSUPP, "it has threads of its own");
	r = sink_process(sink, pid, 0, (struct piece){ 0 }, (struct piece){ 0 });
	if (r >= 0)
		r = ids_add(&sink->threads, key, sizeof key, &id);
	if (r < 0 || (r == 0 && name.n == 0))
		return r;
	text = piece_text(shortened(name, MAX_LABEL_BYTES));
	if (!text)
		return -ENOMEM;
	row.name = or_unknown(text);
	return store_put_thread(sink->store, &row);
}

/* ---- Frames ---- */

/* Append bytes and their length to a composite key. */
static int key_add(struct sink *sink, const void *bytes, size_t n)
{
	size_t needed = sink->key.n + sizeof n + n;
	char *at;

	if (needed > sink->key_allocated) {
		char *more = realloc((char *)sink->key.at, 2 * needed);

		if (!more)
			return -ENOMEM;
		sink->key.at = more;
		sink->key_allocated = 2 * needed;
	}
	at = (char *)sink->key.at + sink->key.n;
	memcpy(at, &n, sizeof n);
	if (n > 0)
		memcpy(at + sizeof n, bytes, n);
	sink->key.n = needed;
	return 0;
}

static int key_of(struct sink *sink, const int64_t *numbers, size_t n_numbers, const struct piece *pieces,
		  size_t n_pieces)
{
	int r;

	sink->key.n = 0;
	r = key_add(sink, numbers, n_numbers * sizeof *numbers);
	for (size_t i = 0; i < n_pieces && r >= 0; i++)
		r = key_add(sink, pieces[i].at, pieces[i].n);
	return r;
}

static int add_key(struct sink *sink, struct ids *ids, int64_t *ret)
{
	int r = ids_add(ids, sink->key.at, sink->key.n, ret);

	if (sink->modules.n_bytes + sink->functions.n_bytes + sink->frames.n_bytes > MAX_KEY_BYTES)
		return sink_explain(sink, -EBADMSG, "names of its functions and files come to more than 1 GiB");
	if (r > 0) {
		int stepped = sink_step(sink);

		return stepped < 0 ? stepped : r;
	}
	return r;
}

static int add_module(struct sink *sink, const struct sink_frame *frame, int64_t *ret)
{
	const struct piece pieces[] = { frame->module, frame->build_id };
	CLEANUP(freep) char *path = NULL;
	CLEANUP(freep) char *build_id = NULL;
	int r;

	*ret = 0;
	if (frame->module.n == 0)
		return 0;
	r = key_of(sink, NULL, 0, pieces, N_ELEMENTS(pieces));
	if (r >= 0)
		r = add_key(sink, &sink->modules, ret);
	if (r <= 0)
		return r;
	path = piece_text(frame->module);
	build_id = piece_text(frame->build_id);
	if (!path || !build_id)
		return -ENOMEM;
	return store_put_module(
		sink->store,
		&(struct module_row){ .module = *ret, .path = path, .build_id = build_id[0] ? build_id : NULL });
}

static int add_function(struct sink *sink, const struct sink_frame *frame, int64_t module, int64_t *ret)
{
	const struct piece pieces[] = { frame->name, frame->file };
	const int64_t numbers[] = { frame->kind, module, frame->first_line };
	CLEANUP(freep) char *name = NULL;
	CLEANUP(freep) char *file = NULL;
	int r;

	*ret = 0;
	if (frame->name.n == 0)
		return 0;
	r = key_of(sink, numbers, N_ELEMENTS(numbers), pieces, N_ELEMENTS(pieces));
	if (r >= 0)
		r = add_key(sink, &sink->functions, ret);
	if (r <= 0)
		return r;
	name = piece_text(frame->name);
	file = piece_text(frame->file);
	if (!name || !file)
		return -ENOMEM;
	return store_put_function(sink->store,
				  &(struct function_row){ .function = *ret,
							  .name = name,
							  .kind = frame->kind,
							  .file = file[0] ? file : NULL,
							  .first_line = MAX(frame->first_line, 0),
							  .module = frame->kind == FRAME_PYTHON ? 0 : module });
}

static bool ends_with(struct piece piece, const char *ending)
{
	size_t n = strlen(ending);

	return piece.n >= n && memcmp(piece.at + piece.n - n, ending, n) == 0;
}

enum frame_kind kind_of_file(struct piece file)
{
	bool is_python = ends_with(file, ".py") || ends_with(file, ".pyx") || (file.n > 0 && file.at[0] == '<');

	return is_python ? FRAME_PYTHON : FRAME_NATIVE;
}

int sink_frame(struct sink *sink, const struct sink_frame *given, int64_t *ret)
{
	struct sink_frame texts = *given;
	const struct sink_frame *frame = &texts;
	struct frame_row row = { .kind = frame->kind,
				 .line = MAX(frame->line, 0),
				 .has_address = frame->has_address,
				 .address = frame->has_address ? frame->address : 0,
				 .without_cfi = frame->without_cfi,
				 .inlined_into = frame->inlined_into };
	int r;

	texts.name = shortened(given->name, MAX_TEXT_BYTES);
	texts.file = shortened(given->file, MAX_TEXT_BYTES);
	texts.module = shortened(given->module, MAX_TEXT_BYTES);
	texts.build_id = shortened(given->build_id, MAX_LABEL_BYTES);
	if (sink->into)
		return sink_explain(sink, -EOPNOTSUPP, "it has stacks of its own");
	if (frame->inlined_into < 0 || frame->inlined_into > sink->frames.n)
		return -EBADMSG;
	r = add_module(sink, frame, &row.module);
	if (r >= 0)
		r = add_function(sink, frame, row.module, &row.function);
	if (r >= 0) {
		const int64_t numbers[] = { row.kind,        row.function,         row.module,      row.line,
					    row.has_address, (int64_t)row.address, row.without_cfi, row.inlined_into };

		r = key_of(sink, numbers, N_ELEMENTS(numbers), NULL, 0);
	}
	if (r >= 0)
		r = add_key(sink, &sink->frames, &row.frame);
	if (r > 0)
		r = store_put_frame(sink->store, &row);
	sink->result->has_places |= row.function == 0 && row.has_address;
	if (r >= 0)
		*ret = row.frame;
	return r;
}

int sink_stack(struct sink *sink, int64_t parent, int64_t frame, int64_t *ret)
{
	const int64_t key[] = { parent, frame };
	struct stack_row row = { .parent = parent, .frame = frame };
	int r;

	if (parent < 0 || parent > sink->stacks.n || frame < 1 || frame > sink->frames.n)
		return -EBADMSG;
	row.depth = parent > 0 ? sink->depths[parent - 1] + 1 : 0;
	if (row.depth >= MAX_DEPTH)
		return sink_explain(sink, -EBADMSG, "a stack has more than %d frames", MAX_DEPTH);
	if (sink->stacks.n >= MAX_STACKS)
		return sink_explain(sink, -EBADMSG, "it has more than %d different stacks: export a part of it",
				    MAX_STACKS);
	r = ids_add(&sink->stacks, key, sizeof key, &row.stack);
	if (r > 0) {
		r = grow(&sink->depths, sink->n_depths, &sink->depths_allocated, sizeof *sink->depths);
		if (r < 0)
			return r;
		sink->depths[sink->n_depths++] = row.depth;
		r = sink_step(sink);
		if (r >= 0)
			r = store_put_stack(sink->store, &row);
	}
	if (r >= 0)
		*ret = row.stack;
	return r;
}

/* ---- Weights ---- */

static int add_sum(struct sink *sink, pid_t pid, pid_t tid, int64_t stack, struct sink_total **ret)
{
	const int64_t key[] = { pid, tid, stack };
	int64_t id;
	int r;

	r = ids_add(&sink->totals, key, sizeof key, &id);
	if (r > 0) {
		r = grow(&sink->sums, sink->n_sums, &sink->sums_allocated, sizeof *sink->sums);
		if (r < 0)
			return r;
		sink->sums[sink->n_sums++] = (struct sink_total){ .pid = pid, .tid = tid, .stack = stack };
	}
	if (r >= 0)
		*ret = &sink->sums[id - 1];
	return r;
}

int sink_total(struct sink *sink, pid_t pid, pid_t tid, int64_t stack, uint64_t samples, uint64_t weight)
{
	struct sink_total *sum;
	int r;

	if (stack < 0 || stack > sink->stacks.n)
		return -EBADMSG;
	if (weight > INT64_MAX - sink->weight || samples > INT64_MAX - sink->result->n_samples)
		return sink_explain(sink, -EBADMSG, "its numbers add up to more than 2^63");
	r = sink_thread(sink, pid, tid, (struct piece){ 0 });
	if (r >= 0)
		r = add_sum(sink, pid, tid, stack, &sum);
	if (r < 0)
		return r;
	sum->samples += samples;
	sum->weight += weight;
	sink->weight += weight;
	sink->result->n_samples += samples;
	return 0;
}

int sink_sample(struct sink *sink, const struct sample_row *row)
{
	int r;

	r = sink_total(sink, row->pid, row->tid, row->stack, 1, row->weight);
	if (r >= 0)
		r = grow(&sink->samples, sink->n_samples, &sink->samples_allocated, sizeof *sink->samples);
	if (r < 0)
		return r;
	sink->samples[sink->n_samples++] = *row;
	return 0;
}
