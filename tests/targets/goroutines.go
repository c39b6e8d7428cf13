// SPDX-License-Identifier: Apache-2.0

// A Go program of which it is known who calls whom: goroutines, channels, stacks that grow, panics,
// garbage, the clock.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

type node struct {
	left, right *node
	value       int
}

//go:noinline
func tree(depth int) *node {
	if depth == 0 {
		return &node{value: 1}
	}
	return &node{tree(depth - 1), tree(depth - 1), depth}
}

//go:noinline
func deep(n int) int {
	var room [64]byte
	room[n%64] = byte(n)
	if n == 0 {
		return int(room[0])
	}
	return deep(n-1) + int(room[n%64])
}

//go:noinline
func grow(rounds int) int {
	sum := 0
	for i := 0; i < rounds; i++ {
		done := make(chan int)
		go func() { done <- deep(3000) }()
		sum += <-done
	}
	return sum
}

//go:noinline
func throws(n int) (out int) {
	defer func() {
		if recover() != nil {
			out = 1
		}
	}()
	if n == 0 {
		panic("bottom")
	}
	return throws(n-1) + 1
}

//go:noinline
func pass(rounds int) int {
	a, b := make(chan int), make(chan int, 8)
	go func() {
		for v := range a {
			b <- v + 1
		}
		close(b)
	}()
	go func() {
		for i := 0; i < rounds; i++ {
			a <- i
		}
		close(a)
	}()
	sum := 0
	for v := range b {
		sum += v
	}
	return sum
}

//go:noinline
func clocks(rounds int) int64 {
	var sum int64
	for i := 0; i < rounds; i++ {
		sum += time.Now().UnixNano() & 1
	}
	return sum
}

//go:noinline
func maps(rounds int) int {
	m := map[string]int{}
	for i := 0; i < rounds; i++ {
		m[strconv.Itoa(i%5000)] += i
	}
	return len(m)
}

func main() {
	seconds := 5.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	var wg sync.WaitGroup
	work := []func() int{
		func() int { return tree(14).value },
		func() int { return grow(50) },
		func() int {
			n := 0
			for i := 0; i < 500; i++ {
				n += throws(20)
			}
			return n
		},
		func() int { return pass(5000) },
		func() int { return int(clocks(50000)) },
		func() int { return maps(50000) },
	}
	for _, f := range work {
		f := f
		wg.Add(1)
		go func() {
			defer wg.Done()
			for time.Now().Before(end) {
				f()
			}
		}()
	}
	wg.Wait()
	fmt.Println("done", runtime.NumGoroutine())
}
