// SPDX-License-Identifier: LGPL-2.1-or-later
// C++20 coroutines that map a block before and after they were suspended; resumed by a function other than the one
// that started them: coroutine [--exit] [ROUNDS]
#include <coroutine>
#include <cstddef>
#include <exception>
#include <sys/mman.h>
#include <utility>

extern "C" {
#include "support/stage.h"
}

namespace {

constexpr std::size_t BLOCK = 4096;

__attribute__((noipa)) void leak_mmap()
{
	stage_need(mmap(nullptr, BLOCK, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	KEEP_FRAME();
}

struct task {
	struct promise_type {
		task get_return_object()
		{
			return task(std::coroutine_handle<promise_type>::from_promise(*this));
		}
		std::suspend_never initial_suspend() noexcept
		{
			return {};
		}
		std::suspend_always final_suspend() noexcept
		{
			return {};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
			std::terminate();
		}
	};

	explicit task(std::coroutine_handle<promise_type> started) : handle(started)
	{
	}
	task(task &&other) noexcept : handle(std::exchange(other.handle, nullptr))
	{
	}
	task(const task &) = delete;
	~task()
	{
		if (handle)
			handle.destroy();
	}

	std::coroutine_handle<promise_type> handle;
};

task leak_twice(std::size_t turns)
{
	leak_mmap();
	for (std::size_t i = 0; i < turns; i++) {
		co_await std::suspend_always{};
		leak_mmap();
	}
}

__attribute__((noipa)) void resume_elsewhere(task &suspended)
{
	while (!suspended.handle.done())
		suspended.handle.resume();
	KEEP_FRAME();
}

__attribute__((noipa)) task start_task(std::size_t turns)
{
	return leak_twice(turns);
}

} // namespace

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	std::size_t rounds = stage_number(&stage, 0, 1);

	stage_begin(&stage);
	for (std::size_t i = 0; i < rounds; i++) {
		task suspended = start_task(2);
		resume_elsewhere(suspended);
	}
	stage_end(&stage);
	return 0;
}
