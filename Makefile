# What can be done with this tree. `make help` lists it.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.2
APIDIFF ?= golang.org/x/exp/cmd/apidiff@v0.0.0-20261014143641-f0251eb4aa3e
GOVULNCHECK ?= golang.org/x/vuln/cmd/govulncheck@v1.9.0
FUZZTIME ?= 5s
FUZZ ?= .
BENCHTIME ?= 1s
WATCH := bin/rules watch

# How many packages are built and tested side by side: two a core, since many tests wait.
PACKAGES ?= $(shell n=$$(nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2); echo $$((2 * n)))

# How many packages of interop/go are tested side by side: most of the time they wait.
LANES ?= 3

# The tests of interop/go beside which nothing runs: they judge how long something takes,
# what it costs or how much is kept. ALONE_IN are the packages that have some beside others;
# all of ALONE_WHOLE are such tests. A test of interop/go/internal/rig holds the lists.
ALONE := ^Test(U02Silence|U02SlowStart|Line11Cost|Line11Alone|M2L35|L2M21)
ALONE_IN_INTEROP := ./firststart ./replicas
ALONE_IN_TRUNK := ./trunk ./sessions
ALONE_WHOLE := ./endings ./hostile

BESIDE_INTEROP := ./auth . ./shown ./groups ./replicas ./firststart ./matrix ./extensions ./install ./day ./deviations ./page ./patience ./reload ./sweep ./traces ./internal/...
BESIDE_TRUNK := ./trunk ./chaos ./sessions

# Those that make soak alone runs: what they install is too large for each run of CI.
SOAK_ONLY := ./hosts

# The packages that other programs import.
PUBLIC := gateway gateway/replicas/nats gateway/replicas/redis

# The mcpbridge that interop/build makes, for packages that would build their own.
BUILT := $(CURDIR)/interop/bin/mcpbridge
BOTH := $(MAKE) --no-print-directory -k -j2
INTEROP_GO := MCPBRIDGE=$(BUILT) $(GO) -C interop/go test -count=1 -timeout 40m -json

# For `make interop`: the published schemas of all revisions, REVISION.json each, with
# the examples of 2026-07-28. Without a folder of them beside the clone, interop/schemas
# brings them. Tests that hold messages against them are built under the tag schemas, and
# fail without.
export MCP_SCHEMAS ?= $(abspath $(firstword $(wildcard ../shared/schema) interop/bin/schemas))

# For `make interop`, too: the reference documents, whose programs are run as they stand
# there. They have no public place: the tests that do so are left out without.
export MCP_REFERENCES ?= $(abspath ../shared/references)

.PHONY: help
help: ## list the targets
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

.PHONY: build
build: ## build bin/mcpbridge
	$(GO) build -tags grpcnotrace -o bin/mcpbridge ./cmd/mcpbridge # without the tag it is larger by 11 MB

.PHONY: check
check: lint cross api test ## everything that needs only Go: format, vet, staticcheck, cross builds, the public API, tests with -race

.PHONY: lint
lint: ## gofmt, go vet and staticcheck, on the peers' harness too
	@bad=$$(gofmt -l $$(find . -name '*.go' -not -path '*/node_modules/*')); \
	  if [ -n "$$bad" ]; then echo "gofmt would change:"; echo "$$bad"; exit 1; fi
	$(GO) vet -tags schemas,man ./...
	$(GO) vet -tags clockseam ./internal/replicas
	$(GO) run $(STATICCHECK) -tags schemas,man ./...
	@set -x; for m in interop/go interop/legacy-go interop/modern-go interop/stateful interop/odd interop/events interop/remote interop/client-go161 interop/client-mcpgo interop/server-mcpgo interop/collector interop/engines interop/chart; do \
	  $(GO) -C $$m vet ./...; (cd $$m && $(GO) run $(STATICCHECK) ./...); done

.PHONY: cross
cross: ## build for the other systems
	GOOS=darwin $(GO) build ./...
	GOOS=windows $(GO) build ./...

.PHONY: api
api: ## what of the public packages has changed so that programs which import them may not build
	@bad=$$(for p in $(PUBLIC); do $(GO) run $(APIDIFF) -incompatible $$p/testdata/api.export github.com/mcpbridge/mcpbridge/$$p || exit; done); \
	  if [ -n "$$bad" ]; then echo "$$bad"; echo "make api-save accepts this; the next release says so in CHANGELOG.md"; exit 1; fi

.PHONY: api-save
api-save: ## make the API as it is the one that `make api` compares with
	@mkdir -p $(PUBLIC:=/testdata)
	for p in $(PUBLIC); do GOFLAGS=-trimpath $(GO) run $(APIDIFF) -w $$p/testdata/api.export github.com/mcpbridge/mcpbridge/$$p; done

