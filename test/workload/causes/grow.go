// SPDX-License-Identifier: LGPL-2.1-or-later
// A Go heap that grows: grow keep|drop|touch. Waits for a line, allocates, waits for another. With touch, the memory is
// mapped before the first line, and used after it.
package main

import (
	"bufio"
	"fmt"
	"os"
)

var kept [][]byte

func touch(block []byte) {
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
}

func allocate(bytes int) []byte {
	block := make([]byte, bytes)
	touch(block)
	return block
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	if os.Args[1] == "touch" {
		kept = append(kept, make([]byte, 48<<20))
	}
	fmt.Println("ready")
	lines.Scan()
	for _, block := range kept {
		touch(block)
	}
	for i := 0; i < 64 && os.Args[1] != "touch"; i++ {
		block := allocate(1 << 20)
		if os.Args[1] == "keep" {
			kept = append(kept, block)
		}
	}
	fmt.Println("done")
	lines.Scan()
}
