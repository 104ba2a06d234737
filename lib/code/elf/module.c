// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/elf/module.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <elfutils/libdwelf.h>
#include <gelf.h>

#include "base/map.h"
#include "base/strings.h"
#include "code/names/names-helper.h"

/* Opens an ELF file, verifies its build-id, and provides its segments. */

struct elf_segment {
	uint64_t file_offset, file_size, address;
	bool executable;
};

struct elf_file {
	enum module_state state;
	Elf *elf;	      /* NULL unless MODULE_READABLE */
	struct stat identity; /* of the file that was opened */
	void *image;	      /* content that is not in a file (vdso, a copy in the recording), else NULL */
	size_t image_size;
	VECTOR(struct elf_segment) segments;
	uint64_t entry;	      /* entry point; 0: a library */
	bool has_interpreter; /* dynamically linked */
};

#define PAGE_MASK 4095ULL /* the smallest page size; mappings begin and end on page boundaries */

/* Open a regular file. Returns a descriptor or -1. Never blocks on a FIFO and never opens a device. */
static int open_regular(const char *path, struct stat *status_ret, enum module_state *state_ret)
{
	int fd;

	*state_ret = MODULE_MISSING;
	if (stat(path, status_ret))
		return -1;
	if (!S_ISREG(status_ret->st_mode)) {
		*state_ret = MODULE_NOT_ELF;
		return -1;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	if (fstat(fd, status_ret) || !S_ISREG(status_ret->st_mode)) {
		close(fd);
		*state_ret = MODULE_NOT_ELF;
		return -1;
	}
	return fd;
}

/* Recorders that always store 20 bytes pad a shorter build-id with zeros. */
static bool equal_build_ids(const uint8_t *found, size_t found_size, const uint8_t *recorded, size_t recorded_size)
{
	if (!found_size || found_size > recorded_size || memcmp(found, recorded, found_size))
		return false;
	for (size_t i = found_size; i < recorded_size; i++) {
		if (recorded[i])
			return false;
	}
	return true;
}

static bool read_segments(struct elf_file *file)
{
	size_t count;

	if (elf_getphdrnum(file->elf, &count))
		return true;
	for (size_t i = 0; i < count && i < LIMIT_SEGMENTS; i++) {
		GElf_Phdr header;

		if (!gelf_getphdr(file->elf, (int)i, &header))
			continue;
		file->has_interpreter |= header.p_type == PT_INTERP;
		if (header.p_type != PT_LOAD || header.p_vaddr + header.p_filesz < header.p_vaddr ||
		    header.p_offset + header.p_filesz < header.p_offset)
			continue;
		if (!vector_push(&file->segments, ((struct elf_segment){.file_offset = header.p_offset,
									.file_size = header.p_filesz,
									.address = header.p_vaddr,
									.executable = header.p_flags & PF_X})))
			return false;
	}
	return true;
}

/* Find the build-id by the sections, as the library does, or else where the running module has it: the sections may be
 * damaged. */
static size_t find_build_id(Elf *elf, const void **id_ret)
{
	ssize_t size = dwelf_elf_gnu_build_id(elf, id_ret);
	GElf_Phdr header;
	size_t count;

	if (size > 0)
		return (size_t)size;
	if (elf_getphdrnum(elf, &count))
		return 0;
	for (size_t i = 0; i < count && i < LIMIT_SEGMENTS && gelf_getphdr(elf, (int)i, &header); i++) {
		size_t position = 0, name, description;
		Elf_Data *data;
		GElf_Nhdr note;

		if (header.p_type != PT_NOTE)
			continue;
		data = elf_getdata_rawchunk(elf, (int64_t)header.p_offset, header.p_filesz,
					    header.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
		while (data && (position = gelf_getnote(data, position, &note, &name, &description))) {
			if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof("GNU") || !note.n_descsz ||
			    memcmp((const char *)data->d_buf + name, "GNU", sizeof("GNU")))
				continue;
			*id_ret = (const char *)data->d_buf + description;
			return note.n_descsz;
		}
	}
	return 0;
}

/* Takes ownership of `elf`, which may be NULL. errno was 0 before it was opened: only that shows that memory ran out.
 */
static struct mmt_error *accept_elf(struct elf_file *file, Elf *elf, uint16_t machine, const uint8_t *build_id,
				    size_t build_id_size)
{
	const void *found = NULL;
	GElf_Ehdr header;
	GElf_Phdr first;
	size_t count;

	file->state = MODULE_BROKEN;
	if (!elf)
		return errno == ENOMEM ? &error_no_memory : NULL;
	errno = 0; /* libelf may have done without */
	if (elf_kind(elf) != ELF_K_ELF)
		file->state = MODULE_NOT_ELF;
	else if (gelf_getehdr(elf, &header) && !elf_getphdrnum(elf, &count) && count && gelf_getphdr(elf, 0, &first))
		file->state = header.e_machine == machine ? MODULE_READABLE : MODULE_OTHER_BUILD;
	if (file->state == MODULE_READABLE && build_id_size) {
		size_t found_size = find_build_id(elf, &found);

		if (!equal_build_ids(found, found_size, build_id, build_id_size))
			file->state = MODULE_OTHER_BUILD;
	}
	if (file->state != MODULE_READABLE) {
		elf_end(elf);
		return errno == ENOMEM ? &error_no_memory : NULL;
	}
	file->elf = elf;
	file->entry = header.e_entry;
	return read_segments(file) ? NULL : &error_no_memory;
}

/* This process has the vdso of the running kernel mapped. Its size is that of its headers and sections. */
static struct mmt_error *open_vdso(uint16_t machine, const uint8_t *build_id, size_t build_id_size,
				   struct elf_file *file)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);

	file->state = MODULE_MISSING;
	if (!header || header->e_ident[EI_CLASS] != ELFCLASS64)
		return NULL;
	file->image_size = (size_t)header->e_shoff + (size_t)header->e_shentsize * header->e_shnum;
	if (file->image_size > LIMIT_VDSO_BYTES || file->image_size < sizeof(*header))
		return NULL;
	file->image = malloc(file->image_size);
	if (!file->image)
		return &error_no_memory;
	memcpy(file->image, header, file->image_size);
	return accept_elf(file, elf_memory(file->image, file->image_size), machine, build_id, build_id_size);
}