.PHONY: test
test: bin/rules ## go test -race ./..., and what a call allocates, which the race detector blurs
	$(GO) test -run Alloc ./gateway/internal/router
	$(GO) test -race -p $(PACKAGES) -timeout 20m -json ./... | $(WATCH) -o bin/race.json -crashed bin/crashed.txt
	@rm -f bin/race-again.json; [ ! -s bin/crashed.txt ] || { set -x; \
	  $(GO) test -race -p $(PACKAGES) -timeout 20m -json $$(cat bin/crashed.txt) | $(WATCH) -o bin/race-again.json; }

.PHONY: rules
rules: bin/rules ## which rules of docs/rules.md the last `make test` and `make interop` prove
	@for f in bin/race.json; do [ -s $$f ] || $(MAKE) --no-print-directory test; done
	@bin/rules judge -list docs/rules.md $$(for f in bin/race.json bin/race-again.json bin/schemas.json bin/interop.json bin/interop-alone.json bin/trunk.json bin/trunk-alone.json bin/trunk-whole.json; do [ ! -s $$f ] || echo $$f; done)

.PHONY: interop
interop: bin/rules ## real clients and servers, the conformance suite and the published schemas (needs node, npm and python3; a JDK and mvn for the Java SDK, or its recorded requests stand in; cargo for the Rust SDK, or its client is left out)
	interop/require documents
	interop/schemas
	interop/build
	@rm -f interop/bin/*.txt bin/failed.txt; rc=0; \
	  $(BOTH) interop-peers interop-beside || rc=$$?; \
	  set -x; $(GO) -C interop/engines test -race -count=1 -parallel 4 -timeout 15m -json . | $(WATCH) -o bin/engines.json || rc=1; \
	  $(INTEROP_GO) -p 1 -run '$(ALONE)' $(ALONE_IN_INTEROP) | $(WATCH) -v -o bin/interop-alone.json || rc=$$?; set +x; \
	  cat interop/bin/pairings.txt interop/bin/matrix.txt interop/bin/legacy-direct.txt interop/bin/legacy.txt interop/bin/conformance.txt interop/bin/login.txt || rc=1; exit $$rc

# Two lanes of `make interop`: they wait most of the time.
.PHONY: interop-peers interop-beside
interop-peers: bin/rules
	@rc=0; set -x; for m in legacy-2026 legacy-go modern-go; do $(GO) -C interop/$$m test -count=1 -timeout 10m -json . | $(WATCH) -o bin/$$m.json || rc=1; done; \
	  deploy/check 2>&1 | tee bin/deploy.txt || { rc=1; tail -n 40 bin/deploy.txt >>bin/failed.txt; }; \
	  MCPBRIDGE=$(BUILT) $(GO) -C interop/chart test -count=1 -timeout 15m -json . | $(WATCH) -o bin/chart.json || rc=1; \
	  $(GO) test -count=1 -timeout 10m -tags schemas -json ./legacy/projection | $(WATCH) -o bin/schemas.json || rc=1; exit $$rc
interop-beside: bin/rules
	$(INTEROP_GO) -p $(LANES) -skip '$(ALONE)' $(BESIDE_INTEROP) | $(WATCH) -v -o bin/interop.json

.PHONY: matrix
matrix: ## every client with every server over every transport that both have (interop/matrix/table.json)
	interop/build
	MATRIX=all $(GO) -C interop/go test -count=1 -timeout 20m ./matrix || rc=$$?; cat interop/bin/pairings.txt; exit $${rc:-0}

.PHONY: trunk
trunk: bin/rules ## listen streams, calls and endings under numbers and faults, through mcpbridge as a process
	@mkdir -p $(dir $(BUILT))
	CGO_ENABLED=0 $(GO) build -o $(BUILT) ./cmd/mcpbridge
	@rc=0; set -x; \
	  $(INTEROP_GO) -p $(LANES) -skip '$(ALONE)' $(BESIDE_TRUNK) | $(WATCH) -v -o bin/trunk.json || rc=$$?; \
	  $(INTEROP_GO) -p 1 -run '$(ALONE)' $(ALONE_IN_TRUNK) | $(WATCH) -v -o bin/trunk-alone.json || rc=$$?; \
	  $(INTEROP_GO) -p 1 $(ALONE_WHOLE) | $(WATCH) -v -o bin/trunk-whole.json || rc=$$?; exit $$rc

.PHONY: hostile
hostile: ## clients that try to have mcpbridge keep all they can, for HOSTILE seconds (60 unless set, which judges latencies and what is left, too: 5 minutes)
	HOSTILE=$${HOSTILE:-60} $(GO) -C interop/go test -count=1 -timeout 20m -v ./hostile

.PHONY: bench
bench: ## the benchmarks beside the code, calls beside others that wait, then mcpbridge beside other programs; fails over a budget
	$(GO) build -o bin/budget ./internal/dev/bench/budget
	@rc=0; set -x; \
	  $(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./... | bin/budget || rc=1; \
	  $(GO) -C interop/go test -run '^$$' -bench . -benchtime 1x -timeout 10m -p 1 ./chaos ./trunk ./firststart | bin/budget || rc=1; \
	  $(GO) run ./internal/dev/bench || rc=1; exit $$rc

.PHONY: soak
soak: ## the same in numbers that CI has no time for
	interop/build
	STREAMS=10000 KILLS=1000 FIRSTSTART=all ENDINGS=all HOSTILE=60 RELOADS=1000 $(GO) -C interop/go test -count=1 -timeout 120m -p 1 -v ./trunk ./chaos ./sessions ./firststart ./endings ./hostile ./reload
	NUMBERS=full $(GO) test -count=1 -timeout 30m -v -run "RandomSchedules|ManySessions|UnfinishedMessages|ProfilesKeepNoTexts|TerminalControl" ./legacy/back ./modern/watch ./gateway/internal/router ./cmd/mcpbridge
	MODEL=10000 $(GO) test -count=1 -timeout 60m -v -run ModelOfOwners ./internal/replicas/member
	URI_SPELLINGS=1000000 $(GO) test -count=1 -timeout 60m -v -run Spellings ./internal/trust/policy
	PATIENCE=11m $(GO) -C interop/go test -count=1 -timeout 15m -v ./patience
	PAGE_STREAMS=10000 $(GO) -C interop/go test -count=1 -timeout 30m -v -run TestCostOfLooking ./page
	REPLICAS=full $(GO) -C interop/go test -count=1 -timeout 180m -v ./replicas
	FAULTS=20 $(GO) -C interop/go test -count=1 -timeout 300m -v -run 'Faults|ReadyMeansUseful|AServerThatOneLacks|TLSInTwoSteps' ./replicas
	$(GO) -C interop/go test -count=20 -timeout 120m -v -run 'ThroughTheBalancer|NoNoticeIsDoubled' ./replicas
	SCHEDULES=1000 $(GO) -C interop/go test -count=1 -timeout 60m -v -run Quiz ./extensions
	LIVES=3600 $(GO) -C interop/go test -count=1 -timeout 90m -v -run T20Lives ./extensions
	SEED=1 DEVIATIONS=2000 $(GO) -C interop/go test -count=1 -timeout 30m -v ./deviations
	DAY=full $(GO) -C interop/go test -count=1 -timeout 90m -v ./day
	SWEEP=all $(GO) -C interop/go test -count=1 -timeout 20m -v ./sweep
	QUESTIONS=1000 LOSSES=100 FOLLOWERS=200 $(GO) -C interop/go test -count=1 -timeout 120m -v ./groups
	cd interop/hosts && npm ci --no-audit --no-fund --loglevel=error
	$(GO) -C interop/go test -count=1 -timeout 20m -v $(SOAK_ONLY)
	AUTHSOAK=10m $(GO) -C interop/go test -count=1 -timeout 15m -v -run TestSoak ./auth
	USERS=200 $(GO) -C interop/go test -count=1 -timeout 30m -v -run TestUsersAtReplicas ./auth

.PHONY: package
package: ## all that a release has, built as a snapshot in dist/ and tried (needs root, node, npm and python3)
	packaging/require
	deploy/check
	packaging/base
	packaging/build
	DIST=$(CURDIR)/dist $(GO) -C interop/go test -count=1 -timeout 20m -v ./install

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME, as in 5s or 10000000x; those that FUZZ matches, as in FUZZ=sse or FUZZ=FuzzString
	@GO="$(GO)" internal/dev/fuzz '$(FUZZ)' $(FUZZTIME) $(FUZZFLAGS)

.PHONY: govulncheck
govulncheck: ## known vulnerabilities in what the binary calls (needs vuln.go.dev)
	$(GO) run $(GOVULNCHECK) ./...

.PHONY: clean
clean: ## remove what was built and fetched
	rm -rf bin dist interop/bin interop/node/node_modules interop/programs/node_modules

bin/rules: $(wildcard internal/dev/rules/*.go internal/dev/rules/cmd/*.go)
	@mkdir -p bin
	$(GO) build -o $@ ./internal/dev/rules/cmd
