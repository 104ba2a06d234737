// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/elf/module.h"

#include <check.h>
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "support/host.h"
#include "support/suite.h"
#include "support/temporary.h"

static struct modules *modules;
static char directory[TEMPORARY_PATH_SIZE];

static void set_up(void)
{
	ck_assert_ptr_null(modules_create(HOST_MACHINE, true, &modules));
	temporary_directory(directory);
}

static void tear_down(void)
{
	modules_destroy(modules);
	temporary_remove(directory);
}

static struct module *open_program(const char *path, const uint8_t *build_id, size_t size)
{
	struct module *module = NULL;

	ck_assert_ptr_null(modules_open(modules, path, build_id, size, 0, &module));
	ck_assert_ptr_nonnull(module);
	return module;
}

/* A path in the test's directory; static storage. */
static const char *path_of(const char *name)
{
	static char path[TEMPORARY_PATH_SIZE + 64];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static void write_file(const char *path, const void *data, size_t size)
{
	CLEANUP(fclose) FILE *stream = fopen(path, "w");

	ck_assert_ptr_nonnull(stream);
	ck_assert_uint_eq(fwrite(data, 1, size, stream), size);
}

static size_t read_own_program(uint8_t **data_ret)
{
	CLEANUP(fclose) FILE *stream = fopen("/proc/self/exe", "r");
	struct stat status;

	ck_assert_int_eq(fstat(fileno(stream), &status), 0);
	*data_ret = malloc((size_t)status.st_size);
	ck_assert_uint_eq(fread(*data_ret, 1, (size_t)status.st_size, stream), (size_t)status.st_size);
	return (size_t)status.st_size;
}

/* Where this program is loaded, and its build ID. */
struct self {
	uint64_t bias;
	const uint8_t *build_id;
	size_t build_id_size;
};

static int find_self(struct dl_phdr_info *info, size_t size, void *context)
{
	struct self *self = context;

	(void)size;
	self->bias = info->dlpi_addr;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		const uint8_t *note = (const uint8_t *)info->dlpi_addr + header->p_vaddr;
		const uint8_t *end = note + header->p_memsz;

		if (header->p_type != PT_NOTE || self->build_id)
			continue;
		while (note + sizeof(ElfW(Nhdr)) < end) {
			const ElfW(Nhdr) *note_header = (const void *)note;
			const uint8_t *name = note + sizeof(*note_header);
			const uint8_t *content = name + ((note_header->n_namesz + 3) & ~3U);

			if (note_header->n_type == NT_GNU_BUILD_ID && !memcmp(name, "GNU", 4)) {
				self->build_id = content;
				self->build_id_size = note_header->n_descsz;
			}
			note = content + ((note_header->n_descsz + 3) & ~3U);
		}
	}
	return 1; /* the program itself is first */
}

static struct self get_self(void)
{
	struct self self = {0};

	dl_iterate_phdr(find_self, &self);
	return self;
}

static uint64_t inner_address;
static volatile int sink;

static inline __attribute__((always_inline)) void innermost(void)
{
	ASSEMBLE_NEXT_ADDRESS(inner_address);
}
static const int innermost_line = __LINE__ - 2;

static inline __attribute__((always_inline)) void between(void)
{
	sink++;
	innermost();
}
static const int between_line = __LINE__ - 2;

static __attribute__((noinline)) void outermost(void)
{
	between();
	sink++;
}
static const int outermost_line = __LINE__ - 3;

static void expect_frame(const struct module_frame *frame, const char *function, int line, bool inlined)
{
	ck_assert_str_eq(frame->function, function);
	ck_assert_ptr_nonnull(frame->source_file);
	ck_assert_int_eq(frame->source_file[0], '/');
	ck_assert_ptr_nonnull(strstr(frame->source_file, "/test-module.c"));
	ck_assert_uint_eq(frame->source_line, (uint32_t)line);
	ck_assert(frame->inlined == inlined);
}

