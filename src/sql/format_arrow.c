/* SPDX-License-Identifier: MIT */
/*
 * format_arrow.c - Arrow IPC in its stream format: a schema, batches of rows, and an end mark; such a stream for each result.
 *
 * SQLite's columns have no type, Arrow's do. A column gets the one that all values of its first batch fit into: int64, float64, utf8 or
 * binary, in that order; without a value there, its declared one. A later value that does not fit ends the result with -ERANGE.
 *
 * Source: arrow.apache.org/docs/format/Columnar.html, "Serialization and Interprocess Communication (IPC)"; Message.fbs and Schema.fbs
 * of Arrow 18, whose numbers of fields and types are below.
 */
#include "src/sql/format.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "src/sql/flat.h"
#include "src/sql/text.h"

enum {
	BATCH_ROWS = 16384, /* more than probing serve returns by default, so that its types are those of all rows */
	BATCH_BYTES = 8 << 20,
	ALIGNMENT = 8,
	CONTINUATION = -1,
	METADATA_V5 = 4,
	HEADER_SCHEMA = 1,
	HEADER_BATCH = 3,
	TYPE_INT = 2,
	TYPE_FLOATING_POINT = 3,
	TYPE_BINARY = 4,
	TYPE_UTF8 = 5,
	PRECISION_DOUBLE = 2,
	STRUCT_BYTES = 16, /* FieldNode and Buffer: two numbers of 64 bits */
	MAX_BUFFERS = 3,   /* of a column: which values there are, where they end, and they */
};

/* In this order: values of each fit into the later ones. */
enum kind { KIND_NULL, KIND_INTEGER, KIND_REAL, KIND_TEXT, KIND_BLOB };

struct cell {
	enum kind kind;
	uint32_t n_bytes; /* of texts and blobs */
	union {
		int64_t integer;
		double real;
		size_t at; /* in arrow.bytes */
	};
};

struct arrow {
	sqlite3_stmt *statement;
	FILE *out;
	struct flat flat;   /* the metadata of a message */
	enum kind *types;   /* of columns; once has_schema */
	struct cell *cells; /* of the current batch, row by row */
	size_t n_rows, allocated;
	struct sql_text bytes, clean;
	int n_columns, odd_column;
	bool has_schema, has_batch;
};

static void arrow_free(void *state)
{
	struct arrow *arrow = state;

	if (!arrow)
		return;
	flat_done(&arrow->flat);
	sql_text_done(&arrow->bytes);
	sql_text_done(&arrow->clean);
	free(arrow->types);
	free(arrow->cells);
	free(arrow);
}

DEFINE_CLEANUP(struct arrow *, arrow_free)

static int arrow_begin(sqlite3_stmt *statement, FILE *out, const struct sql_look *look, void **ret)
{
	CLEANUP(arrow_freep) struct arrow *arrow = calloc(1, sizeof *arrow);

	(void)look;
	if (!arrow)
		return -ENOMEM;
	arrow->statement = statement;
	arrow->out = out;
	arrow->n_columns = sqlite3_column_count(statement);
	arrow->types = calloc((size_t)arrow->n_columns, sizeof *arrow->types);
	if (!arrow->types)
		return -ENOMEM;
	*ret = TAKE(arrow);
	return 0;
}

/* ---- Messages ---- */

static void put_bytes(struct arrow *arrow, const void *bytes, size_t n)
{
	if (n > 0)
		fwrite(bytes, 1, n, arrow->out);
}

static size_t padding_of(size_t n)
{
	return (ALIGNMENT - n % ALIGNMENT) % ALIGNMENT;
}

static void put_padding(struct arrow *arrow, size_t n)
{
	static const uint8_t zeros[ALIGNMENT];

	put_bytes(arrow, zeros, padding_of(n));
}

/* Little-endian, as all of the metadata. */
static void put_word(struct arrow *arrow, uint32_t value)
{
	for (size_t i = 0; i < sizeof value; i++)
		putc((int)(value >> 8 * i & 0xff), arrow->out);
}

