/* SPDX-License-Identifier: MIT */
/* read.c - the reader of rings. Nothing in the file is trusted.
 *
 * It copies the sequences, then the cells, then the sequences again. A row whose slot has the same even sequence in both
 * copies did not change in between, since a writer stores an odd one before the first cell and the next even one after
 * the last. The copies are private: what writers do later does not change what has been checked. Files are read by
 * pread(2), not mapped: whoever shortens a mapped file ends its reader by SIGBUS.
 */
#include "src/ring/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/ring/layout.h"

enum { NO_ROW_BIT = 1 };

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

/* The copies, in this order; @again: as many words as there are slots. */
static int copy(const struct ring_source *source, struct ring_snapshot *to, uint64_t n_word_bytes, uint64_t *again)
{
	const uint64_t at = RING_HEADER_BYTES, n_sequence_bytes = to->n_slots * RING_WORD;
	int r;

	r = source->read(source, at, to->sequence, n_sequence_bytes);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (r == 0)
		r = source->read(source, at + n_sequence_bytes, to->words, n_word_bytes);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (r == 0)
		r = source->read(source, at, again, n_sequence_bytes);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (r == 0)
		r = source->read(source, offsetof(struct ring_header, head), &to->head, sizeof to->head);
	return r;
}

/* Whether a slot has a whole row, of a number that belongs there. @oldest: smaller numbers are evicted already. */
static bool has_row(const struct ring_snapshot *snapshot, uint64_t slot, uint64_t oldest)
{
	uint64_t sequence = snapshot->sequence[slot], number = sequence / 2 - 1;

	return sequence > 0 && sequence % 2 == 0 && number % snapshot->n_slots == slot && number >= oldest &&
	       number < snapshot->head;
}

static int compare(const void *a, const void *b, void *data)
{
	const uint64_t *sequence = data;
	uint64_t one = sequence[*(const uint32_t *)a], other = sequence[*(const uint32_t *)b];

	return (one > other) - (one < other);
}

static void choose(struct ring_snapshot *snapshot, uint64_t head_before, const uint64_t *again)
{
	uint64_t oldest = head_before > snapshot->n_slots ? head_before - snapshot->n_slots : 0;

	for (uint64_t slot = 0; slot < snapshot->n_slots; slot++) {
		if (snapshot->sequence[slot] != again[slot])
			snapshot->replaced += has_row(snapshot, slot, oldest);
		else if (again[slot] % 2 == NO_ROW_BIT)
			snapshot->stuck++;
		else if (has_row(snapshot, slot, oldest))
			snapshot->slots[snapshot->n_rows++] = (uint32_t)slot;
	}
	qsort_r(snapshot->slots, snapshot->n_rows, sizeof *snapshot->slots, compare, snapshot->sequence);
}

static uint64_t word_offset(const struct ring_snapshot *snapshot, size_t column)
{
	uint64_t at = (RING_N_FIXED - 1) * snapshot->n_slots;

	for (size_t i = 0; i < column; i++)
		at += snapshot->columns[i].cell_bytes / RING_WORD * snapshot->n_slots;
	return at;
}

static void repair_texts(struct ring_snapshot *snapshot)
{
	for (size_t column = 0; column < snapshot->n_columns; column++) {
		uint32_t bytes = snapshot->columns[column].cell_bytes;
		unsigned char *cells = (unsigned char *)(snapshot->words + word_offset(snapshot, column));

		if (snapshot->columns[column].type != RING_TEXT)
			continue;
		for (size_t row = 0; row < snapshot->n_rows; row++) {
			unsigned char *cell = cells + (size_t)snapshot->slots[row] * bytes;

			replace_invalid(cell, strnlen((char *)cell, bytes));
		}
	}
}

int ring_read(const struct ring_source *source, struct ring_snapshot *ret)
{
	struct ring_header header;
	struct ring_snapshot snapshot;
	uint64_t n_word_bytes, *again;
	int r;

	r = read_header(source, &header);
	if (r < 0)
		return r;
	describe(&header, &snapshot);
	n_word_bytes = header.file_bytes - RING_HEADER_BYTES - header.n_rows * RING_WORD;
	snapshot.sequence = malloc(header.n_rows * RING_WORD);
	snapshot.slots = malloc(header.n_rows * sizeof *snapshot.slots);
	snapshot.words = malloc(n_word_bytes);
	again = malloc(header.n_rows * RING_WORD);
	r = -ENOMEM;
	if (snapshot.sequence && snapshot.slots && snapshot.words && again)
		r = copy(source, &snapshot, n_word_bytes, again);
	if (r == 0) {
		choose(&snapshot, header.head, again);
		repair_texts(&snapshot);
		*ret = snapshot;
	} else {
		ring_snapshot_done(&snapshot);
	}
	free(again);
	return r;
}

void ring_snapshot_done(struct ring_snapshot *snapshot)
{
	free(snapshot->sequence);
	free(snapshot->slots);
	free(snapshot->words);
	snapshot->sequence = snapshot->words = NULL;
	snapshot->slots = NULL;
	snapshot->n_rows = 0;
}

/* ---- Values ---- */

uint64_t ring_row_number(const struct ring_snapshot *snapshot, size_t row)
{
	return snapshot->sequence[snapshot->slots[row]] / 2 - 1;
}

uint64_t ring_row_time_ns(const struct ring_snapshot *snapshot, size_t row)
{
	return snapshot->words[snapshot->slots[row]];
}

static bool has_bit(const struct ring_snapshot *snapshot, size_t array, uint64_t slot, size_t column)
{
	return snapshot->words[array * snapshot->n_slots + slot] >> column & 1;
}

void ring_cell(const struct ring_snapshot *snapshot, size_t row, size_t column, struct ring_value *ret)
{
	uint64_t slot = snapshot->slots[row], n_words = snapshot->columns[column].cell_bytes / RING_WORD;
	const uint64_t *cell = snapshot->words + word_offset(snapshot, column) + slot * n_words;
	enum ring_type type = snapshot->columns[column].type;

	*ret = (struct ring_value){ .kind = RING_NULL };
	if (has_bit(snapshot, 1, slot, column))
		return;
	if (type == RING_TEXT) {
		ret->kind = RING_IS_TEXT;
		ret->text = (const char *)cell;
		ret->n_text = strnlen(ret->text, n_words * RING_WORD);
	} else if (type == RING_REAL || (type == RING_NUMBER && has_bit(snapshot, 2, slot, column))) {
		ret->kind = RING_IS_REAL;
		memcpy(&ret->real, cell, sizeof ret->real);
	} else {
		ret->kind = RING_IS_INTEGER;
		ret->integer = (int64_t)*cell;
	}
}
