/* SPDX-License-Identifier: MIT */
/* nvprof.h - declarations for the two formats of nvprof. Private to import_nvprof.c and nvprof_csv.c. */
#ifndef PROBING_IMPORT_NVPROF_H
#define PROBING_IMPORT_NVPROF_H

#include "src/import/csv.h"
#include "src/import/sink.h"

/* Kind of a table: "GPU activities", "API calls", "Range". */
enum nvprof_type { NVPROF_NONE, NVPROF_ACTIVITIES, NVPROF_CALLS, NVPROF_RANGES };

enum nvprof_column {
	COLUMN_TYPE,
	COLUMN_TIME,
	COLUMN_CALLS,
	COLUMN_AVG,
	COLUMN_MIN,
	COLUMN_MAX,
	COLUMN_NAME,
	COLUMN_START,
	COLUMN_DURATION,
	COLUMN_GRID_X,
	COLUMN_GRID_Y,
	COLUMN_GRID_Z,
	COLUMN_BLOCK_X,
	COLUMN_BLOCK_Y,
	COLUMN_BLOCK_Z,
	COLUMN_REGISTERS,
	COLUMN_STATIC,
	COLUMN_DYNAMIC,
	COLUMN_SIZE,
	COLUMN_SOURCE,
	COLUMN_DESTINATION,
	COLUMN_DEVICE,
	COLUMN_CONTEXT,
	COLUMN_STREAM,
	COLUMN_CORRELATION,
	N_COLUMNS
};

struct nvprof {
	struct sink *sink;
	const char *file;
	char command[512];
	int64_t pid;    /* GPU_UNKNOWN: not given */
	bool has_trace; /* the trace of the rows exists */
	bool is_ranges; /* within "NVTX result:", where activities come a second time */
	bool is_csv, wants_units, is_table;
	enum nvprof_type type;
	int columns[N_COLUMNS];  /* index of each in a CSV table; -1: missing */
	double units[N_COLUMNS]; /* nanoseconds, or bytes */
};

/* A row of the table's kind; "[CUDA memcpy HtoD]" is no kernel. */
int nvprof_put(struct nvprof *nvprof, const struct gpu_span *span, struct gpu_kernel_row *kernel,
	       struct gpu_memcpy_row *memcpy);

/* Create the trace of the rows, unless it exists. */
int nvprof_begin(struct nvprof *nvprof);

/* The head of a table in CSV; the line of units; a row. false: it is none. */
bool nvprof_csv_head(struct nvprof *nvprof, struct piece line);
int nvprof_csv_line(struct nvprof *nvprof, struct piece line);

enum nvprof_type nvprof_type_of(struct piece text);

#endif