/* table Message { version: short; header_type: ubyte; header: offset; bodyLength: long }. Returns the position of header. */
static size_t begin_message(struct arrow *arrow, unsigned type, size_t body_bytes)
{
	static const uint8_t sizes[] = { 2, 1, 4, 8 };
	struct flat *flat = &arrow->flat;
	size_t at[N_ELEMENTS(sizes)], root = flat_begin(flat);

	flat_refer(flat, root, flat_table(flat, sizes, N_ELEMENTS(sizes), at));
	flat_put(flat, at[0], METADATA_V5, 2);
	flat_put(flat, at[1], type, 1);
	flat_put(flat, at[3], body_bytes, 8);
	return at[2];
}

static int end_message(struct arrow *arrow)
{
	const struct flat *flat = &arrow->flat;

	if (flat->is_short)
		return -ENOMEM;
	put_word(arrow, (uint32_t)CONTINUATION);
	put_word(arrow, (uint32_t)(flat->n + padding_of(flat->n)));
	put_bytes(arrow, flat->bytes, flat->n);
	put_padding(arrow, flat->n);
	return 0;
}

/* ---- Types ---- */

/* As SQLite reads a declaration (sqlite.org/datatype3.html, 3.1): by words in it. */
static enum kind declared_kind(sqlite3_stmt *statement, int column)
{
	const char *type = sqlite3_column_decltype(statement, column);

	if (!type)
		return KIND_NULL;
	if (strcasestr(type, "INT"))
		return KIND_INTEGER;
	if (strcasestr(type, "CHAR") || strcasestr(type, "CLOB") || strcasestr(type, "TEXT"))
		return KIND_TEXT;
	if (strcasestr(type, "BLOB"))
		return KIND_BLOB;
	return strcasestr(type, "REAL") || strcasestr(type, "FLOA") || strcasestr(type, "DOUB") ? KIND_REAL : KIND_NULL;
}

static struct cell *cell_at(const struct arrow *arrow, size_t row, int column)
{
	return &arrow->cells[row * (size_t)arrow->n_columns + (size_t)column];
}

static void choose_types(struct arrow *arrow)
{
	for (int column = 0; column < arrow->n_columns; column++) {
		enum kind declared = declared_kind(arrow->statement, column), kind = KIND_NULL;

		for (size_t row = 0; row < arrow->n_rows; row++)
			kind = MAX(kind, cell_at(arrow, row, column)->kind);
		if (kind == KIND_NULL)
			kind = declared == KIND_NULL ? KIND_TEXT : declared;
		else if (kind == KIND_INTEGER && declared == KIND_REAL)
			kind = KIND_REAL;
		arrow->types[column] = kind;
	}
}

/* Returns the table of a type. @ret_type: its number in the union Type. */
static size_t put_type(struct flat *flat, enum kind kind, unsigned *ret_type)
{
	static const uint8_t of_int[] = { 4, 1 }, of_floating_point[] = { 2 };
	size_t at[FLAT_MAX_FIELDS], table;

	switch (kind) {
	case KIND_INTEGER:
		*ret_type = TYPE_INT;
		table = flat_table(flat, of_int, N_ELEMENTS(of_int), at);
		flat_put(flat, at[0], 64, 4);
		flat_put(flat, at[1], true, 1);
		return table;
	case KIND_REAL:
		*ret_type = TYPE_FLOATING_POINT;
		table = flat_table(flat, of_floating_point, N_ELEMENTS(of_floating_point), at);
		flat_put(flat, at[0], PRECISION_DOUBLE, 2);
		return table;
	default:
		*ret_type = kind == KIND_BLOB ? TYPE_BINARY : TYPE_UTF8;
		return flat_table(flat, NULL, 0, at);
	}
}

