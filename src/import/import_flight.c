/* SPDX-License-Identifier: MIT */
/*
 * import_flight.c - dumps of PyTorch's Flight Recorder: a file of each rank, whose name ends with the rank.
 *
 *   {"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
 *    "pg_status": {"0": {"last_enqueued_collective": 3, "last_started_collective": 3, "last_completed_collective": 2}},
 *    "entries": [{"record_id": 2, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": 3,
 *      "p2p_seq_id": 0, "op_id": 3, "profiling_name": "nccl:all_reduce", "time_created_ns": 1700000000000000000,
 *      "input_sizes": [[64, 64]], "input_dtypes": ["Float"], "state": "started", "time_discovered_started_ns": ...,
 *      "retired": False, "timeout_ms": 600000, "is_p2p": False,
 *      "frames": [{"name": "train_step", "filename": "train.py", "line": 88}, ...]}, ...]}
 *
 * The file is a pickle (pickle.h), or JSON, whose numbers of pg_status are texts, whose missing times are 0, and whose
 * entries have no frames. Both become the same values. An entry is a row, and a sample of the stack that called it.
 * Source: torch/csrc/distributed/c10d/FlightRecorder*.hpp, and torch/distributed/flight_recorder, torch 2.2 to 2.14.
 *
 * Invariant: lists of a pickle may refer to each other, so each value that is looked at counts against a limit.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "base/rank.h"
#include "src/import/decimal.h"
#include "src/import/lines.h"
#include "src/import/pickle.h"

enum {
	LOOKED_AT = 1 << 16,
	MAX_LOOKS = 1 << 28,      /* of a file: a real one of 10,000 operations has 10 million */
	MAX_FRAMES = 256,         /* of an operation */
	MAX_TEXT_BYTES = 1 << 10, /* of shapes and types */
	MAX_TYPE_BYTES = 32,
	MAX_NAME_BYTES = 1 << 12,
	MAX_GROUPS = 1 << 12,
	MAX_JSON_DEPTH = 16,
	/* A dump does not tell its process: number it by its rank, from 1. */
	UNKNOWN_PID = RANK_MAX_NUMBER + 2,
};

/* A process group that entries have. */
struct group {
	int64_t pg_id;
	uint32_t name, description; /* values */
};

struct flight {
	struct sink *sink;
	struct marshal values;
	uint32_t root, n_looks;
	struct flight_writer *writer; /* the sink's */
	const char *dump;             /* the file's name without its folder */
	int64_t rank;                 /* FLIGHT_UNKNOWN: the name has none */
	pid_t pid;
	struct group groups[MAX_GROUPS];
	size_t n_groups;
	struct piece members_of; /* the text of a group's ranks whose numbers are in members */
	int64_t *members;
	size_t n_members, members_allocated;
};

static void flight_free(struct flight *flight)
{
	if (!flight)
		return;
	marshal_done(&flight->values);
	free(flight->members);
	free(flight);
}
DEFINE_CLEANUP(struct flight *, flight_free)

static int damaged(const struct flight *flight, const char *what)
{
	return sink_explain(flight->sink, -EBADMSG, "%s", what);
}

static int endless(const struct flight *flight)
{
	return damaged(flight, "its lists and texts are too often parts of each other");
}

/* ---- Values ---- */

static bool is_spent(struct flight *flight, size_t n)
{
	if (n > MAX_LOOKS - flight->n_looks)
		return true;
	flight->n_looks += (uint32_t)n;
	return false;
}

/* The i-th item of a list; NULL: there is none, or the file has been looked at for too long. */
static const struct marshal_value *item_of(struct flight *flight, const struct marshal_value *list, size_t i)
{
	if (!list || list->type != MARSHAL_TUPLE || is_spent(flight, 1))
		return NULL;
	return marshal_item(&flight->values, list, i);
}

static size_t n_items(const struct marshal_value *list, enum marshal_type type)
{
	return list && list->type == type ? list->n_items : 0;
}

