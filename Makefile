PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
EXAMPLES := .venv/.examples
# The tests start a thousand processes, each of which would compile the package anew.
export PYTHONDONTWRITEBYTECODE :=

# On its own, pip would compile everything on one core.
define install
$(BIN)/pip install --quiet --no-compile --editable '.[$(1)]'
$(BIN)/python -m compileall -qq -j 0 .venv/lib || true # some files are for other Pythons
endef

.DEFAULT_GOAL := help
.PHONY: help venv demo quick test lint types contracts unit package examples benchmark build clean

help: ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

venv: $(INSTALLED) ## Create .venv with morocco and everything needed to work on it

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv .venv
	$(call install,dev)
	touch $@

$(EXAMPLES): $(INSTALLED)
	$(call install,examples)
	touch $@

demo: $(INSTALLED) ## Build, measure, score and report two tiny models (three minutes once the images are built)
	PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh demo

quick: lint types ## Run the checks, and the tests of all parts that take a moment each (a minute)
	$(BIN)/pytest -q -n 2 --hypothesis-profile quick -m 'not (browser or docker or slow or timing)' \
	  tests/unit tests/cli

test: lint types contracts unit ## Run the checks and all tests (about ten minutes)

lint: $(INSTALLED) ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(EXAMPLES) ## Check types
	$(BIN)/mypy

contracts: $(INSTALLED) ## Check which part of the package imports which
	$(BIN)/lint-imports

unit: $(EXAMPLES)
	$(MAKE) --jobs 2 package examples
	$(BIN)/pytest -m timing

package: $(EXAMPLES)
	$(BIN)/pytest -n 3 --durations 15 -m 'not timing' --ignore tests/examples --ignore tests/gpu

# On their own, so that no other process of the tests has to load PyTorch.
examples: $(EXAMPLES)
	$(BIN)/pytest --durations 5 -m 'not timing' tests/examples tests/gpu

benchmark: $(EXAMPLES) ## Print every promised figure beside its target (20 minutes; 20 more: tests/benchmark kills)
	$(BIN)/python tests/benchmark

build: $(INSTALLED) ## Build the wheel and the sdist in dist/
	$(BIN)/python -m build

clean: ## Remove everything that was made here
	rm -rf .venv build demo dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
