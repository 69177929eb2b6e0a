/* SPDX-License-Identifier: MIT */
/* print_json.c - findings as one JSON object. */
#include "base/json.h"
#include "base/util.h"
#include "src/doctor/doctor.h"

static void put_finding(struct json *json, const struct doctor_finding *finding)
{
	to_json_object(json);
	to_json_put_text(json, "group", finding->group);
	to_json_put_text(json, "name", finding->name);
	to_json_put_text(json, "purpose", finding->purpose);
	to_json_put_text(json, "state", doctor_state_name(finding->state));
	to_json_put_text(json, "found", finding->found);
	to_json_put_text(json, "means", finding->means);
	to_json_put_text(json, "remedy", finding->remedy);
	to_json_put_bool(json, "as_root", finding->as_root);
	to_json_object_end(json);
}

int doctor_print_json(const struct doctor_report *report, FILE *out)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	int r = to_json_keep(NULL, &json);

	if (r < 0)
		return r;
	to_json_object(&json);
	to_json_put_known(&json, "pid", report->pid, report->pid != 0);
	to_json_put_text(&json, "recording", doctor_recording_name(report->recording));
	to_json_put_array(&json, "checks");
	for (size_t i = 0; i < report->n_findings; i++)
		put_finding(&json, &report->findings[i]);
	to_json_array_end(&json);
	to_json_object_end(&json);
	return to_json_finish(&json, out);
}
