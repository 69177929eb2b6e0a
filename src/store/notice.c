/* SPDX-License-Identifier: MIT */
/* notice.c - sentences that are no errors, for the receiver that prints them. */
#include <stdarg.h>
#include <stdio.h>

#include "base/util.h"
#include "src/store/store_private.h"

static void (*say)(const char *sentence);

void store_on_notice(void (*hears)(const char *sentence))
{
	say = hears;
}

void store_notice(const char *format, ...)
{
	char sentence[1024];
	va_list arguments;

	if (!say)
		return;
	va_start(arguments, format);
	vsnprintf(sentence, sizeof sentence, format, arguments);
	va_end(arguments);
	say(sentence);
}
