/* SPDX-License-Identifier: MIT */
/* cfi_server.c - the process that reads ELF headers and call frame information of crafted files.
 *
 * It has no privilege and opens nothing: files come by descriptor. It parses them with the code that other verbs run in
 * their own process. Names have another process, since they take seconds, and the capturing thread waits for each
 * answer of this one.
 *
 * It ends when the recorder ends, or when memory runs out: the client then starts a new one.
 */
#include "src/pipeline/cfi_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/id_map.h"
#include "base/util.h"
#include "src/pipeline/cfi_wire.h"
#include "src/pipeline/keeper.h"
#include "src/pipeline/page_trim.h"

/*
 * The priority of the capturing thread (src/cli/record/run.c), which waits for each answer. With hundreds of runnable
 * programs, an answer at normal priority takes so long that the rings overflow.
 */
enum { READER_NICE = -10 };

/*
 * A library of 200 MB needs a few hundred kilobytes; .debug_frame needs the size of the decompressed debug information.
 */
#define MAX_WORKER_MEMORY (512ULL << 20)
#define MAX_WORKER_FILES (1ULL << 14)

/*
 * Each lookup touches a few pages of a file's tables, and the kernel maps sixteen with each. A recording of PyTorch
 * maps 15 MiB of them within 8 s. Most are never read again, and the page cache keeps them.
 */
#define MAX_MAPPED_BYTES (6ULL << 20)
#define TRIM_CHECK_ANSWERS 16 /* a check is a system call */

struct server {
	int socket;
	uint8_t question[CFI_MAX_PACKET], answer[CFI_MAX_PACKET];
	struct module **files; /* indexed by number; only elf and cfi are set. NULL: not open */
	size_t n_files, files_allocated;
	unsigned n_answers;
	struct page_trim trim;
};

static void close_file(struct module **file)
{
	if (!*file)
		return;
	native_rows_done(*file);
	elf_file_free((*file)->elf);
	free(*file);
	*file = NULL;
}

/* The slot of a file number, which the recorder assigns. */
static int slot_of(struct server *server, uint32_t number, struct module ***ret)
{
	while (server->n_files <= number) {
		int r = grow(&server->files, server->n_files, &server->files_allocated, sizeof(struct module *));

		if (r < 0)
			return r;
		server->files[server->n_files++] = NULL;
	}
	*ret = &server->files[number];
	return 0;
}

/* Takes ownership of fd. */
static int open_elf(struct server *server, uint32_t number, int fd, struct elf_summary *ret)
{
	CLEANUP(closep) int file = fd;
	struct module **slot, *module;
	int r;

	r = slot_of(server, number, &slot);
	if (r < 0)
		return r;
	close_file(slot);
	if (file < 0)
		return -EBADF;
	module = calloc(1, sizeof *module);
	if (!module)
		return -ENOMEM;
	*slot = module;
	r = elf_file_open(file, &module->elf);
	if (r >= 0) {
		TAKE_FD(file);
		r = elf_file_summary(module->elf, ret);
	}
	if (r < 0)
		close_file(slot);
	return r;
}

static int answer_open(struct server *server, const struct cfi_question *question, int fd)
{
	struct elf_summary summary = { 0 };
	struct cfi_summary answer;
	size_t n_bytes;
	int r;

	r = open_elf(server, question->file, fd, &summary);
	if (r == -ENOMEM)
		return r;
	n_bytes = cfi_put_summary(&summary, &answer);
	answer.error = r;
	return cfi_send(server->socket, &answer, n_bytes, -1);
}

static int answer_pair(struct server *server, const struct cfi_question *question, struct elf_file *elf)
{
	struct cfi_pair answer;

	memset(&answer, 0, sizeof answer);
	if (question->kind == CFI_FUNCTION)
		answer.error = elf_file_function(elf, question->addresses[0], &answer.first, &answer.second);
	else if (question->kind == CFI_SYMBOL)
		answer.error = elf_file_symbol(elf, question->name, &answer.first, &answer.second);
	else
		answer.error = elf_file_section(elf, question->name, &answer.first, &answer.second);
	return cfi_send(server->socket, &answer, sizeof answer, -1);
}

