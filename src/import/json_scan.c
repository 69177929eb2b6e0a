/* SPDX-License-Identifier: MIT */
/* json_scan.c - see json_scan.h. */
#include "src/import/json_scan.h"

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

void json_scan_blanks(struct json_scan *scan)
{
	while (scan->at < scan->end && is_space(*scan->at))
		scan->at++;
}

bool json_scan_sign(struct json_scan *scan, char sign)
{
	json_scan_blanks(scan);
	if (scan->at >= scan->end || *scan->at != sign)
		return false;
	scan->at++;
	return true;
}

/* From behind the opening quote to behind the closing one. */
static bool pass_string(struct json_scan *scan)
{
	while (scan->at < scan->end) {
		char c = *scan->at++;

		if (c == '"')
			return true;
		if (c == '\\')
			scan->at++;
	}
	scan->at = scan->end;
	return false;
}

static bool pass_scalar(struct json_scan *scan)
{
	const char *begin = scan->at;

	while (scan->at < scan->end && !is_space(*scan->at) && !strchr(",:]}[{\"", *scan->at))
		scan->at++;
	return scan->at > begin;
}

bool json_scan_value(struct json_scan *scan, struct piece *ret)
{
	size_t depth = 0;
	const char *begin;

	json_scan_blanks(scan);
	begin = scan->at;
	do {
		if (scan->at >= scan->end)
			return false;
		switch (*scan->at) {
		case '"':
			scan->at++;
			if (!pass_string(scan))
				return false;
			break;
		case '{':
		case '[':
			scan->at++;
			depth++;
			break;
		case '}':
		case ']':
			if (depth == 0)
				return false;
			scan->at++;
			depth--;
			break;
		default:
			if (depth > 0)
				scan->at++;
			else if (!pass_scalar(scan))
				return false;
		}
	} while (depth > 0);
	*ret = (struct piece){ begin, (size_t)(scan->at - begin) };
	return true;
}
