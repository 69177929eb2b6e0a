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

static int print_json_whole(struct json *json, const struct whole *whole)
{
	json_integer(json, "samples", (int64_t)whole->samples);
	json_integer(json, "weight", (int64_t)whole_all(whole));
	return json_text(json, "unit", !whole->by_weight ? "samples" : whole->unit ? whole->unit : "ns");
}

int print_json_begin(const struct whole *whole, struct json **ret)
{
	CLEANUP(json_freep) struct json *json = NULL;
	int r;

	r = json_new(&json);
	if (r < 0)
		return r;
	json_open(json, NULL);
	r = print_json_whole(json, whole);
	if (r >= 0)
		*ret = TAKE(json);
	return r;
}

int print_json_frame(struct json *json, const struct profile_frame *frame, const char *name)
{
	int r;

	r = json_text(json, "name", name);
	if (r >= 0)
		r = json_text(json, "kind", frame ? frame_kind_name(frame->kind) : NULL);
	json_bool(json, "builtin", frame && frame->role == ROLE_BUILTIN);
	if (r >= 0)
		r = json_text(json, "file", frame ? frame->file : NULL);
	if (frame && frame->line > 0)
		json_integer(json, "line", frame->line);
	else if (r >= 0)
		r = json_text(json, "line", NULL);
	if (r >= 0)
		r = json_text(json, "module", frame ? frame->module : NULL);
	return r;
}

void print_json_time(struct json *json, const struct whole *whole, const char *key, uint64_t value)
{
	char share[64];

	json_integer(json, key, (int64_t)value);
	snprintf(share, sizeof share, "%s_share", key);
	json_real(json, share, whole_share(whole, value));
}
