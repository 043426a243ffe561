# FlowFabric for Go. `make` lists the targets; the pipeline runs `make check`, `make test` and `make test-all`.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c

GO           ?= go
STATICCHECK  := honnef.co/go/tools/cmd/staticcheck@v0.8.2
TEST_TIMEOUT ?= 45m
PKG          ?= ./...

.DEFAULT_GOAL := help
.PHONY: help check fmt quick test test-raced test-plain test-suite test-all rest-suite rest-packages rest-raced test-nested test-benchmarks test-mcp test-browser site test-site release-check simulate soak fuzz mutants mutants-sample browser servers test-servers deps demo chat bench bench-guard bench-deps

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

check: ## gofmt, go vet, staticcheck, and the project's own rules (import arrows, goroutine owners)
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		printf 'gofmt wants (run make fmt):\n%s\n' "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) run ./internal/check
	$(GO) run ./internal/contract/generate -check -root .
	$(GO) run $(STATICCHECK) ./...
	cd benchmarks && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	cd httpapi/spec && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	cd agent/openai && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	cd agent/anthropic && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	cd agent/gemini && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	cd agent/adk && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	cd agent/mcptools && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	cd agent/mcptools/ourserver && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	cd blob/s3 && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	cd outbox/pgxoutbox && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	cd outbox/flowfabric-outbox && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	cd tools/browser && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	cd examples/otlp && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	cd examples/chat && $(GO) vet ./... && $(GO) vet -tags no_openai,no_anthropic ./... && $(GO) run $(STATICCHECK) ./...
	cd mcp && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...

fmt: ## format the sources
	gofmt -w .

quick: ## the inner loop: the packages that users meet and what is below them, and the suite on Redis but for what enumerates; no race detector
	$(GO) test -p 4 $$($(GO) list ./... | grep -v -E '/(clients/.*|internal/(cluster|conformance|crash|model|mutants|testserver|toxic)|examples/.*|docs/tutorial|ops)$$')
	$(GO) test -run '^TestRedis$$' -skip '^TestRedis$$/^(audit|errors|fuzz|golden|interleavings|lost_replies)$$' ./internal/conformance

# Two tiers. make test is for everybody who changed something; make test-all adds what takes long, and does not repeat what make test
# did for the same files. Their parts:
#
#	test-raced    packages whose goroutines work together, under the race detector
#	test-plain    the other packages of this module
#	test-suite    the conformance suite on Redis, and of the other servers what can differ there
#	rest-*        the suite on all servers, killed processes and failing clusters, the race detector for the rest, other modules, pages, seeded bugs
test: ## the tests of this module in minutes, with the race detector where goroutines are (as root on Debian it first installs the servers); PKG=./client/... narrows them down
	@$(MAKE) --no-print-directory deps || echo 'make test: going on without; tests that need the server say so'
	@echo 'make test: compiling; from an empty build cache the first results take minutes'
	@case "$(PKG)" in \
		./...) mkdir -p .build && rm -f $(PASSED) && $(MAKE) --no-print-directory -j3 test-suite test-plain test-raced && ./tools/tree >$(PASSED);; \
		*) $(GO) test $(RACE) $(TEST_FLAGS) $(PKG);; \
	esac

test-raced:
	@$(GO) test $(call cpu,raced) $(RACE) $(TEST_FLAGS) -skip '$(FOREIGN)' $(call packages,$(RACED))

test-plain:
	@$(GO) test $(call cpu,plain) $(TEST_FLAGS) $$($(GO) list ./... | grep -v -E '^$(MODULE)/($(RACED)|$(LATE)|internal/(conformance|model))$$')

test-suite:
	@$(GO) test $(call cpu,suite) $(TEST_FLAGS) -run '$(SUITE)' ./internal/conformance
	@$(GO) test $(call cpu,suite) $(TEST_FLAGS) -run '$(MOVED)' ./internal/cluster
	@$(GO) test $(call cpu,suite) $(TEST_FLAGS) -run '$(MODEL)' ./internal/model

test-all: ## everything there is: all servers, killed processes, other modules, pages in a browser, a sample of seeded bugs (half an hour)
	@if [ "$$(cat $(PASSED) 2>/dev/null)" != "$$(./tools/tree)" ]; then $(MAKE) --no-print-directory test MEASURE=1; fi
	@$(MAKE) --no-print-directory deps
	@$(MAKE) --no-print-directory -j2 rest-suite rest-packages
	@$(MAKE) --no-print-directory test-site
	@$(MAKE) --no-print-directory test-browser
	@$(MAKE) --no-print-directory mutants-sample
	$(GO) run ./internal/check -cpu

