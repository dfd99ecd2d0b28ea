# `make help` lists the targets. Each needs only Go, and installs what else it needs.

GO ?= go
# A number of runs, not a time: a time that ends during a call fails the test.
FUZZTIME ?= 10000x
PKGS ?= ./...
MODULES = . test/chart test/browser ui/build test/interop test/interop/model test/interop/peer
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# What is compiled has no paths of the clone, so that another clone does not compile it again.
export GOFLAGS += -trimpath
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/mesh-agent

# The Kubernetes API server of the tests is built once for each version.
KUBE_VERSION := $(shell sed -n 's,.*k8s.io/kubernetes v,,p' test/kubernetes/apiserver/go.mod)
KUBE_APISERVER ?= $(CACHE)/kube-apiserver-v$(KUBE_VERSION)
KUBE_LDFLAGS = -s -w $(foreach v,gitVersion=v$(KUBE_VERSION) gitMajor=$(word 1,$(subst ., ,$(KUBE_VERSION))) gitMinor=$(word 2,$(subst ., ,$(KUBE_VERSION))),-X k8s.io/component-base/version.$(v))

# CoreDNS, with few plugins, is built once for each version and each set of plugins, which the number in its name
# stands for: the times of the files of a fresh clone are new.
COREDNS_VERSION := $(shell sed -n 's,.*coredns/coredns v,,p' test/consumers/coredns/go.mod)
COREDNS_CONTENT := $(firstword $(shell cat test/consumers/coredns/main.go test/consumers/coredns/go.mod | cksum))
COREDNS ?= $(CACHE)/coredns-v$(COREDNS_VERSION)-$(COREDNS_CONTENT)
NODE_CONSUMERS := $(addprefix test/consumers/,$(addsuffix /node_modules/.package-lock.json,openapi grpcjs))

# The releases of Cilium for the tests of interoperability (all, without a list), and the file for the matrix. The
# matrix of the project has all of them.
RELEASES ?=
REPORT ?= $(if $(RELEASES),bin/interop/report.md,docs/interop.md)

# A test program with the race detector sleeps for a second before it ends, unless this is set. Collecting garbage less
# often (GOGC=400) saves a seventh of linking, where no test measures the memory of a process.
RACE = GORACE="atexit_sleep_ms=50 $$GORACE" $(GO) test -race

# The etcd processes of the tests run without the race detector, with which they need several times as much of a core.
test test-race test-measured race kubernetes consumers monitoring: export ETCDTEST_PROGRAM = $(CURDIR)/bin/etcdtest
test test-race test-measured race kubernetes consumers monitoring: bin/etcdtest

.PHONY: help
help: # from README.md
	@sed -n '/^## Build and test/,/^## Documentation/s/^    make/make/p' README.md

##@ Run and build

.PHONY: run run-mesh build
run: build
	@bin/mesh-sim --churn 2 --command-log {tmp}/agent.log -- bin/mesh-agent run --clustermesh-config {dir} --dns 127.0.0.1:5300 --xds unix:{tmp}/xds.sock

run-mesh: build
	@bin/mesh-sim members --program bin/mesh-agent

# Without gRPC's traces, which are not used: with their templates, the linker keeps unused functions, a quarter of the
# program. Without inlining in the Kubernetes client, which waits for the network: this saves 0.7 MiB.
build:
	@CGO_ENABLED=0 deploy/progress $(GO) build -v -trimpath -tags grpcnotrace -gcflags 'k8s.io/...=-l' -ldflags "-s -w -X main.release=$(VERSION)" -o bin/ ./cmd/mesh-agent ./cmd/mesh-sim

##@ Test

.PHONY: test test-all test-race test-measured race simulate fuzz bench golden
# The tests of every day. Long ones are in test/, or skip themselves with -short. Most tests wait for others most of the
# time, so more of them run than there are cores.
test: PKGS = $$($(GO) list ./... | grep -v /test/)
test:
	GOGC=400 $(RACE) -short -p 3 -parallel 8 -timeout 20m $(PKGS)

