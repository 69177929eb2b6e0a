/* fuzz_cpython.c - the interpreter's reader on memory that lies.
 *
 * The corpus are snapshots of real interpreters, parked in known stacks:
 *   snapshot_python PID OUT            (ninja fuzz/snapshot_python)
 * made of `python3.NN fuzz/parked.py`, a file per version. See cpython_memory.h.
 */
#include "fuzz/cpython_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* Answers must make sense, whatever memory says. */
static void check_codes(struct py_runtime *runtime)
{
	const struct py_code *code, *found;

	for (size_t i = 0; (code = py_code_nth(runtime, i)) != NULL; i++) {
		if (!code->qualname || !code->file || code->bytecode_bytes == 0)
			abort();
		if (py_code_line(code, PY_INSTRUCTION_NONE) != code->first_line)
			abort();
		/* Code objects that cover each other's ground: the newer one has it. */
		found = py_code_at(runtime, code->bytecode);
		if (found && code->bytecode - found->bytecode >= found->bytecode_bytes)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static struct memory memory;
	struct py_runtime *runtime;

	memory_parse(&memory, data, n_bytes);
	if (memory_open(&memory, &memory.base, &runtime) < 0)
		return 0;
	/* Twice: the second time codes are known, and must be found again. */
	if (memory_exercise(&memory, runtime) != memory_exercise(&memory, runtime))
		abort();
	check_codes(runtime);
	py_runtime_free(runtime);
	return 0;
}
