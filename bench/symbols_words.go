// SPDX-License-Identifier: Apache-2.0

// Maps, strings, sorting, a regular expression and a pool of goroutines for bench/symbols.
package main

import (
	"fmt"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
)

type word struct {
	text  string
	count int
}

func nextRandom(state *uint32) uint32 {
	*state = *state*1664525 + 1013904223
	return *state >> 8
}

func makeText(words int, state uint32) string {
	syllables := []string{"Cul", "prit", "stack", "Walk", "tree", "time", "call"}
	var text strings.Builder
	for i := 0; i < words; i++ {
		for n := nextRandom(&state)%3 + 1; n > 0; n-- {
			text.WriteString(syllables[nextRandom(&state)%7])
		}
		text.WriteByte(" \n"[i%13/12])
	}
	return text.String()
}

func countWords(text string) []word {
	counts := map[string]int{}
	for _, w := range strings.Fields(text) {
		counts[strings.ToLower(w)]++
	}
	var all []word
	for text, count := range counts {
		all = append(all, word{text, count})
	}
	sort.Slice(all, func(i, j int) bool {
		return all[i].count > all[j].count || (all[i].count == all[j].count && all[i].text < all[j].text)
	})
	return all
}

func main() {
	rounds := 20
	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	pattern := regexp.MustCompile(`^(cul|walk)+(time|tree)?$`)
	var wait sync.WaitGroup
	totals := make([]int, rounds)
	for i := range totals {
		wait.Add(1)
		go func(i int) {
			defer wait.Done()
			for _, w := range countWords(makeText(50000, uint32(i+1))) {
				if pattern.MatchString(w.text) {
					totals[i] += w.count
				}
			}
		}(i)
	}
	wait.Wait()
	sum := 0
	for _, t := range totals {
		sum += t
	}
	fmt.Println(sum)
}