rest-suite:
	$(GO) test $(call cpu,rest) $(TEST_FLAGS) -skip '$(SUITE)' ./internal/conformance
	$(GO) test $(call cpu,rest) $(TEST_FLAGS) -skip '$(MOVED)' ./internal/cluster
	$(GO) test $(call cpu,rest) $(TEST_FLAGS) -skip '$(MODEL)' ./internal/model

rest-packages:
	$(GO) test $(call cpu,rest) $(TEST_FLAGS) $$($(GO) list ./... | grep -E '^$(MODULE)/($(LATE))$$' | grep -v /internal/cluster$$)
	FLOWFABRIC_SEEDS=600 $(GO) test $(call cpu,rest) $(TEST_FLAGS) -run '^TestSimulate$$' ./internal/simulate
	@$(MAKE) --no-print-directory rest-raced test-nested

# Race detector for the rest: what only uses the packages above, or enumerates, where it makes calls at the same time.
rest-raced:
	$(GO) test $(call cpu,rest-raced) $(RACE) $(TEST_FLAGS) -run '^Test(Live|Redis|Linearizable|FlowsTogether|Crashes|Sleep.*)$$/^(|redis|bell|feed|replicas|signal|suspend|workers)$$' ./internal/conformance ./internal/model ./fftest
	$(GO) test $(call cpu,rest-raced) $(RACE) $(TEST_FLAGS) -skip '^Test.*Crashes' ./agent
	$(GO) test $(call cpu,rest-raced) $(RACE) $(TEST_FLAGS) -run '$(FOREIGN)' ./httpapi ./chat

MODULE := github.com/flowfabric/flowfabric-go
# Packages whose goroutines work together.
RACED := runtime|client|chat|admin|lease|httpapi|embedded|handler(/.*)?|stream|suspend|approval|internal/(admit|coalesce|engine|framelog|functions|gateway|inproc|keeper|maintain|offer|partmetrics|session|source|tokenkeys|waits)
# What kills, stops and divides servers and processes, and what runs the packages of other languages.
LATE := clients/(conformance|python|typescript)|internal/(cluster|crash|mutants|sentinel|testserver|toxic)
# Of the suite: all of it on Redis; on the embedded server what an interpreter and a store of its own can do differently (numbers, patterns, ranges,
# expiry); elsewhere a scenario for each type of value, and in a cluster one for moved slots.
TYPES := Test(Valkey|Cluster)/^create$$/^a_new_execution_waits|Test(Valkey|Cluster)/^steps$$/^a_recorded_step_is_listed|Test(Valkey|Cluster)/^claim$$/^a_route_that_a_claim_empties|Test(Valkey|Cluster)/^time$$/^work_of_a_dead_session|Test(Valkey|Cluster)/^mailbox$$/^messages_are_received_once|Test(Valkey|Cluster)/^stream$$/^the_first_append
SUITE := TestRedis|TestLive|TestShapes|TestGuarantees|TestPersistence|TestEmbedded/^(claim|keys|debounce|stream|time|edge_cases|totals|mailbox|lanes|inspect|retention|server)$$|$(TYPES)
MOVED := TestSlotMove
# Of the model, the random calls.
MODEL := TestProperty

# What Node.js runs: a suite that others wrote.
FOREIGN := TestDurableStreamsSuite|TestFrontEnds

# The files that make test passed for.
PASSED := .build/passed

# cpu notes the processor time of tests, in the pipeline and for make test-all. Go does not keep results of such runs, so elsewhere it is left out.
cpu = $(if $(CI)$(MEASURE),-exec '$(CURDIR)/tools/cputime $(1)')
packages = $$($(GO) list ./... | grep -E '^$(MODULE)/($(1))$$')

# Tests and the compiler make much garbage. Collected later than usual, but not beyond a gibibyte a process, it takes a tenth less of the processor.
test test-all quick demo chat: export GOGC ?= 400
test test-all quick demo chat: export GOMEMLIMIT ?= 1GiB

# Most tests wait for servers, so several packages run at once. `make check` has vetted them.
TEST_FLAGS := -vet=off -p 4 -timeout $(TEST_TIMEOUT)
RACE := $$(GO='$(GO)' ./tools/race)

