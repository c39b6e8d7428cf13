# The front door; Meson does the work. `make help` lists what there is.
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
STRESS_SECONDS ?= 600
SUITES_ROUNDS ?= 3
BENCH_SERVER_ROUNDS ?= 3
BENCH_ROUNDS ?= 5
# The parts that are measured, all unless told.
BENCH ?=
# What the larger machine of `make boot` does: options of tests/boot/large, or "no" for nothing.
BOOT_LARGE ?=
OTHER_CPU := $(if $(filter x86_64,$(shell uname -m)),aarch64,x86_64)
OPTIONS := --prefix=$(PREFIX) -Dwerror=$(if $(filter true,$(CI)),true,false)
SANITIZE := -Db_sanitize=address,undefined -Db_lundef=false

.PHONY: build asan install deps test-deps try test stress boot bench fuzz format lint clean help

build: ## the release build, in build/ (the default)
	@tools/setup build $(OPTIONS)
	@ninja -C build --quiet

asan: ## the build with sanitizers that unit tests use, in build-asan/
	@CC=clang tools/setup build-asan $(OPTIONS) $(SANITIZE) -Dtests=true -Ddebug=true -Doptimization=1
	@ninja -C build-asan --quiet

install: build ## installs program, manual pages and completions (PREFIX=, DESTDIR=)
	@meson install -C build --no-rebuild --quiet

deps: ## installs what the build needs
	@tools/install-deps build

test-deps:
	@tools/install-deps build test

try: deps ## builds, profiles a bundled program, prints the report and writes its page
	@$(MAKE) --no-print-directory build
	@tools/try build

test: test-deps ## everything: format, lint, unit tests with sanitizers, end-to-end tests
	@$(MAKE) --no-print-directory build asan
	@tests/run

stress: ## STRESS_SECONDS (600) of programs that are easily disturbed (tests/stress/), then others' tests (tests/suites/)
	@tools/install-deps build test suites
	@$(MAKE) --no-print-directory build
	@tests/stress/run build $(STRESS_SECONDS)
	@tests/suites/run build --rounds $(SUITES_ROUNDS)
	@KILLS=100 STRESS=1 CROWD=5000 BOMB=2000 SECONDS_EACH=10 HUGE=250M tests/e2e/run build db-killed daemon-killed \
		daemon-damaged daemon-crowd daemon-hostile

boot: ## boots Debian's kernels for both CPUs in an emulator, then the tests in one of the other CPU (tests/boot/)
	@tools/install-deps build boot
	@tests/boot/run x86_64 build-boot-x86_64
	@tests/boot/run aarch64 build-boot-aarch64
	@[ "$(BOOT_LARGE)" = no ] || tests/boot/large $(OTHER_CPU) build-boot-$(OTHER_CPU) $(BOOT_LARGE)

bench: ## measures what doc/results.md says, or BENCH="alloc io": some parts (tools/bench; all of it takes most of a day)
	@tools/install-deps build test bench
	@$(MAKE) --no-print-directory build
	@BENCH_ROUNDS=$(BENCH_ROUNDS) BENCH_SERVER_ROUNDS=$(BENCH_SERVER_ROUNDS) tools/bench build $(BENCH)

fuzz: test-deps ## fuzzes each target for FUZZ_SECONDS (60) and keeps what it finds in its corpus
	@CC=clang tools/setup build-fuzz $(OPTIONS) $(SANITIZE) -Dfuzz=true
	@ninja -C build-fuzz --quiet
	@tools/fuzz build-fuzz $(FUZZ_SECONDS)

format: ## formats all C files
	@tools/format

lint: ## checks format, style, includes and notes left behind
	@tools/format --check
	@tools/lint
	@tools/check-style
	@tools/check-includes

clean: ## removes the build directories
	rm -rf build build-asan build-fuzz build-cross-* build-boot-*

help: ## this text
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18
