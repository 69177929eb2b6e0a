/* SPDX-License-Identifier: MIT */
/*
 * import_nvprof.c - the output of nvprof: summaries as text, summaries and traces as CSV.
 *
 * A log also has the program's own output, so everything but tables is skipped. nvprof's own lines
 * begin with "==PID==", those of tables do not:
 *
 *   ==71== Profiling application: ./train
 *   ==71== Profiling result:
 *               Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 *    GPU activities:   60.00%  3.0000ms         2  1.5000ms  1.0000ms  2.0000ms  kernel(float*)
 *                      40.00%  2.0000ms         4  500.00us  400.00us  600.00us  [CUDA memcpy HtoD]
 *         API calls:  100.00%  8.0000ms         6  1.3333ms  10.000us  5.0000ms  cudaLaunchKernel
 *
 * Before CUDA 8 there was no column Type, and calls had a table of their own below "==71== API calls:".
 * Source: "Profiler User's Guide" of CUDA 5.5 to 12.3, "nvprof".
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/import/decimal.h"
#include "src/import/lines.h"
#include "src/import/nvprof.h"

enum { LOOKED_AT = 1 << 20 };

/* ---- Rows ---- */

enum nvprof_type nvprof_type_of(struct piece text)
{
	return piece_begins(text, "GPU activities") ? NVPROF_ACTIVITIES
	       : piece_begins(text, "API calls")    ? NVPROF_CALLS
	       : piece_begins(text, "Range")        ? NVPROF_RANGES
						    : NVPROF_NONE;
}

int nvprof_begin(struct nvprof *nvprof)
{
	const char *slash = strrchr(nvprof->file, '/');
	const struct gpu_trace_row trace = { .format = "nvprof",
					     .file = slash ? slash + 1 : nvprof->file,
					     .command = nvprof->command[0] ? nvprof->command : NULL,
					     .pid = nvprof->pid };
	int r;

	if (nvprof->has_trace)
		return 0;
	r = sink_gpu(nvprof->sink, &trace);
	nvprof->has_trace = r >= 0;
	return r;
}

/* Extract "HtoD" from "[CUDA memcpy HtoD]"; false: a kernel. */
static bool read_kind(const char *name, char kind[32])
{
	static const char copies[] = "[CUDA memcpy ", fills[] = "[CUDA memset";
	bool is_copy = strncmp(name, copies, strlen(copies)) == 0;

	if (is_copy)
		snprintf(kind, 32, "%.*s", (int)strcspn(name + strlen(copies), "]"), name + strlen(copies));
	else
		strcpy(kind, "memset");
	return is_copy || strncmp(name, fills, strlen(fills)) == 0;
}

static int put_activity(struct nvprof *nvprof, const struct gpu_span *span, struct gpu_kernel_row *kernel,
			struct gpu_memcpy_row *copy)
{
	char kind[32];

	kernel->span = copy->span = *span;
	copy->kind = kind;
	return read_kind(span->name, kind) ? sink_memcpy(nvprof->sink, copy) : sink_kernel(nvprof->sink, kernel);
}

int nvprof_put(struct nvprof *nvprof, const struct gpu_span *span, struct gpu_kernel_row *kernel,
	       struct gpu_memcpy_row *copy)
{
	struct gpu_call_row call = { .span = *span,
				     .pid = nvprof->pid,
				     .tid = GPU_UNKNOWN,
				     .result = GPU_UNKNOWN,
				     .correlation = kernel->place.correlation };
	struct gpu_range_row range = { .span = *span, .pid = nvprof->pid, .tid = GPU_UNKNOWN };
	int r;

