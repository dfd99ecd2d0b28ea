GO ?= go
# Counted, not timed: a time that runs out during a call fails the test now and then.
FUZZTIME ?= 10000x
PKGS ?= ./...
MODULES = . test/chart test/browser ui/build test/interop test/interop/model test/interop/peer
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# The Kubernetes API server of the tests is built once for each version.
KUBE_VERSION := $(shell sed -n 's,.*k8s.io/kubernetes v,,p' test/kubernetes/apiserver/go.mod)
KUBE_APISERVER ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/mesh-agent/kube-apiserver-v$(KUBE_VERSION)
KUBE_LDFLAGS = -s -w $(foreach v,gitVersion=v$(KUBE_VERSION) gitMajor=$(word 1,$(subst ., ,$(KUBE_VERSION))) gitMinor=$(word 2,$(subst ., ,$(KUBE_VERSION))),-X k8s.io/component-base/version.$(v))

# So is CoreDNS, with few plugins, for the tests of the agent's clients and of the MCS API: once for each
# version and each set of plugins, which the number in its name is of, since the times of a fresh clone are new.
NODE_CONSUMERS := $(addprefix test/consumers/,$(addsuffix /node_modules/.package-lock.json,openapi grpcjs))
COREDNS_VERSION := $(shell sed -n 's,.*coredns/coredns v,,p' test/consumers/coredns/go.mod)
COREDNS_CONTENT := $(firstword $(shell cat test/consumers/coredns/main.go test/consumers/coredns/go.mod | cksum))
COREDNS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/mesh-agent/coredns-v$(COREDNS_VERSION)-$(COREDNS_CONTENT)

# Cilium's releases that interoperability is tested with (all without a list), and the
# file that the matrix is written to: that of the project is of all of them.
RELEASES ?=
REPORT ?= $(if $(RELEASES),bin/interop/report.md,docs/interop.md)

.PHONY: help run run-mesh build test test-all race fuzz bench lint golden manifests chart kubernetes consumers site docs interop ui ui-check browser notices sbom image image-base packages

run: build ; @bin/mesh-sim --churn 2 --command-log {tmp}/agent.log -- bin/mesh-agent run --clustermesh-config {dir} --dns 127.0.0.1:5300 --xds unix:{tmp}/xds.sock
run-mesh: build ; @bin/mesh-sim members --program bin/mesh-agent
# Without gRPC's own traces, which nobody reads here: with their templates the linker keeps what is never called, a quarter of the program.
# Without inlining in the Kubernetes client, which waits for the network: the program is 0.7 MiB smaller.
build: ; @CGO_ENABLED=0 deploy/progress $(GO) build -v -trimpath -tags grpcnotrace -gcflags 'k8s.io/...=-l' -ldflags "-s -w -X main.release=$(VERSION)" -o bin/ ./cmd/mesh-agent ./cmd/mesh-sim
# What README.md says of the targets.
help: ; @sed -n '/^## Build and test/,/^## Documentation/s/^    make/make/p' README.md
# What takes long is not among the tests of every day: whole meshes and their proofs, which are in test/, and
# what skips itself with -short (many seeds, many steps, much memory). Most tests wait for others most of the time, so that more run than there are cores (of packages, linking takes the rest).
# A test program with the race detector sleeps for a second before it ends, if it is not told otherwise.
RACE = GORACE="atexit_sleep_ms=50 $$GORACE" $(GO) test -race
# The etcd processes of the tests are without it. Collecting garbage less often saves a seventh of linking.
test: export GOGC = 400
test: export ETCDTEST_PROGRAM = $(CURDIR)/bin/etcdtest
test: PKGS = $$($(GO) list ./... | grep -v /test/)
test: ; $(GO) build -o $(ETCDTEST_PROGRAM) ./simtest/etcdtest/server && $(RACE) -short -p 3 -parallel 8 -timeout 30m $(PKGS)
# The hostile remotes and clients measure memory and times, so they run by themselves. What they and the costs of values do at length, they do
# without the race detector, which makes them several times slower; with it the mixture has all rules that a remote can break.
test-all: ; $(RACE) -p 3 -parallel 8 -timeout 30m $$($(GO) list $(PKGS) | grep -vE '/test/(hostile|hostile/servers|consumers|docs|monitoring)$$') && $(RACE) -short -timeout 30m ./test/hostile -hostile.steps 1000 && \
	$(GO) test -timeout 20m ./test/hostile && $(GO) test -timeout 20m ./test/hostile/servers && $(GO) test -timeout 20m -run Cost ./pkg/clustermesh
