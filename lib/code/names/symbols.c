// SPDX-License-Identifier: LGPL-2.1-or-later
/* From an address in a module to the names of its function and inlined functions: DWARF, symbol tables, minidebuginfo.
 */
#include "code/names/symbols.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>

/* libiberty.h requires this; <string.h> declares basename(). */
#define HAVE_DECL_BASENAME 1
#include <demangle.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>

#include "base/compression.h"
#include "base/strings.h"
#include "code/names/dwarf-names.h"

#define DEMANGLE_OPTIONS (DMGL_PARAMS | DMGL_ANSI)

char *demangle(const char *name, bool ada)
{
	char *text;

	if (starts_with(name, "_D"))
		return dlang_demangle(name, DEMANGLE_OPTIONS);
	text = rust_demangle(name, DEMANGLE_OPTIONS);
	if (!text)
		text = cplus_demangle_v3(name, DEMANGLE_OPTIONS);
	if (text || !ada)
		return text;
	text = ada_demangle(name, 0);
	/* The library puts brackets around what is not a name of Ada. */
	if (text && *text == '<') {
		free(text);
		text = NULL;
	}
	return text;
}

char *demangle_type(const char *name)
{
	/* The linker's name of a type that is not exported begins with this. */
	return cplus_demangle_v3(*name == '*' ? name + 1 : name, DEMANGLE_OPTIONS | DMGL_TYPES);
}

/* Maximum number of symbols before an address that are checked, from the nearest downwards. */
#define OVERLAPPING_SYMBOLS 64

struct symbol {
	uint64_t start, end; /* an unsized symbol ends at the next symbol or with its section */
	const char *name;
	uint32_t index;	 /* index in the file's table */
	uint16_t length; /* of the name, at most LIMIT_COMPARED_NAME_BYTES */
	uint8_t rank;	 /* among aliases; lower is better */
	bool sized, measured;
};

struct symbols {
	struct symbols_source source; /* its file may be closed */
	Dwfl *dwfl;
	Dwfl_Module *module;
	Dwarf_Addr bias;   /* of the module in `dwfl` */
	bool loaded;	   /* the symbol table */
	bool debug_loaded; /* dwarf_names */
	Elf *separate;	   /* debug file with sections that libelf cannot expand */
	Dwarf *separate_dwarf;
	VECTOR(struct symbol) table; /* sorted by start, one symbol per start */
	struct dwarf_names *dwarf_names;
	bool debug_unreadable; /* there is debug information, but it is unreadable */
	Dwarf_Addr debug_bias;
	bool ada;	      /* names that nothing else demangles are Ada's */
	VECTOR(char *) texts; /* made for the last lookup */
};

/* libdwfl would also search the working directory for a file named after the program, which may belong to another
 * program. Search only by build-id then, which is verified. */
static int find_debug(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base, const char *path,
		      const char *link, GElf_Word checksum, char **path_ret)
{
	if (!path || *path != '/')
		return dwfl_build_id_find_debuginfo(module, NULL, NULL, 0, NULL, NULL, 0, path_ret);
	return dwfl_standard_find_debuginfo(module, user, name, base, path, link, checksum, path_ret);
}

static int find_no_debug(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base, const char *path,
			 const char *link, GElf_Word checksum, char **path_ret)
{
	(void)module, (void)user, (void)name, (void)base, (void)path, (void)link, (void)checksum, (void)path_ret;
	return -1;
}

static const Dwfl_Callbacks callbacks[] = {
    [SYMBOLS_ALL] = {.find_elf = dwfl_build_id_find_elf,
		     .find_debuginfo = find_debug,
		     .section_address = dwfl_offline_section_address},
    [SYMBOLS_OWN] = {.find_elf = dwfl_build_id_find_elf,
		     .find_debuginfo = find_no_debug,
		     .section_address = dwfl_offline_section_address},
};

struct symbols *symbols_create(const struct symbols_source *source)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));
	int fd = -1;

	if (!symbols)
		return NULL;
	symbols->source = *source;
	symbols->dwfl = dwfl_begin(&callbacks[source->use]);
	if (!symbols->dwfl)
		return symbols;
	if (source->image)
		symbols->module =
		    dwfl_report_offline_memory(symbols->dwfl, source->path, source->path, source->image, source->size);
	else if ((fd = dup(source->fd)) >= 0)
		symbols->module = dwfl_report_elf(symbols->dwfl, source->path, source->path, fd, 0, true);
	/* libdwfl keeps the descriptor only if it could read the file. */
	if (!symbols->module && fd >= 0)
		close(fd);
	dwfl_report_end(symbols->dwfl, NULL, NULL);
	if (symbols->module && !dwfl_module_getelf(symbols->module, &symbols->bias))
		symbols->module = NULL;
	return symbols;
}

