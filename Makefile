# `make` alone lists the verbs. Each is a line or two that you could type by hand.
# Works with make 3.81 (macOS) and in a folder whose path has spaces: hence relative paths only.

# make lab PYTHON=python3.12          makes .venv from that Python
# make lab TORCH_INDEX=address        takes torch from that package index (on Linux: a CPU build, 200 MB, not several GB)
# make lab PY=python SETUP=           uses the environment you are in, as it is
# make lab ARGS=--port=9000           hands options to JupyterLab
# make notebooks NB=course/03         rebuilds one notebook
# make site SITE_URL=address          says where the site will be published: the QR code for a class holds that address
PYTHON ?= python3
PY = .venv/bin/python
NB = course/0
TO = handout
FOR =
SITE_URL =

# Jupyter and IPython read and write their files in this repository, so that the course looks the same for everyone
# and nobody's own settings and kernels are read or changed.
export JUPYTER_CONFIG_DIR := $(CURDIR)/.jupyter
export JUPYTER_DATA_DIR := $(CURDIR)/.jupyter/data
export IPYTHONDIR := $(CURDIR)/.jupyter/ipython
unexport JUPYTER_CONFIG_PATH JUPYTER_PATH

# .venv is up to date when it holds a file named after the checksum of all it depends on: its place, its Python and
# pyproject.toml. So a moved folder, an upgraded Python and an interrupted install are noticed, and clocks don't matter.
# There are three such files: ready-...-lab says that all is installed that opens the course, ready-...-test that all is
# that tests it, too, and ready-...-site that all is that builds and tests the site besides.
PLACE = { pwd -P; .venv/bin/python -VV; } 2>&1 | cksum | tr -d ' '
WANTS = { pwd -P; .venv/bin/python -VV; cat pyproject.toml; } 2>&1 | cksum | tr -d ' '
SETUP := .venv/ready-$(shell $(WANTS))
comma := ,
extras = lab$(if $(filter %-test %-site,$(1)),$(comma)test)$(if $(filter %-site,$(1)),$(comma)site)

# Runs each of the commands, whichever of them fail, and then names those that did.
define each
	@failed=; for command in $(1); do \
	echo "$(PY) -m $$command"; $(PY) -m $$command || failed="$$failed  FAILED: $$command"; \
	done; echo "$$failed"; test -z "$$failed"
endef

# The tests that `make check` runs. (-n 2: in two processes.)
QUICK = src tests/ground tests/data tests/checks tests/course/test_pairs.py tests/course/test_notebook_files.py

.PHONY: help lab edit handout site slides test-site check test types notebooks tamper bench format clean
help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile

lab: $(SETUP:=-lab) ## open your copy of the course, my_course/, in JupyterLab (the first time, this installs it into .venv)
	$(PY) -m attnlab.editions lab $(ARGS)

edit: $(SETUP:=-lab) ## open the course's own files in JupyterLab, to change the course
	$(PY) -m jupyterlab $(ARGS)

handout: $(SETUP:=-lab) ## write the notebooks for a class, without solutions, to handout/ (TO=folder, FOR=nbgrader)
	$(PY) -m attnlab.editions handout "$(TO)" $(FOR:%=--for=%)

site: $(SETUP:=-site) ## build the course's web site, the teacher's page and the worksheet in build/site/ (SITE_URL=address)
	$(PY) .site --url "$(SITE_URL)"

slides: $(SETUP:=-site) ## write a deck of slides of each notebook, with notes for the speaker, to build/slides/
	$(PY) .slides

check: $(SETUP:=-test) ## check what matters most, in less than a minute: style, types, unit tests, pairs of files
	$(call each,'ruff check' 'ruff format --check' mypy 'pytest -q -n 2 $(QUICK)')

test: $(SETUP:=-test) ## check everything: also the browser, and every output of every notebook
	$(call each,'ruff check' 'ruff format --check' mypy 'pytest --nbval -n 2')

test-site: $(SETUP:=-site) ## check the site and the slides in a browser, the course on a JupyterHub and nbgrader's grades
	$(PY) -m pytest tests/site

types: $(SETUP:=-test) ## check the types only
	$(PY) -m mypy

tamper: $(SETUP:=-test) ## change every stored output and count which changes are noticed (some minutes)
	$(PY) tests/course/tamper.py --nbval

# The .py is the source. Never jupytext --sync: it trusts modification times, which a clone or a checkout scrambles.
NOTEBOOKS = $(basename $(wildcard $(basename $(NB))*.py))
notebooks: $(SETUP:=-lab) ## rebuild the .ipynb from the .py, outputs included (NB=course/03: only that one)
	@test -n "$(NOTEBOOKS)" || { echo "No notebook begins with NB=$(NB)."; exit 1; }
	$(PY) .jupyter/attnlab_notebooks.py $(NOTEBOOKS:=.py)
	$(PY) -m jupytext --to ipynb --update $(NOTEBOOKS:=.py)
	$(PY) -m nbconvert --to notebook --execute --inplace $(NOTEBOOKS:=.ipynb)

bench: $(SETUP:=-test) ## measure the course's speed, as ratios
	$(PY) tests/bench

format: $(SETUP:=-test) ## format the code and apply ruff's fixes
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

clean: ## remove .venv and the tools' caches
	rm -rf .venv .pytest_cache .ruff_cache .mypy_cache .hypothesis build dist src/*.egg-info

.venv/ready-%:
	@test -e ".venv/made-$$($(PLACE))" \
	|| $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	|| { echo "The course needs Python 3.11 or newer, which '$(PYTHON)' is not: try make lab PYTHON=python3.12."; exit 1; }
	rm -f .venv/ready-*
	test -e ".venv/made-$$($(PLACE))" \
	|| { $(PYTHON) -m venv --clear .venv && touch ".venv/made-$$($(PLACE))"; }
	$(if $(TORCH_INDEX),$(PY) -m pip install --index-url $(TORCH_INDEX) "$$(sed -n 's/^ *"\(torch[^"]*\)".*/\1/p' pyproject.toml)")
	$(PY) -m pip install --editable '.[$(call extras,$@)]'
	touch $(foreach extra,$(subst $(comma), ,$(call extras,$@)),".venv/ready-$$($(WANTS))-$(extra)")
