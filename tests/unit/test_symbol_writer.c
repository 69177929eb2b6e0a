/* SPDX-License-Identifier: MIT */
/* test_symbol_writer.c - keys that distinguish functions; kernel locations, named now and after a reboot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/utsname.h>

#include <cmocka.h>

#include "src/pipeline/symbol_writer.c" /* the key is private */
#include "src/pipeline/pipeline.h"
#include "tests/unit/made_kallsyms.h"
#include "tests/unit/store_fixture.h"

static uint32_t *id_of(struct function_set *set, const struct function_row *row)
{
	uint32_t *id = NULL;

	assert_int_equal(find_function(set, row, &id), 0);
	return id;
}

/* A file that is loaded repeatedly, with other ids, beside one whose function has almost the same name. */
static void functions_are_told_apart(void **state)
{
	enum { N_NAMES = 16, N_MODULES = 512, N_LINES = 4 };
	CLEANUP(function_set_done) struct function_set set = { 0 };
	uint32_t n = 0;
	char name[] = "a_work";

	(void)state;
	for (int i = 0; i < 2 * N_NAMES * N_MODULES * N_LINES; i++) {
		uint32_t expected = i < N_NAMES * N_MODULES * N_LINES ? 0 : n % (N_NAMES * N_MODULES * N_LINES) + 1,
			 *id;

		name[0] = (char)('a' + i % N_NAMES);
		id = id_of(&set, &(struct function_row){ .kind = FRAME_NATIVE,
							 .name = name,
							 .module = i / N_NAMES % N_MODULES,
							 .first_line = i / N_NAMES / N_MODULES % N_LINES });
		assert_int_equal(*id, expected);
		n++;
		if (expected == 0)
			*id = n;
	}
}

/* As in a recording that drops its oldest samples. */
static void functions_are_forgotten(void **state)
{
	CLEANUP(function_set_done) struct function_set set = { 0 };
	const struct function_row rows[] = {
		{ .kind = FRAME_PYTHON, .name = "load", .file = "data.py", .first_line = 3 },
		{ .kind = FRAME_PYTHON, .name = "load", .file = "model.py", .first_line = 3 },
		{ .kind = FRAME_NATIVE, .name = "memcpy", .module = 2 },
	};
	uint8_t is_kept[] = { 0, 0, 1, 1 };

	(void)state;
	for (uint32_t i = 0; i < N_ELEMENTS(rows); i++)
		*id_of(&set, &rows[i]) = i + 1;
	assert_int_equal(keep_only(&set, &(struct kept_functions){ .is_kept = is_kept, .n = 3 }), 0);
	assert_int_equal(set.keys.n, 2);
	assert_int_equal(*id_of(&set, &rows[0]), 0);
	assert_int_equal(*id_of(&set, &rows[1]), 2);
	assert_int_equal(*id_of(&set, &rows[2]), 3);
}

/* ---- Kernel frames ---- */

static int open_nothing(void *data, int64_t module_id, struct symbol_module **ret)
{
	(void)data;
	(void)module_id;
	(void)ret;
	return -ENOENT;
}