START_TEST(test_names_with_inlined_functions_and_lines)
{
	struct module *module = open_program("/proc/self/exe", NULL, 0);
	struct module_frame frames[LIMIT_INLINED_FRAMES];

	outermost();
	/* Twice: the second result is cached. */
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(module_names(module, inner_address - 1 - get_self().bias, frames), 3);
		expect_frame(&frames[0], "innermost", innermost_line, true);
		expect_frame(&frames[1], "between", between_line, true);
		expect_frame(&frames[2], "outermost", outermost_line, false);
	}
}
END_TEST

/* .NET's native programs have methods with such names, and "Leak" in their debug information. */
int Leak(int number) __asm__("App_Program__Leak_2");
__attribute__((noinline)) int Leak(int number)
{
	return number + sink;
}

/* Only the runtime of .NET exports this function. */
void MetaDataGetDispenser(void);
__attribute__((noinline)) void MetaDataGetDispenser(void)
{
	sink++;
}

START_TEST(programs_of_dotnet)
{
	struct module *module = open_program("/proc/self/exe", NULL, 0);
	struct module_frame frames[LIMIT_INLINED_FRAMES];

	ck_assert_uint_eq(module_names(module, (uint64_t)(uintptr_t)Leak + 1 - get_self().bias, frames), 1);
	ck_assert_str_eq(frames[0].function, "App_Program__Leak_2");
	ck_assert(module_contains_coreclr(module));
}
END_TEST

#ifdef __x86_64__
/* Symbols without a size, and code after them without a symbol, which belongs to no function. The offsets to look up
 * are in the comments. */
__asm__(".pushsection .text.unsized, \"ax\", @progbits\n"
	".globl unsized_branches, unsized_described, sized, label_inside, unsized_table, last_of_section\n"
	".hidden unsized_branches, unsized_described, sized, label_inside, unsized_table, last_of_section\n"
	".type unsized_branches, @function\n"
	"unsized_branches:\n"
	"test %eax, %eax\n" /* 0 */
	"je 1f\n"	    /* 2 */
	"ret\n"		    /* 4 */
	"1: ret\n"	    /* 5 */
	"nop\n"		    /* 6 */
	"ret\n"		    /* 7 */
	".type unsized_described, @function\n"
	"unsized_described:\n"
	".cfi_startproc\n"
	"ret\n"	      /* 0 */
	"jmp *%rax\n" /* 1 */
	".cfi_endproc\n"
	"ret\n" /* 3 */
	".type sized, @function\n"
	"sized:\n"
	"nop\n"
	"label_inside:\n"
	"nop\n"
	"ret\n"
	".size sized, . - sized\n"
	"ret\n" /* 2 behind the label */
	".type unsized_table, @function\n"
	"unsized_table:\n"
	"jmp *%rax\n" /* 0 */
	".skip 4998, 0x90\n"
	"last_of_section:\n"
	"ret\n"
	".popsection\n");

extern const uint8_t unsized_branches[], unsized_described[], sized[], label_inside[], unsized_table[],
    last_of_section[];

START_TEST(test_symbols_without_size)
{
	const struct {
		const uint8_t *address;
		const char *function; /* NULL: none */
	} cases[] = {
	    {unsized_branches, "unsized_branches"},
	    {unsized_branches + 5, "unsized_branches"},
	    {unsized_branches + 6, NULL},
	    {unsized_branches + 7, NULL},
	    {unsized_described, "unsized_described"},
	    {unsized_described + 2, "unsized_described"},
	    {unsized_described + 3, NULL},
	    {sized, "sized"},
	    {label_inside, "sized"},
	    {label_inside + 1, "sized"},
	    {label_inside + 2, NULL},
	    {unsized_table, "unsized_table"},
	    {unsized_table + 4095, "unsized_table"},
	    {unsized_table + 4096, NULL},
	    {last_of_section, "last_of_section"},
	};
	struct module *module = open_program("/proc/self/exe", NULL, 0);
	struct module_frame frames[LIMIT_INLINED_FRAMES];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t address = (uint64_t)(uintptr_t)cases[i].address - get_self().bias;

		ck_assert_uint_eq(module_names(module, address, frames), 1);
		ck_assert_pstr_eq(frames[0].function, cases[i].function);
	}
}
END_TEST
#endif

