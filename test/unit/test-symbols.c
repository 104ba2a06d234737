// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "code/elf/module.h"
#include "support/host.h"
#include "support/suite.h"
#include "support/temporary.h"

#define SYMBOLS 60000
#define NAME_BYTES (8u << 20)
#define CODE_ADDRESS 0x401000

enum { SECTION_NONE, SECTION_CODE, SECTION_SYMBOLS, SECTION_STRINGS, SECTION_NAMES, SECTIONS };

static const char section_names[] = "\0.text\0.symtab\0.strtab\0.shstrtab";

struct program_file {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Shdr sections[SECTIONS];
	char names[sizeof(section_names)];
	uint8_t code[64];
	Elf64_Sym symbols[SYMBOLS];
	char strings[NAME_BYTES];
};

static void describe(struct program_file *file, size_t section, uint32_t name, uint32_t type, size_t offset,
		     size_t size)
{
	file->sections[section] =
	    (Elf64_Shdr){.sh_name = name, .sh_type = type, .sh_offset = offset, .sh_size = size, .sh_addralign = 1};
}

static void describe_file(struct program_file *file)
{
	file->header =
	    (Elf64_Ehdr){.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			 .e_type = ET_EXEC,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_entry = CODE_ADDRESS,
			 .e_phoff = offsetof(struct program_file, segment),
			 .e_shoff = offsetof(struct program_file, sections),
			 .e_ehsize = sizeof(Elf64_Ehdr),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 1,
			 .e_shentsize = sizeof(Elf64_Shdr),
			 .e_shnum = SECTIONS,
			 .e_shstrndx = SECTION_NAMES};
	file->segment = (Elf64_Phdr){.p_type = PT_LOAD,
				     .p_flags = PF_R | PF_X,
				     .p_offset = offsetof(struct program_file, code),
				     .p_vaddr = CODE_ADDRESS,
				     .p_filesz = sizeof(file->code),
				     .p_memsz = sizeof(file->code),
				     .p_align = 1};
	memcpy(file->names, section_names, sizeof(section_names));
	describe(file, SECTION_CODE, 1, SHT_PROGBITS, offsetof(struct program_file, code), sizeof(file->code));
	file->sections[SECTION_CODE].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	file->sections[SECTION_CODE].sh_addr = CODE_ADDRESS;
	describe(file, SECTION_SYMBOLS, 7, SHT_SYMTAB, offsetof(struct program_file, symbols), sizeof(file->symbols));
	file->sections[SECTION_SYMBOLS].sh_link = SECTION_STRINGS;
	file->sections[SECTION_SYMBOLS].sh_info = 1;
	file->sections[SECTION_SYMBOLS].sh_entsize = sizeof(Elf64_Sym);
	describe(file, SECTION_STRINGS, 15, SHT_STRTAB, offsetof(struct program_file, strings), sizeof(file->strings));
	describe(file, SECTION_NAMES, 23, SHT_STRTAB, offsetof(struct program_file, names), sizeof(file->names));
}

/* Each name is a part of one of megabytes: measuring or comparing them all would take hours. */
START_TEST(long_names_that_overlap)
{
	struct program_file *file = calloc(1, sizeof(*file));
	struct module_frame frames[LIMIT_INLINED_FRAMES];
	struct modules *modules = NULL;
	struct module *module = NULL;

	describe_file(file);
	memset(file->strings + 1, 'a', NAME_BYTES - 2);
	for (uint32_t i = 1; i < SYMBOLS; i++)
		file->symbols[i] = (Elf64_Sym){.st_name = 1 + (i * 7919) % 64,
					       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					       .st_shndx = SECTION_CODE,
					       .st_value = CODE_ADDRESS,
					       .st_size = 16};
	file->symbols[SYMBOLS / 2].st_name = NAME_BYTES - 4;
	ck_assert_ptr_null(modules_create(EM_X86_64, true, &modules));
	ck_assert_ptr_null(modules_open_content(modules, "/long/names", file, sizeof(*file), NULL, 0, 0, &module));
	ck_assert_uint_eq(module_names(module, CODE_ADDRESS + 1, frames), 1);
	ck_assert_str_eq(frames[0].function, "aaa");
	modules_destroy(modules);
}
END_TEST

/* With one function, of 16 bytes. */
static struct module *open_with_function(struct program_file *file, const char *path, const char *name,
					 struct modules **modules_ret)
{
	struct module *module = NULL;

	strcpy(file->strings + 1, name);
	file->symbols[1] = (Elf64_Sym){.st_name = 1,
				       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				       .st_shndx = SECTION_CODE,
				       .st_value = CODE_ADDRESS,
				       .st_size = 16};
	ck_assert_ptr_null(modules_create(EM_X86_64, true, modules_ret));
	ck_assert_ptr_null(modules_open_content(*modules_ret, path, file, sizeof(*file), NULL, 0, 0, &module));
	return module;
}

