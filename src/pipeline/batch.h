/* batch.h - what is new since the last flush, on its way to the writer. Private.
 *
 * A batch owns its strings. Modules and codes are pointed to: both live as
 * long as the pipeline, and what the writer reads of them never changes.
 */
#ifndef PROBING_BATCH_H
#define PROBING_BATCH_H

#include "base/address_space.h"
#include "src/store/store.h"
#include "unwind/cpython/cpython.h"

struct new_module {
	int64_t id;
	const struct module *module;
};

struct new_frame {
	uint32_t id;
	enum frame_kind kind;
	bool is_eval;
	int line;                    /* python */
	const struct py_code *code;  /* python */
	const struct module *module; /* native; NULL anonymous */
	int64_t module_id;
	uint64_t address; /* native: own address; kernel: ip */
};

struct new_process {
	struct process_row row;
	char *name, *command, *python;
};

struct new_thread {
	struct thread_row row;
	char name[32];
};

#define BATCH_ARRAYS(X)                                                                            \
	X(struct new_module, modules)                                                              \
	X(struct new_process, processes)                                                           \
	X(struct new_thread, threads)                                                              \
	X(struct new_frame, frames)                                                                \
	X(struct stack_row, stacks)                                                                \
	X(struct sample_row, samples)                                                              \
	X(struct total_row, totals)

struct batch {
#define X(type, name)                                                                              \
	type *name;                                                                                \
	size_t n_##name, name##_allocated;
	BATCH_ARRAYS(X)
#undef X
	struct batch *next; /* in the queue */
};

int batch_new(struct batch **ret);
void batch_free(struct batch *batch);
/* Empty it, keeping the memory. */
void batch_clear(struct batch *batch);
bool batch_is_empty(const struct batch *batch);

/* Appends a zeroed element; NULL: out of memory. */
#define BATCH_ADD(batch, name)                                                                     \
	(grow(&(batch)->name, (batch)->n_##name, &(batch)->name##_allocated,                       \
	      sizeof *(batch)->name) < 0                                                           \
		 ? NULL                                                                            \
		 : memset(&(batch)->name[(batch)->n_##name++], 0, sizeof *(batch)->name))

#endif
