/* SPDX-License-Identifier: MIT */
/* cfi_client.c - see cfi_client.h.
 *
 * Invariants: one request is active at a time, about one file, so a death has one file to blame. A file that a
 * process died of is given up: it is never sent again. A file is sent to each process once, before the first request
 * about it. The capturing thread waits for answers, so their time is limited: each one's, and that of slow ones
 * together.
 */
#include "src/pipeline/cfi_client.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "src/pipeline/cfi_server.h"
#include "src/pipeline/cfi_wire.h"
#include "src/pipeline/image_file.h"
#include "src/pipeline/keeper.h"

enum {
	SLOW_PART = 100,   /* an answer that takes more than 1/100 of the patience, 100 ms, is slow */
	MAX_PATIENCES = 3, /* total time of one worker's slow answers, in multiples of the patience */
	MAX_DEATHS = 8,    /* after this many workers have died, read nothing more */
};

struct cfi_file {
	char *name; /* NULL: free */
	int fd;     /* borrowed; -1: the file is `image` */
	const void *image;
	size_t n_bytes;
	unsigned sent_to; /* number of the worker that has the file; 0: none */
	bool is_given_up;
};

struct cfi_client {
	int keeper, worker; /* sockets; -1: none */
	pid_t keeper_pid;
	unsigned n_workers;
	uint64_t slow_ns; /* total time of this worker's slow answers */
	int patience_ms;
	struct pipeline_cfi_troubles troubles;
	char *first_unread; /* owned copy that troubles.path points to */
	struct elf_reader reader;
	struct native_row_source rows;
	struct cfi_file *files;
	size_t n_files, files_allocated;
	uint8_t buffer[CFI_MAX_PACKET];
};

/* ---- The processes ---- */

static int start_worker(struct cfi_client *client)
{
	int r;

	closep(&client->worker);
	client->worker = -1;
	if (client->keeper < 0 || client->troubles.n_deaths >= MAX_DEATHS)
		return -EPIPE;
	r = keeper_ask(client->keeper, &client->troubles.filter_error, &client->worker);
	client->n_workers += r >= 0;
	client->slow_ns = 0;
	return r;
}

static void leave_unread(struct cfi_client *client, struct cfi_file *file)
{
	client->troubles.n_unread += !file->is_given_up;
	file->is_given_up = true;
	if (!client->first_unread)
		client->first_unread = strdup(file->name);
}

static void give_up(struct cfi_client *client, struct cfi_file *file)
{
	leave_unread(client, file);
	if (client->worker < 0)
		return; /* no worker ran, so none died */
	client->troubles.n_deaths++;
	(void)start_worker(client);
}

/* ---- Questions ---- */

/* The first worker's summary of an open file stays valid; this one only has to be well-formed. */
static int end_opening(struct cfi_client *client)
{
	struct elf_summary summary;
	struct cfi_packet packet;
	int r;

	r = cfi_receive(client->worker, client->patience_ms, false, client->buffer, &packet);
	return r < 0 ? r : cfi_take_summary(&packet, &summary);
}

/*
 * Send a question, preceded by the file if the worker does not have it. -ECONNABORTED: the worker had died before, for
 * an unknown reason. Other errors: the worker died of this file.
 */
static int ask(struct cfi_client *client, struct cfi_file *file, const struct cfi_question *question, int fd)
{
	const struct cfi_question opening = { .kind = CFI_OPEN, .file = question->file };
	bool is_known = file->sent_to == client->n_workers;
	int r;

	r = is_known ? 0 : cfi_send(client->worker, &opening, sizeof opening, fd);
	if (r == -EPIPE)
		return -ECONNABORTED;
	if (r < 0 || question->kind == CFI_OPEN)
		return r;
	if (!is_known) {
		r = end_opening(client);
		if (r < 0)
			return r;
		file->sent_to = client->n_workers;
	}
	r = cfi_send(client->worker, question, sizeof *question, -1);
	return is_known && r == -EPIPE ? -ECONNABORTED : r;
}

static int ask_living(struct cfi_client *client, struct cfi_file *file, const struct cfi_question *question)
{
	CLEANUP(closep) int made = -1;
	int r;

	if (file->fd < 0 && file->sent_to != client->n_workers &&
	    image_file_make(file->image, file->n_bytes, &made) < 0) {
		leave_unread(client, file);
		return -ENOENT;
	}
	r = ask(client, file, question, file->fd < 0 ? made : file->fd);
	if (r == -ECONNABORTED) {
		client->troubles.n_deaths++;
		(void)start_worker(client);
	}
	return r;
}

