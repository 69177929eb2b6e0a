/* SPDX-License-Identifier: MIT */
/* read.c - the reader of rings. Nothing in the file is trusted.
 *
 * It takes the number of the newest row, and reads the rows before it in portions. Of each portion it copies the
 * sequences, then the cells, then the sequences again. A row whose slot has the row's own sequence in both copies did
 * not change in between, since a writer stores an odd one before the first cell and the next even one after the last.
 * The copies are private: what writers do later does not change what has been checked. Files are read by pread(2), not
 * mapped: whoever shortens a mapped file ends its reader by SIGBUS.
 */
#include "src/ring/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/ring/layout.h"

enum { NO_ROW_BIT = 1 };
#define MAX_HEAD (UINT64_C(1) << 61) /* no writer reaches it; sequences do not overflow before */

/* ---- Sources ---- */

static int read_file_bytes(const struct ring_source *source, uint64_t offset, void *to, size_t n_bytes)
{
	char *at = to;

	while (n_bytes > 0) {
		ssize_t n = pread(source->fd, at, n_bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENODATA;
		at += n;
		offset += (uint64_t)n;
		n_bytes -= (size_t)n;
	}
	return 0;
}

int ring_source_file(int fd, struct ring_source *ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	*ret = (struct ring_source){ .read = read_file_bytes, .n_bytes = (uint64_t)st.st_size, .fd = fd };
	return 0;
}

/* Offsets and sizes are whole words: all arrays are. */
static int read_words(const struct ring_source *source, uint64_t offset, void *to, size_t n_bytes)
{
	const uint64_t *from = source->words + offset / RING_WORD;
	uint64_t *words = to;

	if (offset > source->n_bytes || n_bytes > source->n_bytes - offset)
		return -ENODATA;
	for (size_t i = 0; i < n_bytes / RING_WORD; i++)
		words[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
	return 0;
}

void ring_source_memory(const void *words, uint64_t n_bytes, struct ring_source *ret)
{
	*ret = (struct ring_source){ .read = read_words, .n_bytes = n_bytes, .fd = -1, .words = words };
}

/* ---- UTF-8 ---- */

/* Bytes of the character that a text begins with; 0: it is none. Source: RFC 3629. */
static size_t character_bytes(const unsigned char *text, size_t n)
{
	size_t n_more = text[0] < 0x80 ? 0 : text[0] < 0xe0 ? 1 : text[0] < 0xf0 ? 2 : 3;

	if ((text[0] >= 0x80 && text[0] < 0xc2) || text[0] > 0xf4 || n_more >= n)
		return 0;
	for (size_t i = 1; i <= n_more; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] >= 0xa0) ||
	    (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] >= 0x90))
		return 0;
	return n_more + 1;
}

static void replace_invalid(unsigned char *text, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t n_character = character_bytes(text + i, n - i);

		if (n_character == 0)
			text[i] = '?';
		i += n_character > 0 ? n_character : 1;
	}
}

/* A name ends with a NUL, is UTF-8, and has no control characters. */
static bool is_name(const char *name, size_t n_bytes)
{
	size_t n = strnlen(name, n_bytes);

	if (n == 0 || n == n_bytes)
		return false;
	for (size_t i = 0; i < n;) {
		size_t n_character = character_bytes((const unsigned char *)name + i, n - i);

		if (n_character == 0 || (unsigned char)name[i] < ' ' || name[i] == '\x7f')
			return false;
		i += n_character;
	}
	return true;
}

/* ---- The header ---- */

static bool is_column(const struct ring_header_column *column)
{
	bool is_size = column->type == RING_TEXT ? column->cell_bytes > 0 && column->cell_bytes % RING_WORD == 0 &&
							   column->cell_bytes <= RING_MAX_CELL_BYTES
						 : column->cell_bytes == RING_WORD;

	return column->type >= RING_INTEGER && column->type <= RING_TEXT && is_size &&
	       is_name(column->name, sizeof column->name);
}

