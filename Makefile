# The two commands of the README are `make demo` and `make test`; the rest are their parts.
PYTHON ?= python3
BIN := .venv/bin
EXIT ?=

.PHONY: demo test screenshots chromium format lint types imports check lock slurm clean

.venv/ready: requirements/dev.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("walltimed needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/walltimed warm-up
	touch $@

demo: .venv/ready
	$(BIN)/walltimed demo $(if $(EXIT),--exit)

test: check
	$(BIN)/pytest -n 2 --cov --cov-report=term

check: lint types imports

format: .venv/ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/ready
	$(BIN)/mypy

imports: .venv/ready
	$(BIN)/lint-imports

# Needs uv; writes name, version and hashes, and no download address.
PIN := uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-emit-find-links

lock:
	$(PIN) pyproject.toml -o requirements/runtime.txt
	$(PIN) pyproject.toml --group dev -o requirements/dev.txt
	$(PIN) --group build -o requirements/build.txt

# What the tests of the Slurm integration need, on Debian 12 or newer, as root; without it they
# are skipped. Nothing has to be configured or started.
slurm:
	apt-get update --quiet=2
	DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends \
	    slurmctld slurmd slurm-client munge slurm-wlm-elasticsearch-plugin lua-socket lua5.1 lua5.3 lua5.4

# What the tests of the pages need, on Debian, as root; without it they are skipped.
chromium:
	apt-get update --quiet=2
	DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends \
	    chromium chromium-driver fonts-dejavu-core

# The pictures of the pages in the documentation, from the demo. Needs Chromium.
screenshots: .venv/ready
	$(BIN)/python tests/support/screenshots.py docs/images

clean:
	rm -rf .venv build dist *.egg-info .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis
