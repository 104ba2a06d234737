# SPDX-License-Identifier: LGPL-2.1-or-later
"""damage-program.py FILE KIND: makes a hostile file of a little-endian 64-bit ELF file, which still runs."""
import struct
import sys

SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
path, kind = sys.argv[1:]
with open(path, "rb") as stream:
    data = bytearray(stream.read())
(headers,) = struct.unpack_from("<Q", data, 40)
count, names = struct.unpack_from("<HH", data, 60)


def header_at(index):
    return SECTION_HEADER.unpack_from(data, headers + index * SECTION_HEADER.size)


def section(wanted):
    """Its start and end in the file."""
    for index in range(count):
        header = header_at(index)
        start = header_at(names)[4] + header[0]
        if data[start : data.index(0, start)] == wanted:
            return header[4], header[4] + header[5]
    sys.exit(f"no section {wanted.decode()}")


def entries():
    """Of .eh_frame: place, end and whether it is a CIE."""
    place, end = section(b".eh_frame")
    while place < end:
        length, of = struct.unpack_from("<II", data, place)
        if not length:
            return
        yield place, place + 4 + length, of == 0
        place += 4 + length


def section_sizes():
    """Every section goes on far beyond the file."""
    for index in range(count):
        struct.pack_into("<Q", data, headers + index * SECTION_HEADER.size + 32, (1 << 63) + 5)


def program_headers():
    """They are behind the end of the file. It does not run."""
    struct.pack_into("<Q", data, 32, 1 << 62)


def still_rows():
    """Every function returns to itself, and takes nothing from the stack."""
    for place, end, is_cie in entries():
        if is_cie:
            rule = data.index(bytes([0x0C, 7, 8, 0x90, 1]), place, end)  # def_cfa rsp+8; offset rip at cfa-8
            data[rule : rule + 5] = bytes([0x0C, 7, 0, 0x08, 16])  # def_cfa rsp+0; same_value rip
        else:
            data[place + 17 : end] = bytes(end - place - 17)  # nop


def looped_table():
    """Every function's common part is the function itself, reaches over all code, and there are four billion of them."""
    for place, _, is_cie in list(entries()):
        if not is_cie:
            struct.pack_into("<I", data, place + 4, 4)
            struct.pack_into("<I", data, place + 12, 0xFFFFFFFF)
    struct.pack_into("<I", data, section(b".eh_frame_hdr")[0] + 8, 0xFFFFFFFF)


def debug_information():
    """Entries of arbitrary kinds, with arbitrary references."""
    start, end = section(b".debug_info")
    for place in range(start + 16, end):
        data[place] = (place * 7 + 1) & 15


def debug_entries():
    """Where entries end, others begin that no abbreviation describes."""
    start, end = section(b".debug_info")
    for place in range(start + 128, end):
        if not data[place]:
            data[place] = 0x7F


def debug_units():
    """The first is of a version that nobody knows."""
    struct.pack_into("<H", data, section(b".debug_info")[0] + 4, 0x7FFF)


def line_tables():
    """Of a version that nobody knows."""
    struct.pack_into("<H", data, section(b".debug_line")[0] + 4, 0x7FFF)


{
    "section-sizes": section_sizes,
    "program-headers": program_headers,
    "still-rows": still_rows,
    "looped-table": looped_table,
    "debug-information": debug_information,
    "debug-entries": debug_entries,
    "debug-units": debug_units,
    "line-tables": line_tables,
}[kind]()
with open(path, "wb") as stream:
    stream.write(data)