static int check(const struct ring_header *header, uint64_t n_bytes)
{
	if (header->magic != RING_MAGIC)
		return -EBADMSG;
	if (header->version != RING_VERSION)
		return -EPROTONOSUPPORT;
	if (header->n_columns > RING_MAX_COLUMNS || header->n_rows == 0 || header->n_rows % RING_ROWS_UNIT != 0 ||
	    header->n_rows > RING_MAX_FILE_BYTES / RING_WORD || !is_name(header->name, sizeof header->name))
		return -EBADMSG;
	for (size_t i = 0; i < header->n_columns; i++)
		if (!is_column(&header->columns[i]))
			return -EBADMSG;
	/* No overflow: the factors are below 2^25 and 2^19. */
	if (header->file_bytes !=
		    RING_HEADER_BYTES + header->n_rows * ring_row_bytes(header->columns, header->n_columns) ||
	    header->file_bytes > RING_MAX_FILE_BYTES || header->file_bytes > n_bytes)
		return -EBADMSG;
	return 0;
}

static int read_header(const struct ring_source *source, struct ring_header *ret)
{
	int r;

	if (source->n_bytes < RING_HEADER_BYTES)
		return -EBADMSG;
	r = source->read(source, 0, ret, sizeof *ret);
	return r < 0 ? r : check(ret, source->n_bytes);
}

static void describe(const struct ring_header *header, struct ring_snapshot *ret)
{
	*ret = (struct ring_snapshot){
		.n_columns = header->n_columns,
		.n_slots = header->n_rows,
		.realtime_offset_ns = header->realtime_offset_ns,
		.start_time = header->start_time,
		.pid = header->pid,
		.head = header->head,
		.skipped = header->skipped,
		.dropped = header->dropped,
		.unfit = header->unfit,
	};
	strcpy(ret->name, header->name);
	for (size_t i = 0; i < header->n_columns; i++) {
		strcpy(ret->columns[i].name, header->columns[i].name);
		ret->columns[i].type = header->columns[i].type;
		ret->columns[i].cell_bytes = header->columns[i].cell_bytes;
	}
}

int ring_describe(const struct ring_source *source, struct ring_snapshot *ret)
{
	struct ring_header header;
	int r;

	r = read_header(source, &header);
	if (r == 0)
		describe(&header, ret);
	return r;
}

/* ---- Rows ---- */

enum {
	MIN_PORTION = 64, /* rows, of the first portion */
	MAX_PORTION = 8192,
};

/* What a row's slot says of it. */
enum row_state { ROW_MISSING, ROW_WHOLE, ROW_IN_FLIGHT, ROW_STUCK, ROW_REPLACED };

/* @before, @again: the slot's sequence before and after the cells were read. */
static enum row_state judge(uint64_t number, uint64_t before, uint64_t again)
{
	uint64_t whole = 2 * number + 2;

	if (again > whole)
		return again % 2 == 0 && before <= whole ? ROW_REPLACED : again % 2 == 0 ? ROW_MISSING : ROW_STUCK;
	if (again == whole)
		return before == whole ? ROW_WHOLE : ROW_IN_FLIGHT;
	if (again % 2 == NO_ROW_BIT)
		return again == whole - 1 ? ROW_IN_FLIGHT : ROW_STUCK; /* the slot of a killed writer: passed over */
	return ROW_IN_FLIGHT; /* its writer has the number, and not the slot yet */
}

/* Where an array of the window begins, in words. */
static uint64_t array_at(const struct ring_snapshot *snapshot, size_t array)
{
	return array * snapshot->n_window;
}

static uint64_t word_offset(const struct ring_snapshot *snapshot, size_t column)
{
	uint64_t at = array_at(snapshot, RING_N_FIXED - 1);

	for (size_t i = 0; i < column; i++)
		at += snapshot->columns[i].cell_bytes / RING_WORD * snapshot->n_window;
	return at;
}

/* A range of the window whose slots are one after the other. */
struct range {
	uint64_t slot;   /* of its first row */
	size_t place, n; /* rows of the window */
};

