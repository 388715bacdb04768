PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
EXAMPLES := .venv/.examples

.DEFAULT_GOAL := help
.PHONY: help venv demo test lint types unit benchmark build clean

help: ## Show what can be made
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

venv: $(INSTALLED) ## Set up .venv with morocco and all that is needed to work on it

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

$(EXAMPLES): $(INSTALLED)
	$(BIN)/pip install --quiet --editable '.[examples]'
	touch $@

demo: $(INSTALLED) ## Train, build, measure, compute, plot: the whole way in two to four minutes once the images are built
	PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh demo

test: lint types unit ## Run lint, types and all tests

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(EXAMPLES)
	$(BIN)/mypy

unit: $(EXAMPLES)
	$(BIN)/pytest

benchmark: $(EXAMPLES) ## Print every promised figure beside its target (about fifteen minutes)
	$(BIN)/python tests/benchmark

build: $(INSTALLED) ## Make wheel and sdist in dist/
	$(BIN)/python -m build

clean: ## Remove all that was made here
	rm -rf .venv build demo dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
