/* SPDX-License-Identifier: MIT */
/* test_symbolize.c - names, files, lines and inlined callers of places in programs compiled here.
 *
 * The programs carry a label inside their innermost inlined function; its
 * address is the place that is looked up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "base/util.h"
#include "symbolize/names.h"
#include "symbolize/symbolize.h"
#include "tests/unit/shell.h"

static const char program[] = "static inline __attribute__((always_inline)) int inner(int x)\n"
			      "{\n"
			      "	__asm__ volatile(\".globl here\\nhere: nop\");\n" /* line 3 */
			      "	return x * 3;\n"
			      "}\n"
			      "static inline __attribute__((always_inline)) int middle(int x)\n"
			      "{\n"
			      "	return inner(x + 1) - 1;\n" /* line 8 */
			      "}\n"
			      "__attribute__((noinline)) int outer(int x);\n"
			      "int outer(int x)\n"
			      "{\n"
			      "	return middle(x) + 1;\n" /* line 13 */
			      "}\n"
			      "int main(int argc, char **argv)\n"
			      "{\n"
			      "	(void)argv;\n"
			      "	return outer(argc);\n"
			      "}\n";

static const char program_cxx[] = "namespace shop {\n"
				  "template <class T> struct Cart {\n"
				  "	static inline __attribute__((always_inline)) T price(T x)\n"
				  "	{\n"
				  "		__asm__ volatile(\".globl here\\nhere: nop\");\n" /* line 5 */
				  "		return x * 3;\n"
				  "	}\n"
				  "	__attribute__((noinline)) T total(T x) { return price(x) + 1; }\n" /* line 8 */
				  "};\n"
				  "}\n"
				  "int main(int argc, char **) { return shop::Cart<int>().total(argc); }\n";

static char folder[] = "/tmp/test_symbolize.XXXXXX";

static void path_of(const char *name, char *to, size_t n_bytes)
{
	snprintf(to, n_bytes, "%s/%s", folder, name);
}

static void write_file(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	path_of(name, path, sizeof path);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Run a shell command in the folder. */
static int run(const char *format, ...)
{
	char command[640];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(command, sizeof command, format, arguments);
	va_end(arguments);
	return shell_in(folder, command);
}

static void require(int status)
{
	if (status != 0)
		(void)!system("cat /tmp/test_symbolize.*/log >&2");
	assert_int_equal(status, 0);
}

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	write_file("chain.c", program);
	write_file("cart.cc", program_cxx);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return run("rm -rf %s", folder) == 0 ? 0 : -1;
}

static uint64_t symbol_address(const char *name, const char *symbol)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	uint64_t value, size;
	char path[128];
	int fd;

	path_of(name, path, sizeof path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(elf_file_open(fd, &elf), 0);
	assert_int_equal(elf_file_symbol(elf, symbol, &value, &size), 0);
	return value;
}

static struct symbol_module *open_module(const char *name)
{
	struct symbol_module *module;
	char path[128];

	path_of(name, path, sizeof path);
	assert_int_equal(symbol_module_open(path, -1, &module), 0);
	return module;
}

static bool ends_with(const char *text, const char *end)
{
	return text && strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

static void expect(const struct symbol *symbol, const char *name, const char *file, int line)
{
	assert_string_equal(symbol->name, name);
	assert_int_equal(symbol->line, line);
	assert_int_equal(symbol->role, SYMBOL_PLAIN);
	if (file)
		assert_true(ends_with(symbol->file, file));
	else
		assert_null(symbol->file);
}

static void expect_chain(const char *binary, uint64_t here, uint64_t outer)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = open_module(binary);
	struct symbol symbols[SYMBOL_MAX_INLINED];

	assert_int_equal(symbol_lookup(module, here, symbols, N_ELEMENTS(symbols)), 3);
	expect(&symbols[0], "inner", "chain.c", 3);
	expect(&symbols[1], "middle", "chain.c", 8);
	expect(&symbols[2], "outer", "chain.c", 13);
	assert_true(symbols[2].start == outer);
	assert_null(symbols[2].linkage);

	/* Too little room: the innermost and the real function. */
	assert_int_equal(symbol_lookup(module, here, symbols, 2), 2);
	expect(&symbols[0], "inner", "chain.c", 3);
	expect(&symbols[1], "outer", "chain.c", 13);
	assert_int_equal(symbol_lookup(module, here, symbols, 1), 1);
	expect(&symbols[0], "outer", "chain.c", 13);
}