/* table Field { name; nullable: bool; type_type: ubyte; type; dictionary; children }. Readers want the children, though there are none. */
static int put_field(struct arrow *arrow, int column, size_t *ret)
{
	static const uint8_t sizes[] = { 4, 1, 1, 4, 0, 4 };
	const char *name = sqlite3_column_name(arrow->statement, column);
	struct flat *flat = &arrow->flat;
	size_t at[N_ELEMENTS(sizes)];
	unsigned type;
	int r;

	if (!name)
		return -ENOMEM;
	arrow->clean.n = 0;
	r = sql_text_put_utf8(&arrow->clean, name, strlen(name));
	if (r < 0)
		return r;
	*ret = flat_table(flat, sizes, N_ELEMENTS(sizes), at);
	flat_put(flat, at[1], true, 1);
	flat_refer(flat, at[0], flat_string(flat, arrow->clean.bytes, arrow->clean.n));
	flat_refer(flat, at[3], put_type(flat, arrow->types[column], &type));
	flat_put(flat, at[2], type, 1);
	flat_refer(flat, at[5], flat_vector(flat, 0, 4, 4));
	return 0;
}

/* table Schema { endianness: short; fields: [Field] } */
static int put_schema(struct arrow *arrow)
{
	static const uint8_t sizes[] = { 2, 4 };
	struct flat *flat = &arrow->flat;
	size_t at[N_ELEMENTS(sizes)], header = begin_message(arrow, HEADER_SCHEMA, 0), fields, field;

	flat_refer(flat, header, flat_table(flat, sizes, N_ELEMENTS(sizes), at));
	flat_put(flat, at[0], __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, 2);
	fields = flat_vector(flat, (size_t)arrow->n_columns, 4, 4);
	flat_refer(flat, at[1], fields);
	for (int column = 0; column < arrow->n_columns; column++) {
		int r = put_field(arrow, column, &field);

		if (r < 0)
			return r;
		flat_refer(flat, fields + 4 + 4 * (size_t)column, field);
	}
	arrow->has_schema = true;
	return end_message(arrow);
}

/* ---- Batches ---- */

struct extent {
	size_t offset, n_bytes; /* in the body of a message */
};

/* What a batch has of a column. */
struct part {
	size_t n_nulls, n_bytes; /* n_bytes: of its texts or blobs */
	unsigned n_buffers;
	struct extent buffers[MAX_BUFFERS];
};

static bool is_bytes(enum kind kind)
{
	return kind >= KIND_TEXT;
}

/* Numbers of a column of texts become texts. */
static int spell(struct arrow *arrow, struct cell *cell)
{
	size_t at = arrow->bytes.n;
	char digits[24];
	int r;

	if (cell->kind == KIND_INTEGER) {
		int n = snprintf(digits, sizeof digits, "%lld", (long long)cell->integer);

		r = sql_text_put(&arrow->bytes, digits, (size_t)n);
	} else {
		r = sql_text_put_double(&arrow->bytes, cell->real);
	}
	*cell = (struct cell){ .kind = KIND_TEXT, .n_bytes = (uint32_t)(arrow->bytes.n - at), .at = at };
	return r;
}

static int measure(struct arrow *arrow, int column, struct part *ret)
{
	*ret = (struct part){ 0 };
	for (size_t row = 0; row < arrow->n_rows; row++) {
		struct cell *cell = cell_at(arrow, row, column);
		bool is_number = cell->kind == KIND_INTEGER || cell->kind == KIND_REAL;
		int r = is_number && is_bytes(arrow->types[column]) ? spell(arrow, cell) : 0;

		if (r < 0)
			return r;
		ret->n_nulls += cell->kind == KIND_NULL;
		ret->n_bytes += cell->n_bytes;
	}
	return 0;
}

/* Where the buffers of a column lie in the body, whose end moves on. */
static void place(const struct arrow *arrow, int column, struct part *part, size_t *end)
{
	bool has_bytes = is_bytes(arrow->types[column]);
	size_t sizes[MAX_BUFFERS] = { part->n_nulls > 0 ? (arrow->n_rows + 7) / 8 : 0,
				      has_bytes ? (arrow->n_rows + 1) * sizeof(int32_t)
						: arrow->n_rows * sizeof(int64_t),
				      part->n_bytes };

	part->n_buffers = has_bytes ? 3 : 2;
	for (unsigned i = 0; i < part->n_buffers; i++) {
		part->buffers[i] = (struct extent){ *end, sizes[i] };
		*end += sizes[i] + padding_of(sizes[i]);
	}
}

