// SPDX-License-Identifier: LGPL-2.1-or-later
// Blocks mapped by Go: by the system call in the first goroutine, in others, in a deferred function and while a panic
// unwinds. program ROUNDS
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
)

const block = 4096

//go:noinline
func leakMmap() {
	if _, err := syscall.Mmap(-1, 0, block, syscall.PROT_READ, syscall.MAP_PRIVATE|syscall.MAP_ANON); err != nil {
		panic(err)
	}
}

type shape interface{ draw(scale float64) int }

type circle struct{ name string }

//go:noinline
func (c *circle) draw(scale float64) int {
	leakMmap()
	return len(c.name)
}

//go:noinline
func leakDeferred() {
	defer leakMmap()
	panic("unwind")
}

//go:noinline
func recoverPanic() {
	defer func() {
		if recover() == nil {
			os.Exit(1)
		}
	}()
	leakDeferred()
}

//go:noinline
func apply(action func(int)) {
	action(1)
}

//go:noinline
func oneRound(s shape) {
	s.draw(1.5)
	apply(func(int) { leakMmap() })
	recoverPanic()
}

var kept []byte

// The runtime maps memory on its own stack.
//
//go:noinline
func growHeap() {
	kept = make([]byte, 256<<20)
	kept[0] = 1
}

// Prints a word and waits for a line, or for the end of input.
func wait(input *bufio.Reader, word string) {
	fmt.Println(word)
	_, _ = input.ReadString('\n')
}

func main() {
	input := bufio.NewReader(os.Stdin)
	rounds := 1
	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	wait(input, "ready")
	for i := 0; i < rounds; i++ {
		oneRound(&circle{"first"})
	}
	var group sync.WaitGroup
	for i := 0; i < 4; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for j := 0; j < rounds; j++ {
				oneRound(&circle{"other"})
			}
		}()
	}
	group.Wait()
	growHeap()
	wait(input, "done")
}
