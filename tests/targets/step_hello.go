// SPDX-License-Identifier: Apache-2.0

// A Go program for the stepping test: goroutines, channels, growing stacks, maps.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
)

//go:noinline
func descend(depth int, seen map[string]int) int {
	var room [64]byte
	room[depth%64] = byte(depth)
	seen[strconv.Itoa(depth%37)]++
	if depth == 0 {
		return int(room[0])
	}
	return descend(depth-1, seen) + int(room[depth%64])
}

func main() {
	rounds := 20
	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	total := make(chan int)
	go func() {
		for i := 0; i < rounds; i++ {
			total <- descend(i*5%200, map[string]int{})
		}
		close(total)
	}()
	var sums []int
	for sum := range total {
		sums = append(sums, sum)
	}
	sort.Ints(sums)
	fmt.Println(len(sums))
}