/* No build-id: accept any. `state` describes problems with the file; the only error returned is out of memory. Without
 * `helper`, which tries the file first, nothing is known of its file system. */
static struct mmt_error *elf_file_open(const char *path, uint16_t machine, const uint8_t *build_id,
				       size_t build_id_size, struct names_helper *helper, struct elf_file *file)
{
	size_t length = mapped_path_length(path);
	CLEANUP(free) char *file_path = NULL;
	CLEANUP(close) int fd = -1;
	Elf *elf;

	if (!strcmp(path, "[vdso]"))
		return open_vdso(machine, build_id, build_id_size, file);
	file->state = MODULE_NOT_ELF;
	/* Names of memory that is not backed by a file on disk: [heap], //anon, memfds. */
	if (path[0] != '/' || path[1] == '/' || !strncmp(path, "/memfd:", 7) || !strncmp(path, "/SYSV", 5))
		return NULL;
	file->state = MODULE_MISSING;
	/* Another file may have the name of a deleted one now: use it only if it is the same build. */
	if (path[length] && !build_id_size)
		return NULL;
	file_path = strndup(path, length);
	if (!file_path)
		return &error_no_memory;
	if (helper && !names_helper_file_answers(helper, file_path)) {
		file->state = MODULE_SILENT;
		return NULL;
	}
	fd = open_regular(file_path, &file->identity, &file->state);
	if (fd < 0)
		return NULL;
	errno = 0;
	elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	/* Map the file so that no descriptor is needed: a report may use thousands of files. */
	if (elf && elf_cntl(elf, ELF_C_FDREAD)) {
		elf_end(elf);
		elf = NULL;
	}
	return accept_elf(file, elf, machine, build_id, build_id_size);
}