	if (nvprof->is_ranges && nvprof->type != NVPROF_RANGES)
		return 0;
	r = nvprof_begin(nvprof);
	if (r < 0)
		return r;
	switch (nvprof->type) {
	case NVPROF_ACTIVITIES:
		return put_activity(nvprof, span, kernel, copy);
	case NVPROF_CALLS:
		return sink_call(nvprof->sink, &call);
	case NVPROF_RANGES:
		return sink_range(nvprof->sink, &range);
	case NVPROF_NONE:
		break;
	}
	sink_skip(nvprof->sink);
	return 0;
}

/* ---- Text summaries ---- */

static struct piece next_word(struct piece *rest)
{
	*rest = piece_trim(*rest);
	return piece_split(rest, ' ');
}

/* Parse "60.00%  3.0000ms  2  1.5000ms  1.0000ms  2.0000ms  kernel(float*)"; false: not a row. */
static bool read_text_row(struct piece line, struct gpu_span *ret, struct piece *ret_name)
{
	struct piece share = next_word(&line);
	struct piece time = next_word(&line), calls = next_word(&line), avg = next_word(&line);
	struct piece least = next_word(&line), most = next_word(&line);
	uint64_t n;
	int64_t ignored;

	if (share.n == 0 || share.at[share.n - 1] != '%' || !piece_time(time, &ret->duration_ns) ||
	    !piece_number(calls, &n) || n > INT64_MAX || !piece_time(avg, &ignored) ||
	    !piece_time(least, &ret->min_ns) || !piece_time(most, &ret->max_ns))
		return false;
	ret->calls = (int64_t)n;
	ret->start_ns = GPU_UNKNOWN;
	*ret_name = piece_trim(line);
	return ret_name->n > 0;
}

static int read_text_line(struct nvprof *nvprof, struct piece line)
{
	struct gpu_kernel_row kernel = {
		.grid = { GPU_UNKNOWN, GPU_UNKNOWN, GPU_UNKNOWN },
		.block = { GPU_UNKNOWN, GPU_UNKNOWN, GPU_UNKNOWN },
		.registers = GPU_UNKNOWN,
		.static_shared_bytes = GPU_UNKNOWN,
		.dynamic_shared_bytes = GPU_UNKNOWN,
		.place = { .context = GPU_UNKNOWN, .stream = GPU_UNKNOWN, .correlation = GPU_UNKNOWN }
	};
	struct gpu_memcpy_row copy = { .bytes = GPU_UNKNOWN, .place = kernel.place };
	CLEANUP(freep) char *text = NULL;
	struct gpu_span span = { 0 };
	struct piece name;

	if (nvprof_type_of(line) != NVPROF_NONE) {
		nvprof->type = nvprof_type_of(line);
		piece_split(&line, ':');
	}
	if (!read_text_row(line, &span, &name))
		return 0;
	span.name = text = strndup(name.at, name.n);
	return text ? nvprof_put(nvprof, &span, &kernel, &copy) : -ENOMEM;
}

/* ---- Log ---- */

/* Split "==71== Profiling result:" into 71 and the text; "========" of an imported profile has no PID. */
static bool read_own(struct piece line, int64_t *ret_pid, struct piece *ret_rest)
{
	uint64_t pid;

	if (!piece_begins(line, "=="))
		return false;
	line.at += 2, line.n -= 2;
	*ret_rest = line;
	*ret_pid = piece_number(piece_split(ret_rest, '='), &pid) && pid <= INT32_MAX ? (int64_t)pid : GPU_UNKNOWN;
	while (ret_rest->n > 0 && ret_rest->at[0] == '=')
		ret_rest->at++, ret_rest->n--;
	*ret_rest = piece_trim(*ret_rest);
	return true;
}

static void keep_command(struct nvprof *nvprof, struct piece command)
{
	command = piece_trim(command);
	snprintf(nvprof->command, sizeof nvprof->command, "%.*s", (int)MIN(command.n, sizeof nvprof->command - 1),
		 command.at);
}

/* Another process in the same log starts another trace. */
static void begin_process(struct nvprof *nvprof, int64_t pid)
{
	if (pid != nvprof->pid)
		nvprof->has_trace = false;
	nvprof->pid = pid;
	nvprof->is_ranges = false;
}