static int read_array(const struct ring_source *source, const struct ring_snapshot *snapshot, const struct range *range,
		      uint64_t file_at, uint64_t cell_bytes, uint64_t *to)
{
	return source->read(source, RING_HEADER_BYTES + file_at * snapshot->n_slots + range->slot * cell_bytes,
			    to + range->place * (cell_bytes / RING_WORD), range->n * cell_bytes);
}

/* The sequences, the cells, and the sequences again. */
static int read_range(const struct ring_source *source, struct ring_snapshot *to, const struct range *range,
		      uint64_t *again)
{
	uint64_t file_at = RING_WORD;
	int r;

	r = read_array(source, to, range, 0, RING_WORD, to->sequence);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	for (size_t i = 0; i + 1 < RING_N_FIXED && r == 0; i++, file_at += RING_WORD)
		r = read_array(source, to, range, file_at, RING_WORD, to->words + array_at(to, i));
	for (size_t i = 0; i < to->n_columns && r == 0; i++) {
		r = read_array(source, to, range, file_at, to->columns[i].cell_bytes, to->words + word_offset(to, i));
		file_at += to->columns[i].cell_bytes;
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return r < 0 ? r : read_array(source, to, range, 0, RING_WORD, again);
}

/*
 * The newest portion first: its rows are evicted last, so a reader that is slower than the writers still finds some.
 * Later portions are larger, for fewer reads.
 */
static int read_window(const struct ring_source *source, struct ring_snapshot *to, uint64_t *again)
{
	uint64_t portion = MIN_PORTION;
	int r = 0;

	for (uint64_t end = to->n_window, n; end > 0 && r == 0; end -= n) {
		uint64_t slot, n_most = end < portion ? end : portion;

		/* Not across the end of the arrays. */
		slot = (to->first + end - 1) % to->n_slots + 1;
		n = n_most < slot ? n_most : slot;
		r = read_range(source, to, &(struct range){ slot - n, (size_t)(end - n), (size_t)n }, again);
		portion = portion < MAX_PORTION ? portion * 2 : portion;
	}
	return r;
}

/* Which rows are whole. @settled: rows from here on may be in flight, so the window ends before the first that is. */
static void choose(struct ring_snapshot *snapshot, uint64_t settled, const uint64_t *again)
{
	for (size_t place = 0; place < snapshot->n_window; place++) {
		uint64_t number = snapshot->first + place;

		switch (judge(number, snapshot->sequence[place], again[place])) {
		case ROW_WHOLE:
			snapshot->places[snapshot->n_rows++] = (uint32_t)place;
			break;
		case ROW_IN_FLIGHT:
			if (number >= settled) {
				snapshot->end = number;
				return;
			}
			snapshot->stuck += again[place] % 2 == NO_ROW_BIT;
			break;
		case ROW_STUCK:
			snapshot->stuck++;
			break;
		case ROW_REPLACED:
			snapshot->replaced++;
			break;
		case ROW_MISSING:
			break;
		}
	}
}

static void repair_texts(struct ring_snapshot *snapshot)
{
	for (size_t column = 0; column < snapshot->n_columns; column++) {
		uint32_t bytes = snapshot->columns[column].cell_bytes;
		unsigned char *cells = (unsigned char *)(snapshot->words + word_offset(snapshot, column));

		if (snapshot->columns[column].type != RING_TEXT)
			continue;
		for (size_t row = 0; row < snapshot->n_rows; row++) {
			unsigned char *cell = cells + (size_t)snapshot->places[row] * bytes;

			replace_invalid(cell, strnlen((char *)cell, bytes));
		}
	}
}

/* @settled: see choose(). */
static int read_from(const struct ring_source *source, uint64_t first, uint64_t most, uint64_t settled,
		     struct ring_snapshot *ret)
{
	struct ring_header header;
	struct ring_snapshot snapshot;
	uint64_t n, *again;
	int r;

	r = read_header(source, &header);
	if (r < 0)
		return r;
	if (header.head > MAX_HEAD)
		return -EBADMSG;
	describe(&header, &snapshot);
	n = snapshot.head < snapshot.n_slots ? snapshot.head : snapshot.n_slots;
	snapshot.first = first < snapshot.head - n || first > snapshot.head ? snapshot.head - n : first;
	n = snapshot.head - snapshot.first;
	snapshot.n_window = n < most ? n : most;
	snapshot.end = snapshot.first + snapshot.n_window;
	n = snapshot.n_window + 1; /* not 0 */
	snapshot.sequence = malloc(n * RING_WORD);
	snapshot.places = malloc(n * sizeof *snapshot.places);
	snapshot.words = malloc(n * (ring_row_bytes(header.columns, header.n_columns) - RING_WORD));
	again = malloc(n * RING_WORD);
	r = -ENOMEM;
	if (snapshot.sequence && snapshot.places && snapshot.words && again)
		r = read_window(source, &snapshot, again);
	if (r == 0) {
		choose(&snapshot, settled, again);
		repair_texts(&snapshot);
		*ret = snapshot;
	} else {
		ring_snapshot_done(&snapshot);
	}
	free(again);
	return r;
}

int ring_read(const struct ring_source *source, struct ring_snapshot *ret)
{
	return read_from(source, 0, UINT64_MAX, UINT64_MAX, ret);
}

int ring_read_next(const struct ring_source *source, uint64_t most, struct ring_cursor *cursor,
		   struct ring_snapshot *ret)
{
	uint64_t since, n_gone, n_skipped;
	int r;

	r = read_from(source, cursor->next, most, cursor->head, ret);
	if (r < 0)
		return r;
	since = cursor->next;
	if (!cursor->is_begun && !cursor->from_start) {
		since = ret->first;
		cursor->skipped = ret->skipped;
	}
	cursor->is_begun = true;
	/* Numbers that neither have a row nor were skipped by their writers; the ring may be spoilt. */
	n_gone = ret->end < since + ret->n_rows ? 0 : ret->end - since - ret->n_rows;
	n_skipped = ret->skipped - cursor->skipped < n_gone ? ret->skipped - cursor->skipped : n_gone;
	cursor->n_lost += n_gone - n_skipped;
	cursor->skipped += n_skipped;
	cursor->next = ret->end;
	cursor->head = ret->head;
	return 0;
}

void ring_snapshot_done(struct ring_snapshot *snapshot)
{
	free(snapshot->sequence);
	free(snapshot->places);
	free(snapshot->words);
	snapshot->sequence = snapshot->words = NULL;
	snapshot->places = NULL;
	snapshot->n_rows = 0;
}

/* ---- Values ---- */

uint64_t ring_row_number(const struct ring_snapshot *snapshot, size_t row)
{
	return snapshot->first + snapshot->places[row];
}

uint64_t ring_row_time_ns(const struct ring_snapshot *snapshot, size_t row)
{
	return snapshot->words[snapshot->places[row]];
}

static bool has_bit(const struct ring_snapshot *snapshot, size_t array, uint64_t place, size_t column)
{
	return snapshot->words[array_at(snapshot, array) + place] >> column & 1;
}

void ring_cell(const struct ring_snapshot *snapshot, size_t row, size_t column, struct ring_value *ret)
{
	uint64_t place = snapshot->places[row], n_words = snapshot->columns[column].cell_bytes / RING_WORD;
	const uint64_t *cell = snapshot->words + word_offset(snapshot, column) + place * n_words;
	enum ring_type type = snapshot->columns[column].type;

	*ret = (struct ring_value){ .kind = RING_NULL };
	if (has_bit(snapshot, 1, place, column))
		return;
	if (type == RING_TEXT) {
		ret->kind = RING_IS_TEXT;
		ret->text = (const char *)cell;
		ret->n_text = strnlen(ret->text, n_words * RING_WORD);
	} else if (type == RING_REAL || (type == RING_NUMBER && has_bit(snapshot, 2, place, column))) {
		ret->kind = RING_IS_REAL;
		memcpy(&ret->real, cell, sizeof ret->real);
	} else {
		ret->kind = RING_IS_INTEGER;
		ret->integer = (int64_t)*cell;
	}
}
