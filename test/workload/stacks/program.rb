# SPDX-License-Identifier: LGPL-2.1-or-later
# Blocks so large that the allocator maps them, from methods and blocks: program.rb ROUNDS
def leak_string
  $kept << ("x" * (4 << 20))
end

def by_block
  [1].each { leak_string }
end

def one_round
  leak_string
  by_block
end

$kept = []
ARGV[0].to_i.times { one_round }
