# Each target makes its own virtual environment when it is missing.
PYTHON ?= python3
BIN := .venv/bin
PIP_INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check \
  --constraint constraints.txt
PYTEST = $(BIN)/python -m pytest -n 2 --dist loadfile --max-worker-restart 0

.PHONY: demo test test-all test-onnx faults lint benchmark notebook clean
.DELETE_ON_ERROR:

demo: .venv/.demo
	$(BIN)/python -m experiments.demo --workdir=runs/demo

# All tests but those marked `@pytest.mark.slow`, on two cores.
test: .venv/.test
	$(PYTEST)

# Those too; this `-m` takes the place of that of pyproject.toml.
test-all: .venv/.test
	$(PYTEST) -m 'not faults'

# Runs killed, checkpoints damaged and input mutilated at random, and every
# method in several processes: more than an hour.
faults: .venv/.test
	$(BIN)/python -m pytest -m faults
	MODA_FUZZ_EXAMPLES=4000 $(BIN)/python -m pytest -m '' tests/test_fuzz.py

# Exported models in ONNX, which bring 170 MB more.
test-onnx: .venv/.test
	$(PIP_INSTALL) --editable '.[demo,test,onnx]'
	$(BIN)/python -m pytest -m '' tests/test_export_onnx.py

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

notebook: .venv/.demo
	$(PIP_INSTALL) --editable '.[demo,notebook]'
	$(BIN)/jupyter lab experiments/notebooks

benchmark: .venv/.demo .venv-torch/.made
	$(BIN)/python -m experiments.benchmark $(FLAGS)

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	  "moda_jax needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv

.venv/.demo: .venv/bin/python setup.cfg constraints.txt
	@echo 'Installing into .venv (2.6 GB, one to three minutes)'
	$(PIP_INSTALL) --editable '.[demo]'
	@touch $@

.venv/.test: .venv/.demo
	$(PIP_INSTALL) --editable '.[demo,test]'
	@touch $@

# Of the benchmark alone, which compares with PyTorch; nothing imports it.
.venv-torch/.made:
	$(PYTHON) -m venv .venv-torch
	.venv-torch/bin/pip install --quiet --disable-pip-version-check \
	  torch==2.13.0 numpy pillow
	@touch $@

clean:
	rm -rf .venv .venv-torch runs build *.egg-info
