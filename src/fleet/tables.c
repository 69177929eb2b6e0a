/* SPDX-License-Identifier: MIT */
/* tables.c - see tables.h. */
#include "src/fleet/tables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define ZSTD "ZSTD(1)"

static const struct fleet_column samples[] = {
	{ "job", "LowCardinality(String)", "String", NULL, "String", "name of the job (ship --job)" },
	{ "run", "UInt64", NULL, ZSTD, NULL, "the recording: runs.run" },
	{ "rank", "Int32", NULL, ZSTD, NULL, "of the process in its job; -1: unknown" },
	{ "pid", "UInt32", NULL, ZSTD, NULL, "the process" },
	{ "tid", "UInt32", NULL, ZSTD, NULL, "the thread" },
	{ "cpu", "UInt16", NULL, ZSTD, NULL, "the CPU it ran on" },
	{ "time", "DateTime64(3, 'UTC')", "DateTime('UTC')", "DoubleDelta, ZSTD(1)", NULL,
	  "of the sample, UTC; of a wait: when the thread left the CPU. 18.16: whole seconds" },
	{ "ms", "", "UInt16", NULL, NULL, "18.16: milliseconds of time" },
	{ "number", "UInt16", NULL, ZSTD, NULL, "of samples of a thread in the same millisecond, from 0" },
	{ "stack", "LowCardinality(UInt64)", "UInt64", ZSTD, "UInt64",
	  "functions of its stack: stacks.stack; 0: none" },
	{ "leaf", "UInt16", NULL, ZSTD, NULL, "executing line of its innermost Python frame; 0: unknown" },
	{ "weight", "LowCardinality(UInt64)", "UInt64", ZSTD, "UInt64", "what it stands for: runs.unit" },
	{ "flags", "UInt16", NULL, ZSTD, NULL,
	  "bits from the lowest: 3 verdict, 3 stack end, 2 GIL, 2 garbage collection, 4 state" },
	{ "block", "UInt32", NULL, ZSTD, NULL, "the shipment: shipments.block" },
	{ "time_ms", "UInt64 ALIAS toUnixTimestamp64Milli(time)", "UInt64 ALIAS toUInt64(toUInt32(time)) * 1000 + ms",
	  NULL, "", "milliseconds since 1970, in all versions" },
};

static const struct fleet_column totals[] = {
	{ "job", "LowCardinality(String)", "String", NULL, "String", "the job" },
	{ "minute", "DateTime('UTC')", NULL, ZSTD, NULL, "beginning of the minute, UTC" },
	{ "run", "UInt64", NULL, ZSTD, NULL, "the recording: runs.run" },
	{ "rank", "Int32", NULL, ZSTD, NULL, "of the process in its job; -1: unknown" },
	{ "stack", "UInt64", NULL, ZSTD, NULL, "functions of the stack: stacks.stack; 0: none" },
	{ "gil", "Int8", NULL, ZSTD, NULL, "1: the thread held the GIL; 0: it did not; -1: unknown" },
	{ "state", "Int8", NULL, ZSTD, NULL, "of the thread, as in samples.flags; 0: unknown" },
	{ "samples", "UInt32", NULL, ZSTD, NULL, "number of samples" },
	{ "weight", "UInt64", NULL, ZSTD, NULL, "sum of their weights" },
	{ "block", "UInt32", NULL, ZSTD, NULL, "the shipment: shipments.block" },
};

static const struct fleet_column stacks[] = {
	{ "stack", "UInt64", NULL, NULL, NULL, "the first 8 bytes of hash, as a little-endian number" },
	{ "hash", "FixedString(16)", NULL, NULL, NULL, "128 bits of SHA-256 over the functions' hashes" },
	{ "functions", "Array(UInt64)", NULL, ZSTD, NULL, "functions.function, from the outermost to the innermost" },
	{ "seen", "Date", NULL, NULL, NULL, "day of the insert" },
};

static const struct fleet_column functions[] = {
	{ "function", "UInt64", NULL, NULL, NULL, "the first 8 bytes of hash, as a little-endian number" },
	{ "hash", "FixedString(16)", NULL, NULL, NULL,
	  "128 bits of SHA-256 over kind, role, name, file, line and module" },
	{ "kind", "LowCardinality(String)", "String", NULL, "String",
	  "python, native, kernel, task, wait or unsampled" },
	{ "role", "LowCardinality(String)", "String", NULL, "String",
	  "builtin: a C function Python can call; internal: of the interpreter; eval: its loop; '': neither" },
	{ "name", "String", NULL, ZSTD, NULL, "as in named_frame; libfoo.so+0x1234 if it is unknown" },
	{ "file", "String", NULL, ZSTD, NULL, "source file; '': unknown" },
	{ "line", "UInt32", NULL, ZSTD, NULL, "where it begins in file; 0: unknown" },
	{ "module", "String", NULL, ZSTD, NULL, "path of the file with the code; '': Python, or generated code" },
	{ "build_id", "String", NULL, ZSTD, NULL, "of that file, hexadecimal; '': none" },
	{ "seen", "Date", NULL, NULL, NULL, "day of the insert" },
};