# All tests but those with other programs. Those of texts are in make lint.
test-all: test-race test-measured

test-race:
	GOGC=400 $(RACE) -p 3 -parallel 8 -timeout 40m $$($(GO) list $(PKGS) | grep -vE '/test/(hostile|hostile/servers|consumers|docs|monitoring)$$|/tools/(words|citations|layers|readability)$$')

# The hostile remotes and clients measure memory and times: a mixture of all rules that a remote can break with the race
# detector, long runs, costs and memory without it, because it makes them several times slower. They are the longest, so
# they are apart: make -j runs them beside the others.
test-measured:
	$(RACE) -short -timeout 20m ./test/hostile
	$(GO) test -timeout 20m ./test/hostile
	$(GO) test -timeout 20m ./test/hostile/servers
	$(GO) test -timeout 20m -run 'Cost|Memory|Guarantees|RandomFaults' ./pkg/clustermesh ./pkg/disconnect ./pkg/allocator/kvbackend ./pkg/kvstore/etcd ./internal/serve/httpapi

race:
	$(GO) test -race -count=3 -shuffle=on -timeout 40m $(PKGS)

# Whole meshes on a simulated clock, with faults, from random seeds (simtest/simulate).
simulate: SEEDS = 100
simulate: HOURS = 1
simulate:
	$(GO) test -v -count=1 -timeout 24h -run Campaign ./simtest/simulate -simulate.seeds=$(SEEDS) -simulate.hours=$(HOURS)

fuzz:
	GO='$(GO)' test/fuzz $(FUZZTIME) $(PKGS)

bench:
	$(GO) test -run '^$$' -bench . -benchmem -timeout 40m $(PKGS)

golden:
	$(GO) test -run Golden $(PKGS)

##@ Check

.PHONY: lint
# Words that the glossary excludes, wrong citations and links, texts that are hard to read, and the layers have tests.
# Everything above the engine of a kvstore compiles for a platform without etcd's client. The API of pkg is compared with
# that of the last release.
lint:
	@GO='$(GO)' tools/unformatted
	$(GO) test ./tools/words ./tools/citations ./tools/layers ./tools/readability
	$(GO) run ./tools/apidiff
	GOOS=wasip1 GOARCH=wasm $(GO) build ./pkg/mesh ./internal/own/mirror ./internal/own/operate
	@GO='$(GO)' tools/analyze $(MODULES)

##@ Tests with other programs

.PHONY: kubernetes chart consumers monitoring browser interop
kubernetes: $(KUBE_APISERVER) $(COREDNS)
	KUBE_APISERVER=$(KUBE_APISERVER) COREDNS=$(COREDNS) $(GO) test -race -parallel 8 -timeout 25m ./test/kubernetes

# The tests of the chart install it in the API server. -count=1, here and for the page: the go command does not know the
# files of other modules that a test reads, and would keep old results.
chart: $(KUBE_APISERVER)
	cd test/chart && KUBE_APISERVER=$(KUBE_APISERVER) $(GO) test -count=1 -timeout 10m ./...

# dig, Unbound, BIND, dnsmasq, HAProxy, nginx and Prometheus of Debian, an OpenAPI linter and a generator of clients of
# npm, and CoreDNS, with an agent. Missing programs are installed, as root.
consumers: export PROGRAMS_REQUIRED = 1
consumers: $(COREDNS)
	test/install dig=bind9-dnsutils unbound named=bind9 dnsmasq=dnsmasq-base haproxy nginx prometheus npm=nodejs,npm
	$(MAKE) $(NODE_CONSUMERS)
	COREDNS=$(COREDNS) $(RACE) -timeout 12m ./test/consumers

# The alerts and dashboards with the Prometheus of Debian. Most of these tests wait most of the time.
monitoring: export PROGRAMS_REQUIRED = 1
monitoring: $(KUBE_APISERVER)
	test/install prometheus
	KUBE_APISERVER=$(KUBE_APISERVER) $(RACE) -parallel 5 -timeout 25m ./test/monitoring

