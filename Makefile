# The verbs. `make help` lists them.

SHELL := /bin/bash
CLUSTERWRIGHT_CACHE ?= $(HOME)/.cache/clusterwright
export CLUSTERWRIGHT_CACHE
# One target directory for all checkouts: a fresh clone finds its dependencies built.
export CARGO_TARGET_DIR ?= $(CLUSTERWRIGHT_CACHE)/target
LAB := cargo run --quiet --bin lab --

.PHONY: help
help: ## List the verbs
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-17s %s\n", $$1, $$2}'

.PHONY: demo
demo: ## Build a real cluster from one ClusterDeployment, on this machine, before your eyes
	@hack/demo

.PHONY: demo-down
demo-down: ## End the demo, and remove all it made but the cache
	@hack/demo down

.PHONY: test
test: ## Set up all there is to set up, and pass every test
	@hack/test

SEED ?= 1
.PHONY: faults
faults: ## Hit installs with every fault in every step: make faults SEED=n (over an hour)
	@hack/faults --seed $(SEED) $(ARGS)

.PHONY: lifecycle
lifecycle: ## Grow, shrink, break and repair real clusters: make lifecycle ARGS='--scenario grow' (under an hour)
	@hack/lifecycle $(ARGS)

.PHONY: addons
addons: ## Install add-ons on real clusters, by manifests and by a chart, and change and remove them (half an hour)
	@$(LAB) build addons
	@hack/lifecycle --scenario addons --scenario addons-fleet $(ARGS)

.PHONY: changes
changes: ## Upgrade real clusters, for which other versions of Kubernetes are built (over an hour)
	@hack/changes $(ARGS)

.PHONY: backups
backups: ## Back up and restore real clusters, interrupted, undone and at random moments (under two hours)
	@hack/storages
	@hack/lifecycle --backups $(ARGS)
	@CLUSTERWRIGHT_S3=seaweedfs CLUSTERWRIGHT_LIFECYCLE_LOG=$(CLUSTERWRIGHT_CACHE)/logs/lifecycle-seaweedfs.log \
		hack/lifecycle --scenario restore-interrupted

MINUTES ?= 10
.PHONY: chaos
chaos: ## Hit and change a cluster at random for some minutes, then heal all: make chaos MINUTES=10 SEED=n
	@hack/chaos --seed $(SEED) --minutes $(MINUTES) $(ARGS)

FROM ?=
.PHONY: upgrade-operator
upgrade-operator: ## Replace the operator in the middle of an install: make upgrade-operator FROM=<commit or tag>
	@hack/upgrade-operator $(FROM)

.PHONY: karmada
karmada: ## Run planes of Karmada's own programs, which are given: CLUSTERWRIGHT_PROGRAMS (over an hour, as root)
	@hack/karmada $(ARGS)

.PHONY: quick-start
quick-start: ## Run the commands of docs/quick-start.md on machines of the lab
	@hack/quick-start-on-lab

.PHONY: lab-up
lab-up: ## Start the lab: metadata cluster, artifact bundle, operator
	@$(LAB) up

.PHONY: lab-status
lab-status: ## Show what the lab runs
	@$(LAB) status

.PHONY: lab-down
lab-down: ## Stop the lab and remove its machines
	@$(LAB) down

.PHONY: lab
lab: ## Run the lab's command: make lab ARGS='machine add NAME'
	@$(LAB) $(ARGS)

VERSION ?= dev
OUT ?= $(CLUSTERWRIGHT_CACHE)/release
ARCH ?= amd64,arm64
.PHONY: images
images: ## Write OCI layouts of operator and executor, for amd64 and arm64: make images VERSION=0.1.0 OUT=DIR
	@$(LAB) build release --version $(VERSION) --output $(OUT) --arch $(ARCH)

.PHONY: push
push: ## Push what `make images` wrote, with bills of materials and provenance: make push REGISTRY=... VERSION=0.1.0
	@test -n "$(REGISTRY)" || { echo "make push REGISTRY=REGISTRY[/PREFIX]"; exit 2; }
	@for name in operator executor; do \
		cargo run --quiet --bin wright -- layout push $(OUT)/$$name $(REGISTRY)/$$name:$(VERSION) $(ARGS) || exit 1; done

.PHONY: crds
crds: ## Write the CustomResourceDefinitions, docs/api.md, docs/reasons.md and docs/fields.md from the types and planners
	@cargo run --quiet --package crds --example manifests -- manifests/crds
	@cargo run --quiet --package crds --example api_docs -- docs
	@cargo run --quiet --package plan --example field_docs -- docs
	@$(MAKE) --no-print-directory manifests

.PHONY: manifests
manifests: ## Write the chart's templates from the kustomization in manifests
	@cargo run --quiet --package chart -- manifests

.PHONY: bench
bench: ## Measure clusters, their changes and their upgrades against bare kubeadm over SSH, in one run
	@hack/bench/run
	@hack/bench/lifecycle
	@hack/bench/upgrade

.PHONY: bench-fleet
bench-fleet: ## Measure what a fleet of simulated clusters costs the operator: make bench-fleet ARGS='--clusters 100'
	@hack/bench/fleet/run $(ARGS)

.PHONY: bench-backup
bench-backup: ## Measure a backup against doing it by hand, without a lab: make bench-backup ARGS='--mib 512'
	@hack/bench/backup/run $(ARGS)

.PHONY: bench-plan
bench-plan: ## Measure how the planners' cost grows with the fleet: make bench-plan ARGS='-- --sizes 100,1000 choose'
	@cargo bench --package plan --bench growth $(ARGS)

.PHONY: lint
lint: ## Formatting, clippy, ansible-lint, yamllint, shellcheck
	@hack/test formatting clippy playbooks shell
