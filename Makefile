# The one entry point: people and CI call the same targets.

# Image signatures are checked with OpenPGP in Go; without the tag it would be
# gpgme, by way of cgo. The version is stamped below, so that a build does not
# depend on how the checkout came about.
export GOFLAGS += -buildvcs=false -tags=containers_image_openpgp

# It is found out once: an edit while something is built would make it another one.
ifndef VERSION
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
endif

# Tools are pinned in a module of their own. The go command builds each of them
# once and keeps it in its cache.
TOOL := go tool -modfile=hack/tools/go.mod

# What makes images and releases is large, and not needed to change the code.
RELEASE_TOOL := go tool -modfile=hack/release/go.mod

# Every module there is; verify keeps them tidy. For hack/flux and hack/release that would take
# modules which only tests of other projects import, and which not every proxy gives.
MODULES := . hack/actionlint hack/argocd hack/classic hack/cluster hack/dns hack/flux hack/kube-state-metrics hack/opm hack/plot hack/prometheus hack/release hack/tools
TIDY = $(filter-out hack/flux hack/release,$(MODULES))

# The programs of the local cluster, and the program that runs one.
CLUSTER := go run ./test/cluster/cmd/cluster

# Packages that neither run a cluster nor have tests that do.
UNIT = $$(go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | \
	grep -Ev '/test/(cluster|environment|e2e)' | cut -d ' ' -f 1)

FUZZTIME ?= 1m
TESTFLAGS ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile

# Build

.PHONY: build
build: ## Build bin/operator-controller and bin/kubectl-extension.
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/ ./cmd/...
	install cmd/kubectl-extension/kubectl_complete-extension bin/

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

KUBECTL ?= $(shell command -v kubectl || echo go tool -modfile=hack/cluster/go.mod kubectl)

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
release-check: release cluster-build ## Make a release, and verify it from its files.
	go test -count=1 -timeout 30m $(TESTFLAGS) ./test/release -dist $(CURDIR)/dist

.PHONY: release-publish
release-publish: ## Push the image of dist to RELEASE_REPO, sign it, and draft a release.
	hack/release/publish

# Check

.PHONY: ci
ci: ## Check everything that has to hold for a change, as CI does.
	.ci/run

.PHONY: fmt
fmt: ## Format the code.
	$(TOOL) golangci-lint fmt

.PHONY: lint
lint: ## Lint the code and the workflows, and check its architecture.
	$(TOOL) golangci-lint config verify
	$(TOOL) golangci-lint run
	go tool -modfile=hack/actionlint/go.mod actionlint -shellcheck= -pyflakes=

.PHONY: tidy
tidy: ## Bring go.mod and go.sum of every module up to date.
	for module in $(TIDY); do go mod tidy -C $$module || exit 1; done

.PHONY: verify
verify: generate ## Check that what is generated is committed, modules are tidy, limits are told and tested, and lint passes.
	@changed=$$(git status --porcelain -- api config charts) || exit 1; \
	if [ -n "$$changed" ]; then \
		echo "make generate changes these; commit them:"; echo "$$changed"; exit 1; \
	fi
	for module in $(TIDY); do go mod tidy -C $$module -diff || exit 1; done
	go test -run 'Limits|NamedTests' ./test/operator
	$(MAKE) lint

# What is known of vulnerabilities. It changes without us, and cannot be reached from
# everywhere: file:///path is a copy of it, with the folders index and ID.
VULNDB ?= https://vuln.go.dev
GOVULNCHECK = $(TOOL) govulncheck -db $(VULNDB)

.PHONY: vuln
vuln: vuln-db ## Look for known vulnerabilities in what is called; VULNDB=file:///path for a copy of the database.
	$(GOVULNCHECK) ./...

# Only of a database that it can read, govulncheck says when it was updated.
.PHONY: vuln-db
vuln-db:
	@$(GOVULNCHECK) -version | grep '^DB updated: ' || { \
		echo 'The database of vulnerabilities $(VULNDB) cannot be read, so nothing was checked.'; \
		echo 'Try again from where it can be reached, or name a copy of it with VULNDB=file:///path.'; exit 1; } >&2

# Test

# Lint vets more, and nobody debugs these binaries: with neither, they are built in less time.
TEST := -shuffle=on -vet=off -ldflags='-s -w' -timeout 60m

# The race detector takes several times as long, and finds nothing in other processes, or in
# what one goroutine computes alone. Tests of programs do without, and those of e2e have a
# controller with it; so do single tests of other packages, which then run a second time. What
# is built without is what is released.
RACE := go test -race $(TEST)
PLAIN := env CGO_ENABLED=0 go test -trimpath $(TEST)
PLAIN_TOO = $$(grep -rl --include='*_test.go' --exclude-dir=test 'testkit\.\(WithoutRace\|Sample\)(' . | xargs -n 1 dirname | sort -u)

