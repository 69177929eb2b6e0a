/* SPDX-License-Identifier: MIT */
/* Native stacks of real programs, frame by frame the same as libdwfl's. */
#include "native_target.h"

#include <glob.h>

#include "base/proc.h"
#include "dwfl_oracle.h"

enum {
	N_ROUNDS = 120,   /* of stopping each thread of a program */
	N_STEPS = 20000,  /* of single instructions */
	MAX_EXAMPLES = 3, /* printed of a program's differences */
	SET_UP_NS = 20000000,
	PATIENCE_MS = 60000,
};

/* Counts for one program. */
struct tally {
	size_t n_samples, n_frames, n_equal;
	size_t n_samples_equal;
	size_t n_pc, n_cfa, n_longer, n_shorter; /* how the first difference in a stack looks */
	size_t by_end[STACK_N_ENDS];
	size_t n_stubs; /* leaves in a PLT */
	size_t n_signals;
	size_t n_examples;
};

static void print_place(struct view *view, const struct native_frame *frame)
{
	struct module *module = NULL;
	uint64_t address;

	if (address_space_resolve(view->space, native_frame_lookup(frame), &module, &address) < 0)
		print_message(" %#llx", (unsigned long long)frame->pc);
	else
		print_message(" %s+%#llx", module ? module_name(module) : "anonymous", (unsigned long long)address);
}

static void print_difference(struct view *view, const struct oracle *oracle, size_t at)
{
	const struct native_stack *stack = &view->stack;

	print_message("    frame %zu, ours %zu (%s), libdwfl's %zu; the rule that differs is at", at, stack->n_frames,
		      stack_end_name(stack->end), oracle->n_frames);
	print_place(view, &stack->frames[at ? at - 1 : 0]);
	if (at < stack->n_frames)
		print_message(", ours went to %#llx", (unsigned long long)stack->frames[at].pc);
	if (at < oracle->n_frames)
		print_message(", libdwfl to %#llx", (unsigned long long)oracle->frames[at].pc);
	print_message("\n");
}

static void print_end(struct view *view)
{
	const struct native_stack *stack = &view->stack;

	print_message("    %s after frame %zu,", stack_end_name(stack->end), stack->n_frames);
	print_place(view, &stack->frames[stack->n_frames - 1]);
	print_message("\n");
}

static bool is_in_plt(struct view *view, uint64_t pc)
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got" };
	uint64_t own, address, n_bytes;
	struct module *module;
	struct elf_file *elf;

	if (address_space_resolve(view->space, pc, &module, &own) < 0 || !module || module_elf(module, &elf) < 0)
		return false;
	for (size_t i = 0; i < N_ELEMENTS(sections); i++)
		if (elf_file_section(elf, sections[i], &address, &n_bytes) == 0 && own - address < n_bytes)
			return true;
	return false;
}

static bool frame_equal(const struct native_frame *ours, const struct oracle_frame *theirs)
{
	return ours->pc == theirs->pc && ours->sp == theirs->sp && ours->is_return_address == !theirs->is_activation;
}

static void compare(struct view *view, const struct oracle *oracle, struct tally *tally)
{
	const struct native_stack *stack = &view->stack;
	size_t shorter = MIN(stack->n_frames, oracle->n_frames), at = 0;

	while (at < shorter && frame_equal(&stack->frames[at], &oracle->frames[at]))
		at++;
	tally->n_samples++;
	tally->n_frames += MAX(stack->n_frames, oracle->n_frames);
	tally->n_equal += at;
	tally->by_end[stack->end]++;
	if (stack->end != STACK_COMPLETE && tally->n_examples++ < MAX_EXAMPLES)
		print_end(view);
	tally->n_stubs += is_in_plt(view, stack->frames[0].pc);
	for (size_t i = 0; i < stack->n_frames; i++)
		tally->n_signals += stack->frames[i].is_signal;
	if (at == MAX(stack->n_frames, oracle->n_frames)) {
		tally->n_samples_equal++;
		return;
	}
	tally->n_longer += at == oracle->n_frames;
	tally->n_shorter += at == stack->n_frames;
	if (at < shorter && stack->frames[at].pc != oracle->frames[at].pc)
		tally->n_pc++;
	else if (at < shorter)
		tally->n_cfa++;
	if (tally->n_examples++ < MAX_EXAMPLES)
		print_difference(view, oracle, at);
}

/* The thread is stopped. */
static void look(struct view *view, struct oracle *oracle, pid_t tid, struct tally *tally)
{
	struct sample sample = view_sample_all(view, tid);

	view_unwind(view, &sample, view->remote);
	oracle_unwind(oracle, &sample, view->remote);
	compare(view, oracle, tally);
}

static void assert_agreement(const char *name, const struct tally *tally)
{
	double share = (double)tally->n_equal / (double)tally->n_frames;

	print_message("  %s: %zu stacks, %zu frames, %.4f %% equal, %zu stacks wholly; first "
		      "differences: pc %zu, cfa %zu, ours longer %zu, ours shorter %zu\n",
		      name, tally->n_samples, tally->n_frames, 100 * share, tally->n_samples_equal, tally->n_pc,
		      tally->n_cfa, tally->n_longer, tally->n_shorter);
	for (unsigned i = 0; i < STACK_N_ENDS; i++)
		if (tally->by_end[i] > 0)
			print_message("    %s: %zu\n", stack_end_name(i), tally->by_end[i]);
	assert_true(tally->n_frames > 0);
	if (share < 0.999)
		fail_msg("%s: only %.4f %% of the frames are libdwfl's", name, 100 * share);
}

static uint64_t cpu_ns_of(pid_t pid, pid_t tid)
{
	CLEANUP(freep) char *text = NULL;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	assert_int_equal(read_file(path, 128, &text, NULL), 0);
	return strtoull(text, NULL, 10);
}

static bool is_asleep(pid_t pid, pid_t tid)
{
	struct proc_stat stat;

	assert_int_equal(proc_stat_read(pid, tid, &stat), 0);
	return stat.state == 'S' || stat.state == 'D';
}

/* A thread has computed for a while from now on, or sleeps. */
static void await_work(pid_t pid, pid_t tid)
{
	uint64_t began_ns = cpu_ns_of(pid, tid);

	for (unsigned i = 0; i < PATIENCE_MS; i++) {
		if (cpu_ns_of(pid, tid) >= began_ns + SET_UP_NS || is_asleep(pid, tid))
			return;
		sleep_us(1000);
	}
	fail_msg("thread %d does not run", (int)tid);
}

/*
 * All threads are there and at work. On a busy machine a new one may not have run yet: it would be stopped at its first
 * instruction again and again. Returns their number.
 */
static size_t await_set_up(pid_t pid, size_t least_threads, pid_t *tids)
{
	size_t n = 0;

	sleep_us(300000);
	for (unsigned i = 0; i < PATIENCE_MS && (n = target_threads(pid, tids)) < least_threads; i++)
		sleep_us(1000);
	assert_true(n >= least_threads);
	for (size_t i = 0; i < n; i++)
		await_work(pid, tids[i]);
	return n;
}

/* Stop every thread N_ROUNDS times, at moments independent of the program. */
static void check_program(const char *name, const char *const *argv, size_t least_threads)
{
	struct target target = target_exec(argv);
	pid_t tids[MAX_TARGET_THREADS];
	struct oracle oracle = { .want_sp = true };
	struct tally tally = { 0 };
	struct view view;
	size_t n = await_set_up(target.pid, least_threads, tids);

	view_open(&view, target.pid);
	assert_int_equal(oracle_open(&oracle, target.pid), 0);
	for (size_t i = 0; i < n; i++)
		thread_seize(tids[i]);
	for (unsigned round = 0; round < N_ROUNDS; round++) {
		sleep_us(500 + round * 7919 % 1500);
		for (size_t i = 0; i < n; i++) {
			int signal = thread_stop(tids[i]);

			look(&view, &oracle, tids[i], &tally);
			thread_go(tids[i], signal);
		}
	}
	oracle_close(&oracle);
	view_close(&view);
	target_end(&target);
	assert_agreement(name, &tally);
	/* A sample in a thread's very last or first instructions may be otherwise. */
	assert_true(tally.by_end[STACK_COMPLETE] * 1000 >= tally.n_samples * 995);
}

/* Instruction by instruction, through prologues, epilogues, stubs and trampolines. */
static void check_steps(const char *name, struct target *target, unsigned n_steps, struct tally *tally)
{
	struct oracle oracle = { .want_sp = true };
	struct view view;

	view_open(&view, target->pid);
	assert_int_equal(oracle_open(&oracle, target->pid), 0);
	thread_seize(target->pid);
	thread_stop(target->pid);
	if (target->page)
		poke(&target->page->command, 1);
	for (unsigned i = 0; i < n_steps; i++) {
		look(&view, &oracle, target->pid, tally);
		thread_step(target->pid);
	}
	oracle_close(&oracle);
	view_close(&view);
	assert_agreement(name, tally);
}

/* ---- Programs ---- */

static const char *source_path(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof path, "%s/fixtures/%s", getenv("PROBING_SOURCE_ROOT"), name);
	return path;
}

static const char *native_only_path(void)
{
	static char path[4096];

	snprintf(path, sizeof path, "%s/fixtures/native_only", getenv("PROBING_BUILD_ROOT"));
	return path;
}

static void need(const char *program)
{
	if (access(program, X_OK) == 0)
		return;
	print_message("skipped: %s is not there\n", program);
	skip();
}

static void mixed_python(void **state)
{
	static const char python[] = "/usr/bin/python3";

	(void)state;
	need(python);
	check_program("Debian's python, demo.py", (const char *[]){ python, source_path("demo.py"), NULL }, 2);
}

static void python_threads(void **state)
{
	static const char python[] = "/usr/bin/python3";

	(void)state;
	need(python);
	check_program("Debian's python, threads.py",
		      (const char *[]){ python, source_path("threads.py"), "--busy", "3", "--idle", "3", NULL }, 7);
}

static void libcrypto(void **state)
{
	static const char python[] = "/usr/bin/python3";
	static const char script[] =
		"import hashlib, itertools\n"
		"print('ready', flush=True)\n"
		"data = bytes(range(256)) * 512\n"
		"for name in itertools.cycle(['md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512',\n"
		"                             'sha3_256', 'blake2b']):\n"
		"    hashlib.new(name, data).digest()\n"
		"    hashlib.pbkdf2_hmac('sha512', data[:16], b'salt', 50)\n";

	(void)state;
	need(python);
	check_program("libcrypto under Debian's python", (const char *[]){ python, "-c", script, NULL }, 1);
}

/* A Python built with other flags, libpython shared or not. */
static void other_python(void **state)
{
	CLEANUP(globfree) glob_t found = { 0 };
	char pattern[4096];

	(void)state;
	snprintf(pattern, sizeof pattern, "%s/.pyenv/versions/3.12*/bin/python3.12",
		 getenv("HOME") ? getenv("HOME") : "");
	if (glob(pattern, 0, NULL, &found) != 0) {
		print_message("skipped: no Python 3.12 under ~/.pyenv/versions\n");
		skip();
	}
	check_program("a built python 3.12, demo.py",
		      (const char *[]){ found.gl_pathv[0], source_path("demo.py"), NULL }, 2);
}

/* Templates, virtual calls, callbacks from libstdc++, exceptions thrown and caught. */
static const char cplusplus[] =
	"#include <algorithm>\n#include <functional>\n#include <iostream>\n#include <map>\n"
	"#include <memory>\n#include <stdexcept>\n#include <string>\n#include <vector>\n"
	"struct shape { virtual ~shape() = default; virtual double area(int depth) const = 0; };\n"
	"struct box : shape { std::vector<std::unique_ptr<shape>> parts;\n"
	"  double area(int d) const override { double sum = 0;\n"
	"    for (auto &p : parts) sum += p->area(d + 1); return sum; } };\n"
	"struct leaf : shape { std::string name;\n"
	"  double area(int d) const override { if (name.size() % 97 == 13) throw std::runtime_error(name);\n"
	"    return std::stod(std::to_string(d * 1.5)) + name.size(); } };\n"
	"static std::unique_ptr<shape> make(int depth) {\n"
	"  if (depth == 0) { auto l = std::make_unique<leaf>(); l->name = std::string(depth + 5, 'x'); return l; }\n"
	"  auto b = std::make_unique<box>(); for (int i = 0; i < 3; i++) b->parts.push_back(make(depth - 1));\n"
	"  return b; }\n"
	"int main() { std::cout << \"ready\" << std::endl; double total = 0;\n"
	"  for (unsigned round = 0;; round++) { auto s = make(6); total += s->area(0);\n"
	"    leaf bad; bad.name = std::string(110, 'y'); try { total += bad.area(1); } catch (std::exception &e) { total -= 1; }\n"
	"    std::map<std::string, std::function<double(int)>> table;\n"
	"    for (int i = 0; i < 50; i++) table[std::to_string(i * 7919 % 101)] = [i, &s](int x) { return s->area(i + x); };\n"
	"    std::vector<std::string> keys; for (auto &e : table) keys.push_back(e.first);\n"
	"    std::sort(keys.begin(), keys.end(), [](auto &a, auto &b) { return a.size() * 7 % 5 < b.size() * 7 % 5; });\n"
	"    for (auto &k : keys) if (k.size() == 1) total += table[k](round % 3); }\n"
	"  return total > 0; }\n";

static void remove_folder(const char *folder)
{
	static const char *const names[] = { "shapes.cc", "shapes" };
	char path[4096];

	for (size_t i = 0; i < N_ELEMENTS(names); i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
}

static void cplusplus_program(void **state)
{
	char folder[] = "/tmp/native_oracle.XXXXXX", path[64], command[512];
	FILE *source;

	(void)state;
	if (system("c++ --version > /dev/null 2>&1") != 0) {
		print_message("skipped: no C++ compiler\n");
		skip();
	}
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/shapes.cc", folder);
	source = fopen(path, "w");
	assert_non_null(source);
	fputs(cplusplus, source);
	assert_int_equal(fclose(source), 0);
	snprintf(command, sizeof command, "c++ -std=c++17 -O2 -o %s/shapes %s", folder, path);
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof path, "%s/shapes", folder);
	check_program("C++", (const char *[]){ path, NULL }, 1);
	remove_folder(folder);
}

static void native_shapes(void **state)
{
	static const char *const modes[] = { "threads", "signal", "realign", "qsort" };

	(void)state;
	need(native_only_path());
	for (size_t i = 0; i < N_ELEMENTS(modes); i++)
		check_program(modes[i], (const char *[]){ native_only_path(), modes[i], NULL },
			      strcmp(modes[i], "threads") == 0 ? 2 : 1);
}

/* ---- Instruction by instruction ---- */

static void wait_then_call(struct target_page *page)
{
	poke(&page->ready, 1);
	while (peek(&page->command) == 0)
		;
	/* The first call binds the symbol, through the PLT's first entry and the loader. */
	for (volatile long sum = 0;;)
		sum += a64l("zz/") + l64a(sum)[0];
}

static void steps_through_plt(void **state)
{
	struct target target = target_fork(wait_then_call);
	struct tally tally = { 0 };

	(void)state;
	check_steps("calls through the PLT, each instruction", &target, N_STEPS, &tally);
	target_end(&target);
	assert_true(tally.n_stubs > 100);
}

static void steps_with_realigned_stack(void **state)
{
	static const char *const modes[] = { "realign", "qsort" };

	(void)state;
	need(native_only_path());
	for (size_t i = 0; i < N_ELEMENTS(modes); i++) {
		struct target target = target_exec((const char *[]){ native_only_path(), modes[i], NULL });
		struct tally tally = { 0 };

		check_steps(modes[i], &target, N_STEPS, &tally);
		target_end(&target);
	}
}

static void on_signal(int number)
{
	(void)number;
}

/* Handlers on another stack, entered at once with kill(2) to oneself. */
static void raise_signals(struct target_page *page)
{
	static uint8_t other_stack[64 << 10];
	stack_t other = { .ss_sp = other_stack, .ss_size = sizeof other_stack };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	sigaltstack(&other, NULL);
	sigaction(SIGUSR1, &action, NULL);
	poke(&page->ready, 1);
	for (;;)
		raise(SIGUSR1);
}

static void steps_through_signal_frames(void **state)
{
	struct target target = target_fork(raise_signals);
	struct tally tally = { 0 };

	(void)state;
	check_steps("signal handlers on another stack, each instruction", &target, N_STEPS / 4, &tally);
	target_end(&target);
	assert_true(tally.n_signals > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mixed_python),
		cmocka_unit_test(python_threads),
		cmocka_unit_test(libcrypto),
		cmocka_unit_test(other_python),
		cmocka_unit_test(cplusplus_program),
		cmocka_unit_test(native_shapes),
		cmocka_unit_test(steps_through_plt),
		cmocka_unit_test(steps_with_realigned_stack),
		cmocka_unit_test(steps_through_signal_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
