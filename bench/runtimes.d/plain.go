// SPDX-License-Identifier: Apache-2.0

// plain SECONDS: maps, sorting and goroutines that talk.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"time"
)

func count(seed uint64) int {
	words := map[string]int{}
	for i := 0; i < 2000; i++ {
		seed = seed*6364136223846793005 + 1442695040888963407
		words[strconv.FormatUint(seed>>54, 16)]++
	}
	keys := make([]string, 0, len(words))
	for word := range words {
		keys = append(keys, word)
	}
	sort.Strings(keys)
	return len(keys)
}

func main() {
	seconds := 5
	if len(os.Args) > 1 {
		seconds, _ = strconv.Atoi(os.Args[1])
	}
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	work, results := make(chan uint64), make(chan int)
	go func() {
		for seed := range work {
			results <- count(seed)
		}
	}()
	sum := 0
	for n := uint64(1); time.Now().Before(end); n++ {
		work <- n
		sum += <-results
	}
	fmt.Println(sum)
}
