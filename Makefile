# The two commands of the README are `make demo` and `make test`; the rest are their parts.
PYTHON ?= python3
# Else no bytecode is kept, and each of hundreds of processes would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin
EXIT ?=
PORT ?=

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
INSTALL := $(BIN)/pip install --disable-pip-version-check --progress-bar off --no-compile
# pip says a line for every package that it collects, and one when it begins to unpack. Its warnings
# about an index would stand between; they are shown if it fails.
COUNTING := awk '/^Collecting/ {printf "\r  collected %d", ++n; fflush()} \
	/^Installing/ {printf ", unpacking"; fflush()} END {print ""}'
# The files name every package that is needed, so nothing is left to be resolved; resolving, pip
# 23.2 takes a newer coverage than the pinned one for the extra that pytest-cov asks for.
PINNED := --no-deps --require-hashes
# The largest packages are fetched and unpacked beside all others.
LARGE := llvmlite|numba|numpy|psycopg-binary|scikit-learn|scipy
these = awk -v large='^($(LARGE))==' '/^[a-z]/ {wanted = $(1)($$0 ~ large)} wanted' requirements/runtime.txt
packages = $(shell cat $(patsubst %,requirements/%.txt,$(1)) | grep -c ==)

.PHONY: demo benchmark notebook test test-long test-research tests coverage mutants papers format lint types imports \
	check docs lock slurm slurm-accounts slurm-root slurm-play twin-likeness pbs-play openpbs chromium \
	screenshots release clean

