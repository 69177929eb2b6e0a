/* SPDX-License-Identifier: MIT */
/* tables.h - the tables of a fleet in ClickHouse, from one template for all versions.
 *
 * Each column is described once: for the statements that create the tables, for the blocks that are sent, and for
 * readers. docs/fleet.md explains the tables.
 *
 * NAME_local has the rows of one server. NAME, for reading, shows those of all shards: Distributed in a cluster, Merge on
 * a single server. Writers write into NAME_local of the shard that run % shards selects.
 *
 * Invariants: 1. Inserted rows are never changed. The key of each table makes a row that was inserted twice one row
 * again. 2. A run's samples and totals carry the number of their shipment (block). It has rows of one day (UTC) only,
 * so that an insert is one part of a table: all or nothing. 3. No text of a recording is ever a part of a statement.
 * Names of databases and clusters are checked (fleet_is_name()); texts to compare with are hexadecimal digits
 * (fleet_text()).
 */
#ifndef PROBING_FLEET_TABLES_H
#define PROBING_FLEET_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a server can do, by its version. 18.16 lacks codecs, LowCardinality, DateTime64, TTL and users in SQL. */
enum fleet_dialect { FLEET_OLD, FLEET_NEW };

enum { FLEET_SCHEMA = 1, FLEET_MAX_NAME = 64 };

/*
 * fleet_parse_version - the dialect for the answer to SELECT version(), "26.7.2.1".
 * Errors: -EINVAL no version; -EPROTONOSUPPORT older than 18.16, or between it and 20.8, which nobody tried.
 */
int fleet_parse_version(const char *text, enum fleet_dialect *ret);

struct fleet_column {
	const char *name;
	const char *type, *old_type; /* in the statement; old_type NULL: the same; "": 18.16 has no such column */
	const char *codec;           /* NULL: the server's default */
	const char *wire;            /* type in a Native block, NULL: as in the statement; "": it is not sent */
	const char *doc;
};

struct fleet_table {
	const char *name; /* without "_local" */
	const char *doc;
	const struct fleet_column *columns;
	size_t n_columns;
	const char *partition, *order; /* expressions */
	const char *old_order;         /* of 18.16, whose times are seconds; NULL: the same */
	const char *version;           /* column whose largest value wins among rows of one key; NULL: any row */
	const char *ttl;      /* expression of type DateTime or Date that retention counts from; NULL: rows stay */
	unsigned granularity; /* rows per index entry; 0: the default */
};

enum fleet_table_id {
	FLEET_SAMPLES,
	FLEET_TOTALS,
	FLEET_STACKS,
	FLEET_FUNCTIONS,
	FLEET_RUNS,
	FLEET_THREADS,
	FLEET_SHIPMENTS,
	FLEET_N_TABLES,
};
extern const struct fleet_table fleet_tables[FLEET_N_TABLES];

/* The column's type in the table, and in a block; NULL: that dialect has none, or does not get it. */
const char *fleet_column_type(const struct fleet_column *column, enum fleet_dialect dialect);
const char *fleet_wire_type(const struct fleet_column *column, enum fleet_dialect dialect);

/*
 * Bits of samples.flags: words as base/sample.h numbers them; of gil and gc 0 is unknown, 1 no, 2 yes; of state 0 is
 * unknown (a recording of CPU time alone).
 */
enum fleet_flags {
	FLEET_VERDICT_SHIFT = 0, /* 3 bits, enum verdict */
	FLEET_END_SHIFT = 3,     /* 3 bits, enum stack_end */
	FLEET_GIL_SHIFT = 6,     /* 2 bits, enum answer */
	FLEET_GC_SHIFT = 8,      /* 2 bits, enum answer */
	FLEET_STATE_SHIFT = 10,  /* 4 bits, enum thread_state */
};

/* Where the tables go. Strings are borrowed; names have passed fleet_is_name(). */
struct fleet_place {
	enum fleet_dialect dialect;
	const char *database;
	const char *cluster;       /* of remote_servers; NULL: a single server */
	bool is_replicated;        /* Replicated tables, with the server's macros {shard} and {replica} */
	unsigned keep_days;        /* of samples; 0: for ever */
	unsigned keep_totals_days; /* of totals, stacks and functions; 0: for ever */
};

/* Letters, digits and "_", not first a digit, at most FLEET_MAX_NAME bytes. */
bool fleet_is_name(const char *name);

/*
 * fleet_text - a text as an expression of SQL, unhex('...'), which can mean nothing else.
 * Errors: -ENAMETOOLONG.
 */
int fleet_text(const char *text, char *to, size_t n_bytes);

/* A setting that the statements need, for the URL or SET; NULL: none. LowCardinality of numbers has to be asked for. */
const char *fleet_create_setting(enum fleet_dialect dialect);

/*
 * fleet_create - the statement that creates NAME_local, or with is_for_reading NAME. Existing tables stay.
 * @ret: owned by the caller. -ENOMEM.
 */
int fleet_create(const struct fleet_place *place, enum fleet_table_id table, bool is_for_reading, char **ret);

/* fleet_add_column - the statement that adds a column to an older NAME_local or NAME. -ENOMEM; -ENOENT: not in that dialect. */
int fleet_add_column(const struct fleet_place *place, enum fleet_table_id table, bool is_for_reading, size_t column,
		     char **ret);

/* fleet_set_ttl - the statement that changes the retention of NAME_local. -ENOENT: it has none, or the server cannot. */
int fleet_set_ttl(const struct fleet_place *place, enum fleet_table_id table, char **ret);

#endif