static void forget_texts(struct symbols *symbols)
{
	while (symbols->texts.count)
		free(symbols->texts.items[--symbols->texts.count]);
}

void symbols_destroy(struct symbols *symbols)
{
	if (!symbols)
		return;
	forget_texts(symbols);
	vector_deinit(&symbols->texts);
	vector_deinit(&symbols->table);
	dwarf_names_destroy(symbols->dwarf_names);
	(void)dwarf_end(symbols->separate_dwarf);
	(void)elf_end(symbols->separate);
	dwfl_end(symbols->dwfl);
	free(symbols);
}

/* Whether the name is public: not reserved. Mangled names always begin with an underscore. */
static bool is_plain_name(const char *name)
{
	return name[0] != '_' || name[1] == 'Z' || name[1] == 'R';
}

#define RANK_GO 4 /* after all symbols */

/* Functions, and the vtables of C++, which name the types of objects. */
static bool add_symbol(struct symbols *symbols, int index)
{
	GElf_Sym symbol;
	GElf_Addr address;
	GElf_Word section = SHN_UNDEF;
	Elf *elf = NULL;
	GElf_Shdr header;
	const char *name = dwfl_module_getsym_info(symbols->module, index, &symbol, &address, &section, &elf, NULL);
	struct symbol entry;
	bool vtable;
	int type;

	if (!name || !*name || *name == '$' || !strncmp(name, ".L", 2) || section == SHN_UNDEF)
		return true;
	type = GELF_ST_TYPE(symbol.st_info);
	vtable = type == STT_OBJECT && symbol.st_size && starts_with(name, VTABLE_PREFIX);
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE && !vtable)
		return true;
	if (!elf || !gelf_getshdr(elf_getscn(elf, section), &header) || (!(header.sh_flags & SHF_EXECINSTR) && !vtable))
		return true;
	entry = (struct symbol){.start = address - symbols->bias,
				.end = address - symbols->bias + symbol.st_size,
				.name = name,
				.index = (uint32_t)index,
				.length = (uint16_t)strnlen(name, LIMIT_COMPARED_NAME_BYTES),
				.rank = is_plain_name(name) ? 0 : 1,
				.sized = symbol.st_size > 0};
	if (type == STT_GNU_IFUNC)
		entry.rank = 3;
	else if (GELF_ST_BIND(symbol.st_info) == STB_LOCAL)
		entry.rank = 2;
	if (!entry.sized)
		entry.end = entry.start + (header.sh_size - (symbol.st_value - header.sh_addr));
	if (entry.end <= entry.start)
		return true;
	/* Each program of Ada has the first, its libraries have packages that begin with the second. */
	symbols->ada |= !strcmp(name, "adainit") || starts_with(name, "system__");
	return vector_push(&symbols->table, entry);
}

/* Sort by address; the best name first. */
COMPARISON(compare_symbols, struct symbol,
	   order_of(a->start, b->start) ?: order_of(a->rank, b->rank) ?: order_of(a->length, b->length)
	   ?: memcmp(a->name, b->name, a->length) ?: order_of(a->index, b->index))

/* Whether the debug file has the module's load address: it has unless one of them was relocated after linking. */
static bool has_same_addresses(Elf *module, Elf *debug)
{
	GElf_Phdr own, other;
	size_t count, others;

	if (elf_getphdrnum(module, &count) || elf_getphdrnum(debug, &others) || count != others)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (gelf_getphdr(module, (int)i, &own) && gelf_getphdr(debug, (int)i, &other) && own.p_type == PT_LOAD)
			return own.p_vaddr == other.p_vaddr;
	}
	return false;
}

#define COMPRESSED_ZSTD 2 /* ELFCOMPRESS_ZSTD, which older headers lack */

