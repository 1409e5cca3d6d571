# Every target runs on a bare machine with Go, Rust and Python: what is missing is installed or built, and kept
# in ~/.cache/agentrun, so that the second time is quick. With KUBECONFIG set, `demo` and `test-e2e` use that
# cluster instead of bringing one up (images must then be where its nodes find them, see README.md).

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

export CARGO_TARGET_DIR ?= $(HOME)/.cache/agentrun/target
export CARGO_TERM_COLOR ?= never
export CLUSTER_CACHE ?= $(HOME)/.cache/agentrun/cluster
JOBS ?= $(shell nproc)

.PHONY: node help demo demo-agent test test-unit test-integration test-e2e test-skills check format lint deny generated alone generate \
	binaries images cluster install-tools bench clean

help: ## What there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 26

demo: ## Bring a cluster up, install AgentRun, run the examples, show what they made, take it all down
	e2e/demo

demo-agent: ## The same for a lead agent with a goal; AGENTRUN_MODEL_ENDPOINT, _NAME and _KEY choose a live model
	e2e/demo-agent

test: test-unit test-skills test-integration test-e2e ## All tests: unit, mock, real API server, real node

test-unit: node ## Pure tests and tests against mock servers
	cargo test --locked --jobs $(JOBS)
	python3 -m unittest discover --quiet --start-directory e2e/model-server

test-skills: node ## Tests of the skills in skills/
	skills/test

test-integration: binaries ## The operator and the charts against a real API server: crash sweep, faults, rights, upgrades
	AGENTRUN="$(CARGO_TARGET_DIR)/release/agentrun" e2e/with-cluster --control-plane charts/test
	e2e/with-cluster --control-plane cargo test --locked --jobs $(JOBS) --package agentrun-sweep

test-e2e: ## The whole product on a real node
	e2e/with-cluster --installed cargo test --locked --jobs $(JOBS) --package agentrun-e2e

check: format lint generated deny alone ## What CI checks besides tests

format:
	cargo fmt --all --check
	test -z "$$(gofmt -l e2e/cluster)" || { gofmt -l e2e/cluster; exit 1; }

lint:
	cargo clippy --locked --jobs $(JOBS) --workspace --all-targets -- --deny warnings
	cd e2e/cluster && go vet . ./internal/...

deny: install-tools
	e2e/deny

generated: install-tools cluster ## Committed generated files are what their sources make
	charts/sync --check
	deploy/examples/generate --check
	PATH="$(CLUSTER_CACHE)/bin:$$PATH" deploy/sync --check
	PATH="$(CLUSTER_CACHE)/bin:$$PATH" deploy/argocd/test

alone: ## Every crate builds without the others' features
	for room in src/*/; do cargo check --locked --quiet --jobs $(JOBS) --package "agentrun-$$(basename "$$room")"; done

generate: ## Make the generated files anew
	UPDATE_CRDS=1 cargo test --quiet --package agentrun-api
	UPDATE_OPENAPI=1 cargo test --quiet --package agentrun-gateway --lib openapi
	charts/sync
	PATH="$(CLUSTER_CACHE)/bin:$$PATH" deploy/sync
	deploy/examples/generate

binaries: ## The control plane, and the two static binaries of the sandbox
	cargo build --locked --release --jobs $(JOBS) --package agentrun-operator
	RUSTFLAGS="-C target-feature=+crt-static" cargo build --locked --profile static --jobs $(JOBS) \
		--target "$$(rustc --print host-tuple)" --package agentrun-runtime --package agentrun-sandbox

images: binaries ## All images, as OCI archives
	AGENTRUN_STATIC_DIR="$(CARGO_TARGET_DIR)/$$(rustc --print host-tuple)/static" images/build

cluster: ## The programs of the test cluster (a quarter of an hour the first time)
	e2e/cluster/cluster build

node: # functions in JavaScript are tested with the real program
	@command -v node >/dev/null || e2e/packages nodejs

install-tools:
	@e2e/packages jq lua5.1
	@command -v cargo-deny >/dev/null || cargo install --quiet --locked cargo-deny@0.20.2

bench: ## The figures of docs/benchmarks.md, as ratios in one run
	e2e/with-cluster --installed e2e/bench/run
	executor="$(CARGO_TARGET_DIR)/$$(rustc --print host-tuple)/static/agentrun-sandbox"; \
		e2e/bench/tools "$$executor" && e2e/bench/calls "$$executor"

clean: ## Take down what a killed run left; caches stay
	e2e/cluster/cluster down