static void build_and_expect_chain(const char *compiler, const char *flags)
{
	require(run("%s -O2 %s chain.c -o chain", compiler, flags));
	expect_chain("chain", symbol_address("chain", "here"), symbol_address("chain", "outer"));
}

static void test_inlined_chain(void **state)
{
	(void)state;
	build_and_expect_chain("cc", "-g -gdwarf-5 -fpie -pie");
	build_and_expect_chain("cc", "-g -gdwarf-4 -no-pie");
	build_and_expect_chain("cc", "-g -gz");
	/* A shared object whose first segment is not at address 0. */
	build_and_expect_chain("cc", "-g -fPIC -shared -Wl,-Bsymbolic -Wl,-Ttext-segment=0x100000");
	/* Units in a file of their own. */
	build_and_expect_chain("cc", "-g -gdwarf-5 -gsplit-dwarf");
}

/* clang writes no .debug_aranges. */
static void test_inlined_chain_clang(void **state)
{
	(void)state;
	if (run("clang --version") != 0) {
		print_message("no clang here\n");
		skip();
	}
	build_and_expect_chain("clang", "-g -gdwarf-5");
	build_and_expect_chain("clang", "-g -gdwarf-4");
}

static void test_separate_debug_file(void **state)
{
	uint64_t here, outer;

	(void)state;
	require(run("cc -O2 -g chain.c -o chain && objcopy --only-keep-debug chain separate.debug && "
		    "strip -o separate chain && objcopy --add-gnu-debuglink=separate.debug separate"));
	here = symbol_address("chain", "here");
	outer = symbol_address("chain", "outer");
	expect_chain("separate", here, outer);

	/* Another build's debug file must not be used. */
	require(run("cc -O1 -g -DX -fno-inline chain.c -o other && "
		    "objcopy --only-keep-debug other separate.debug"));
	{
		CLEANUP(symbol_module_freep) struct symbol_module *module = open_module("separate");
		struct symbol symbols[SYMBOL_MAX_INLINED];

		assert_int_equal(symbol_lookup(module, here, symbols, N_ELEMENTS(symbols)), 1);
		assert_null(symbols[0].file);
	}
}

/* DWARF by hand, since no compiler refers to a common file (dwz does, afterwards). */
static const char common_source[] = "\t.section .debug_str,\"MS\",@progbits,1\n"
				    "\t.asciz \"pad\"\n"
				    "\t.asciz \"named_in_common\"\n"
				    "\t.section .debug_abbrev,\"\",@progbits\n"
				    "\t.byte 1, 0x11, 0, 0, 0, 0\n"
				    "\t.section .debug_info,\"\",@progbits\n"
				    "\t.long 2f-1f\n"
				    "1:\t.short 4\n"
				    "\t.long 0\n"
				    "\t.byte 8\n"
				    "\t.byte 1\n"
				    "2:\n";

/* DW_TAG_subprogram with its DW_AT_name as DW_FORM_GNU_strp_alt. */
static const char referring_source[] = "\t.text\n"
				       "\t.globl _start\n"
				       "_start: nop\n"
				       ".Lf:\tnop\n"
				       "\tnop\n"
				       ".Lend:\n"
				       "\t.section .debug_abbrev,\"\",@progbits\n"
				       "\t.uleb128 1\n"
				       "\t.uleb128 0x11\n"
				       "\t.byte 1\n"
				       "\t.uleb128 0x11\n"
				       "\t.uleb128 1\n"
				       "\t.uleb128 0x12\n"
				       "\t.uleb128 7\n"
				       "\t.byte 0, 0\n"
				       "\t.uleb128 2\n"
				       "\t.uleb128 0x2e\n"
				       "\t.byte 0\n"
				       "\t.uleb128 3\n"
				       "\t.uleb128 0x1f21\n"
				       "\t.uleb128 0x11\n"
				       "\t.uleb128 1\n"
				       "\t.uleb128 0x12\n"
				       "\t.uleb128 7\n"
				       "\t.byte 0, 0\n"
				       "\t.byte 0\n"
				       "\t.section .debug_info,\"\",@progbits\n"
				       "\t.long 2f-1f\n"
				       "1:\t.short 4\n"
				       "\t.long .debug_abbrev\n"
				       "\t.byte 8\n"
				       "\t.uleb128 1\n"
				       "\t.quad _start\n"
				       "\t.quad .Lend-_start\n"
				       "\t.uleb128 2\n"
				       "\t.long 4\n"
				       "\t.quad .Lf\n"
				       "\t.quad .Lend-.Lf\n"
				       "\t.byte 0\n"
				       "2:\n";

