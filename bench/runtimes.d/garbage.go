// SPDX-License-Identifier: Apache-2.0

// garbage SECONDS: what keeps the collector busy, with new goroutines, growing stacks, panics and timers.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

type node struct {
	left, right *node
	pad         [4]uint64
}

func grow(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{left: grow(depth - 1), right: grow(depth - 1)}
}

func (n *node) size() int {
	if n == nil {
		return 0
	}
	return n.left.size() + n.right.size() + 1
}

func deep(n int) (sum int) {
	var room [64]int
	if n == 0 {
		panic("the bottom")
	}
	room[n%64] = deep(n - 1)
	return room[n%64] + 1
}

func caught(n int) (sum int) {
	defer func() {
		if recover() != nil {
			sum = n
		}
	}()
	return deep(n)
}

func main() {
	seconds := 5
	if len(os.Args) > 1 {
		seconds, _ = strconv.Atoi(os.Args[1])
	}
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	sum := 0
	for time.Now().Before(end) {
		done := make(chan int)
		for i := 0; i < 8; i++ {
			go func() { done <- grow(12).size() + caught(200) }()
		}
		for i := 0; i < 8; i++ {
			sum += <-done
		}
	}
	fmt.Println(sum)
}
