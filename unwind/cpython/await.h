/* SPDX-License-Identifier: MIT */
/* await.h - the chain of coroutines that await each other. Private. */
#ifndef PROBING_AWAIT_H
#define PROBING_AWAIT_H

#include "unwind/cpython/object.h"

/* Whether that is a coroutine, or something that is awaited through to one: not a future. */
bool await_is_coroutine(struct py_runtime *runtime, uint64_t object);

/* The frame of a coroutine or generator. Errors: -ENOENT it has ended; -EFAULT, -EBADMSG. */
int await_frame(struct py_runtime *runtime, uint64_t object, uint64_t *ret);

/*
 * await_walk - append the frames of a coroutine and of those that it awaits, innermost first.
 * @ret_future: address of the C future that the innermost waits for; 0: unknown, or it runs.
 * Unreadable memory ends the chain, and is no error. -ENOMEM.
 */
int await_walk(struct py_runtime *runtime, uint64_t object, struct py_frames *frames, uint64_t *ret_future);

struct asyncio;
void asyncio_free(struct asyncio *asyncio);

#endif
