# SPDX-License-Identifier: LGPL-2.1-or-later
"""Blocks mapped by anonymous mmaps, by big buffers and by a library called through ctypes, from methods, closures, generators,
callbacks, comprehensions and a thread: program.py LIBRARY ROUNDS"""
import ctypes
import mmap
import sys
import threading

BLOCK = 4096
LARGE_BLOCK = 256 << 10
kept = []
library = ctypes.CDLL(sys.argv[1])
callback_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)


def leak_map():
    kept.append(mmap.mmap(-1, BLOCK))


def leak_bytes():
    kept.append(bytearray(LARGE_BLOCK))


def leak_native():
    if library.native_leak(ctypes.c_size_t(BLOCK)):
        raise OSError("native_leak")


class Circle:
    def draw(self, scale):
        leak_map()
        return scale


def by_method(shape):
    return shape.draw(1.5)


def by_closure():
    local = []

    def inner():
        leak_bytes()
        return local

    return inner()


def generate():
    leak_map()
    yield 1


def by_generator():
    return list(generate())


def by_sort():
    def key(number):
        leak_native()
        return number

    return sorted([1], key=key)


def by_callback():
    def called_back(number):
        leak_native()
        return number

    library.native_call(callback_type(called_back), 1)


def by_exception():
    try:
        raise ValueError()
    except ValueError:
        leak_map()


def one_round():
    by_method(Circle())
    by_closure()
    by_generator()
    by_sort()
    by_callback()
    by_exception()


def rounds():
    for _ in range(int(sys.argv[2])):
        one_round()


def main():
    rounds()
    thread = threading.Thread(target=rounds)
    thread.start()
    thread.join()


main()