# The page in a headless Chromium, with an agent. Chromium and npm are installed, as root, if they are missing (Debian).
browser:
	test/install 'chromium-headless-shell|chromium=chromium-headless-shell,fonts-dejavu-core' npm=nodejs,npm
	$(MAKE) ui-check
	cd test/browser && PROGRAMS_REQUIRED=1 $(GO) test -count=1 -v -parallel 3 -timeout 20m .

interop: $(KUBE_APISERVER)
	KUBE_APISERVER=$(KUBE_APISERVER) test/interop/run $(REPORT) $(RELEASES)

bin/etcdtest: go.mod $(wildcard simtest/*/*.go simtest/*/*/*.go)
	$(GO) build -o $@ ./simtest/etcdtest/server

$(KUBE_APISERVER):
	cd test/kubernetes/apiserver && CGO_ENABLED=0 $(GO) build -trimpath -ldflags "$(KUBE_LDFLAGS)" -o $@ .

$(COREDNS):
	cd test/consumers/coredns && CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w" -o $@~ .
	mv $@~ $@

$(NODE_CONSUMERS): %/node_modules/.package-lock.json: %/package.json %/package-lock.json
	cd $* && npm ci --ignore-scripts --no-audit --no-fund
	touch $@

##@ Documentation and the page

.PHONY: site docs ui ui-check
site:
	test/install mkdocs dig=bind9-dnsutils curl
	mkdocs build --config-file website/mkdocs.yml

# The commands that the pages show are run.
docs: site build
	DOCS_PROGRAMS=$(CURDIR)/bin PROGRAMS_REQUIRED=1 $(GO) test -timeout 20m ./test/docs

# The page (docs/ui.md): its types are checked, those of the API's objects included, and it is built with packages of npm.
# The result is committed; ui-check compares it with the sources.
ui: bin/ui-build ui/src/openapi.ts
	cd ui && node_modules/.bin/tsc -p .
	cd ui && ../bin/ui-build

ui-check: bin/ui-build ui/src/openapi.ts
	cd ui && node_modules/.bin/tsc -p .
	cd ui && ../bin/ui-build -check

bin/ui-build: ui/node_modules/.package-lock.json $(wildcard ui/build/*)
	cd ui/build && CGO_ENABLED=0 $(GO) build -trimpath -o ../../$@ .

# The types of the API's objects are generated from the OpenAPI document, which a test of httpapi compares with the agent's.
ui/src/openapi.ts: internal/serve/httpapi/testdata/openapi.golden ui/node_modules/.package-lock.json
	cd ui && node_modules/.bin/openapi-typescript ../$< -o src/openapi.ts --root-types --root-types-no-schema-prefix --root-types-keep-casing

ui/node_modules/.package-lock.json: ui/package.json ui/package-lock.json
	cd ui && npm ci --ignore-scripts --no-audit --no-fund
	touch $@

##@ Release

.PHONY: manifests notices sbom packages image image-base
# The plain manifests are rendered from the chart, which has copies of deploy/monitoring.
manifests:
	cd test/chart && $(GO) run ./manifests ../../deploy

# The licenses of the linked modules.
notices: NOTICES = internal/base/notices/notices.txt
notices:
	$(GO) run ./tools/licenses > $(NOTICES)~
	mv $(NOTICES)~ $(NOTICES)
	gzip -9nkf $(NOTICES)

# The bill of materials of the program as it was built.
sbom: build
	$(GO) run ./tools/sbom -version $(VERSION) -npm ui/package-lock.json bin/mesh-agent > bin/mesh-agent.cdx.json

# The packages of Debian and RPM, in bin/packages.
packages: build
	GO='$(GO)' deploy/packages/build $(VERSION)

image:
	docker build --build-arg VERSION=$(VERSION) -t mesh-agent:$(VERSION) .

# Asks the registry for the digest of the compiler's image, and writes it into the Dockerfile.
image-base:
	deploy/image-base
