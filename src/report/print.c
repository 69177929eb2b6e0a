/* print.c - see print.h. */
#include "src/report/print.h"

#include <errno.h>

#include "base/util.h"

int print_finish(FILE *out)
{
	if (fflush(out) != 0)
		return errno > 0 ? -errno : -EIO;
	return ferror(out) ? -EIO : 0;
}

static int print_json_whole(struct document *json, const struct whole *whole)
{
	document_integer(json, "samples", (int64_t)whole->samples);
	document_integer(json, "weight", (int64_t)whole_all(whole));
	return document_text(json, "unit", !whole->by_weight ? "samples" : whole->unit ? whole->unit : "ns");
}

int print_json_begin(const struct whole *whole, struct document **ret)
{
	CLEANUP(document_freep) struct document *json = NULL;
	int r;

	r = document_new(&json);
	if (r < 0)
		return r;
	document_open(json, NULL);
	r = print_json_whole(json, whole);
	if (r >= 0)
		*ret = TAKE(json);
	return r;
}

int print_json_frame(struct document *json, const struct profile_frame *frame, const char *name)
{
	int r;

	r = document_text(json, "name", name);
	if (r >= 0)
		r = document_text(json, "kind", frame ? frame_kind_name(frame->kind) : NULL);
	document_bool(json, "builtin", frame && frame->role == ROLE_BUILTIN);
	if (r >= 0)
		r = document_text(json, "file", frame ? frame->file : NULL);
	if (frame && frame->line > 0)
		document_integer(json, "line", frame->line);
	else if (r >= 0)
		r = document_text(json, "line", NULL);
	if (r >= 0)
		r = document_text(json, "module", frame ? frame->module : NULL);
	return r;
}

void print_json_time(struct document *json, const struct whole *whole, const char *key, uint64_t value)
{
	char share[64];

	document_integer(json, key, (int64_t)value);
	snprintf(share, sizeof share, "%s_share", key);
	document_real(json, share, whole_share(whole, value));
}