/* False: the section is not compressed with zstd, or damaged. */
static bool expand_section(Elf_Scn *section)
{
	Elf_Data *data;
	GElf_Shdr header;
	GElf_Chdr compression;
	size_t size;
	char *expanded;

	if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS || !(header.sh_flags & SHF_COMPRESSED) ||
	    !gelf_getchdr(section, &compression) || compression.ch_type != COMPRESSED_ZSTD ||
	    !elf_getdata(section, NULL) || !(data = elf_rawdata(section, NULL)) || data->d_size <= sizeof(Elf64_Chdr) ||
	    compression.ch_size / LIMIT_ZSTD_EXPANSION > data->d_size)
		return false;
	size = compression.ch_size;
	expanded = malloc(size + 1);
	if (!expanded || !compress_expand_frame((const char *)data->d_buf + sizeof(Elf64_Chdr),
						data->d_size - sizeof(Elf64_Chdr), expanded, size)) {
		free(expanded);
		return false;
	}
	/* The library has the data twice, and libdw reads the first of these. */
	*elf_getdata(section, NULL) = *data =
	    (Elf_Data){.d_buf = expanded, .d_size = size, .d_type = ELF_T_BYTE, .d_version = EV_CURRENT};
	header.sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
	header.sh_size = size;
	header.sh_addralign = compression.ch_addralign;
	return gelf_update_shdr(section, &header);
}

/* libelf before version 0.189 cannot expand zstd: do that first. The memory of the sections is never freed. False: none
 * is compressed with it. `elf` was opened with ELF_C_READ_MMAP_PRIVATE. */
static bool expand_zstd(Elf *elf)
{
	Elf_Scn *section = NULL;
	bool expanded = false;

	while (gelf_getclass(elf) == ELFCLASS64 && (section = elf_nextscn(elf, section)))
		expanded |= expand_section(section);
	return expanded;
}

static void load_debug(struct symbols *symbols)
{
	CLEANUP(close) int fd = -1;
	const char *path = NULL;
	Dwarf *dwarf;
	Elf *elf;

	if (symbols->debug_loaded || !symbols->module || symbols->source.use != SYMBOLS_ALL)
		return;
	symbols->debug_loaded = true;
	elf = dwfl_module_getelf(symbols->module, &symbols->bias);
	expand_zstd(elf);
	dwarf = dwfl_module_getdwarf(symbols->module, &symbols->debug_bias);
	if (!dwarf && errno != ENOMEM) {
		(void)dwfl_module_info(symbols->module, NULL, NULL, NULL, NULL, NULL, NULL, &path);
		fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
		symbols->separate = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
		if (symbols->separate && expand_zstd(symbols->separate) && has_same_addresses(elf, symbols->separate))
			dwarf = symbols->separate_dwarf = dwarf_begin_elf(symbols->separate, DWARF_C_READ, NULL);
		symbols->debug_bias = symbols->bias;
	}
	if (dwarf)
		symbols->dwarf_names = dwarf_names_create(dwarf);
	else
		symbols->debug_unreadable = dwarf_names_expected(elf);
}

static void load(struct symbols *symbols)
{
	size_t go_count, kept = 0;
	int count;

	if (symbols->loaded)
		return;
	symbols->loaded = true;
	count = symbols->module ? dwfl_module_getsymtab(symbols->module) : 0;
	for (int i = 1; i < count && add_symbol(symbols, i); i++)
		;
	/* A stripped Go program still has the names of its functions. */
	go_count = symbols->source.go ? go_functions_count(symbols->source.go) : 0;
	for (size_t i = 0; i < go_count; i++) {
		struct go_function function;
		struct symbol entry;

		if (!go_functions_get(symbols->source.go, i, &function) || !function.name)
			continue;
		entry = (struct symbol){.start = function.start,
					.end = function.end,
					.name = function.name,
					.length = (uint16_t)strnlen(function.name, LIMIT_COMPARED_NAME_BYTES),
					.rank = RANK_GO,
					.sized = true};
		if (!vector_push(&symbols->table, entry))
			break;
	}
	vector_sort(&symbols->table, compare_symbols);
	/* Keep only the first of several aliases, with the size of the one that has one. */
	array_each(symbol, symbols->table.items, symbols->table.count) {
		struct symbol *first = kept ? &symbols->table.items[kept - 1] : NULL;

		if (!first || first->start != symbol->start) {
			symbols->table.items[kept++] = *symbol;
		} else if (!first->sized && symbol->sized) {
			first->sized = true;
			first->end = symbol->end;
		}
	}
	symbols->table.count = kept;
}