# What the demo needs, and no more. Bytecode is written at the first import of a module. What
# forecasts need is compiled by the service itself, while the trace is played to it.
.venv/served: requirements/build.txt requirements/runtime.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("walltimed needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	@echo "The first time this takes 1 to 2 minutes, on two idle cores"
	@echo "[1/4] Making a virtual environment in .venv"
	@$(PYTHON) -m venv .venv
	@echo "[2/4] Installing $(call packages,build runtime) packages"
	@{ $(INSTALL) $(PINNED) -r <($(call these,)) & large=$$!; \
	    $(INSTALL) $(PINNED) -r requirements/build.txt -r <($(call these,!)); \
	    others=$$?; wait $$large && exit $$others; } 2> .venv/pip.log | $(COUNTING) || \
	    { cat .venv/pip.log; exit 1; }
	@echo "[3/4] Compiling predictors"
	@$(INSTALL) --quiet --no-deps --no-build-isolation -e . & installing=$$!; \
	    PYTHONPATH=$(CURDIR) $(BIN)/python -m service.cli warm-up --predicting && wait $$installing
	@touch $@

demo: .venv/served
	@echo "[4/4] Starting the service, and playing a trace to it: 10 to 20 s"
	@$(BIN)/walltimed demo --limit 2000 $(if $(EXIT),--exit) $(if $(PORT),--port $(PORT))

# Runs benchmarks/$(BENCHMARK).py, keeps its ratios as a line of results/runs.jsonl, and draws all
# that are kept, over commits, in build/ratios.html; for example:
#     make benchmark BENCHMARK="store --rows 100000"
benchmark: .venv/ready
	$(BIN)/python benchmarks/ratios.py keep $(BENCHMARK)

# A log, its predictions and a verdict, cell by cell in a browser (docs/walltimed.ipynb).
notebook: .venv/notebook
	$(BIN)/jupyter lab docs/walltimed.ipynb $(if $(filter 0,$(shell id -u)),--allow-root)

.venv/notebook: requirements/notebook.txt .venv/served
	@echo "Installing what the notebook needs: $(call packages,notebook) packages in all"
	@$(INSTALL) $(PINNED) -r requirements/notebook.txt | $(COUNTING)
	@touch $@

.venv/ready: requirements/dev.txt .venv/served
	@echo "Installing what the checks need: $(call packages,dev) packages in all; compiling meanwhile"
	@$(BIN)/walltimed warm-up > /dev/null 2>&1 & compiling=$$!; \
	    $(INSTALL) $(PINNED) -r requirements/dev.txt | $(COUNTING) && wait $$compiling
	@touch $@

# pytest compiles everything before its first test (tests/support/compiling.py), beside the checks.
test: .venv/ready
	$(MAKE) -j 2 check tests

# Tests marked long, all examples of the property tests, the attacks of the audit: an hour or more.
test-long: .venv/ready
	$(MAKE) -j 2 check tests LONG=--long

# Whether the tests notice mistakes: puts one after another into a copy; at most an hour.
MUTANTS ?= 120
mutants: .venv/ready
	$(BIN)/walltimed warm-up
	$(BIN)/python research/mutants/run.py --count $(MUTANTS)

tests: .venv/ready
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder $(LONG)

# Tests of research and benchmarks, of which nothing is installed.
test-research: .venv/ready
	$(BIN)/walltimed warm-up
	$(BIN)/pytest -n 2 --dist loadfile research/tests benchmarks/tests

# The lines and branches that tests run: half as much again to twice the time of the tests.
coverage: .venv/ready
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder --cov --cov-report=term $(LONG)

PACKAGES := predictors terminal simulator service walltimed migrations

check: lint types imports

format: .venv/ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tests/support/docstring_check.py $(PACKAGES) papers benchmarks deploy integrations research

types: .venv/ready
	$(BIN)/mypy

imports: .venv/ready
	$(BIN)/lint-imports

# Sphinx, and nothing of the service: the pages are read, and no module is imported.
.venv/docs: requirements/docs.txt
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	@$(INSTALL) $(PINNED) -r requirements/docs.txt | $(COUNTING)
	@touch $@

# The documentation as a site, with search, that needs no network; a warning is an error.
docs: .venv/docs
	$(BIN)/python -m sphinx -q -W --keep-going -c docs . build/docs
	@echo "The site is build/docs/index.html."

# Needs uv; writes name, version and hashes, and no download address.
PIN := uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-emit-find-links

lock:
	$(PIN) pyproject.toml -o requirements/runtime.txt
	$(PIN) pyproject.toml --extra reports -o requirements/full.txt
	$(PIN) pyproject.toml --extra reports --extra distributed --extra tables --group dev -o requirements/dev.txt
	$(PIN) pyproject.toml --extra distributed --constraint requirements/dev.txt -o requirements/distributed.txt
	$(PIN) --group docs --constraint requirements/dev.txt -o requirements/docs.txt
	$(PIN) pyproject.toml --extra reports --extra tables --group notebook --constraint requirements/dev.txt -o requirements/notebook.txt
	$(PIN) --group build -o requirements/build.txt

# The tests of papers/, and every figure and table of papers/README.md from the logs in the directory
# TRACES, compared with results/papers: 15 minutes. PAPERS="--only rocchetti" makes those of one
# study, "--only xu-figure-1" one.
TRACES ?= traces
papers: .venv/ready
	$(BIN)/pytest -n 2 --dist loadfile papers/tests
	$(BIN)/python -m papers check "$(TRACES)" $(PAPERS)

# What the tests of the Slurm integration need, on Debian 12 or newer, as root; without it they
# are skipped. Nothing has to be configured or started.
slurm:
	apt-get update --quiet=2
	DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends \
	    slurmctld slurmd slurm-client munge slurm-wlm-elasticsearch-plugin lua-socket lua5.1 lua5.3 lua5.4

# Slurm's accounts (slurmdbd on MariaDB), for tests/acceptance/test_slurm_accounts.py. Nothing is started.
slurm-accounts: slurm
	DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends \
	    slurmdbd slurm-wlm-mysql-plugin mariadb-server

# Another release's Slurm in a tree of its own, as root; then, for example:
#     WALLTIMED_TEST_SLURM_ROOT=/opt/walltimed-test/slurm-trixie .venv/bin/pytest tests/acceptance -k slurm
RELEASE ?= trixie
slurm-root:
	tests/support/make_slurm_root.sh $(RELEASE) /opt/walltimed-test/slurm-$(RELEASE)

# A log twice through a real Slurm in fast motion (research/fast_motion/README.md), for example:
#     make slurm-play LOG=log.swf.gz PLAY="--from 113 --days 1.5 --conf slurm.conf"
PLAYED ?= build/play
slurm-play: .venv/served
	$(BIN)/python research/fast_motion/slurm_play.py "$(LOG)" -o "$(PLAYED)" $(PLAY)

# Likewise through a real OpenPBS, as root, after make openpbs; for example:
#     make pbs-play LOG=log.swf.gz PLAY="--from 113 --days 1.5 --site site"
pbs-play: .venv/served
	WALLTIMED_TEST_OPENPBS=$(OPENPBS) $(BIN)/python research/fast_motion/pbs_play.py "$(LOG)" \
	    -o "$(PLAYED)" $(PLAY)

# How near the twin is to real Slurms on the logs of TRACES, as root, after make slurm-accounts and
# make slurm-root RELEASE=sid: a quarter of an hour for each of 100 rows, or PLAY="--only sp2-284"
# for some. Goes on where it was ended.
twin-likeness: .venv/served
	$(BIN)/python research/fast_motion/likeness_table.py "$(TRACES)" build/likeness $(PLAY)

# A real OpenPBS for tests/acceptance/test_openpbs.py, as root, once: SOURCE is a directory or a tar
# archive of openpbs/openpbs 23.06. Then:
#     WALLTIMED_TEST_OPENPBS=/opt/walltimed-test/openpbs .venv/bin/pytest tests/acceptance -k pbs
OPENPBS := /opt/walltimed-test/openpbs
openpbs:
	tests/support/build_openpbs.sh "$(SOURCE)" $(OPENPBS)

# What the tests of the pages need, on Debian, as root; without it they are skipped.
chromium:
	apt-get update --quiet=2
	DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends \
	    chromium chromium-driver fonts-dejavu-core

# The pictures of the pages in the documentation, from the demo. Needs Chromium.
screenshots: .venv/ready
	$(BIN)/python tests/support/screenshots.py docs/images

# Everything that a release has, with checksums and a bill of materials, in dist/: packages (.rpm
# where rpmbuild is), wheel, source archive, notes out of CHANGELOG.md.
release:
	deploy/release.sh dist

clean:
	rm -rf .venv build dist *.egg-info .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis
