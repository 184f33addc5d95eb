PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test test-slow test-setup torch attack lint format bench bench-peers reproduce docs dist clean

demo: $(READY)
	mkdir -p out/demo
	$(BIN)/python -c "from compositegp.datasets import nox_emissions; nox_emissions().to_csv('out/demo/nox.csv')"
	$(BIN)/compositegp forecast out/demo/nox.csv --time time --target nox --horizon 24h --log --backtest 30 --report --out out/demo

# The paper's experiments; for nox, COMPOSITEGP_DATA names the folder of the Stockholm file.
reproduce: $(READY)
	$(BIN)/compositegp reproduce all --out out/reproduction

# A browser, for the test of the HTML page.
test-setup:
	apt-get install --yes --no-install-recommends chromium

test: $(READY)
	$(BIN)/python -m pytest -n auto

# PyTorch, for the tests of the back end that it is; without it they run on NumPy alone.
TORCH ?= torch==2.13.0
torch: $(READY)
	$(BIN)/python -c "import torch" || $(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python benchmarks/prediction.py
	$(BIN)/python benchmarks/learning.py
	$(BIN)/python benchmarks/estimator.py
	$(BIN)/python benchmarks/design.py

# Beside other libraries, each in turn with the whole machine, in one unbroken run: some hours.
bench-peers: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)' --editable '.[peers]'
	$(BIN)/python benchmarks/peers.py --out benchmarks/results --readme README.md

# Ten minutes on two cores; the figures go to docs/trust.md. Fails if one that should be zero is not.
attack: $(READY)
	$(BIN)/python -m attack --out docs/trust.md

# The documentation as a site, with its examples run: out/site/index.html. Warnings are errors.
docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	rm -rf docs/generated
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs out/site

# A wheel and an archive of the sources, and a test of the wheel in an environment with the core dependencies alone.
dist: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	rm -rf dist out/clean
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv out/clean
	out/clean/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	out/clean/bin/python tests/smoke.py

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow

# One environment for every target: installed once, again only when pyproject.toml changes.
$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(READY)

clean:
	rm -rf .venv out dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
