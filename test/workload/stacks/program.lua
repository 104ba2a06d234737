-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Blocks mapped through LuaJIT's foreign function interface, in a loop that it compiles: program.lua ROUNDS
local ffi = require("ffi")
ffi.cdef("void *mmap(void *address, size_t length, int protection, int flags, int descriptor, long offset);")
local kept = {}

local function leak(bytes)
	return ffi.C.mmap(nil, bytes, 3, 0x22, -1, 0)
end

for i = 1, tonumber(arg[1]) do
	kept[i] = leak(4096)
end
