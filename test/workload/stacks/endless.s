# SPDX-License-Identifier: LGPL-2.1-or-later
# Endless debug information for native.c: references form cycles, every function has the same long list of ranges, and
# functions are nested or inlined 200,000 levels deep.
	.set	FUNCTIONS, 5000
	.set	RANGES, 5000
	.set	LEVELS, 200000
	.set	LINES, 1000000

	.section .debug_abbrev,"",@progbits
abbreviations:
	.uleb128 1, 0x11	# DW_TAG_compile_unit, with children
	.byte	1
	.uleb128 0x03, 0x08	# DW_AT_name, DW_FORM_string
	.uleb128 0x11, 0x01	# DW_AT_low_pc, DW_FORM_addr
	.uleb128 0x12, 0x07	# DW_AT_high_pc, DW_FORM_data8
	.uleb128 0x10, 0x17	# DW_AT_stmt_list, DW_FORM_sec_offset
	.uleb128 0, 0
	.uleb128 2, 0x2e	# DW_TAG_subprogram, with children
	.byte	1
	.uleb128 0x01, 0x13	# DW_AT_sibling, DW_FORM_ref4
	.uleb128 0x47, 0x13	# DW_AT_specification, DW_FORM_ref4
	.uleb128 0x55, 0x17	# DW_AT_ranges, DW_FORM_sec_offset
	.uleb128 0, 0
	.uleb128 3, 0x1d	# DW_TAG_inlined_subroutine, with children
	.byte	1
	.uleb128 0x01, 0x13	# DW_AT_sibling, DW_FORM_ref4
	.uleb128 0x31, 0x13	# DW_AT_abstract_origin, DW_FORM_ref4
	.uleb128 0x55, 0x17	# DW_AT_ranges, DW_FORM_sec_offset
	.uleb128 0, 0
	.byte	0

	.section .debug_info,"",@progbits
unit:
	.long	unit_end - unit - 4
	.value	4
	.long	abbreviations
	.byte	8
	.uleb128 1
	.asciz	"endless"
	.quad	native_leak - 0x1000
	.quad	0x3000
	.long	lines
first:
	.rept	FUNCTIONS
1:	.uleb128 2
	.long	2f - unit
	.long	1b - unit
	.long	ranges
	.byte	0
2:
	.endr
4:	.uleb128 2
	.long	6f - unit
	.long	4b - unit
	.long	ranges
	.rept	LEVELS
3:	.uleb128 3
	.long	3b - unit
	.long	3b - unit
	.long	ranges
	.endr
	.fill	LEVELS + 1, 1, 0
6:
	.rept	LEVELS
6:	.uleb128 2
	.long	6b - unit
	.long	6b - unit
	.long	ranges
	.endr
	.fill	LEVELS, 1, 0
5:	.uleb128 2
	.long	first - unit
	.long	first - unit
	.long	ranges
	.byte	0, 0
unit_end:

	.section .debug_ranges,"",@progbits
ranges:
	.rept	RANGES
	.quad	0, 0x3000
	.endr
	.quad	0, 0

	.section .debug_line,"",@progbits
lines:
	.long	lines_end - lines - 4
	.value	4
	.long	lines_program - . - 4
	.byte	1, 1, 1, -5, 14, 13
	.byte	0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1
	.byte	0
	.asciz	"endless.c"
	.uleb128 0, 0, 0
	.byte	0
lines_program:
	.byte	0, 9, 2
	.quad	native_leak - 0x1000
	.fill	LINES, 1, 0x4b
lines_end:
	.section .note.GNU-stack,"",@progbits