START_TEST(test_addresses_outside_functions)
{
	struct module *module = open_program("/proc/self/exe", NULL, 0);
	struct module_frame frames[LIMIT_INLINED_FRAMES];

	ck_assert_uint_eq(module_names(module, 0x7ffffffffff0, frames), 1);
	ck_assert_ptr_null(frames[0].function);
	ck_assert_ptr_null(frames[0].source_file);
	ck_assert_uint_eq(module_names(open_program("/nowhere", NULL, 0), 16, frames), 1);
	ck_assert_ptr_null(frames[0].function);
}
END_TEST

/* Path of libc and its bias. */
static int find_libc(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size;
	if (!strstr(info->dlpi_name, "/libc.so"))
		return 0;
	*(struct dl_phdr_info *)context = *info;
	return 1;
}

START_TEST(test_best_alias)
{
	/* mmap, mmap64, __mmap and __mmap64 are one function. */
	struct module_frame frames[LIMIT_INLINED_FRAMES];
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	struct dl_phdr_info info;
	struct module *module;
	size_t count;

	ck_assert_ptr_nonnull(libc);
	ck_assert_int_eq(dl_iterate_phdr(find_libc, &info), 1);
	module = open_program(info.dlpi_name, NULL, 0);
	ck_assert_int_eq(module_state(module), MODULE_READABLE);
	count = module_names(module, (uint64_t)(uintptr_t)dlsym(libc, "mmap") - info.dlpi_addr, frames);
	ck_assert_str_eq(frames[count - 1].function, "mmap");
	ck_assert(!module_contains_coreclr(module));
	count = module_names(module, (uint64_t)(uintptr_t)dlsym(libc, "munmap") - info.dlpi_addr + 3, frames);
	ck_assert_str_eq(frames[count - 1].function, "munmap");
}
END_TEST

START_TEST(test_build_id)
{
	struct self self = get_self();
	uint8_t id[32] = {0};
	CLEANUP(free) uint8_t *data = NULL;
	CLEANUP(free) char *copy = strdup(path_of("copy"));
	CLEANUP(free) char *deleted = strdup(path_of("copy (deleted)"));
	size_t size = read_own_program(&data);

	ck_assert_ptr_nonnull(self.build_id);
	ck_assert_uint_le(self.build_id_size, 20);
	memcpy(id, self.build_id, self.build_id_size);
	write_file(copy, data, size);
	ck_assert_int_eq(module_state(open_program(copy, id, self.build_id_size)), MODULE_READABLE);
	ck_assert_int_eq(module_state(open_program(copy, id, sizeof(id))), MODULE_READABLE);
	/* A file that has reused the name of a deleted one is used only if the build ID matches. */
	ck_assert_int_eq(module_state(open_program(deleted, id, self.build_id_size)), MODULE_READABLE);
	ck_assert_int_eq(module_state(open_program(deleted, NULL, 0)), MODULE_MISSING);
	id[self.build_id_size - 1] ^= 1;
	ck_assert_int_eq(module_state(open_program(copy, id, self.build_id_size)), MODULE_OTHER_BUILD);
	ck_assert_int_eq(module_state(open_program(deleted, id, self.build_id_size)), MODULE_OTHER_BUILD);
	ck_assert_ptr_null(module_cfi(open_program(copy, id, self.build_id_size), 0x1000));
}
END_TEST

START_TEST(test_file_newer_than_the_recording)
{
	CLEANUP(free) uint8_t *data = NULL;
	size_t size = read_own_program(&data);
	struct self self = get_self();
	struct stat status;
	uint64_t written_ns;

	write_file(path_of("young"), data, size);
	write_file(path_of("same"), data, size);
	write_file(path_of("old"), data, size);
	ck_assert_int_eq(stat(path_of("old"), &status), 0);
	written_ns = (uint64_t)status.st_mtim.tv_sec * 1000000000 + (uint64_t)status.st_mtim.tv_nsec;
	modules_recorded(modules, written_ns, "");
	ck_assert_int_eq(module_state(open_program(path_of("old"), NULL, 0)), MODULE_READABLE);
	modules_recorded(modules, 1, "");
	ck_assert_int_eq(module_state(open_program(path_of("young"), NULL, 0)), MODULE_CHANGED);
	ck_assert_ptr_null(module_cfi(open_program(path_of("young"), NULL, 0), 0x1000));
	ck_assert_int_eq(module_state(open_program(path_of("same"), self.build_id, self.build_id_size)),
			 MODULE_READABLE);
	if (getauxval(AT_SYSINFO_EHDR))
		ck_assert_int_eq(module_state(open_program("[vdso]", NULL, 0)), MODULE_READABLE);
}
END_TEST