/* Number of symbols that start at or before `address`. */
static size_t symbols_up_to(const struct symbols *symbols, uint64_t address)
{
	return partition_point(symbols->table.count, i, symbols->table.items[i].start <= address);
}

/* The nearest symbol. But if a sized symbol covers the address, that is the function, and an unsized one is a label in
 * it. */
static const struct symbol *find_symbol(const struct symbols *symbols, uint64_t address)
{
	size_t next = symbols_up_to(symbols, address);
	struct symbol *nearest = next ? &symbols->table.items[next - 1] : NULL;

	if (nearest && nearest->sized && address < nearest->end)
		return nearest;
	/* After the end of an unsized function there is another function without a symbol. */
	if (nearest && !nearest->sized && !nearest->measured) {
		nearest->measured = true;
		if (next < symbols->table.count && nearest[1].start < nearest->end)
			nearest->end = nearest[1].start;
		if (symbols->source.measure)
			nearest->end = symbols->source.measure(symbols->source.context, nearest->start, nearest->end);
	}
	for (size_t i = 0; i < OVERLAPPING_SYMBOLS && next > 0; i++) {
		const struct symbol *symbol = &symbols->table.items[--next];

		if (symbol->sized && address < symbol->end)
			return symbol;
	}
	return nearest && address < nearest->end ? nearest : NULL;
}

/* Keep a text, which may be NULL, until the next lookup. */
static const char *keep(struct symbols *symbols, char *text)
{
	if (text && vector_push(&symbols->texts, text))
		return text;
	free(text);
	return NULL;
}

static void set_function(struct symbols *symbols, const char *raw, const char *fallback, struct module_frame *frame)
{
	const char *version = strchr(raw, '@');
	const char *demangled;

	if (version && version != raw)
		raw = keep(symbols, strndup(raw, (size_t)(version - raw)));
	frame->raw_function = raw;
	demangled = raw && symbols->source.demangle ? keep(symbols, demangle(raw, symbols->ada)) : NULL;
	frame->function = demangled ? demangled : fallback && symbols->source.demangle ? fallback : raw;
}

/* Whether a mangled name belongs to the function: the linker may have folded identical functions. */
static bool is_mangled_name_of(const char *mangled, const char *function)
{
	char piece[LIMIT_COMPARED_NAME_BYTES];
	int length;

	if (mangled[0] != '_' || mangled[1] != 'Z')
		return false;
	if (!strncmp(function, "operator", strlen("operator")))
		return true;
	function += *function == '~';
	length = (int)strcspn(function, "<");
	return snprintf(piece, sizeof(piece), "%d%.*s", length, length, function) < (int)sizeof(piece) &&
	       strstr(mangled, piece);
}

/* Whether a linkage name that is not mangled shows the class of a method, as that of .NET's native programs:
 * "App_Program__Leak_1" of "Leak". Characters that assemblers do not accept are underscores there. */
static bool shows_class(const char *linkage_name, const char *name)
{
	for (const char *place = linkage_name; (place = strstr(place, "__")); place++) {
		const char *rest = place + 2, *wanted = name;

		while (*wanted && (*rest == *wanted || (*rest == '_' && !isalnum((unsigned char)*wanted)))) {
			rest++;
			wanted++;
		}
		if (!*wanted && place > linkage_name && (!*rest || (*rest == '_' && isdigit((unsigned char)rest[1]))))
			return true;
	}
	return false;
}

static void set_debug_function(struct symbols *symbols, const struct debug_frame *debug, struct module_frame *frame)
{
	const char *raw = debug->linkage_name ? debug->linkage_name : debug->name, *fallback = NULL;
	uint64_t start = debug->entry + symbols->debug_bias - symbols->bias;
	size_t next = debug->entry ? symbols_up_to(symbols, start) : 0;
	const struct symbol *symbol = next ? &symbols->table.items[next - 1] : NULL;
	const char *clone;

	if (symbol && symbol->start != start)
		symbol = NULL;
	/* Use the symbol of a function whose debug information has no linkage name, without the suffix that the
	 * compiler adds to clones (".constprop.0"). */
	if (symbol && !debug->linkage_name && is_mangled_name_of(symbol->name, debug->name)) {
		set_function(symbols, symbol->name, NULL, frame);
		clone = frame->function && frame->function != frame->raw_function ? strstr(frame->function, " [clone ")
										  : NULL;
		if (clone)
			frame->function = keep(symbols, strndup(frame->function, (size_t)(clone - frame->function)));
		if (frame->function)
			return;
	}
	/* Users may know an exported function by another name than its source: mmap, not __mmap64. */
	if (!is_plain_name(raw) && symbol && symbol->rank == 0)
		return set_function(symbols, symbol->name, NULL, frame);
	if (!debug->linkage_name)
		fallback = keep(symbols, dwarf_names_qualified(symbols->dwarf_names, debug));
	else if (debug->name && !shows_class(debug->linkage_name, debug->name))
		fallback = debug->name;
	set_function(symbols, raw, fallback, frame);
}

