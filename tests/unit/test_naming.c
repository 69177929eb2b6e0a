/* test_naming.c - functions that are told from each other by their keys alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/pipeline/naming.c" /* the key is nobody else's business */

/* A file that is loaded again and again, under other numbers, beside one whose function is called almost the same. */
static void names_and_modules_do_not_make_up_for_each_other(void **state)
{
	enum { N_NAMES = 16, N_MODULES = 512, N_LINES = 4 };
	CLEANUP(id_map_done) struct id_map seen = { 0 };
	char name[] = "a_work";

	(void)state;
	for (int n = 0; n < N_NAMES; n++) {
		name[0] = (char)('a' + n);
		for (int64_t module = 0; module < N_MODULES; module++) {
			for (int line = 0; line < N_LINES; line++) {
				const struct function_row row = {
					.kind = FRAME_NATIVE, .module = module, .name = name, .first_line = line,
				};
				uint64_t key = hash_function(&row);

				assert_null(id_map_find(&seen, key));
				assert_int_equal(id_map_add(&seen, key, 1), 0);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_modules_do_not_make_up_for_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
