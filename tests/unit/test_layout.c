/* test_layout.c - the table of layouts against the headers of real releases.
 *
 * For each interpreter whose headers are installed, a program that prints
 * offsetof() of every field is compiled against them and compared.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/util.h"
#include "tests/unit/interpreters.h"
#include "unwind/cpython/layout.h"

static const char program[] =
	"#define Py_BUILD_CORE 1\n"
	"#include <Python.h>\n"
	"#include <internal/pycore_runtime.h>\n"
	"#include <internal/pycore_interp.h>\n"
	"#include <internal/pycore_frame.h>\n"
	"#define P(name, value) printf(\"%s %zu\\n\", #name, (size_t)(value));\n"
	"int main(void) {\n"
	"printf(\"VERSION %u\\n\", PY_VERSION_HEX);\n"
	"P(RUNTIME_INTERPRETERS, offsetof(_PyRuntimeState, interpreters.head))\n"
	"P(INTERPRETER_NEXT, offsetof(PyInterpreterState, next))\n"
	"P(INTERPRETER_THREADS, offsetof(PyInterpreterState, threads.head))\n"
	"P(THREAD_NEXT, offsetof(PyThreadState, next))\n"
	"P(THREAD_INTERPRETER, offsetof(PyThreadState, interp))\n"
	"P(THREAD_NATIVE_ID, offsetof(PyThreadState, native_thread_id))\n"
	"#if PY_MINOR_VERSION < 13\n"
	"P(THREAD_CFRAME, offsetof(PyThreadState, cframe))\n"
	"P(THREAD_ROOT_CFRAME, offsetof(PyThreadState, root_cframe))\n"
	"P(CFRAME_FRAME, offsetof(_PyCFrame, current_frame))\n"
	"P(CFRAME_PREVIOUS, offsetof(_PyCFrame, previous))\n"
	"P(FRAME_CODE, offsetof(_PyInterpreterFrame, f_code))\n"
	"P(FRAME_INSTRUCTION, offsetof(_PyInterpreterFrame, prev_instr))\n"
	"#else\n"
	"P(THREAD_FRAME, offsetof(PyThreadState, current_frame))\n"
	"P(FRAME_CODE, offsetof(_PyInterpreterFrame, f_executable))\n"
	"P(FRAME_INSTRUCTION, offsetof(_PyInterpreterFrame, instr_ptr))\n"
	"#endif\n"
	"#if PY_MINOR_VERSION < 12\n"
	"P(FRAME_ENTRY, offsetof(_PyInterpreterFrame, is_entry))\n"
	"#else\n"
	"P(CODE_VERSION, offsetof(PyCodeObject, co_version))\n"
	"#endif\n"
	"P(FRAME_PREVIOUS, offsetof(_PyInterpreterFrame, previous))\n"
	"P(FRAME_OWNER, offsetof(_PyInterpreterFrame, owner))\n"
	"P(CODE_UNITS, offsetof(PyVarObject, ob_size))\n"
	"P(CODE_FIRST_LINE, offsetof(PyCodeObject, co_firstlineno))\n"
	"P(CODE_FILE, offsetof(PyCodeObject, co_filename))\n"
	"P(CODE_NAME, offsetof(PyCodeObject, co_name))\n"
	"P(CODE_QUALNAME, offsetof(PyCodeObject, co_qualname))\n"
	"P(CODE_LINES, offsetof(PyCodeObject, co_linetable))\n"
	"P(CODE_BYTECODE, offsetof(PyCodeObject, co_code_adaptive))\n"
	"P(BYTES_SIZE, offsetof(PyBytesObject, ob_base.ob_size))\n"
	"P(BYTES_DATA, offsetof(PyBytesObject, ob_sval))\n"
	"P(STRING_LENGTH, offsetof(PyASCIIObject, length))\n"
	"P(STRING_HASH, offsetof(PyASCIIObject, hash))\n"
	"P(STRING_STATE, offsetof(PyASCIIObject, state))\n"
	"P(STRING_ASCII_DATA, sizeof(PyASCIIObject))\n"
	"P(STRING_COMPACT_DATA, sizeof(PyCompactUnicodeObject))\n"
	"return 0; }\n";

static const char offsets_program[] =
	"#define Py_BUILD_CORE 1\n"
	"#include <Python.h>\n"
	"#include <internal/pycore_runtime.h>\n"
	"#include <internal/pycore_runtime_init.h>\n"
	"#include <unistd.h>\n"
	"int main(void) { extern _PyRuntimeState _PyRuntime;\n"
	"return write(1, &_PyRuntime.debug_offsets, sizeof _PyRuntime.debug_offsets) < 0; }\n";

struct header {
	char prefix[512];
	char name[32]; /* "python3.12" */
};

