# Each target makes its own virtual environment when it is missing.
PYTHON ?= python3
BIN := .venv/bin
PIP_INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check \
  --constraint constraints.txt

.PHONY: demo test lint clean
.DELETE_ON_ERROR:

demo: .venv/.demo
	$(BIN)/python -m experiments.demo --workdir=runs/demo

test: .venv/.test
	$(BIN)/python -m pytest -n 2 --dist loadfile --max-worker-restart 0

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

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

clean:
	rm -rf .venv runs build *.egg-info