static void elf_file_close(struct elf_file *file)
{
	elf_end(file->elf);
	free(file->image);
	vector_deinit(&file->segments);
	*file = (struct elf_file){.state = MODULE_MISSING};
}

/* The code of the segment that contains `address`, or ends there, as far as the file has it; *offset_ret: offset of the
 * address. */
static struct bytes find_code(const struct elf_file *file, uint64_t address, bool may_end_it, uint64_t *offset_ret)
{
	size_t raw_size;
	const char *raw = file->elf ? elf_rawfile(file->elf, &raw_size) : NULL;

	array_while(segment, file->segments.items, file->segments.count, raw) {
		uint64_t offset = address - segment->address;
		struct bytes bytes = bytes_over(raw, raw_size);

		if (!segment->executable || offset >= segment->file_size + may_end_it || offset < may_end_it)
			continue;
		bytes_skip(&bytes, (size_t)segment->file_offset);
		*offset_ret = offset;
		return bytes_sub(&bytes, smaller_of(segment->file_size, bytes_left(&bytes)));
	}
	return bytes_over(NULL, 0);
}

/* Up to `size` bytes of code that end before `address`. Returns their number; 0: none. Borrowed. */
static size_t elf_file_code_before(const struct elf_file *file, uint64_t address, size_t size, const uint8_t **code_ret)
{
	uint64_t offset = 0;
	struct bytes code = find_code(file, address, true, &offset);

	size = offset < size ? (size_t)offset : size;
	bytes_skip(&code, (size_t)offset - size);
	*code_ret = bytes_take(&code, size);
	return *code_ret ? size : 0;
}

struct module {
	bool copied; /* the file is in the recording */
	struct modules *modules;
	char *path;
	struct elf_file file;
	struct cfi *cfi;	 /* NULL: not loaded yet */
	struct go_functions *go; /* NULL: none, or not loaded yet */
	bool go_loaded;
	struct remote_names names;
	uint8_t *build_id; /* it was opened with these */
	size_t build_id_size;
	uint64_t inode;
	int entry_named;      /* whether a function is at the entry point; -1: unknown */
	int contains_coreclr; /* -1: unknown */
	struct map places;    /* address and is_return_address -> index into `known_places` */
	VECTOR(struct code_place) known_places;
	struct map calls; /* address -> answer of module_follows_call(), plus 1 */
};

struct modules {
	uint16_t machine;
	bool demangle;
	uint64_t recorded_until_ns; /* 0: unknown */
	bool other_kernel;	    /* recorded on a different kernel from the running one */
	struct disassembly *disassembly;
	struct names_helper *helper;
	struct intern keys; /* path and build-id, or inode */
	struct map by_key;  /* id -> module */
	VECTOR(struct module *) items;
	struct arena rows; /* struct deduced_row of places */
};

static void module_destroy(struct module *module)
{
	vector_deinit(&module->names.special);
	free(module->build_id);
	cfi_destroy(module->cfi);
	free(module->go);
	elf_file_close(&module->file);
	map_deinit(&module->places);
	map_deinit(&module->calls);
	vector_deinit(&module->known_places);
	free(module->path);
	free(module);
}

void modules_destroy(struct modules *modules)
{
	if (!modules)
		return;
	vector_deinit_each(&modules->items, item, module_destroy(*item));
	intern_deinit(&modules->keys);
	map_deinit(&modules->by_key);
	names_helper_destroy(modules->helper);
	disassembly_destroy(modules->disassembly);
	arena_deinit(&modules->rows);
	free(modules);
}

int modules_names_failure(const struct modules *modules)
{
	return names_helper_failure(modules->helper);
}

const char *modules_type_name(const struct modules *modules, const char *name)
{
	const char *type = modules->demangle ? names_helper_type(modules->helper, name) : NULL;

	return type ? type : name;
}