/* A recording of this host and kernel, with frames at these addresses. */
static void record_kernel(const char *path, const char *kallsyms, const uint64_t *ips, size_t n, bool without_files)
{
	const struct symbol_finder finder = { .open = open_nothing, .kallsyms = kallsyms };
	struct symbol_writer *names = NULL;
	struct store *store = NULL;
	struct utsname here;

	uname(&here);
	assert_int_equal(store_create(path, NULL, &store), 0);
	assert_int_equal(store_put_run(store, &(struct run_row){ .started_ns = 1000000000,
								 .command = "made",
								 .mode = "cpu",
								 .stack_source = "wakeup",
								 .host = here.nodename,
								 .kernel = here.release,
								 .probing = "0",
								 .pid = 1,
								 .hz = 99,
								 .kernel_frames = true,
								 .cpus = 1 }),
			 0);
	assert_int_equal(symbol_writer_new(store, &finder, &names), 0);
	if (without_files)
		symbol_writer_without_files(names);
	assert_int_equal(store_begin(store), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(
			symbol_writer_put_frames(
				names,
				&(struct new_frame){ .id = (uint32_t)i + 1, .kind = FRAME_KERNEL, .address = ips[i] },
				1),
			0);
	while (symbol_writer_is_waiting(names))
		assert_int_equal(symbol_writer_look_up(names, 64), 0);
	assert_int_equal(store_commit(store), 0);
	symbol_writer_free(names);
	finish(store);
}

static enum resymbolize_kernel resymbolize_with(const char *path, const char *kallsyms)
{
	const struct resymbolize_options options = { .kallsyms = kallsyms };
	struct resymbolize_result result;
	enum resymbolize_kernel kernel;
	struct store *store = NULL;

	assert_int_equal(store_open(path, &store), 0);
	assert_int_equal(pipeline_resymbolize(store, &options, &result), 0);
	kernel = result.kernel;
	resymbolize_result_done(&result);
	assert_int_equal(store_checkpoint(store), 0);
	store_close(store);
	return kernel;
}

static const char places_sql[] =
	"SELECT frame.frame, address, name FROM frame LEFT JOIN function USING (function) ORDER BY 1";
static const char absolute_sql[] = "SELECT count(*) FROM frame WHERE address < 0";
static const char names_sql[] =
	"SELECT group_concat(name, ' ') FROM (SELECT name FROM frame JOIN function USING (function)"
	" ORDER BY frame)";
static const char forget_sql[] = "UPDATE frame SET function = NULL; DELETE FROM function;";
static const char all_names[] = "do_made_syscall net_send disk_read bpf_prog_fedcba9876543210_second";

static void fill_ips(const struct made_boot *boot, uint64_t ips[5])
{
	ips[0] = boot->text + SYSCALL_OFFSET + 9;
	ips[1] = boot->net + NET_OFFSET + 1;
	ips[2] = boot->disk + DISK_OFFSET;
	ips[3] = boot->bpf + (boot == &first_boot ? 0x400 : 0x900) + 4;
	ips[4] = 0xffff888012345678; /* nothing that is listed */
}

static void kernel_frames_of_two_boots_are_the_same_rows(void **state)
{
	const struct folder *folder = *state;
	const struct made_boot *const boots[] = { &first_boot, &second_boot };
	char rows[2][4096];
	uint64_t ips[5];

	for (size_t i = 0; i < N_ELEMENTS(boots); i++) {
		const char *kallsyms = with(folder->path, "/kallsyms");

		unlink(folder->file);
		make_kallsyms(kallsyms, boots[i]);
		fill_ips(boots[i], ips);
		record_kernel(folder->file, kallsyms, ips, N_ELEMENTS(ips), false);
		assert_string_equal(stock_shell(folder->file, absolute_sql), "0");
		assert_string_equal(stock_shell(folder->file, names_sql), all_names);
		assert_string_equal(stock_shell(folder->file, "SELECT count(*) FROM frame WHERE address IS NULL"), "1");
		snprintf(rows[i], sizeof rows[i], "%s", stock_shell(folder->file, places_sql));
	}
	assert_string_equal(rows[0], rows[1]);
}

/* Recorded without names at one boot, or they were forgotten: named at another one. */
static void kernel_names_after_another_boot(void **state)
{
	const struct folder *folder = *state;
	const char *kallsyms = with(folder->path, "/kallsyms");
	char places[4096];
	uint64_t ips[5];

	for (int without = 0; without < 2; without++) {
		unlink(folder->file);
		make_kallsyms(kallsyms, &first_boot);
		fill_ips(&first_boot, ips);
		record_kernel(folder->file, kallsyms, ips, 4, without);
		if (!without)
			stock_shell(folder->file, forget_sql);
		assert_string_equal(stock_shell(folder->file, names_sql), "");
		snprintf(places, sizeof places, "%s", stock_shell(folder->file, "SELECT frame, address FROM frame"));
		make_kallsyms(kallsyms, &second_boot);
		assert_int_equal(resymbolize_with(folder->file, kallsyms), RESYMBOLIZE_KERNEL_FINE);
		assert_string_equal(stock_shell(folder->file, names_sql), all_names);
		assert_string_equal(stock_shell(folder->file, "SELECT frame, address FROM frame"), places);
	}
}

static void kernel_that_hides_its_addresses(void **state)
{
	const struct folder *folder = *state;
	const char *kallsyms = with(folder->path, "/kallsyms");
	uint64_t ips[5];

	make_kallsyms(kallsyms, &hidden_boot);
	fill_ips(&first_boot, ips);
	record_kernel(folder->file, kallsyms, ips, N_ELEMENTS(ips), false);
	assert_string_equal(stock_shell(folder->file, "SELECT count(*), count(address), count(function) FROM frame"),
			    "5|0|0");
}

/* They are from an earlier boot, by their run, so they stay unresolved; addresses of this boot are resolved. */
static void absolute_addresses_of_recordings_of_before(void **state)
{
	const struct folder *folder = *state;
	const char *kallsyms = with(folder->path, "/kallsyms");
	char sql[200];
	uint64_t ips[5];

	make_kallsyms(kallsyms, &first_boot);
	fill_ips(&first_boot, ips);
	record_kernel(folder->file, kallsyms, ips, 1, true);
	snprintf(sql, sizeof sql, "UPDATE frame SET address = %lld", (long long)ips[1]);
	stock_shell(folder->file, sql);
	assert_int_equal(resymbolize_with(folder->file, kallsyms), RESYMBOLIZE_KERNEL_OTHER);
	assert_string_equal(stock_shell(folder->file, names_sql), "");
	stock_shell(folder->file, "UPDATE run SET started = strftime('%s', 'now') + 1");
	assert_int_equal(resymbolize_with(folder->file, kallsyms), RESYMBOLIZE_KERNEL_FINE);
	assert_string_equal(stock_shell(folder->file, names_sql), "net_send");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_told_apart),
		cmocka_unit_test(functions_are_forgotten),
		FOLDER_TEST(kernel_frames_of_two_boots_are_the_same_rows),
		FOLDER_TEST(kernel_names_after_another_boot),
		FOLDER_TEST(kernel_that_hides_its_addresses),
		FOLDER_TEST(absolute_addresses_of_recordings_of_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
