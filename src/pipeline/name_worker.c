/* SPDX-License-Identifier: MIT */
/* name_worker.c - the process that reads untrusted files: ELF, DWARF, perf maps, jitdumps.
 *
 * It has no privilege and opens nothing (name_server.c, confined.c): it requests files from the recorder, which checks
 * them. A file that takes it over can only make it answer with names.
 *
 * It answers requests in their order, and ends when the recorder has ended, or without memory: then
 * the requested places stay without names.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/id_map.h"
#include "base/util.h"
#include "src/pipeline/generated_names.h"
#include "src/pipeline/name_server.h"
#include "src/pipeline/name_wire.h"
#include "src/pipeline/page_trim.h"

enum { SEND_BYTES = 32 << 10, NAMES_BETWEEN_TRIMS = 16 };

struct worker {
	int socket;
	struct wire request, reply; /* reply: answers to the worker's own requests during a request */
	struct wire_answers answers;
	struct symbol_opener opener;
	struct symbol_search *search;
	struct symbol_module **modules; /* NULL: has no names */
	size_t n_modules, modules_allocated;
	struct id_map by_number; /* + 1 -> index */
	struct generated_names *generated;
	struct stale_places stale;
	struct page_trim trim;
};

/* ---- Requests to the recorder ---- */

static int receive_file(struct worker *worker, int *ret)
{
	int32_t error;
	int r;

	r = wire_receive(worker->socket, -1, &worker->reply);
	if (r < 0 || worker->reply.kind != WIRE_FILE || !wire_struct(&worker->reply, &error, sizeof error))
		_exit(1); /* the stream is out of sync */
	if (error < 0)
		return error;
	if (worker->reply.fd < 0)
		return -ENOENT;
	*ret = TAKE_FD(worker->reply.fd);
	return 0;
}

static int open_file(void *data, const char *path, int *ret)
{
	struct worker *worker = data;
	int r;

	r = wire_send(worker->socket, WIRE_WANT_PATH, path, strlen(path) + 1, -1);
	return r < 0 ? r : receive_file(worker, ret);
}

static int find_cached(void *data, const char *name, int *ret)
{
	struct worker *worker = data;
	int r;

	r = wire_send(worker->socket, WIRE_WANT_CACHED, name, strlen(name) + 1, -1);
	return r < 0 ? r : receive_file(worker, ret);
}

static int ask_server(void *data, const struct build_id *id, bool executable, int *ret)
{
	struct worker *worker = data;
	struct wire_wanted_id wanted;
	int r;

	memset(&wanted, 0, sizeof wanted);
	wanted.id = *id;
	wanted.executable = executable;
	r = wire_send(worker->socket, WIRE_WANT_ID, &wanted, sizeof wanted, -1);
	return r < 0 ? r : receive_file(worker, ret);
}

/*
 * libdw opens some files itself: the other halves of split debug information. The call filter turns its openat(2) into
 * SIGSYS, and the recorder opens the file instead. The signal is synchronous: it arrives at the system call, where this
 * process holds no locks.
 */
static struct worker *opening;

static void open_for_library(int signal, siginfo_t *info, void *data)
{
	ucontext_t *context = data;
	int fd = -1, r = -ENOSYS;

	(void)signal;
#if defined(__x86_64__)
	if (info->si_syscall == __NR_openat)
		r = open_file(opening, (const char *)context->uc_mcontext.gregs[REG_RSI], &fd);
	context->uc_mcontext.gregs[REG_RAX] = r < 0 ? r : fd;
#elif defined(__aarch64__)
	if (info->si_syscall == __NR_openat)
		r = open_file(opening, (const char *)context->uc_mcontext.regs[1], &fd);
	context->uc_mcontext.regs[0] = (uint64_t)(int64_t)(r < 0 ? r : fd);
#endif
}

static int take_openings(struct worker *worker)
{
	const struct sigaction action = { .sa_sigaction = open_for_library, .sa_flags = SA_SIGINFO };

	opening = worker;
	return sigaction(SIGSYS, &action, NULL) < 0 ? -errno : 0;
}

/* ---- Answers ---- */

static int send_answers(struct worker *worker, size_t least)
{
	int r = 0;

	if (worker->answers.n > least)
		r = wire_send(worker->socket, WIRE_ANSWERS, worker->answers.bytes, worker->answers.n, -1);
	if (worker->answers.n > least)
		worker->answers.n = 0;
	return r;
}

static int put_answer(struct worker *worker, const struct wire_answer *answer)
{
	int r;

	r = wire_put_answer(&worker->answers, answer);
	return r < 0 ? r : send_answers(worker, SEND_BYTES);
}

/* ---- Code in files ---- */