static void expect_common_name(struct symbol_search *search, const char *name)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = open_module("referring.so");
	struct symbol symbol;

	assert_int_equal(symbol_module_set_search(module, search, NULL), 0);
	assert_int_equal(symbol_lookup(module, symbol_address("referring.so", "_start") + 1, &symbol, 1), 1);
	if (name)
		assert_string_equal(symbol.name, name);
	else
		assert_true(symbol.is_offset);
}

/* Strings of several debug files in a common one, found by its name or by its build-id. */
static void test_common_debug_file(void **state)
{
	CLEANUP(symbol_search_freep) struct symbol_search *search = NULL;
	char path[128];
	const char *const folders[] = { path };
	const struct symbol_search_options options = { .folders = folders, .n_folders = 1 };

	(void)state;
	path_of("mirror", path, sizeof path);
	assert_int_equal(symbol_search_new(&options, &search), 0);
	write_file("common.s", common_source);
	write_file("referring.s", referring_source);
	require(run("mkdir common && cc -nostdlib -shared common.s -o common/common.debug "
		    "-Wl,--build-id=0x1122334455667788 && "
		    "cc -nostdlib -shared referring.s -o referring.so -Wl,--build-id=0xaabbccddeeff0011 && "
		    "printf 'common/common.debug\\0\\021\\042\\063\\104\\125\\146\\167\\210' > link && "
		    "objcopy --add-section .gnu_debugaltlink=link referring.so"));
	expect_common_name(search, "named_in_common");
	require(run("mkdir -p mirror/.build-id/11 && mv common/common.debug mirror/.build-id/11/22334455667788.debug"));
	expect_common_name(search, "named_in_common");
	require(run("rm -r mirror"));
	expect_common_name(search, NULL);
}

/* The remaining names without debug information, then without symbols. */
static void test_stripped(void **state)
{
	struct symbol symbols[SYMBOL_MAX_INLINED];
	uint64_t here, outer;
	char name[64];

	(void)state;
	require(run("cc -O2 -g chain.c -o chain && strip -g -o nolines chain && strip -o bare chain"));
	here = symbol_address("chain", "here");
	outer = symbol_address("chain", "outer");
	{
		CLEANUP(symbol_module_freep) struct symbol_module *module = open_module("nolines");

		assert_int_equal(symbol_lookup(module, here, symbols, N_ELEMENTS(symbols)), 1);
		expect(&symbols[0], "outer", NULL, 0);
		assert_true(symbols[0].start == outer);
	}
	{
		CLEANUP(symbol_module_freep) struct symbol_module *module = open_module("bare");

		assert_int_equal(symbol_lookup(module, here, symbols, N_ELEMENTS(symbols)), 1);
		snprintf(name, sizeof name, "bare+0x%lx", (unsigned long)outer);
		expect(&symbols[0], name, NULL, 0);
		assert_true(symbols[0].start == outer);

		/* An address outside of all functions. */
		assert_int_equal(symbol_lookup(module, 0x7fff0001, symbols, N_ELEMENTS(symbols)), 1);
		expect(&symbols[0], "bare+0x7fff0001", NULL, 0);
		assert_true(symbols[0].start == 0);
	}
}

static void test_mini_debug_information(void **state)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	struct symbol symbols[SYMBOL_MAX_INLINED];
	uint64_t here;

	(void)state;
	if (run("xz --version") != 0) {
		print_message("no xz here\n");
		skip();
	}
	require(run("cc -O2 chain.c -o chain && strip -o mini chain && "
		    "objcopy -S --keep-symbol=outer chain mini.debug && xz -kf mini.debug && "
		    "objcopy --add-section .gnu_debugdata=mini.debug.xz mini"));
	here = symbol_address("chain", "here");
	module = open_module("mini");
	assert_int_equal(symbol_lookup(module, here, symbols, N_ELEMENTS(symbols)), 1);
	expect(&symbols[0], "outer", NULL, 0);
}

