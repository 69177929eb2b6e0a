/* SPDX-License-Identifier: MIT */
/* bench/keep_stacks.c - cut a fixture of recorded stacks out of a running process.
 *
 * Records a process, has libdwfl unwind all dumps, keeps those few that between
 * them show the most places, and writes them with the unwind information of
 * just those places; see tests/unit/stacks_file.h. Left out are stacks that
 * libdwfl can only guess at: with generated code, or rules that lead below SP.
 * fixtures/stacks/record says which programs.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/id_map.h"
#include "base/util.h"
#include "bench/dumps.h"
#include "tests/unit/dwfl_oracle.h"
#include "tests/unit/stacks_file.h"
#include "unwind/native/native.h"

enum { MAX_MODULES = 512 };

struct options {
	struct dump_options dump;
	const char *output;
	size_t n_samples;
};

/* A function's position in a module's file. */
struct used_function {
	uint64_t start, fde, cie; /* address; file offsets */
};

struct used_module {
	const struct module *module;
	struct elf_file *elf;
	const uint8_t *image;
	size_t n_image_bytes;
	uint64_t hdr_address, hdr_offset;
	struct used_function *functions;
	size_t n_functions, allocated;
};

struct keeper {
	struct module_table *modules;
	struct address_space *space;
	struct native_unwinder *unwinder;
	struct native_process *process;
	struct native_stack stack;
	struct oracle oracle;
	struct id_map places; /* addresses of the stacks kept so far */
	struct used_module used[MAX_MODULES];
	size_t n_used;
};

static int open_keeper(struct keeper *keeper, pid_t pid)
{
	int r;

	r = module_table_new(&keeper->modules);
	if (r >= 0)
		r = address_space_new(pid, keeper->modules, &keeper->space);
	if (r >= 0)
		r = address_space_load(keeper->space);
	if (r >= 0)
		r = native_unwinder_new(keeper->modules, &keeper->unwinder);
	if (r >= 0)
		r = native_process_new(keeper->unwinder, keeper->space, &keeper->process);
	if (r >= 0)
		r = oracle_open(&keeper->oracle, pid);
	keeper->oracle.want_sp = true;
	return r;
}

/* ---- Choose samples ---- */

static bool is_comparable(const struct native_stack *stack)
{
	for (size_t i = 0; i < stack->n_frames; i++)
		if (stack->frames[i].without_cfi)
			return false;
	return stack->n_frames > 0 && stack->end != STACK_BAD_MEMORY && stack->end != STACK_NO_UNWIND_INFO;
}

static int count_new(struct keeper *keeper, bool add, size_t *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < keeper->stack.n_frames; i++) {
		uint64_t key = native_frame_lookup(&keeper->stack.frames[i]);

		if (id_map_find(&keeper->places, key))
			continue;
		n++;
		if (add && id_map_add(&keeper->places, key, 1) < 0)
			return -ENOMEM;
	}
	*ret = n;
	return 0;
}

/* The sample with most new addresses; *ret is dumps->n if there is none. */
static int find_best(struct keeper *keeper, const struct dumps *dumps, size_t *ret)
{
	size_t most = 0, n;

	*ret = dumps->n;
	for (size_t i = 0; i < dumps->n; i++) {
		int r = native_unwind(keeper->process, &dumps->samples[i], NULL, &keeper->stack);

		if (r >= 0 && is_comparable(&keeper->stack))
			r = count_new(keeper, false, &n);
		else
			n = 0;
		if (r < 0)
			return r;
		if (n > most) {
			most = n;
			*ret = i;
		}
	}
	return 0;
}

/* ---- Collect what they need ---- */

static int use_module(struct keeper *keeper, struct module *module, struct used_module **ret)
{
	struct used_module *used;
	size_t n_headers;
	int r;

	for (size_t i = 0; i < keeper->n_used; i++)
		if (keeper->used[i].module == module) {
			*ret = &keeper->used[i];
			return 0;
		}
	if (keeper->n_used == MAX_MODULES)
		return -E2BIG;
	used = &keeper->used[keeper->n_used];
	used->module = module;
	r = module_elf(module, &used->elf);
	if (r < 0)
		return r;
	used->image = (const uint8_t *)elf_rawfile(elf_file_elf(used->elf), &used->n_image_bytes);
	if (!used->image || elf_getphdrnum(elf_file_elf(used->elf), &n_headers) < 0)
		return -ENOEXEC;
	for (size_t i = 0; i < n_headers; i++) {
		GElf_Phdr header;

		if (gelf_getphdr(elf_file_elf(used->elf), (int)i, &header) && header.p_type == PT_GNU_EH_FRAME) {
			used->hdr_address = header.p_vaddr;
			used->hdr_offset = header.p_offset;
		}
	}
	keeper->n_used++;
	*ret = used;
	return 0;
}