# The other modules. Adapters start no goroutines, and their services' packages take minutes to compile for the race detector.
test-nested:
	@$(MAKE) --no-print-directory test-mcp
	@$(MAKE) --no-print-directory test-benchmarks

test-benchmarks:
	cd benchmarks && $(GO) test $(call cpu,rest) $(TEST_FLAGS) ./...
	cd httpapi/spec && $(GO) test -count=1 $(call cpu,rest) $(TEST_FLAGS) ./...
	cd examples/chat && $(GO) test $(call cpu,rest) $(TEST_FLAGS) -tags no_openai,no_anthropic ./... && $(GO) test $(TEST_FLAGS) -run TestChoose .
	cd examples/otlp && $(GO) test $(call cpu,rest) $(TEST_FLAGS) ./...
	cd agent/openai && $(GO) test $(call cpu,rest) $(TEST_FLAGS) ./...
	cd agent/anthropic && $(GO) test $(call cpu,rest) $(TEST_FLAGS) ./...
	cd agent/gemini && $(GO) test $(call cpu,rest) $(TEST_FLAGS) ./...
	cd agent/adk && $(GO) test $(call cpu,rest) $(TEST_FLAGS) ./...
	cd blob/s3 && $(GO) test $(call cpu,rest) $(TEST_FLAGS) ./...
	cd outbox/pgxoutbox && $(GO) vet ./...
	cd outbox/flowfabric-outbox && $(GO) test $(call cpu,rest) $(TEST_FLAGS) ./...

# Without npm the official suite and client are not run, which is said; in the pipeline that is a failure.
test-mcp:
	@./tools/install-node || echo 'make test-all: going on without Node.js'
	race="$(RACE)"; cd mcp && $(GO) test $$race -count=1 $(call cpu,rest) $(TEST_FLAGS) ./...
	race="$(RACE)"; cd agent/mcptools && $(GO) test $$race $(call cpu,rest) $(TEST_FLAGS) -skip '^TestCrashes' ./...
	cd agent/mcptools && $(GO) test $(call cpu,rest) $(TEST_FLAGS) -run '^TestCrashes' ./...
	cd agent/mcptools/ourserver && $(GO) test $(call cpu,rest) $(TEST_FLAGS) ./...

# Without a Chromium the pages are not looked at, and without npm not for accessibility, which is said; in the pipeline that is a failure. The
# browser comes behind the rest: people do not share a computer with a test suite.
test-browser:
	@./tools/install-node || echo 'make test-all: going on without Node.js'
	@if ./tools/install-chromium; then cd tools/browser && $(GO) test -count=1 -vet=off -timeout $(TEST_TIMEOUT) ./...; \
		elif [ -n "$${CI:-}" ]; then exit 1; else echo 'make test-all: going on without a browser'; fi

# Without npm the site is not built, which is said; in the pipeline that is a failure.
test-site:
	@if ./tools/install-node; then ./tools/site/build; elif [ -n "$${CI:-}" ]; then exit 1; else echo 'make test-all: going on without the site'; fi

site: ## the pages of docs as a site with a search, in .build/site (half a minute); npx vitepress preview in tools/site serves it
	@./tools/install-node && ./tools/site/build

simulate: ## a whole deployment in virtual time, with faults, from a seed (internal/simulate): SEED=7 replays one, SEEDS=1000 or SEEDS=1001-2000 runs many
	@FLOWFABRIC_SEED='$(SEED)' FLOWFABRIC_SEEDS='$(or $(SEEDS),100)' $(GO) test -count=1 -vet=off -timeout $(TEST_TIMEOUT) $(if $(SEED),-v) -run '^TestSimulate$$' ./internal/simulate

soak: ## the full counts of what the tests sample, in parts: kills, random calls, histories (hours; goes on where it was stopped); PART=kills SHARD=2/4 narrow it down
	@./tools/soak

fuzz: ## fuzz every target, ten minutes each (hours); TIME=30s SHARD=2/4 narrow it down
	@./tools/fuzz

mutants: ## change the library in 14,000 places, one by one; the tests must notice each (a night; see CONTRIBUTING); BUGS='-run ^lib/claim' narrows it down
	$(GO) run ./internal/mutants -j 2 $(BUGS)

# Of fresh samples 39 mutants of 240 survive: p = 0.163. The bound is 60p and three deviations, 9.8 + 3 × 2.9 (ADR 64).
mutants-sample: ## 60 of these mutants, chosen by the hash of the commit; fails if more than 19 survive (five minutes)
	$(GO) run ./internal/mutants -j 2 -sample 60 -spare 19 -seed "$$(git rev-parse HEAD)" $(BUGS)

browser: test-browser ## the dashboard, the approval page and the chat in a headless Chromium (as root on Debian it first installs one); leaves screenshots in tools/browser/screenshots

release-check: ## lint workflows and chart, and make an unpublished release in dist/ (builds goreleaser, helm and linters the first time)
	@./tools/release-check

servers: ## get other versions of Redis and Valkey, each into a folder of .build/servers (packages of Debian, unpacked and not installed)
	@./tools/servers

# Both names of servers are the version under test (tools/servers), so tests of Redis and of Valkey run on it alike.
test-servers: ## run the suite, clusters, Sentinels and killed processes on each of these versions (ten minutes each); SERVER=valkey-9.1 runs one
	@for folder in $(CURDIR)/.build/servers/$(or $(SERVER),*)/; do \
		test -x $$folder/redis-server || { echo "no server in $$folder; run make servers" >&2; exit 1; }; \
		printf '\n== %s\n' "$$($$folder/redis-server --version)"; \
		export PATH="$$folder:$$PATH"; \
		$(GO) test -count=1 $(TEST_FLAGS) -run '^Test(Redis|Persistence|Cluster)$$' -skip '$(ENUMERATED)' ./internal/conformance; \
		$(GO) test -count=1 $(TEST_FLAGS) ./internal/cluster ./internal/sentinel; \
		$(GO) test -count=1 $(TEST_FLAGS) -run '^Test(Kill|ServerKilledWithEveryWriteOnDisk)$$/^(|redis-server)$$' ./internal/crash; \
	done

# Topics that enumerate: they exercise the library, not the server.
ENUMERATED := ^TestRedis$$/^(audit|errors|fuzz|golden|interleavings|lost_replies|twins)$$

deps: ## install the servers, the compiler and the Node.js that tests need, where that is possible (Debian, as root)
	@./tools/install-servers
	@./tools/install-node || echo 'going on without Node.js'

demo: ## all six examples, nothing to install, a minute: streaming, people and crashes, a race, fan-out and fan-in, budgets, a governor
	@echo 'Building the six examples, then running them. Building takes seconds, the first time about a minute.'
	@mkdir -p .build/demo && $(GO) build -ldflags='-s -w' -o .build/demo/ $(DEMOS:%=./examples/%); \
		show() { printf '\n\n== %s of 6: examples/%s ==\n\n' "$$1" "$${*:2}"; ".build/demo/$$2" "$${@:3}"; }; \
		show 1 llm-streaming -tokens 90; \
		show 2 approval-flow -crash -pace 150ms; \
		show 3 race -mermaid -tokens 36; \
		show 4 map-reduce; \
		show 5 token-budget; \
		show 6 governor -seconds 9

DEMOS := llm-streaming approval-flow race map-reduce token-budget governor

chat: ## talk to an agent in the browser, nothing to install and no key needed; FLAGS='-limit 1500' passes flags
	@echo 'Building the chat, then serving it in this terminal. Building takes seconds, the first time $(if $(CHAT_OPENAI)$(CHAT_ANTHROPIC),some minutes: the SDK of a model service is compiled too,about a minute).'
	@cd examples/chat && $(GO) run -ldflags='-s -w' -tags '$(if $(CHAT_OPENAI),,no_openai),$(if $(CHAT_ANTHROPIC),,no_anthropic)' . $(FLAGS)

# The SDK of a service takes minutes to compile, so the chat has those whose key is set.
CHAT_OPENAI    = $(OPENAI_API_KEY)$(OPENAI_BASE_URL)
CHAT_ANTHROPIC = $(ANTHROPIC_API_KEY)

bench: ## measure all systems that are installed and write a report (over half an hour); BENCH='-system flowfabric -scenarios drain' narrows it down
	@cd benchmarks && dir=$$PWD/results/$$(date +%Y%m%d-%H%M%S) && \
		$(GO) run . -system all -json $$dir/run.json $(BENCH) && $(GO) run . report -o $$dir/REPORT.md $$dir/run.json

bench-guard: ## fail if a hot path has become much dearer in relation to what the server can do (half a minute; see benchmarks/report/guard.go)
	cd benchmarks && $(GO) run . guard $(BENCH)

bench-deps: ## install what the benchmarks of other systems need, where that is possible (Debian, as root): PostgreSQL, Node.js, npm packages
	@./tools/install-bench-servers
