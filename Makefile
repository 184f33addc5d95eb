PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test test-slow lint format bench learning-figure clean

demo: $(READY)
	$(BIN)/python examples/synthetic_time_series.py --out out/demo

test: $(READY)
	$(BIN)/python -m pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python benchmarks/prediction.py
	$(BIN)/python benchmarks/learning.py
	$(BIN)/python benchmarks/estimator.py

learning-figure: $(READY)
	$(BIN)/python examples/fisher_weighted_learning.py --out out/learning

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow

# One environment for every target: installed once, again only when pyproject.toml changes.
$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(READY)

clean:
	rm -rf .venv out dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