static void test_cxx(void **state)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	struct symbol symbols[SYMBOL_MAX_INLINED];
	uint64_t here;

	(void)state;
	require(run("c++ -O2 -g cart.cc -o cart"));
	here = symbol_address("cart", "here");
	module = open_module("cart");
	assert_int_equal(symbol_lookup(module, here, symbols, N_ELEMENTS(symbols)), 2);
	expect(&symbols[0], "shop::Cart<int>::price", "cart.cc", 5);
	expect(&symbols[1], "shop::Cart<int>::total", "cart.cc", 8);
	/* The compiler may have appended a suffix such as ".isra.0". */
	assert_ptr_equal(strstr(symbols[1].linkage, "_ZN4shop4CartIiE5totalEi"), symbols[1].linkage);
}

static void test_compiler_parts(void **state)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	struct symbol symbol;
	uint64_t cold;

	(void)state;
	write_file("cold.c", "#include <stdlib.h>\n"
			     "__attribute__((cold, noinline)) static void rare(int x) { if (x > 99) abort(); }\n"
			     "__attribute__((noinline)) int often(int x) { if (__builtin_expect(x > 7, 0)) "
			     "{ rare(x); rare(x + 1); } return x; }\n"
			     "int main(int argc, char **argv) { (void)argv; return often(argc); }\n");
	require(run("cc -O2 -freorder-blocks-and-partition cold.c -o cold"));
	cold = symbol_address("cold", "often.cold");
	module = open_module("cold");
	assert_int_equal(symbol_lookup(module, cold, &symbol, 1), 1);
	assert_string_equal(symbol.name, "often");
	assert_string_equal(symbol.linkage, "often.cold");
	assert_true(symbol.start == symbol_address("cold", "often"));
}

/* Like glibc's: several names for each function, some internal or of old versions. */
static const char alias_source[] =
	"#define ALIAS(to, name, ...) extern __typeof__(to) name __attribute__((alias(#to), ##__VA_ARGS__))\n"
	"__attribute__((noinline)) int __shout(int x) { __asm__ volatile(\"\"); return x + 1; }\n"
	"ALIAS(__shout, shout, weak); ALIAS(__shout, __GI___shout, visibility(\"hidden\"));\n"
	"__attribute__((noinline)) int shape_alias_1(int x) { __asm__ volatile(\"\"); return x + 2; }\n"
	"__asm__(\".symver shape_alias_1, shape@VERS_1, remove\");\n"
	"ALIAS(shape_alias_1, __GI_shape, visibility(\"hidden\")); ALIAS(shape_alias_1, __EI_shape, visibility(\"hidden\"));\n"
	"__attribute__((noinline)) int new_line(int x) { __asm__ volatile(\"\"); return x + 3; }\n"
	"__asm__(\".symver new_line, line@@VERS_2, remove\");\n"
	"ALIAS(new_line, old_line); __asm__(\".symver old_line, aged@VERS_1, remove\");\n"
	"ALIAS(new_line, new_line_alias_1, visibility(\"hidden\"));\n"
	"__attribute__((noinline)) int __GI___alone(int x) { __asm__ volatile(\"\"); return x + 4; }\n";

static void expect_name_at(const char *file, const char *symbol_name, const char *name)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = open_module(file);
	struct symbol symbol;

	assert_int_equal(symbol_lookup(module, symbol_address(file, symbol_name), &symbol, 1), 1);
	assert_string_equal(symbol.name, name);
}

static void test_exported_names(void **state)
{
	(void)state;
	write_file("alias.c", alias_source);
	write_file("alias.map", "VERS_1 { global: *; };\nVERS_2 { } VERS_1;\n");
	require(run("cc -O2 -shared -fPIC -Wl,--version-script=alias.map alias.c -o alias.so"));
	expect_name_at("alias.so", "__GI___shout", "shout");
	expect_name_at("alias.so", "__GI_shape", "shape");
	expect_name_at("alias.so", "new_line_alias_1", "line");
	expect_name_at("alias.so", "__GI___alone", "__alone");
}

