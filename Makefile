# The one entry point: people and CI call the same targets.

# Image signatures are checked with OpenPGP in Go; without the tag it would be
# gpgme, by way of cgo. The version is stamped below, so that a build does not
# depend on how the checkout came about.
RELEASE_FLAGS := -buildvcs=false -trimpath -tags=containers_image_openpgp
# Without inlining and debugging information, compiling takes a quarter less time. Packages that run often
# are inlined: without inlining, programs take up to 1.8 times as long. Tests, the demo
# and lint share these flags, so that each package is compiled once. package programs has them too.
QUICK := $(RELEASE_FLAGS) '-gcflags=all=-l -dwarf=false' -gcflags=std=-dwarf=false \
	-gcflags=k8s.io/apimachinery/...=-dwarf=false -gcflags=sigs.k8s.io/...=-dwarf=false
export GOFLAGS += $(QUICK)
export CGO_ENABLED := 0

# Releases and benchmarks are optimized. With QUICK_IMAGE, the image is compiled with the flags of tests.
QUICK_IMAGE ?=
ifndef QUICK_IMAGE
image: export GOFLAGS := $(RELEASE_FLAGS)
endif
build release release-tools release-check release-publish vex bench bench-console bench-plot: export GOFLAGS := $(RELEASE_FLAGS)
bench bench-console bench-plot: export OPTIMIZED := 1

# Computed once, so that an edit during a build does not change it.
ifndef VERSION
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
endif

# Tools are pinned in a module of their own. The go command builds each of them
# once and keeps it in its cache.
TOOL := go tool -modfile=hack/tools/go.mod
# The same from the folder test.
TEST_TOOL := go tool -modfile=../hack/tools/go.mod

# What makes images and releases is large, and not needed to change the code.
RELEASE_TOOL := go tool -modfile=hack/release/go.mod