/* A worker that makes the capturing thread wait repeatedly does as much harm as a silent one. */
static int judge_time(struct cfi_client *client, uint64_t took_ns)
{
	uint64_t patience_ns = (uint64_t)client->patience_ms * 1000000;

	if (took_ns > patience_ns / SLOW_PART)
		client->slow_ns += took_ns;
	return client->slow_ns > MAX_PATIENCES * patience_ns ? -ETIMEDOUT : 0;
}

/* Ask and wait for the answer. -ENOENT: there is none, and the file is given up. */
static int converse(struct cfi_client *client, struct cfi_file *file, const struct cfi_question *question,
		    struct cfi_packet *ret)
{
	uint64_t asked_ns = monotonic_ns();
	int r = -ECONNABORTED;

	client->troubles.n_asked++;
	while (r == -ECONNABORTED && client->worker >= 0 && !file->is_given_up)
		r = ask_living(client, file, question);
	/* No worker can read the file. Do not count images in memory: they are created again and again. */
	if (r == -ECONNABORTED && file->fd >= 0)
		leave_unread(client, file);
	file->is_given_up |= r == -ECONNABORTED;
	if (file->is_given_up)
		return -ENOENT;
	if (r >= 0)
		r = cfi_receive(client->worker, client->patience_ms, false, client->buffer, ret);
	if (r >= 0)
		r = judge_time(client, monotonic_ns() - asked_ns);
	if (r < 0)
		give_up(client, file);
	else if (question->kind == CFI_OPEN)
		file->sent_to = client->n_workers;
	return r < 0 ? -ENOENT : 0;
}

/* @r: result of decoding an answer. A malformed answer counts as a death. */
static int end_answer(struct cfi_client *client, struct cfi_file *file, int r)
{
	if (r != -EBADMSG)
		return r;
	give_up(client, file);
	return -ENOENT;
}

/* ---- Callbacks for base/ ---- */

static int find_free(struct cfi_client *client, uint32_t *ret)
{
	int r;

	for (size_t i = 0; i < client->n_files; i++)
		if (!client->files[i].name) {
			*ret = (uint32_t)i;
			return 0;
		}
	r = grow(&client->files, client->n_files, &client->files_allocated, sizeof *client->files);
	if (r >= 0)
		*ret = (uint32_t)client->n_files++;
	return r;
}

static int open_file(void *data, const char *name, int fd, const void *image, size_t n_bytes, struct elf_summary *ret,
		     uint32_t *ret_number)
{
	struct cfi_client *client = data;
	struct cfi_question question = { .kind = CFI_OPEN };
	struct cfi_packet packet;
	struct cfi_file *file;
	int r;

	r = find_free(client, &question.file);
	if (r < 0)
		return r;
	file = &client->files[question.file];
	*file = (struct cfi_file){ .name = strdup(name), .fd = fd, .image = image, .n_bytes = n_bytes };
	if (!file->name)
		return -ENOMEM;
	r = converse(client, file, &question, &packet);
	if (r >= 0)
		r = end_answer(client, file, cfi_take_summary(&packet, ret));
	if (r < 0) {
		free(file->name);
		file->name = NULL;
		return r == -ENOMEM ? r : -ENOEXEC;
	}
	*ret_number = question.file;
	return 0;
}

static void close_file(void *data, uint32_t number)
{
	struct cfi_client *client = data;
	struct cfi_file *file = &client->files[number];
	const struct cfi_question question = { .kind = CFI_CLOSE, .file = number };
	int r = 0;

	if (client->worker >= 0 && file->sent_to == client->n_workers && !file->is_given_up)
		r = cfi_send_in_time(client->worker, client->patience_ms, &question, sizeof question);
	if (r == -ETIMEDOUT) { /* on other errors, the next question detects that the worker has ended */
		client->troubles.n_deaths++;
		(void)start_worker(client);
	}
	free(file->name);
	*file = (struct cfi_file){ .fd = -1 };
}

static int ask_pair(struct cfi_client *client, const struct cfi_question *question, uint64_t *ret_first,
		    uint64_t *ret_second)
{
	struct cfi_file *file = &client->files[question->file];
	struct cfi_packet packet;
	int r;

	r = converse(client, file, question, &packet);
	return r < 0 ? r : end_answer(client, file, cfi_take_pair(&packet, ret_first, ret_second));
}

