# `make` alone lists the verbs. Each is a line or two that you could type by hand.
# Works with make 3.81 (macOS) and in a folder whose path has spaces: hence relative paths only.

# make lab PYTHON=python3.12          makes .venv from that Python
# make lab TORCH_INDEX=address        takes torch from that package index (on Linux: a CPU build, 200 MB, not several GB)
# make lab PY=python SETUP=           uses the environment you are in, as it is
# make lab ARGS=--port=9000           hands options to JupyterLab
# make notebooks NB=course/03         rebuilds one notebook
PYTHON ?= python3
PY = .venv/bin/python
NB = course/0
TO = handout

# Jupyter and IPython read and write their files in this repository, so that the course looks the same for everyone
# and nobody's own settings and kernels are read or changed.
export JUPYTER_CONFIG_DIR := $(CURDIR)/.jupyter
export JUPYTER_DATA_DIR := $(CURDIR)/.jupyter/data
export IPYTHONDIR := $(CURDIR)/.jupyter/ipython
unexport JUPYTER_CONFIG_PATH JUPYTER_PATH

# .venv is up to date when it holds a file named after the checksum of all it depends on: its place, its Python and
# pyproject.toml. So a moved folder, an upgraded Python and an interrupted install are noticed, and clocks don't matter.
PLACE = { pwd -P; .venv/bin/python -VV; } 2>&1 | cksum | tr -d ' '
WANTS = { pwd -P; .venv/bin/python -VV; cat pyproject.toml; } 2>&1 | cksum | tr -d ' '
SETUP := .venv/ready-$(shell $(WANTS))

.PHONY: help lab edit handout test notebooks bench format clean
help:
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile

lab: $(SETUP) ## open your copy of the course, my_course/, in JupyterLab (the first time, this installs it into .venv)
	$(PY) -m attnlab.editions lab $(ARGS)

edit: $(SETUP) ## open the course's own files in JupyterLab, to change the course
	$(PY) -m jupyterlab --ip=127.0.0.1 $(ARGS)

handout: $(SETUP) ## write the notebooks for a class, without solutions and hints, to handout/ (TO=folder)
	$(PY) -m attnlab.editions handout "$(TO)"

test: $(SETUP) ## check everything: style, unit tests, and every output of every notebook
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m pytest
	$(PY) -m pytest --nbval --nbval-current-env --nbval-cell-timeout=120 course

# The .py is the source. Never jupytext --sync: it trusts modification times, which a clone or a checkout scrambles.
NOTEBOOKS = $(basename $(wildcard $(basename $(NB))*.py))
notebooks: $(SETUP) ## rebuild the .ipynb from the .py, outputs included (NB=course/03: only that one)
	@test -n "$(NOTEBOOKS)" || { echo "No notebook begins with NB=$(NB)."; exit 1; }
	$(PY) -m jupytext --to ipynb --update $(NOTEBOOKS:=.py)
	$(PY) -m nbconvert --to notebook --execute --inplace $(NOTEBOOKS:=.ipynb)

bench: $(SETUP) ## measure the course's speed, as ratios
	$(PY) tests/bench

format: $(SETUP) ## put the code in the one format, and mend what ruff can
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

clean: ## remove .venv and the tools' caches
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis build src/*.egg-info

.venv/ready-%:
	@test -e ".venv/made-$$($(PLACE))" \
	|| $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	|| { echo "The course needs Python 3.11 or newer, which '$(PYTHON)' is not: try make lab PYTHON=python3.12."; exit 1; }
	rm -f .venv/ready-*
	test -e ".venv/made-$$($(PLACE))" \
	|| { $(PYTHON) -m venv --clear .venv && touch ".venv/made-$$($(PLACE))"; }
	$(if $(TORCH_INDEX),$(PY) -m pip install --index-url $(TORCH_INDEX) "$$(sed -n 's/^ *"\(torch[^"]*\)".*/\1/p' pyproject.toml)")
	$(PY) -m pip install --editable '.[lab,test]'
	touch ".venv/ready-$$($(WANTS))"
