// SPDX-License-Identifier: LGPL-2.1-or-later
#include "support/unwind-oracle.h"

#include <fcntl.h>
#include <libunwind.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/vector.h"
#include "code/elf/module.h"
#include "trace/read/reader.h"

/* DWARF's number, which is libunwind's too. */
#if defined(__aarch64__)
enum { STACK_POINTER = 31 };
#else
enum { STACK_POINTER = 7 };
#endif

#define search_unwind_table UNW_OBJ(dwarf_search_unwind_table)
int search_unwind_table(unw_addr_space_t space, unw_word_t ip, unw_dyn_info_t *info, unw_proc_info_t *procedure,
			int need_unwind_info, void *context);

/* An executable mapping, and the file's content for libunwind. */
struct image {
	uint64_t start, end, file_offset;
	char *path;
	struct module *module; /* NULL: not opened yet */
	const uint8_t *bytes;
	size_t size;
	uint64_t bias, table_address, table_count; /* of .eh_frame_hdr, in the process */
	uint64_t header_address;
};

struct sample {
	struct register_values registers;
	uint8_t *stack;
	size_t stack_size;
};

static VECTOR(struct image) images;
static VECTOR(struct sample) samples;
static struct modules *modules;
static unw_addr_space_t space;

static void require(struct mmt_error *error)
{
	if (!error)
		return;
	fprintf(stderr, "%s\n", error->message);
	exit(EXIT_FAILURE);
}

/* ---- the recording ---- */

static void add_image(const struct event_mapping *mapping)
{
	struct image image = {
	    .start = mapping->start, .end = mapping->start + mapping->length, .file_offset = mapping->file_offset};

	if (!(mapping->protection & PROT_EXEC) || *mapping->path != '/')
		return;
	image.path = strdup(mapping->path);
	if (!image.path || !vector_push(&images, image))
		exit(EXIT_FAILURE);
}

static void add_sample(const struct event_stack *stack)
{
	struct sample sample = {.registers.known = stack->registers.known, .stack_size = stack->byte_count};

	if (!stack->bytes || !stack->byte_count)
		return;
	memcpy(sample.registers.values, stack->registers.values, sizeof(sample.registers.values));
	sample.stack = malloc(stack->byte_count);
	memcpy(sample.stack, stack->bytes, stack->byte_count);
	if (!vector_push(&samples, sample))
		exit(EXIT_FAILURE);
}

void unwind_oracle_read(const char *path)
{
	struct reader *reader = NULL;
	struct event event;
	bool end = false;

	require(reader_open(path, NULL, &reader));
	for (;;) {
		require(reader_next(reader, &event, &end));
		if (end)
			break;
		if (event.kind == EVENT_MAPPING)
			add_image(&event.mapping);
		else if (event.kind == EVENT_CALL || event.kind == EVENT_CALL_ENTER || event.kind == EVENT_STACK_DUMP)
			add_sample(&event.call.stack);
	}
	reader_close(reader);
}

static struct image *find_image(uint64_t address)
{
	for (size_t i = images.count; i-- > 0;) {
		if (address >= images.items[i].start && address < images.items[i].end)
			return &images.items[i];
	}
	return NULL;
}

size_t unwind_oracle_count(void)
{
	return samples.count;
}

/* ---- mmtrace ---- */

void unwind_oracle_begin(void)
{
	require(modules_create(HOST_MACHINE, true, &modules));
}

void unwind_oracle_end(void)
{
	modules_destroy(modules);
	for (size_t i = 0; i < images.count; i++) {
		free(images.items[i].path);
		if (images.items[i].bytes)
			munmap((void *)images.items[i].bytes, images.items[i].size);
	}
	for (size_t i = 0; i < samples.count; i++)
		free(samples.items[i].stack);
	vector_deinit(&images);
	vector_deinit(&samples);
}

static bool find_address(uint64_t address, struct image **image_ret, uint64_t *file_address_ret)
{
	struct image *image = *image_ret = find_image(address);

	if (!image)
		return false;
	if (!image->module)
		require(modules_open(modules, image->path, NULL, 0, 0, &image->module));
	return module_address(image->module, image->file_offset + (address - image->start), file_address_ret);
}

bool unwind_oracle_is_program(uint64_t return_address)
{
	struct image *image;
	uint64_t file_address;

	return find_address(return_address - 1, &image, &file_address);
}

static enum code_kind find_code(void *context, uint64_t address, bool is_return_address, struct code_place *place_ret)
{
	struct image *image;
	uint64_t file_address;

	(void)context;
	if (!find_address(address - is_return_address, &image, &file_address))
		return CODE_NONE;
	*place_ret = module_place(image->module, file_address + is_return_address, is_return_address);
	return CODE_NATIVE;
}

static int follows_call(void *context, uint64_t address)
{
	struct image *image;
	uint64_t file_address;

	(void)context;
	return find_address(address - 1, &image, &file_address) ? module_follows_call(image->module, file_address + 1)
								: -1;
}

struct unwind_input unwind_oracle_input(size_t number)
{
	const struct sample *sample = &samples.items[number];

	return (struct unwind_input){
	    .registers = &sample->registers, .stack = sample->stack, .stack_size = sample->stack_size};
}

/* As reports do it: results are cached, because the mappings do not change. */
struct unwind_callbacks unwind_oracle_callbacks(void)
{
	return (struct unwind_callbacks){.find = find_code, .follows_call = follows_call};
}

/* ---- libunwind, with the same data ---- */