static void read_sentence(struct nvprof *nvprof, int64_t pid, struct piece sentence)
{
	static const char application[] = "Profiling application:", command[] = "command:";
	const char *found = memmem(sentence.at, sentence.n, command, strlen(command));

	nvprof->is_table = false;
	if (piece_begins(sentence, "NVPROF is profiling process") && found) {
		begin_process(nvprof, pid);
		found += strlen(command);
		keep_command(nvprof, (struct piece){ found, sentence.n - (size_t)(found - sentence.at) });
	} else if (piece_begins(sentence, application)) {
		begin_process(nvprof, pid);
		keep_command(nvprof,
			     (struct piece){ sentence.at + strlen(application), sentence.n - strlen(application) });
	} else if (piece_begins(sentence, "Profiling result:")) {
		begin_process(nvprof, pid);
		nvprof->type = NVPROF_ACTIVITIES;
	} else if (piece_begins(sentence, "API calls:")) {
		nvprof->type = NVPROF_CALLS;
	} else if (piece_begins(sentence, "NVTX result:")) {
		nvprof->is_ranges = true;
	}
}

static bool is_text_head(struct piece line)
{
	return (piece_begins(line, "Time(%)") || piece_begins(line, "Type  Time(%)")) &&
	       memmem(line.at, line.n, "Name", 4);
}

static int read_line(struct nvprof *nvprof, struct piece line)
{
	struct piece sentence;
	int64_t pid;

	if (read_own(line, &pid, &sentence)) {
		read_sentence(nvprof, pid, sentence);
		return 0;
	}
	line = piece_trim(line);
	if (memmem(line.at, line.n, ",", 1) && nvprof_csv_head(nvprof, line))
		return 0;
	if (is_text_head(line)) {
		nvprof->is_table = true;
		nvprof->is_csv = false;
		return 0;
	}
	if (piece_begins(line, "Start  Duration"))
		return sink_explain(nvprof->sink, -EPROTONOSUPPORT,
				    "a trace as text has no column borders: run nvprof with --csv");
	if (!nvprof->is_table)
		return 0;
	return nvprof->is_csv ? nvprof_csv_line(nvprof, line) : read_text_line(nvprof, line);
}

static int read_nvprof(const struct import_input *input, struct sink *sink)
{
	struct nvprof nvprof = { .sink = sink, .file = input->name, .pid = GPU_UNKNOWN, .type = NVPROF_ACTIVITIES };
	struct piece rest = { (const char *)input->bytes, input->n_bytes }, line;
	int r = 0;

	strcpy(sink_run(sink)->event, "cuda");
	while (r >= 0 && next_line(&rest, &line)) {
		r = read_line(&nvprof, line);
		if (r >= 0)
			r = sink_read(sink, input->n_bytes - rest.n, input->n_bytes);
	}
	if (r >= 0)
		snprintf(sink_run(sink)->command, sizeof sink_run(sink)->command, "%s", nvprof.command);
	return r;
}

static bool is_nvprof(const uint8_t *bytes, size_t n_bytes)
{
	static const char *const signs[] = { "= Profiling result:", "= NVPROF is profiling process", "Time(%)" };

	n_bytes = MIN(n_bytes, (size_t)LOOKED_AT);
	if (n_bytes == 0 || memchr(bytes, '\0', MIN(n_bytes, (size_t)512)))
		return false;
	for (size_t i = 0; i < N_ELEMENTS(signs); i++)
		if (memmem(bytes, n_bytes, signs[i], strlen(signs[i])))
			return true;
	return false;
}

const struct importer import_nvprof = {
	.name = "nvprof",
	.summary = "output of nvprof: summaries, and traces with --csv",
	.has_gpu = true,
	.recognise = is_nvprof,
	.read = read_nvprof,
};