/* An old file that was put there with its timestamps preserved. */
START_TEST(test_other_inode)
{
	CLEANUP(free) uint8_t *data = NULL;
	size_t size = read_own_program(&data);
	struct self self = get_self();
	struct module *module = NULL;
	struct stat status;

	write_file(path_of("program"), data, size);
	ck_assert_int_eq(stat(path_of("program"), &status), 0);
	ck_assert_ptr_null(modules_open(modules, path_of("program"), NULL, 0, status.st_ino + 1, &module));
	ck_assert_int_eq(module_state(module), MODULE_CHANGED);
	ck_assert_ptr_null(modules_open(modules, path_of("program"), NULL, 0, status.st_ino, &module));
	ck_assert_int_eq(module_state(module), MODULE_READABLE);
	ck_assert_ptr_null(
	    modules_open(modules, path_of("program"), self.build_id, self.build_id_size, status.st_ino + 1, &module));
	ck_assert_int_eq(module_state(module), MODULE_READABLE);
}
END_TEST

START_TEST(test_cache)
{
	struct module *module = open_program("/proc/self/exe", NULL, 0);

	ck_assert_ptr_eq(module, open_program("/proc/self/exe", NULL, 0));
	ck_assert_ptr_ne(module, open_program("/proc/self/exe", (const uint8_t *)"12345678901234567890", 20));
}
END_TEST

START_TEST(test_other_files_are_refused)
{
	static const char *const names[] = {
	    "//anon",	"[heap]", "[stack]", "/memfd:doublemapper (deleted)", "/dev/zero", "/SYSV00000000 (deleted)",
	    "relative", ""};
	CLEANUP(free) char *fifo = strdup(path_of("fifo"));

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		ck_assert_int_eq(module_state(open_program(names[i], NULL, 0)), MODULE_NOT_ELF);
	ck_assert_int_eq(mkfifo(fifo, 0600), 0);
	ck_assert_int_eq(module_state(open_program(fifo, NULL, 0)), MODULE_NOT_ELF);
	ck_assert_int_eq(module_state(open_program(directory, NULL, 0)), MODULE_NOT_ELF);
	ck_assert_int_eq(module_state(open_program(path_of("missing"), NULL, 0)), MODULE_MISSING);
	write_file(path_of("text"), "MZ no program", 13);
	ck_assert_int_eq(module_state(open_program(path_of("text"), NULL, 0)), MODULE_NOT_ELF);
	write_file(path_of("empty"), "", 0);
	ck_assert_int_eq(module_state(open_program(path_of("empty"), NULL, 0)), MODULE_NOT_ELF);
}
END_TEST

START_TEST(test_other_architecture)
{
	struct modules *others;
	struct module *module;

	ck_assert_ptr_null(modules_create(HOST_MACHINE == EM_AARCH64 ? EM_X86_64 : EM_AARCH64, true, &others));
	ck_assert_ptr_null(modules_open(others, "/proc/self/exe", NULL, 0, 0, &module));
	ck_assert_int_eq(module_state(module), MODULE_OTHER_BUILD);
	modules_destroy(others);
}
END_TEST

/* A program that cannot be read for lack of memory is not damaged. */
START_TEST(test_no_memory)
{
	struct rlimit before, none;
	struct module *module;
	struct mmt_error *error;

#ifdef __SANITIZE_ADDRESS__
	SKIP_TEST("AddressSanitizer has memory of its own");
#endif
	write_file(path_of("empty"), "", 0);
	(void)open_program(path_of("empty"), NULL, 0); /* starts the helper */
	ck_assert_int_eq(getrlimit(RLIMIT_DATA, &before), 0);
	none = (struct rlimit){1, before.rlim_max}; /* for Valgrind, the kernel ignores 0 */
	ck_assert_int_eq(setrlimit(RLIMIT_DATA, &none), 0);
	error = modules_open(modules, "/proc/self/exe", NULL, 0, 0, &module);
	ck_assert_int_eq(setrlimit(RLIMIT_DATA, &before), 0);
	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(error->code, MMT_ERROR_NO_MEMORY);
	mmt_error_destroy(error);
}
END_TEST