static int use_place(struct keeper *keeper, uint64_t lookup)
{
	struct used_module *used;
	struct module *module;
	struct elf_cfi cfi;
	uint64_t address;
	int r;

	r = address_space_resolve(keeper->space, lookup, &module, &address);
	if (r < 0 || !module)
		return -ENOENT;
	r = use_module(keeper, module, &used);
	if (r >= 0)
		r = elf_file_cfi(used->elf, address, &cfi);
	if (r >= 0)
		r = grow(&used->functions, used->n_functions, &used->allocated, sizeof *used->functions);
	if (r < 0)
		return r;
	for (size_t i = 0; i < used->n_functions; i++)
		if (used->functions[i].start == cfi.start)
			return 0;
	used->functions[used->n_functions++] = (struct used_function){
		.start = cfi.start,
		.fde = (uint64_t)(cfi.fde - used->image),
		.cie = (uint64_t)(cfi.cie - used->image),
	};
	return 0;
}

/* ---- Write ---- */

static void put_piece(struct stacks_file *file, const struct used_module *used, uint64_t offset, size_t n)
{
	stacks_put(file, offset);
	stacks_put_bytes(file, used->image + offset, n);
}

/* A CIE or FDE with its length. */
static void put_entry(struct stacks_file *file, const struct used_module *used, uint64_t offset)
{
	uint32_t n_bytes;

	memcpy(&n_bytes, used->image + offset, sizeof n_bytes);
	put_piece(file, used, offset, sizeof n_bytes + n_bytes);
}

/* Headers changed to have no sections. */
static void put_headers(struct stacks_file *file, const struct used_module *used)
{
	Elf64_Ehdr header;

	memcpy(&header, used->image, sizeof header);
	header.e_shoff = 0;
	header.e_shnum = header.e_shstrndx = 0;
	stacks_put(file, 0);
	stacks_put_bytes(file, &header, sizeof header);
	put_piece(file, used, header.e_phoff, (size_t)header.e_phnum * header.e_phentsize);
}