/* Its cold part is called by a name that gave way to another one of the same address. */
static void test_part_of_a_function_of_several_names(void **state)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	struct symbol symbol;

	(void)state;
	write_file("coldalias.c", "#include <stdlib.h>\n"
				  "__attribute__((cold, noinline)) static void rare(int x) { if (x > 99) abort(); }\n"
				  "__attribute__((noinline)) int __often(int x) { if (__builtin_expect(x > 7, 0)) "
				  "{ rare(x); rare(x + 1); } return x; }\n"
				  "extern int often(int x) __attribute__((weak, alias(\"__often\")));\n"
				  "int main(int argc, char **argv) { (void)argv; return often(argc); }\n");
	require(run("cc -O2 -freorder-blocks-and-partition coldalias.c -o coldalias"));
	module = open_module("coldalias");
	assert_int_equal(symbol_lookup(module, symbol_address("coldalias", "__often.cold"), &symbol, 1), 1);
	assert_string_equal(symbol.name, "often");
	assert_string_equal(symbol.linkage, "__often.cold");
	assert_true(symbol.start == symbol_address("coldalias", "often"));
}

/* A part without a symbol is found by its frame, and by its jump back. */
static void test_part_without_symbol(void **state)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	struct symbol symbol;
	uint64_t part;

	(void)state;
	write_file(
		"part.c",
		"#include <stdio.h>\n"
		"__attribute__((cold, noipa)) static int rare(int *x) { return printf(\"%d\", *x); }\n"
		"__attribute__((noinline)) int often(int *x) { int y = *x;\n"
		"if (__builtin_expect(y > 7, 0)) { y += rare(x); y *= rare(x) + *x; }\n"
		"for (int i = 0; i < y; i++) { rare(x); if (__builtin_expect(*x == i, 0)) y += rare(x); } return y; }\n");
	require(run("cc -O2 -shared -fPIC -freorder-blocks-and-partition part.c -o part.full"));
	part = symbol_address("part.full", "often.cold");
	require(run("strip -o part.so part.full"));
	module = open_module("part.so");
	assert_int_equal(symbol_lookup(module, part, &symbol, 1), 1);
#ifdef __x86_64__
	assert_string_equal(symbol.name, "often");
	assert_true(symbol.start == symbol_address("part.full", "often"));
#else
	assert_true(symbol.is_offset);
#endif
	/* A separate function is not a part of another. */
	assert_int_equal(symbol_lookup(module, symbol_address("part.full", "rare"), &symbol, 1), 1);
	assert_true(symbol.is_offset);
}

/* A symbol's size is its end: what follows is not in it. */
static void test_size_is_respected(void **state)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	struct symbol symbol;
	uint64_t small;

	(void)state;
	write_file("gap.s", ".text\n.globl small\n.type small, @function\nsmall: nop\n.size small, 1\n"
			    ".zero 64\n.globl open_end\n.type open_end, @function\nopen_end: nop\n.zero 64\n"
			    ".section .note.GNU-stack,\"\",@progbits\n");
	require(run("cc -nostdlib -shared gap.s -o gap.so"));
	small = symbol_address("gap.so", "small");
	module = open_module("gap.so");
	assert_int_equal(symbol_lookup(module, small, &symbol, 1), 1);
	assert_string_equal(symbol.name, "small");
	assert_int_equal(symbol_lookup(module, small + 20, &symbol, 1), 1);
	assert_non_null(strstr(symbol.name, "gap.so+0x"));
	assert_int_equal(symbol_lookup(module, small + 65 + 20, &symbol, 1), 1);
	assert_string_equal(symbol.name, "open_end");
}

static void test_open_errors(void **state)
{
	struct symbol_module *module = (void *)1;

	(void)state;
	assert_int_equal(symbol_module_open("/nonexistent/file", -1, &module), -ENOENT);
	assert_int_equal(symbol_module_open("/dev/null", -1, &module), -ENOEXEC);
	assert_int_equal(symbol_module_open_memory("short", "\177ELF", 4, &module), -ENOEXEC);
	assert_ptr_equal(module, (void *)1);
}

static void test_vdso(void **state)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	size_t n_bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct symbol symbol;
	uint64_t value, size;

	(void)state;
	if (!image) {
		print_message("no vdso in this process\n");
		skip();
	}
	/* Section headers lie at the end: take as many pages as they need. */
	n_bytes = (*(const uint64_t *)((const char *)image + 0x28) + 64 * 64 + n_bytes) & ~(n_bytes - 1);
	assert_int_equal(elf_file_open_memory(image, n_bytes, &elf), 0);
	assert_int_equal(elf_file_symbol(elf, "__vdso_clock_gettime", &value, &size), 0);
	assert_int_equal(symbol_module_open_memory("[vdso]", image, n_bytes, &module), 0);
	assert_int_equal(symbol_lookup(module, value + 1, &symbol, 1), 1);
	assert_non_null(strstr(symbol.name, "clock_gettime"));
	assert_true(symbol.start == value);
}