/* table RecordBatch { length: long; nodes: [FieldNode]; buffers: [Buffer] } */
static int put_batch_head(struct arrow *arrow, const struct part *parts, size_t body_bytes)
{
	static const uint8_t sizes[] = { 8, 4, 4 };
	struct flat *flat = &arrow->flat;
	size_t at[N_ELEMENTS(sizes)], header = begin_message(arrow, HEADER_BATCH, body_bytes), n_buffers = 0, nodes,
				      buffers;

	for (int column = 0; column < arrow->n_columns; column++)
		n_buffers += parts[column].n_buffers;
	flat_refer(flat, header, flat_table(flat, sizes, N_ELEMENTS(sizes), at));
	flat_put(flat, at[0], arrow->n_rows, 8);
	nodes = flat_vector(flat, (size_t)arrow->n_columns, STRUCT_BYTES, 8);
	flat_refer(flat, at[1], nodes);
	buffers = flat_vector(flat, n_buffers, STRUCT_BYTES, 8);
	flat_refer(flat, at[2], buffers);
	nodes += 4;
	buffers += 4;
	for (int column = 0; column < arrow->n_columns; column++, nodes += STRUCT_BYTES) {
		const struct part *part = &parts[column];

		flat_put(flat, nodes, arrow->n_rows, 8);
		flat_put(flat, nodes + 8, part->n_nulls, 8);
		for (unsigned i = 0; i < part->n_buffers; i++, buffers += STRUCT_BYTES) {
			flat_put(flat, buffers, part->buffers[i].offset, 8);
			flat_put(flat, buffers + 8, part->buffers[i].n_bytes, 8);
		}
	}
	return end_message(arrow);
}

/* A bit for each value that there is, the first one lowest. */
static void put_validity(struct arrow *arrow, int column)
{
	for (size_t row = 0; row < arrow->n_rows; row += 8) {
		unsigned bits = 0;

		for (size_t i = 0; i < 8 && row + i < arrow->n_rows; i++)
			bits |= (unsigned)(cell_at(arrow, row + i, column)->kind != KIND_NULL) << i;
		putc((int)bits, arrow->out);
	}
	put_padding(arrow, (arrow->n_rows + 7) / 8);
}

static void put_numbers(struct arrow *arrow, int column)
{
	for (size_t row = 0; row < arrow->n_rows; row++) {
		struct cell cell = *cell_at(arrow, row, column);

		if (arrow->types[column] == KIND_REAL && cell.kind == KIND_INTEGER)
			cell.real = (double)cell.integer;
		put_bytes(arrow, &cell.integer, sizeof cell.integer);
	}
}

static void put_texts(struct arrow *arrow, int column, size_t n_bytes)
{
	int32_t end = 0;

	put_bytes(arrow, &end, sizeof end);
	for (size_t row = 0; row < arrow->n_rows; row++) {
		end += (int32_t)cell_at(arrow, row, column)->n_bytes;
		put_bytes(arrow, &end, sizeof end);
	}
	put_padding(arrow, (arrow->n_rows + 1) * sizeof end);
	for (size_t row = 0; row < arrow->n_rows; row++) {
		const struct cell *cell = cell_at(arrow, row, column);

		if (cell->n_bytes > 0)
			put_bytes(arrow, arrow->bytes.bytes + cell->at, cell->n_bytes);
	}
	put_padding(arrow, n_bytes);
}

