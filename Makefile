# Each target makes its own environment in .venv and is quick when nothing changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: report report-simulated test lab lint calibrate bench clean

$(VENV)/.runtime: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "gpuverdict needs Python 3.11 or newer; set PYTHON=python3.x"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -r requirements.txt
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements-dev.txt
	$(BIN)/pip install --quiet -r requirements-dev.txt
	@touch $@

report: $(VENV)/.runtime
	$(BIN)/gpuverdict report data/h200/campaign.yaml --out reports/h200

report-simulated: $(VENV)/.dev
	$(BIN)/python -m tests.simulator.make_sample
	$(BIN)/gpuverdict report data/simulated/campaign.yaml --out reports/simulated

test: $(VENV)/.dev
	POLARS_MAX_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

lab: $(VENV)/.runtime
	$(BIN)/jupyter lab notebooks

lint: $(VENV)/.dev
	$(BIN)/ruff check lib tests
	$(BIN)/ruff format --check lib tests
	$(BIN)/mypy
	$(BIN)/lint-imports

calibrate: $(VENV)/.dev
	$(BIN)/python -m tests.calibration.table
	$(BIN)/python -m pytest -n 2 -m nightly tests/calibration

bench: $(VENV)/.dev
	$(BIN)/python -m tests.benchmarks

clean:
	rm -rf .pytest_cache .ruff_cache .mypy_cache build lib/*.egg-info