/* The value of a key that is text; NULL: there is none. */
static const struct marshal_value *field(struct flight *flight, const struct marshal_value *dict, const char *key)
{
	for (size_t i = 0; i + 1 < n_items(dict, MARSHAL_DICT); i += 2) {
		const struct marshal_value *one = marshal_item(&flight->values, dict, i);

		if (is_spent(flight, 1))
			return NULL;
		if (one->type == MARSHAL_TEXT && piece_is(one->text, key))
			return marshal_item(&flight->values, dict, i + 1);
	}
	return NULL;
}

static struct piece text_of(const struct marshal_value *value)
{
	return value && value->type == MARSHAL_TEXT ? value->text : (struct piece){ 0 };
}

/* As a string of C, which is the caller's. Many entries may refer to one long text. NULL: no memory. */
static char *name_text(struct piece piece)
{
	return piece_text((struct piece){ piece.at, MIN(piece.n, (size_t)MAX_NAME_BYTES) });
}

/* Whether texts are too many to become rows: a few bytes of a file refer to long ones. */
static bool are_spent(struct flight *flight, const struct piece *texts, size_t n)
{
	size_t n_bytes = 0;

	for (size_t i = 0; i < n; i++)
		n_bytes += MIN(texts[i].n, (size_t)MAX_NAME_BYTES);
	return is_spent(flight, n_bytes);
}

/* FLIGHT_UNKNOWN: it is no whole number. Texts are those of JSON. */
static int64_t integer_of(const struct marshal_value *value)
{
	double number = NAN;
	int64_t whole;

	if (value && value->type == MARSHAL_INTEGER)
		return value->integer;
	if (value && value->type == MARSHAL_REAL)
		number = value->real;
	else if (value && value->type == MARSHAL_TEXT && !piece_decimal(value->text, &number))
		number = NAN;
	return whole_number(number, &whole) ? whole : FLIGHT_UNKNOWN;
}

/* 0: unknown. */
static uint64_t time_of(const struct marshal_value *value)
{
	int64_t ns = integer_of(value);

	return ns > 0 ? (uint64_t)ns : 0;
}

/* ---- JSON as the same values ---- */

static int add_json(struct marshal *to, const json_t *json, unsigned depth, uint32_t *ret);

static int add_member(struct marshal *to, uint32_t of, const json_t *json, unsigned depth)
{
	uint32_t item;
	int r = add_json(to, json, depth + 1, &item);

	return r < 0 ? r : marshal_add_item(to, of, item);
}

static int add_key(struct marshal *to, uint32_t of, const char *key, size_t n)
{
	uint32_t item;
	int r = marshal_add(to, &item);

	if (r < 0)
		return r;
	to->values[item].type = MARSHAL_TEXT;
	to->values[item].text = (struct piece){ key, n };
	return marshal_add_item(to, of, item);
}

static void set_plain(struct marshal_value *to, const json_t *json)
{
	if (json_is_string(json)) {
		to->type = MARSHAL_TEXT;
		to->text = (struct piece){ json_string_value(json), json_string_length(json) };
	} else if (json_is_real(json)) {
		to->type = MARSHAL_REAL;
		to->real = json_real_value(json);
	} else if (json_is_integer(json) || json_is_boolean(json)) {
		to->type = MARSHAL_INTEGER;
		to->integer = json_is_integer(json) ? json_integer_value(json) : json_is_true(json);
		to->real = (double)to->integer;
	}
}

static int add_json(struct marshal *to, const json_t *json, unsigned depth, uint32_t *ret)
{
	const char *key;
	json_t *value;
	size_t i, n;
	int r = depth > MAX_JSON_DEPTH ? -EBADMSG : marshal_add(to, ret);

	if (r < 0)
		return r;
	if (json_is_array(json)) {
		to->values[*ret].type = MARSHAL_TUPLE;
		json_array_foreach(json, i, value) if (r >= 0) r = add_member(to, *ret, value, depth);
	} else if (json_is_object(json)) {
		to->values[*ret].type = MARSHAL_DICT;
		json_object_keylen_foreach((json_t *)json, key, n, value)
		{
			if (r >= 0)
				r = add_key(to, *ret, key, n);
			if (r >= 0)
				r = add_member(to, *ret, value, depth);
		}
	} else {
		set_plain(&to->values[*ret], json);
	}
	return r;
}

/* ---- Names ---- */

