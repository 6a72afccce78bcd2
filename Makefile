# Two commands on a fresh machine: `make demo` and `make test`. Each sets up what it needs, once.
#
#   VENV=.venv        where the environment lives
#   PYTHON=python3    what makes it (3.11 or newer)
#   NO_INSTALL=1      use $(PYTHON) as it is and install nothing (a GPU machine whose image has everything)

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV ?= .venv
PYTHON ?= python3
ifdef NO_INSTALL
PY := $(PYTHON)
SETUP := true
else
PY := $(VENV)/bin/python
SETUP := VENV=$(VENV) PYTHON=$(PYTHON) scripts/setup.sh
endif
export PYTHONPATH := $(CURDIR)$(if $(PYTHONPATH),:$(PYTHONPATH))

PROBLEM ?=
SECONDS_TO_SEARCH ?= 65
TESTS ?= tests
# Four workers keep two cores busy: two of them judge, and judges and services often wait for their children.
JOBS ?= 4
# What waits for nothing runs in as many workers as there are cores: each further one imports for seconds.
FAST_JOBS ?= 2
SPREAD := --dist loadfile --no-loadscope-reorder

# A test run starts hundreds of interpreters: without bytecode each of them compiles our modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo serve fmt check house test test-fast timings test-postgres test-gpu soak take-home docs screenshots clean

help:  ## this list
	@grep -hE '^[a-z%-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z%-]+):.*## */  make \1\t/' | expand -t 20

setup:  ## the environment alone
	@$(SETUP)

demo: setup  ## optimise a real op on this machine, from nothing to a proved kernel file
	$(PY) scripts/demo.py --seconds $(SECONDS_TO_SEARCH) $(if $(PROBLEM),--problem $(PROBLEM))

serve: setup  ## API, dashboard and workers on this machine
	$(PY) -m warpwright serve

fmt: setup  ## format the code and fix what the linter can
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

check: setup  ## format, lint, types, import rules, the house's limits, the compose file (under a minute)
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(PY) scripts/lint_imports.py
	$(PY) scripts/house.py --check
	$(PY) scripts/check_compose.py docker-compose.yml

house:  ## how easily the code is read and found, by room; AGAINST=REV prints a commit beside it
	@$(PYTHON) scripts/house.py $(if $(AGAINST),--against $(AGAINST))

test:  ## every test that this machine can run; what it cannot run says why
	@$(SETUP) $(if $(NO_INSTALL),,--browser)
	$(PY) -m pytest -n $(JOBS) $(SPREAD) $(TESTS)

test-fast: setup  ## the tests without a judge, a compiler, a database or a service
	$(PY) -m pytest -n $(FAST_JOBS) $(SPREAD) --fast $(TESTS)

timings: setup  ## the slowest suites and tests of the last run
	$(PY) -m tests.support.timings

test-postgres: setup  ## the database, service and worker tests on PostgreSQL and Redis, all of them
	$(PY) -m pytest --stack postgres tests/db tests/service tests/workers

test-gpu: setup  ## the tests that need an NVIDIA GPU
	$(PY) -m pytest tests/gpu

soak: setup  ## long soak, fuzz and load runs
	$(PY) -m pytest -m soak --soak --timeout 3600 $(TESTS)

take-home: setup  ## every use of exported kernels with every problem in every format (an hour)
	$(PY) -m tests.take_home.matrix

bench-%: setup  ## one benchmark by its name, as in bench/NAME.py
	$(PY) -m bench.$*

docs: setup  ## write the API's document, the typed client and the generated pages again
	$(PY) -m service openapi
	$(PY) scripts/generate_docs.py

screenshots: setup  ## take the pictures of docs/images again, of a run that really runs
	$(PY) scripts/screenshots.py

clean:  ## remove the environment, caches and outputs (never your data folder)
	rm -rf $(VENV) out build dist *.egg-info .setup-stamp .mypy_cache .ruff_cache .import_linter_cache .hypothesis .pytest_cache .pytest-timings .pytest-built
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
