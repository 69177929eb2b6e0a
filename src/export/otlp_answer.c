/* SPDX-License-Identifier: MIT */
/* otlp_answer.c - what a receiver says about profiles that were sent to it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <otlp.pb-c.h>

#include "src/export/export.h"

int export_otlp_answer(const void *bytes, size_t n_bytes, int64_t *ret_rejected, char **ret_message)
{
	Probing__Otlp__Answer *answer = probing__otlp__answer__unpack(NULL, n_bytes, bytes);
	const Probing__Otlp__PartialSuccess *part = answer ? answer->partial_success : NULL;
	char *message = NULL;
	int r = answer ? 0 : -EBADMSG;

	if (part && part->error_message[0]) {
		message = strdup(part->error_message);
		r = message ? 0 : -ENOMEM;
	}
	if (r == 0) {
		*ret_rejected = part ? part->rejected_profiles : 0;
		*ret_message = message;
	}
	if (answer)
		probing__otlp__answer__free_unpacked(answer, NULL);
	return r;
}