/* The rank at the end of a file's name: "nccl_trace_rank_3", "rank_3.json". */
static int64_t rank_of_name(const char *name)
{
	size_t n = strlen(name), n_digits = 0;
	const char *dot = strrchr(name, '.');
	int64_t rank = 0;

	if (dot && dot > name && (dot[1] < '0' || dot[1] > '9'))
		n = (size_t)(dot - name);
	while (n_digits < n && name[n - 1 - n_digits] >= '0' && name[n - 1 - n_digits] <= '9')
		n_digits++;
	if (n_digits == 0 || n_digits > 8)
		return FLIGHT_UNKNOWN;
	for (size_t i = n - n_digits; i < n; i++)
		rank = 10 * rank + name[i] - '0';
	return rank > RANK_MAX_NUMBER ? FLIGHT_UNKNOWN : rank;
}

/* A whole number at the front; FLIGHT_UNKNOWN: there is none. */
static int64_t take_number(struct piece *rest)
{
	int64_t number = 0;
	size_t n = 0;

	for (; n < rest->n && n < 9 && rest->at[n] >= '0' && rest->at[n] <= '9'; n++)
		number = 10 * number + rest->at[n] - '0';
	rest->at += n;
	rest->n -= n;
	return n > 0 ? number : FLIGHT_UNKNOWN;
}

/*
 * The ranks of a group, "[0, 1, 2]", as numbers. Thousands of messages in a row are of one group, and that may have
 * thousands of ranks. No memory: none.
 */
static void know_members(struct flight *flight, struct piece ranks)
{
	flight->members_of = ranks;
	flight->n_members = 0;
	if (is_spent(flight, ranks.n))
		return;
	while (ranks.n > 0) {
		if (ranks.at[0] < '0' || ranks.at[0] > '9') {
			ranks.at++;
			ranks.n--;
			continue;
		}
		if (grow(&flight->members, flight->n_members, &flight->members_allocated, sizeof *flight->members) < 0)
			return;
		flight->members[flight->n_members++] = take_number(&ranks);
	}
}

/* The global rank of a number in a group. */
static int64_t global_rank(struct flight *flight, struct piece ranks, int64_t number)
{
	if (ranks.at != flight->members_of.at || ranks.n != flight->members_of.n)
		know_members(flight, ranks);
	return number >= 0 && (size_t)number < flight->n_members ? flight->members[number] : FLIGHT_UNKNOWN;
}

/* "nccl:send 0->1", "gloo:recv 1<-0": ranks in the group. Returns the operation's name. */
static struct piece split_name(struct flight *flight, struct piece name, struct piece ranks, struct piece *ret_backend,
			       struct flight_row *row)
{
	struct piece rest = name, op = piece_split(&rest, ':');
	int64_t one, other;
	bool is_send;

	*ret_backend = op;
	if (rest.n == 0) { /* no colon */
		rest = op;
		*ret_backend = (struct piece){ 0 };
	}
	op = piece_split(&rest, ' ');
	one = take_number(&rest);
	is_send = rest.n > 2 && memcmp(rest.at, "->", 2) == 0;
	if (one == FLIGHT_UNKNOWN || (!is_send && !(rest.n > 2 && memcmp(rest.at, "<-", 2) == 0)))
		return op;
	rest.at += 2;
	rest.n -= 2;
	other = take_number(&rest);
	row->src_rank = global_rank(flight, ranks, is_send ? one : other);
	row->dst_rank = global_rank(flight, ranks, is_send ? other : one);
	return op;
}

/* ---- Sizes ---- */

/* Bytes of an element by c10::toString(); 0: unknown. */
static int64_t element_bytes(struct piece type)
{
	static const struct {
		const char *name;
		int64_t bytes;
	} types[] = { { "Float", 4 },         { "BFloat16", 2 },    { "Half", 2 },         { "Double", 8 },
		      { "Long", 8 },          { "Int", 4 },         { "Short", 2 },        { "Char", 1 },
		      { "Byte", 1 },          { "Bool", 1 },        { "ComplexFloat", 8 }, { "ComplexDouble", 16 },
		      { "ComplexHalf", 4 },   { "UInt16", 2 },      { "UInt32", 4 },       { "UInt64", 8 },
		      { "Float8_e4m3fn", 1 }, { "Float8_e5m2", 1 }, { "QInt8", 1 },        { "QUInt8", 1 } };

	for (size_t i = 0; i < N_ELEMENTS(types); i++)
		if (piece_is(type, types[i].name))
			return types[i].bytes;
	return 0;
}

