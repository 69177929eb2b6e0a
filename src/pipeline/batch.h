/* SPDX-License-Identifier: MIT */
/* batch.h - new rows since the last flush, for the writing thread. Private.
 *
 * A batch owns its strings. It points to modules and code objects: both live as
 * long as the pipeline, and the fields that the writer reads never change.
 */
#ifndef PROBING_BATCH_H
#define PROBING_BATCH_H

#include <string.h>

#include "base/address_space.h"
#include "src/store/store.h"
#include "symbolize/symbolize.h"
#include "unwind/cpython/cpython.h"

enum { THREAD_NAME_BYTES = 144 }; /* Python's names are cut after 128, and "..." follows */

struct new_module {
	int64_t id;
	const struct module *module;
	struct build_id build_id; /* n_bytes 0: none, or not to be had */
};

/* Relation of anonymous code to the Python frames of its stack, by the interpreter's own memory. */
enum anonymous_role {
	ANONYMOUS_ALONE,         /* the stack has none */
	ANONYMOUS_BESIDE_PYTHON, /* there are some */
	ANONYMOUS_ENTERS_PYTHON, /* it called the evaluation of some */
	ANONYMOUS_N_ROLES
};

struct new_frame {
	uint32_t id;
	enum frame_kind kind;
	bool is_eval, without_cfi;   /* native */
	struct py_position position; /* python */
	const struct py_code *code;  /* python */
	const struct module *module; /* native; NULL anonymous */
	int64_t module_id;
	uint64_t address;        /* native: own address, absolute when anonymous; kernel: ip, in the naming its place */
	char *name;              /* of a task, or of the object of a wait; owned by the batch */
	enum thread_state state; /* of a wait without a name */
	/* Anonymous code: */
	uint32_t program;
	uint64_t time_ns; /* CLOCK_MONOTONIC, of the first sample */
	enum anonymous_role role;
};

/* Whose anonymous code it is. */
struct new_program {
	uint32_t id, parent; /* parent 0: none */
	uint64_t forked_ns;  /* CLOCK_MONOTONIC; the parent's code of that time is its own, too */
	struct generated_owner owner;
};

/* A jitdump file that a program has mapped. */
struct new_dump {
	uint32_t program;
	int fd; /* whoever takes ownership sets it to -1 */
};

/* Data of a sample's tracepoint: bytes [start, + n_bytes) of the batch's raw. */
struct new_record {
	size_t sample; /* index into samples */
	size_t start, n_bytes;
};

struct new_process {
	struct process_row row;
	char *name, *command, *python;
	struct rank_identity *rank; /* NULL: none */
};

struct new_thread {
	struct thread_row row;
	char name[THREAD_NAME_BYTES];
};

/* A row of a table of metrics: n values from metric_values[first]. Texts are offsets in metric_text, in .integer. */
struct new_metric {
	const char *table;
	size_t first, n;
};

/* A ring that is new. */
struct new_row_table {
	struct row_table_row row;
	char *name; /* and the columns, one after the other: owned */
	struct row_column_row *columns;
};

/* New rows of a ring, and what it has lost so far. */
struct new_rows {
	int64_t row_table;
	struct row_bytes rows; /* owned */
	struct row_losses losses;
	bool has_new_losses;
};

#define BATCH_ARRAYS(X)                                                                                                \
	X(struct new_module, modules)                                                                                  \
	X(struct new_program, programs)                                                                                \
	X(struct new_dump, dumps)                                                                                      \
	X(struct new_process, processes)                                                                               \
	X(struct new_thread, threads)                                                                                  \
	X(struct new_frame, frames)                                                                                    \
	X(struct stack_row, stacks)                                                                                    \
	X(struct sample_row, samples)                                                                                  \
	X(struct new_record, records)                                                                                  \
	X(uint8_t, raw)                                                                                                \
	X(struct total_row, totals)                                                                                    \
	X(struct pause_row, pauses)                                                                                    \
	X(struct new_metric, metrics)                                                                                  \
	X(struct metric_value, metric_values)                                                                          \
	X(char, metric_text)                                                                                           \
	X(struct new_row_table, row_tables)                                                                            \
	X(struct new_rows, rows)

struct batch {
#define X(type, name)                                                                                                  \
	type *name;                                                                                                    \
	size_t n_##name, name##_allocated;
	BATCH_ARRAYS(X)
#undef X
	uint32_t old_stacks, old_frames; /* a new tree begins here: the last numbers before it; 0: none does */
	struct batch *next;              /* in the queue */
};

int batch_new(struct batch **ret);
void batch_free(struct batch *batch);
/* Empty it, keeping the memory. */
void batch_clear(struct batch *batch);
bool batch_is_empty(const struct batch *batch);

/* Appends a zeroed element; NULL: out of memory. */
#define BATCH_ADD(batch, name)                                                                                         \
	(grow(&(batch)->name, (batch)->n_##name, &(batch)->name##_allocated, sizeof *(batch)->name) < 0                \
		 ? NULL                                                                                                \
		 : memset(&(batch)->name[(batch)->n_##name++], 0, sizeof *(batch)->name))

#endif