static int answer_rows(struct server *server, const struct cfi_question *question, struct module *module)
{
	const int32_t error = 0;
	size_t n_bytes;
	int r;

	if (question->n_addresses < 1 || question->n_addresses > NATIVE_ROWS_MAX_ADDRESSES)
		return -EBADMSG;
	r = native_rows_compile(module, question->addresses, (size_t)question->n_addresses,
				server->answer + sizeof error, &n_bytes);
	if (r < 0)
		return r;
	memcpy(server->answer, &error, sizeof error);
	return cfi_send(server->socket, server->answer, sizeof error + n_bytes, -1);
}

static int answer(struct server *server, struct cfi_question *question, int fd)
{
	struct module *module = question->file < server->n_files ? server->files[question->file] : NULL;

	question->name[sizeof question->name - 1] = '\0';
	if (question->kind == CFI_OPEN)
		return answer_open(server, question, fd);
	if (fd >= 0 || !module)
		return -EBADMSG;
	switch ((enum cfi_kind)question->kind) {
	case CFI_CLOSE:
		close_file(&server->files[question->file]);
		return 0;
	case CFI_SYMBOL:
	case CFI_SECTION:
	case CFI_FUNCTION:
		return answer_pair(server, question, module->elf);
	case CFI_ROWS:
		return answer_rows(server, question, module);
	default:
		return -EBADMSG;
	}
}

static void trim(struct server *server)
{
	if (server->n_answers++ % TRIM_CHECK_ANSWERS != 0 || !page_trim_is_due(&server->trim))
		return;
	for (size_t i = 0; i < server->n_files; i++)
		if (server->files[i])
			elf_forget_pages(elf_file_elf(server->files[i]->elf));
	page_trim_did(&server->trim);
}

static void serve(struct server *server)
{
	int r = 0;

	while (r >= 0) {
		struct cfi_question question;
		struct cfi_packet packet;

		r = cfi_receive(server->socket, -1, true, server->question, &packet);
		if (r < 0)
			break;
		if (packet.n_bytes != sizeof question) {
			closep(&packet.fd);
			break;
		}
		memcpy(&question, packet.bytes, sizeof question);
		r = answer(server, &question, packet.fd);
		trim(server);
	}
}

static struct server *server_new(int socket)
{
	struct server *server = calloc(1, sizeof *server);

	if (server) {
		server->socket = socket;
		page_trim_init(&server->trim, MAX_MAPPED_BYTES, MAX_MAPPED_BYTES);
	}
	return server;
}

static void run_worker(int socket)
{
	const struct call_table tables[] = { calls_fatal, calls_basic };
	struct server *server = server_new(socket); /* opens statm, which the filter forbids later */

	/* If the kernel has no filters, the keeper has reported that. */
	(void)call_filter_install(tables, N_ELEMENTS(tables), CALL_NOT_THERE, false);
	if (server)
		serve(server); /* the process ends after this */
}

static void run_keeper(int socket, int filter_error)
{
	static const struct keeper_kind cfi = {
		.socket_type = SOCK_SEQPACKET,
		.max_memory = MAX_WORKER_MEMORY,
		.max_files = MAX_WORKER_FILES,
		.run_worker = run_worker,
	};

	keeper_run(socket, filter_error, &cfi);
}

int cfi_keeper_start(int *ret_socket, pid_t *ret_pid)
{
	int r = keeper_start("probing-cfi", run_keeper, ret_socket, ret_pid);

	/* Fails for an ordinary user. Workers inherit the priority. */
	if (r >= 0)
		(void)setpriority(PRIO_PROCESS, (id_t)*ret_pid, READER_NICE);
	return r;
}