/* Bytes of all tensors; FLIGHT_UNKNOWN: of one they are not known. */
static int64_t bytes_of(struct flight *flight, const struct marshal_value *sizes, const struct marshal_value *types)
{
	size_t n = n_items(sizes, MARSHAL_TUPLE);
	int64_t all = 0;

	if (!sizes || n != n_items(types, MARSHAL_TUPLE))
		return FLIGHT_UNKNOWN;
	for (size_t i = 0; i < n; i++) {
		const struct marshal_value *dimensions = item_of(flight, sizes, i);
		int64_t bytes = element_bytes(text_of(item_of(flight, types, i)));

		if (bytes == 0 || !dimensions)
			return FLIGHT_UNKNOWN;
		for (size_t j = 0; j < n_items(dimensions, MARSHAL_TUPLE); j++) {
			int64_t size = integer_of(item_of(flight, dimensions, j));

			if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes))
				return FLIGHT_UNKNOWN;
		}
		if (__builtin_add_overflow(all, bytes, &all))
			return FLIGHT_UNKNOWN;
	}
	return all;
}

/* A type in quotation marks. What would need an escape in JSON is in no type's name. Returns the number of bytes. */
static size_t put_quoted(struct piece text, char *to)
{
	size_t n = 0;

	to[n++] = '"';
	for (size_t i = 0; i < text.n && i < MAX_TYPE_BYTES; i++) {
		char c = text.at[i];

		to[n++] = c < ' ' || c > '~' || c == '"' || c == '\\' ? '?' : c;
	}
	to[n++] = '"';
	return n;
}

/* A list of texts, or of lists of numbers, as JSON. @to: MAX_TEXT_BYTES. */
static void list_text(struct flight *flight, const struct marshal_value *list, char *to)
{
	size_t n = 1, count = n_items(list, MARSHAL_TUPLE);

	to[0] = '[';
	for (size_t i = 0; i < count && n < MAX_TEXT_BYTES - 100; i++) {
		const struct marshal_value *one = item_of(flight, list, i);
		struct piece text = text_of(one);

		n += (size_t)snprintf(to + n, MAX_TEXT_BYTES - n, i > 0 ? ", " : "");
		if (text.n > 0) {
			n += put_quoted(text, to + n);
			continue;
		}
		to[n++] = '[';
		for (size_t j = 0; j < n_items(one, MARSHAL_TUPLE) && n < MAX_TEXT_BYTES - 60; j++)
			n += (size_t)snprintf(to + n, MAX_TEXT_BYTES - n, "%s%" PRId64, j > 0 ? ", " : "",
					      integer_of(item_of(flight, one, j)));
		to[n++] = ']';
	}
	to[n++] = ']';
	to[n] = '\0';
}

/* ---- Groups ---- */

static bool has_config(struct flight *flight, const struct marshal_value *all, struct piece name)
{
	for (size_t i = 0; i + 1 < n_items(all, MARSHAL_DICT) && !is_spent(flight, 1); i += 2) {
		struct piece known = text_of(marshal_item(&flight->values, all, i));

		if (known.n == name.n && memcmp(known.at, name.at, name.n) == 0)
			return true;
	}
	return false;
}

static struct piece group_ranks(struct flight *flight, struct piece name)
{
	const struct marshal_value *all = field(flight, &flight->values.values[flight->root], "pg_config");
	char key[128];

	snprintf(key, sizeof key, "%.*s", (int)MIN(name.n, sizeof key - 1), name.n > 0 ? name.at : "");
	return text_of(field(flight, field(flight, all, key), "ranks"));
}

