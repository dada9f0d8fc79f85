# The set-up is part of every job: `make study` and `make test` work on a fresh clone.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
WORKERS ?= 2

.PHONY: help venv model study test lint bench families docs clean

help:
	@echo "make study   run the experiments and write results/study/report.html"
	@echo "make test    lint, type checks and all tests"
	@echo "make venv | model | lint | bench | families | docs | clean"

venv: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

model: $(READY)
	$(BIN)/python -m polariscope.models.fetch

study: model
	$(BIN)/polariscope study --scale quick -o results/study

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

# Two processes of one thread each: more threads than cores slow torch down many times over.
test: lint model
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

bench: model
	$(BIN)/python benchmarks/flow.py
	$(BIN)/python benchmarks/probe.py

# Every causal language model of the installed transformers; writes docs/families.md.
families: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python tools/families.py --workers $(WORKERS)

docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf .venv build dist site results .pytest_cache .ruff_cache .hypothesis
