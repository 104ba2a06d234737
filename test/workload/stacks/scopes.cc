// SPDX-License-Identifier: LGPL-2.1-or-later
// Blocks mapped by functions local to this file, which have no linkage name in the debug information; only their
// namespaces and classes distinguish them. scopes [--exit] [ROUNDS]
#include <cstdlib>
#include <sys/mman.h>

extern "C" {
#include "support/stage.h"
}

#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noipa))
#endif

static inline __attribute__((always_inline)) void leak_mmap()
{
	stage_need(mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	KEEP_FRAME();
}

namespace first {
namespace {
struct cache {
	KEPT void grow(int blocks)
	{
		for (int i = 0; i < blocks; i++)
			leak_mmap();
	}
	inline __attribute__((always_inline)) void stretch() { leak_mmap(); }
};
} // namespace

KEPT void run()
{
	cache cache;

	cache.grow(1);
	cache.stretch();
}
} // namespace first

namespace second {
namespace {
struct pool {
	KEPT void grow(int blocks)
	{
		for (int i = 0; i < blocks; i++)
			leak_mmap();
	}
	inline __attribute__((always_inline)) void stretch() { leak_mmap(); }
};
} // namespace

static KEPT void help()
{
	leak_mmap();
}

KEPT void run()
{
	pool pool;
	auto by_lambda = []() KEPT { leak_mmap(); };
	auto by_inlined_lambda = []() __attribute__((always_inline)) { leak_mmap(); };

	pool.grow(1);
	pool.stretch();
	help();
	by_lambda();
	by_inlined_lambda();
}
} // namespace second

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	std::size_t rounds = stage_number(&stage, 0, 1);

	stage_begin(&stage);
	for (std::size_t i = 0; i < rounds; i++) {
		first::run();
		second::run();
	}
	stage_end(&stage);
	return 0;
}