static int ask_name(struct cfi_client *client, enum cfi_kind kind, uint32_t number, const char *name,
		    uint64_t *ret_first, uint64_t *ret_second)
{
	struct cfi_question question = { .kind = kind, .file = number };
	size_t n_bytes = strlen(name) + 1;

	if (n_bytes > sizeof question.name)
		return -ENOENT;
	memcpy(question.name, name, n_bytes);
	return ask_pair(client, &question, ret_first, ret_second);
}

static int find_symbol(void *data, uint32_t number, const char *name, uint64_t *ret_value, uint64_t *ret_size)
{
	return ask_name(data, CFI_SYMBOL, number, name, ret_value, ret_size);
}

static int find_section(void *data, uint32_t number, const char *name, uint64_t *ret_address, uint64_t *ret_size)
{
	return ask_name(data, CFI_SECTION, number, name, ret_address, ret_size);
}

static int find_function(void *data, uint32_t number, uint64_t address, uint64_t *ret_start, uint64_t *ret_end)
{
	const struct cfi_question question = {
		.kind = CFI_FUNCTION, .file = number, .n_addresses = 1, .addresses = { address }
	};
	uint64_t start, end;
	int r;

	r = ask_pair(data, &question, &start, &end);
	if (r < 0)
		return r;
	if (address < start || address >= end)
		return -ENOENT;
	*ret_start = start;
	*ret_end = end;
	return 0;
}

/* ---- Callbacks for unwind/native ---- */

static int ask_rows(void *data, struct module *module, const uint64_t *addresses, size_t n, const uint8_t **ret,
		    size_t *ret_bytes)
{
	struct cfi_client *client = data;
	struct cfi_question question = { .kind = CFI_ROWS, .n_addresses = n };
	struct cfi_packet packet;
	struct cfi_file *file;
	int r;

	if (!module->elf || !elf_file_number(module->elf, &question.file))
		return -ENOENT;
	memcpy(question.addresses, addresses, n * sizeof *addresses);
	file = &client->files[question.file];
	r = converse(client, file, &question, &packet);
	return r < 0 ? r : end_answer(client, file, cfi_take_rows(&packet, ret, ret_bytes));
}

static void refuse_rows(void *data, struct module *module)
{
	struct cfi_client *client = data;
	uint32_t number;

	if (module->elf && elf_file_number(module->elf, &number))
		give_up(client, &client->files[number]);
}

/* ---- Start and stop ---- */

int cfi_client_over(int worker, int patience_ms, struct cfi_client **ret)
{
	struct cfi_client *client = calloc(1, sizeof *client);

	if (!client)
		return -ENOMEM;
	client->keeper = -1;
	client->worker = worker;
	client->n_workers = worker >= 0;
	client->patience_ms = patience_ms;
	client->reader = (struct elf_reader){ open_file, close_file, find_symbol, find_section, find_function, client };
	client->rows = (struct native_row_source){ ask_rows, refuse_rows, client };
	*ret = client;
	return 0;
}

int cfi_client_start(int patience_ms, struct cfi_client **ret)
{
	struct cfi_client *client;
	int r;

	r = cfi_client_over(-1, patience_ms, &client);
	if (r < 0)
		return r;
	r = cfi_keeper_start(&client->keeper, &client->keeper_pid);
	if (r >= 0)
		r = start_worker(client);
	if (r < 0) {
		cfi_client_free(client);
		return r;
	}
	*ret = client;
	return 0;
}

void cfi_client_free(struct cfi_client *client)
{
	if (!client)
		return;
	closep(&client->worker);
	closep(&client->keeper);
	while (client->keeper_pid > 0 && waitpid(client->keeper_pid, NULL, 0) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < client->n_files; i++)
		free(client->files[i].name);
	free(client->files);
	free(client->first_unread);
	free(client);
}

const struct elf_reader *cfi_client_reader(const struct cfi_client *client)
{
	return &client->reader;
}

const struct native_row_source *cfi_client_rows(const struct cfi_client *client)
{
	return &client->rows;
}

void cfi_client_troubles(const struct cfi_client *client, struct pipeline_cfi_troubles *ret)
{
	*ret = client->troubles;
	ret->path = client->first_unread;
}
