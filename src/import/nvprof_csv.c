/* SPDX-License-Identifier: MIT */
/* nvprof_csv.c - tables of nvprof --csv: summaries, and traces of activities or of calls. Which it is its head says. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/import/decimal.h"
#include "src/import/lines.h"
#include "src/import/nvprof.h"

/* clang-format off */
static const char *const names[N_COLUMNS] = {
	[COLUMN_TYPE] = "Type", [COLUMN_TIME] = "Time", [COLUMN_CALLS] = "Calls", [COLUMN_AVG] = "Avg", [COLUMN_MIN] = "Min",
	[COLUMN_MAX] = "Max", [COLUMN_NAME] = "Name", [COLUMN_START] = "Start", [COLUMN_DURATION] = "Duration",
	[COLUMN_GRID_X] = "Grid X", [COLUMN_GRID_Y] = "Grid Y", [COLUMN_GRID_Z] = "Grid Z", [COLUMN_BLOCK_X] = "Block X",
	[COLUMN_BLOCK_Y] = "Block Y", [COLUMN_BLOCK_Z] = "Block Z", [COLUMN_REGISTERS] = "Registers Per Thread",
	[COLUMN_STATIC] = "Static SMem", [COLUMN_DYNAMIC] = "Dynamic SMem", [COLUMN_SIZE] = "Size",
	[COLUMN_SOURCE] = "SrcMemType", [COLUMN_DESTINATION] = "DstMemType", [COLUMN_DEVICE] = "Device",
	[COLUMN_CONTEXT] = "Context", [COLUMN_STREAM] = "Stream", [COLUMN_CORRELATION] = "Correlation_ID",
};
/* clang-format on */

bool nvprof_csv_head(struct nvprof *nvprof, struct piece line)
{
	struct piece fields[CSV_MAX_FIELDS];
	size_t n = csv_split(line, fields);
	int columns[N_COLUMNS];

	for (int i = 0; i < N_COLUMNS; i++) {
		columns[i] = -1;
		for (size_t j = 0; j < n && columns[i] < 0; j++)
			if (piece_is(fields[j], names[i]))
				columns[i] = (int)j;
	}
	if (columns[COLUMN_NAME] < 0 ||
	    (columns[COLUMN_DURATION] < 0 && (columns[COLUMN_TIME] < 0 || columns[COLUMN_CALLS] < 0)))
		return false;
	for (int i = 0; i < N_COLUMNS; i++) {
		nvprof->columns[i] = columns[i];
		nvprof->units[i] = 1;
	}
	/* API calls in a trace have no device columns. */
	if (columns[COLUMN_START] >= 0)
		nvprof->type = columns[COLUMN_STREAM] >= 0 ? NVPROF_ACTIVITIES : NVPROF_CALLS;
	nvprof->is_csv = nvprof->wants_units = nvprof->is_table = true;
	return true;
}

static double byte_unit(struct piece unit)
{
	return piece_is(unit, "KB")   ? 1024
	       : piece_is(unit, "MB") ? 1 << 20
	       : piece_is(unit, "GB") ? 1 << 30
	       : piece_is(unit, "B")  ? 1
				      : 0;
}

static void read_units(struct nvprof *nvprof, const struct piece *fields, size_t n)
{
	for (int i = 0; i < N_COLUMNS; i++) {
		int at = nvprof->columns[i];
		double unit = at >= 0 && (size_t)at < n ? time_unit(fields[at]) : 0;

		if (unit == 0 && at >= 0 && (size_t)at < n)
			unit = byte_unit(fields[at]);
		if (unit > 0)
			nvprof->units[i] = unit;
	}
	nvprof->wants_units = false;
}

/* ---- A row ---- */

struct row {
	const struct nvprof *nvprof;
	const struct piece *fields;
	size_t n;
};

static struct piece field_of(const struct row *row, enum nvprof_column column)
{
	int at = row->nvprof->columns[column];

	return at >= 0 && (size_t)at < row->n ? row->fields[at] : (struct piece){ 0 };
}

static int64_t number_of(const struct row *row, enum nvprof_column column)
{
	int64_t value;
	double number;

	if (!piece_decimal(field_of(row, column), &number) ||
	    !whole_number(number * row->nvprof->units[column], &value))
		return GPU_UNKNOWN;
	return value;
}

