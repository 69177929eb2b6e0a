/* SPDX-License-Identifier: MIT */
/*
 * import_folded.c - one line per stack: "outer;inner;leaf 12".
 *
 * The format of Brendan Gregg's stackcollapse scripts; py-spy, async-profiler, bpftrace's helpers, inferno and probing
 * write it. The number has the writer's unit, so weights are numbers, not time. Other properties of a frame are
 * conventions: "name (file)" and "name (file:line)" of writers that know Python, "_[k]" behind kernel functions,
 * "_[j]" and "_[i]" behind generated and inlined ones.
 */
#include <errno.h>
#include <string.h>

#include "src/import/lines.h"

enum { FOLDED_PID = 1, LOOKED_AT = 4096 };

/* Split off the number after the last space; false: there is none. */
static bool split_count(struct piece line, struct piece *ret_stack, uint64_t *ret_count)
{
	size_t n = line.n;

	while (n > 0 && !is_blank(line.at[n - 1]))
		n--;
	*ret_stack = piece_trim((struct piece){ line.at, n });
	return ret_stack->n > 0 && piece_number((struct piece){ line.at + n, line.n - n }, ret_count);
}

static bool ends_with(struct piece piece, const char *ending)
{
	size_t n = strlen(ending);

	return piece.n >= n && memcmp(piece.at + piece.n - n, ending, n) == 0;
}

/* Split "train.py:12"; a file has a file name extension, or is "<frozen os>". */
static bool split_place(struct piece place, struct piece *ret_file, int *ret_line)
{
	size_t n = place.n;
	uint64_t line = 0;

	while (n > 0 && place.at[n - 1] >= '0' && place.at[n - 1] <= '9')
		n--;
	*ret_file = place;
	*ret_line = 0;
	if (n > 1 && place.at[n - 1] == ':' && piece_number((struct piece){ place.at + n, place.n - n }, &line) &&
	    line < INT32_MAX) {
		*ret_file = (struct piece){ place.at, n - 1 };
		*ret_line = (int)line;
	}
	return ret_file->n > 0 && (ret_file->at[0] == '<' || memchr(ret_file->at, '.', ret_file->n));
}

static void read_place(struct sink_frame *frame)
{
	const char *open = frame->name.n > 0 && frame->name.at[frame->name.n - 1] == ')'
				   ? memrchr(frame->name.at, '(', frame->name.n)
				   : NULL;
	size_t before = open ? (size_t)(open - frame->name.at) : 0;
	struct piece place = { open ? open + 1 : NULL, open ? frame->name.n - before - 2 : 0 };
	struct piece file;
	int line;

	if (before < 2 || open[-1] != ' ' || !split_place(place, &file, &line))
		return;
	frame->name.n = before - 1;
	frame->file = file;
	frame->line = line;
	frame->kind = kind_of_file(file);
}

static struct sink_frame read_frame(struct piece text)
{
	struct sink_frame frame = { .kind = FRAME_NATIVE, .name = piece_trim(text) };

	if (ends_with(frame.name, "_[k]"))
		frame.kind = FRAME_KERNEL;
	if (frame.name.n > 4 &&
	    (frame.kind == FRAME_KERNEL || ends_with(frame.name, "_[j]") || ends_with(frame.name, "_[i]")))
		frame.name.n -= 4;
	if (frame.kind == FRAME_NATIVE)
		read_place(&frame);
	if (frame.name.n == 0)
		frame.name = piece_of("?");
	return frame;
}

static int read_stack(struct sink *sink, struct piece rest, int64_t *ret)
{
	int64_t stack = 0;
	int r = 0;

	if (piece_is(rest, "[no stack]"))
		rest.n = 0;
	while (rest.n > 0 && r >= 0) {
		struct sink_frame frame = read_frame(piece_split(&rest, ';'));
		int64_t place;

		r = sink_frame(sink, &frame, &place);
		if (r >= 0)
			r = sink_stack(sink, stack, place, &stack);
	}
	if (r >= 0)
		*ret = stack;
	return r;
}

static int read_line(struct sink *sink, struct piece line)
{
	struct piece text;
	uint64_t count;
	int64_t stack;
	int r;

	if (line.n == 0 || line.at[0] == '#')
		return 0;
	if (!split_count(line, &text, &count)) {
		sink_skip(sink);
		return 0;
	}
	r = read_stack(sink, text, &stack);
	return r < 0 ? r : sink_total(sink, FOLDED_PID, FOLDED_PID, stack, count, count);
}

static int read_folded(const struct import_input *input, struct sink *sink)
{
	struct piece rest = { (const char *)input->bytes, input->n_bytes }, line;
	struct sink_run *run = sink_run(sink);
	int r = 0;

	run->counts = true;
	strcpy(run->event, "samples");
	while (r >= 0 && next_line(&rest, &line)) {
		r = read_line(sink, piece_trim(line));
		if (r >= 0)
			r = sink_read(sink, input->n_bytes - rest.n, input->n_bytes);
	}
	return r;
}

/* Whether the start of the file is text, and its first line with a stack ends in a number. */
static bool is_folded(const uint8_t *bytes, size_t n_bytes)
{
	struct piece rest = { (const char *)bytes, MIN(n_bytes, (size_t)LOOKED_AT) }, line, stack;
	uint64_t count;

	if (memchr(bytes, '\0', rest.n))
		return false;
	rest.n = n_bytes; /* the line may be longer */
	while (next_line(&rest, &line)) {
		line = piece_trim(line);
		if (line.n > 0 && line.at[0] != '#')
			return split_count(line, &stack, &count);
	}
	return false;
}

const struct importer import_folded = {
	.name = "folded",
	.summary = "one line per stack with a number, from stackcollapse, py-spy or --to folded",
	.recognise = is_folded,
	.read = read_folded,
};