.PHONY: test
test: cluster-build monitoring-build ## Run all tests; builds the local cluster the first time.
	@$(MAKE) --no-print-directory --jobs=2 test-scenes test-beside

.PHONY: test-scenes
test-scenes:
	$(PLAIN) $(TESTFLAGS) ./test/e2e

# While e2e waits, which it does most of the time, all others run. Some of e2e ask how soon
# something is done, and none of these.
.PHONY: test-beside
test-beside:
	nice -n 5 $(RACE) $(TESTFLAGS) $$(go list ./... | grep -v /test/); raced=$$?; \
	nice -n 5 $(PLAIN) $(TESTFLAGS) $$(go list ./test/... | grep -v /test/e2e$$) $(PLAIN_TOO) && exit $$raced

.PHONY: test-unit
test-unit: ## Run the tests that need no cluster.
	$(RACE) $(TESTFLAGS) $$(go list $(UNIT) | grep -v /test/)
	@# What is there twice needs no cluster, and is to run without the race detector too.
	$(PLAIN) $(TESTFLAGS) $$(go list $(UNIT) | grep /test/) \
		$$(printf '%s\n' $(UNIT) $$(go list $(PLAIN_TOO)) | sort | uniq -d)

.PHONY: test-e2e
test-e2e: cluster-build monitoring-build ## Run the tests against a local cluster.
	$(PLAIN) $(TESTFLAGS) ./test/...

SEQUENCES ?= 20

.PHONY: test-deletions
test-deletions: cluster-build ## Delete extensions at every write, and in SEQUENCES (20) random sequences.
	go test -timeout 120m $(TESTFLAGS) ./test/e2e -run 'TestDeletionAtEveryWrite|TestDeathAtEveryWriteOfAnUninstall|TestRandomDeletions' -deletions -sequences=$(SEQUENCES)

SEED ?= 1

.PHONY: test-patches
test-patches: cluster-build ## Change every field of objects of every kind, and say the corpus in other words; SEED (1) draws samples.
	go test -timeout 60m $(TESTFLAGS) ./test/patches -thorough -seed=$(SEED)

.PHONY: test-plans
test-plans: cluster-build ## Plan each upgrade of the corpus, and hold the plan against what is then written.
	go test -timeout 60m $(TESTFLAGS) ./test/corpus -run 'TestCorpus$$' -plans

.PHONY: test-hostile
test-hostile: cluster-build ## Attack a controller with the memory of a deployed one; takes root.
	go test -timeout 60m $(TESTFLAGS) ./test/hostile -attacks

.PHONY: test-signatures
test-signatures: ## Have cosign itself sign images, and verify them; TESTFLAGS=-update writes the test data of internal/image anew.
	go build -modfile=hack/release/go.mod -ldflags='-s -w' -o bin/tools/cosign github.com/sigstore/cosign/v3/cmd/cosign
	go test -count=1 -timeout 30m ./test/signatures -cosign=$(CURDIR)/bin/tools/cosign $(TESTFLAGS)

IDLE ?= 5m

.PHONY: test-gitops
test-gitops: ## Run Flux and the engine of Argo CD with examples, at rest for IDLE (5m) with each way to compare.
	$(CLUSTER) build --gitops
	go test -count=1 -timeout 60m $(TESTFLAGS) ./test/gitops -gitops -idle=$(IDLE)

.PHONY: test-classic
test-classic: ## Have classic OLM install operators beside a cluster, and move them; TESTFLAGS=-settle=10m watches it longer.
	$(CLUSTER) build --classic
	go test -count=1 -timeout 30m $(TESTFLAGS) ./test/classic -classic

EVERY ?= 1

.PHONY: test-kills
test-kills: ## Kill the tool that moves operators from classic OLM at each of its writes, or at EVERY (1) such one.
	$(CLUSTER) build --classic
	go test -count=1 -v -timeout 120m $(TESTFLAGS) ./test/classic -run TestKilled -kills=$(EVERY)

.PHONY: test-classic-corpus
test-classic-corpus: ## Have classic OLM install each package of the corpus, and move it: half an hour.
	$(CLUSTER) build --classic
	go test -count=1 -v -timeout 120m $(TESTFLAGS) ./test/classic -run 'TestCorpus$$' -corpus

PICTURES ?=

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

.PHONY: test-console
test-console: cluster-build ## Show every page of the console in Chromium, which it skips without; PICTURES is a folder for pictures.
	$(if $(PICTURES),mkdir -p $(PICTURES))
	go test -count=1 -v -timeout 30m $(TESTFLAGS) ./test/console -browser $(if $(PICTURES),-pictures=$(abspath $(PICTURES)))

