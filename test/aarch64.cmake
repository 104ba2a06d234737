# Toolchain file for aarch64 on another machine: cmake -DCMAKE_TOOLCHAIN_FILE=test/aarch64.cmake
# It uses Debian's cross compiler and the arm64 libraries (dpkg --add-architecture arm64, then packages named NAME:arm64).
# CTest runs the tests under qemu-user where that is installed.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc CACHE STRING "Cross compiler")
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
find_program(MMTRACE_QEMU_AARCH64 NAMES qemu-aarch64 qemu-aarch64-static)
if(MMTRACE_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${MMTRACE_QEMU_AARCH64})
endif()