static int compare_functions(const void *a, const void *b)
{
	const struct used_function *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* .eh_frame_hdr with only the needed functions. Source: LSB Core 5.0, 10.6.2. */
static void put_table(struct stacks_file *file, struct used_module *used)
{
	/* Addresses of FDEs in the entries are in the header's own segment. */
	int64_t shift = (int64_t)(used->hdr_address - used->hdr_offset);
	size_t n_bytes = 12 + 8 * used->n_functions;
	CLEANUP(freep) uint8_t *table = calloc(1, n_bytes);
	uint32_t n = (uint32_t)used->n_functions;

	if (!table) {
		file->failed = true;
		return;
	}
	qsort(used->functions, used->n_functions, sizeof *used->functions, compare_functions);
	memcpy(table, used->image + used->hdr_offset, 8);
	memcpy(table + 8, &n, sizeof n);
	for (size_t i = 0; i < used->n_functions; i++) {
		int32_t start = (int32_t)(used->functions[i].start - used->hdr_address);
		int32_t fde = (int32_t)((int64_t)used->functions[i].fde + shift - (int64_t)used->hdr_address);

		memcpy(table + 12 + 8 * i, &start, sizeof start);
		memcpy(table + 16 + 8 * i, &fde, sizeof fde);
	}
	stacks_put(file, used->hdr_offset);
	stacks_put_bytes(file, table, n_bytes);
}

static size_t count_cies(const struct used_module *used)
{
	size_t n = 0;

	for (size_t i = 0; i < used->n_functions; i++) {
		size_t k = 0;

		while (k < i && used->functions[k].cie != used->functions[i].cie)
			k++;
		n += k == i;
	}
	return n;
}

static void put_module(struct stacks_file *file, struct used_module *used)
{
	const char *name = module_name(used->module);

	stacks_put_bytes(file, name, strlen(name));
	stacks_put(file, used->n_image_bytes);
	stacks_put(file, 3 + used->n_functions + count_cies(used));
	put_headers(file, used);
	put_table(file, used);
	for (size_t i = 0; i < used->n_functions; i++) {
		size_t k = 0;

		put_entry(file, used, used->functions[i].fde);
		while (k < i && used->functions[k].cie != used->functions[i].cie)
			k++;
		if (k == i)
			put_entry(file, used, used->functions[i].cie);
	}
}

static void put_mappings(struct stacks_file *file, struct keeper *keeper)
{
	const struct mapping *mapping;
	size_t n = 0;

	for (int pass = 0; pass < 2; pass++) {
		if (pass == 1)
			stacks_put(file, n);
		for (size_t i = 0; (mapping = address_space_nth(keeper->space, i)) != NULL; i++)
			for (size_t k = 0; k < keeper->n_used && mapping->executable; k++)
				if (mapping->module == keeper->used[k].module) {
					n++;
					if (pass == 0)
						continue;
					stacks_put(file, mapping->start);
					stacks_put(file, mapping->end);
					stacks_put(file, mapping->file_offset);
					stacks_put(file, k);
				}
	}
}

/* For a stack unwound to its end: the program's arguments and environment come after it. */
static size_t used_bytes(const struct native_stack *stack, const struct sample *sample)
{
	uint64_t end = stack->frames[stack->n_frames - 1].cfa;

	if (stack->end != STACK_COMPLETE || end < sample->regs.value[MACHINE_REG_SP])
		return sample->stack_bytes;
	return MIN(end - sample->regs.value[MACHINE_REG_SP], sample->stack_bytes);
}

static void put_sample(struct stacks_file *file, struct keeper *keeper, const struct sample *sample)
{
	bool reached;

	oracle_unwind(&keeper->oracle, sample, NULL);
	(void)native_unwind(keeper->process, sample, NULL, &keeper->stack);
	reached = keeper->stack.end == STACK_COMPLETE;
	for (unsigned i = 0; i < MACHINE_N_REGS; i++)
		stacks_put(file, sample->regs.value[i]);
	stacks_put_bytes(file, sample->stack, used_bytes(&keeper->stack, sample));
	stacks_put(file, keeper->oracle.n_frames);
	for (size_t i = 0; i < keeper->oracle.n_frames; i++) {
		stacks_put(file, keeper->oracle.frames[i].pc);
		stacks_put(file, keeper->oracle.frames[i].sp);
	}
	stacks_put(file, reached);
}

static int keep(const struct options *options, struct keeper *keeper, const struct dumps *dumps)
{
	CLEANUP(freep) size_t *kept = calloc(options->n_samples, sizeof *kept);
	struct stacks_file file;
	size_t n = 0, n_new;
	int r = kept ? 0 : -ENOMEM;

	while (r >= 0 && n < options->n_samples) {
		r = find_best(keeper, dumps, &kept[n]);
		if (r < 0 || kept[n] == dumps->n)
			break;
		r = native_unwind(keeper->process, &dumps->samples[kept[n]], NULL, &keeper->stack);
		if (r >= 0)
			r = count_new(keeper, true, &n_new);
		for (size_t i = 0; i < keeper->stack.n_frames && r >= 0; i++)
			r = use_place(keeper, native_frame_lookup(&keeper->stack.frames[i]));
		n++;
	}
	if (r < 0 || !stacks_open(&file, options->output, "wb9"))
		return r < 0 ? r : -EIO;
	stacks_put(&file, STACKS_MAGIC);
	stacks_put(&file, keeper->n_used);
	for (size_t i = 0; i < keeper->n_used; i++)
		put_module(&file, &keeper->used[i]);
	put_mappings(&file, keeper);
	stacks_put(&file, n);
	for (size_t i = 0; i < n; i++)
		put_sample(&file, keeper, &dumps->samples[kept[i]]);
	printf("%s: %zu samples, %zu modules, %zu places\n", options->output, n, keeper->n_used, keeper->places.n);
	return stacks_close(&file) ? 0 : -EIO;
}

static int parse_option(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'n':
		options->n_samples = strtoul(argument, NULL, 10);
		return 0;
	case 's':
		options->dump.stack_bytes = strtoul(argument, NULL, 10);
		return 0;
	case 'o':
		options->output = argument;
		return 0;
	case ARGP_KEY_ARG:
		options->dump.pid = (pid_t)strtol(argument, NULL, 10);
		return 0;
	case ARGP_KEY_END:
		return options->dump.pid > 0 && options->output ? 0 : (argp_usage(state), EINVAL);
	}
	return ARGP_ERR_UNKNOWN;
}

int main(int argc, char **argv)
{
	static const struct argp_option known[] = {
		{ "samples", 'n', "N", 0, "Keep so many (16)", 0 },
		{ "stack-bytes", 's', "N", 0, "Stack to copy (16384)", 0 },
		{ "output", 'o', "FILE", 0, "Where to", 0 },
		{ 0 },
	};
	static const struct argp argp = { known, parse_option, "PID", "Cut a fixture of stacks.", 0, 0, 0 };
	struct options options = {
		.dump = { .seconds = 3, .hz = 999, .stack_bytes = 16384 },
		.n_samples = 16,
	};
	static struct keeper keeper;
	struct dumps dumps = { 0 };
	int r;

	argp_parse(&argp, argc, argv, 0, NULL, &options);
	r = dumps_init(&dumps);
	if (r >= 0)
		r = dumps_record(&options.dump, &dumps);
	if (r >= 0)
		r = open_keeper(&keeper, options.dump.pid);
	if (r >= 0)
		r = keep(&options, &keeper, &dumps);
	if (r < 0)
		fprintf(stderr, "keep_stacks: %s\n", strerror(-r));
	return r < 0;
}