static char *text_of(const struct row *row, enum nvprof_column column)
{
	struct piece field = field_of(row, column);

	return field.n > 0 ? strndup(field.at, field.n) : NULL;
}

/* false: a required field is missing. */
static bool read_span(const struct row *row, struct gpu_span *ret)
{
	bool is_trace = row->nvprof->columns[COLUMN_START] >= 0;

	ret->start_ns = is_trace ? number_of(row, COLUMN_START) : GPU_UNKNOWN;
	ret->duration_ns = number_of(row, is_trace ? COLUMN_DURATION : COLUMN_TIME);
	ret->calls = is_trace ? 1 : number_of(row, COLUMN_CALLS);
	ret->min_ns = is_trace ? ret->duration_ns : number_of(row, COLUMN_MIN);
	ret->max_ns = is_trace ? ret->duration_ns : number_of(row, COLUMN_MAX);
	return ret->name && ret->duration_ns >= 0 && ret->calls >= 0 && ret->min_ns >= 0 && ret->max_ns >= 0;
}

static void read_numbers(const struct row *row, const char *device, struct gpu_kernel_row *kernel,
			 struct gpu_memcpy_row *copy)
{
	for (int i = 0; i < 3; i++) {
		kernel->grid[i] = number_of(row, COLUMN_GRID_X + i);
		kernel->block[i] = number_of(row, COLUMN_BLOCK_X + i);
	}
	kernel->registers = number_of(row, COLUMN_REGISTERS);
	kernel->static_shared_bytes = number_of(row, COLUMN_STATIC);
	kernel->dynamic_shared_bytes = number_of(row, COLUMN_DYNAMIC);
	copy->bytes = number_of(row, COLUMN_SIZE);
	kernel->place = copy->place = (struct gpu_place){
		.device = device,
		.context = number_of(row, COLUMN_CONTEXT),
		.stream = number_of(row, COLUMN_STREAM),
		.correlation = number_of(row, COLUMN_CORRELATION),
	};
}

/* A trace appends the correlation to a kernel's name, "axpy(float*) [104]", which would make each name unique. */
static void cut_correlation(const struct row *row, char *name)
{
	char ending[32];
	int64_t correlation = number_of(row, COLUMN_CORRELATION);
	size_t n_name = name ? strlen(name) : 0, n;

	if (!name || correlation == GPU_UNKNOWN)
		return;
	n = (size_t)snprintf(ending, sizeof ending, " [%" PRId64 "]", correlation);
	if (n_name > n && strcmp(name + n_name - n, ending) == 0)
		name[n_name - n] = '\0';
}

static int put_row(struct nvprof *nvprof, const struct row *row)
{
	CLEANUP(freep) char *name = text_of(row, COLUMN_NAME);
	CLEANUP(freep) char *device = text_of(row, COLUMN_DEVICE);
	CLEANUP(freep) char *source = text_of(row, COLUMN_SOURCE);
	CLEANUP(freep) char *destination = text_of(row, COLUMN_DESTINATION);
	struct gpu_kernel_row kernel;
	struct gpu_memcpy_row copy = { .source = source, .destination = destination };
	struct gpu_span span = { .name = name };

	cut_correlation(row, name);
	if (!read_span(row, &span)) {
		sink_skip(nvprof->sink);
		return 0;
	}
	read_numbers(row, device, &kernel, &copy);
	return nvprof_put(nvprof, &span, &kernel, &copy);
}

int nvprof_csv_line(struct nvprof *nvprof, struct piece line)
{
	struct piece fields[CSV_MAX_FIELDS];
	size_t n = csv_split(line, fields);
	struct row row = { nvprof, fields, n };

	if (nvprof->wants_units) {
		read_units(nvprof, fields, n);
		return 0;
	}
	if (n < 2) /* a table ends with an empty line or a message */
		return 0;
	if (nvprof->columns[COLUMN_TYPE] >= 0)
		nvprof->type = nvprof_type_of(field_of(&row, COLUMN_TYPE));
	return put_row(nvprof, &row);
}
