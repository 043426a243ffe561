# FlowFabric for Go. `make` lists the targets; the pipeline runs `make check` and `make test`.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c

GO           ?= go
STATICCHECK  := honnef.co/go/tools/cmd/staticcheck@v0.8.2
TEST_TIMEOUT ?= 45m
PKG          ?= ./...

.DEFAULT_GOAL := help
.PHONY: help check fmt quick test test-plain test-nested test-benchmarks test-mcp test-browser release-check soak mutants browser deps demo chat bench bench-guard bench-deps

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

check: ## gofmt, go vet, staticcheck, and the project's own rules (import arrows, goroutine owners)
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		printf 'gofmt wants (run make fmt):\n%s\n' "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) run ./internal/check
	$(GO) run $(STATICCHECK) ./...
	cd benchmarks && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	cd httpapi/spec && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	cd agent/openai && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	cd agent/anthropic && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	cd tools/browser && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	cd examples/chat && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	cd mcp && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...

fmt: ## format the sources
	gofmt -w .

quick: ## the inner loop: the packages that users meet and what is below them, and the suite on Redis but for what enumerates; no race detector
	$(GO) test -p 4 $$($(GO) list ./... | grep -v -E '/(internal/(cluster|conformance|crash|model|mutants|testserver|toxic)|examples/.*|docs/tutorial|ops)$$')
	$(GO) test -run '^TestRedis$$' -skip '^TestRedis$$/^(audit|errors|fuzz|golden|interleavings|lost_replies)$$' ./internal/conformance

test: ## all tests, with the race detector where goroutines are (as root on Debian it first installs the servers); PKG=./client/... narrows them down
	@$(MAKE) --no-print-directory deps || echo 'make test: going on without; tests that need the server say so'
	$(GO) test $(RACE) $(TEST_FLAGS) $(if $(filter ./...,$(PKG)),$$($(GO) list ./runtime ./httpapi ./... | grep -v -E '/($(PLAIN))$$'),$(PKG))
	@case "$(PKG)" in ./...) $(MAKE) --no-print-directory -j2 test-plain test-nested && $(MAKE) --no-print-directory test-browser;; esac

# Tests and the compiler make much garbage. Collected later than usual, but not beyond a gibibyte a process, it takes a tenth less of the processor.
test quick: export GOGC ?= 400
test quick: export GOMEMLIMIT ?= 1GiB

# Most tests wait for servers, so four packages run at once, and those that take longest begin. `make check` has vetted them.
TEST_FLAGS := -vet=off -p 4 -timeout $(TEST_TIMEOUT)
RACE := $$(GO='$(GO)' ./tools/race)
# Without the race detector: what enumerates (the suite, the model, crashes in virtual time), for it would take most of the time there; and
# what only uses the packages below (commands, examples, pages, processes that are killed). Where those make calls at the same time it runs as well.
PLAIN := agent|fftest|schedule|ops|docs.*|examples/.*|cmd/.*|internal/(check|conformance|crash|library|model|mutants|testserver)
test-plain:
	$(GO) test $(TEST_FLAGS) $$($(GO) list ./internal/conformance ./... | grep -E '/($(PLAIN))$$')
	$(GO) test $(RACE) $(TEST_FLAGS) -run '^Test(Live|Redis|Linearizable|FlowsTogether|Crashes|Sleep.*)$$/^(|redis|bell|feed|replicas|signal|suspend|workers)$$' ./internal/conformance ./internal/model ./fftest
	$(GO) test $(RACE) $(TEST_FLAGS) -skip '^Test.*Crashes' ./agent

# The other modules, beside what computes. Adapters start no goroutines, and their services' packages take minutes to compile for the race detector. The browser comes behind them: people do not share a computer with a test suite.
test-nested:
	@$(MAKE) --no-print-directory test-mcp
	@$(MAKE) --no-print-directory test-benchmarks

