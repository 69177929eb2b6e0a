/* SPDX-License-Identifier: MIT */
/* verb_memory.c - the memory of a process: the kernel's account, and where the agent is there Python's and torch's. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/proc.h"
#include "base/util.h"
#include "src/cli/agent_eval.h"
#include "src/cli/cli.h"
#include "src/cli/memory_history.h"
#include "src/cli/pager.h"
#include "src/columns/columns.h"

enum { OPTION_JSON = 0x200, LOOK_MS = 5000, MAX_STATUS = 1 << 16 };

extern const char memory_source[]; /* memory.py */

struct options {
	pid_t pid;
	bool json;
};

static const struct argp_option option_list[] = {
	{ "json", OPTION_JSON, NULL, 0, "Print JSON: bytes and counts, with the growth since the last call", 0 },
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case OPTION_JSON:
		options->json = true;
		return 0;
	case ARGP_KEY_ARG:
		cli_take_pid(state, argument, &options->pid);
		return 0;
	case ARGP_KEY_END:
		cli_require_pid(state, options->pid);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "PID",
	.doc = "Show the resident and virtual size of a process, and their growth since the last call. With the agent, "
	       "also show Python's allocator and garbage collector, tracemalloc if it traces, and the caches of torch "
	       "per device. Loads nothing into the process.\v"
	       "Examples:\n"
	       "  probing 4242 memory\n"
	       "  probing memory 4242 --json\n",
};

/* ---- From outside ---- */

static int look_from_outside(pid_t pid, struct memory_values *to)
{
	static const struct {
		const char *key, *name;
	} lines[] = {
		{ "VmRSS", "rss_bytes" },  { "VmHWM", "peak_rss_bytes" }, { "RssAnon", "anonymous_bytes" },
		{ "VmSize", "vms_bytes" }, { "VmSwap", "swap_bytes" },
	};
	CLEANUP(freep) char *status = NULL;
	char path[64];
	size_t n_bytes;
	int r;

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	r = read_file(path, MAX_STATUS, &status, &n_bytes);
	if (r < 0)
		return cli_fail(EXIT_NO_INPUT, "there is no process %d", (int)pid);
	for (size_t i = 0; i < N_ELEMENTS(lines); i++) {
		const char *value = proc_status_value(status, lines[i].key);

		if (value)
			memory_values_add(to, lines[i].name, strtoll(value, NULL, 10) * 1024);
	}
	return to->n > 0 ? EXIT_OK
			 : cli_fail(EXIT_NO_INPUT, "process %d has no memory: it is a kernel thread, or has ended",
				    (int)pid);
}

/* ---- From inside ---- */

static int keep_output(void *data, int stream, const char *text, size_t n_text)
{
	FILE *out = data;

	if (stream == 1)
		fwrite(text, 1, n_text, out);
	return EXIT_OK;
}

static int ask(pid_t pid, struct agent_talk *talk, struct memory_values *to)
{
	CLEANUP(freep) char *code = agent_call(memory_source, "look", "", 0), *text = NULL;
	struct agent_value value;
	size_t n_bytes;
	FILE *out = open_memstream(&text, &n_bytes);
	const struct agent_eval eval = {
		.code = code,
		.n_code = code ? strlen(code) : 0,
		.timeout_ms = LOOK_MS,
		.output = keep_output,
		.data = out,
	};
	int status = EXIT_FAILED;

	if (code && out)
		status = agent_eval(pid, talk, &eval, &value);
	if (out && fclose(out) != 0)
		status = EXIT_FAILED;
	if (status != EXIT_OK)
		return status;
	if (value.outcome != OUTCOME_NOTHING)
		return agent_eval_fail(pid, &value);
	memory_values_parse(to, text, n_bytes);
	return EXIT_OK;
}

/* If the agent is not available, print why and keep the values from outside. Returns whether it answered. */
static bool look_from_inside(pid_t pid, struct memory_values *to)
{
	struct agent_state state;
	struct agent_talk talk;
	bool is_done;

	if (agent_look(pid, &state) < 0) {
		cli_say("process %d has no agent, so only values from outside are shown: probing inject %d loads it\n",
			(int)pid, (int)pid);
		return false;
	}
	if (!config_is_on(&state.config, &config_eval)) {
		cli_say("probing.eval is off in process %d, so only values from outside are shown\n", (int)pid);
		return false;
	}
	if (agent_open(pid, &state, &talk) != EXIT_OK)
		return false;
	is_done = ask(pid, &talk, to) == EXIT_OK;
	agent_talk_end(&talk);
	return is_done;
}

/* ---- Print ---- */

static bool is_bytes(const char *name)
{
	size_t n = strlen(name);

	return n > 6 && strcmp(name + n - 6, "_bytes") == 0;
}