START_TEST(test_truncated_program)
{
	static const size_t sizes[] = {4, 16, 40, 63, 64, 100, 500, 5000, 20000, 60000};
	CLEANUP(free) uint8_t *data = NULL;
	size_t size = read_own_program(&data);
	struct module_frame frames[LIMIT_INLINED_FRAMES];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		char name[32];
		struct module *module;

		ck_assert_uint_lt(sizes[i], size);
		snprintf(name, sizeof(name), "cut-%zu", sizes[i]);
		write_file(path_of(name), data, sizes[i]);
		module = open_program(path_of(name), NULL, 0);
		if (sizes[i] < 64)
			ck_assert_int_ne(module_state(module), MODULE_READABLE);
		(void)module_follows_call(module, (uint64_t)(uintptr_t)outermost - get_self().bias);
		(void)module_cfi(module, (uint64_t)(uintptr_t)outermost - get_self().bias);
		ck_assert_uint_eq(module_names(module, (uint64_t)(uintptr_t)outermost - get_self().bias, frames), 1);
	}
}
END_TEST

/* Whatever value any byte of the headers has, nothing is read outside the file. */
START_TEST(test_damaged_headers)
{
	CLEANUP(free) uint8_t *data = NULL;
	size_t size = read_own_program(&data);
	struct module_frame frames[LIMIT_INLINED_FRAMES];

	for (size_t i = 4; i < 400; i += 3) {
		char name[32];
		struct module *module;
		uint64_t address;
		uint8_t kept = data[i];

		data[i] ^= 0xff;
		snprintf(name, sizeof(name), "damaged-%zu", i);
		write_file(path_of(name), data, size);
		data[i] = kept;
		module = open_program(path_of(name), NULL, 0);
		(void)module_address(module, 0x1000, &address);
		(void)module_follows_call(module, (uint64_t)(uintptr_t)outermost - get_self().bias);
		(void)module_cfi(module, (uint64_t)(uintptr_t)outermost - get_self().bias);
		if (i % 16 == 0)
			(void)module_names(module, (uint64_t)(uintptr_t)outermost - get_self().bias, frames);
		unlink(path_of(name));
	}
}
END_TEST

static size_t count_entries(const char *path)
{
	DIR *folder = opendir(path);
	size_t count = 0;

	ck_assert_ptr_nonnull(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* Names of damaged and hostile files, all in one cache: nothing outlives it, and every answer is usable. */
START_TEST(corpus_of_hostile_files)
{
	static const char corpus[] = "fuzz/corpus/elf";
	DIR *folder = opendir(corpus);
	CLEANUP(free) char *here = get_current_dir_name();
	size_t before = count_entries("/proc/self/fd") - 1, files = 0;
	struct modules *all = NULL;
	struct dirent *entry;

	ck_assert_ptr_nonnull(folder);
	ck_assert_ptr_null(modules_create(EM_X86_64, true, &all));
	while ((entry = readdir(folder))) {
		struct module_frame frames[LIMIT_INLINED_FRAMES];
		struct module *module = NULL;
		CLEANUP(free) char *path = NULL;

		if (entry->d_type == DT_DIR)
			continue;
		ck_assert_int_gt(asprintf(&path, "%s/%s/%s", here, corpus, entry->d_name), 0);
		ck_assert_ptr_null(modules_open(all, path, NULL, 0, 0, &module));
		for (uint64_t address = 0x400000; address < 0x402000; address += 0x40) {
			size_t count = module_names(module, address, frames);

			ck_assert(count && count <= LIMIT_INLINED_FRAMES);
			for (size_t i = 0; i < count; i++)
				ck_assert(!frames[i].function || *frames[i].function);
		}
		(void)module_special_function(module, 0x401000, true);
		files++;
	}
	closedir(folder);
	ck_assert_uint_ge(files, 19);
	modules_destroy(all);
	ck_assert_uint_eq(count_entries("/proc/self/fd"), before);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
}
END_TEST

static Elf64_Shdr *find_section(uint8_t *data, const char *name)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)data;
	Elf64_Shdr *sections = (Elf64_Shdr *)(data + header->e_shoff);
	const char *names = (const char *)data + sections[header->e_shstrndx].sh_offset;

	for (size_t i = 0; i < header->e_shnum; i++) {
		if (!strcmp(names + sections[i].sh_name, name))
			return &sections[i];
	}
	return NULL;
}

