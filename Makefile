# What can be done here? `make help` lists it. Everything runs in .venv, which `make setup` makes from
# requirements.lock; a second `make setup` does nothing until the lock or pyproject.toml changes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.made-from-lock
CHECKED := src tests $(wildcard benchmarks/*.py examples/*.py)

# Tests start hundreds of processes, and each would compile all of Betimes anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup lock demo test quick lint format bench golden statements clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv from requirements.lock (does nothing when it is up to date)

# The stamp is written last: a set-up that was interrupted starts over.
$(STAMP): requirements.lock pyproject.toml
	@command -v "$(PYTHON)" >/dev/null 2>&1 || { \
	  echo "make setup: no '$(PYTHON)' found; install Python 3.11 or newer, or name one: make setup PYTHON=/path/to/python3.11" >&2; exit 2; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make setup: '$(PYTHON)' is $$("$(PYTHON)" -V 2>&1), but Betimes needs Python 3.11 or newer; name one: make setup PYTHON=python3.11" >&2; exit 2; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "make setup: '$(PYTHON)' has no venv module; on Debian and Ubuntu: apt install python3-venv" >&2; exit 2; }
	@echo "Making $(VENV) from requirements.lock (a few minutes the first time: Spark is large) ..."
	@rm -f $@
	@"$(PYTHON)" -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

lock: setup ## compile requirements.lock anew from pyproject.toml
	@printf '%s\n' '# Every version and hash that `make setup` installs. Compiled from pyproject.toml by `make lock`.' > requirements.lock.new
	@$(BIN)/uv pip compile pyproject.toml --extra dev --extra bench --universal --generate-hashes --upgrade \
	  --no-config --no-header --no-annotate --no-emit-index-url --no-emit-find-links --quiet >> requirements.lock.new
	@mv requirements.lock.new requirements.lock
	@echo "requirements.lock is new; make setup will install from it"

# numba's cache of compiled kernels looks only at the file a kernel stands in, not at those it calls into:
# when any of them changes, all are compiled anew: those of brokers here, once, not by whoever comes first.
KERNELS := $(VENV)/.kernels
$(KERNELS): $(STAMP) $(shell grep -rl --include='*.py' '@kernel' src)
	@echo "Compiling what brokers run most often (once after a change of it, some 30 s) ..."
	@find src -name '*.nb[ic]' -delete
	@$(BIN)/python -c 'from betimes.broker.warm_up import warm_up; warm_up(["late-binding"])'
	@touch $@

# Java starts Spark in half the processor time with an archive of its classes; tests start it dozens of times.
CLASSES := $(VENV)/.classes
$(CLASSES): $(STAMP)
	@echo "Keeping Spark's classes at hand (once, some 20 s) ..."
	@$(BIN)/python -c 'from betimes.pipeline.sweeps.warm_archive import write_archive; write_archive()' \
	  || echo "going on without: Spark starts more slowly"
	@touch $@

demo: setup $(KERNELS) ## replay a day of real flights over live brokers: first come, first served, and then ours
	@$(BIN)/betimes demo

# mypy keeps one core busy: on another, kernels are compiled and classes gathered meanwhile.
test: setup ## every check and every test
	@$(MAKE) --no-print-directory -j 2 lint $(KERNELS) $(CLASSES)
	@$(BIN)/python -m pytest -n 3

quick: setup $(KERNELS) ## the short tests: no Spark, no live broker, no experiment, nothing long; fewer examples
	@HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -n auto -m "not spark and not live and not figure and not long"

lint: setup ## format, lint, types, import contracts; reports large files and folders
	@$(BIN)/ruff format --check $(CHECKED)
	@$(BIN)/ruff check $(CHECKED)
	@$(BIN)/mypy src tests $(wildcard benchmarks/*.py)
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m tests.tidy.report_sizes

format: setup ## put the code in its format, and mend what ruff can mend
	@$(BIN)/ruff format $(CHECKED)
	@$(BIN)/ruff check --fix $(CHECKED)

bench: setup $(KERNELS) ## measure Betimes side by side with its peers
	@for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python "$$file" || exit 1; done

statements: setup ## write docs/reference/mqtt-statements.md anew from markers in the tests
	@$(BIN)/python -m tests.mqtt.statements

golden: setup $(KERNELS) ## record anew what brokers, simulations, predictions and tables say (tests/golden)
	@$(BIN)/python -m tests.golden.record

clean: ## remove .venv and everything made by the other targets
	rm -rf $(VENV) build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache spark-warehouse
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
