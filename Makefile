# The project's habits. `make help` lists them.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Go's vector instructions, where the toolchain still offers them as an experiment: the CPU engine
# is 1.4 times faster with them (policy/cpu says which loops it runs).
GOEXPERIMENT ?= $(shell GOEXPERIMENT=simd go env GOVERSION >/dev/null 2>&1 && echo simd)
export GOEXPERIMENT

RECIPE ?= recipes/quickstart.yaml
# Packages whose tests run under the race detector: those with goroutines of their own.
RACE ?= ./gpu/device ./gpu/lease ./gpu/leased ./gpu/torch ./gpu/wire ./internal/commit/... ./rollout/... ./sandbox/client ./sandbox/service ./sandbox/session ./sandbox/zygote ./store/... ./workflows/...

.PHONY: build gpu-bundle run test parity humaneval test-hosts test-presets race lint bench soak clean help tools lint-tools

build: ## build bin/ropewalk
	@command -v go >/dev/null || { echo "Go is missing: install Go 1.26 or newer" >&2; exit 1; }
	@command -v "$${CC:-cc}" >/dev/null || { echo "a C compiler is missing (DuckDB is linked in): install gcc, on Debian: apt-get install gcc libc6-dev" >&2; exit 1; }
	@command -v "$${CXX:-c++}" >/dev/null || { echo "a C++ compiler is missing (DuckDB is linked in): install g++, on Debian: apt-get install g++" >&2; exit 1; }
	@go build -trimpath -o bin/ropewalk ./cmd/ropewalk

gpu-bundle: ## pack gpu-check, which measures a GPU on a bare machine, as .ropewalk/gpu-bundle.tar.gz
	@tools/gpu-bundle.sh

run: build tools ## start the local stack, train RECIPE (recipes/quickstart.yaml), show it live
	@bin/ropewalk run $(RECIPE)

test: tools ## every test; the local servers are used for real. WITH_RACE=1: the concurrent packages under the race detector
	@ROPEWALK_REQUIRE_SERVERS=1 tools/test.sh $(if $(filter 1,$(WITH_RACE)),$(RACE))

parity: ## every loss's value and gradient beside PyTorch's autograd; ROPEWALK_PYTHON names a Python with torch
	ROPEWALK_REQUIRE_TORCH=1 go test -count 1 -run TestParity -v ./rl/loss

humaneval: ## HumanEval's solutions and empty bodies through the sandbox, 50 rounds in random order
	go test -count 1 -run TestHumanEval -v ./sandbox

test-hosts: tools ## a model on two hosts through the real pipeline, and hosts lost in mid-update; ROPEWALK_PYTHON names a Python with torch (minutes)
	ROPEWALK_REQUIRE_SERVERS=1 ROPEWALK_REQUIRE_TORCH=1 ROPEWALK_TEST_LOST_HOSTS=1 go test -count 1 -timeout 30m -run TestOneModelOnTwoHosts -v ./test/e2e

test-presets: build tools ## train every method's small twin for three steps through the real pipeline (minutes)
	@go run ./internal/bench/presets -out .ropewalk/bench/presets.json

# The tables of programs that run in the sandbox and what PyTorch computes are left out: what races is in the packages below.
race: tools ## the concurrent packages' tests under the race detector
	ROPEWALK_REQUIRE_SERVERS=1 go test -race -timeout 30m -skip 'TestThreats|TestNeighbours|TestHumanEval|TestReal' $(RACE)

lint: lint-tools ## gofmt, go vet, staticcheck, workflowcheck
	@unformatted=$$(gofmt -l .); \
	if [[ -n $$unformatted ]]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	.tools/staticcheck ./...
	.tools/workflowcheck -config tools/lint/workflowcheck.yaml ./workflows/...

bench: bench-engine bench-rl bench-sandbox bench-quickstart ## every benchmark; each writes .ropewalk/bench/NAME.json

bench-quickstart: build tools ## the main job with three seeds, held against what is required of it (20 minutes)
	@mkdir -p .ropewalk/bench
	@go run ./internal/bench/quickstart -out .ropewalk/bench/quickstart.json -svg docs/learning-curves.svg

bench-sandbox: build ## the sandbox beside its limit and its peers (minutes); Debian: apt-get install bubblewrap, a peer
	@tools/sandbox-python.sh || echo "going on without numpy and sympy"
	@mkdir -p .ropewalk/bench
	@go run ./internal/bench/sandbox -out .ropewalk/bench/sandbox.json

SOAK ?= 30m
soak: ## the sandbox under full load of good and bad programs for SOAK (30m); fails if anything that it holds grows
	@tools/sandbox-python.sh || echo "going on without numpy and sympy"
	@mkdir -p .ropewalk/bench
	@go run ./internal/bench/soak -for $(SOAK) -out .ropewalk/bench/soak.json

bench-%: ## one benchmark: bench-engine, bench-rl, bench-tax
	@mkdir -p .ropewalk/bench
	@go run ./internal/bench/$* -out .ropewalk/bench/$*.json

tools: ## the local servers: those on PATH, else pinned ones built once into .tools/
	@tools/build.sh temporal versitygw

lint-tools:
	@tools/build.sh staticcheck workflowcheck

clean: ## remove what was built; keeps .tools/ and the record in .ropewalk/
	rm -rf bin

help: ## this list
	@awk -F ':.*## ' '/^[a-z%-]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
