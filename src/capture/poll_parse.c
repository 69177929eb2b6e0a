/* SPDX-License-Identifier: MIT */
/* poll_parse.c - see poll_parse.h. */
#include "src/capture/poll_parse.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc.h"
#include "base/util.h"

/* Field numbers of proc_pid_stat(5), counted from 1. */
enum {
	FIELD_STATE = 3,
	FIELD_USER_TICKS = 14,
	FIELD_KERNEL_TICKS = 15,
	FIELD_CODE = 26,
	FIELD_STACK = 28,
	FIELD_CPU = 39,
	FIELD_DATA = 45,
};

static bool parse_number(const char **text, uint64_t *ret)
{
	const char *start = *text + strspn(*text, " \t");
	char *end;

	if (!isdigit((unsigned char)*start))
		return false;
	errno = 0;
	*ret = strtoull(start, &end, 10);
	*text = end;
	return errno == 0;
}

/* Skip n words. */
static const char *skip_words(const char *text, unsigned n)
{
	for (; n > 0; n--) {
		text += strspn(text, " \t");
		text += strcspn(text, " \t\n");
	}
	return text;
}

static bool parse_field(const char *from_state, unsigned field, uint64_t *ret)
{
	const char *text = skip_words(from_state, field - FIELD_STATE);

	return parse_number(&text, ret);
}

static void copy_name(const char *start, const char *end, char *to)
{
	size_t n = MIN((size_t)(end - start), (size_t)POLL_NAME_BYTES - 1);

	memcpy(to, start, n);
	to[n] = '\0';
}

int poll_parse_stat(const char *text, struct poll_stat *ret)
{
	const char *start = strchr(text, '('), *end = strrchr(text, ')');
	uint64_t user, kernel, cpu, code, data, stack;
	struct poll_stat stat = { .image = 0 };
	const char *rest;

	if (!start || !end || end < start)
		return -EBADMSG;
	rest = end + 1 + strspn(end + 1, " ");
	if (!isalpha((unsigned char)*rest))
		return -EBADMSG;
	stat.state = *rest;
	copy_name(start + 1, end, stat.name);
	if (!parse_field(rest, FIELD_USER_TICKS, &user) || !parse_field(rest, FIELD_KERNEL_TICKS, &kernel) ||
	    !parse_field(rest, FIELD_CPU, &cpu))
		return -EBADMSG;
	stat.ticks = user + kernel;
	stat.cpu = (unsigned)MIN(cpu, (uint64_t)UINT_MAX);
	/*
	 * exec(2) sets the stack's address before the code's: setup_arg_pages() in fs/exec.c, then load_elf_binary() in
	 * fs/binfmt_elf.c, Linux 6.18.
	 */
	if (parse_field(rest, FIELD_CODE, &code) && parse_field(rest, FIELD_STACK, &stack) &&
	    parse_field(rest, FIELD_DATA, &data) && stack != 0 && code != 0 && data != 0)
		stat.image = mix64(code ^ mix64(data ^ mix64(stack))) | 1;
	*ret = stat;
	return 0;
}

int poll_parse_schedstat(const char *text, uint64_t *ret_ns, uint64_t *ret_n_runs)
{
	const char *last = skip_words(text, 2);
	uint64_t ns, n_runs;

	if (!parse_number(&text, &ns) || !parse_number(&last, &n_runs))
		return -EBADMSG;
	*ret_ns = ns;
	*ret_n_runs = n_runs;
	return 0;
}

int poll_parse_status(const char *text, uint64_t *ret_n_waits, uint64_t *ret_n_preempted)
{
	const char *waits = proc_status_value(text, "voluntary_ctxt_switches");
	const char *preempted = proc_status_value(text, "nonvoluntary_ctxt_switches");
	uint64_t n_waits, n_preempted;

	if (!waits || !preempted || !parse_number(&waits, &n_waits) || !parse_number(&preempted, &n_preempted))
		return -EBADMSG;
	*ret_n_waits = n_waits;
	*ret_n_preempted = n_preempted;
	return 0;
}

int poll_parse_loadavg(const char *text, pid_t *ret)
{
	const char *last = skip_words(text, 4);
	uint64_t number;

	if (!parse_number(&last, &number) || number > INT_MAX)
		return -EBADMSG;
	*ret = (pid_t)number;
	return 0;
}

pid_t poll_parse_child(const char **text)
{
	uint64_t number;

	return parse_number(text, &number) && number <= INT_MAX ? (pid_t)number : 0;
}
