/* SPDX-License-Identifier: MIT */
/*
 * init.c - creates the tables of a fleet, adds what newer versions of probing added, and creates users.
 *
 * Each statement is for one server: shards need no coordination service for that. All of them may run while shippers send:
 * an insert names its columns, and a new column has a default.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/fleet/server.h"

/* A new replica refuses changes until it has come to an agreement with the others. Source: ClickHouse, ErrorCodes.cpp. */
enum { TABLE_IS_READ_ONLY = 242, READ_ONLY_TRIES = 50, READ_ONLY_WAIT_NS = 200000000 };

struct initing {
	const struct fleet_init *init;
	struct fleet_server *server;
	struct fleet_place place;
	char *error;
};

static int fail(struct initing *initing, int r)
{
	snprintf(initing->error, FLEET_MAX_SENTENCE, "%s",
		 initing->server->error[0] ? initing->server->error : strerror(-r));
	return r;
}

/* @shown: what is printed of it; NULL: itself. */
static int run(struct initing *initing, const char *sql, const char *shown)
{
	const char *setting = fleet_create_setting(initing->place.dialect);
	int r;

	if (initing->init->print)
		initing->init->print(initing->init->print_data, shown ? shown : sql);
	if (initing->init->is_dry)
		return 0;
	r = server_ask(initing->server, sql, setting, false, NULL);
	for (unsigned i = 0; r == -EAGAIN && initing->server->code == TABLE_IS_READ_ONLY && i < READ_ONLY_TRIES; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = READ_ONLY_WAIT_NS }, NULL);
		r = server_ask(initing->server, sql, setting, false, NULL);
	}
	return r < 0 ? fail(initing, r) : 0;
}

/* ---- Tables ---- */

/* The columns of the server's table, a line each. */
static int list_columns(struct initing *initing, const char *table, const char *suffix, char **ret)
{
	const char *answer;
	char sql[512];
	int r;

	snprintf(sql, sizeof sql, "SELECT name FROM system.columns WHERE database = '%s' AND table = '%s%s'",
		 initing->place.database, table, suffix);
	r = server_ask(initing->server, sql, NULL, false, &answer);
	if (r < 0)
		return fail(initing, r);
	*ret = strdup(answer);
	return *ret ? 0 : -ENOMEM;
}

static bool has_line(const char *lines, const char *line)
{
	size_t n = strlen(line);

	while (*lines && !(strncmp(lines, line, n) == 0 && (lines[n] == '\n' || lines[n] == '\0'))) {
		lines += strcspn(lines, "\n");
		lines += *lines == '\n';
	}
	return *lines != '\0';
}

/* What newer versions of probing added to a table. */
static int add_missing(struct initing *initing, enum fleet_table_id id, bool is_for_reading)
{
	const struct fleet_table *table = &fleet_tables[id];
	CLEANUP(freep) char *columns = NULL;
	int r = list_columns(initing, table->name, is_for_reading ? "" : "_local", &columns);

	for (size_t i = 0; i < table->n_columns && r == 0; i++) {
		CLEANUP(freep) char *sql = NULL;

		if (!fleet_column_type(&table->columns[i], initing->place.dialect) ||
		    has_line(columns, table->columns[i].name))
			continue;
		r = fleet_add_column(&initing->place, id, is_for_reading, i, &sql);
		if (r == 0)
			r = run(initing, sql, NULL);
	}
	return r;
}

static int create(struct initing *initing, enum fleet_table_id id, bool is_for_reading)
{
	CLEANUP(freep) char *sql = NULL;
	int r = fleet_create(&initing->place, id, is_for_reading, &sql);

	if (r == 0)
		r = run(initing, sql, NULL);
	if (r == 0 && !initing->init->is_dry)
		r = add_missing(initing, id, is_for_reading);
	return r;
}

static int set_ttl(struct initing *initing, enum fleet_table_id id)
{
	CLEANUP(freep) char *sql = NULL;
	int r = fleet_set_ttl(&initing->place, id, &sql);

	if (r == -ENOENT)
		return 0;
	return r < 0 ? r : run(initing, sql, NULL);
}

static int create_tables(struct initing *initing)
{
	char sql[128];
	int r;

	snprintf(sql, sizeof sql, "CREATE DATABASE IF NOT EXISTS %s", initing->place.database);
	r = run(initing, sql, NULL);
	for (int i = 0; i < FLEET_N_TABLES && r == 0; i++) {
		r = create(initing, (enum fleet_table_id)i, false);
		if (r == 0)
			r = create(initing, (enum fleet_table_id)i, true);
		if (r == 0 && !initing->init->is_dry)
			r = set_ttl(initing, (enum fleet_table_id)i);
	}
	return r;
}

/* ---- Users ---- */