# Every module but hack/kubernetes, whose pins stay old; verify keeps them tidy. For hack/flux and hack/release that would take
# modules which only tests of other projects import, and which not every proxy gives.
MODULES := . hack/actionlint hack/argocd hack/classic hack/cluster hack/dns hack/flux hack/kube-state-metrics hack/opm hack/plot hack/prometheus hack/release hack/tools test
TIDY = $(filter-out hack/flux hack/release,$(MODULES))
# Each pins a minor version of Kubernetes.
OLD_PINS = $(notdir $(wildcard hack/kubernetes/*.mod))
EACH_TIDY = for module in $(TIDY); do go mod tidy -C $$module $(1) || exit 1; done; \
	for pins in $(OLD_PINS); do go mod tidy -C hack/kubernetes -modfile=$$pins $(1) || exit 1; done

# Builds the programs of the local cluster and of tests, and runs such a cluster.
PROGRAMS := go run -C test ./programs/cmd/build
CLUSTER := go run -C test ./cluster/cmd/cluster

FUZZTIME ?= 1m
TESTFLAGS ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile

.PHONY: env
env: ## Print the Go settings of make as shell commands, for eval.
	@echo "export CGO_ENABLED=$$CGO_ENABLED GOFLAGS=\"$$GOFLAGS\""

# Build

# Optimized for the target build alone.
BUILD = go build -ldflags '-s -w -X main.version=$(VERSION)' -o bin/ ./cmd/... && \
	install cmd/kubectl-extension/kubectl_complete-extension bin/

.PHONY: build
build: ## Build bin/operator-controller and bin/kubectl-extension.
	$(BUILD)

# What the image is called on a node, and in the manifests that are applied.
IMAGE ?= localhost/operator-controller:$(VERSION)
# Where it is pushed to; nowhere if empty.
IMAGE_REPO ?=
IMAGE_PLATFORMS ?= linux/amd64,linux/arm64

# Of one commit, base and Go, the image is the same to the byte. KO_DEFAULTBASEIMAGE is another
# base; base.localhost/static is one that is made here, and needs no network.
.PHONY: image
image: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
image: ## Build bin/image, and push it to IMAGE_REPO if that is set; prints its digest.
	@VERSION=$(VERSION) KO_DOCKER_REPO=localhost go run ./hack/image --layout bin/image --name $(IMAGE) \
		$(if $(IMAGE_REPO),--push $(IMAGE_REPO):$(VERSION)) -- \
		$(RELEASE_TOOL) ko build --bare --push=false --platform $(IMAGE_PLATFORMS) --sbom-dir bin/sbom ./cmd/operator-controller

KIND ?= kind
KIND_CLUSTER ?= kind
CTR ?= ctr
# The socket of containerd; with it, the image is loaded there, and not into kind.
CONTAINERD ?=

.PHONY: image-load
image-load: ## Load bin/image, by the name it was built with, into KIND_CLUSTER or into CONTAINERD, a socket.
	@$(if $(CONTAINERD),,command -v $(KIND) >/dev/null || \
		{ echo "there is no $(KIND) here: KIND names it, or CONTAINERD the socket of containerd" >&2; exit 1; })
	tar -C bin/image -cf bin/image.tar .
	$(if $(CONTAINERD),$(CTR) --address $(CONTAINERD) --namespace k8s.io images import bin/image.tar, \
		$(KIND) load image-archive bin/image.tar --name $(KIND_CLUSTER))

KUBECTL ?= $(shell command -v kubectl || echo go run -modfile=hack/cluster/go.mod k8s.io/kubernetes/cmd/kubectl)

CONFIG ?= config/default

.PHONY: manifests
manifests: ## Print the manifests in CONFIG, with IMAGE as the image of the controller.
	@$(TOOL) kustomize build $(CONFIG) | sed 's|image: controller:latest$$|image: $(IMAGE)|'

.PHONY: deploy
deploy: ## Install the controller with IMAGE on the current cluster, or bring it up to date.
	@$(MAKE) -s manifests IMAGE=$(IMAGE) CONFIG=$(CONFIG) | $(KUBECTL) apply -f -
	$(KUBECTL) --namespace olmv1-system rollout status deployment/operator-controller-controller-manager --timeout 5m

.PHONY: run
run: image image-load deploy ## Build the image, load it as IMAGE onto the node, and deploy it.

.PHONY: generate
generate: ## Generate deep copies and CustomResourceDefinitions from api/, and of these the templates of the chart.
	$(TOOL) controller-gen object paths=./api/...
	$(TOOL) controller-gen crd paths=./api/... output:crd:dir=config/crd/bases
	for file in config/crd/bases/*.yaml; do \
		sed -f hack/chart/crds.sed $$file > charts/operator-controller/templates/crds/$${file##*/} || exit 1; \
	done

.PHONY: clean
clean: ## Remove what was built here; caches outside of the checkout stay.
	rm -rf bin dist coverage.out

# Release

# Where users download the files of a release. Pages cannot read it: a test of test/operator fails if
# one of them names another address.
RELEASE_URL ?= https://github.com/clusterextensions/operator-controller/releases/latest/download
# Where the image of a release is.
RELEASE_REPO ?= ghcr.io/clusterextensions/operator-controller
# What it is signed with: a file, or a key of a KMS. Without, a key is made for the check, and
# who publishes signs anew, without a key, by what the environment vouches for.
COSIGN_KEY ?=
COSIGN_PASSWORD ?=
release release-check release-publish: export PATH := $(CURDIR)/bin/tools:$(PATH)
release release-check release-publish: export IMAGE_REPO = $(RELEASE_REPO)
release release-check release-publish: export VERSION := $(VERSION)
release release-check: export COSIGN_KEY := $(or $(COSIGN_KEY),$(CURDIR)/bin/cosign.key)
release-publish: export COSIGN_KEY := $(COSIGN_KEY)
release release-check release-publish: export COSIGN_PASSWORD := $(value COSIGN_PASSWORD)

.PHONY: release-tools
release-tools:
	GOBIN=$(CURDIR)/bin/tools go install -modfile=hack/release/go.mod tool

.PHONY: release
release: release-tools ## Build and sign a release of VERSION (such as v0.1.0) in dist; publishes nothing.
	test -n '$(filter-out $(CURDIR)/bin/cosign.key,$(COSIGN_KEY))' || test -f bin/cosign.key || \
		bin/tools/cosign generate-key-pair --output-key-prefix bin/cosign
	hack/release/build
	bin/tools/cosign public-key --key $(COSIGN_KEY) --outfile dist/cosign.pub

.PHONY: release-check
release-check: release ## Make a release, and verify it from its files.
	go test -C test -count=1 -timeout 30m $(TESTFLAGS) ./release -dist $(CURDIR)/dist

.PHONY: release-publish
release-publish: ## Push the image of dist to RELEASE_REPO, sign it, and draft a release.
	hack/release/publish

# Check

.PHONY: ci
ci: ## Check everything that has to hold for a change, as CI does.
	.ci/run

.PHONY: ci-weekly
ci-weekly: ## Run all suites at full scale, as CI does every week; needs root, or sudo.
	.ci/weekly

.PHONY: fmt
fmt: ## Format the code.
	$(TOOL) golangci-lint fmt

.PHONY: lint
lint: ## Lint the code and the workflows, and check its architecture.
	$(TOOL) golangci-lint config verify
	$(TOOL) golangci-lint run
	cd test && $(TEST_TOOL) golangci-lint run
	go tool -modfile=hack/actionlint/go.mod actionlint -shellcheck= -pyflakes=

.PHONY: tidy
tidy: ## Bring go.mod and go.sum of every module up to date.
	$(call EACH_TIDY,)

.PHONY: verify
verify: generate ## Check that what is generated is committed, modules are tidy, limits are told and tested, and lint passes.
	@changed=$$(git status --porcelain -- api config charts) || exit 1; \
	if [ -n "$$changed" ]; then \
		echo "make generate changes these; commit them:"; echo "$$changed"; exit 1; \
	fi
	$(call EACH_TIDY,-diff)
	go test -C test -run 'Limits|NamedTests' ./operator
	$(MAKE) lint

.PHONY: outdated
outdated: ## List the direct requirements of every module that are behind their newest version; asks the module proxy.
	@go run ./hack/outdated $(MODULES)

# What is known of vulnerabilities. It changes without us, and cannot be reached from
# everywhere: file:///path is a copy of it, with the folders index and ID.
VULNDB ?= https://vuln.go.dev
GOVULNCHECK = $(TOOL) govulncheck -db $(VULNDB)

.PHONY: vuln
vuln: vuln-db ## Look for known vulnerabilities in what is called; VULNDB=file:///path for a copy of the database.
	$(GOVULNCHECK) ./...
	cd test && $(TEST_TOOL) govulncheck -db $(VULNDB) ./...

# Only of a database that it can read, govulncheck says when it was updated.
.PHONY: vuln-db
vuln-db:
	@$(GOVULNCHECK) -version | grep '^DB updated: ' || { \
		echo 'The database of vulnerabilities $(VULNDB) cannot be read, so nothing was checked.'; \
		echo 'Try again from where it can be reached, or name a copy of it with VULNDB=file:///path.'; exit 1; } >&2

# The OpenVEX document of a release: the vulnerabilities that govulncheck finds in the modules of
# the released programs, and the result for each: affected, or not_affected with a reason. Code can
# be for one operating system only, so that the programs for each are analysed.
VEX ?= dist/operator-controller_$(VERSION:v%=%).openvex.json
VEX_SYSTEMS ?= linux darwin windows
VEX_linux ?= ./cmd/...
VEX_darwin ?= ./cmd/kubectl-extension
VEX_windows ?= ./cmd/kubectl-extension

.PHONY: vex
vex: vuln-db ## Write VEX, the OpenVEX document of VERSION; VULNDB=file:///path for a copy of the database.
	go build -modfile=hack/tools/go.mod -ldflags='-s -w' -o bin/tools/govulncheck golang.org/x/vuln/cmd/govulncheck
	rm -rf bin/vex && mkdir -p bin/vex $(dir $(VEX))
	$(foreach system,$(VEX_SYSTEMS),GOOS=$(system) GOARCH=amd64 CGO_ENABLED=0 \
		bin/tools/govulncheck -db $(VULNDB) -format openvex $(VEX_$(system)) >bin/vex/$(system).json &&) true
	rm -f $(VEX)
	go run ./hack/vex --version $(VERSION) --image $(RELEASE_REPO):$(VERSION) --layout bin/image bin/vex/*.json >bin/vex/merged
	@if [ -s bin/vex/merged ]; then mv bin/vex/merged $(VEX) && echo "$(VEX)"; \
		else echo "govulncheck has found no vulnerability: there is no OpenVEX document."; fi

# Test

# Lint vets more, and nobody debugs these binaries: with neither, they are built in less time.
TEST := -vet=off -ldflags='-s -w' -timeout 30m

# The race detector takes several times as long, so it runs where code starts goroutines or
# shares memory among them. At full scale, the suite e2e also runs its controller with the race detector. Tests that measure memory or
# compute alone for long are skipped under it, and their packages run without it as well.
CONCURRENT := \bgo func|^\s*go [a-zA-Z.]+\(|\.Go\(|\bsync\.|\batomic\.
RACE_PACKAGES = $$(grep -rlE --include='*.go' --exclude='*_test.go' '$(CONCURRENT)' cmd internal | xargs -n 1 dirname | sort -u | sed 's|^|./|')
PLAIN_TOO = $$(grep -rl --include='*_test.go' 'testkit\.\(WithoutRace\|Sample\)(' cmd internal | xargs -n 1 dirname | sort -u | sed 's|^|./|')
PLAIN_PACKAGES = $$({ go list ./... | sed 's|^$(MODULE)|.|'; printf '%s\n' $(RACE_PACKAGES) $(RACE_PACKAGES); } | sort | uniq -u)
MODULE := github.com/clusterextensions/operator-controller

# Packages of the module test that need no cluster. They run at each call (-count=1), because the go
# command does not notice changes of files outside of the module, such as those in docs and config.
TEST_UNIT = $$(go list -C test -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | \
	grep -Ev '/test/(cluster|environment|e2e|render)|[ [][^ ]*/test/programs' | cut -d ' ' -f 1)

.PHONY: test
test: test-unit test-journeys ## Run the tests for before each commit: unit tests, and core journeys on a cluster.

.PHONY: test-journeys
test-journeys: ## Run the core journeys on a cluster: install, upgrade, drift, conflict, restart, uninstall.
	@$(PROGRAMS) cluster own
	go test -C test $(TEST) -count=1 -short $(TESTFLAGS) ./e2e

# The oldest supported version of Kubernetes, one in between, and the newest. KUBERNETES=1.34 runs
# that version in every target that starts a cluster without a real node.
KUBERNETES_VERSIONS := 1.30 1.34 1.37
export KUBERNETES ?=

.PHONY: test-versions
test-versions: ## Run the core journeys on the oldest supported version of Kubernetes, the newest, and one in between.
	@for version in $(KUBERNETES_VERSIONS); do \
		echo "==> Kubernetes $$version" && $(MAKE) --no-print-directory test-journeys KUBERNETES=$$version || exit; \
	done

.PHONY: test-unit
test-unit: ## Run the tests that need no cluster.
	nice -n 5 env CGO_ENABLED=1 go test -race $(TEST) $(TESTFLAGS) $(RACE_PACKAGES)
	nice -n 5 go test $(TEST) $(TESTFLAGS) $(PLAIN_PACKAGES) $(PLAIN_TOO)
	nice -n 5 go test -C test $(TEST) -count=1 $(TESTFLAGS) $(TEST_UNIT)

# full is for a week, ci for each change; docs/testing.md says what only full does.
SCALE ?= full
SUITE ?=
JOBS ?= 4
# A time after which no further suite starts, such as 60m.
WITHIN ?= 0

.PHONY: test-programs
test-programs: ## Build the programs of other projects that the suites of test-long run.
	@$(PROGRAMS) classic cosign gitops monitoring node opm

.PHONY: test-long
test-long: export QUICK_IMAGE := $(filter ci,$(SCALE))
test-long: ## Run all long suites, or SUITE=name; SCALE=ci does less of each. JOBS (4) run beside each other.
	@mkdir -p bin
	@go run -C test ./suites -scale $(SCALE) -jobs $(JOBS) -within $(WITHIN) -json $(CURDIR)/bin/test-long.json -flags '$(TESTFLAGS)' $(SUITE)

# By this, pages are held against rules of accessibility. Its license is another one than ours, so
# it is no part of this repository.
AXE_VERSION := 4.10.3
AXE_SHA256 := 880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb
AXE_CACHE := $(HOME)/.cache/operator-controller/axe-core-$(AXE_VERSION).js
export AXE_JS ?= $(wildcard $(AXE_CACHE))

.PHONY: axe
axe: ## Put axe-core into the cache, by npm.
	@test -e $(AXE_CACHE) || { folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && mkdir -p $(dir $(AXE_CACHE)) && \
		(cd "$$folder" && npm pack --silent axe-core@$(AXE_VERSION) >/dev/null && tar -xzf axe-core-$(AXE_VERSION).tgz package/axe.min.js) && \
		echo "$(AXE_SHA256)  $$folder/package/axe.min.js" | sha256sum --check --quiet && mv "$$folder/package/axe.min.js" $(AXE_CACHE); }

.PHONY: bench-console
bench-console: ## Measure pages of the console in Chromium; each result is a line of JSON.
	@go test -C test -run '^$$' -bench . -benchtime 20x -timeout 30m $(TESTFLAGS) ./console -browser | go run -C test ./bench/gobench

SOAK ?= 20m

.PHONY: soak-node
soak-node: ## Upgrade 50 operators back and forth on a real node for SOAK (20m), in the deployed memory; longer outages.
	go test -C test -count=1 -v -timeout 120m $(TESTFLAGS) ./node -node -run 'TestSoak|TestOutages' -soak=$(SOAK) -registry-away=5m

# The code whose coverage tells which inputs are worth going on with: our own, or
# all that it imports too, which takes minutes to build again for that. Own names the
# flag by which go test -fuzz has it built.
FUZZCODE ?= all
FUZZ.all = -fuzz .
FUZZ.own = -gcflags github.com/clusterextensions/operator-controller/...=-d=libfuzzer

# One binary for each package that has fuzz tests, whatever its other tests need.
# Without its bound, most of the time goes into making inputs smaller. A worker that is
# busy when the time is over has the fuzzer fail with the end of its context, and no input.
.PHONY: test-fuzz
test-fuzz: ## Run every fuzz test of all packages for FUZZTIME (1m).
	@set -e; cache=$$(go env GOCACHE)/fuzz; folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	for package in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u); do \
		(cd $$package && go test -c $(FUZZ.$(FUZZCODE)) -o "$$folder/fuzz" .); \
		for target in $$(grep -ho '^func Fuzz[[:alnum:]_]*' $$package/*_test.go | cut -d ' ' -f 2); do \
			echo "$$package $$target"; \
			(cd $$package && "$$folder/fuzz" -test.run '^$$' -test.fuzz "^$$target\$$" -test.fuzztime $(FUZZTIME) \
				-test.fuzzminimizetime 10x -test.fuzzcachedir "$$cache/$$(go list .)") >"$$folder/out" 2>&1 || \
				{ cat "$$folder/out"; grep -q '^    context deadline exceeded$$' "$$folder/out" && ! grep -q 'Failing input' "$$folder/out"; }; \
		done; \
	done

.PHONY: bench
bench: ## Run the benchmarks; each result is a line of JSON.
	@{ go test -run '^$$' -bench . -benchmem $(TESTFLAGS) ./...; go test -C test -run '^$$' -bench . -benchmem $(TESTFLAGS) $(TEST_UNIT); } | \
		go run -C test ./bench/gobench
	@go run -C test ./bench/catalogs
	@go run -C test ./bench/fleet

.PHONY: bench-plot
bench-plot: ## Measure what installs cost over the number of extensions, and draw docs/performance.svg.
	@mkdir -p bin
	go run -C test ./bench/fleet -only releases >bin/releases.json
	go run -C hack/plot . <bin/releases.json >docs/performance.svg

# A cluster

.PHONY: undeploy
undeploy: ## Remove the controller from the cluster of kubectl; extensions and all that is recorded of them stay.
	$(KUBECTL) delete --ignore-not-found -k config/controller

# Local cluster

.PHONY: cluster-up
cluster-up: ## Start a local cluster and leave it running.
	@$(CLUSTER) up || { echo false; exit 1; } # for eval

.PHONY: cluster-down
cluster-down: controller-down ## Stop the controller and the registry of controller-up, then the local cluster.
	@$(CLUSTER) down

.PHONY: controller-up
controller-up: ## Run the controller, a registry and a sample catalog beside the cluster of cluster-up.
	@$(BUILD)
	@CLUSTER='$(CLUSTER)' hack/local/run up || { echo false; exit 1; } # for eval

.PHONY: controller-down
controller-down: ## Stop what controller-up has started; the cluster keeps running.
	@hack/local/run down

.PHONY: classic-up
classic-up: ## Have classic OLM install five operators on a local cluster, to come over from; CLASSIC_EXIT=1 ends it.
	$(PROGRAMS) cluster own classic
	@go run -C test ./classic/cmd/classic

.PHONY: demo
demo: ## Install and upgrade an operator on a local cluster; DEMO_EXIT=1 ends it.
	@$(PROGRAMS) cluster own demo
	@bin/demo