void modules_recorded(struct modules *modules, uint64_t until_ns, const char *kernel)
{
	struct utsname running;

	modules->recorded_until_ns = until_ns;
	modules->other_kernel = *kernel && !uname(&running) && strcmp(running.release, kernel) != 0;
}

/* Without a recorded build-id, the modification time and the inode show that the file has changed. Do not compare the
 * device: on overlayfs and btrfs the kernel's mappings and stat() report different devices. */
static void refuse_other_file(const struct modules *modules, uint64_t inode, struct elf_file *file)
{
	const struct timespec *time = &file->identity.st_mtim;
	uint64_t written_ns = (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
	enum module_state state = MODULE_READABLE;

	if (file->image) /* of the vdso */
		state = modules->other_kernel ? MODULE_OTHER_BUILD : MODULE_READABLE;
	else if ((modules->recorded_until_ns && written_ns > modules->recorded_until_ns) ||
		 (inode && inode != file->identity.st_ino))
		state = MODULE_CHANGED;
	if (file->state != MODULE_READABLE || state == MODULE_READABLE)
		return;
	elf_file_close(file);
	file->state = state;
}

struct mmt_error *modules_open_content(struct modules *modules, const char *path, void *content, size_t size,
				       const uint8_t *build_id, size_t build_id_size, uint64_t inode,
				       struct module **module_ret)
{
	struct module *module = calloc(1, sizeof(*module));
	struct mmt_error *error;

	if (!module) {
		free(content);
		return &error_no_memory;
	}
	*module = (struct module){.copied = content,
				  .modules = modules,
				  .path = strdup(path),
				  .file = {.image = content, .image_size = size},
				  .build_id = malloc(build_id_size + 1),
				  .build_id_size = build_id_size,
				  .inode = inode,
				  .entry_named = -1,
				  .contains_coreclr = -1};
	if (module->build_id && build_id_size)
		memcpy(module->build_id, build_id, build_id_size);
	errno = 0;
	error = content
		    ? accept_elf(&module->file, elf_memory(content, size), modules->machine, build_id, build_id_size)
		    : elf_file_open(path, modules->machine, build_id, build_id_size, modules->helper, &module->file);
	if (!error && !content && !build_id_size)
		refuse_other_file(modules, inode, &module->file);
	if (!error && (!module->path || !module->build_id || !vector_push(&modules->items, module)))
		error = &error_no_memory;
	if (error) {
		module_destroy(module);
		return error;
	}
	module->names.number = (uint32_t)modules->items.count;
	*module_ret = module;
	return NULL;
}

struct mmt_error *modules_open(struct modules *modules, const char *path, const uint8_t *build_id, size_t build_id_size,
			       uint64_t inode, struct module **module_ret)
{
	size_t path_size = strlen(path) + 1;
	size_t identity_size = build_id_size ? build_id_size : sizeof(inode);
	size_t key_size = path_size + identity_size;
	CLEANUP(free) char *key = malloc(key_size);
	struct mmt_error *error;
	uint32_t id;

	if (!key)
		return &error_no_memory;
	memcpy(key, path, path_size);
	memcpy(key + path_size, build_id_size ? (const void *)build_id : &inode, identity_size);
	id = intern_put(&modules->keys, key, key_size);
	if (id == INTERN_NONE)
		return &error_no_memory;
	*module_ret = map_get_pointer(&modules->by_key, id);
	if (*module_ret)
		return NULL;
	error = modules_open_content(modules, path, NULL, 0, build_id, build_id_size, inode, module_ret);
	if (!error && !map_put_pointer(&modules->by_key, id, *module_ret))
		return &error_no_memory;
	return error_context(error, "%s", path);
}

enum module_state module_state(const struct module *module)
{
	return module->file.state;
}

enum module_state module_known_state(const struct module *module)
{
	return module->file.state == MODULE_READABLE ? module->names.state : module->file.state;
}

char *module_missing_part(struct module *module)
{
	return remote_names_missing_part(module->modules->helper, &module->names);
}

bool module_address(const struct module *module, uint64_t file_offset, uint64_t *address_ret)
{
	int best = 0;

	array_each(segment, module->file.segments.items, module->file.segments.count) {
		uint64_t rounded = segment->file_offset & ~PAGE_MASK;
		uint64_t size = segment->file_offset - rounded + segment->file_size;
		int rank = 0;

		/* A segment matches by its bytes, or less well after rounding to pages. Prefer executable ones. */
		if (file_offset >= segment->file_offset && file_offset - segment->file_offset < segment->file_size)
			rank = 3 + segment->executable;
		else if (file_offset >= rounded && file_offset - rounded < ((size + PAGE_MASK) & ~PAGE_MASK))
			rank = 1 + segment->executable;
		if (rank > best) {
			best = rank;
			*address_ret = segment->address + (file_offset - segment->file_offset);
		}
	}
	return best > 0;
}

const struct go_functions *module_go(struct module *module)
{
	if (!module->go_loaded && module->file.state == MODULE_READABLE)
		module->go = go_functions_create(module->file.elf);
	module->go_loaded = true;
	return module->go;
}

/* NULL: none, or out of memory. */
static struct cfi *cfi_of(struct module *module)
{
	if (module->file.state != MODULE_READABLE)
		return NULL;
	if (!module->cfi)
		module->cfi = cfi_create(module->file.elf);
	return module->cfi;
}

const struct cfi_row *module_cfi(struct module *module, uint64_t address)
{
	struct cfi *cfi = cfi_of(module);

	return cfi ? cfi_find(cfi, address) : NULL;
}

/* Up to `size` bytes of code from `address` on. Returns their number; 0: none. Borrowed. */
static size_t read_code(void *context, uint64_t address, size_t size, const uint8_t **code_ret)
{
	const struct module *module = context;
	uint64_t offset = 0;
	struct bytes code = find_code(&module->file, address, false, &offset);

	bytes_skip(&code, (size_t)offset);
	size = size < bytes_left(&code) ? size : bytes_left(&code);
	*code_ret = bytes_take(&code, size);
	return *code_ret ? size : 0;
}

/* Use the function's end from the unwind table, or else from its instructions. */
static uint64_t measure_function(void *context, uint64_t start, uint64_t end)
{
	struct module *module = context;
	const struct analyzed_code code = {.read = read_code, .context = module};
	struct cfi *cfi = cfi_of(module);
	uint64_t described_end = UINT64_MAX;
	bool described = cfi && cfi_function_range(cfi, start, &described_end);

	end = smaller_of(end, described_end);
	return described ? end : function_range_find(module->modules->disassembly, &code, start, end);
}

/* A copy in the recording goes to the helper; another file is opened there again, with the same checks. */
static void describe_module(const struct remote_names *names, struct buffer *description)
{
	const struct module *module =
	    (const struct module *)(const void *)((const char *)names - offsetof(struct module, names));

	buffer_put_string(description, module->path);
	buffer_put_u64(description, module->inode);
	buffer_put_u64(description, module->build_id_size);
	buffer_put(description, module->build_id, module->build_id_size);
	buffer_put_u64(description, module->copied ? module->file.image_size : 0);
	if (module->copied)
		buffer_put(description, module->file.image, module->file.image_size);
}

/* NULL: it cannot be opened, or has no readable names. */
static struct symbols *open_symbols(struct module *module, enum symbols_use use)
{
	const struct elf_file *file = &module->file;
	struct symbols_source source = {.path = module->path,
					.image = file->image,
					.size = file->image_size,
					.demangle = module->modules->demangle,
					.use = use,
					.measure = measure_function,
					.context = module};
	CLEANUP(free) char *path = strndup(module->path, mapped_path_length(module->path));
	CLEANUP(close) int fd = -1;

	if (file->state != MODULE_READABLE || !path)
		return NULL;
	if (!file->image)
		fd = open_regular(path, &(struct stat){0}, &(enum module_state){0});
	if (!file->image && fd < 0)
		return NULL;
	source.fd = fd;
	source.go = module_go(module);
	return symbols_create(&source);
}

static struct symbols *open_in_helper(void *context, struct bytes *description, enum symbols_use use)
{
	struct modules *modules = context;
	const char *path = bytes_string(description);
	uint64_t inode = bytes_u64(description);
	struct bytes build_id = bytes_sub(description, bytes_u64(description));
	size_t build_id_size = bytes_left(&build_id), size = bytes_u64(description);
	const void *bytes = bytes_take(description, size);
	void *content = size && bytes ? malloc(size) : NULL;
	struct module *module = NULL;
	struct mmt_error *error;

	if (size && !content)
		return NULL;
	if (content)
		memcpy(content, bytes, size);
	modules->helper = NULL; /* that is this process */
	error = modules_open_content(modules, path, content, size, build_id.position, build_id_size, inode, &module);
	mmt_error_destroy(error);
	return error ? NULL : open_symbols(module, use);
}

struct mmt_error *modules_create(uint16_t elf_machine, bool demangle, struct modules **modules_ret)
{
	struct modules *modules = calloc(1, sizeof(*modules));

	if (!modules)
		return &error_no_memory;
	(void)elf_version(EV_CURRENT); /* libelf opens no file before this call */
	modules->machine = elf_machine;
	modules->demangle = demangle;
	modules->disassembly = disassembly_create(elf_machine);
	modules->helper = names_helper_create(&(struct names_calls){describe_module, open_in_helper, modules});
	if (!modules->disassembly || !modules->helper) {
		modules_destroy(modules);
		return &error_no_memory;
	}
	*modules_ret = modules;
	return NULL;
}

/* A module's entry function is shorter than this, and its callee never returns. */
#define ENTRY_SIZE 64

/* Whether a function with a libc name is really libc's. A statically linked module contains libc, but
 * also code of its own with such names: only code that starts or ends a thread itself counts. */
static bool is_of_c_library(struct module *module, const struct special_function *function)
{
	const uint8_t *code = NULL;
	size_t size;

	if (stack_end_is_c_library(module->path))
		return true;
	if (!module->file.entry || module->file.has_interpreter)
		return false;
	if (function->name[0] == '_')
		return true;
	size = read_code(module, function->start, function->end - function->start, &code);
	return stack_end_has_system_call(module->modules->machine, code, size);
}

enum code_special_function module_special_function(struct module *module, uint64_t address, bool is_return_address)
{
	const struct special_function *function;
	uint64_t start, end;

	if (module->file.state != MODULE_READABLE)
		return CODE_SPECIAL_FUNCTION_NONE;
	function = remote_names_special(module->modules->helper, &module->names, address - is_return_address);
	if (function)
		return stack_end_by_name(function->name, is_of_c_library(module, function));
	if (!module->file.entry || address - module->file.entry >= ENTRY_SIZE)
		return CODE_SPECIAL_FUNCTION_NONE;
	if (module->entry_named < 0)
		module->entry_named =
		    remote_names_range(module->modules->helper, &module->names, NULL, module->file.entry, &start, &end);
	return module->entry_named ? CODE_SPECIAL_FUNCTION_NONE : CODE_SPECIAL_FUNCTION_ENTRY;
}

bool module_contains_coreclr(struct module *module)
{
	uint64_t start, end;

	if (module->contains_coreclr < 0)
		module->contains_coreclr = module->file.state == MODULE_READABLE &&
					   remote_names_range(module->modules->helper, &module->names,
							      "MetaDataGetDispenser", 0, &start, &end);
	return module->contains_coreclr;
}

const struct cfi_row *module_frame_row(struct module *module, const char *function)
{
	uint64_t start, end;

	if (module->file.state != MODULE_READABLE ||
	    !remote_names_range(module->modules->helper, &module->names, function, 0, &start, &end))
		return NULL;
	return module_cfi(module, start + (end - start) / 2);
}

static bool function_begins(void *context, uint64_t address)
{
	struct module *module = context;
	uint64_t start, end;

	return module->file.state == MODULE_READABLE &&
	       remote_names_range(module->modules->helper, &module->names, NULL, address, &start, &end) &&
	       start == address;
}

static const struct cfi_row *keep_row(struct modules *modules, const struct deduced_row *deduced)
{
	struct deduced_row *kept = arena_alloc(&modules->rows, 1, sizeof(*kept));

	if (!kept)
		return NULL;
	*kept = *deduced;
	return deduced_row_get(kept);
}

struct code_place module_place(struct module *module, uint64_t address, bool is_return_address)
{
	const struct analyzed_code code = {.read = read_code, .begins = function_begins, .context = module};
	uint64_t key = address << 1 | is_return_address;
	const uint64_t *known = map_get(&module->places, key);
	const struct go_functions *go;
	struct code_place place = {0};
	struct deduced_row deduced;
	bool keeps_frame_pointer;

	if (known)
		return module->known_places.items[*known];
	go = module_go(module);
	if (go && go_functions_row(go, address - is_return_address, &deduced, &keeps_frame_pointer)) {
		place.row = keep_row(module->modules, &deduced);
		if (place.row)
			place.frame_pointer = keeps_frame_pointer ? CODE_FRAME_POINTER_KEPT : CODE_FRAME_POINTER_NONE;
	}
	if (!place.row)
		place.row = module_cfi(module, address - is_return_address);
	if (!place.row && module->file.state == MODULE_READABLE &&
	    deduced_row_find(module->modules->disassembly, &code, address, is_return_address, false, &deduced))
		place.row = keep_row(module->modules, &deduced);
	if (is_return_address) {
		const uint8_t *at = NULL, *before = NULL;
		size_t size = read_code(module, address, SPECIAL_FUNCTIONS_CODE_MAX, &at);
		size_t before_size =
		    elf_file_code_before(&module->file, address, SPECIAL_FUNCTIONS_CODE_BEFORE, &before);

		place.special_function = stack_end_by_code(module->modules->machine, at, size, before, before_size);
	}
	if (place.special_function == CODE_SPECIAL_FUNCTION_NONE && go)
		place.special_function = module_special_function(module, address, is_return_address);
	if (vector_push(&module->known_places, place))
		(void)map_put(&module->places, key, module->known_places.count - 1);
	return place;
}

struct disassembly *modules_disassembly(struct modules *modules)
{
	return modules->disassembly;
}

int module_follows_call(struct module *module, uint64_t address)
{
	const uint64_t *known = map_get(&module->calls, address);
	const uint8_t *code = NULL;
	size_t size;
	int answer;

	if (known)
		return (int)*known - 1;
	size = elf_file_code_before(&module->file, address, DISASSEMBLY_INSTRUCTION_MAX, &code);
	answer = size ? disassembly_ends_with_call(module->modules->disassembly, code, size) : -1;
	/* Only for addresses in the file: their number is limited. */
	if (size)
		(void)map_put(&module->calls, address, (uint64_t)(answer + 1));
	return answer;
}

size_t module_names(struct module *module, uint64_t for_lookup, struct module_frame frames_ret[LIMIT_INLINED_FRAMES])
{
	if (module->file.state == MODULE_READABLE)
		return remote_names_find(module->modules->helper, &module->names, for_lookup, frames_ret);
	frames_ret[0] = (struct module_frame){0};
	return 1;
}

COMPARISON(compare_modules, struct names_query, order_of(a->names->number, b->names->number))

void modules_fetch_names(struct modules *modules, const struct module_query *queries, size_t count)
{
	struct names_query wanted[MODULE_FETCH_MAX];
	size_t number = 0;

	for (size_t i = 0; i < count && number < MODULE_FETCH_MAX; i++) {
		if (queries[i].module->file.state == MODULE_READABLE)
			wanted[number++] = (struct names_query){&queries[i].module->names, queries[i].address};
	}
	qsort(wanted, number, sizeof(*wanted), compare_modules);
	remote_names_fetch(modules->helper, wanted, number);
}
