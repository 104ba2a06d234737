# Toolchain file for aarch64 on another machine: cmake -DCMAKE_TOOLCHAIN_FILE=test/aarch64.cmake
# It uses Debian's cross compiler and the arm64 libraries: those in the directory MMTRACE_SYSROOT if the environment has
# it (test/vm makes one), or else this system's (dpkg --add-architecture arm64, then packages named NAME:arm64).
# CTest runs the tests under qemu-user where that is installed.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc CACHE STRING "Cross compiler")
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
if(DEFINED ENV{MMTRACE_SYSROOT})
  set(CMAKE_SYSROOT $ENV{MMTRACE_SYSROOT})
  set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
  set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
  set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
endif()
set(ENV{PKG_CONFIG_LIBDIR}
    ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
find_program(MMTRACE_QEMU_AARCH64 NAMES qemu-aarch64 qemu-aarch64-static)
if(MMTRACE_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${MMTRACE_QEMU_AARCH64})
endif()