static void expect_readable(const char *linkage, const char *expected)
{
	CLEANUP(freep) char *name = NULL;

	assert_int_equal(name_readable(linkage, &name), 0);
	assert_string_equal(name, expected);
}

static void test_readable_names(void **state)
{
	(void)state;
	expect_readable("main", "main");
	expect_readable("_Z3fooIiEvT_", "foo<int>");
	expect_readable("_ZN3fooIiE3barEv", "foo<int>::bar");
	expect_readable("_ZZ3fooiENKUliE_clEi", "foo(int)::{lambda(int)#1}::operator()");
	expect_readable("_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo");
	expect_readable("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt");
	expect_readable("_RNvCs1234_7mycrate3foo", "mycrate::foo");
	expect_readable("_ZN3foo", "_ZN3foo");
	expect_readable("list_sort_impl.constprop.0", "list_sort_impl");
	expect_readable("f.part.1.isra.0", "f");
	expect_readable("f.coldness", "f.coldness");
	expect_readable("_seterr_reply@GLIBC_2.2.5", "_seterr_reply");
	expect_readable("__GI_strtod_l_internal", "strtod_l_internal");
	expect_readable("__GI___libc_write", "__libc_write");
	expect_readable("__GI_", "__GI_");
	expect_readable(".cold", ".cold");
}

static void test_long_names_lose_template_arguments(void **state)
{
	(void)state;
	expect_readable("_ZN3abcISt6vectorISt3mapIiSt6vectorIiSaIiEESt4lessIiESaISt4pairIKiS3_"
			"EEESaISA_EEE3runEv",
			"abc<...>::run");
	expect_readable("_ZN3abclsISt6vectorISt3mapIiSt6vectorIiSaIiEESt4lessIiESaISt4pairIKiS3_"
			"EEESaISA_EEEEvT_",
			"abc::operator<< <...>");
}

static void test_names_are_kept_once(void **state)
{
	CLEANUP(names_freep) struct names *names = NULL;
	const char *first[300], *again;
	char name[32];

	(void)state;
	assert_int_equal(names_new(&names), 0);
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof name, "_Z4f%03dv", i);
		assert_int_equal(names_readable(names, name, &first[i]), 0);
	}
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof name, "_Z4f%03dv", i);
		assert_int_equal(names_readable(names, name, &again), 0);
		assert_ptr_equal(again, first[i]);
		snprintf(name, sizeof name, "f%03d", i);
		assert_string_equal(again, name);
	}
}

static void test_glue(void **state)
{
	static const char *const glue[] = {
		"_PyEval_EvalFrameDefault",
		"cfunction_vectorcall_FASTCALL",
		"_PyObject_MakeTpCall",
		"slot_tp_call",
		"_TAIL_CALL_BINARY_OP",
		"pymain_run_python",
		"gen_iternext",
		"slot __call__",
		"type_call",
		"PyObject_CallMethodObjArgs",
		"wrap_init",
		"method_vectorcall_O",
		"thread_run",
	};
	static const char *const visible[] = {
		"builtin_sorted",
		"sorted",
		"PyObject_Calloc",
		"_PyObject_Calloc",
		"PyObject_CallFinalizer",
		"gc_collect_main",
		"list_sort_impl",
		"wrap_strftime",
		"PyImport_ImportModuleLevelObject",
		"object_richcompare",
		"_PyType_Lookup",
		"partial_call",
		"builtin_exec",
		"generator.send",
		"",
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(glue); i++)
		assert_true(symbol_is_internal(glue[i]));
	for (size_t i = 0; i < N_ELEMENTS(visible); i++)
		assert_false(symbol_is_internal(visible[i]));
}