/* The complete file, mapped, and the offset of its table. */
static bool open_image(struct image *image)
{
	const Elf64_Ehdr *header;
	const Elf64_Phdr *segments;
	int fd = open(image->path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	uint64_t first_address = 0;

	if (image->bytes)
		return image->table_count > 0;
	if (fd < 0)
		return false;
	if (fstat(fd, &status)) {
		close(fd);
		return false;
	}
	image->size = (size_t)status.st_size;
	image->bytes = mmap(NULL, image->size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	header = (const Elf64_Ehdr *)image->bytes;
	segments = (const Elf64_Phdr *)(image->bytes + header->e_phoff);
	for (size_t i = 0; i < header->e_phnum; i++) {
		uint64_t offset = image->file_offset - (segments[i].p_offset & ~4095ULL);

		if (segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_X && offset < segments[i].p_filesz)
			first_address = (segments[i].p_vaddr & ~4095ULL) + offset;
	}
	image->bias = image->start - first_address;
	for (size_t i = 0; i < header->e_phnum; i++) {
		const uint8_t *table = image->bytes + segments[i].p_offset;

		/* As every linker writes it: a sorted table of 4-byte offsets. */
		if (segments[i].p_type != PT_GNU_EH_FRAME || table[2] != 0x03 || table[3] != 0x3b)
			continue;
		image->header_address = image->bias + segments[i].p_vaddr;
		image->table_address = image->header_address + 12;
		image->table_count = *(const uint32_t *)(table + 8);
	}
	return image->table_count > 0;
}

static int find_procedure(unw_addr_space_t its_space, unw_word_t ip, unw_proc_info_t *procedure, int need_unwind_info,
			  void *context)
{
	struct image *image = find_image(ip);
	unw_dyn_info_t info = {.format = UNW_INFO_FORMAT_REMOTE_TABLE};

	if (!image || !open_image(image))
		return -UNW_ENOINFO;
	info.start_ip = image->start;
	info.end_ip = image->end;
	info.u.rti.segbase = image->header_address;
	info.u.rti.table_data = image->table_address;
	info.u.rti.table_len = image->table_count * 8 / sizeof(unw_word_t);
	return search_unwind_table(its_space, ip, &info, procedure, need_unwind_info, context);
}

static void put_procedure(unw_addr_space_t its_space, unw_proc_info_t *procedure, void *context)
{
	(void)its_space;
	(void)procedure;
	(void)context;
}

static int no_dynamic_list(unw_addr_space_t its_space, unw_word_t *address_ret, void *context)
{
	(void)its_space;
	(void)address_ret;
	(void)context;
	return -UNW_ENOINFO;
}

/* A word of the stack, or of a file: the mapping of its rows is beside the code's. */
static int access_memory(unw_addr_space_t its_space, unw_word_t address, unw_word_t *value, int write, void *context)
{
	const struct sample *sample = context;
	uint64_t offset = address - sample->registers.values[STACK_POINTER];

	(void)its_space;
	if (write)
		return -UNW_EINVAL;
	if (offset + sizeof(*value) <= sample->stack_size && offset < sample->stack_size) {
		memcpy(value, sample->stack + offset, sizeof(*value));
		return 0;
	}
	for (size_t i = 0; i < images.count; i++) {
		const struct image *image = &images.items[i];
		const Elf64_Ehdr *header = (const Elf64_Ehdr *)image->bytes;
		const Elf64_Phdr *segments;

		if (!image->bytes || address - image->bias >= image->size + (1u << 22))
			continue;
		segments = (const Elf64_Phdr *)(image->bytes + header->e_phoff);
		for (size_t j = 0; j < header->e_phnum; j++) {
			uint64_t within = address - image->bias - segments[j].p_vaddr;

			if (segments[j].p_type != PT_LOAD || within + sizeof(*value) > segments[j].p_filesz)
				continue;
			memcpy(value, image->bytes + segments[j].p_offset + within, sizeof(*value));
			return 0;
		}
	}
	return -UNW_EINVAL;
}

static int access_register(unw_addr_space_t its_space, unw_regnum_t number, unw_word_t *value, int write, void *context)
{
	const struct sample *sample = context;

	(void)its_space;
	if (write || number < 0 || number >= UNWIND_REGISTERS || !(sample->registers.known >> number & 1))
		return -UNW_EBADREG;
	*value = sample->registers.values[number];
	return 0;
}

void unwind_oracle_open_libunwind(void)
{
	/* The others are for floating point, resuming and names, which are not used. */
	static unw_accessors_t accessors = {
	    .find_proc_info = find_procedure,
	    .put_unwind_info = put_procedure,
	    .get_dyn_info_list_addr = no_dynamic_list,
	    .access_mem = access_memory,
	    .access_reg = access_register,
	};

	space = unw_create_addr_space(&accessors, 0);
	unw_set_caching_policy(space, UNW_CACHE_GLOBAL);
}

void unwind_oracle_close_libunwind(void)
{
	unw_destroy_addr_space(space);
}

size_t unwind_oracle_libunwind(size_t number, uint64_t addresses_ret[LIMIT_UNWIND_FRAMES])
{
	struct sample *sample = &samples.items[number];
	unw_cursor_t cursor;
	unw_word_t address;
	size_t count = 0;

	if (unw_init_remote(&cursor, space, sample))
		return 0;
	do {
		if (unw_get_reg(&cursor, UNW_REG_IP, &address) || !address || count == LIMIT_UNWIND_FRAMES)
			break;
		addresses_ret[count++] = address;
	} while (unw_step(&cursor) > 0);
	return count;
}
