/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Two plugins leak. One stays loaded; the other is closed before the recording ends and its addresses are reused, so
 * that its name must come from what was mapped at the time of the leak.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>

#include "support/stage.h"

enum { LEAKS = 6, BLOCK_PAGES = 16 };

typedef void *(*plugin_function)(size_t);

static plugin_function open_plugin(const char *directory, const char *name, void **handle_ret)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/libplugin-%s.so", directory, name);
	*handle_ret = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!*handle_ret)
		fprintf(stderr, "%s\n", dlerror());
	stage_need(*handle_ret, "dlopen");
	snprintf(path, sizeof(path), "plugin_%s_leak", name);
	return (plugin_function)stage_need(dlsym(*handle_ret, path), path);
}

VISIBLE void leak_through(plugin_function function)
{
	for (int i = 0; i < LEAKS; i++)
		stage_need(function(BLOCK_PAGES * stage_page_bytes()), "plugin");
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t leaked = LEAKS * BLOCK_PAGES * stage_page_bytes();
	plugin_function function;
	void *stays, *closed;

	stage_begin(&stage);
	leak_through(open_plugin(PLUGIN_DIRECTORY, "stays", &stays));
	function = open_plugin(PLUGIN_DIRECTORY, "closed", &closed);
	leak_through(function);
	dlclose(closed);
	stage_need(mmap((void *)((size_t)function & ~(stage_page_bytes() - 1)), stage_page_bytes(), PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		   "mmap");
	stage_expect("bytes=%zu count=%d stack=mmap<plugin_stays_leak<leak_through<main", leaked, LEAKS);
	stage_expect("bytes=%zu count=%d stack=mmap<plugin_closed_leak<leak_through<main", leaked, LEAKS);
	stage_end(&stage);
	return 0;
}