/* The kind of a static program's function called `name`: its code is a call and, if so, a system call. */
static enum code_special_function special_function_of(const char *name, bool has_system_call)
{
	static const uint8_t call[] = {0xff, 0xd0}, exit_thread[] = {0xb8, 60, 0, 0, 0, 0x0f, 0x05};
	struct program_file *file = calloc(1, sizeof(*file));
	struct modules *modules = NULL;
	struct module *module;
	enum code_special_function special_function;

	describe_file(file);
	memcpy(file->code, call, sizeof(call));
	if (has_system_call)
		memcpy(file->code + sizeof(call), exit_thread, sizeof(exit_thread));
	/* One in the next function does not count. */
	memcpy(file->code + 16, exit_thread, sizeof(exit_thread));
	module = open_with_function(file, "/static", name, &modules);
	special_function = module_special_function(module, CODE_ADDRESS + sizeof(call), true);
	modules_destroy(modules);
	return special_function;
}

/* Any program may have a `clone`; libc's makes the system call. */
START_TEST(statically_linked_libc_is_recognized)
{
	ck_assert_int_eq(special_function_of("clone", true), CODE_SPECIAL_FUNCTION_ENTRY);
	ck_assert_int_eq(special_function_of("clone", false), CODE_SPECIAL_FUNCTION_NONE);
	ck_assert_int_eq(special_function_of("start_thread", true), CODE_SPECIAL_FUNCTION_THREAD_START);
	ck_assert_int_eq(special_function_of("start_thread", false), CODE_SPECIAL_FUNCTION_NONE);
	ck_assert_int_eq(special_function_of("_dlstart", false), CODE_SPECIAL_FUNCTION_ENTRY);
	ck_assert_int_eq(special_function_of("_start", false), CODE_SPECIAL_FUNCTION_ENTRY);
	ck_assert_int_eq(special_function_of("cloned", true), CODE_SPECIAL_FUNCTION_NONE);
}
END_TEST

/* Files in the working directory are not opened: opening a FIFO, even for reading, waits until a process opens it
 * for writing. */
START_TEST(working_directory_is_not_searched)
{
	struct program_file *file = calloc(1, sizeof(*file));
	struct module_frame frames[LIMIT_INLINED_FRAMES];
	char directory[TEMPORARY_PATH_SIZE];
	struct modules *modules = NULL;
	struct module *module;

	alarm(60); /* opened, a FIFO would take as long as the tests may */
	temporary_directory(directory);
	ck_assert_int_eq(chdir(directory), 0);
	ck_assert_int_eq(mkfifo(".debug", 0600), 0);
	ck_assert_int_eq(mkfifo("[vdso].debug", 0600), 0);
	describe_file(file);
	module = open_with_function(file, "[vdso]", "name", &modules);
	ck_assert_uint_eq(module_names(module, CODE_ADDRESS + 1, frames), 1);
	ck_assert_str_eq(frames[0].function, "name");
	modules_destroy(modules);
}
END_TEST

/* The C library's debug file is found by its build-id, and is large and compressed. */
START_TEST(descriptors_of_the_caller_stay_open)
{
	struct module_frame frames[LIMIT_INLINED_FRAMES];
	struct modules *modules = NULL;
	struct module *module;
	Dl_info library;
	int before = open("/dev/null", O_RDONLY);
	bool has_lines;

	ck_assert_int_ne(dladdr((void *)(uintptr_t)qsort, &library), 0);
	ck_assert_int_eq(dup2(before, STDIN_FILENO), STDIN_FILENO);
	ck_assert_ptr_null(modules_create(HOST_MACHINE, true, &modules));
	ck_assert_ptr_null(modules_open(modules, library.dli_fname, NULL, 0, 0, &module));
	ck_assert_uint_ge(module_names(module, (uintptr_t)qsort - (uintptr_t)library.dli_fbase, frames), 1);
	has_lines = frames[0].source_file != NULL;
	modules_destroy(modules);
	ck_assert_int_ge(fcntl(STDIN_FILENO, F_GETFD), 0);
	close(before);
	if (!has_lines)
		SKIP_TEST("the C library has no debug file; on Debian, libc6-dbg");
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("symbols");
	TCase *tests = add_tcase(suite, "symbols");

	tcase_add_tests(tests, long_names_that_overlap, statically_linked_libc_is_recognized,
			working_directory_is_not_searched, descriptors_of_the_caller_stay_open);
	return suite;
}
