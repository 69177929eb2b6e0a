/* SPDX-License-Identifier: MIT */
/* fuzz_asyncio.c - the reader of event loops' tasks on memory that lies.
 *
 * The corpus are images of real interpreters with tasks, and changes of them; fuzz/make_asyncio_corpus.py
 * makes it. The format: where asyncio says how its tasks are laid out (u64; 0: nowhere), then what
 * tests/unit/memory_image.h describes.
 */
#include "fuzz/exercise_tasks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static struct memory_image image;
	struct py_runtime *runtime;
	uint64_t asyncio;
	char version[32];

	if (n_bytes < sizeof asyncio)
		return 0;
	memcpy(&asyncio, data, sizeof asyncio);
	image_parse(&image, data + sizeof asyncio, n_bytes - sizeof asyncio);
	image.symbols.asyncio = asyncio;
	if (image_open(&image, &image.base, version, &runtime) < 0)
		return 0;
	/* The first run learns; remembered data must not change the results. */
	exercise_tasks(&image, runtime);
	if (exercise_tasks(&image, runtime) != exercise_tasks(&image, runtime))
		abort();
	py_runtime_free(runtime);
	return 0;
}