/* What a shipper asks for beside inserting: how many rows of a block there are, and what was sent. */
static const char *const writer_grants[] = {
	"SELECT(job, run, block, time) ON %s.samples_local",
	"SELECT(job, run, block, minute, samples) ON %s.totals_local",
	"SELECT ON %s.shipments_local",
};

static void hash_password(const char *password, char to[65])
{
	uint8_t hash[32];

	sha256(password, strlen(password), hash);
	for (unsigned i = 0; i < sizeof hash; i++)
		snprintf(to + 2 * i, 3, "%02x", hash[i]);
}

/* The server gets a hash: neither the password nor a text with quotes is in a statement. */
static int create_user(struct initing *initing, const char *suffix, const char *password)
{
	char hash[65], sql[512], shown[512];
	int r;

	hash_password(password, hash);
	snprintf(sql, sizeof sql, "CREATE USER OR REPLACE %s_%s IDENTIFIED WITH sha256_hash BY '%s'",
		 initing->place.database, suffix, hash);
	snprintf(shown, sizeof shown, "CREATE USER OR REPLACE %s_%s IDENTIFIED WITH sha256_hash BY '...'",
		 initing->place.database, suffix);
	r = run(initing, sql, shown);
	explicit_bzero(hash, sizeof hash);
	return r;
}

static int grant(struct initing *initing, const char *suffix, const char *format, const char *name)
{
	char what[256], sql[512];

	snprintf(what, sizeof what, format, initing->place.database, name);
	snprintf(sql, sizeof sql, "GRANT %s TO %s_%s", what, initing->place.database, suffix);
	return run(initing, sql, NULL);
}

static int create_users(struct initing *initing)
{
	int r = create_user(initing, "writer", initing->init->writer_password);

	for (int i = 0; i < FLEET_N_TABLES && r == 0; i++)
		r = grant(initing, "writer", "INSERT ON %s.%s_local", fleet_tables[i].name);
	for (size_t i = 0; i < N_ELEMENTS(writer_grants) && r == 0; i++)
		r = grant(initing, "writer", writer_grants[i], "");
	if (r == 0)
		r = grant(initing, "writer", "SELECT(query_id) ON system.processes", "");
	if (r == 0)
		r = create_user(initing, "reader", initing->init->reader_password);
	return r == 0 ? grant(initing, "reader", "SELECT ON %s.*", "") : r;
}

/* 18.16 knows users from its configuration alone, and of rights only a database and readonly. */
static void print_users(struct initing *initing)
{
	const char *const suffixes[] = { "writer", "reader" };
	const char *const passwords[] = { initing->init->writer_password, initing->init->reader_password };
	char text[1024], hash[65];

	for (size_t i = 0; i < N_ELEMENTS(suffixes); i++) {
		hash_password(passwords[i], hash);
		snprintf(text, sizeof text,
			 "<!-- /etc/clickhouse-server/users.d: this version has no users in SQL -->\n"
			 "<yandex><users><%s_%s>\n"
			 "  <password_sha256_hex>%s</password_sha256_hex>\n"
			 "  <networks><ip>::/0</ip></networks>\n"
			 "  <profile>%s</profile><quota>default</quota>\n"
			 "  <allow_databases><database>%s</database></allow_databases>\n"
			 "</%s_%s></users></yandex>",
			 initing->place.database, suffixes[i], hash, i == 0 ? "default" : "readonly",
			 initing->place.database, initing->place.database, suffixes[i]);
		initing->init->print(initing->init->print_data, text);
	}
}

/* ---- Servers ---- */

static int init_server(struct initing *initing)
{
	const struct fleet_init *init = initing->init;
	int r = server_meet(initing->server);

	if (r < 0)
		return fail(initing, r);
	initing->place = (struct fleet_place){ .dialect = initing->server->dialect,
					       .database = initing->server->database,
					       .cluster = init->cluster,
					       .is_replicated = init->is_replicated,
					       .keep_days = init->keep_days,
					       .keep_totals_days = init->keep_totals_days };
	r = create_tables(initing);
	if (r < 0 || !init->writer_password || !init->reader_password)
		return r;
	if (initing->place.dialect == FLEET_NEW)
		return create_users(initing);
	print_users(initing);
	return 0;
}

int fleet_init(const struct fleet_init *init, char *error)
{
	int r = 0;

	error[0] = '\0';
	for (size_t i = 0; i < init->access.n_urls && r == 0; i++) {
		struct fleet_server server;
		struct initing initing = { .init = init, .server = &server, .error = error };

		r = server_open(&server, init->access.urls[i], &init->access);
		r = r < 0 ? fail(&initing, r) : init_server(&initing);
		server_close(&server);
	}
	if (r < 0 && !error[0])
		snprintf(error, FLEET_MAX_SENTENCE, "%s", strerror(-r));
	return r;
}