/* If the recorder has no file, search by build-id. That yields names and lines, but no load address. */
static int open_module(struct worker *worker, const struct wire_module *wanted, const char *path,
		       struct symbol_module **ret)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	CLEANUP(freep) char *found = NULL;
	CLEANUP(closep) int fd = TAKE_FD(worker->request.fd);
	int r = 0;

	if (!wanted->has_file)
		r = symbol_search_find(worker->search, path, &wanted->build_id, &fd, &found);
	if (r >= 0)
		r = fd < 0 ? -ENOENT : symbol_module_open(path, fd, &module);
	if (r >= 0)
		r = symbol_module_set_search(module, worker->search, wanted->root[0] ? wanted->root : NULL);
	if (r < 0)
		return r;
	*ret = TAKE(module);
	return 0;
}

/* A path follows the struct. */
static int take_module(struct worker *worker)
{
	struct wire_module wanted;
	CLEANUP(freep) char *path = NULL;
	int r;

	if (worker->request.n_bytes < sizeof wanted)
		return -EBADMSG;
	memcpy(&wanted, worker->request.bytes, sizeof wanted);
	path = strndup((const char *)worker->request.bytes + sizeof wanted, worker->request.n_bytes - sizeof wanted);
	if (!path)
		return -ENOMEM;
	r = grow(&worker->modules, worker->n_modules, &worker->modules_allocated, sizeof(struct symbol_module *));
	if (r >= 0)
		r = id_map_add(&worker->by_number, (uint64_t)wanted.module + 1, (uint32_t)worker->n_modules);
	if (r < 0)
		return r;
	worker->modules[worker->n_modules] = NULL;
	r = open_module(worker, &wanted, path, &worker->modules[worker->n_modules++]);
	return r == -ENOMEM ? r : 0;
}

static void trim(struct worker *worker)
{
	if (!page_trim_is_due(&worker->trim))
		return;
	for (size_t i = 0; i < worker->n_modules; i++)
		if (worker->modules[i])
			symbol_module_trim(worker->modules[i]);
	page_trim_did(&worker->trim);
}

static int answer_place(struct worker *worker, struct symbol_module *module, uint32_t i, uint64_t address)
{
	struct symbol found[SYMBOL_MAX_INLINED];
	struct wire_answer answer = { .subject = i };
	int n = module ? symbol_lookup(module, address, found, N_ELEMENTS(found)) : 0;

	if (n == -ENOMEM)
		return n;
	answer.n = (uint32_t)MAX(n, 0);
	for (uint32_t j = 0; j < answer.n; j++)
		answer.symbols[j] = (struct wire_symbol){
			.name = found[j].name,
			.linkage = found[j].linkage,
			.file = found[j].file,
			.start = found[j].start,
			.line = MAX(found[j].line, 0),
			.role = (uint8_t)found[j].role,
			.is_offset = found[j].is_offset,
		};
	return put_answer(worker, &answer);
}

static int take_places(struct worker *worker)
{
	const struct id_slot *slot;
	struct wire_places places;
	struct symbol_module *module;
	int r = 0;

	if (!wire_struct(&worker->request, &places, sizeof places) || places.n > WIRE_MAX_PLACES)
		return -EBADMSG;
	slot = id_map_find(&worker->by_number, (uint64_t)places.module + 1);
	module = slot ? worker->modules[slot->id] : NULL;
	for (uint32_t i = 0; i < places.n && r >= 0; i++) {
		r = answer_place(worker, module, i, places.addresses[i]);
		if (i % NAMES_BETWEEN_TRIMS == 0)
			trim(worker);
	}
	trim(worker);
	return r;
}

/* ---- Generated code ---- */

static int take_program(struct worker *worker)
{
	struct new_program program;

	if (!wire_struct(&worker->request, &program, sizeof program))
		return -EBADMSG;
	return generated_names_put(worker->generated, &program, 1, NULL, 0);
}

static int take_dump(struct worker *worker)
{
	struct new_dump dump = { .fd = TAKE_FD(worker->request.fd) };
	int r = -EBADMSG;

	if (wire_struct(&worker->request, &dump.program, sizeof dump.program) && dump.fd >= 0)
		r = generated_names_put(worker->generated, NULL, 0, &dump, 1);
	closep(&dump.fd);
	return r;
}

static int take_feed(struct worker *worker)
{
	struct wire_feed feed;

	if (!wire_struct(&worker->request, &feed, sizeof feed))
		return -EBADMSG;
	generated_names_feed(worker->generated, feed.program, TAKE_FD(worker->request.fd), feed.is_gone);
	return 0;
}