race: ; $(GO) test -race -count=3 -shuffle=on -timeout 40m $(PKGS)
fuzz: ; GO='$(GO)' test/fuzz $(FUZZTIME) $(PKGS)
bench: ; $(GO) test -run '^$$' -bench . -benchmem -timeout 40m $(PKGS)
# Everything above the engine of a kvstore compiles for a platform without etcd's client.
# Words that the glossary rules out, citations and links that lead nowhere, and pages that read badly fail tests of their own.
lint: ; @test -z "$$($(GO) tool gofumpt -l . | tee /dev/stderr)" && $(GO) test ./tools/words ./tools/citations ./tools/layers ./tools/readability && GOOS=wasip1 GOARCH=wasm $(GO) build ./pkg/mesh ./internal/own/mirror ./internal/own/operate && for m in $(MODULES); do (S=$$($(GO) tool -n staticcheck) && cd $$m && $(GO) vet ./... && $$S ./...) || exit 1; done
golden: ; $(GO) test -run Golden $(PKGS)
# The plain manifests are rendered from the chart, which has copies of deploy/monitoring; its tests install it in the API server below.
manifests: ; cd test/chart && $(GO) run ./manifests ../../deploy
chart: $(KUBE_APISERVER) ; cd test/chart && KUBE_APISERVER=$(KUBE_APISERVER) $(GO) test -timeout 10m ./...
# The licenses of what is linked, and the bill of materials of the program as it was built.
notices: ; $(GO) run ./tools/licenses > internal/base/notices/notices.txt~ && mv internal/base/notices/notices.txt~ internal/base/notices/notices.txt && gzip -9nkf internal/base/notices/notices.txt
sbom: build ; $(GO) run ./tools/sbom -version $(VERSION) -npm ui/package-lock.json bin/mesh-agent > bin/mesh-agent.cdx.json
# The packages of Debian and RPM, in bin/packages.
packages: build ; GO='$(GO)' deploy/packages/build $(VERSION)
# The image, and the base that its compiler is in: image-base asks the registry for the digest of the tag, writes it into the Dockerfile, and says so.
image: ; docker build --build-arg VERSION=$(VERSION) -t mesh-agent:$(VERSION) .
image-base: ; deploy/image-base
kubernetes: $(KUBE_APISERVER) $(COREDNS) ; KUBE_APISERVER=$(KUBE_APISERVER) COREDNS=$(COREDNS) $(GO) test -race -timeout 15m ./test/kubernetes
$(KUBE_APISERVER): ; cd test/kubernetes/apiserver && CGO_ENABLED=0 $(GO) build -trimpath -ldflags "$(KUBE_LDFLAGS)" -o $@ .
# dig, HAProxy, nginx and Prometheus of Debian, an OpenAPI linter and the generator of a client of npm, and CoreDNS, beside an
# agent: installed, as root, where they are missing. And the alerts and dashboards with that Prometheus, of which most
# tests wait most of the time.
consumers: export PROGRAMS_REQUIRED = 1
consumers: $(COREDNS) $(KUBE_APISERVER) ; test/install dig=bind9-dnsutils unbound named=bind9 dnsmasq=dnsmasq-base haproxy nginx prometheus npm=nodejs,npm && $(MAKE) $(NODE_CONSUMERS) && COREDNS=$(COREDNS) $(RACE) -timeout 12m ./test/consumers && \
	KUBE_APISERVER=$(KUBE_APISERVER) $(RACE) -parallel 5 -timeout 15m ./test/monitoring
$(COREDNS): ; cd test/consumers/coredns && CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w" -o $@.$$$$ . && mv $@.$$$$ $@
$(NODE_CONSUMERS): %/node_modules/.package-lock.json: %/package.json %/package-lock.json ; cd $* && npm ci --ignore-scripts --no-audit --no-fund && touch node_modules/.package-lock.json
# The site of the documentation, in bin/site, and a test of it and of the commands that the pages show.
site: ; test/install mkdocs dig=bind9-dnsutils curl && mkdocs build --config-file website/mkdocs.yml
docs: site build ; DOCS_PROGRAMS=$(CURDIR)/bin PROGRAMS_REQUIRED=1 $(GO) test -timeout 20m ./test/docs
interop: $(KUBE_APISERVER) ; KUBE_APISERVER=$(KUBE_APISERVER) test/interop/run $(REPORT) $(RELEASES)
# The page (docs/ui.md): its types are checked, and it is built, with what npm brings. The result is committed; ui-check says
# whether it is what the sources make.
ui: bin/ui-build ; cd ui && node_modules/.bin/tsc -p . && ../bin/ui-build
ui-check: bin/ui-build ; cd ui && node_modules/.bin/tsc -p . && ../bin/ui-build -check
bin/ui-build: ui/node_modules/.package-lock.json $(wildcard ui/build/*) ; cd ui/build && CGO_ENABLED=0 $(GO) build -trimpath -o ../../$@ .
ui/node_modules/.package-lock.json: ui/package.json ui/package-lock.json ; cd ui && npm ci --ignore-scripts --no-audit --no-fund && touch node_modules/.package-lock.json
# The page in a headless Chromium beside an agent: Chromium and npm are installed, as root, where they are missing (Debian).
browser: ; test/install 'chromium-headless-shell|chromium=chromium-headless-shell,fonts-dejavu-core' npm=nodejs,npm && $(MAKE) ui-check && cd test/browser && PROGRAMS_REQUIRED=1 $(GO) test -v -timeout 20m .