static const struct fleet_column runs[] = {
	{ "run", "UInt64", NULL, NULL, NULL, "the first 8 bytes of hash, as a little-endian number" },
	{ "hash", "FixedString(16)", NULL, NULL, NULL, "128 bits of SHA-256 over what identifies the recording" },
	{ "job", "String", NULL, NULL, NULL, "the job" },
	{ "host", "String", NULL, NULL, NULL, "that recorded it" },
	{ "command", "String", NULL, NULL, NULL, "command line of the recorded program" },
	{ "mode", "String", NULL, NULL, NULL, "cpu, wall, offcpu, event or imported" },
	{ "unit", "String", NULL, NULL, NULL, "of weight: ns, or count" },
	{ "event", "String", NULL, NULL, NULL, "the sampling event; '': the CPU clock" },
	{ "stack_source", "String", NULL, NULL, NULL, "reader of Python frames" },
	{ "python", "String", NULL, NULL, NULL, "version of the first interpreter; '': none" },
	{ "kernel", "String", NULL, NULL, NULL, "uname -r" },
	{ "probing", "String", NULL, NULL, NULL, "version that recorded" },
	{ "hz", "Float64", NULL, NULL, NULL, "samples a second and thread; 0: by period" },
	{ "cpus", "UInt32", NULL, NULL, NULL, "online CPUs" },
	{ "started", "DateTime('UTC')", NULL, NULL, NULL, "UTC" },
	{ "ended", "DateTime('UTC')", NULL, NULL, NULL, "1970: not known to have ended" },
	{ "version", "UInt64", NULL, NULL, NULL, "when this row was sent, ns since 1970: the last one counts" },
};

static const struct fleet_column threads[] = {
	{ "run", "UInt64", NULL, NULL, NULL, "the recording: runs.run" },
	{ "pid", "UInt32", NULL, NULL, NULL, "the process" },
	{ "tid", "UInt32", NULL, NULL, NULL, "the thread" },
	{ "rank", "Int32", NULL, NULL, NULL, "of the process in its job; -1: unknown" },
	{ "name", "String", NULL, NULL, NULL, "Python's name of the thread, or the system's" },
	{ "process", "String", NULL, NULL, NULL, "name of the process" },
	{ "started", "DateTime('UTC')", NULL, NULL, NULL, "of the recording, UTC" },
	{ "version", "UInt64", NULL, NULL, NULL, "when this row was sent, ns since 1970: the last one counts" },
};

static const struct fleet_column shipments[] = {
	{ "run", "UInt64", NULL, NULL, NULL, "the recording: runs.run" },
	{ "block", "UInt32", NULL, NULL, NULL, "number of the shipment, from 1" },
	{ "job", "String", NULL, NULL, NULL, "the job" },
	{ "first", "UInt64", NULL, NULL, NULL, "number of its first sample in the recording" },
	{ "last", "UInt64", NULL, NULL, NULL, "number of the last one" },
	{ "day", "Date", NULL, NULL, NULL, "day of its samples, UTC; other days of that range are other shipments" },
	{ "samples", "UInt32", NULL, NULL, NULL, "number of samples" },
	{ "weight", "UInt64", NULL, NULL, NULL, "sum of their weights" },
	{ "totals", "UInt32", NULL, NULL, NULL, "rows of it in totals" },
	{ "raw", "UInt8", NULL, NULL, NULL, "1: the samples themselves were sent, too" },
	{ "sent", "DateTime('UTC')", NULL, NULL, NULL, "when it was complete, UTC" },
};

#define COLUMNS(array) .columns = (array), .n_columns = N_ELEMENTS(array)