test-benchmarks:
	cd benchmarks && $(GO) test $(TEST_FLAGS) ./...
	cd httpapi/spec && $(GO) test -count=1 $(TEST_FLAGS) ./...
	cd examples/chat && $(GO) test $(TEST_FLAGS) ./...
	cd agent/openai && $(GO) test $(TEST_FLAGS) ./...
	cd agent/anthropic && $(GO) test $(TEST_FLAGS) ./...

# Without npm the official suite and client are not run, which is said; in the pipeline that is a failure.
test-mcp:
	@./tools/install-node || echo 'make test: going on without Node.js'
	race="$(RACE)"; cd mcp && $(GO) test $$race -count=1 $(TEST_FLAGS) ./...

# Without a Chromium the pages are not looked at, and without npm not for accessibility, which is said; in the pipeline that is a failure.
test-browser:
	@./tools/install-node || echo 'make test: going on without Node.js'
	@if ./tools/install-chromium; then cd tools/browser && $(GO) test -count=1 -vet=off -timeout $(TEST_TIMEOUT) ./...; \
		elif [ -n "$${CI:-}" ]; then exit 1; else echo 'make test: going on without a browser'; fi

soak: ## the full counts of what `make test` samples: random calls, concurrent histories, kills (hours; see CONTRIBUTING)
	FLOWFABRIC_SOAK=10000 $(GO) test -timeout 2h ./internal/model
	FLOWFABRIC_SOAK=1 $(GO) test -timeout 1h ./examples/... ./fftest ./internal/library
	FLOWFABRIC_SOAK=1000000 $(GO) test -v -timeout 12h -run 'TestRedis/(errors|fuzz)/random' ./internal/conformance
	FLOWFABRIC_SOAK_CRASH=1 $(GO) test -v -timeout 48h ./internal/crash

mutants: ## seed over 1,000 bugs one by one, each of which the tests must catch (an hour); BUGS='-run ^tick:' narrows it down
	$(GO) run ./internal/mutants $(BUGS)

browser: test-browser ## the dashboard, the approval page and the chat in a headless Chromium (as root on Debian it first installs one); leaves screenshots in tools/browser/screenshots

release-check: ## lint workflows and chart, and make an unpublished release in dist/ (builds goreleaser, helm and linters the first time)
	@./tools/release-check

deps: ## install the servers, the compiler and the Node.js that tests need, where that is possible (Debian, as root)
	@./tools/install-servers
	@./tools/install-node || echo 'going on without Node.js'

demo: ## all five examples, nothing to install, about a minute: streaming, people and crashes, a race, fan-out and fan-in, budgets
	@printf '\n== 1 of 5: examples/llm-streaming ==\n\n'
	@$(GO) run ./examples/llm-streaming
	@printf '\n\n== 2 of 5: examples/approval-flow -crash ==\n\n'
	@$(GO) run ./examples/approval-flow -crash
	@printf '\n\n== 3 of 5: examples/race ==\n\n'
	@$(GO) run ./examples/race -mermaid
	@printf '\n\n== 4 of 5: examples/map-reduce ==\n\n'
	@$(GO) run ./examples/map-reduce
	@printf '\n\n== 5 of 5: examples/token-budget ==\n\n'
	@$(GO) run ./examples/token-budget

chat: ## talk to an agent in the browser, nothing to install and no key needed; FLAGS='-limit 1500' passes flags
	@cd examples/chat && $(GO) run . $(FLAGS)

bench: ## measure all systems that are installed and write a report (over half an hour); BENCH='-system flowfabric -scenarios drain' narrows it down
	@cd benchmarks && dir=$$PWD/results/$$(date +%Y%m%d-%H%M%S) && \
		$(GO) run . -system all -json $$dir/run.json $(BENCH) && $(GO) run . report -o $$dir/REPORT.md $$dir/run.json

bench-guard: ## fail if a hot path has become much dearer in relation to what the server can do (half a minute; see benchmarks/report/guard.go)
	cd benchmarks && $(GO) run . guard $(BENCH)

bench-deps: ## install what the benchmarks of other systems need, where that is possible (Debian, as root): PostgreSQL, Node.js, npm packages
	@./tools/install-bench-servers
