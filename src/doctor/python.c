/* SPDX-License-Identifier: MIT */
/* python.c - checks: support for the Python of a process. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "src/doctor/check.h"

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Source of the interpreter's structure layout: debug offsets from 3.13 on. */
static const char *how(const struct facts_process *process)
{
	unsigned major = 0, minor = 0;

	if (sscanf(process->python, "%u.%u", &major, &minor) != 2)
		return "";
	if (major == 3 && minor >= 13)
		return "by the symbol _PyRuntime and its own debug offsets";
	return major == 3 && minor >= 7 ? "by the symbol _PyRuntime and the layout of that release"
					: "by the symbol _PyThreadState_Current and the layout of that release";
}

/* Without memory access, nothing is known about the interpreter. */
static bool is_memory_unreadable(const struct facts_process *process, struct doctor_finding *ret)
{
	if (process->memory_error >= 0)
		return false;
	finding_set_state(ret, DOCTOR_MISSING, "unknown: its memory cannot be read");
	return true;
}

static void run_python(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_process *process = &facts->process;

	if (is_memory_unreadable(process, ret))
		return;
	if (process->python_error >= 0) {
		finding_set_state(ret, DOCTOR_OK, "CPython %s in %s, %s", process->python,
				  file_name(process->interpreter.path), how(process));
		return;
	}
	if (process->python_error == -ENOENT) {
		finding_set_state(ret, DOCTOR_MISSING, "none found");
		finding_set_effect(ret, "native frames alone");
	} else if (process->python_error == -EAGAIN) {
		finding_set_state(ret, DOCTOR_LIMITED, "it is still starting up");
		finding_set_effect(ret, "no Python frames yet");
		finding_set_remedy(ret, false, "probing doctor %d", (int)process->pid);
	} else {
		finding_set_state(ret, DOCTOR_MISSING, "Python %s cannot be read", process->python);
		finding_set_effect(ret, "native frames only; supported are %s", facts->machine.pythons);
	}
}

static void judge_file(const struct facts *facts, const struct facts_file *file, struct doctor_finding *ret)
{
	if (is_memory_unreadable(&facts->process, ret))
		return;
	if (!file->path[0]) {
		finding_set_state(ret, DOCTOR_LIMITED, "not known");
		return;
	}
	if (file->error >= 0 && !file->is_deleted) {
		finding_set_state(ret, DOCTOR_OK, "%.200s", file->path);
		return;
	}
	if (file->error >= 0) {
		finding_set_state(ret, DOCTOR_OK, "%.180s is deleted, but can be opened", file->path);
		return;
	}
	finding_set_state(ret, DOCTOR_LIMITED, "%.160s: %s", file->path,
			  file->is_deleted || file->error == -ESTALE ? "deleted or replaced since the process started"
								     : strerror(-file->error));
	finding_set_effect(ret, "probing reads it from memory: its functions may have no names");
	if (!HAS_CAPABILITY(&facts->rights, CAPABILITY_SYS_ADMIN))
		finding_set_remedy(ret, true, "%s record --pid %d",
				   facts->rights.program[0] ? facts->rights.program : "probing",
				   (int)facts->process.pid);
}

static void run_executable(const struct facts *facts, struct doctor_finding *ret)
{
	judge_file(facts, &facts->process.executable, ret);
}

static void run_interpreter(const struct facts *facts, struct doctor_finding *ret)
{
	if (facts->process.memory_error >= 0 && facts->process.python_error < 0) {
		finding_set_state(ret, DOCTOR_MISSING, "none was found");
		return;
	}
	judge_file(facts, &facts->process.interpreter, ret);
}

static void run_debug(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_process *process = &facts->process;
	const struct facts_file *file = process->interpreter.path[0] ? &process->interpreter : &process->executable;

	if (is_memory_unreadable(process, ret))
		return;
	if (file->path[0] && file->has_debug) {
		finding_set_state(ret, DOCTOR_OK, "%s has its debug information", file_name(file->path));
		return;
	}
	finding_set_state(ret, DOCTOR_LIMITED, "none for %s", file->path[0] ? file_name(file->path) : "it");
	finding_set_effect(ret, "builtins have names, but its C functions have no lines");
}

static void run_generated(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_process *process = &facts->process;

	if (is_memory_unreadable(process, ret))
		return;
	if (process->n_generated == 0) {
		finding_set_state(ret, DOCTOR_OK, "it has none");
	} else if (process->has_perf_map || process->has_jitdump) {
		finding_set_state(ret, DOCTOR_OK, "%zu mappings, with symbols in %s", process->n_generated,
				  process->has_jitdump ? "a jitdump file" : "a perf map");
	} else {
		finding_set_state(ret, DOCTOR_LIMITED, "%zu mappings, without symbols", process->n_generated);
		finding_set_effect(ret, "code of the JIT is [anonymous code]; all Python frames are shown");
	}
}

static void run_loops(const struct facts *facts, struct doctor_finding *ret)
{
	const struct facts_process *process = &facts->process;

	if (is_memory_unreadable(process, ret))
		return;
	if (process->n_tasks > 0)
		finding_set_state(ret, DOCTOR_OK, "%zu tasks of %zu event loops can be read", process->n_tasks,
				  process->n_loops);
	else
		finding_set_state(ret, DOCTOR_OK, "%s",
				  process->has_asyncio ? "asyncio is loaded, and no task waits" : "none runs");
}

static const struct doctor_check checks[] = {
	{ "python", "Python frames", run_python },
	{ "executable", "names of its functions", run_executable },
	{ "interpreter", "native frames of Python, and names of builtins", run_interpreter },
	{ "interpreter_debug", "lines in the C code of Python", run_debug },
	{ "generated_code", "names of code compiled at run time", run_generated },
	{ "event_loops", "backtrace --async", run_loops },
};

const struct doctor_group doctor_python = { "python", checks, N_ELEMENTS(checks), true };