static int put_batch(struct arrow *arrow)
{
	CLEANUP(freep) struct part *parts = calloc((size_t)arrow->n_columns, sizeof *parts);
	size_t body_bytes = 0;
	int r = parts ? 0 : -ENOMEM;

	if (!arrow->has_schema && r >= 0) {
		choose_types(arrow);
		r = put_schema(arrow);
	}
	for (int column = 0; column < arrow->n_columns && r >= 0; column++) {
		r = measure(arrow, column, &parts[column]);
		place(arrow, column, &parts[column], &body_bytes);
	}
	if (r < 0 || (arrow->n_rows == 0 && arrow->has_batch)) /* a stream without batches puzzles readers */
		return r;
	arrow->has_batch = true;
	r = put_batch_head(arrow, parts, body_bytes);
	for (int column = 0; column < arrow->n_columns && r >= 0; column++) {
		if (parts[column].n_nulls > 0)
			put_validity(arrow, column);
		if (is_bytes(arrow->types[column]))
			put_texts(arrow, column, parts[column].n_bytes);
		else
			put_numbers(arrow, column);
	}
	arrow->n_rows = 0;
	arrow->bytes.n = 0;
	return r;
}

/* ---- Rows ---- */

static int take_bytes(struct arrow *arrow, int column, struct cell *cell)
{
	const void *bytes = cell->kind == KIND_TEXT ? (const void *)sqlite3_column_text(arrow->statement, column)
						    : sqlite3_column_blob(arrow->statement, column);
	size_t n = (size_t)sqlite3_column_bytes(arrow->statement, column);
	int r;

	if (!bytes && n > 0)
		return -ENOMEM;
	cell->at = arrow->bytes.n;
	r = cell->kind == KIND_TEXT ? sql_text_put_utf8(&arrow->bytes, bytes, n)
				    : sql_text_put(&arrow->bytes, bytes, n);
	if (arrow->bytes.n > INT32_MAX) /* ends of texts have 32 bits */
		return -ENOMEM;
	cell->n_bytes = (uint32_t)(arrow->bytes.n - cell->at);
	return r;
}

static int take_value(struct arrow *arrow, int column, struct cell *ret)
{
	*ret = (struct cell){ 0 };
	switch (sqlite3_column_type(arrow->statement, column)) {
	case SQLITE_INTEGER:
		ret->kind = KIND_INTEGER;
		ret->integer = sqlite3_column_int64(arrow->statement, column);
		return 0;
	case SQLITE_FLOAT:
		ret->kind = KIND_REAL;
		ret->real = sqlite3_column_double(arrow->statement, column);
		return 0;
	case SQLITE_TEXT:
		ret->kind = KIND_TEXT;
		return take_bytes(arrow, column, ret);
	case SQLITE_BLOB:
		ret->kind = KIND_BLOB;
		return take_bytes(arrow, column, ret);
	default:
		return 0;
	}
}

static int arrow_row(void *state)
{
	struct arrow *arrow = state;
	int r = grow(&arrow->cells, (arrow->n_rows + 1) * (size_t)arrow->n_columns, &arrow->allocated,
		     sizeof *arrow->cells);

	for (int column = 0; column < arrow->n_columns && r >= 0; column++) {
		struct cell *cell = cell_at(arrow, arrow->n_rows, column);

		r = take_value(arrow, column, cell);
		if (r >= 0 && arrow->has_schema && cell->kind > arrow->types[column]) {
			arrow->odd_column = column;
			r = -ERANGE;
		}
	}
	if (r < 0)
		return r;
	arrow->n_rows++;
	return arrow->n_rows >= BATCH_ROWS || arrow->bytes.n >= BATCH_BYTES ? put_batch(arrow) : 0;
}

static int arrow_end(void *state)
{
	struct arrow *arrow = state;
	int r = put_batch(arrow);

	put_word(arrow, (uint32_t)CONTINUATION);
	put_word(arrow, 0);
	return r;
}

static int arrow_odd_column(const void *state)
{
	const struct arrow *arrow = state;

	return arrow->odd_column;
}

const struct sql_writer sql_writer_arrow = {
	.name = "arrow",
	.begin = arrow_begin,
	.row = arrow_row,
	.end = arrow_end,
	.free = arrow_free,
	.odd_column = arrow_odd_column,
};
