// SPDX-License-Identifier: LGPL-2.1-or-later
// Blocks mapped where C++ is hard to unwind: while an exception is thrown, in destructors that run because of it, in
// handlers, through virtual functions, lambdas and templates, in threads. exceptions [--exit] [ROUNDS]
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <vector>

extern "C" {
#include "support/stage.h"
}

namespace leaks {

constexpr std::size_t BLOCK = 4096, LARGE_BLOCK = 256 << 10;

__attribute__((noipa)) void leak_mmap()
{
	stage_need(mmap(nullptr, BLOCK, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	KEEP_FRAME();
}

// So large that malloc maps it.
__attribute__((noipa)) void leak_new()
{
	auto *bytes = new char[LARGE_BLOCK];
	__asm__ volatile("" ::"r"(bytes) : "memory");
}

struct leaks_when_destroyed {
	__attribute__((noipa)) ~leaks_when_destroyed()
	{
		leak_mmap();
		KEEP_FRAME();
	}
};

struct error {
	error() = default;
	__attribute__((noipa)) error(const error &)
	{
	}
	std::string text;
};

__attribute__((noipa)) void throw_error(int depth)
{
	leaks_when_destroyed guard;
	std::string local(static_cast<std::size_t>(depth) + 32, 'x');

	if (depth == 0) {
		leak_new();
		throw error();
	}
	throw_error(depth - 1);
	KEEP_FRAME();
}

__attribute__((noipa)) void catch_error()
{
	try {
		throw_error(2);
	} catch (const error &) {
		leak_mmap();
	}
	KEEP_FRAME();
}

struct shape {
	virtual ~shape() = default;
	virtual void draw(const std::string &name, double scale) = 0;
};

struct circle final : shape {
	__attribute__((noipa)) void draw(const std::string &, double) override
	{
		leak_mmap();
		KEEP_FRAME();
	}
};

template <typename Container, typename Action> __attribute__((noipa)) void for_every(Container &all, Action action)
{
	std::for_each(all.begin(), all.end(), action);
	KEEP_FRAME();
}

__attribute__((noipa)) void by_vector()
{
	auto *kept = new std::vector<char>;

	kept->reserve(LARGE_BLOCK);
	__asm__ volatile("" ::"r"(kept->data()) : "memory");
}

__attribute__((noipa)) void by_function(const std::function<void(int)> &function)
{
	function(1);
	KEEP_FRAME();
}

__attribute__((noipa)) void one_round()
{
	std::unique_ptr<shape> shape = std::make_unique<circle>();
	std::vector<int> numbers = {1};

	catch_error();
	shape->draw("circle", 1.5);
	for_every(numbers, [](int) { leak_mmap(); });
	by_function([](int) {
		leak_mmap();
		KEEP_FRAME();
	});
	by_vector();
}

} // namespace leaks

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	std::size_t rounds = stage_number(&stage, 0, 1);

	stage_begin(&stage);
	for (std::size_t i = 0; i < rounds; i++)
		leaks::one_round();
	std::vector<std::thread> threads;
	for (int i = 0; i < 2; i++)
		threads.emplace_back([](std::size_t count) {
			for (std::size_t j = 0; j < count; j++)
				leaks::one_round();
		}, rounds);
	for (auto &thread : threads)
		thread.join();
	stage_end(&stage);
	return 0;
}
