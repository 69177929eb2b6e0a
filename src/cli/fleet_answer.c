/* SPDX-License-Identifier: MIT */
/*
 * fleet_answer.c - see fleet_answer.h.
 * Source: ClickHouse documentation, Interfaces, Formats, TabSeparated: fields end in a tab, rows in a line feed; \N is
 * NULL, and \b \f \r \n \t \0 \' \\ stand for bytes.
 */
#include "src/cli/fleet_answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/cli.h"

enum { MAX_ERROR = 1024, MAX_NOTE = 256 };

int fleet_answer_init(struct fleet_answer *answer)
{
	*answer = (struct fleet_answer){ 0 };
	return sqlite3_open(":memory:", &answer->db) == SQLITE_OK &&
			       sqlite3_exec(answer->db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK
		       ? 0
		       : -ENOMEM;
}

void fleet_answer_done(struct fleet_answer *answer)
{
	sqlite3_finalize(answer->insert);
	sqlite3_close(answer->db);
	free(answer->line);
	free(answer->names);
	free(answer->types);
	*answer = (struct fleet_answer){ 0 };
}

/* In place. Returns the number of bytes. */
static size_t unescape(char *text)
{
	static const char letters[] = "bfrnt0", bytes[] = "\b\f\r\n\t\0";
	char *to = text, *start = text;

	for (; *text; text++) {
		const char *letter;

		if (*text != '\\' || !text[1]) {
			*to++ = *text;
			continue;
		}
		text++;
		letter = strchr(letters, *text);
		*to++ = letter ? bytes[letter - letters] : *text;
	}
	*to = '\0';
	return (size_t)(to - start);
}

/* The affinity of a column: numbers of SQLite where ClickHouse has numbers. */
static const char *affinity(const char *type)
{
	static const char *const around[] = { "LowCardinality(", "Nullable(" };

	for (size_t i = 0; i < N_ELEMENTS(around); i++)
		if (strncmp(type, around[i], strlen(around[i])) == 0)
			type += strlen(around[i]);
	if (strncmp(type, "Int", 3) == 0 || strncmp(type, "UInt", 4) == 0)
		return "INTEGER";
	return strncmp(type, "Float", 5) == 0 || strncmp(type, "Decimal", 7) == 0 ? "REAL" : "TEXT";
}

/* Statements to make the table, and to insert a row. */
static int make_table(struct fleet_answer *answer)
{
	CLEANUP(freep) char *names = strdup(answer->names);
	CLEANUP(freep) char *types = strdup(answer->types);
	sqlite3_str *create = sqlite3_str_new(answer->db), *insert = sqlite3_str_new(answer->db);
	char *name_at = names, *type_at = types, *name, *type, *create_sql, *insert_sql;
	const char *before = "(";
	int r = names && types ? 0 : -ENOMEM, code;

	sqlite3_str_appendall(create, "CREATE TABLE answer");
	sqlite3_str_appendall(insert, "INSERT INTO answer VALUES");
	while (r == 0 && (name = strsep(&name_at, "\t"))) {
		type = strsep(&type_at, "\t");
		if (!type) {
			r = -EBADMSG;
			break;
		}
		unescape(name);
		sqlite3_str_appendf(create, "%s\"%w\" %s", before, name, affinity(type));
		sqlite3_str_appendf(insert, "%s?", before);
		before = ", ";
	}
	sqlite3_str_appendall(create, ")");
	sqlite3_str_appendall(insert, ")");
	create_sql = sqlite3_str_finish(create);
	insert_sql = sqlite3_str_finish(insert);
	if (r == 0 && (!create_sql || !insert_sql))
		r = -ENOMEM;
	if (r == 0) {
		code = sqlite3_exec(answer->db, create_sql, NULL, NULL, NULL);
		if (code == SQLITE_OK)
			code = sqlite3_prepare_v2(answer->db, insert_sql, -1, &answer->insert, NULL);
		r = code == SQLITE_OK ? 0 : code == SQLITE_NOMEM ? -ENOMEM : -E2BIG;
	}
	sqlite3_free(create_sql);
	sqlite3_free(insert_sql);
	return r;
}

/* The affinity of the column makes a number of a text that is one. */
static int put_row(struct fleet_answer *answer, char *line)
{
	int n = sqlite3_bind_parameter_count(answer->insert), i = 0;
	char *field;

	while ((field = strsep(&line, "\t"))) {
		size_t n_bytes;

		if (++i > n)
			return -EBADMSG;
		if (strcmp(field, "\\N") == 0) {
			sqlite3_bind_null(answer->insert, i);
			continue;
		}
		n_bytes = unescape(field);
		if (sqlite3_bind_text64(answer->insert, i, field, n_bytes, SQLITE_TRANSIENT, SQLITE_UTF8) != SQLITE_OK)
			return -ENOMEM;
	}
	if (i != n)
		return -EBADMSG;
	if (sqlite3_step(answer->insert) != SQLITE_DONE)
		return -ENOMEM;
	sqlite3_reset(answer->insert);
	return 0;
}

static int put_line(struct fleet_answer *answer, char *line)
{
	char **head = !answer->names ? &answer->names : !answer->types ? &answer->types : NULL;

	if (!head)
		return put_row(answer, line);
	*head = strdup(line);
	if (!*head)
		return -ENOMEM;
	return answer->types ? make_table(answer) : 0;
}

int fleet_answer_take(void *data, const void *bytes, size_t n_bytes)
{
	struct fleet_answer *answer = data;
	const char *from = bytes;
	int r = 0;

	for (size_t i = 0; i < n_bytes && r == 0; i++) {
		r = grow(&answer->line, answer->n, &answer->allocated, 1);
		if (r < 0)
			return r;
		if (from[i] != '\n') {
			answer->line[answer->n++] = from[i];
			continue;
		}
		answer->line[answer->n] = '\0';
		answer->n = 0;
		r = put_line(answer, answer->line);
	}
	return r;
}

int fleet_answer_finish(struct fleet_answer *answer)
{
	if (answer->n > 0 || (answer->names && !answer->types))
		return -EBADMSG;
	return sqlite3_exec(answer->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK ? 0 : -ENOMEM;
}

struct printing {
	const struct fleet_answer *answer;
	const struct sql_rules *rules;
	char error[MAX_ERROR];
	char note[MAX_NOTE];
};

static int put(const void *data, FILE *out)
{
	struct printing *printing = (struct printing *)data;
	struct sql_session session = { .db = printing->answer->db, .rules = *printing->rules };

	session.rules.columns = cli_columns(STDOUT_FILENO);
	return sql_ask(&session, "SELECT * FROM answer", out, printing->error, sizeof printing->error, printing->note,
		       sizeof printing->note);
}

static int fail(const void *data, int error)
{
	const struct printing *printing = data;

	return cli_fail(EXIT_FAILED, "%s", printing->error[0] ? printing->error : strerror(-error));
}

int fleet_answer_print(const struct fleet_answer *answer, const struct sql_rules *rules)
{
	struct printing printing = { .answer = answer, .rules = rules };
	int status;

	if (!answer->insert)
		return EXIT_OK; /* a statement without an answer */
	status = output_write("-", 0, put, fail, &printing);
	if (status == EXIT_OK && printing.note[0])
		cli_say("%s\n", printing.note);
	return status;
}
