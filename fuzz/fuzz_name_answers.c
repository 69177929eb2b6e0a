/* SPDX-License-Identifier: MIT */
/* fuzz_name_answers.c - what the process that finds names answers, after a file has made it do as that file likes.
 *
 * The recorder, on the other end, takes names and nothing else: no file is opened beyond a module's places, no frame is
 * named that was not asked for, every string ends within its message.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "src/pipeline/name_client.h"
#include "src/pipeline/name_wire.h"

enum { N_FRAMES = 3, FIRST_FRAME = 100 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static size_t sum;

static void take_text(const char *text)
{
	if (text && strlen(text) > WIRE_MAX_STRING)
		abort();
	sum += text ? strlen(text) : 0;
}

static int take_native(void *data, const struct new_frame *frame, const struct symbol *symbols, int n)
{
	const struct new_frame *frames = data;

	if (frame < frames || frame >= frames + N_FRAMES || n < 1 || n > SYMBOL_MAX_INLINED)
		abort();
	for (int i = 0; i < n; i++) {
		if (!symbols[i].name || symbols[i].role > SYMBOL_INTERNAL || symbols[i].line < 0)
			abort();
		take_text(symbols[i].name);
		take_text(symbols[i].linkage);
		take_text(symbols[i].file);
	}
	return 0;
}

static int take_generated(void *data, const struct new_frame *frame, const struct generated_symbol *symbol)
{
	(void)data;
	if (frame->id < FIRST_FRAME || frame->id >= FIRST_FRAME + N_FRAMES)
		abort();
	if (symbol) {
		take_text(symbol->name);
		take_text(symbol->entry);
		take_text(symbol->file);
	}
	return 0;
}

/* Write all answers before any question: as much as the socket holds. */
static int answer(const uint8_t *data, size_t n_bytes, struct name_client **ret, int *ret_other)
{
	int ends[2], room = 1 << 20;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	(void)setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	(void)send(ends[1], data, n_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
	shutdown(ends[1], SHUT_WR);
	*ret_other = ends[1];
	return name_client_over(ends[0], ret);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct module module = { .path = (char *)(uintptr_t) "/nowhere/module.so" };
	const struct new_module row = { .id = 1, .module = &module };
	const struct new_program program = { .id = 1 };
	struct new_frame frames[N_FRAMES] = { 0 };
	const struct name_taker taker = { take_native, take_generated, frames };
	struct stale_places stale = { 0 };
	struct name_client *client;
	int other = -1;

	if (n_bytes == 0 || answer(data + 1, n_bytes - 1, &client, &other) < 0)
		return 0;
	for (uint32_t i = 0; i < N_FRAMES; i++)
		frames[i] = (struct new_frame){ .id = FIRST_FRAME + i,
						.kind = FRAME_NATIVE,
						.program = 1,
						.module = &module,
						.module_id = data[0] & 1,
						.address = i };
	if (name_client_put_module(client, &row) < 0 || name_client_put_programs(client, &program, 1, NULL, 0) < 0)
		abort();
	if (name_client_look_up(client, frames, N_FRAMES, &taker) < 0)
		abort();
	(void)name_client_refresh(client, &taker, &stale);
	free(stale.places);
	name_client_free(client);
	close(other);
	return 0;
}
