/* SPDX-License-Identifier: MIT */
/* name_client.c - see name_client.h.
 *
 * One request is active at a time, about one module, which identifies the cause of a death. During
 * it the other process requests files; then its answers come, and finally the end.
 *
 * Invariants: only requested answers are accepted: the index of a place is below their number, a
 * frame's id is one of those sent. A file that a process died of is never sent again.
 */
#include "src/pipeline/name_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/id_map.h"
#include "base/proc.h"
#include "base/util.h"
#include "src/pipeline/image_file.h"
#include "src/pipeline/keeper.h"
#include "src/pipeline/name_files.h"
#include "src/pipeline/name_server.h"
#include "src/pipeline/name_wire.h"

enum {
	PATIENCE_MS = 120000, /* of a silent worker: large debug information takes seconds */
	MAX_DEATHS = 8,       /* after this many workers have died, read nothing more */
	MAX_DUMPS = 16,       /* per program, as in symbolize/generated.c */
};

struct client_module {
	int64_t id;
	const struct module *module;
	struct build_id build_id;
	char root[64];
	unsigned sent_to; /* number of the worker that has the module; 0: none */
	bool is_given_up;
};

struct client_program {
	struct new_program program;
	int dumps[MAX_DUMPS], map; /* kept for the next worker; map -1: not found yet */
	size_t n_dumps;
	bool is_gone, is_final; /* is_final: gone, and all of its files were read */
	/* What worker number sent_to (0: none) has received. */
	unsigned sent_to;
	size_t n_dumps_sent;
	bool map_sent, end_sent;
};

struct name_client {
	int keeper, fetcher, worker; /* sockets; -1: none */
	pid_t keeper_pid, fetcher_pid;
	unsigned n_workers;
	struct pipeline_name_troubles troubles;
	struct symbol_limited limited, limited_before; /* of this worker, and of earlier ones */
	struct wire wire, fetched;
	struct symbol_cache *cache; /* NULL: none; workers must not access its folder */
	struct client_module *modules;
	size_t n_modules, modules_allocated;
	struct id_map modules_by_id;
	struct client_program *programs;
	size_t n_programs, programs_allocated;
	struct id_map programs_by_id;
	bool is_without_generated;         /* a worker died of such files: skip all of them */
	struct id_map roles;               /* of frames in generated code: id -> enum anonymous_role */
	const struct client_module *asked; /* module of the current request; NULL: generated code */
};

/* ---- The processes ---- */

static int ask_keeper(struct name_client *client)
{
	int r;

	r = keeper_ask(client->keeper, &client->troubles.filter_error, &client->worker);
	if (r < 0)
		return r;
	client->n_workers++;
	name_client_limited(client, &client->limited_before);
	client->limited = (struct symbol_limited){ 0 };
	return 0;
}

/* Without a worker, nothing gets a name. */
static void start_worker(struct name_client *client)
{
	closep(&client->worker);
	client->worker = -1;
	if (client->troubles.n_deaths < MAX_DEATHS)
		(void)ask_keeper(client);
}

/* Restart a worker that died before a question: the cause is unknown, so no file is given up. */
static void see_worker(struct name_client *client)
{
	char byte;

	if (client->worker < 0 || recv(client->worker, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0)
		return;
	client->troubles.n_deaths++;
	start_worker(client);
}

int name_client_over(int worker, struct name_client **ret)
{
	struct name_client *client = calloc(1, sizeof *client);

	if (!client)
		return -ENOMEM;
	client->keeper = client->fetcher = -1;
	client->worker = worker;
	client->n_workers = 1;
	wire_init(&client->wire);
	wire_init(&client->fetched);
	*ret = client;
	return 0;
}

int name_client_start(struct name_client **ret)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct name_client *client;
	int r;

	r = name_client_over(-1, &client);
	if (r < 0)
		return r;
	client->n_workers = 0;
	r = name_keeper_start(&client->keeper, &client->keeper_pid);
	if (r >= 0 && urls && urls[0])
		r = name_fetcher_start(&client->fetcher, &client->fetcher_pid);
	if (r >= 0)
		r = ask_keeper(client);
	if (r >= 0 && symbol_cache_open(&client->cache) == -ENOMEM)
		r = -ENOMEM;
	if (r < 0) {
		name_client_free(client);
		return r;
	}
	*ret = client;
	return 0;
}

