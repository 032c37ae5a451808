# make demo: set up and run the main job.   make test: set up, lint, type-check, test.
PYTHON ?= python3
FOLDER := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
VENV := .venv
BIN := $(VENV)/$(FOLDER)
READY := $(VENV)/.ready
FEDERATED := .venv-federated
LOWEST := .venv-lowest
PSI := openmined-psi>=2.0.6
WHEEL := .venv-wheel
INSTALL := -m pip install --quiet --disable-pip-version-check
TESTS ?= tests
ENGINE ?= engine and not slow
JOBS ?= 2
DATA ?= ../shared/data

.PHONY: help venv demo federated-demo test test-all test-federated test-lowest lint types layers unit wheel bench docs clean

help:
	@echo "make demo      set up, then run the main job"
	@echo "make test      set up, lint, type-check and run the tests"
	@echo "make test-all  the same with the long statistical tests"
	@echo "make federated-demo   train between three real processes, on the Flower engine"
	@echo "make test-federated   the tests of that engine (ENGINE=engine: also the long ones)"
	@echo "make test-lowest      the tests with the lowest versions that pyproject.toml allows (TESTS=tests/privacy: some)"
	@echo "make wheel     build the wheel, install it into an empty environment, and fit with it"
	@echo "make bench     measure speed, memory and scores, and rewrite benchmarks/results"
	@echo "make docs      build the documentation site into build/site"
	@echo "make clean     remove everything the other targets made"

venv: $(READY)

# openmined-psi is not in `dev`: it has wheels for some machines only, and pins a protobuf that onnx does not take.
$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(INSTALL) --editable ".[dev]"
	$(BIN)/python $(INSTALL) --no-deps --only-binary :all: "$(PSI)" || echo "No wheel of $(PSI) here: its tests are skipped."
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

# The tests of a file run in one process, and those of other files in the other: what one has compiled, and what a file
# sets up for all its tests, is there once. Every worker has one thread for products: more of them than cores wait for one another, fifteen times as long.
unit test-all: export OPENBLAS_NUM_THREADS = 1

unit: venv
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow and not engine" $(TESTS)

test-all: lint types layers
	$(BIN)/python -m pytest -n $(JOBS) -m "not engine" --cov --cov-report=term

# The engine wants older versions of packages that the development tools use, so it gets a place of its own, which reads
# what is in $(VENV) and writes nothing there.
$(FEDERATED)/.ready: pyproject.toml $(READY)
	$(PYTHON) -m venv $(FEDERATED)
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
		> $$($(FEDERATED)/$(FOLDER)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/development.pth
	$(FEDERATED)/$(FOLDER)/python $(INSTALL) --editable ".[cli,federated]"
	@touch $@

federated-demo: $(FEDERATED)/.ready
	$(FEDERATED)/$(FOLDER)/python examples/federated_two_hospitals/run.py

test-federated: $(FEDERATED)/.ready
	$(FEDERATED)/$(FOLDER)/python -m pytest -m "$(ENGINE)" tests/federated_engine

# With Python 3.11 or 3.12: later ones have no wheel of the lowest NumPy.
$(LOWEST)/.ready: pyproject.toml tools/lowest.py
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/$(FOLDER)/python tools/lowest.py cli report > $(LOWEST)/constraints.txt
	$(LOWEST)/$(FOLDER)/python $(INSTALL) --constraint $(LOWEST)/constraints.txt --editable ".[test]"
	@touch $@

test-lowest: $(LOWEST)/.ready
	$(LOWEST)/$(FOLDER)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow and not engine" $(TESTS)

# The environment is new every time: what is forgotten among the dependencies, or left out of the wheel, is missed here.
wheel:
	rm -rf dist $(WHEEL)
	$(PYTHON) -m venv $(WHEEL)
	$(WHEEL)/$(FOLDER)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	$(WHEEL)/$(FOLDER)/python $(INSTALL) dist/*.whl
	$(WHEEL)/$(FOLDER)/python -I tools/smoke.py
	$(WHEEL)/$(FOLDER)/tacit demo --repeats 1 --out build/wheel-demo

bench: venv $(FEDERATED)/.ready
	$(BIN)/python -m benchmarks.cost.noise
	$(BIN)/python -m benchmarks.cost.one_pass
	$(BIN)/python -m benchmarks.cost.fits
	$(BIN)/python -m benchmarks.cost.sparse_fit
	$(BIN)/python -m benchmarks.cost.first_fit
	$(BIN)/python -m benchmarks.cost.memory
	$(BIN)/python -m benchmarks.cost.cluster
	$(BIN)/python -m benchmarks.rules.judges
	$(BIN)/python -m benchmarks.rules.coordinate --data $(DATA)
	$(BIN)/python -m benchmarks.rules.dual --data $(DATA)
	$(BIN)/python -m benchmarks.rules.text --data $(DATA)
	$(BIN)/python -m benchmarks.rules.steps --data $(DATA)
	$(BIN)/python -m benchmarks.rules.curvature --data $(DATA)
	$(BIN)/python -m benchmarks.rules.means --data $(DATA)
	$(BIN)/python -m benchmarks.rules.walks --data $(DATA)
	$(BIN)/python -m benchmarks.rules.units --data $(DATA)
	$(BIN)/python -m benchmarks.rules.regressions --data $(DATA)
	$(BIN)/python -m benchmarks.rules.solvers --data $(DATA)
	$(BIN)/python -m benchmarks.small --data $(DATA)
	$(BIN)/python -m benchmarks.dp_cd --data $(DATA)
	$(BIN)/python -m benchmarks.dp_scd --data $(DATA)
	$(BIN)/python -m benchmarks.dp_fw --data $(DATA)
	$(BIN)/python -m benchmarks.dp_pca --data $(DATA)
	$(BIN)/python -m benchmarks.federated --data $(DATA)
	$(FEDERATED)/$(FOLDER)/python -m benchmarks.federated.network
	$(BIN)/python -m benchmarks.dense.peers.setup
	$(BIN)/python -m benchmarks.dense --data $(DATA)

docs: venv
	$(BIN)/sphinx-build --quiet --fresh-env --nitpicky --fail-on-warning -c docs -d build/doctrees . build/site
	@echo "build/site/index.html"

clean:
	rm -rf $(VENV) $(FEDERATED) $(LOWEST) $(WHEEL) build dist demo .coverage .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf benchmarks/.cache benchmarks/dense/peers/.venv-*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
