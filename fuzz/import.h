/* SPDX-License-Identifier: MIT */
/* import.h - what a fuzz target of an importer does: whatever it takes is a sound recording. */
#ifndef PROBING_FUZZ_IMPORT_H
#define PROBING_FUZZ_IMPORT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/archive/archive.h"
#include "src/import/import.h"
#include "src/profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

#define FUZZ_EXPECT(holds)                                                                                             \
	do {                                                                                                           \
		if (!(holds))                                                                                          \
			abort();                                                                                       \
	} while (0)

static inline void fuzz_import_remove(const char *path)
{
	static const char *const endings[] = { "", "-wal", "-shm", "-journal" };
	char name[128];

	for (size_t i = 0; i < N_ELEMENTS(endings); i++) {
		snprintf(name, sizeof name, "%s%s", path, endings[i]);
		unlink(name);
	}
}

static inline void fuzz_import_say(void *data, const char *sentence)
{
	(void)data;
	fprintf(stderr, "%s\n", sentence);
}

/* The file must be readable and consistent, and have the reported counts. */
static inline void fuzz_import_check(const char *path, const struct import_result *result)
{
	struct check_result check;
	struct profile *profile;
	uint64_t n = 0;
	sqlite3 *db;

	FUZZ_EXPECT(store_open_reader(path, &db) == 0);
	FUZZ_EXPECT(check_recording(db, fuzz_import_say, NULL, &check) == 0 && check.n_wrong == 0);
	FUZZ_EXPECT(profile_load(db, &profile) == 0);
	for (size_t i = 0; i < profile->n_totals; i++)
		n += profile->totals[i].samples;
	FUZZ_EXPECT(n == result->n_samples);
	profile_free(profile);
	sqlite3_close(db);
}

static inline int fuzz_import(const char *format, const uint8_t *data, size_t n_bytes)
{
	const struct importer *importer = importer_by_name(format);
	CLEANUP(freep) uint8_t *bytes = malloc(n_bytes + 1);
	struct import_input input = {
		.name = "x", .bytes = bytes, .n_bytes = n_bytes, .modified_ns = 1700000000000000000
	};
	struct import_result result;
	struct store *store;
	const char *folder = getenv("TMPDIR") ?: "/tmp";
	char path[96];
	int r;

	FUZZ_EXPECT(importer && bytes);
	if (n_bytes > 0)
		memcpy(bytes, data, n_bytes);
	importer_recognise(bytes, n_bytes);
	snprintf(path, sizeof path, "%.64s/fuzz-import.%d.db", folder, (int)getpid());
	fuzz_import_remove(path);
	FUZZ_EXPECT(store_create(path, NULL, &store) == 0);
	r = import_read_one(importer, &input, store, false, "0", &result);
	if (r >= 0)
		r = store_finish(store, result.ended_ns);
	else
		store_close(store);
	if (r >= 0)
		fuzz_import_check(path, &result);
	fuzz_import_remove(path);
	return 0;
}

#endif