/* The status of a group is by a number that entries have. @about: its name, or name and description. */
static void know_group(struct flight *flight, int64_t pg_id, const struct marshal_value *about)
{
	const struct marshal_value *name = about && about->type == MARSHAL_TEXT ? about : item_of(flight, about, 0);
	const struct marshal_value *description = item_of(flight, about, 1);

	for (size_t i = 0; i < flight->n_groups; i++)
		if (flight->groups[i].pg_id == pg_id)
			return;
	if (text_of(name).n == 0 || flight->n_groups == MAX_GROUPS)
		return;
	flight->groups[flight->n_groups++] = (struct group){
		.pg_id = pg_id,
		.name = (uint32_t)(name - flight->values.values),
		.description = (uint32_t)((description ?: name) - flight->values.values),
	};
}

static const struct marshal_value *status_of(struct flight *flight, struct piece name)
{
	const struct marshal_value *all = field(flight, &flight->values.values[flight->root], "pg_status");
	char key[24];

	for (size_t i = 0; i < flight->n_groups; i++) {
		struct piece known = flight->values.values[flight->groups[i].name].text;

		if (known.n == name.n && memcmp(known.at, name.at, name.n) == 0) {
			snprintf(key, sizeof key, "%" PRId64, flight->groups[i].pg_id);
			return field(flight, all, key);
		}
	}
	return NULL;
}

static int put_group(struct flight *flight, struct piece name, struct piece about, struct piece members)
{
	const struct marshal_value *status = status_of(flight, name);
	CLEANUP(freep) char *group = name_text(name);
	CLEANUP(freep) char *description = name_text(about);
	CLEANUP(freep) char *ranks = piece_text(members);
	struct flight_group_row row = {
		.dump = flight->dump,
		.rank = flight->rank,
		.group = group,
		.last_enqueued = integer_of(field(flight, status, "last_enqueued_collective")),
		.last_started = integer_of(field(flight, status, "last_started_collective")),
		.last_completed = integer_of(field(flight, status, "last_completed_collective")),
	};
	int r;

	if (!group || !description || !ranks)
		return -ENOMEM;
	if (is_spent(flight, members.n) || are_spent(flight, (struct piece[]){ name, about }, 2))
		return endless(flight);
	row.description = description[0] ? description : NULL;
	row.ranks = ranks[0] ? ranks : NULL;
	r = flight_put_group(flight->writer, &row);
	return r < 0 ? r : sink_row(flight->sink, false);
}

/*
 * gloo of torch 2.14 gives each of its groups an empty name in pg_config, so one of them is there. Its ranks are some of
 * the default group's.
 */
static int put_nameless_groups(struct flight *flight, const struct marshal_value *all)
{
	struct piece some = text_of(field(flight, field(flight, all, ""), "ranks"));
	int r = 0;

	for (size_t i = 0; i < flight->n_groups && r >= 0; i++) {
		const struct group *group = &flight->groups[i];
		struct piece name = flight->values.values[group->name].text,
			     about = flight->values.values[group->description].text;
		bool is_default = piece_is(about, "default_pg");

		if (!has_config(flight, all, name))
			r = put_group(flight, name, group->description != group->name ? about : (struct piece){ 0 },
				      is_default ? some : (struct piece){ 0 });
	}
	return r;
}

static int put_groups(struct flight *flight)
{
	const struct marshal_value *all = field(flight, &flight->values.values[flight->root], "pg_config");
	int r = 0;

	for (size_t i = 0; i + 1 < n_items(all, MARSHAL_DICT) && r >= 0; i += 2) {
		struct piece name = text_of(marshal_item(&flight->values, all, i));
		const struct marshal_value *about = marshal_item(&flight->values, all, i + 1);

		if (name.n > 0)
			r = put_group(flight, name, text_of(field(flight, about, "desc")),
				      text_of(field(flight, about, "ranks")));
	}
	return r < 0 ? r : put_nameless_groups(flight, all);
}

/* The ranks of the largest group; -1: no group has them. */
static int64_t world_size(struct flight *flight)
{
	const struct marshal_value *all = field(flight, &flight->values.values[flight->root], "pg_config");
	int64_t most = -1;

	for (size_t i = 1; i < n_items(all, MARSHAL_DICT); i += 2) {
		struct piece ranks = text_of(field(flight, marshal_item(&flight->values, all, i), "ranks"));
		int64_t n = ranks.n > 2;

		if (is_spent(flight, ranks.n))
			return -1;
		for (size_t j = 0; j < ranks.n; j++)
			n += ranks.at[j] == ',';
		most = n > most ? n : most;
	}
	return most <= RANK_MAX_NUMBER ? most : -1;
}

