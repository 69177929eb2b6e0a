/* SPDX-License-Identifier: MIT */
/* session.c - a query under limits: it ends after a timeout, or by an interrupt.
 *
 * SQLite calls a progress handler, on each connection for its own work: a table of one
 * connection may read through others for long.
 */
#include <errno.h>
#include <stdio.h>

#include "base/util.h"
#include "src/sql/sql.h"

enum { STEPS_PER_LOOK = 1000 /* of SQLite's virtual machine: microseconds */ };

struct watch {
	const struct sql_session *session;
	uint64_t end_ns; /* CLOCK_MONOTONIC; 0: none */
	bool is_late;
};

static int must_stop(void *data)
{
	struct watch *watch = data;

	if (watch->session->interrupted && *watch->session->interrupted)
		return 1;
	if (watch->end_ns != 0 && monotonic_ns() >= watch->end_ns)
		watch->is_late = true;
	return watch->is_late;
}

static void set_watch(const struct sql_session *session, int (*look)(void *), struct watch *watch)
{
	sqlite3_progress_handler(session->db, look ? STEPS_PER_LOOK : 0, look, watch);
	for (size_t i = 0; i < session->n_behind; i++)
		sqlite3_progress_handler(session->behind[i], look ? STEPS_PER_LOOK : 0, look, watch);
}

int sql_ask(const struct sql_session *session, const char *text, FILE *out, char *error, size_t error_bytes, char *note,
	    size_t note_bytes)
{
	struct watch watch = { .session = session };
	bool is_cut;
	int r;

	if (session->timeout_ns > 0)
		watch.end_ns = monotonic_ns() + session->timeout_ns;
	set_watch(session, must_stop, &watch);
	r = sql_run_by(session->db, text, &session->rules, out, error, error_bytes, &is_cut);
	set_watch(session, NULL, NULL);
	note[0] = '\0';
	if (is_cut)
		snprintf(note, note_bytes, "there are more rows than the %llu that are shown (--limit)",
			 (unsigned long long)session->rules.max_rows);
	if (r != -EINTR || !watch.is_late)
		return r;
	snprintf(error, error_bytes, "the query took longer than %g seconds, and was ended (--timeout)",
		 (double)session->timeout_ns / 1e9);
	return -ETIME;
}