static Elf64_Phdr *find_segment(uint8_t *data, uint32_t type)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)data;
	Elf64_Phdr *segments = (Elf64_Phdr *)(data + header->e_phoff);

	for (size_t i = 0; i < header->e_phnum; i++) {
		if (segments[i].p_type == type)
			return &segments[i];
	}
	return NULL;
}

/* After the end of the real file there is a hole of this size, with some bytes at its start. */
static struct module *open_with_hole(const char *name, const uint8_t *data, size_t size, const void *first,
				     size_t first_size, uint64_t hole)
{
	CLEANUP(fclose) FILE *stream = fopen(path_of(name), "w");

	ck_assert_ptr_nonnull(stream);
	ck_assert_uint_eq(fwrite(data, 1, size, stream), size);
	ck_assert_uint_eq(fwrite(first, 1, first_size, stream), first_size);
	ck_assert_int_eq(fflush(stream), 0);
	ck_assert_int_eq(ftruncate(fileno(stream), (off_t)(size + hole)), 0);
	return open_program(path_of(name), NULL, 0);
}

/* Names are found whatever its unwind table, and little memory is used. */
static void expect_names_only(struct module *module, size_t memory_before)
{
	uint64_t address = (uint64_t)(uintptr_t)outermost - get_self().bias;
	struct module_frame frames[LIMIT_INLINED_FRAMES];
	struct mallinfo2 memory;
	size_t count;

	ck_assert_int_eq(module_state(module), MODULE_READABLE);
	ck_assert_ptr_null(module_cfi(module, address));
	count = module_names(module, address, frames);
	ck_assert_uint_ge(count, 1);
	ck_assert_str_eq(frames[count - 1].function, "outermost");
	memory = mallinfo2();
	ck_assert_uint_lt(memory.hblkhd + memory.uordblks, memory_before + (64u << 20));
}

/* Sparse files have their full size, and use no disk space. */
START_TEST(test_huge_unwind_tables)
{
	static const uint64_t sizes[] = {300u << 20, 32u << 20};
	CLEANUP(free) uint8_t *data = NULL;
	size_t size = read_own_program(&data);
	struct mallinfo2 memory = mallinfo2();
	Elf64_Shdr *section = find_section(data, ".eh_frame");
	char name[32];

	ck_assert_ptr_nonnull(section);
	find_segment(data, PT_GNU_EH_FRAME)->p_type = PT_NULL;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		section->sh_offset = size;
		section->sh_size = sizes[i];
		snprintf(name, sizeof(name), "section-%zu", i);
		expect_names_only(open_with_hole(name, data, size, "", 0, sizes[i]), memory.hblkhd + memory.uordblks);
	}
}
END_TEST

/* A search table with very many pairs, each of which points to the first entry of the section: more pairs than fit
 * into the section, and a number that fits. */
START_TEST(test_huge_search_tables)
{
	static const struct {
		uint64_t section_size;
		uint32_t count;
	} tables[] = {{4096, 60000000}, {64u << 20, 5000000}};
	uint8_t head[12] = {1, 0x1b, 0x03, 0x3b};
	CLEANUP(free) uint8_t *data = NULL;
	size_t size = read_own_program(&data);
	struct mallinfo2 memory = mallinfo2();
	Elf64_Shdr *section = find_section(data, ".eh_frame");
	Elf64_Phdr *header = find_segment(data, PT_GNU_EH_FRAME);
	char name[32];

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		memcpy(head + 8, &tables[i].count, sizeof(tables[i].count));
		header->p_offset = size;
		header->p_filesz = header->p_memsz = 512u << 20;
		section->sh_addr = header->p_vaddr;
		section->sh_offset = size + sizeof(head);
		section->sh_size = tables[i].section_size;
		snprintf(name, sizeof(name), "table-%zu", i);
		expect_names_only(open_with_hole(name, data, size, head, sizeof(head), header->p_filesz),
				  memory.hblkhd + memory.uordblks);
	}
}
END_TEST