/* What only passes calls on is internal; what may contain the bound function is not. */
static void test_pybind11(void **state)
{
	static const char implementation[] =
		"pybind11::cpp_function::initialize<...>(double (*&)(int), double (*)(int))::"
		"{lambda(pybind11::detail::function_call&)#3}";
	static const char *const inlined[] = {
		"pybind11::detail::argument_loader<int>::call<double, pybind11::detail::void_type, double (*&)(int)>",
		"pybind11::detail::argument_loader<...>::call_impl<...>",
		"call_impl<double, f()::<lambda(int)>&, 0, pybind11::detail::void_type>",
	};
	static const char *const visible[] = {
		"pybind11::detail::argument_loader<Cart*, int>::argument_loader",
		"pybind11::cpp_function::dispatcher_of",
		"pybind11::detail::get_type_info",
		"call<int>",
		"operator()",
		"price",
		"",
	};
	char name[256];

	(void)state;
	assert_true(symbol_is_pybind11("pybind11::cpp_function::dispatcher", false));
	for (size_t i = 0; i < N_ELEMENTS(inlined); i++) {
		assert_true(symbol_is_pybind11(inlined[i], true));
		assert_false(symbol_is_pybind11(inlined[i], false));
	}
	for (size_t i = 0; i < N_ELEMENTS(visible); i++) {
		assert_false(symbol_is_pybind11(visible[i], true));
		assert_false(symbol_is_pybind11(visible[i], false));
	}
	snprintf(name, sizeof name, "%s::operator()", implementation);
	assert_true(symbol_is_pybind11(name, true));
	assert_false(symbol_is_pybind11(name, false));
	snprintf(name, sizeof name, "%s::_FUN", implementation);
	assert_false(symbol_is_pybind11(name, true));
	assert_false(symbol_is_pybind11(name, false));
}

/* The interpreter's names are nothing special in other people's programs. */
static void test_no_glue_elsewhere(void **state)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	struct symbol symbol;

	(void)state;
	require(run("cc -O2 chain.c -o chain"));
	module = open_module("chain");
	assert_int_equal(symbol_lookup(module, symbol_address("chain", "main"), &symbol, 1), 1);
	assert_string_equal(symbol.name, "main");
	assert_int_equal(symbol.role, SYMBOL_PLAIN);
}

/* "address T name" of one function, as the file says. */
static uint64_t find_in_kallsyms(const char *wanted)
{
	char line[512], name[256], type;
	unsigned long address;
	uint64_t found = 0;
	FILE *file = fopen("/proc/kallsyms", "r");

	if (!file)
		return 0;
	while (!found && fgets(line, sizeof line, file))
		if (sscanf(line, "%lx %c %255s", &address, &type, name) == 3 && strcmp(name, wanted) == 0)
			found = address;
	fclose(file);
	return found;
}

/* Each line of the file is found if its address is unique, of the kernel or of a BPF program after it. */
static void check_all_of_kallsyms(const struct kernel_symbols *symbols)
{
	struct line {
		unsigned long address;
		char type, name[256];
	} lines[3] = { 0 }; /* a line and its neighbours */
	FILE *file = fopen("/proc/kallsyms", "re");
	unsigned n_found = 0, n_other = 0;
	char text[512];

	assert_non_null(file);
	for (bool more = true; more;) {
		const struct line *line = &lines[1];

		memmove(&lines[0], &lines[1], 2 * sizeof *lines);
		lines[2] = (struct line){ 0 };
		more = fgets(text, sizeof text, file) != NULL;
		if (more && sscanf(text, "%lx %c %255s", &lines[2].address, &lines[2].type, lines[2].name) != 3)
			continue;
		if (!line->address || !strchr("tTwW", line->type) || line->address == lines[0].address ||
		    line->address == lines[2].address)
			continue;
		/* Programs come and go while this is read. */
		if (strcmp(kernel_symbol_lookup(symbols, line->address, NULL) ?: "", line->name) == 0)
			n_found++;
		else
			n_other++;
	}
	fclose(file);
	assert_true(n_found > 1000);
	assert_true(n_other < n_found / 1000);
}

static void test_kernel(void **state)
{
	CLEANUP(kernel_symbols_freep) struct kernel_symbols *symbols = NULL;
	const char *owner = "unset";
	uint64_t address = find_in_kallsyms("vfs_read");
	int r = kernel_symbols_open(NULL, &symbols);

	(void)state;
	if (address == 0) {
		assert_true(r < 0);
		print_message("kernel addresses are hidden from this user\n");
		skip();
	}
	assert_int_equal(r, 0);
	assert_string_equal(kernel_symbol_lookup(symbols, address, &owner), "vfs_read");
	assert_null(owner);
	assert_string_equal(kernel_symbol_lookup(symbols, address + 9, NULL), "vfs_read");
	assert_null(kernel_symbol_lookup(symbols, 0x1000, NULL));
	check_all_of_kallsyms(symbols);
}