static void format(const char *name, int64_t value, const char *sign, char to[32])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double amount = (double)llabs(value);
	size_t unit = 0;

	if (!is_bytes(name)) {
		snprintf(to, 32, "%s%" PRId64, value < 0 ? "-" : sign, (int64_t)llabs(value));
		return;
	}
	for (; amount >= 1024 && unit + 1 < N_ELEMENTS(units); unit++)
		amount /= 1024;
	snprintf(to, 32, "%s%.*f %s", value < 0 ? "-" : sign, unit > 0 ? 1 : 0, amount, units[unit]);
}

/* A peak cannot shrink, and a count until the next collection has no growth. */
static bool has_growth(const char *name)
{
	return strncmp(name, "gc_count_", 9) != 0 && strcmp(name, "torch") != 0;
}

static void put_text(const struct memory_values *now, const struct memory_values *before)
{
	static const struct column list[] = { { "", 26, 0, true }, { "", 14, 1, false }, { "", 0, 2, true } };
	struct columns columns = { .list = list, .n = N_ELEMENTS(list), .out = stdout };

	for (size_t i = 0; i < now->n; i++) {
		const struct memory_value *item = &now->items[i];
		const int64_t *old = memory_values_find(before, item->name);
		size_t n = strlen(item->name) - (is_bytes(item->name) ? 6 : 0);
		char value[32], growth[32] = "";

		if (strcmp(item->name, "torch") == 0)
			continue;
		format(item->name, item->value, "", value);
		if (old && has_growth(item->name))
			format(item->name, item->value - *old, "+", growth);
		columns_printf(&columns, "%.*s", (int)n, item->name);
		columns_put(&columns, value);
		if (growth[0])
			columns_put(&columns, growth);
		columns_end(&columns);
	}
	if (memory_values_find(now, "torch") && !memory_values_find(now, "cuda_0_memory_allocated_bytes"))
		puts("torch is loaded, and uses no CUDA device");
	if (before->n > 0)
		printf("growth since the last call, %.1f s ago\n", (double)(now->time_ns - before->time_ns) / 1e9);
}

static int put_json(pid_t pid, const struct memory_values *now, const struct memory_values *before, bool is_inside)
{
	struct json json;
	int r = to_json_keep("  ", &json);

	if (r < 0)
		return cli_fail(EXIT_FAILED, "not enough memory");
	to_json_object(&json);
	to_json_put_integer(&json, "pid", pid);
	to_json_put_bool(&json, "agent", is_inside);
	for (size_t i = 0; i < now->n; i++)
		if (strcmp(now->items[i].name, "torch") != 0)
			to_json_put_integer(&json, now->items[i].name, now->items[i].value);
	to_json_put_bool(&json, "torch", memory_values_find(now, "torch") != NULL);
	if (before->n == 0) {
		to_json_put_null(&json, "growth");
	} else {
		to_json_put_object(&json, "growth");
		to_json_put_number(&json, "seconds", (double)(now->time_ns - before->time_ns) / 1e9);
		for (size_t i = 0; i < now->n; i++) {
			const int64_t *old = memory_values_find(before, now->items[i].name);

			if (old && has_growth(now->items[i].name))
				to_json_put_integer(&json, now->items[i].name, now->items[i].value - *old);
		}
		to_json_object_end(&json);
	}
	to_json_object_end(&json);
	r = to_json_finish(&json, stdout);
	to_json_done(&json);
	return r < 0 ? cli_fail_write("-", r) : EXIT_OK;
}

static int run_memory(int argc, char **argv)
{
	struct memory_values now = { .time_ns = (int64_t)realtime_ns() }, before;
	struct options options = { 0 };
	struct proc_stat stat;
	bool is_inside;
	int r, status;

	cli_parse(&argp, argc, argv, 0, &options);
	status = look_from_outside(options.pid, &now);
	if (status != EXIT_OK)
		return status;
	is_inside = look_from_inside(options.pid, &now);
	r = proc_stat_read(options.pid, 0, &stat);
	if (r >= 0)
		r = memory_history_exchange(options.pid, stat.image, &now, &before);
	if (r < 0) {
		before.n = 0;
		cli_say("the values cannot be stored, so the next call shows no growth: %s\n", strerror(-r));
	}
	pager_start();
	if (options.json)
		return put_json(options.pid, &now, &before, is_inside);
	put_text(&now, &before);
	return EXIT_OK;
}

const struct verb verb_memory = {
	.name = "memory",
	.aliases = "mem",
	.summary = "show the memory of a process, and its growth",
	.argp = &argp,
	.pages = true,
	.run = run_memory,
};