/* ---- Entries ---- */

/* Or probing's, which calls torch where it writes rows of comm_metrics. */
static bool is_torch(struct piece file)
{
	return memmem(file.at, file.n, "/torch/", 7) || piece_begins(file, "torch/") ||
	       piece_begins(file, "<frozen ") || memmem(file.at, file.n, "/probing/_comm.py", 17);
}

static int frame_line(struct flight *flight, const struct marshal_value *frame)
{
	int64_t line = integer_of(field(flight, frame, "line"));

	return line > 0 && line < INT32_MAX ? (int)line : 0;
}

/* The innermost frame that is not torch's; all are torch's: the innermost one. NULL: there is none. */
static const struct marshal_value *call_site(struct flight *flight, const struct marshal_value *frames)
{
	size_t n = MIN(n_items(frames, MARSHAL_TUPLE), (size_t)MAX_FRAMES);

	for (size_t i = 0; i < n; i++) {
		const struct marshal_value *frame = item_of(flight, frames, i);
		struct piece file = text_of(field(flight, frame, "filename"));

		if (file.n > 0 && !is_torch(file))
			return frame;
	}
	return item_of(flight, frames, 0);
}

/* Frames are innermost first. The operation is the last one. */
static int make_stack(struct flight *flight, const struct marshal_value *frames, struct piece operation, int64_t *ret)
{
	struct sink_frame last = { .kind = FRAME_NATIVE, .name = operation };
	int64_t stack = 0, place;
	int r = 0;

	for (size_t i = MIN(n_items(frames, MARSHAL_TUPLE), (size_t)MAX_FRAMES); i > 0 && r >= 0; i--) {
		const struct marshal_value *one = item_of(flight, frames, i - 1);
		struct sink_frame frame = { .name = text_of(field(flight, one, "name")),
					    .file = text_of(field(flight, one, "filename")),
					    .line = frame_line(flight, one) };

		if (frame.name.n == 0)
			continue;
		frame.kind = kind_of_file(frame.file);
		r = sink_frame(flight->sink, &frame, &place);
		if (r >= 0)
			r = sink_stack(flight->sink, stack, place, &stack);
	}
	if (r >= 0)
		r = sink_frame(flight->sink, &last, &place);
	return r < 0 ? r : sink_stack(flight->sink, stack, place, ret);
}

/* torch sees a collective of a GPU end by its events. gloo's have none: it only forgets them. */
static bool is_ended(struct piece state, struct piece backend, int64_t is_retired)
{
	return piece_is(state, "completed") || (is_retired > 0 && backend.n > 0 && !piece_begins(backend, "nccl"));
}

static int put_row(struct flight *flight, const struct marshal_value *entry, struct flight_row *row,
		   struct piece backend, struct piece op, struct piece state, struct piece group)
{
	const struct marshal_value *site = call_site(flight, field(flight, entry, "frames"));
	const struct piece texts[] = { backend,
				       op,
				       state,
				       group,
				       text_of(field(flight, site, "filename")),
				       text_of(field(flight, site, "name")) };
	CLEANUP(freep) char *backend_text = name_text(backend);
	CLEANUP(freep) char *op_text = name_text(op);
	CLEANUP(freep) char *state_text = name_text(state);
	CLEANUP(freep) char *group_text = name_text(group);
	CLEANUP(freep) char *file = name_text(texts[4]);
	CLEANUP(freep) char *func = name_text(texts[5]);
	int line = frame_line(flight, site);

	if (!backend_text || !op_text || !state_text || !group_text || !file || !func)
		return -ENOMEM;
	if (are_spent(flight, texts, N_ELEMENTS(texts)))
		return endless(flight);
	row->op = op_text;
	row->backend = backend_text[0] ? backend_text : NULL;
	row->state = state_text;
	row->group = group_text[0] ? group_text : NULL;
	row->file = file[0] ? file : NULL;
	row->func = func[0] ? func : NULL;
	row->line = line > 0 ? line : FLIGHT_UNKNOWN;
	return flight_put(flight->writer, row);
}

