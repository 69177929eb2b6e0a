/* SPDX-License-Identifier: MIT */
/* ring.c - rows per second that one thread appends to a ring from C: bench_ring [PARENT]. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/ring/ring.h"

enum { N_ROUNDS = 5, N_ROWS = 5000000 };

static const struct ring_column columns[] = {
	{ .name = "step", .type = RING_INTEGER },
	{ .name = "loss", .type = RING_REAL },
	{ .name = "rate", .type = RING_NUMBER },
	{ .name = "phase", .type = RING_TEXT, .bytes = 16 },
};

static double append_rows(struct ring *ring)
{
	uint64_t start = thread_cpu_ns();

	for (int64_t i = 0; i < N_ROWS; i++) {
		const struct ring_value values[] = {
			{ .kind = RING_IS_INTEGER, .integer = i },
			{ .kind = RING_IS_REAL, .real = (double)i },
			{ .kind = RING_IS_REAL, .real = 0.1 },
			{ .kind = RING_IS_TEXT, .text = "forward", .n_text = 7 },
		};

		(void)ring_append(ring, values);
	}
	return N_ROWS / ((double)(thread_cpu_ns() - start) / 1e9);
}

int main(int argc, char **argv)
{
	const struct ring_description description = { .name = "bench", .columns = columns, .n_columns = 4 };
	const struct ring_retention retention = { .days = 1, .max_bytes = 64 << 20 };
	struct ring *ring;
	int folder, r;

	r = ring_folder_make(argc > 1 ? argv[1] : RING_PARENT, &retention, &folder);
	if (r == 0)
		r = ring_create(folder, &description, &ring);
	if (r < 0) {
		fprintf(stderr, "no ring: %s\n", strerror(-r));
		return 1;
	}
	for (int i = 0; i < N_ROUNDS; i++) {
		double rate = append_rows(ring);

		printf("%.2f million rows/s, %.0f ns a row (4 columns, CPU time)\n", rate / 1e6, 1e9 / rate);
	}
	r = ring_remove(ring, folder);
	ring_close(ring);
	return r < 0;
}