const struct fleet_table fleet_tables[FLEET_N_TABLES] = {
	[FLEET_SAMPLES] = { .name = "samples",
			    .doc = "A row is a sample",
			    COLUMNS(samples),
			    .partition = "toDate(time)",
			    .order = "(job, intDiv(toUInt32(time), 600), run, tid, time, number, block)",
			    .old_order = "(job, intDiv(toUInt32(time), 600), run, tid, time, ms, number, block)",
			    .ttl = "toDateTime(time)" },
	[FLEET_TOTALS] = { .name = "totals",
			   .doc = "Samples of a minute with the same stack, added up by the shipper",
			   COLUMNS(totals),
			   .partition = "toDate(minute)",
			   .order = "(job, intDiv(toUInt32(minute), 600), minute, stack, run, rank, gil, state, block)",
			   .ttl = "minute" },
	[FLEET_STACKS] = { .name = "stacks",
			   .doc = "The functions of a stack",
			   COLUMNS(stacks),
			   .partition = "toMonday(seen)",
			   .order = "stack",
			   .ttl = "seen",
			   .granularity = 1024 },
	[FLEET_FUNCTIONS] = { .name = "functions",
			      .doc = "A function with its name",
			      COLUMNS(functions),
			      .partition = "toMonday(seen)",
			      .order = "function",
			      .ttl = "seen",
			      .granularity = 1024 },
	[FLEET_RUNS] = { .name = "runs",
			 .doc = "A recording",
			 COLUMNS(runs),
			 .partition = "toMonday(started)",
			 .order = "(job, run)",
			 .version = "version",
			 .ttl = "started",
			 .granularity = 1024 },
	[FLEET_THREADS] = { .name = "threads",
			    .doc = "A thread of a recording",
			    COLUMNS(threads),
			    .partition = "toMonday(started)",
			    .order = "(run, pid, tid)",
			    .version = "version",
			    .ttl = "started",
			    .granularity = 1024 },
	[FLEET_SHIPMENTS] = { .name = "shipments",
			      .doc = "A range of a recording's samples that has arrived completely",
			      COLUMNS(shipments),
			      .partition = "toMonday(day)",
			      .order = "(run, block)",
			      .ttl = "day",
			      .granularity = 1024 },
};

int fleet_parse_version(const char *text, enum fleet_dialect *ret)
{
	unsigned major, minor;

	if (sscanf(text, "%u.%u", &major, &minor) != 2)
		return -EINVAL;
	if (major == 18 && minor == 16)
		*ret = FLEET_OLD;
	else if (major > 20 || (major == 20 && minor >= 8))
		*ret = FLEET_NEW;
	else
		return -EPROTONOSUPPORT;
	return 0;
}

const char *fleet_column_type(const struct fleet_column *column, enum fleet_dialect dialect)
{
	const char *type = dialect == FLEET_OLD && column->old_type ? column->old_type : column->type;

	return type[0] ? type : NULL;
}

const char *fleet_wire_type(const struct fleet_column *column, enum fleet_dialect dialect)
{
	if (!fleet_column_type(column, dialect) || (column->wire && !column->wire[0]))
		return NULL;
	return column->wire ? column->wire : fleet_column_type(column, dialect);
}

bool fleet_is_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

	return name[0] && !(name[0] >= '0' && name[0] <= '9') && strlen(name) <= FLEET_MAX_NAME &&
	       name[strspn(name, letters)] == '\0';
}

int fleet_text(const char *text, char *to, size_t n_bytes)
{
	size_t n = strlen(text), at;

	if (n_bytes < 2 * n + sizeof "unhex('')")
		return -ENAMETOOLONG;
	at = (size_t)snprintf(to, n_bytes, "unhex('");
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(to + at, n_bytes - at, "%02X", (unsigned char)text[i]);
	snprintf(to + at, n_bytes - at, "')");
	return 0;
}

/* ---- Statements ---- */

const char *fleet_create_setting(enum fleet_dialect dialect)
{
	return dialect == FLEET_NEW ? "allow_suspicious_low_cardinality_types=1" : NULL;
}

static void print_column(FILE *out, const struct fleet_column *column, enum fleet_dialect dialect)
{
	fprintf(out, "%s %s", column->name, fleet_column_type(column, dialect));
	if (dialect == FLEET_NEW && column->codec)
		fprintf(out, " CODEC(%s)", column->codec);
}

static void print_columns(FILE *out, const struct fleet_table *table, enum fleet_dialect dialect)
{
	const char *before = " (\n  ";

	for (size_t i = 0; i < table->n_columns; i++) {
		if (!fleet_column_type(&table->columns[i], dialect))
			continue;
		fputs(before, out);
		print_column(out, &table->columns[i], dialect);
		before = ",\n  ";
	}
	fputs(")", out);
}

static void print_engine(FILE *out, const struct fleet_place *place, const struct fleet_table *table)
{
	if (place->is_replicated)
		fprintf(out,
			"\nENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/%s/%s_local', '{replica}'%s%s)",
			place->database, table->name, table->version ? ", " : "", table->version ? table->version : "");
	else
		fprintf(out, "\nENGINE = ReplacingMergeTree(%s)", table->version ? table->version : "");
	fprintf(out, "\nPARTITION BY %s ORDER BY %s", table->partition,
		place->dialect == FLEET_OLD && table->old_order ? table->old_order : table->order);
}

