# Two commands: `make run` shows what spacenet does, `make test` checks all of it. Both set up .venv first.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile

unexport PYTHONDONTWRITEBYTECODE  # where it is set, every process of the tests would compile again

.DEFAULT_GOAL := help
.PHONY: help setup run test lint types tests format bench results docs clean

help: ## Show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

setup: $(VENV)/.done ## Set up .venv with the tested versions

$(VENV)/.done: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "spacenet needs Python 3.11 or newer; try make PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@# every pinned package, in two processes and torch first; then spacenet, with what else a platform needs
	grep -v '^#' constraints.txt | sort -r | xargs -n 20 -P 2 $(PIP) --no-deps
	$(PIP) --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	@touch $@

run: setup ## Learn the embedded digits in five tasks with SpaceNet
	$(BIN)/spacenet run split-digits

test: lint types tests ## Lint, check types, run the tests

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

tests: setup
	@# a new .venv is compiled when first imported; what every command imports by this line, not by both processes
	@$(BIN)/python -c 'import spacenet.cli.run, spacenet.model.estimator'
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

format: setup ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## Measure speed and memory on this machine (about four minutes, wants it idle)
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.prediction
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m benchmarks.floor

results: setup ## Make docs/results.md from the figures in benchmarks/results
	$(BIN)/python -m benchmarks.results page

docs: setup ## Make the documentation in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open build/site/index.html"

clean: ## Remove .venv and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist src/*.egg-info