/* -ENODATA: it lacks what each entry has. */
static int read_entry(struct flight *flight, const struct marshal_value *entry)
{
	const struct marshal_value *group = field(flight, entry, "process_group"),
				   *sizes = field(flight, entry, "input_sizes"),
				   *types = field(flight, entry, "input_dtypes"),
				   *duration = field(flight, entry, "duration_ms");
	struct piece name = text_of(field(flight, entry, "profiling_name")),
		     state = text_of(field(flight, entry, "state")), backend, op;
	const struct marshal_value *name_of_group = group && group->type == MARSHAL_TEXT ? group
											 : item_of(flight, group, 0);
	const struct marshal_value *seq = NULL;
	bool is_message = integer_of(field(flight, entry, "is_p2p")) > 0;
	char shapes[MAX_TEXT_BYTES], dtypes[MAX_TEXT_BYTES];
	struct flight_row row = { .dump = flight->dump,
				  .rank = flight->rank,
				  .record = integer_of(field(flight, entry, "record_id")),
				  .src_rank = FLIGHT_UNKNOWN,
				  .dst_rank = FLIGHT_UNKNOWN,
				  .bytes = bytes_of(flight, sizes, types),
				  .is_message = is_message,
				  .created_ns = time_of(field(flight, entry, "time_created_ns")),
				  .started_ns = time_of(field(flight, entry, "time_discovered_started_ns")),
				  .completed_ns = time_of(field(flight, entry, "time_discovered_completed_ns")),
				  .latency_ms = duration && duration->type != MARSHAL_TEXT ? duration->real : NAN,
				  .timeout_ms = integer_of(field(flight, entry, "timeout_ms")) };
	int64_t stack;
	int r;

	if (name.n == 0 || state.n == 0 || row.created_ns == 0)
		return -ENODATA;
	if (!(fabs(row.latency_ms) < 1e12))
		row.latency_ms = NAN;
	seq = field(flight, entry, is_message ? "p2p_seq_id" : "collective_seq_id") ?: field(flight, entry, "seq_id");
	row.seq = integer_of(seq);
	op = split_name(flight, name, group_ranks(flight, text_of(name_of_group)), &backend, &row);
	row.is_ended = is_ended(state, backend, integer_of(field(flight, entry, "retired")));
	know_group(flight, integer_of(field(flight, entry, "pg_id")), group);
	list_text(flight, sizes, shapes);
	list_text(flight, types, dtypes);
	row.shapes = sizes ? shapes : NULL;
	row.dtypes = types ? dtypes : NULL;
	r = put_row(flight, entry, &row, backend, op, state, text_of(name_of_group));
	if (r >= 0)
		r = sink_row(flight->sink, false);
	if (r >= 0)
		r = make_stack(flight, field(flight, entry, "frames"), name, &stack);
	if (r < 0)
		return r;
	return sink_sample(flight->sink, &(struct sample_row){ .time_ns = row.created_ns,
							       .pid = flight->pid,
							       .tid = flight->pid,
							       .weight = 1,
							       .verdict = VERDICT_APPROXIMATE,
							       .end = STACK_COMPLETE,
							       .stack = stack,
							       .state = STATE_NONE });
}

static int put_process(struct flight *flight)
{
	struct rank_identity identity = {
		.rank = flight->rank, .local_rank = -1, .world_size = world_size(flight), .source = RANK_OF_JOB
	};
	bool has_rank = flight->rank != FLIGHT_UNKNOWN;
	char name[32];

	snprintf(name, sizeof name, has_rank ? "rank %" PRId64 : "rank unknown", flight->rank);
	return sink_rank(flight->sink, flight->pid, name, has_rank ? &identity : NULL);
}

