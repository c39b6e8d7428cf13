// SPDX-License-Identifier: Apache-2.0

// cgo SECONDS: a Go program of which it is known who calls whom. Goroutines call C code that keeps no register as
// it was, C code calls back, and so do threads that C has made. Threads of Go end, and C makes others for them.
package main

/*
#cgo LDFLAGS: -lpthread
#include <pthread.h>

extern void goBack(int);
extern void goFromThread(int);

// Initialized ones come before Go's own.
static __thread volatile unsigned before[5] = {1, 2, 3, 4, 5};

// In the register that Go has for itself is something else.
static __attribute__((noinline)) void crowd(unsigned long rounds)
{
#if defined(__aarch64__)
	asm volatile("mov x28, %0\n1: subs x28, x28, #1\nb.ne 1b" : : "r"(rounds) : "x28", "cc");
#else
	asm volatile("mov %0, %%r14\n1: dec %%r14\njnz 1b" : : "r"(rounds) : "r14", "cc");
#endif
	before[0]++;
}

// The same while Go's code runs, which C has called.
static __attribute__((noinline)) void back(int depth)
{
	crowd(10000);
	goBack(depth);
	before[1]++;
}

static __attribute__((noinline)) void down(int n)
{
	volatile char room[256];
	room[0] = 0;
	if (n)
		down(n - 1);
	else
		goFromThread(2);
	room[1]++;
}

static void *run(void *unused)
{
	(void)unused;
	for (;;)
		down(40);
	return NULL;
}

static void start(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, run, NULL);
}
*/
import "C"

import (
	"os"
	"runtime"
	"strconv"
	"time"
)

var sink [16]int

//go:noinline
func spin(rounds int) {
	for i := 0; i < rounds; i++ {
		sink[i%16] += i
	}
}

//export goBack
func goBack(depth C.int) {
	spin(3000)
	if depth > 0 {
		C.back(depth - 1)
	}
}

//export goFromThread
func goFromThread(depth C.int) {
	spin(3000)
	C.crowd(10000)
	C.back(depth)
}

//go:noinline
func calls() {
	C.crowd(10000)
	C.back(3)
}

// A thread ends with the goroutine that it is locked to.
//
//go:noinline
func threads() {
	done := make(chan int)
	go func() {
		runtime.LockOSThread()
		done <- 1
	}()
	<-done
}

func main() {
	seconds, _ := strconv.Atoi(os.Args[1])
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	go func() {
		for {
			calls()
		}
	}()
	go func() {
		for {
			threads()
		}
	}()
	C.start()
	for time.Now().Before(end) {
		calls()
	}
}
