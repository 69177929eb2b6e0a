/* SPDX-License-Identifier: MIT */
/* replay.c - feeds every file of a folder to a fuzz target, as an ordinary test.
 *
 * Arguments: files and folders; a folder that does not exist is an error, so
 * that a lost corpus is noticed. A file that makes the target take more memory than
 * MAX_RESIDENT_MB is a failure, too; one that takes it for ever is the test's timeout.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { MAX_INPUT_BYTES = 16 << 20, MAX_RESIDENT_MB = 900 };

/* Sanitizers shadow all memory. */
#if defined(__SANITIZE_ADDRESS__)
enum { IS_MEASURED = 0 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { IS_MEASURED = 0 };
#else
enum { IS_MEASURED = 1 };
#endif
#else
enum { IS_MEASURED = 1 };
#endif

static int check_memory(void)
{
	struct rusage usage;

	if (!IS_MEASURED || getrusage(RUSAGE_SELF, &usage) < 0)
		return 0;
	return usage.ru_maxrss / 1024 > MAX_RESIDENT_MB ? -E2BIG : 0;
}

static int replay_file(const char *path)
{
	CLEANUP(freep) char *bytes = NULL;
	size_t n_bytes;
	int r;

	r = read_file(path, MAX_INPUT_BYTES, &bytes, &n_bytes);
	if (r < 0)
		return r;
	LLVMFuzzerTestOneInput((const uint8_t *)bytes, n_bytes);
	r = check_memory();
	if (r < 0)
		fprintf(stderr, "replay: more than %d MB with %s\n", MAX_RESIDENT_MB, path);
	return r;
}

static int replay_folder(const char *path, size_t *n_done)
{
	struct dirent *entry;
	DIR *folder;
	int r = 0;

	folder = opendir(path);
	if (!folder)
		return -errno;
	while (r >= 0 && (entry = readdir(folder)) != NULL) {
		CLEANUP(freep) char *file = NULL;

		if (entry->d_name[0] == '.')
			continue;
		if (asprintf(&file, "%s/%s", path, entry->d_name) < 0) {
			r = -ENOMEM;
			break;
		}
		r = replay_file(file);
		*n_done += r >= 0;
	}
	closedir(folder);
	return r;
}

int main(int argc, char **argv)
{
	size_t n_done = 0;

	for (int i = 1; i < argc; i++) {
		struct stat st;
		int r;

		if (stat(argv[i], &st) < 0)
			r = -errno;
		else if (S_ISDIR(st.st_mode))
			r = replay_folder(argv[i], &n_done);
		else
			r = replay_file(argv[i]);
		if (r < 0) {
			fprintf(stderr, "replay: %s: %s\n", argv[i], strerror(-r));
			return 1;
		}
	}
	printf("%zu corpus files replayed\n", n_done);
	return 0;
}
