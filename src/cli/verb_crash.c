/* SPDX-License-Identifier: MIT */
/* verb_crash.c - show the report of a process that has crashed. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/crash_write.h"

enum { OPTION_LIST = 0x200, OPTION_WRITE, MAX_REPORT_BYTES = 16 << 20 };

struct options {
	const char *word; /* PID, FILE or FOLDER; NULL: the latest report */
	const char *pipe;
	bool list, write;
};

static const struct argp_option option_list[] = {
	{ "list", OPTION_LIST, NULL, 0, "List the reports, the newest first", 0 },
	{ "write", OPTION_WRITE, NULL, OPTION_HIDDEN, NULL, 0 }, /* of the agent: descriptors of memory and of a pipe */
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case OPTION_LIST:
		options->list = true;
		return 0;
	case OPTION_WRITE:
		options->write = true;
		return 0;
	case ARGP_KEY_ARG:
		if (!options->word)
			options->word = argument;
		else if (options->write && !options->pipe)
			options->pipe = argument;
		else
			argp_error(state, "unexpected argument %s: name one report", argument);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[PID | FILE | FOLDER]",
	.doc = "Show the report of a process that ended by a fatal signal or an uncaught exception. It has the stacks "
	       "of all threads, the last rows of its tables, and its open spans. Without an argument, show the latest "
	       "one. A process has reports if it began with PROBING=1 PROBING_CRASH=1, or after probing config PID "
	       "probing.crash=on.\v"
	       "Examples:\n"
	       "  PROBING=1 PROBING_CRASH=1 python train.py\n"
	       "  probing 4242 config probing.crash=on\n"
	       "  probing crash\n"
	       "  probing crash 4242\n"
	       "  probing crash --list\n",
};

/* ---- Reports in a folder ---- */

struct entry {
	char *path;
	struct timespec time;
};

static int newest_first(const void *a, const void *b)
{
	const struct entry *one = a, *other = b;

	if (one->time.tv_sec != other->time.tv_sec)
		return one->time.tv_sec < other->time.tv_sec ? 1 : -1;
	return (one->time.tv_nsec < other->time.tv_nsec) - (one->time.tv_nsec > other->time.tv_nsec);
}

static void free_entries(struct entry *entries, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(entries[i].path);
	free(entries);
}

/* Whether a file has the name of a report: PID-DATE-TIME.txt. @pid: of this process; NULL: of any. */
static bool is_report(const char *name, const char *pid)
{
	size_t n = strspn(name, "0123456789-"), n_pid = strcspn(name, "-");

	return n > 0 && strcmp(name + n, ".txt") == 0 && n_pid < n &&
	       (!pid || (strlen(pid) == n_pid && strncmp(name, pid, n_pid) == 0));
}

static int find_all(const char *folder, const char *pid, struct entry **ret, size_t *ret_n)
{
	DIR *all = opendir(folder);
	struct dirent *found;
	struct entry *entries = NULL;
	size_t n = 0, allocated = 0;
	int r = all ? 0 : -errno;

	while (r == 0 && (found = readdir(all))) {
		struct stat st;

		if (!is_report(found->d_name, pid) || fstatat(dirfd(all), found->d_name, &st, 0) < 0)
			continue;
		r = grow(&entries, n, &allocated, sizeof *entries);
		if (r < 0)
			break;
		entries[n].time = st.st_mtim;
		if (asprintf(&entries[n].path, "%s/%s", folder, found->d_name) < 0)
			r = -ENOMEM;
		else
			n++;
	}
	if (all)
		closedir(all);
	if (r < 0) {
		free_entries(entries, n);
		return r;
	}
	if (n > 0)
		qsort(entries, n, sizeof *entries, newest_first);
	*ret = entries;
	*ret_n = n;
	return 0;
}

/* ---- Print ---- */

static int print_file(const char *path)
{
	CLEANUP(freep) char *text = NULL;
	size_t n = 0;
	int r = read_file(path, MAX_REPORT_BYTES, &text, &n);

	if (r < 0)
		return cli_fail(cli_status(r), "%s cannot be read: %s", path, strerror(-r));
	for (size_t at = 0; at < n;) {
		const char *line = text + at, *end = memchr(line, '\n', n - at);
		size_t n_line = end ? (size_t)(end - line) : n - at;

		text_put_spelled(stdout, line, n_line);
		putchar('\n');
		at += n_line + 1;
	}
	return fflush(stdout) == 0 ? EXIT_OK : cli_fail_write("-", -errno);
}

static int print_folder(const struct options *options, const char *folder, const char *pid)
{
	struct entry *entries = NULL;
	size_t n = 0;
	int status, r = find_all(folder, pid, &entries, &n);

	if (r < 0 && r != -ENOENT)
		return cli_fail(cli_status(r), "%s cannot be read: %s", folder, strerror(-r));
	if (n == 0)
		return cli_fail(
			EXIT_NO_INPUT,
			"%s has no report%s%s: a process has them with PROBING_CRASH=1, or after probing config PID "
			"probing.crash=on",
			folder, pid ? " of process " : "", pid ? pid : "");
	if (options->list) {
		for (size_t i = 0; i < n; i++)
			puts(entries[i].path);
		status = EXIT_OK;
	} else {
		status = print_file(entries[0].path);
	}
	free_entries(entries, n);
	return status;
}

static int run_crash(int argc, char **argv)
{
	CLEANUP(freep) char *folder = NULL;
	struct options options = { 0 };
	struct stat st;
	bool is_pid;
	int r;

	cli_parse(&argp, argc, argv, 0, &options);
	if (options.write)
		return crash_write(options.word ? atoi(options.word) : -1, options.pipe ? atoi(options.pipe) : -1);
	is_pid = options.word && options.word[strspn(options.word, "0123456789")] == '\0';
	if (options.word && !is_pid) {
		if (stat(options.word, &st) == 0 && S_ISDIR(st.st_mode))
			return print_folder(&options, options.word, NULL);
		return print_file(options.word);
	}
	r = crash_folder(&folder);
	if (r < 0)
		return cli_fail(cli_status(r), "the folder of reports cannot be found: %s; name a file or folder",
				strerror(-r));
	return print_folder(&options, folder, is_pid ? options.word : NULL);
}

const struct verb verb_crash = {
	.name = "crash",
	.summary = "show the report of a process that crashed",
	.argp = &argp,
	.run = run_crash,
};