static int read_entries(struct flight *flight)
{
	const struct marshal_value *root = &flight->values.values[flight->root], *entries;
	size_t n_read = 0;
	int r;

	if (root->type != MARSHAL_DICT || !field(flight, root, "version"))
		return damaged(flight, "it is not a dump of PyTorch's Flight Recorder");
	entries = field(flight, root, "entries");
	r = put_process(flight);
	for (size_t i = 0; i < n_items(entries, MARSHAL_TUPLE) && r >= 0; i++) {
		r = read_entry(flight, item_of(flight, entries, i));
		n_read += r >= 0;
		if (r == -ENODATA) {
			sink_skip(flight->sink);
			r = 0;
		}
		if (flight->n_looks == MAX_LOOKS)
			r = endless(flight);
		if (r >= 0)
			r = sink_read(flight->sink, i + 1, n_items(entries, MARSHAL_TUPLE));
	}
	if (r >= 0 && n_read == 0 && n_items(entries, MARSHAL_TUPLE) > 0)
		return damaged(flight, "its entries have no name, state or time");
	return r < 0 ? r : put_groups(flight);
}

/* ---- Files ---- */

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int read_pickle(struct flight *flight, const struct import_input *input)
{
	int r = pickle_read(input->bytes, input->n_bytes, &flight->values, &flight->root);

	if (r == -EPROTONOSUPPORT)
		return sink_explain(
			flight->sink, r,
			"its pickle has an object of a class; probing reads numbers, text, lists and dicts, "
			"and runs nothing of a pickle");
	if (r == -E2BIG)
		return sink_explain(flight->sink, -EBADMSG, "it has more than %d values", MARSHAL_MAX_VALUES);
	if (r == -EBADMSG)
		return damaged(flight, "its pickle is damaged");
	return r < 0 ? r : read_entries(flight);
}

static void json_donep(json_t **json)
{
	json_decref(*json);
}

static int read_json(struct flight *flight, const struct import_input *input)
{
	json_error_t error;
	CLEANUP(json_donep)
	json_t *json = json_loadb((const char *)input->bytes, input->n_bytes, JSON_ALLOW_NUL, &error);
	int r;

	if (!json)
		return sink_explain(flight->sink, -EBADMSG, "its JSON is damaged in line %d: %.100s", error.line,
				    error.text);
	r = add_json(&flight->values, json, 0, &flight->root);
	if (r == -E2BIG)
		return sink_explain(flight->sink, -EBADMSG, "it has more than %d values", MARSHAL_MAX_VALUES);
	if (r == -EBADMSG)
		return damaged(flight, "it is not a dump of PyTorch's Flight Recorder");
	return r < 0 ? r : read_entries(flight);
}

/* Of all files of a recording: what their names have in common. */
static void name_run(struct sink *sink, const char *dump)
{
	struct sink_run *run = sink_run(sink);
	size_t n = strlen(dump);

	strcpy(run->event, "operations");
	run->counts = true;
	while (n > 0 && ((dump[n - 1] >= '0' && dump[n - 1] <= '9') || dump[n - 1] == '_' || dump[n - 1] == '.'))
		n--;
	if (!run->command[0])
		snprintf(run->command, sizeof run->command, "%.*s", n > 0 ? (int)n : (int)strlen(dump), dump);
}

static int read_flight(const struct import_input *input, struct sink *sink)
{
	CLEANUP(flight_freep) struct flight *flight = calloc(1, sizeof *flight);
	int r;

	if (!flight)
		return -ENOMEM;
	flight->sink = sink;
	flight->dump = name_of(input->name);
	flight->rank = rank_of_name(flight->dump);
	flight->pid = flight->rank == FLIGHT_UNKNOWN ? UNKNOWN_PID : (pid_t)flight->rank + 1;
	name_run(sink, flight->dump);
	r = sink_flight(sink, &flight->writer);
	if (r < 0)
		return r;
	return input->n_bytes > 0 && input->bytes[0] == 0x80 ? read_pickle(flight, input) : read_json(flight, input);
}

static bool has(const uint8_t *bytes, size_t n_bytes, const char *text)
{
	return memmem(bytes, MIN(n_bytes, (size_t)LOOKED_AT), text, strlen(text));
}

static bool is_flight(const uint8_t *bytes, size_t n_bytes)
{
	if (n_bytes < 4 || !((bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5) || bytes[0] == '{'))
		return false;
	return has(bytes, n_bytes, "pg_config") || has(bytes, n_bytes, "collective_seq_id");
}

const struct importer import_flight = {
	.name = "flight",
	.summary = "dumps of PyTorch's Flight Recorder, of one rank or of all in a folder",
	.joins_files = true,
	.recognise = is_flight,
	.read = read_flight,
};
