PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-slow test-lowest lowest-setup test-setup torch attack lint format bench bench-peers reproduce \
	docs docs-setup dist dist-setup clean

demo: $(READY)
	mkdir -p out/demo
	$(BIN)/python -c "from compositegp.datasets import nox_emissions; nox_emissions().to_csv('out/demo/nox.csv')"
	$(BIN)/compositegp forecast out/demo/nox.csv --time time --target nox --horizon 24h --log --backtest 30 --report --out out/demo

# The paper's experiments, ten minutes on two cores, into docs/; for nox, COMPOSITEGP_DATA names the folder of the
# Stockholm file. Fails, naming each row, if a verdict is not that of tests/paper_verdicts.csv; those about seconds may
# change. `make reproduce ACCEPT=1` names them and takes the new ones.
reproduce: $(READY)
	@test -n "$$COMPOSITEGP_DATA" || { echo "set COMPOSITEGP_DATA to the folder of the Stockholm file"; exit 1; }
	$(BIN)/compositegp reproduce all --out out/reproduction --against tests/paper_verdicts.csv \
		$(if $(filter 1,$(ACCEPT)),--accept)
	cp out/reproduction/reproduction.md docs/
	cp out/reproduction/figures/*.png docs/figures/
	cp out/reproduction/verdicts.csv tests/paper_verdicts.csv

# A browser, for the test of the HTML page: one of those that tests/browser.py looks for.
test-setup:
	command -v chromium || command -v chromium-browser || command -v google-chrome || command -v google-chrome-stable || \
		apt-get install --yes --no-install-recommends chromium

test: $(READY)
	$(BIN)/python -m pytest -n auto

# PyTorch, for the tests of its back end; without it they run on NumPy alone.
TORCH ?= torch==2.13.0
torch: $(READY)
	$(BIN)/python -c "import torch" || $(PIP) '$(TORCH)'

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

# Beside other libraries, each in turn with the whole machine, in one unbroken run: an hour and more on two idle cores.
# LIMIT is the seconds that one method may take.
LIMIT ?= 300
bench-peers: $(READY)
	$(PIP) '$(TORCH)' --editable '.[peers]'
	$(BIN)/python benchmarks/peers.py --out benchmarks/results --readme README.md --limit $(LIMIT)

# Ten minutes on two cores; the figures go to docs/trust.md. Fails if one that should be zero is not.
attack: $(READY)
	$(BIN)/python -m attack --out docs/trust.md

# The documentation as a site, with its examples run: out/site/index.html. Warnings are errors.
docs: docs-setup
	rm -rf docs/generated
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs out/site

docs-setup: .venv/.docs-ready
.venv/.docs-ready: $(READY)
	$(PIP) --editable '.[docs]'
	touch .venv/.docs-ready

# A wheel and an archive of the sources, a check of what a package index would show of them, and a test of the wheel
# in an environment with the core dependencies alone.
dist: dist-setup
	rm -rf dist out/clean
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv out/clean
	out/clean/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	out/clean/bin/python tests/smoke.py

dist-setup: .venv/.dist-ready
.venv/.dist-ready: $(READY)
	$(PIP) build twine
	touch .venv/.dist-ready

# Statistical and large tests, and with COMPOSITEGP_DATA the paper's whole run.
test-slow: $(READY)
	$(BIN)/python -m pytest -n auto -m slow

# The tests of the core and of the front ends with the lowest versions that pyproject.toml allows: tests/lowest.txt.
LOWEST := test_kernels test_posterior test_composite test_likelihood test_learning test_estimator_exact \
	test_estimator_contract test_nearest test_storage test_predictive test_forecasting test_cli_forecast \
	test_cli_regress test_cli_program test_fill test_krige test_distributed test_serve test_many_report test_sktime \
	test_map_files test_map_report test_regions test_tables test_stream_input test_aggregation test_decomposition \
	test_damped_trend test_scorers test_sample_weight test_segments test_means test_outputs test_simulate test_two_piece \
	test_extensions
test-lowest: lowest-setup
	out/lowest/bin/python -m pytest -n auto --doctest-glob='' -W default $(LOWEST:%=tests/%.py)

lowest-setup: out/lowest/.ready
out/lowest/.ready: pyproject.toml tests/lowest.txt
	$(PYTHON) -m venv --clear out/lowest
	out/lowest/bin/python -m pip install --quiet --disable-pip-version-check --constraint tests/lowest.txt \
		hypothesis polars pytest pytest-xdist --editable '.[calendar,cli,dask,data,report,serve,sktime,spatial-files]'
	touch out/lowest/.ready

# One environment for every target: installed once, again only when pyproject.toml changes.
$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) --editable '.[dev]'
	touch $(READY)

clean:
	rm -rf .venv out dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