/* Send the entry of the jitdump or map as the linkage name. */
static int answer_generated(const struct new_frame *frame, const struct generated_symbol *symbol, void *data)
{
	struct worker *worker = data;
	struct wire_answer answer = { .subject = frame->id };

	if (symbol) {
		answer.n = 1;
		answer.symbols[0] = (struct wire_symbol){
			.name = symbol->name,
			.linkage = symbol->entry,
			.file = symbol->file,
			.line = MAX(symbol->line, 0),
			.first_line = MAX(symbol->first_line, 0),
			.is_python = symbol->is_python,
		};
	}
	return put_answer(worker, &answer);
}

static int take_generated(struct worker *worker)
{
	struct wire_generated wanted;
	int r = 0;

	if (!wire_struct(&worker->request, &wanted, sizeof wanted) || wanted.n > WIRE_MAX_PLACES)
		return -EBADMSG;
	for (uint32_t i = 0; i < wanted.n && r >= 0; i++) {
		const struct wire_frame *asked = &wanted.frames[i];
		const struct new_frame frame = {
			.id = asked->id, .program = asked->program, .address = asked->address, .time_ns = asked->time_ns
		};
		struct generated_symbol symbol;

		r = generated_names_look_up(worker->generated, &frame, &symbol);
		if (r >= 0)
			r = answer_generated(&frame, r > 0 ? &symbol : NULL, worker);
	}
	return r;
}

static int send_stale(struct worker *worker)
{
	enum { MAX_AT_ONCE = 256 };
	struct wire_stale stale[MAX_AT_ONCE];
	int r = 0;

	memset(stale, 0, sizeof stale);
	for (size_t i = 0; i < worker->stale.n && r >= 0; i += MAX_AT_ONCE) {
		size_t n = MIN(worker->stale.n - i, (size_t)MAX_AT_ONCE);

		for (size_t j = 0; j < n; j++) {
			stale[j].program = worker->stale.places[i + j].program;
			stale[j].address = worker->stale.places[i + j].address;
		}
		r = wire_send(worker->socket, WIRE_STALE, stale, n * sizeof stale[0], -1);
	}
	worker->stale.n = 0;
	return r;
}

static int take_refresh(struct worker *worker)
{
	int r;

	r = generated_names_refresh(worker->generated, answer_generated, worker, &worker->stale);
	return r < 0 ? r : send_stale(worker);
}

/* ---- Main loop ---- */

static int end_answers(struct worker *worker, int r)
{
	struct symbol_limited limited;
	struct wire_limited end;

	memset(&end, 0, sizeof end);
	symbol_search_limited(worker->search, &limited);
	end.n_places = limited.n_places;
	end.n_modules = limited.n_modules;
	end.limit = limited.limit;
	memcpy(end.path, limited.path, sizeof end.path);
	if (r >= 0)
		r = send_answers(worker, 0);
	return r < 0 ? r : wire_send(worker->socket, WIRE_END, &end, sizeof end, -1);
}

static int serve(struct worker *worker)
{
	switch ((enum wire_kind)worker->request.kind) {
	case WIRE_MODULE:
		return take_module(worker);
	case WIRE_PLACES:
		return end_answers(worker, take_places(worker));
	case WIRE_PROGRAM:
		return take_program(worker);
	case WIRE_DUMP:
		return take_dump(worker);
	case WIRE_FEED:
		return take_feed(worker);
	case WIRE_GENERATED:
		return end_answers(worker, take_generated(worker));
	case WIRE_REFRESH:
		return end_answers(worker, take_refresh(worker));
	default:
		return -EBADMSG;
	}
}

static int begin(struct worker *worker)
{
	const char *urls = getenv("DEBUGINFOD_URLS"), *folder = getenv("TMPDIR");
	const struct symbol_search_options options = {
		.opener = &worker->opener,
		.scratch_folder = folder && folder[0] ? folder : "/var/tmp",
		.debuginfod = urls && urls[0] != '\0',
	};
	int r;

	wire_init(&worker->request);
	wire_init(&worker->reply);
	page_trim_init(&worker->trim, 8 << 20, 16 << 20);
	r = take_openings(worker);
	if (r < 0)
		return r;
	(void)name_worker_confine(); /* without kernel support, the keeper has already reported it */
	r = symbol_search_new(&options, &worker->search);
	return r < 0 ? r : generated_names_new(&worker->generated);
}

void name_worker_run(int socket)
{
	struct worker worker = { .socket = socket, .opener = { open_file, ask_server, find_cached, &worker } };
	int r;

	r = begin(&worker);
	while (r >= 0) {
		r = wire_receive(socket, -1, &worker.request);
		if (r >= 0)
			r = serve(&worker);
	}
	/* Process exit frees everything. */
}
