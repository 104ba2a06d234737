# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes page.c of the files in page/: the page up to its data, and the rest, as arrays of bytes. The page allows no script
# but its own, which it names by SHA-256; CMake gives that in hexadecimal, and the page needs base64.
#
#     cmake -DPAGE=DIRECTORY -DOUTPUT=FILE -P embed-page.cmake
cmake_minimum_required(VERSION 3.20)

set(scripts format model chart graph table functions causes page)
set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)

function(hash_base64 text result)
  string(SHA256 hex "${text}")
  set(base64 "")
  # 32 bytes: ten groups of three bytes, and one of two.
  foreach(place RANGE 0 60 6)
    string(SUBSTRING "${hex}0000" ${place} 6 group)
    math(EXPR bits "0x${group}")
    foreach(shift 18 12 6 0)
      math(EXPR digit "(${bits} >> ${shift}) & 63")
      string(SUBSTRING ${digits} ${digit} 1 character)
      string(APPEND base64 ${character})
    endforeach()
  endforeach()
  string(SUBSTRING ${base64} 0 43 base64)
  set(${result} "${base64}=" PARENT_SCOPE)
endfunction()

# Without comments and indentation, which are not for the reader of a page.
function(read_source name result)
  file(READ "${PAGE}/${name}" text)
  string(REGEX REPLACE "^/\\* SPDX-License-Identifier: [^\n]*\n" "" text "${text}")
  string(REGEX REPLACE "(^|\n)\t*//[^\n]*" "\\1" text "${text}")
  string(REGEX REPLACE "\n[\n\t]+" "\n" text "${text}")
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# Bytes of `text` as elements of an array.
function(to_array text result)
  string(HEX "${text}" hex)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  set(${result} "${bytes}" PARENT_SCOPE)
endfunction()

# A semicolon would end an element of a list: variables are always quoted below.
read_source(page.css style)
read_source(boxes.svg boxes_text)
string(REPLACE "\\" "\\\\" boxes_text "${boxes_text}")
string(REPLACE "</script" "<\\/script" boxes_text "${boxes_text}")
# No address stands in the page, which loads nothing.
string(REPLACE "http://www.w3.org/1999/xhtml" "\${document.documentElement.namespaceURI}" boxes_text "${boxes_text}")
set(script "\"use strict\";\n(() => {\nconst boxesOfSvg = `${boxes_text}`;\n")
foreach(name ${scripts})
  read_source(${name}.js text)
  string(APPEND script "${text}")
endforeach()
string(APPEND script "})();\n")

file(READ "${PAGE}/page.html" page)
hash_base64("${style}" style_hash)
hash_base64("${script}" script_hash)
string(REPLACE "@STYLE_HASH@" "${style_hash}" page "${page}")
string(REPLACE "@SCRIPT_HASH@" "${script_hash}" page "${page}")
string(FIND "${page}" "@DATA@" place)
string(SUBSTRING "${page}" 0 ${place} head)
math(EXPR place "${place} + 6")
string(SUBSTRING "${page}" ${place} -1 tail)
string(REPLACE "@STYLE@" "${style}" head "${head}")
string(REPLACE "@SCRIPT@" "${script}" tail "${tail}")
to_array("${head}" head_bytes)
to_array("${tail}" tail_bytes)
file(WRITE "${OUTPUT}" "// Made by lib/output/html/embed-page.cmake.
#include \"output/html/page.h\"

const unsigned char page_head[] = {
${head_bytes}
};

const unsigned char page_tail[] = {
${tail_bytes}
};

const size_t page_head_size = sizeof(page_head), page_tail_size = sizeof(page_tail);
")
