/* print_json.c - what was found, as one JSON object. */
#include <errno.h>
#include <string.h>
#include <yajl/yajl_gen.h>

#include "base/util.h"
#include "src/doctor/doctor.h"

DEFINE_CLEANUP(yajl_gen, yajl_gen_free)

static void put_bytes(yajl_gen json, const char *text)
{
	yajl_gen_string(json, (const unsigned char *)text, strlen(text));
}

/* @text: NULL or "": there is none. */
static void put_text(yajl_gen json, const char *key, const char *text)
{
	put_bytes(json, key);
	if (text && text[0])
		put_bytes(json, text);
	else
		yajl_gen_null(json);
}

static void put_finding(yajl_gen json, const struct doctor_finding *finding)
{
	yajl_gen_map_open(json);
	put_text(json, "group", finding->group);
	put_text(json, "name", finding->name);
	put_text(json, "purpose", finding->purpose);
	put_text(json, "state", doctor_state_name(finding->state));
	put_text(json, "found", finding->found);
	put_text(json, "means", finding->means);
	put_text(json, "remedy", finding->remedy);
	put_bytes(json, "as_root");
	yajl_gen_bool(json, finding->as_root);
	yajl_gen_map_close(json);
}

int doctor_print_json(const struct doctor_report *report, FILE *out)
{
	CLEANUP(yajl_gen_freep) yajl_gen json = yajl_gen_alloc(NULL);
	const unsigned char *bytes;
	size_t n;

	if (!json)
		return -ENOMEM;
	yajl_gen_map_open(json);
	put_bytes(json, "pid");
	if (report->pid != 0)
		yajl_gen_integer(json, report->pid);
	else
		yajl_gen_null(json);
	put_text(json, "recording", doctor_recording_name(report->recording));
	put_bytes(json, "checks");
	yajl_gen_array_open(json);
	for (size_t i = 0; i < report->n_findings; i++)
		put_finding(json, &report->findings[i]);
	yajl_gen_array_close(json);
	yajl_gen_map_close(json);
	if (yajl_gen_get_buf(json, &bytes, &n) != yajl_gen_status_ok)
		return -ENOMEM;
	fwrite(bytes, 1, n, out);
	fputc('\n', out);
	return ferror(out) ? -EIO : 0;
}
