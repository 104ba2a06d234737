// SPDX-License-Identifier: LGPL-2.1-or-later
// A Go heap that grows: grow keep|drop. Waits for a line, allocates, waits for another.
package main

import (
	"bufio"
	"fmt"
	"os"
)

var kept [][]byte

func allocate(bytes int) []byte {
	block := make([]byte, bytes)
	for i := 0; i < bytes; i += 4096 {
		block[i] = 1
	}
	return block
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	lines.Scan()
	for i := 0; i < 64; i++ {
		block := allocate(1 << 20)
		if os.Args[1] == "keep" {
			kept = append(kept, block)
		}
	}
	fmt.Println("done")
	lines.Scan()
}
