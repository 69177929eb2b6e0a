/* SPDX-License-Identifier: MIT */
/* cpus.c - CPU lists of sysfs; see cpus.h. */
#include "src/capture/cpus.h"

#include <ctype.h>
#include <errno.h>
#include <unistd.h>

#include "base/util.h"

enum { MAX_CPUS = 65536 };

static int parse_number(const char **text, unsigned *ret)
{
	unsigned long value;
	char *end;

	if (!isdigit((unsigned char)**text))
		return -EINVAL;
	value = strtoul(*text, &end, 10);
	if (value >= MAX_CPUS)
		return -EINVAL;
	*text = end;
	*ret = (unsigned)value;
	return 0;
}

/* Parse "3" or "3-5" and advance the text. */
static int parse_range(const char **text, unsigned *ret_first, unsigned *ret_last)
{
	unsigned first, last;
	int r;

	r = parse_number(text, &first);
	if (r < 0)
		return r;
	last = first;
	if (**text == '-') {
		++*text;
		r = parse_number(text, &last);
		if (r < 0)
			return r;
	}
	if (last < first)
		return -EINVAL;
	*ret_first = first;
	*ret_last = last;
	return 0;
}

int cpus_parse(const char *text, unsigned **ret, size_t *ret_n)
{
	CLEANUP(freep) unsigned *cpus = NULL;
	size_t n = 0, allocated = 0;

	for (;;) {
		unsigned first, last;
		int r;

		r = parse_range(&text, &first, &last);
		if (r < 0)
			return r;
		for (unsigned cpu = first; cpu <= last; cpu++) {
			/* More entries than CPU numbers: the list repeats itself. */
			r = n >= MAX_CPUS ? -EINVAL : grow(&cpus, n, &allocated, sizeof *cpus);
			if (r < 0)
				return r;
			cpus[n++] = cpu;
		}
		if (*text != ',')
			break;
		text++;
	}
	if (*text != '\n' && *text != '\0')
		return -EINVAL;

	*ret = TAKE(cpus);
	*ret_n = n;
	return 0;
}

static int count_from_zero(unsigned **ret, size_t *ret_n)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned *cpus;

	if (n < 1 || n > MAX_CPUS)
		return -ENODEV;
	cpus = calloc((size_t)n, sizeof *cpus);
	if (!cpus)
		return -ENOMEM;
	for (long i = 0; i < n; i++)
		cpus[i] = (unsigned)i;
	*ret = cpus;
	*ret_n = (size_t)n;
	return 0;
}

int cpus_online(unsigned **ret, size_t *ret_n)
{
	CLEANUP(freep) char *text = NULL;

	if (read_file("/sys/devices/system/cpu/online", 1 << 16, &text, NULL) < 0)
		return count_from_zero(ret, ret_n);
	return cpus_parse(text, ret, ret_n);
}
