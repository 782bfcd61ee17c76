# "make" alone lists what there is. Needed: Go 1.26, git, make, bash; the rest
# is fetched by the go command or, for tests, installed from Debian's packages.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS   += --no-print-directory --no-builtin-rules

SOAK     ?= 50
ENDINGS  ?= 100000
FUZZTIME ?= 10s
LOADTIME ?= 60
LINES    ?= 10000000
BENCH    ?= Decision
COUNT    ?= 6

# Tests run in their own folders, so the data folder must not be relative.
ifdef BRIMLINE_DATA
override BRIMLINE_DATA := $(abspath $(BRIMLINE_DATA))
export BRIMLINE_DATA
endif

.DEFAULT_GOAL := help
.PHONY: help build demo test lint floors self-test kills soak endings bench load-compare replay-compare fuzz foreign cover clean compiler database browser promtool proxies

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

build: ## build bin/brimline
	@CGO_ENABLED=0 go build -trimpath -o bin/brimline ./cmd/brimline

demo: build ## the two-minute tour; leaves its files in demo-out/
	@bin/brimline demo

test: compiler database browser promtool proxies ## run all tests under the race detector; BRIMLINE_DATA=folder adds recorded data
	@go test -race -timeout 30m ./...

lint: ## formatting, vet, staticcheck, known vulnerabilities, floors, go.mod, file lengths, shell syntax
	@scripts/lint.sh
	@$(MAKE) floors

floors: ## check which package imports which
	@CGO_ENABLED=0 go test ./internal/floors

self-test: build ## does the suite notice every deliberate fault? Two minutes; --whole takes many
	@bin/brimline check --self-test

kills: build ## measure anew which scenario catches which fault; CLAUSES=RATE-9,HDR-5 measures those alone
	@rm -rf out/kills
	@for kind in moved-clock real-clock plain-http; do \
		bin/brimline check --self-test --on $$kind $(if $(CLAUSES),--clauses $(CLAUSES)) --out out/kills/$$kind >/dev/null || [ $$? -eq 1 ] || exit 1; \
	done
	@go test ./conformance -count 1 -run '^TestKillsAreComplete$$' -kills ../out/kills

soak: proxies ## judge a correct server SOAK=50 times in each of five settings on busy cores
	@SOAK=$(SOAK) go test ./conformance -count 1 -v -timeout 6h -parallel 6 -run '^TestSoak$$'

endings: compiler ## end ENDINGS=100000 requests in every way there is; is every permit back?
	@ENDINGS=$(ENDINGS) go test -race -count 1 -v -timeout 60m -run '^TestEveryEnding$$' ./reference/server

bench: ## time one decision; BENCH=pattern for other benchmarks, COUNT=6 times
	@go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) \
		$$(git grep --untracked -l '^func Benchmark' -- '*_test.go' | sed 's|^|./|; s|/[^/]*$$||' | sort -u)
	@echo "To compare: make bench > old.txt, change, make bench > new.txt, go tool benchstat old.txt new.txt" >&2

fuzz: ## run every fuzz target for FUZZTIME=10s
	@scripts/fuzz.sh $(FUZZTIME)

foreign: proxies ## run the whole suite against other people's limiters, twice; writes docs/foreign.md
	@CGO_ENABLED=0 go test -count 1 -timeout 30m -run '^TestForeign' ./conformance -foreign 2

load-compare: build ## brimline load beside vegeta, k6, fortio, hey and wrk, LOADTIME=60 s each; wants a quiet machine
	@SECONDS_EACH=$(LOADTIME) scripts/load-compare.sh

replay-compare: build ## brimline replay beside goaccess on a log of LINES=10000000; wants a quiet machine
	@LINES_EACH=$(LINES) scripts/replay-compare.sh

cover: ## measure what the tests reach; leaves bin/cover.html
	@mkdir -p bin
	@go test -timeout 20m -coverpkg ./... -coverprofile bin/cover.out ./...
	@go tool cover -html bin/cover.out -o bin/cover.html
	@go tool cover -func bin/cover.out | tail -n 1

clean: ## remove what the other targets leave
	@rm -rf bin demo-out out

compiler: # the race detector is built with a C compiler
	@scripts/need.sh gcc gcc libc6-dev

database: # tests start a PostgreSQL of their own; Debian keeps its programs out of PATH
	@PATH=$$(printf '%s:' /usr/lib/postgresql/*/bin)$$PATH scripts/need.sh initdb postgresql

browser: # tests look at pages in it
	@scripts/need.sh chromium chromium

promtool: # tests of the alerts, and of what a report asks a Prometheus for
	@scripts/need.sh promtool prometheus
	@scripts/need.sh prometheus prometheus

proxies: # tests run the server behind them; their packages' own services are not started
	@PATH=$$PATH:/usr/sbin scripts/need.sh nginx nginx
	@PATH=$$PATH:/usr/sbin scripts/need.sh haproxy haproxy