START_TEST(test_addresses_of_file_offsets)
{
	struct module *module = open_program("/proc/self/exe", NULL, 0);
	CLEANUP(fclose) FILE *maps = fopen("/proc/self/maps", "r");
	uint64_t code = (uint64_t)(uintptr_t)outermost, address = 0;
	unsigned long start, end, offset;
	char line[512];

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && start <= code && code < end)
			break;
	}
	ck_assert(module_address(module, code - start + offset, &address));
	ck_assert_uint_eq(address, code - get_self().bias);
	ck_assert(!module_address(module, 1ULL << 40, &address));
}
END_TEST

START_TEST(test_call_sites)
{
	struct module *module = open_program("/proc/self/exe", NULL, 0);
	uint64_t here, bias = get_self().bias;

	ASSEMBLE_RETURN_ADDRESS(here);
	ck_assert_int_eq(module_follows_call(module, here - bias), 1);
	__asm__ volatile("nop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop");
	ASSEMBLE_NEXT_ADDRESS(here);
	ck_assert_int_eq(module_follows_call(module, here - bias), 0);
	ck_assert_int_eq(module_follows_call(module, 1ULL << 40), -1);
	ck_assert_int_eq(module_follows_call(open_program("/nowhere", NULL, 0), here), -1);
}
END_TEST

START_TEST(test_vdso)
{
	struct module *module = open_program("[vdso]", NULL, 0);
	const uint8_t other[20] = {1};
	struct module_frame frames[LIMIT_INLINED_FRAMES];
	const ElfW(Ehdr) *header = (const void *)getauxval(AT_SYSINFO_EHDR);
	uint64_t address = 0;

	if (!header)
		SKIP_TEST("there is no vDSO here");
	ck_assert_int_eq(module_state(module), MODULE_READABLE);
	ck_assert(module_address(module, header->e_entry ? header->e_entry : 0x800, &address));
	ck_assert_uint_eq(module_names(module, address, frames), 1);
	ck_assert_int_eq(module_state(open_program("[vdso]", other, sizeof(other))), MODULE_OTHER_BUILD);
}
END_TEST

START_TEST(test_vdso_of_another_kernel)
{
	struct utsname running;

	if (!getauxval(AT_SYSINFO_EHDR))
		SKIP_TEST("there is no vDSO here");
	ck_assert_int_eq(uname(&running), 0);
	modules_recorded(modules, 0, "0.0.1-other");
	ck_assert_int_eq(module_state(open_program("[vdso]", NULL, 0)), MODULE_OTHER_BUILD);
	modules_destroy(modules);
	ck_assert_ptr_null(modules_create(HOST_MACHINE, true, &modules));
	modules_recorded(modules, 0, running.release);
	ck_assert_int_eq(module_state(open_program("[vdso]", NULL, 0)), MODULE_READABLE);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("module");
	TCase *tests = add_tcase(suite, "program");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 600);
	tcase_add_test(tests, test_names_with_inlined_functions_and_lines);
#ifdef __x86_64__
	tcase_add_test(tests, test_symbols_without_size);
#else
	skip_test("test_symbols_without_size", "its code is for x86-64");
#endif
	tcase_add_tests(tests, programs_of_dotnet, test_addresses_outside_functions, test_best_alias, test_build_id,
			test_file_newer_than_the_recording, test_other_inode, test_cache, test_other_files_are_refused,
			test_other_architecture, test_no_memory, test_truncated_program, test_damaged_headers,
			test_huge_unwind_tables, test_huge_search_tables, test_addresses_of_file_offsets,
			test_call_sites, test_vdso, test_vdso_of_another_kernel, corpus_of_hostile_files);
	return suite;
}
