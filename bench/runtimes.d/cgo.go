// SPDX-License-Identifier: Apache-2.0

// cgo SECONDS: calls into C, and from there back.
package main

/*
#include <stdlib.h>
extern int goCompare(void *, void *);
static unsigned work(unsigned n)
{
	static int values[2000];
	for (int i = 0; i < 2000; i++)
		values[i] = (n = n * 1103515245u + 12345u) >> 8;
	qsort(values, 2000, sizeof *values, (int (*)(const void *, const void *))goCompare);
	return values[0];
}
static unsigned small(unsigned n)
{
	for (int i = 0; i < 200; i++)
		n = n * 1103515245u + 12345u;
	return n;
}
*/
import "C"

import (
	"fmt"
	"os"
	"strconv"
	"time"
	"unsafe"
)

//export goCompare
func goCompare(a, b unsafe.Pointer) C.int {
	x, y := *(*C.int)(a), *(*C.int)(b)
	if x < y {
		return -1
	}
	if x > y {
		return 1
	}
	return 0
}

func main() {
	seconds := 5
	if len(os.Args) > 1 {
		seconds, _ = strconv.Atoi(os.Args[1])
	}
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	var sum C.uint
	for n := C.uint(1); time.Now().Before(end); n++ {
		sum += C.work(n)
		for i := 0; i < 5000; i++ {
			sum += C.small(n)
		}
	}
	fmt.Println(sum)
}