/* ---- A file that is truncated while it is read ---- */

static void copy_self(char *path)
{
	char line[512];

	strcpy(path, "/tmp/test_symbolize.XXXXXX");
	close(mkstemp(path));
	snprintf(line, sizeof line, "cat /proc/%d/exe > %s", (int)getpid(), path);
	assert_int_equal(system(line), 0);
}

/* @n_before: look-ups before it is. */
static void truncate_after(unsigned n_before, off_t n_left)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	struct symbol_sources sources;
	struct symbol symbol;
	char path[32];

	copy_self(path);
	assert_int_equal(symbol_module_open(path, -1, &module), 0);
	for (unsigned i = 0; i < n_before; i++)
		assert_true(symbol_lookup(module, 0x4000 + i * 64, &symbol, 1) >= 1);
	symbol_module_trim(module);
	assert_int_equal(truncate(path, n_left), 0);
	for (unsigned i = 0; i < 100; i++) {
		assert_true(symbol_lookup(module, 0x4000 + i * 64, &symbol, 1) >= 1);
		assert_true(strlen(symbol.name) > 0);
	}
	symbol_module_sources(module, &sources);
	assert_int_equal(sources.limit, SYMBOL_LIMIT_CUT);
	assert_true(sources.n_limited > 0);
	assert_true(symbol.is_offset);
	symbol_module_trim(module);
	unlink(path);
}

static void test_truncated_files(void **state)
{
	(void)state;
	truncate_after(0, 0);
	truncate_after(0, 5000);
	truncate_after(1, 0);
	truncate_after(50, 5000);
	truncate_after(50, 40000);
}

/* Its separate debug file. */
static void test_truncated_debug_file(void **state)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	CLEANUP(elf_file_freep) struct elf_file *own = NULL;
	char path[32], line[512], debug[64];
	struct symbol_sources sources;
	struct symbol symbol;
	uint64_t text, n_text;
	int fd;

	(void)state;
	copy_self(path);
	snprintf(debug, sizeof debug, "%s.debug", path);
	snprintf(line, sizeof line,
		 "objcopy --only-keep-debug %s %s && objcopy --strip-all --remove-section=.note.gnu.build-id "
		 "--add-gnu-debuglink=%s %s 2>/dev/null",
		 path, debug, debug, path);
	assert_int_equal(system(line), 0);
	assert_int_equal(symbol_module_open(path, -1, &module), 0);
	assert_true(symbol_lookup(module, 0x4000, &symbol, 1) >= 1);
	symbol_module_sources(module, &sources);
	assert_non_null(sources.debug_path);
	symbol_module_trim(module);
	assert_int_equal(truncate(debug, 0), 0);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_file_open(fd, &own), 0);
	assert_int_equal(elf_file_section(own, ".text", &text, &n_text), 0);
	for (unsigned i = 0; i < 100; i++)
		assert_true(symbol_lookup(module, text + i * (n_text / 100), &symbol, 1) >= 1);
	symbol_module_sources(module, &sources);
	assert_int_equal(sources.limit, SYMBOL_LIMIT_CUT);
	unlink(path);
	unlink(debug);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truncated_files),
		cmocka_unit_test(test_truncated_debug_file),
		cmocka_unit_test(test_inlined_chain),
		cmocka_unit_test(test_inlined_chain_clang),
		cmocka_unit_test(test_separate_debug_file),
		cmocka_unit_test(test_common_debug_file),
		cmocka_unit_test(test_stripped),
		cmocka_unit_test(test_mini_debug_information),
		cmocka_unit_test(test_cxx),
		cmocka_unit_test(test_compiler_parts),
		cmocka_unit_test(test_exported_names),
		cmocka_unit_test(test_part_without_symbol),
		cmocka_unit_test(test_part_of_a_function_of_several_names),
		cmocka_unit_test(test_size_is_respected),
		cmocka_unit_test(test_open_errors),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_readable_names),
		cmocka_unit_test(test_long_names_lose_template_arguments),
		cmocka_unit_test(test_names_are_kept_once),
		cmocka_unit_test(test_glue),
		cmocka_unit_test(test_pybind11),
		cmocka_unit_test(test_no_glue_elsewhere),
		cmocka_unit_test(test_kernel),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