.PHONY: bench-console
bench-console: cluster-build ## Measure pages of the console in Chromium; each result is a line of JSON.
	@go test -run '^$$' -bench . -benchtime 20x -timeout 30m $(TESTFLAGS) ./test/console -browser | go run ./test/bench/gobench

# The controller that upgrades begin with: the first that the manifests of today can run.
PREVIOUS ?= ba3eeb1

.PHONY: test-node
test-node: ## Run the deployed controller on a real node; takes root, and packages that it names.
	go test -count=1 -v -timeout 40m $(TESTFLAGS) ./test/node -node -previous=$(PREVIOUS)

SOAK ?= 20m

.PHONY: soak-node
soak-node: ## Upgrade 50 operators back and forth on a real node for SOAK (20m), in the deployed memory; longer outages.
	go test -count=1 -v -timeout 120m $(TESTFLAGS) ./test/node -node -run 'TestSoak|TestOutages' -soak=$(SOAK) -registry-away=5m

# The code whose coverage tells which inputs are worth going on with: our own, or
# all that it imports too, which takes minutes to build again for that. Own names the
# flag by which go test -fuzz has it built.
FUZZCODE ?= all
FUZZ.all = -fuzz .
FUZZ.own = -gcflags $$(go list -m)/...=-d=libfuzzer

# One binary for each package that has fuzz tests, whatever its other tests need.
# Without its bound, most of the time goes into making inputs smaller. A worker that is
# busy when the time is over has the fuzzer fail with the end of its context, and no input.
.PHONY: test-fuzz
test-fuzz: ## Run every fuzz test of all packages for FUZZTIME (1m).
	@set -e; cache=$$(go env GOCACHE)/fuzz; folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	for package in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u); do \
		go test -c $(FUZZ.$(FUZZCODE)) -o "$$folder/fuzz" $$package; \
		for target in $$(grep -ho '^func Fuzz[[:alnum:]_]*' $$package/*_test.go | cut -d ' ' -f 2); do \
			echo "$$package $$target"; \
			(cd $$package && "$$folder/fuzz" -test.run '^$$' -test.fuzz "^$$target\$$" -test.fuzztime $(FUZZTIME) \
				-test.fuzzminimizetime 10x -test.fuzzcachedir "$$cache/$$(go list .)") >"$$folder/out" 2>&1 || \
				{ cat "$$folder/out"; grep -q '^    context deadline exceeded$$' "$$folder/out" && ! grep -q 'Failing input' "$$folder/out"; }; \
		done; \
	done

.PHONY: bench
bench: ## Run the benchmarks; each result is a line of JSON.
	@go test -run '^$$' -bench . -benchmem $(TESTFLAGS) $(UNIT) | go run ./test/bench/gobench
	@go run ./test/bench/catalogs
	@go run ./test/bench/fleet

.PHONY: bench-plot
bench-plot: ## Measure what installs cost over the number of extensions, and draw docs/performance.svg.
	@mkdir -p bin
	go run ./test/bench/fleet -only releases >bin/releases.json
	go run -C hack/plot . <bin/releases.json >docs/performance.svg

# A cluster

.PHONY: undeploy
undeploy: ## Remove the controller from the cluster of kubectl; extensions and all that is recorded of them stay.
	$(KUBECTL) delete --ignore-not-found -k config/controller

# Local cluster

.PHONY: cluster-build
cluster-build: ## Build the programs of the local cluster, unless that is done.
	$(CLUSTER) build

.PHONY: monitoring-build
monitoring-build: ## Build Prometheus and kube-state-metrics for the tests, unless that is done.
	$(CLUSTER) build --monitoring

.PHONY: cluster-up
cluster-up: ## Start a local cluster and leave it running.
	$(CLUSTER) up

.PHONY: cluster-down
cluster-down: ## Stop the local cluster.
	$(CLUSTER) down

.PHONY: controller-up
controller-up: build ## Run the controller, a registry and a sample catalog beside the cluster of cluster-up.
	@CLUSTER='$(CLUSTER)' hack/local/run up

.PHONY: controller-down
controller-down: ## Stop what controller-up has started; the cluster keeps running.
	@hack/local/run down

.PHONY: classic-up
classic-up: ## Have classic OLM install five operators on a local cluster, to come over from; CLASSIC_EXIT=1 ends it.
	go run ./test/classic/cmd/classic

.PHONY: demo
demo: ## Install and upgrade an operator on a local cluster; DEMO_EXIT=1 ends it.
	go run ./hack/demo
