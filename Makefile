# make demo: set up and run the main job.   make test: set up, lint, type-check, test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
FEDERATED := .venv-federated
ENGINE ?= engine and not slow
JOBS ?= 2
DATA ?= ../shared/data

.PHONY: help venv demo federated-demo test test-all test-federated lint types layers unit bench docs clean

help:
	@echo "make demo      set up, then run the main job"
	@echo "make test      set up, lint, type-check and run the tests"
	@echo "make test-all  the same with the long statistical tests"
	@echo "make federated-demo   train between three real processes, on the Flower engine"
	@echo "make test-federated   the tests of that engine (ENGINE=engine: also the long ones)"
	@echo "make bench     measure speed, memory and scores, and rewrite benchmarks/results"
	@echo "make docs      build the documentation site into build/site"
	@echo "make clean     remove everything the other targets made"

venv: $(READY)

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $(READY)

demo: venv
	$(BIN)/tacit demo

test: lint types layers unit

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: venv
	$(BIN)/mypy

layers: venv
	$(BIN)/lint-imports

unit: venv
	$(BIN)/pytest -n $(JOBS) -m "not slow and not engine"

test-all: lint types layers
	$(BIN)/pytest -n $(JOBS) -m "not engine" --cov --cov-report=term

# The engine wants older versions of packages that the development tools use, so it gets a place of its own, which reads
# what is in $(VENV) and writes nothing there.
$(FEDERATED)/.ready: pyproject.toml $(READY)
	$(PYTHON) -m venv $(FEDERATED)
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
		> $$($(FEDERATED)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/development.pth
	$(FEDERATED)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[cli,federated]"
	@touch $@

federated-demo: $(FEDERATED)/.ready
	$(FEDERATED)/bin/python examples/federated_two_hospitals/run.py

test-federated: $(FEDERATED)/.ready
	$(FEDERATED)/bin/python -m pytest -m "$(ENGINE)" tests/federated_engine

bench: venv
	$(BIN)/python -m benchmarks.cost.noise
	$(BIN)/python -m benchmarks.cost.first_fit
	$(BIN)/python -m benchmarks.cost.memory
	$(BIN)/python -m benchmarks.rules.judges
	$(BIN)/python -m benchmarks.rules.coordinate --data $(DATA)
	$(BIN)/python -m benchmarks.rules.dual --data $(DATA)
	$(BIN)/python -m benchmarks.rules.text --data $(DATA)
	$(BIN)/python -m benchmarks.dp_cd --data $(DATA)
	$(BIN)/python -m benchmarks.dp_scd --data $(DATA)
	$(BIN)/python -m benchmarks.dp_fw --data $(DATA)
	$(BIN)/python -m benchmarks.dp_pca --data $(DATA)
	$(BIN)/python -m benchmarks.federated --data $(DATA)
	$(BIN)/python -m benchmarks.dense.peers.setup
	$(BIN)/python -m benchmarks.dense --data $(DATA)

docs: venv
	$(BIN)/sphinx-build --quiet --fresh-env --nitpicky --fail-on-warning -c docs -d build/doctrees . build/site
	@echo "build/site/index.html"

clean:
	rm -rf $(VENV) $(FEDERATED) build dist demo .coverage .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf benchmarks/.cache benchmarks/dense/peers/.venv-*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
