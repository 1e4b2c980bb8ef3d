# The menu. Every line does all of its own set-up; CI runs the same words (.ci/run).

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
READY  := $(VENV)/.installed
# Who brings binaries or clusters of their own need not have ours compiled (e2e/README.md).
CONTROLPLANE := $(if $(KUBEBUILDER_ASSETS)$(USE_EXISTING_CLUSTER),,build-controlplane)

section = @printf '\n== %s  %s\n' "$$(date -u +%H:%M:%S)" "$(1)"

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo demo-real test check bench build-controlplane

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY) ## see it work in seconds: a management cluster, two workers, Jobs on their way, all in one process
	$(VENV)/bin/mirror demo

demo-real: $(READY) $(CONTROLPLANE) ## the same on real control planes
	$(PY) -m e2e.demo

check: $(READY) ## the quick proof, about a minute: format, lint, types, imports, unit tests
	$(call section,format and lint)
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(call section,types)
	$(PY) -m mypy
	$(call section,imports)
	$(VENV)/bin/lint-imports --no-logo
	$(call section,unit tests)
	$(PY) -m pytest tests -q -m "not slow"

test: check $(CONTROLPLANE) ## everything: check, long random flows, and the end-to-end tests on real control planes
	$(call section,long random flows)
	$(PY) -m pytest tests -q -m slow
	$(call section,end-to-end tests)
	$(PY) -m pytest e2e -q

bench: $(READY) $(CONTROLPLANE) ## measure latency, throughput and cost on real control planes
	$(call section,mirroring)
	$(PY) -m e2e.bench
	$(call section,Job controller)
	$(PY) -m e2e.bench_jobs
	$(call section,embedded control plane)
	$(PY) -m e2e.bench_embedded

build-controlplane: ## compile kube-apiserver, etcd and the rest with Go, once per version
	$(call section,control-plane binaries)
	$(PYTHON) -m e2e.controlplane.build

$(READY): pyproject.toml constraints.txt
	$(call section,virtual environment)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name one: make PYTHON=…")'
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,speed]'
	@touch $@
