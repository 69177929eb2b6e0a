/* SPDX-License-Identifier: MIT */
/*
 * series_words.c - constraints on columns of a sample with few combinations: verdict, end, GIL, collecting, state.
 *
 * A constraint is evaluated once for each combination of a block, not for each row.
 */
#include <string.h>

#include "base/util.h"
#include "src/store/series_table.h"

void series_words_init(struct series_words *words)
{
	*words = (struct series_words){ .gil = -1, .gc = -1, .idle = -1 };
}

void series_words_done(struct series_words *words)
{
	sqlite3_free(words->verdict);
	sqlite3_free(words->end);
	sqlite3_free(words->state);
	series_words_init(words);
}

bool series_words_are_any(const struct series_words *words)
{
	return !words->verdict && !words->end && !words->state && words->gil < 0 && words->gc < 0 && words->idle < 0;
}

/* Recordings of CPU time have no state: every sample ran. */
static bool is_idle(enum thread_state state)
{
	return state != STATE_NONE && state != STATE_RUNNING && state != STATE_RUNNABLE;
}

static bool is_word(const char *wanted, const char *word)
{
	return !wanted || (word && strcmp(wanted, word) == 0);
}

static bool is_answer(int64_t wanted, enum answer answer)
{
	return wanted < 0 || (answer != ANSWER_UNKNOWN && wanted == (answer == ANSWER_YES));
}

bool series_words_match(const struct series_words *words, uint64_t flags)
{
	struct sample_row row = { 0 };

	block_unflags(flags, &row); /* checked when read */
	return is_word(words->verdict, verdict_name(row.verdict)) && is_word(words->end, stack_end_name(row.end)) &&
	       is_word(words->state, thread_state_name(row.state)) && is_answer(words->gil, row.gil) &&
	       is_answer(words->gc, row.gc) && (words->idle < 0 || words->idle == is_idle(row.state));
}

static void result_word(sqlite3_context *context, const char *word)
{
	if (word)
		sqlite3_result_text(context, word, -1, SQLITE_STATIC);
}

static void result_answer(sqlite3_context *context, enum answer answer)
{
	if (answer != ANSWER_UNKNOWN)
		sqlite3_result_int(context, answer == ANSWER_YES);
}

/* Unset values stay NULL. */
void series_result_flags(sqlite3_context *context, enum sample_column column, uint64_t flags)
{
	struct sample_row row = { 0 };

	block_unflags(flags, &row);
	switch (column) {
	case SAMPLE_VERDICT:
		result_word(context, verdict_name(row.verdict));
		break;
	case SAMPLE_END:
		result_word(context, stack_end_name(row.end));
		break;
	case SAMPLE_STATE:
		result_word(context, thread_state_name(row.state));
		break;
	case SAMPLE_GIL:
		result_answer(context, row.gil);
		break;
	case SAMPLE_GC:
		result_answer(context, row.gc);
		break;
	case SAMPLE_IDLE:
		sqlite3_result_int(context, is_idle(row.state));
		break;
	default:
		break;
	}
}
