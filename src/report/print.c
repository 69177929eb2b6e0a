/* SPDX-License-Identifier: MIT */
/* print.c - see print.h. */
#include "src/report/print.h"

#include <string.h>

#include "base/util.h"

int print_json_begin(const struct whole *whole, struct json *ret)
{
	struct json json;
	int r = to_json_keep(" ", &json);

	if (r < 0)
		return r;
	to_json_object(&json);
	to_json_put_integer(&json, "samples", (int64_t)whole->samples);
	to_json_put_integer(&json, "weight", (int64_t)whole_all(whole));
	to_json_put_string(&json, "unit", !whole->by_weight ? "samples" : whole->unit ? whole->unit : "ns");
	*ret = json;
	return 0;
}

void print_json_frame(struct json *json, const struct profile_frame *frame, const char *name)
{
	to_json_put_string(json, "name", name);
	to_json_put_string(json, "kind", frame ? frame_kind_name(frame->kind) : NULL);
	to_json_put_bool(json, "builtin", frame && frame->role == ROLE_BUILTIN);
	to_json_put_string(json, "file", frame ? frame->file : NULL);
	to_json_put_string(json, "file_label", frame ? frame->file_label ?: frame->file : NULL);
	to_json_put_known(json, "line", frame ? frame->line : 0, frame && frame->line > 0);
	to_json_put_string(json, "module", frame ? frame->module : NULL);
}

/* Three decimals instead of all digits; integer arithmetic avoids the locale's decimal point. */
void print_json_percent(struct json *json, const char *key, double value)
{
	int64_t thousandths = (int64_t)(value * 1000 + (value < 0 ? -0.5 : 0.5));
	int64_t size = thousandths < 0 ? -thousandths : thousandths;
	char text[48];

	snprintf(text, sizeof text, "%s%jd.%03jd", thousandths < 0 ? "-" : "", (intmax_t)(size / 1000),
		 (intmax_t)(size % 1000));
	to_json_key(json, key);
	to_json_digits(json, text, strlen(text));
}

void print_json_time(struct json *json, const struct whole *whole, const char *key, uint64_t value)
{
	char share[64];

	to_json_put_integer(json, key, (int64_t)value);
	snprintf(share, sizeof share, "%s_share", key);
	print_json_percent(json, share, whole_share(whole, value));
}