static unsigned days_of(const struct fleet_place *place, enum fleet_table_id table)
{
	return table == FLEET_SAMPLES ? place->keep_days : place->keep_totals_days;
}

/* Rows that a shipper asks about, and ranks, stay a week longer than what they are about. */
static bool has_ttl(const struct fleet_place *place, enum fleet_table_id table)
{
	return place->dialect == FLEET_NEW && fleet_tables[table].ttl && days_of(place, table) > 0;
}

static void print_ttl(FILE *out, const struct fleet_place *place, enum fleet_table_id table)
{
	fprintf(out, "TTL %s + INTERVAL %u DAY", fleet_tables[table].ttl,
		days_of(place, table) + (table >= FLEET_STACKS ? 7 : 0));
}

/*
 * The window of deduplication makes the server itself drop a repeated insert with the same token. ttl_only_drop_parts:
 * old parts are removed whole, never rewritten.
 */
static void print_settings(FILE *out, const struct fleet_place *place, enum fleet_table_id id)
{
	const struct fleet_table *table = &fleet_tables[id];

	fprintf(out, "\nSETTINGS index_granularity = %u", table->granularity ? table->granularity : 8192);
	if (place->dialect == FLEET_NEW && !place->is_replicated)
		fputs(", non_replicated_deduplication_window = 10000", out);
	if (has_ttl(place, id))
		fputs(", ttl_only_drop_parts = 1", out);
}

/* An alias is no part of what a Merge or Distributed table inherits in 18.16, so each gets all columns. */
static void print_for_reading(FILE *out, const struct fleet_place *place, const struct fleet_table *table)
{
	print_columns(out, table, place->dialect);
	if (place->cluster)
		fprintf(out, "\nENGINE = Distributed(%s, %s, %s_local)", place->cluster, place->database, table->name);
	else
		fprintf(out, "\nENGINE = Merge(%s, '^%s_local$')", place->database, table->name);
}

static void print_local(FILE *out, const struct fleet_place *place, enum fleet_table_id table)
{
	print_columns(out, &fleet_tables[table], place->dialect);
	print_engine(out, place, &fleet_tables[table]);
	if (has_ttl(place, table)) {
		fputc('\n', out);
		print_ttl(out, place, table);
	}
	print_settings(out, place, table);
}

/* Opens the statement's text. */
static FILE *statement(char **text, size_t *n)
{
	*text = NULL;
	return open_memstream(text, n);
}

/* Closes it. -ENOMEM. */
static int finish(FILE *out, char **text, char **ret)
{
	bool failed = ferror(out) != 0;

	if (fclose(out) != 0 || failed || !*text) {
		free(*text);
		return -ENOMEM;
	}
	*ret = *text;
	return 0;
}

int fleet_create(const struct fleet_place *place, enum fleet_table_id table, bool is_for_reading, char **ret)
{
	char *text;
	size_t n;
	FILE *out = statement(&text, &n);

	if (!out)
		return -ENOMEM;
	fprintf(out, "CREATE TABLE IF NOT EXISTS %s.%s%s", place->database, fleet_tables[table].name,
		is_for_reading ? "" : "_local");
	if (is_for_reading)
		print_for_reading(out, place, &fleet_tables[table]);
	else
		print_local(out, place, table);
	return finish(out, &text, ret);
}

int fleet_add_column(const struct fleet_place *place, enum fleet_table_id table, bool is_for_reading, size_t column,
		     char **ret)
{
	const struct fleet_column *added = &fleet_tables[table].columns[column];
	char *text;
	size_t n;
	FILE *out;

	if (!fleet_column_type(added, place->dialect))
		return -ENOENT;
	out = statement(&text, &n);
	if (!out)
		return -ENOMEM;
	fprintf(out, "ALTER TABLE %s.%s%s ADD COLUMN ", place->database, fleet_tables[table].name,
		is_for_reading ? "" : "_local");
	print_column(out, added, place->dialect);
	return finish(out, &text, ret);
}

int fleet_set_ttl(const struct fleet_place *place, enum fleet_table_id table, char **ret)
{
	char *text;
	size_t n;
	FILE *out;

	if (!has_ttl(place, table))
		return -ENOENT;
	out = statement(&text, &n);
	if (!out)
		return -ENOMEM;
	fprintf(out, "ALTER TABLE %s.%s_local MODIFY ", place->database, fleet_tables[table].name);
	print_ttl(out, place, table);
	return finish(out, &text, ret);
}