/* "<prefix>/bin/python3.12" -> where its headers are, when they are there. */
static bool find_headers(const struct interpreter *interpreter, struct header *ret)
{
	const char *end = strstr(interpreter->path, "/bin/python3.");
	char probe[700];

	snprintf(ret->prefix, sizeof ret->prefix, "%.*s", (int)(end - interpreter->path), interpreter->path);
	snprintf(ret->name, sizeof ret->name, "python3.%u", interpreter->version & 255);
	snprintf(probe, sizeof probe, "%s/include/%s/internal/pycore_frame.h", ret->prefix, ret->name);
	return access(probe, R_OK) == 0;
}

/* Compile and start a program; its output. NULL: it does not compile. */
static FILE *run_program(const struct header *header, const char *text, const char *extra)
{
	char folder[] = "/tmp/probing-layout-XXXXXX", command[2048], source[64];
	FILE *file;

	assert_non_null(mkdtemp(folder));
	snprintf(source, sizeof source, "%s/layout.c", folder);
	file = fopen(source, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	snprintf(command, sizeof command,
		 "cc -w -I%s/include/%s -I%s/include/%s/internal -o %s/layout %s %s && %s/layout; rm -rf %s",
		 header->prefix, header->name, header->prefix, header->name, folder, source, extra, folder,
		 folder);
	return popen(command, "r");
}

static enum layout_field field_by_name(const char *name)
{
	for (int field = 0; field < LAYOUT_N_FIELDS; field++)
		if (strcmp(layout_field_name((enum layout_field)field), name) == 0)
			return (enum layout_field)field;
	fail_msg("no field %s", name);
	return LAYOUT_N_FIELDS;
}

static void read_offsets(const struct header *header, struct layout *layout)
{
	char extra[1200];
	uint64_t words[512];
	size_t n;
	FILE *output;

	snprintf(extra, sizeof extra, "-L%s/lib -l%s -Wl,-rpath,%s/lib", header->prefix, header->name,
		 header->prefix);
	output = run_program(header, offsets_program, extra);
	assert_non_null(output);
	n = fread(words, sizeof words[0], N_ELEMENTS(words), output);
	pclose(output);
	assert_int_equal(n, layout_debug_offsets_words(layout->version));
	assert_int_equal(layout_read_debug_offsets(words, (unsigned)n, layout), 0);
	words[2] = 1; /* a free-threaded build is laid out differently */
	assert_int_equal(layout_read_debug_offsets(words, (unsigned)n, layout), -EOPNOTSUPP);
	words[2] = 0;
	words[5] = UINT64_MAX;
	assert_int_equal(layout_read_debug_offsets(words, (unsigned)n, layout), -EOPNOTSUPP);
}

static void check_headers(const struct header *header)
{
	FILE *output = run_program(header, program, "");
	struct layout layout = { 0 };
	unsigned n = 0;
	char name[64];
	size_t value;

	assert_non_null(output);
	while (fscanf(output, "%63s %zu", name, &value) == 2) {
		enum layout_field field;

		if (strcmp(name, "VERSION") == 0) {
			assert_int_equal(layout_replay((unsigned)value, &layout), 0);
			if (layout_debug_offsets_words(layout.version) > 0)
				read_offsets(header, &layout);
			continue;
		}
		field = field_by_name(name);
		if (layout.field[field] != (int32_t)value)
			fail_msg("%s of %s: %d in the table, %zu in the headers", name, header->name,
				 layout.field[field], value);
		n++;
	}
	pclose(output);
	assert_true(n > 20);
	print_message("%s: %u fields agree with the headers\n", header->name, n);
}

static void test_headers(void **state)
{
	struct interpreter interpreters[MAX_INTERPRETERS];
	size_t n = find_interpreters(interpreters), n_checked = 0;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		struct header header;

		if (!find_headers(&interpreters[i], &header))
			continue;
		check_headers(&header);
		n_checked++;
	}
	if (n_checked == 0) {
		print_message("SKIP: no CPython 3.11 to 3.13 with headers is installed\n");
		skip();
	}
}

static void test_refused(void **state)
{
	struct layout layout = { .version = 7 };

	(void)state;
	assert_int_equal(layout_replay(0x030a0df0, &layout), -EOPNOTSUPP); /* older than the table */
	assert_int_equal(layout_replay(0x03630000 | 0xf0, &layout), -EOPNOTSUPP); /* 3.99 */
	assert_int_equal(layout_replay(0x030d00b1, &layout), -EOPNOTSUPP); /* a beta */
	assert_int_equal(layout.version, 7);
	assert_int_equal(layout_replay(0x030b02f0, &layout), 0);
	assert_int_equal(layout.field[FRAME_ENTRY], 68);
	assert_int_equal(layout.field[CODE_VERSION], ABSENT);
	assert_int_equal(layout_replay(0x030c01f0, &layout), 0);
	assert_int_equal(layout.field[FRAME_ENTRY], ABSENT);
	assert_int_equal(layout.field[CODE_VERSION], 92);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