size_t symbols_find(struct symbols *symbols, uint64_t address, struct module_frame frames_ret[LIMIT_INLINED_FRAMES])
{
	struct debug_frame debug[LIMIT_INLINED_FRAMES];
	const struct symbol *symbol;
	size_t count = 0;

	forget_texts(symbols);
	load_debug(symbols);
	load(symbols);
	symbol = find_symbol(symbols, address);
	if (symbols->dwarf_names)
		count = dwarf_names_find(symbols->dwarf_names, address + symbols->bias - symbols->debug_bias, debug);
	for (size_t i = 0; i < count; i++) {
		const char *file = debug[i].source_file;
		char *path;

		if (file && *file != '/' && debug[i].directory)
			file = asprintf(&path, "%s/%s", debug[i].directory, file) < 0 ? NULL : keep(symbols, path);
		frames_ret[i] = (struct module_frame){
		    .source_file = file, .source_line = debug[i].source_line, .inlined = debug[i].inlined};
		if (debug[i].name || debug[i].linkage_name)
			set_debug_function(symbols, &debug[i], &frames_ret[i]);
		else if (symbol && i == count - 1)
			set_function(symbols, symbol->name, NULL, &frames_ret[i]);
	}
	if (!count && symbols->source.go) {
		struct go_frame found[LIMIT_INLINED_FRAMES];

		count = go_functions_frames(symbols->source.go, address, found, LIMIT_INLINED_FRAMES);
		for (size_t i = 0; i < count; i++) {
			frames_ret[i] = (struct module_frame){.source_file = found[i].source_file,
							      .source_line = found[i].source_line,
							      .inlined = found[i].inlined};
			if (found[i].name)
				set_function(symbols, found[i].name, NULL, &frames_ret[i]);
		}
	}
	if (count)
		return count;
	frames_ret[0] = (struct module_frame){0};
	if (symbol)
		set_function(symbols, symbol->name, NULL, &frames_ret[0]);
	return 1;
}

const char *symbols_next_special(struct symbols *symbols, size_t *position, uint64_t *start_ret, uint64_t *end_ret)
{
	load(symbols);
	while (*position < symbols->table.count) {
		const struct symbol *symbol = &symbols->table.items[(*position)++];

		if (stack_end_by_name(symbol->name, true) != CODE_SPECIAL_FUNCTION_NONE &&
		    symbols_function_range(symbols, symbol->start, start_ret, end_ret))
			return symbol->name;
	}
	return NULL;
}

bool symbols_function_range(struct symbols *symbols, uint64_t address, uint64_t *start_ret, uint64_t *end_ret)
{
	const struct symbol *symbol;

	load(symbols);
	symbol = find_symbol(symbols, address);
	if (!symbol)
		return false;
	*start_ret = symbol->start;
	*end_ret = symbol->end;
	return true;
}

bool symbols_named_range(struct symbols *symbols, const char *name, uint64_t *start_ret, uint64_t *end_ret)
{
	const struct symbol *symbol;

	load(symbols);
	symbol = array_find(item, symbols->table.items, symbols->table.count, !strcmp(item->name, name));
	return symbol && symbols_function_range(symbols, symbol->start, start_ret, end_ret);
}

enum module_state symbols_debug_state(const struct symbols *symbols)
{
	if (symbols->debug_unreadable)
		return MODULE_POOR_NAMES;
	return symbols->dwarf_names ? dwarf_names_state(symbols->dwarf_names) : MODULE_READABLE;
}

char *symbols_missing_part(const struct symbols *symbols)
{
	return symbols->dwarf_names ? dwarf_names_missing(symbols->dwarf_names) : NULL;
}

const char *symbols_library_version(void)
{
	return dwfl_version(NULL);
}