static void close_files(struct client_program *program)
{
	while (program->n_dumps > 0)
		closep(&program->dumps[--program->n_dumps]);
	closep(&program->map);
	program->map = -1;
}

static void end(int *socket, pid_t pid)
{
	closep(socket);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void name_client_free(struct name_client *client)
{
	if (!client)
		return;
	closep(&client->worker);
	end(&client->keeper, client->keeper_pid);
	end(&client->fetcher, client->fetcher_pid);
	symbol_cache_free(client->cache);
	for (size_t i = 0; i < client->n_programs; i++)
		close_files(&client->programs[i]);
	free(client->programs);
	free(client->modules);
	id_map_done(&client->modules_by_id);
	id_map_done(&client->programs_by_id);
	id_map_done(&client->roles);
	wire_done(&client->wire);
	wire_done(&client->fetched);
	free(client);
}

void name_client_troubles(const struct name_client *client, struct pipeline_name_troubles *ret)
{
	*ret = client->troubles;
}

void name_client_limited(const struct name_client *client, struct symbol_limited *ret)
{
	struct symbol_limited sum = client->limited_before.n_places > 0 ? client->limited_before : client->limited;

	sum.n_places = client->limited_before.n_places + client->limited.n_places;
	sum.n_modules = client->limited_before.n_modules + client->limited.n_modules;
	*ret = sum;
}

/* ---- Requests of the worker ---- */

static int fetch(struct name_client *client, const struct wire_wanted_id *wanted, int *ret)
{
	int32_t error;
	int r;

	if (client->fetcher < 0)
		return -ENOENT;
	r = wire_send(client->fetcher, WIRE_WANT_ID, wanted, sizeof *wanted, -1);
	if (r >= 0)
		r = wire_receive(client->fetcher, -1, &client->fetched);
	if (r >= 0 && !wire_struct(&client->fetched, &error, sizeof error))
		r = -EBADMSG;
	if (r < 0) {
		closep(&client->fetcher); /* the fetcher has died: do not ask servers again */
		client->fetcher = -1;
		return -ENOENT;
	}
	if (error < 0 || client->fetched.fd < 0)
		return error < 0 ? error : -ENOENT;
	*ret = TAKE_FD(client->fetched.fd);
	return 0;
}

/* Open read-only: the worker's results must not enter the cache. */
static int find_cached(struct name_client *client, const char *name, int *ret)
{
	char id[2 * BUILD_ID_MAX + 1];

	build_id_format(&client->asked->build_id, id);
	if (!client->cache || id[0] == '\0' || strncmp(name, id, strlen(id)) != 0)
		return -ENOENT;
	return symbol_cache_find(client->cache, name, ret);
}

static int find_wanted(struct name_client *client, int *ret)
{
	const struct wire *wire = &client->wire;
	const char *path = (const char *)wire->bytes;
	struct wire_wanted_id wanted;

	if (!client->asked)
		return -EACCES;
	if (wire->kind == WIRE_WANT_ID)
		return wire_struct(wire, &wanted, sizeof wanted) && wanted.id.n_bytes <= BUILD_ID_MAX
			       ? fetch(client, &wanted, ret)
			       : -EINVAL;
	if (wire->n_bytes == 0 || path[wire->n_bytes - 1] != '\0')
		return -EINVAL;
	if (wire->kind == WIRE_WANT_CACHED)
		return find_cached(client, path, ret);
	return name_file_open(path, client->asked->module->path, client->asked->root, ret);
}

static int hand_over(struct name_client *client)
{
	CLEANUP(closep) int fd = -1;
	int32_t error = find_wanted(client, &fd);

	return wire_send(client->worker, WIRE_FILE, &error, sizeof error, error < 0 ? -1 : fd);
}

/* ---- Answers ---- */

/* What an answer is about, and who takes it. */
struct request {
	const struct name_taker *taker;
	const struct new_frame *frames;
	const uint32_t *places; /* indices of the requested frames; NULL: answers contain frame ids */
	uint32_t n;
	bool *is_answered; /* indexed like places */
	struct stale_places *stale;
	int taken_error; /* an error of the taker, not of the worker */
};

/* Look up a number from the worker. 0 is in no map and must not be passed to id_map_find(). */
static const struct id_slot *find_foreign(const struct id_map *map, uint32_t number)
{
	return number == 0 ? NULL : id_map_find(map, number);
}

static int take_native(struct request *request, const struct wire_answer *answer)
{
	struct symbol symbols[SYMBOL_MAX_INLINED];

	if (answer->subject >= request->n || request->is_answered[answer->subject])
		return -EBADMSG;
	request->is_answered[answer->subject] = true;
	for (uint32_t i = 0; i < answer->n; i++) {
		const struct wire_symbol *symbol = &answer->symbols[i];

		symbols[i] = (struct symbol){ .name = symbol->name,
					      .linkage = symbol->linkage,
					      .start = symbol->start,
					      .file = symbol->file,
					      .line = symbol->line,
					      .role = (enum symbol_role)symbol->role,
					      .is_offset = symbol->is_offset };
	}
	if (answer->n > 0)
		request->taken_error = request->taker->take_native(request->taker->data,
								   &request->frames[request->places[answer->subject]],
								   symbols, (int)answer->n);
	return 0;
}

static int take_generated(struct name_client *client, struct request *request, const struct wire_answer *answer)
{
	const struct wire_symbol *found = &answer->symbols[0];
	const struct id_slot *slot = find_foreign(&client->roles, answer->subject);
	struct generated_symbol symbol;
	struct new_frame frame;

	if (!slot || answer->n > 1)
		return -EBADMSG;
	frame = (struct new_frame){ .id = answer->subject,
				    .kind = FRAME_NATIVE,
				    .role = (enum anonymous_role)slot->id };
	if (answer->n > 0)
		symbol = (struct generated_symbol){ .entry = found->linkage ?: found->name,
						    .name = found->name,
						    .file = found->file,
						    .first_line = found->first_line,
						    .line = found->line,
						    .is_python = found->is_python };
	request->taken_error = request->taker->take_generated(request->taker->data, &frame,
							      answer->n > 0 ? &symbol : NULL);
	return 0;
}

static int take_answers(struct name_client *client, struct request *request)
{
	struct cursor from = { .at = client->wire.bytes, .end = client->wire.bytes + client->wire.n_bytes };
	struct wire_answer answer;
	int r;

	while ((r = wire_take_answer(&from, &answer)) > 0) {
		r = request->places ? take_native(request, &answer) : take_generated(client, request, &answer);
		if (r < 0 || request->taken_error < 0)
			return r;
	}
	return r;
}

static int take_stale(struct name_client *client, struct request *request)
{
	const struct wire *wire = &client->wire;
	struct wire_stale place;

	if (!request->stale || wire->n_bytes % sizeof place != 0)
		return -EBADMSG;
	for (size_t at = 0; at < wire->n_bytes; at += sizeof place) {
		struct stale_places *stale = request->stale;

		memcpy(&place, wire->bytes + at, sizeof place);
		if (!find_foreign(&client->programs_by_id, place.program))
			return -EBADMSG;
		request->taken_error = grow(&stale->places, stale->n, &stale->allocated, sizeof *stale->places);
		if (request->taken_error < 0)
			return 0;
		stale->places[stale->n++] = (struct stale_place){ place.program, place.address };
	}
	return 0;
}

/* The worker's figures may be wrong and are shown to the user: limit them, so that sums cannot overflow. */
static int take_end(struct name_client *client)
{
	struct wire_limited end;

	if (!wire_struct(&client->wire, &end, sizeof end) || end.limit >= SYMBOL_N_LIMITS ||
	    memchr(end.path, '\0', sizeof end.path) == NULL || end.n_places > UINT32_MAX || end.n_modules > UINT32_MAX)
		return -EBADMSG;
	client->limited = (struct symbol_limited){ .n_places = end.limit != SYMBOL_LIMIT_NONE ? end.n_places : 0,
						   .n_modules = end.n_modules,
						   .limit = (enum symbol_limit)end.limit };
	memcpy(client->limited.path, end.path, sizeof end.path);
	return 0;
}

/* Handle messages until the end of the answers. Negative errno: this worker is unusable. */
static int converse(struct name_client *client, struct request *request)
{
	int r;

	for (;;) {
		r = wire_receive(client->worker, PATIENCE_MS, &client->wire);
		if (r < 0 || client->wire.kind == WIRE_END)
			return r < 0 ? r : take_end(client);
		switch ((enum wire_kind)client->wire.kind) {
		case WIRE_WANT_PATH:
		case WIRE_WANT_ID:
		case WIRE_WANT_CACHED:
			r = hand_over(client);
			break;
		case WIRE_ANSWERS:
			r = take_answers(client, request);
			break;
		case WIRE_STALE:
			r = take_stale(client, request);
			break;
		default:
			r = -EBADMSG;
		}
		if (r < 0 || request->taken_error < 0)
			return r < 0 ? r : -ECANCELED;
	}
}

/* ---- Code in files ---- */

int name_client_put_module(struct name_client *client, const struct new_module *module)
{
	struct client_module *added;
	int r;

	r = grow(&client->modules, client->n_modules, &client->modules_allocated, sizeof *client->modules);
	if (r >= 0)
		r = id_map_add(&client->modules_by_id, (uint64_t)module->id, (uint32_t)client->n_modules);
	if (r < 0)
		return r;
	added = &client->modules[client->n_modules++];
	*added = (struct client_module){ .id = module->id, .module = module->module, .build_id = module->build_id };
	return 0;
}

static int send_module(struct name_client *client, struct client_module *module)
{
	const struct module *named = module->module;
	size_t n_path = strnlen(named->path, NAME_FILE_MAX_PATH - 1);
	char message[sizeof(struct wire_module) + NAME_FILE_MAX_PATH] = { 0 };
	struct wire_module head;
	CLEANUP(closep) int made = -1;
	int fd = -1, r = 0;

	memset(&head, 0, sizeof head);
	if (named->image) {
		r = image_file_make(named->image, named->n_image_bytes, &made);
		fd = made;
	} else if (named->elf) { /* once the file is open, the opener never changes */
		char root[PROC_PATH_BYTES];

		proc_path(named->opener, "root", root);
		snprintf(module->root, sizeof module->root, "%.*s", (int)sizeof module->root - 1, root);
		fd = elf_file_fd(named->elf);
	}
	if (r < 0)
		return r == -EPIPE ? -EIO : r;
	head.module = (uint32_t)(module - client->modules);
	head.has_file = fd >= 0;
	head.build_id = module->build_id;
	memcpy(head.root, module->root, sizeof head.root);
	memcpy(message, &head, sizeof head);
	memcpy(message + sizeof head, named->path, n_path);
	r = wire_send(client->worker, WIRE_MODULE, message, sizeof head + n_path + 1, fd);
	if (r >= 0)
		module->sent_to = client->n_workers;
	return r;
}

static int name_by_offset(const struct client_module *module, const struct new_frame *frame,
			  const struct name_taker *taker)
{
	CLEANUP(freep) char *name = NULL;
	struct symbol symbol = { .is_offset = true };

	if (asprintf(&name, "%s+0x%llx", module_name(module->module), (unsigned long long)frame->address) < 0)
		return -ENOMEM;
	symbol.name = name;
	return taker->take_native(taker->data, frame, &symbol, 1);
}

static int request_places(struct name_client *client, struct client_module *module, struct request *request)
{
	struct wire_places places;
	int r = 0;

	see_worker(client);
	if (client->worker < 0)
		return -EPIPE;
	memset(&places, 0, sizeof places);
	if (module->sent_to != client->n_workers)
		r = send_module(client, module);
	places.module = (uint32_t)(module - client->modules);
	places.n = request->n;
	for (uint32_t i = 0; i < request->n; i++)
		places.addresses[i] = request->frames[request->places[i]].address;
	client->asked = module;
	if (r >= 0)
		r = wire_send(client->worker, WIRE_PLACES, &places, sizeof places, -1);
	return r < 0 ? r : converse(client, request);
}

static void note_death(struct name_client *client, const char *path)
{
	if (client->worker < 0)
		return;
	client->troubles.n_deaths++;
	if (!client->troubles.path)
		client->troubles.path = path;
	client->troubles.is_of_generated |= !path;
	start_worker(client);
}

static int look_up_module(struct name_client *client, struct client_module *module, struct request *request)
{
	bool is_answered[WIRE_MAX_PLACES] = { false };
	int r = 0;

	request->is_answered = is_answered;
	if (!module->is_given_up)
		r = request_places(client, module, request);
	if (request->taken_error < 0)
		return request->taken_error;
	if (r < 0) {
		module->is_given_up = true;
		note_death(client, module->module->path);
	}
	for (uint32_t i = 0; i < request->n && module->is_given_up && r <= 0; i++)
		if (!is_answered[i] &&
		    (r = name_by_offset(module, &request->frames[request->places[i]], request->taker)) < 0)
			return r;
	return 0;
}

/* ---- Generated code ---- */

static struct client_program *find_program(struct name_client *client, uint32_t id)
{
	const struct id_slot *slot = id_map_find(&client->programs_by_id, id);

	return slot ? &client->programs[slot->id] : NULL;
}

static int put_program(struct name_client *client, const struct new_program *program)
{
	int r;

	r = grow(&client->programs, client->n_programs, &client->programs_allocated, sizeof *client->programs);
	if (r >= 0)
		r = id_map_add(&client->programs_by_id, program->id, (uint32_t)client->n_programs);
	if (r < 0)
		return r;
	client->programs[client->n_programs++] = (struct client_program){ .program = *program, .map = -1 };
	return 0;
}

static void put_dump(struct name_client *client, struct new_dump *dump)
{
	struct client_program *program = find_program(client, dump->program);

	if (program && program->n_dumps < MAX_DUMPS)
		program->dumps[program->n_dumps++] = TAKE_FD(dump->fd);
}

int name_client_put_programs(struct name_client *client, const struct new_program *programs, size_t n_programs,
			     struct new_dump *dumps, size_t n_dumps)
{
	int r = 0;

	for (size_t i = 0; i < n_programs && r >= 0; i++)
		r = put_program(client, &programs[i]);
	for (size_t i = 0; i < n_dumps && r >= 0; i++)
		put_dump(client, &dumps[i]);
	return r;
}

bool name_client_is_open(const struct name_client *client)
{
	for (size_t i = 0; i < client->n_programs && !client->is_without_generated; i++)
		if (!client->programs[i].is_final)
			return true;
	return false;
}

static int send_feed(struct name_client *client, struct client_program *program)
{
	bool with_map = program->map >= 0 && !program->map_sent;
	struct wire_feed feed;
	int r;

	memset(&feed, 0, sizeof feed);
	feed.program = program->program.id;
	feed.is_gone = program->is_gone;
	r = wire_send(client->worker, WIRE_FEED, &feed, sizeof feed, with_map ? program->map : -1);
	program->map_sent |= with_map;
	program->end_sent = program->is_gone;
	return r;
}

/* Send what the worker does not have of a program. */
static int send_program(struct name_client *client, struct client_program *program)
{
	bool is_new = program->sent_to != client->n_workers;
	int r = 0;

	if (is_new) {
		program->sent_to = client->n_workers;
		program->n_dumps_sent = 0;
		program->map_sent = program->end_sent = false;
		r = wire_send(client->worker, WIRE_PROGRAM, &program->program, sizeof program->program, -1);
	}
	for (; program->n_dumps_sent < program->n_dumps && r >= 0; program->n_dumps_sent++)
		r = wire_send(client->worker, WIRE_DUMP, &program->program.id, sizeof program->program.id,
			      program->dumps[program->n_dumps_sent]);
	if (r >= 0 && (is_new || (program->map >= 0 && !program->map_sent) || program->is_gone != program->end_sent))
		r = send_feed(client, program);
	return r;
}

static int send_programs(struct name_client *client)
{
	int r;

	see_worker(client);
	r = client->worker < 0 ? -EPIPE : 0;
	for (size_t i = 0; i < client->n_programs && r >= 0; i++)
		r = send_program(client, &client->programs[i]);
	return r;
}

/* A worker that died of generated code has lost its state; frames without a name stay unnamed. */
static int end_generated(struct name_client *client, const struct request *request, int r)
{
	if (request->taken_error < 0)
		return request->taken_error;
	if (r >= 0)
		return 0;
	client->is_without_generated = true;
	note_death(client, NULL);
	for (size_t i = 0; i < client->n_programs; i++)
		close_files(&client->programs[i]);
	return 0;
}

static int request_generated(struct name_client *client, const struct wire_generated *wanted, struct request *request)
{
	int r;

	client->asked = NULL;
	r = send_programs(client);
	if (r >= 0)
		r = wire_send(client->worker, WIRE_GENERATED, wanted, sizeof *wanted, -1);
	return r < 0 ? r : converse(client, request);
}

static int look_up_generated(struct name_client *client, const struct new_frame *frames, const uint32_t *places,
			     uint32_t n, const struct name_taker *taker)
{
	struct request request = { .taker = taker };
	struct wire_generated wanted;
	int r = 0;

	memset(&wanted, 0, sizeof wanted);
	for (uint32_t i = 0; i < n && r >= 0; i++) {
		const struct new_frame *frame = &frames[places[i]];

		wanted.frames[wanted.n++] = (struct wire_frame){ frame->id, frame->program, frame->address,
								 frame->time_ns };
		r = id_map_find(&client->roles, frame->id)
			    ? 0
			    : id_map_add(&client->roles, frame->id, (uint32_t)frame->role);
		if (r >= 0 && client->is_without_generated)
			r = taker->take_generated(taker->data, frame, NULL);
	}
	if (r < 0 || client->is_without_generated)
		return r;
	r = end_generated(client, &request, request_generated(client, &wanted, &request));
	/* Let the taker name unanswered frames as far as it can. */
	for (uint32_t i = 0; i < n && r >= 0 && client->is_without_generated; i++)
		r = taker->take_generated(taker->data, &frames[places[i]], NULL);
	return r;
}

/* Only programs with files can have new names. */
static bool look_for_files(struct name_client *client)
{
	bool found = false;

	for (size_t i = 0; i < client->n_programs; i++) {
		struct client_program *program = &client->programs[i];

		if (program->is_final)
			continue;
		program->is_gone = generated_owner_is_gone(&program->program.owner);
		if (program->map < 0)
			(void)generated_map_open(&program->program.owner,
						 &program->map); /* most processes write no map */
		found |= program->map >= 0 || program->n_dumps > 0;
		if (program->map < 0 && program->n_dumps == 0)
			program->is_final = program->is_gone;
	}
	return found;
}

/* Programs that had ended before their files were read write nothing more. */
static void finish_ended(struct name_client *client)
{
	for (size_t i = 0; i < client->n_programs; i++) {
		if (!client->programs[i].end_sent)
			continue;
		client->programs[i].is_final = true;
		close_files(&client->programs[i]);
	}
}

int name_client_refresh(struct name_client *client, const struct name_taker *taker, struct stale_places *stale)
{
	struct request request = { .taker = taker, .stale = stale };
	int r;

	if (client->is_without_generated || !look_for_files(client))
		return 0;
	client->asked = NULL;
	r = send_programs(client);
	if (r >= 0)
		r = wire_send(client->worker, WIRE_REFRESH, NULL, 0, -1);
	if (r >= 0)
		r = converse(client, &request);
	r = end_generated(client, &request, r);
	finish_ended(client);
	return r;
}

/* ---- All names ---- */

static int look_up_same(struct name_client *client, const struct new_frame *frames, const uint32_t *places, uint32_t n,
			const struct name_taker *taker)
{
	struct request request = { .taker = taker, .frames = frames, .places = places, .n = n };
	const struct id_slot *slot;

	if (frames[places[0]].module_id == 0)
		return look_up_generated(client, frames, places, n, taker);
	slot = id_map_find(&client->modules_by_id, (uint64_t)frames[places[0]].module_id);
	return slot && client->modules[slot->id].module ? look_up_module(client, &client->modules[slot->id], &request)
							: 0;
}

int name_client_look_up(struct name_client *client, const struct new_frame *frames, size_t n,
			const struct name_taker *taker)
{
	bool is_done[WIRE_MAX_PLACES] = { false };
	int r = 0;

	if (n > WIRE_MAX_PLACES)
		return -EINVAL;
	for (size_t i = 0; i < n && r >= 0; i++) {
		uint32_t places[WIRE_MAX_PLACES], n_places = 0;

		for (size_t j = i; j < n && !is_done[i]; j++)
			if (frames[j].module_id == frames[i].module_id && frames[j].kind == frames[i].kind)
				places[n_places++] = (uint32_t)j;
		for (uint32_t j = 0; j < n_places; j++)
			is_done[places[j]] = true;
		if (n_places > 0 && frames[i].kind == FRAME_NATIVE)
			r = look_up_same(client, frames, places, n_places, taker);
	}
	return r;
}
